//! Draws Markdown.
//!
//! Draws one block at a time, which is short (see `blocks`). Text that Markdown hides, such as HTML, is
//! displayed as it is.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::blocks::{Block, Kind};
use crate::clean::clean;
use crate::highlight::{self, Inside};
use crate::theme::Theme;
use crate::{link, wrap};

mod table;

/// The maximum depth of indentation.
const MAX_DEPTH: usize = 12;

/// Returns the lines of a block.
pub(crate) fn block(text: &str, block: &Block, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let source = clean(text.get(block.range.clone()).unwrap_or_default());
    match &block.kind {
        Kind::Prose => prose(&source, width, theme),
        Kind::Code { language, inside } => code(&source, language, *inside, width, theme),
    }
}

/// Returns lines of code.
pub(crate) fn code(
    source: &str,
    language: &str,
    inside: Inside,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut inside = inside;
    let mut lines = Vec::new();
    for line in source.lines() {
        let (spans, after) = highlight::line(language, inside, line, theme);
        inside = after;
        lines.extend(wrap::exact(&link::mark(&spans), width));
    }
    lines
}

/// Returns lines of Markdown.
pub(crate) fn prose(source: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::new(width, theme);
    for event in Parser::new_ext(source, options) {
        writer.event(event);
    }
    writer.flush();
    writer.lines
}

/// The prefix of lines in a list item or a quote.
#[derive(Clone)]
struct Prefix {
    /// The prefix of the first line, such as the mark of a list item.
    first: Option<Span<'static>>,
    rest: Span<'static>,
}

struct Writer<'a> {
    theme: &'a Theme,
    width: usize,
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    prefixes: Vec<Prefix>,
    /// The next number of each open list; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    /// The URLs of open links, and the number of spans at their start.
    links: Vec<(String, usize)>,
    code: Option<(String, String)>,
    table: Option<table::Table>,
    /// Whether a blank line comes before the next block.
    gap: bool,
}

impl<'a> Writer<'a> {
    fn new(width: usize, theme: &'a Theme) -> Self {
        Self {
            theme,
            width: width.max(4),
            lines: Vec::new(),
            spans: Vec::new(),
            styles: vec![Style::new().fg(theme.markdown_text)],
            prefixes: Vec::new(),
            lists: Vec::new(),
            links: Vec::new(),
            code: None,
            table: None,
            gap: false,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                let style = Style::new().fg(self.theme.code);
                self.push(&text, style);
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                let style = self.style().fg(self.theme.muted);
                for (at, line) in text.lines().enumerate() {
                    if at > 0 {
                        self.flush();
                    }
                    self.push(line, style);
                }
            }
            Event::FootnoteReference(name) => self.push(&format!("[{name}]"), self.style()),
            Event::SoftBreak => self.push(" ", self.style()),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.separate();
                let rule = "─".repeat(self.room());
                self.push(&rule, Style::new().fg(self.theme.rule));
                self.flush();
                self.gap = true;
            }
            Event::TaskListMarker(done) => {
                let mark = if done { "[✓] " } else { "[ ] " };
                self.push(mark, Style::new().fg(self.theme.list_item));
            }
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, source)) => source.push_str(text),
            None => self.push(text, self.style()),
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        match &mut self.table {
            Some(table) => table.push(text, style),
            None => self.spans.push(Span::styled(wrap::expand_tabs(text).into_owned(), style)),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let style = self.style();
        match tag {
            Tag::Paragraph | Tag::HtmlBlock | Tag::DefinitionList | Tag::FootnoteDefinition(_) => {
                self.separate();
            }
            Tag::Heading { level, .. } => {
                self.separate();
                let mut style = Style::new().fg(self.theme.heading).add_modifier(Modifier::BOLD);
                if level == HeadingLevel::H1 {
                    style = style.add_modifier(Modifier::UNDERLINED);
                }
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.separate();
                let bar = Span::styled("│ ", Style::new().fg(self.theme.quote));
                self.prefixes.push(Prefix { first: None, rest: bar });
                self.styles.push(style.fg(self.theme.quote).add_modifier(Modifier::ITALIC));
            }
            Tag::CodeBlock(kind) => {
                self.separate();
                let language = match kind {
                    CodeBlockKind::Indented => String::new(),
                    CodeBlockKind::Fenced(name) => name.into_string(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.separate();
                } else {
                    self.flush();
                    self.gap = false;
                }
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Table(columns) => {
                self.separate();
                self.table = Some(table::Table::new(columns.iter().map(alignment_of).collect()));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            Tag::TableCell => {
                if let Some(table) = &mut self.table {
                    table.begin_cell();
                }
            }
            Tag::Emphasis => {
                self.styles.push(style.fg(self.theme.emphasis).add_modifier(Modifier::ITALIC));
            }
            Tag::Strong => self.styles.push(style.fg(self.theme.strong).add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.styles.push(style.add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.spans.len()));
                self.styles.push(style.fg(self.theme.link_text).add_modifier(Modifier::UNDERLINED));
            }
            _ => self.styles.push(style),
        }
    }

    fn item(&mut self) {
        self.flush();
        self.gap = false;
        let (mark, colour) = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number += 1;
                (mark, self.theme.list_number)
            }
            Some(None) | None => ("- ".to_owned(), self.theme.list_item),
        };
        let rest = Span::raw(" ".repeat(mark.len()));
        self.prefixes.push(Prefix { first: Some(Span::styled(mark, Style::new().fg(colour))), rest });
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                self.gap = true;
            }
            TagEnd::HtmlBlock | TagEnd::DefinitionList | TagEnd::FootnoteDefinition => {
                self.flush();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.flush();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.styles.pop();
                self.prefixes.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                if let Some((language, source)) = self.code.take() {
                    let lines = code(&source, &language, Inside::Code, self.room(), self.theme);
                    self.place(lines);
                }
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                // An item without text still has a mark.
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    self.place(vec![Line::default()]);
                }
                self.prefixes.pop();
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let lines = table.lines(self.room(), self.theme);
                    self.place(lines);
                }
                self.gap = true;
            }
            TagEnd::TableHead | TagEnd::TableRow | TagEnd::TableCell => {}
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {
                self.styles.pop();
            }
        }
    }

    fn end_link(&mut self) {
        self.styles.pop();
        let Some((url, from)) = self.links.pop() else { return };
        let text: String = self.spans.iter().skip(from).map(|span| span.content.as_ref()).collect();
        if self.table.is_some() || text != url {
            self.push(&format!(" ({})", clean(&url)), Style::new().fg(self.theme.link));
        }
    }

    fn separate(&mut self) {
        self.flush();
        // After the mark of a list item the text starts in the same line.
        let at_mark = self.prefixes.last().is_some_and(|prefix| prefix.first.is_some());
        if self.gap && !self.lines.is_empty() && !at_mark {
            self.place(vec![Line::default()]);
        }
        self.gap = false;
    }

    /// Returns the width of a line after its prefixes.
    fn room(&self) -> usize {
        let used: usize = self.visible_prefixes().map(|prefix| prefix.rest.width()).sum();
        self.width.saturating_sub(used).max(4)
    }

    fn visible_prefixes(&self) -> impl Iterator<Item = &Prefix> {
        self.prefixes.iter().skip(self.prefixes.len().saturating_sub(MAX_DEPTH))
    }

    fn flush(&mut self) {
        if !self.spans.is_empty() {
            let spans = std::mem::take(&mut self.spans);
            self.place(wrap::words(&link::mark(&spans), self.room()));
        }
    }

    fn place(&mut self, lines: Vec<Line<'static>>) {
        for line in lines {
            let skipped = self.prefixes.len().saturating_sub(MAX_DEPTH);
            let mut spans: Vec<Span<'static>> = Vec::new();
            for prefix in self.prefixes.iter_mut().skip(skipped) {
                spans.push(prefix.first.take().unwrap_or_else(|| prefix.rest.clone()));
            }
            spans.extend(line.spans);
            self.lines.push(Line::from(spans));
        }
    }
}

