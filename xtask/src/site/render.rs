//! Converts a document to a page.
//!
//! The output contains only elements that this module writes: raw HTML of a document is a fault, except for comments.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::pages::{Target, html_path, relative, resolve};

/// The start of a cell in the head of a table.
const HEAD_CELL: &str = "<th scope=\"col\">";

/// A page of the site.
pub(super) struct Page {
    /// The path of the document from the root of the repository.
    pub path: String,
    pub title: String,
    pub markdown: String,
    pub html: String,
    pub headings: Vec<Heading>,
    /// The text of the page, cut at its headings, for the search.
    pub sections: Vec<Section>,
    /// The links to places of the site.
    pub links: Vec<Link>,
    pub blocks: Vec<Block>,
    /// The pieces of code inside of lines.
    pub codes: Vec<String>,
    pub faults: Vec<String>,
}

pub(super) struct Link {
    pub target: Target,
    /// The text of the link. Empty for a picture.
    pub label: String,
    /// The heading above the link.
    pub heading: String,
}

pub(super) struct Heading {
    pub level: u8,
    pub id: String,
    pub text: String,
}

pub(super) struct Section {
    pub id: String,
    pub heading: String,
    pub text: String,
}

/// A block of code.
pub(super) struct Block {
    /// What follows the opening fence.
    pub info: String,
    pub text: String,
}

impl Block {
    pub(super) fn language(&self) -> &str {
        self.info.split_whitespace().next().unwrap_or_default()
    }
}

/// Renders a document.
pub(super) fn render(path: &str, markdown: &str) -> Page {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut renderer = Renderer {
        page: Page {
            path: path.to_owned(),
            title: String::new(),
            markdown: markdown.to_owned(),
            html: String::new(),
            headings: Vec::new(),
            sections: Vec::new(),
            links: Vec::new(),
            blocks: Vec::new(),
            codes: Vec::new(),
            faults: Vec::new(),
        },
        ids: BTreeMap::new(),
        open: Vec::new(),
        in_head: false,
        is_external: false,
        pictures: 0,
    };
    // A file with front matter is an agent, a command or a skill to copy, so it is shown as it is.
    let as_code =
        markdown.starts_with("---\n").then(|| format!("# `{path}`\n\n`````markdown\n{markdown}\n`````\n"));
    for event in Parser::new_ext(as_code.as_deref().unwrap_or(markdown), options) {
        renderer.event(event);
    }
    renderer.page
}

/// An element whose text is collected.
enum Collected {
    Heading { level: u8, at: usize, text: String },
    Code { info: String, text: String },
    Link { at: usize, text: String },
    Picture { source: String, text: String },
}

struct Renderer {
    page: Page,
    /// How often each identifier was used.
    ids: BTreeMap<String, usize>,
    open: Vec<Collected>,
    in_head: bool,
    /// Whether the open link leads to another site.
    is_external: bool,
    pictures: usize,
}

