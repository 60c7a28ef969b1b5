//! Parses HTML into a tree for reading.
//!
//! Any bytes make a tree. Frequent mistakes are corrected as browsers do. Elements that are nested too deep
//! or exceed the limits are dropped, but their text is kept.

mod entity;
mod token;

pub(super) use token::Token;

/// The limit of nested elements. Deeper ones become a part of the last one.
const MAX_DEPTH: usize = 100;
/// The limit of elements and texts of a page.
const MAX_NODES: usize = 200_000;

/// An element or a text.
#[derive(Debug)]
pub(super) enum Node {
    /// Text with its entities resolved.
    Text(String),
    /// The index of an element.
    Element(usize),
}

/// An element and its children.
#[derive(Debug, Default)]
pub(super) struct Element {
    /// Its name in lower case. The root has an empty name.
    pub(super) name: String,
    /// The attributes that are needed for reading.
    pub(super) attributes: Vec<(&'static str, String)>,
    pub(super) children: Vec<Node>,
}

impl Element {
    /// The value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// A page. The first element is the root.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) elements: Vec<Element>,
}

impl Page {
    /// Parses a page. Invalid HTML is accepted.
    pub(super) fn parse(html: &str) -> Self {
        let mut builder = Builder { elements: vec![Element::default()], open: vec![0], nodes: 0 };
        for token in token::tokens(html) {
            match token {
                Token::Start { name, attributes, closed } => builder.start(name, attributes, closed),
                Token::End(name) => builder.end(&name),
                Token::Text(text) => builder.text(text),
            }
        }
        Self { elements: builder.elements }
    }

    /// The child elements of an element.
    pub(super) fn inside<'p>(&'p self, element: &'p Element) -> impl Iterator<Item = &'p Element> {
        element.children.iter().filter_map(|child| match child {
            Node::Element(at) => Some(&self.elements[*at]),
            Node::Text(_) => None,
        })
    }

    /// The whole text of the page, in order and without separators.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        self.add_text(&self.elements[0], &mut out);
        out.trim().to_owned()
    }

    /// Adds the text of an element. The limit of nested elements bounds the recursion.
    pub(super) fn add_text(&self, element: &Element, out: &mut String) {
        for child in &element.children {
            match child {
                Node::Text(text) => out.push_str(text),
                Node::Element(at) if is_hidden(&self.elements[*at].name) => {}
                Node::Element(at) => self.add_text(&self.elements[*at], out),
            }
        }
    }
}

/// Whether the content of an element is not text to read.
pub(super) fn is_hidden(name: &str) -> bool {
    matches!(name, "script" | "style" | "noscript" | "iframe" | "object" | "embed" | "template" | "svg")
}

/// Elements that have no content.
fn is_void(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
        "track", "wbr",
    ];
    NAMES.contains(&name)
}

/// Elements that end an open paragraph.
fn ends_paragraph(name: &str) -> bool {
    const NAMES: [&str; 29] = [
        "address",
        "article",
        "aside",
        "blockquote",
        "details",
        "div",
        "dl",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "main",
        "menu",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "ul",
        "figcaption",
    ];
    NAMES.contains(&name)
}

/// The open elements that an element ends, and the elements that limit the search for them.
fn closes(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "li" => (&["li"], &["ul", "ol", "menu"]),
        "dt" | "dd" => (&["dt", "dd"], &["dl"]),
        "tr" => (&["tr", "td", "th"], &["table"]),
        "td" | "th" => (&["td", "th"], &["tr", "table"]),
        "tbody" | "thead" | "tfoot" => (&["tbody", "thead", "tfoot", "tr", "td", "th"], &["table"]),
        "option" => (&["option"], &["select"]),
        _ if ends_paragraph(name) => (&["p"], &["td", "th", "li", "button", "table", "div"]),
        _ => (&[], &[]),
    }
}

struct Builder {
    elements: Vec<Element>,
    /// The path from the root to the current element.
    open: Vec<usize>,
    nodes: usize,
}

impl Builder {
    fn here(&mut self) -> &mut Element {
        let at = self.open.last().copied().unwrap_or_default();
        &mut self.elements[at]
    }

    fn start(&mut self, name: String, attributes: Vec<(&'static str, String)>, closed: bool) {
        let (ended, within) = closes(&name);
        if !ended.is_empty() {
            self.close_first(ended, within);
        }
        if self.nodes >= MAX_NODES || self.open.len() >= MAX_DEPTH {
            return;
        }
        self.nodes += 1;
        let at = self.elements.len();
        self.here().children.push(Node::Element(at));
        let is_open = !closed && !is_void(&name);
        self.elements.push(Element { name, attributes, children: Vec::new() });
        if is_open {
            self.open.push(at);
        }
    }

    /// Ends the outermost of some open elements inside the nearest of others.
    fn close_first(&mut self, names: &[&str], within: &[&str]) {
        let mut outermost = None;
        for (depth, at) in self.open.iter().enumerate().skip(1).rev() {
            let name = self.elements[*at].name.as_str();
            if within.contains(&name) {
                break;
            }
            if names.contains(&name) {
                outermost = Some(depth);
            }
        }
        if let Some(depth) = outermost {
            self.open.truncate(depth);
        }
    }

    fn end(&mut self, name: &str) {
        let depth = self.open.iter().rposition(|at| self.elements[*at].name == name);
        if let Some(depth) = depth.filter(|depth| *depth > 0) {
            self.open.truncate(depth);
        }
    }

    fn text(&mut self, text: String) {
        if let Some(Node::Text(last)) = self.here().children.last_mut() {
            last.push_str(&text);
            return;
        }
        if self.nodes < MAX_NODES {
            self.nodes += 1;
            self.here().children.push(Node::Text(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(html: &str, expected: &str) {
        assert_eq!(Page::parse(html).text(), expected, "{html}");
    }

    #[test]
    fn the_text_of_a_page_has_no_separators() {
        check("<title>T</title><h1>Head</h1><p>Para <b>bold</b></p>", "THeadPara bold");
        check("<style>x{}</style><script>if (a</b) 1</script>a", "a");
        check("<script>'</scripting>'</SCRIPT >a<!-- no > --> b<!doctype x><?pi?>c", "a bc");
        check(
            "a &lt;b&gt; &amp;amp; &#65;&#x42; &nope; &copy &eacute;&hellip;",
            "a <b> &amp; AB &nope; \u{a9} \u{e9}\u{2026}",
        );
        check("1 < 2 <3 </> <", "1 < 2 <3  <");
        check("<textarea><b>x</b></textarea>", "<b>x</b>");
        check("<p title='a>b' x=\"</p>\" y=<>z", "z");
    }

    #[test]
    fn a_page_without_end_tags_has_its_structure() {
        let page = Page::parse("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>");
        let list = &page.elements[1];
        assert_eq!((list.name.as_str(), list.children.len()), ("ul", 3));
    }

    #[test]
    fn a_deeply_nested_page_keeps_its_text() {
        let html = format!("{}deep{}", "<div>".repeat(20_000), "</div>".repeat(20_000));
        check(&html, "deep");
    }

    proptest! {
        #[test]
        fn any_text_makes_a_page(html in "(<|>|/|!|-|&|;|#|x|a|li|p|td|table|script|title|=|'|\"| |\u{e9}|\n){0,60}") {
            drop(Page::parse(&html).text());
        }
    }
}
