//! Converts a page to Markdown.
//!
//! Headings, lists, quotes, code, tables, links and pictures have their markup; everything else becomes text.
//! Paragraphs are separated by one empty line.

use super::page::{Element, Node, Page, is_hidden};

/// The depth up to which nested lists and quotes are indented.
const MAX_INDENTS: usize = 8;
/// The limit of columns of a table.
const MAX_COLUMNS: usize = 40;

/// Converts a page.
pub(super) fn markdown(page: &Page) -> String {
    let mut writer = Writer { page, out: String::new(), indents: 0, verbatim: false };
    writer.children(&page.elements[0]);
    writer.out.trim().to_owned()
}

struct Writer<'p> {
    page: &'p Page,
    out: String,
    indents: usize,
    /// Whether spaces and line ends are kept.
    verbatim: bool,
}

/// Whether an element is a block.
fn is_block(name: &str) -> bool {
    const NAMES: [&str; 32] = [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "hgroup",
        "html",
        "main",
        "menu",
        "nav",
        "p",
        "section",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
    ];
    NAMES.contains(&name)
}

impl<'p> Writer<'p> {
    fn children(&mut self, element: &'p Element) {
        for child in &element.children {
            match child {
                Node::Text(text) => self.words(text),
                Node::Element(at) => self.element(&self.page.elements[*at]),
            }
        }
    }