fn alignment_of(alignment: &Alignment) -> table::Align {
    match alignment {
        Alignment::None | Alignment::Left => table::Align::Left,
        Alignment::Center => table::Align::Center,
        Alignment::Right => table::Align::Right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Mode, built_in};

    fn theme() -> Theme {
        Theme::parse(&built_in::file(built_in::DEFAULT).unwrap(), Mode::Dark).unwrap()
    }

    #[track_caller]
    fn check(source: &str, width: usize, expected: &str) {
        let lines = prose(source, width, &theme());
        let text: Vec<String> = lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
        assert_eq!(text.join("\n"), expected.trim_matches('\n'), "{source}");
    }

    #[test]
    fn blocks_are_set_apart_and_marks_are_hidden() {
        check(
            "# Head\nSome **bold**, *italic*, `code` and [a link](https://example.com).\n\n> a quote\n> goes on\n\n---\n",
            60,
            "
Head

Some bold, italic, code and a link (https://example.com).

│ a quote goes on

────────────────────────────────────────────────────────────
",
        );
    }

    #[test]
    fn lists_are_indented_and_wrapped_behind_their_marks() {
        check(
            "- one is long enough to wrap\n- two\n  - nested\n    1. deep\n- [x] done\n- [ ] open\n-\n",
            20,
            "
- one is long enough
  to wrap
- two
  - nested
    1. deep
- [✓] done
- [ ] open
-
",
        );
    }

    #[test]
    fn tables_have_boxes_and_fit() {
        check(
            "| name | n |\n|:--|--:|\n| a | 1 |\n| long words wrap here | 漢 |\n",
            24,
            "
┌──────────────────┬───┐
│name              │  n│
├──────────────────┼───┤
│a                 │  1│
├──────────────────┼───┤
│long words wrap   │ 漢│
│here              │   │
└──────────────────┴───┘
",
        );
    }

    #[test]
    fn code_in_a_list_and_html_are_shown() {
        check(
            "1. do\n   ```sh\n   ls\n   ```\n\n<b>bold</b>\n",
            40,
            "
1. do
   ls

<b>bold</b>
",
        );
    }

    #[test]
    fn no_control_sequence_comes_through() {
        let text = "a\u{1b}[31mb\u{1b}]0;title\u{7} [x](http://\u{1b}[2Je) `\u{9b}1m`\n";
        let mut blocks = crate::blocks::Blocks::default();
        blocks.extend(text);
        let lines = block(text, blocks.get(0).unwrap(), 40, &theme());
        let shown: String = lines.iter().map(ToString::to_string).collect();
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
    }
}