impl Renderer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => {
                self.collect(&code);
                self.write(&format!("<code>{}</code>", escape(&code)));
                self.page.codes.push(code.into_string());
            }
            Event::SoftBreak => self.text("\n"),
            Event::HardBreak => self.write("<br>"),
            Event::Rule => self.write("<hr>"),
            Event::TaskListMarker(done) => self.write(if done { "☑ " } else { "☐ " }),
            Event::Html(html) | Event::InlineHtml(html) => {
                let html = html.trim();
                let is_comment = html.is_empty() || (html.starts_with("<!--") && html.ends_with("-->"));
                if !is_comment {
                    self.page.faults.push(format!("raw HTML is not supported: `{html}`"));
                }
            }
            other => self.page.faults.push(format!("this Markdown is not supported: {other:?}")),
        }
    }

    fn write(&mut self, html: &str) {
        // The text of a picture is an attribute and has no elements.
        if !matches!(self.open.last(), Some(Collected::Picture { .. })) {
            self.page.html.push_str(html);
        }
    }

    fn text(&mut self, text: &str) {
        match self.open.last_mut() {
            Some(Collected::Code { text: collected, .. }) => collected.push_str(text),
            _ => {
                self.collect(text);
                self.write(&escape(text));
            }
        }
    }

    /// Adds a text to the open elements and to the text for the search, which has headings of its own.
    fn collect(&mut self, text: &str) {
        let mut in_heading = false;
        for open in &mut self.open {
            in_heading |= matches!(open, Collected::Heading { .. });
            let (Collected::Heading { text: collected, .. }
            | Collected::Code { text: collected, .. }
            | Collected::Link { text: collected, .. }
            | Collected::Picture { text: collected, .. }) = open;
            collected.push_str(text);
        }
        if let Some(section) = self.page.sections.last_mut()
            && !in_heading
        {
            section.text.push_str(text);
        }
    }

    /// Separates the words of two blocks in the text for the search.
    fn separate(&mut self) {
        if let Some(section) = self.page.sections.last_mut() {
            section.text.push(' ');
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.write("<p>"),
            Tag::Heading { level, .. } => {
                let at = self.page.html.len();
                self.open.push(Collected::Heading { level: number(level), at, text: String::new() });
            }
            Tag::BlockQuote(_) => self.write("<blockquote>"),
            Tag::CodeBlock(kind) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.open.push(Collected::Code { info, text: String::new() });
            }
            Tag::List(Some(1)) => self.write("<ol>"),
            Tag::List(Some(first)) => self.write(&format!("<ol start=\"{first}\">")),
            Tag::List(None) => self.write("<ul>"),
            Tag::Item => self.write("<li>"),
            Tag::Table(_) => self.write("<div class=\"table\" tabindex=\"0\"><table>"),
            Tag::TableHead => {
                self.in_head = true;
                self.write("<thead><tr>");
            }
            Tag::TableRow => self.write("<tr>"),
            Tag::TableCell => self.write(if self.in_head { HEAD_CELL } else { "<td>" }),
            Tag::Emphasis => self.write("<em>"),
            Tag::Strong => self.write("<strong>"),
            Tag::Strikethrough => self.write("<del>"),
            Tag::Link { dest_url, .. } => self.link(&dest_url),
            Tag::Image { dest_url, .. } => {
                let source = self.picture(&dest_url);
                self.open.push(Collected::Picture { source, text: String::new() });
            }
            Tag::HtmlBlock => {}
            other => self.page.faults.push(format!("this Markdown is not supported: {other:?}")),
        }
    }

    fn link(&mut self, link: &CowStr<'_>) {
        let target = resolve(&self.page.path, link);
        self.is_external = target.is_none();
        let href = match target {
            None => link.to_string(),
            Some(target) => {
                let path = address(&target.path);
                let is_here = target.path == self.page.path && link.starts_with('#');
                let mut href =
                    if is_here { String::new() } else { relative(&html_path(&self.page.path), &path) };
                if !target.anchor.is_empty() {
                    let _ = write!(href, "#{}", target.anchor);
                }
                let at = self.add_link(target);
                self.open.push(Collected::Link { at, text: String::new() });
                href
            }
        };
        let rel = if self.is_external { " rel=\"noreferrer\"" } else { "" };
        self.write(&format!("<a href=\"{}\"{rel}>", escape(&href)));
    }

    /// Adds a link and returns its position.
    fn add_link(&mut self, target: Target) -> usize {
        let heading = self.page.headings.last().map(|heading| heading.text.clone()).unwrap_or_default();
        self.page.links.push(Link { target, label: String::new(), heading });
        self.page.links.len() - 1
    }

    /// Returns the address of a picture, which must be a file of the repository.
    fn picture(&mut self, link: &CowStr<'_>) -> String {
        match resolve(&self.page.path, link) {
            None => {
                self.page.faults.push(format!("the picture `{link}` is on another site"));
                String::new()
            }
            Some(target) => {
                let source = relative(&html_path(&self.page.path), &target.path);
                self.add_link(target);
                source
            }
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.write("</p>\n"),
            TagEnd::Heading(_) => self.heading(),
            TagEnd::BlockQuote(_) => self.write("</blockquote>\n"),
            TagEnd::CodeBlock => self.code(),
            TagEnd::List(true) => self.write("</ol>\n"),
            TagEnd::List(false) => self.write("</ul>\n"),
            TagEnd::Item => self.write("</li>\n"),
            TagEnd::Table => self.write("</tbody></table></div>\n"),
            TagEnd::TableHead => {
                self.in_head = false;
                self.write("</tr></thead>\n<tbody>\n");
            }
            TagEnd::TableRow => self.write("</tr>\n"),
            TagEnd::TableCell => self.cell(),
            TagEnd::Emphasis => self.write("</em>"),
            TagEnd::Strong => self.write("</strong>"),
            TagEnd::Strikethrough => self.write("</del>"),
            TagEnd::Link => {
                self.write("</a>");
                if !self.is_external
                    && let Some(Collected::Link { at, text }) = self.open.pop()
                {
                    self.page.links[at].label = text;
                }
                self.is_external = false;
            }
            TagEnd::Image => {
                if let Some(Collected::Picture { source, text }) = self.open.pop() {
                    self.pictures += 1;
                    // The first picture is probably visible at once.
                    let loading = if self.pictures > 1 { " loading=\"lazy\"" } else { "" };
                    self.write(&format!(
                        "<img src=\"{}\" alt=\"{}\"{loading}>",
                        escape(&source),
                        escape(&text)
                    ));
                }
            }
            _ => {}
        }
        if !matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Link | TagEnd::Strikethrough) {
            self.separate();
        }
    }

    /// Ends a cell. An empty cell of the head is no heading.
    fn cell(&mut self) {
        if self.in_head && self.page.html.ends_with(HEAD_CELL) {
            self.page.html.truncate(self.page.html.len() - HEAD_CELL.len());
            self.write("<td></td>");
        } else {
            self.write(if self.in_head { "</th>" } else { "</td>" });
        }
    }

    /// Writes an open heading with its anchor, and starts a section.
    fn heading(&mut self) {
        let Some(Collected::Heading { level, at, text }) = self.open.pop() else { return };
        let id = self.identifier(&text);
        let inner = self.page.html.split_off(at);
        self.write(&format!("<h{level} id=\"{id}\">{inner}"));
        if level > 1 {
            self.write(&format!(
                "<a class=\"anchor\" href=\"#{id}\" aria-label=\"Link to this section\">#</a>"
            ));
        } else if self.page.title.is_empty() {
            self.page.title.clone_from(&text);
        }
        self.write(&format!("</h{level}>\n"));
        self.page.sections.push(Section { id: id.clone(), heading: text.clone(), text: String::new() });
        self.page.headings.push(Heading { level, id, text });
    }

    /// Writes an open block of code.
    fn code(&mut self) {
        let Some(Collected::Code { info, text }) = self.open.pop() else { return };
        self.write(&format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(&text)));
        if let Some(section) = self.page.sections.last_mut() {
            section.text.push_str(&text);
        }
        self.page.blocks.push(Block { info, text });
    }

    /// Returns a new identifier for a heading, as GitHub makes it.
    fn identifier(&mut self, text: &str) -> String {
        let slug: String = text
            .to_lowercase()
            .chars()
            .filter(|char| char.is_alphanumeric() || matches!(char, '-' | '_' | ' '))
            .map(|char| if char == ' ' { '-' } else { char })
            .collect();
        let count = self.ids.entry(slug.clone()).or_default();
        *count += 1;
        if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
    }
}