    /// Adds text. A run of spaces becomes one, and a line does not start with one.
    fn words(&mut self, text: &str) {
        if self.verbatim {
            self.out.push_str(text);
            return;
        }
        for c in text.chars() {
            if c.is_ascii_whitespace() {
                if !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
                    self.out.push(' ');
                }
            } else {
                self.out.push(c);
            }
        }
    }

    /// Ends the line with `ends`, without repeating newlines that are there already.
    fn part(&mut self, ends: &str) {
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
        if self.out.is_empty() {
            return;
        }
        let existing = self.out.len() - self.out.trim_end_matches('\n').len();
        self.out.push_str(&ends[existing.min(ends.len())..]);
    }

    fn element(&mut self, element: &'p Element) {
        match element.name.as_str() {
            name if is_hidden(name) => {}
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading(element),
            "title" => self.block(element),
            "br" => {
                self.out.push_str(if self.verbatim { "\n" } else { "  \n" });
            }
            "hr" => {
                self.part("\n\n");
                self.out.push_str("---");
                self.part("\n\n");
            }
            "ul" | "ol" | "menu" => self.list(element),
            "blockquote" => self.quote(element),
            "pre" => self.code_block(element),
            "code" | "kbd" | "samp" | "tt" if !self.verbatim => self.code(element),
            "b" | "strong" => self.marked(element, "**"),
            "em" | "i" => self.marked(element, "*"),
            "del" | "s" => self.marked(element, "~~"),
            "a" => self.link(element),
            "img" => self.picture(element),
            "table" => self.table(element),
            name if is_block(name) => self.block(element),
            _ => self.children(element),
        }
    }

    fn block(&mut self, element: &'p Element) {
        self.part("\n\n");
        self.children(element);
        self.part("\n\n");
    }

    /// The text of an element's children by itself.
    fn inside(&mut self, element: &'p Element) -> String {
        let before = std::mem::take(&mut self.out);
        self.children(element);
        std::mem::replace(&mut self.out, before)
    }

    fn heading(&mut self, element: &'p Element) {
        let level = usize::from(element.name.as_bytes()[1] - b'0');
        let words = self.inside(element);
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() {
            return;
        }
        self.part("\n\n");
        self.out.push_str(&"#".repeat(level));
        self.out.push(' ');
        self.out.push_str(&words);
        self.part("\n\n");
    }

    /// The text of an element's children in its context: without a second space at the start.
    fn in_context(&mut self, element: &'p Element) -> String {
        let start = self.out.len();
        self.children(element);
        self.out.split_off(start.min(self.out.len()))
    }

    /// Puts markup around text, and the spaces at its ends outside of the markup.
    fn around(&mut self, words: &str, before: &str, after: &str) {
        let inner = words.trim();
        if inner.is_empty() || self.verbatim || words.starts_with('\n') || inner.contains("\n\n") {
            return self.out.push_str(words);
        }
        let start = &words[..words.len() - words.trim_start().len()];
        let end = &words[words.trim_end().len()..];
        self.out.push_str(&format!("{start}{before}{inner}{after}{end}"));
    }

    fn marked(&mut self, element: &'p Element, mark: &str) {
        let words = self.in_context(element);
        self.around(&words, mark, mark);
    }

    fn link(&mut self, element: &'p Element) {
        let words = self.in_context(element);
        match element.attribute("href").map(str::trim).filter(|address| !address.is_empty()) {
            Some(address) => {
                let target = target(address, element.attribute("title"));
                self.around(&words, "[", &format!("]({target})"));
            }
            None => self.out.push_str(&words),
        }
    }

    fn picture(&mut self, element: &'p Element) {
        let Some(source) = element.attribute("src").map(str::trim).filter(|source| !source.is_empty()) else {
            return;
        };
        // The data of an embedded picture is not readable.
        let source = if source.starts_with("data:") { "data:" } else { source };
        let shown =
            element.attribute("alt").unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        self.out.push_str(&format!("![{shown}]({})", target(source, element.attribute("title"))));
    }

    fn code(&mut self, element: &'p Element) {
        let mut words = String::new();
        self.page.add_text(element, &mut words);
        let words = words.replace(['\r', '\n'], " ");
        if words.trim().is_empty() {
            return self.words(&words);
        }
        let fence = "`".repeat(longest_run(&words) + 1);
        let space = if words.starts_with('`') || words.ends_with('`') { " " } else { "" };
        self.out.push_str(&format!("{fence}{space}{words}{space}{fence}"));
    }

    fn code_block(&mut self, element: &'p Element) {
        let inner = self.page.inside(element).find(|inner| inner.name == "code");
        let class = inner.and_then(|inner| inner.attribute("class")).or(element.attribute("class"));
        let language =
            class.unwrap_or_default().split_whitespace().find_map(|class| class.strip_prefix("language-"));
        let language = language.unwrap_or_default().to_owned();
        let was = std::mem::replace(&mut self.verbatim, true);
        let words = self.inside(element);
        self.verbatim = was;
        let words = words.strip_prefix('\n').unwrap_or(&words).trim_end();
        let fence = "`".repeat((longest_run(words) + 1).max(3));
        self.part("\n\n");
        self.out.push_str(&format!("{fence}{language}\n{words}\n{fence}"));
        self.part("\n\n");
    }

    /// The text of an element's children, with a prefix before each line.
    fn indented(&mut self, element: &'p Element, first: &str, others: &str) -> String {
        self.indents += 1;
        let words = self.inside(element);
        self.indents -= 1;
        let words = words.trim();
        if self.indents >= MAX_INDENTS {
            return words.to_owned();
        }
        let mut out = String::with_capacity(words.len() + 16);
        for (n, line) in words.split('\n').enumerate() {
            let start = if n == 0 { first } else { others };
            if n > 0 {
                out.push('\n');
            }
            out.push_str(if line.is_empty() { start.trim_end() } else { start });
            out.push_str(line);
        }
        out
    }

    fn quote(&mut self, element: &'p Element) {
        let words = self.indented(element, "> ", "> ");
        self.part("\n\n");
        self.out.push_str(&words);
        self.part("\n\n");
    }

    fn list(&mut self, element: &'p Element) {
        let is_numbered = element.name == "ol";
        let mut number: i64 =
            element.attribute("start").and_then(|start| start.trim().parse().ok()).unwrap_or(1);
        // A nested list follows its item without an empty line.
        let ends = if self.indents > 0 { "\n" } else { "\n\n" };
        self.part(ends);
        for child in &element.children {
            let item = match child {
                Node::Element(at) => &self.page.elements[*at],
                Node::Text(text) => {
                    self.words(text);
                    continue;
                }
            };
            if item.name != "li" {
                self.element(item);
                continue;
            }
            let mark = if is_numbered { format!("{number}.  ") } else { "-   ".to_owned() };
            number = number.saturating_add(1);
            let words = self.indented(item, &mark, "    ");
            self.part("\n");
            self.out.push_str(&words);
            self.part("\n");
        }
        self.part(ends);
    }

    fn table(&mut self, element: &'p Element) {
        let mut rows = Vec::new();
        Self::rows(self.page, element, &mut rows);
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        // A table used for layout, or one that does not fit into a Markdown table.
        if !(2..=MAX_COLUMNS).contains(&columns) || rows.len() < 2 {
            return self.block(element);
        }
        let mut shown = Vec::new();
        for row in &rows {
            let mut cells = Vec::new();
            for cell in row {
                let words = self.inside(cell);
                cells.push(words.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|"));
            }
            cells.resize(columns, String::new());
            shown.push(format!("| {} |", cells.join(" | ")));
        }
        shown.insert(1, format!("|{}", " --- |".repeat(columns)));
        self.part("\n\n");
        self.out.push_str(&shown.join("\n"));
        self.part("\n\n");
    }

    fn rows(page: &'p Page, element: &'p Element, rows: &mut Vec<Vec<&'p Element>>) {
        for child in page.inside(element) {
            match child.name.as_str() {
                "thead" | "tbody" | "tfoot" => Self::rows(page, child, rows),
                "tr" => {
                    let cells = page.inside(child).filter(|cell| matches!(cell.name.as_str(), "td" | "th"));
                    rows.push(cells.collect());
                }
                _ => {}
            }
        }
    }
}

