//! Wraps styled text into lines. Widths are counted in terminal cells.
//!
//! A character may have a width of zero, one or two cells. A grapheme is never split. The text must be
//! clean, without control characters except tabs, which are replaced by spaces.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::bidi::{self, Base};

/// The replacement of a tab.
const TAB: &str = "    ";

/// Returns the width of a text.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(UnicodeWidthStr::width).sum() }
}

/// Replaces tabs by spaces.
pub(crate) fn expand_tabs(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\t') { text.replace('\t', TAB).into() } else { text.into() }
}

/// Shortens a text to a width, with `…` at the end, and returns it in visual order.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    bidi::visual_text(&cut(text, limit)).into_owned()
}

/// Shortens a text to a width, with `…` at the end, and returns it in logical order.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let mut kept = fitting(text, limit.saturating_sub(1)).to_owned();
    if limit > 0 {
        kept.push('…');
    }
    kept
}

/// Shortens a text to a width, with `…` at the front, because the end of a path matters.
pub(crate) fn shorten_front(text: &str, limit: usize) -> String {
    bidi::visual_text(&cut_front(text, limit)).into_owned()
}

fn cut_front(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let mut used = 1;
    let mut start = text.len();
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += grapheme.width();
        if used > limit {
            break;
        }
        start = at;
    }
    format!("…{}", &text[start..])
}

/// Returns the longest start of a text that fits into a width.
pub(crate) fn fitting(text: &str, limit: usize) -> &str {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += grapheme.width();
        if used > limit {
            return &text[..at];
        }
    }
    text
}

/// Fills lines with styled text.
struct Fill {
    width: usize,
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    used: usize,
}

impl Fill {
    fn new(width: usize) -> Self {
        Self { width: width.max(2), lines: Vec::new(), spans: Vec::new(), used: 0 }
    }

    fn push(&mut self, text: &str, style: Style) {
        self.used += width(text);
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => self.spans.push(Span::styled(text.to_owned(), style)),
        }
    }

    fn end_line(&mut self) {
        self.used = 0;
        self.lines.push(Line::from(std::mem::take(&mut self.spans)));
    }

    /// Adds text that can be broken anywhere.
    fn push_anywhere(&mut self, text: &str, style: Style) {
        if self.used + width(text) <= self.width {
            return self.push(text, style);
        }
        for grapheme in text.graphemes(true) {
            if self.used + grapheme.width() > self.width {
                self.end_line();
            }
            self.push(grapheme, style);
        }
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        if !self.spans.is_empty() || self.lines.is_empty() {
            self.end_line();
        }
        self.lines
    }
}

/// Wraps text between words. A word that is longer than a line is broken at the end of the line.
pub(crate) fn words(spans: &[Span<'_>], limit: usize) -> Vec<Line<'static>> {
    let mut fill = Fill::new(limit);
    // A word whose style changes in the middle is not broken there.
    let mut word: Vec<(&str, Style)> = Vec::new();
    let mut blanks: Vec<(&str, Style)> = Vec::new();
    for span in spans {
        for piece in span.content.split_word_bounds() {
            let is_blank = piece.chars().all(char::is_whitespace);
            let is_wide = piece.chars().next().is_some_and(|first| !first.is_ascii()) && width(piece) >= 2;
            if is_blank {
                place(&mut fill, &mut blanks, &mut word);
                blanks.push((piece, span.style));
            } else {
                if is_wide {
                    place(&mut fill, &mut blanks, &mut word);
                }
                word.push((piece, span.style));
            }
        }
    }
    place(&mut fill, &mut blanks, &mut word);
    bidi::visual_order(fill.finish(), Base::FirstLetter)
}

/// Adds a word and the blanks before it.
fn place<'a>(fill: &mut Fill, blanks: &mut Vec<(&'a str, Style)>, word: &mut Vec<(&'a str, Style)>) {
    if word.is_empty() {
        return;
    }
    let total = |pieces: &[(&str, Style)]| pieces.iter().map(|(text, _)| width(text)).sum::<usize>();
    let fits = fill.used + total(blanks) + total(word) <= fill.width;
    let begins = fill.used == 0 && fill.lines.is_empty();
    if fits || begins {
        for (text, style) in blanks.drain(..) {
            fill.push_anywhere(text, style);
        }
    } else if fill.used > 0 {
        fill.end_line();
    }
    blanks.clear();
    for (text, style) in word.drain(..) {
        fill.push_anywhere(text, style);
    }
}

/// Wraps code and outputs exactly at the end of the line.
pub(crate) fn exact(spans: &[Span<'_>], limit: usize) -> Vec<Line<'static>> {
    let mut fill = Fill::new(limit);
    for span in spans {
        fill.push_anywhere(&expand_tabs(&span.content), span.style);
    }
    bidi::visual_order(fill.finish(), Base::Left)
}

/// Prepends a span to each line: `first` to the first line and `rest` to the others.
pub(crate) fn prefix_lines(
    lines: Vec<Line<'static>>,
    first: &Span<'static>,
    rest: &Span<'static>,
) -> Vec<Line<'static>> {
    let mut lines = lines;
    for (at, line) in lines.iter_mut().enumerate() {
        line.spans.insert(0, if at == 0 { first.clone() } else { rest.clone() });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, limit: usize, expected: &[&str]) {
        let lines = words(&[Span::raw(text.to_owned())], limit);
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(lines, expected, "{text:?} in {limit}");
    }

    #[test]
    fn lines_break_between_words() {
        check("one two three", 8, &["one two", "three"]);
        check("one two three", 80, &["one two three"]);
        check("", 8, &[""]);
        check("    indented text", 12, &["    indented", "text"]);
    }

    #[test]
    fn a_long_word_is_broken_at_the_end_of_the_line() {
        check("abcdefghij", 4, &["abcd", "efgh", "ij"]);
        check("a abcdefghij", 4, &["a", "abcd", "efgh", "ij"]);
    }

    #[test]
    fn wide_characters_have_two_cells_and_are_not_split() {
        check("漢字漢字", 5, &["漢字", "漢字"]);
        check("ab 👩‍👩‍👧 cd", 6, &["ab 👩‍👩‍👧", "cd"]);
        assert_eq!(shorten("漢字漢字", 5), "漢字…");
        assert_eq!(shorten_front("src/漢字.rs", 6), "…字.rs");
        assert_eq!(width("e\u{301}"), 1);
    }

    #[test]
    fn a_word_with_two_styles_is_not_broken() {
        let spans = [Span::raw("aaa bb"), Span::styled("bb", Style::new().bold())];
        let lines: Vec<String> = words(&spans, 6).iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["aaa", "bbbb"]);
    }
}