/// Returns the address of a link's target in the site. A directory has a list of its files.
fn address(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_file = name.contains('.') || name.chars().all(|char| char.is_ascii_uppercase());
    if is_file { html_path(path) } else { format!("{path}/index.html") }
}

fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// Escapes a text for an element or an attribute in double quotes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(markdown: &str, html: &str) {
        assert_eq!(render("docs/a.md", markdown).html, html, "{markdown}");
    }

    #[test]
    fn documents_become_elements() {
        check("a *b* `c<d`\n", "<p>a <em>b</em> <code>c&lt;d</code></p>\n");
        check("[b](../README.md#x)\n", "<p><a href=\"../README.html#x\">b</a></p>\n");
        check("[b](#x)\n", "<p><a href=\"#x\">b</a></p>\n");
        check(
            "[b](https://example.org)\n",
            "<p><a href=\"https://example.org\" rel=\"noreferrer\">b</a></p>\n",
        );
        check("![*a* \"b\"](c.png)\n", "<p><img src=\"c.png\" alt=\"a &quot;b&quot;\"></p>\n");
        check("```sh x\n<b>\n```\n", "<pre tabindex=\"0\"><code>&lt;b&gt;\n</code></pre>\n");
    }

    #[test]
    fn a_file_to_copy_is_shown_as_it_is() {
        let page = render("a/b.md", "---\nmode: all\n---\n\n# C\n");
        assert_eq!(page.title, "a/b.md");
        assert!(page.html.contains("<code>---\nmode: all\n---\n\n# C\n"), "{}", page.html);
        assert_eq!(page.markdown, "---\nmode: all\n---\n\n# C\n");
    }

    #[test]
    fn identifiers_are_those_of_github() {
        let page = render("docs/a.md", "# `a` & B's, c\n\n## x\n\n## x\n");
        let ids: Vec<&str> = page.headings.iter().map(|heading| heading.id.as_str()).collect();
        assert_eq!(ids, ["a--bs-c", "x", "x-1"]);
        assert_eq!(page.title, "a & B's, c");
    }

    #[test]
    fn raw_html_and_pictures_of_other_sites_are_faults() {
        assert_eq!(render("docs/a.md", "<!-- c -->\n\na\n").faults, [""; 0]);
        assert_eq!(render("docs/a.md", "a <b>c</b>\n").faults.len(), 2);
        assert_eq!(render("docs/a.md", "<script>x</script>\n").faults.len(), 1);
        assert_eq!(render("docs/a.md", "![a](https://example.org/a.png)\n").faults.len(), 1);
    }

    #[test]
    fn the_text_of_each_section_can_be_searched() {
        let page = render("docs/a.md", "# A\n\nb `c`\n\n## D\n\n| e | f |\n|---|---|\n| g | h |\n");
        let found: Vec<_> = page
            .sections
            .iter()
            .map(|section| {
                (section.id.as_str(), section.text.split_whitespace().collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(found, [("a", "b c".to_owned()), ("d", "e f g h".to_owned())]);
    }
}