fn target(address: &str, title: Option<&str>) -> String {
    let address = address.replace([' ', '\n', '\r', '\t'], "%20").replace('(', "\\(").replace(')', "\\)");
    match title.map(str::trim).filter(|title| !title.is_empty()) {
        Some(title) => {
            let title = title.split_whitespace().collect::<Vec<_>>().join(" ").replace('"', "\\\"");
            format!("{address} \"{title}\"")
        }
        None => address,
    }
}

/// The length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(html: &str, expected: &str) {
        assert_eq!(markdown(&Page::parse(html)), expected, "{html}");
    }

    #[test]
    fn a_page_is_converted_as_recorded() {
        check(
            "<html><head><title>T</title><style>x{}</style><script>1</script></head><body><h1>Head</h1><p>Para \
             <b>bold</b> <a href='/x'>link</a></p><ul><li>one</li><li>two</li></ul><pre><code>code()</code></pre>\
             </body></html>",
            "T\n\n# Head\n\nPara **bold** [link](/x)\n\n-   one\n-   two\n\n```\ncode()\n```",
        );
    }

    #[test]
    fn text_has_its_markup() {
        check("<p>a <em>b </em>c<strong> d</strong></p>", "a *b* c **d**");
        check("a<br>b<hr>c", "a  \nb\n\n---\n\nc");
        check("<code>a`b</code> <code>`</code> <code> </code>", "``a`b`` `` ` ``");
        check("<a href='a b(c)' title='x \"y\"'> z </a>w", "[z](a%20b\\(c\\) \"x \\\"y\\\"\") w");
        check("<a name=x>here</a> <a href=/e></a>", "here");
        check(
            "<img src='/p.png' alt='A\nB'><img src='data:image/png;base64,AAAA'>",
            "![A B](/p.png)![](data:)",
        );
        check("  a \n\t b  <div> c </div> d ", "a b\n\nc\n\nd");
    }

    #[test]
    fn lists_quotes_and_code_keep_their_lines() {
        check("<ol start=3><li>a<li><p>b</p><p>c</p></ol>", "3.  a\n4.  b\n\n    c");
        check("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "-   a\n    -   b\n-   c");
        check("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc");
        check(
            "<pre class=x><code class='hl language-rust'>\nfn a() {\n    ```\n}\n</code></pre>",
            "````rust\nfn a() {\n    ```\n}\n````",
        );
    }

    #[test]
    fn only_tables_with_several_columns_are_tables() {
        check(
            "<table><thead><tr><th>A<th>B</thead><tr><td>1 <b>x</b><td>a|b<tr><td>2</table>",
            "| A | B |\n| --- | --- |\n| 1 **x** | a\\|b |\n| 2 |  |",
        );
        check("<table><tr><td>a<tr><td>b</table>", "a\n\nb");
    }

    #[test]
    fn a_hostile_page_is_converted_in_bounded_time() {
        for (start, count) in
            [("<blockquote>", 50_000), ("<ul><li>", 50_000), ("<a href=x>", 50_000), ("<b>", 100_000)]
        {
            let html = format!("{}x{}", start.repeat(count), "<br>".repeat(20_000));
            assert!(markdown(&Page::parse(&html)).contains('x'));
        }
    }

    proptest! {
        #[test]
        fn any_page_is_written_without_doubled_empty_lines(
            html in "(<(p|div|ul|ol|li|pre|code|b|a href=x|table|tr|td|blockquote|h2|br|hr|img src=y)>|</(p|ul|li|pre|code|b|a|table|td|div)>|w| |\n){0,60}",
        ) {
            let page = Page::parse(&html);
            drop(markdown(&page));
            prop_assert_eq!(page.text().matches('w').count(), html.matches('w').count());
        }
    }
}
