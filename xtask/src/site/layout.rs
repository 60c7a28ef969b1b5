//! The frame of a page: head, navigation and footer; lists of directories, and `llms.txt`.

use std::fmt::Write as _;

use super::pages::{HOME_PATH, INDEX, Site, html_path, relative, resolve};
use super::render::{Page, escape};

pub(super) const STYLE: &str = include_str!("style.css");
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Only files of the site are loaded, and no script or style of a document runs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'";
/// Pages with fewer parts have no list of them.
const MIN_PARTS: usize = 3;

/// Returns the document of a page.
pub(super) fn page(site: &Site, page: &Page) -> String {
    let is_home = page.path == HOME_PATH;
    let title = if is_home { page.title.clone() } else { format!("{} · Codewright", page.title) };
    let markdown = page.path.rsplit('/').next().unwrap_or_default();
    let body = format!("{}{}", parts(page), page.html);
    let source = format!("<a href=\"{}\" type=\"text/markdown\">This page as Markdown</a>", escape(markdown));
    frame(site, &html_path(&page.path), &title, &body, &source)
}

/// Returns the list of files of a directory.
pub(super) fn listing(site: &Site, path: &str, entries: &[String]) -> String {
    let mut body = format!("<h1><code>{}</code></h1>\n<ul>\n", escape(path));
    for entry in entries {
        let below = format!("{path}/{entry}");
        let href = if site.directories.contains_key(&below) {
            format!("{entry}/index.html")
        } else if site.pages.contains_key(&below) {
            html_path(entry)
        } else if site.files.contains(&below) {
            entry.clone()
        } else {
            continue;
        };
        let _ = writeln!(body, "<li><a href=\"{}\">{}</a></li>", escape(&href), escape(entry));
    }
    body.push_str("</ul>\n");
    frame(site, &format!("{path}/index.html"), &format!("{path} · Codewright"), &body, "")
}

fn frame(site: &Site, path: &str, title: &str, body: &str, source: &str) -> String {
    let to = |target: &str| escape(&relative(path, target));
    let root = "../".repeat(path.matches('/').count());
    format!(
        "<!doctype html>
<html lang=\"en\" data-root=\"{root}\">
<head>
<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"referrer\" content=\"no-referrer\">
<meta name=\"color-scheme\" content=\"light dark\">
<title>{title}</title>
<link rel=\"stylesheet\" href=\"{style}\">
<script defer src=\"{script}\"></script>
</head>
<body>
<a class=\"skip\" href=\"#main\">Skip to the content</a>
<header>
<a class=\"name\" href=\"{home}\">Codewright</a> <span class=\"version\">{VERSION}</span>
<search><label for=\"search\">Search</label> <input id=\"search\" type=\"search\" autocomplete=\"off\" placeholder=\"/\">
<ol id=\"results\" aria-label=\"Results\" hidden></ol><p id=\"found\" role=\"status\"></p></search>
<a class=\"menu\" href=\"#pages\">All pages</a>
</header>
<div class=\"columns\">
<main id=\"main\">
{body}</main>
<nav id=\"pages\" aria-label=\"All pages\">
{navigation}</nav>
</div>
<footer>{source} <a href=\"{llms}\">llms.txt</a></footer>
</body>
</html>
",
        title = escape(title),
        style = to("style.css"),
        script = to("search.js"),
        home = to(&html_path(HOME_PATH)),
        llms = to("llms.txt"),
        navigation = navigation(site, path),
    )
}

/// Returns the list of the parts of a page.
fn parts(page: &Page) -> String {
    let headings: Vec<_> = page.headings.iter().filter(|heading| heading.level == 2).collect();
    if headings.len() < MIN_PARTS || page.path == HOME_PATH {
        return String::new();
    }
    let mut html = "<details class=\"parts\"><summary>On this page</summary>\n<ul>\n".to_owned();
    for heading in headings {
        let _ = writeln!(html, "<li><a href=\"#{}\">{}</a></li>", heading.id, escape(&heading.text));
    }
    html.push_str("</ul></details>\n");
    html
}

/// Returns the links of the index, under its headings.
fn navigation(site: &Site, path: &str) -> String {
    let mut html = String::new();
    let Some(index) = site.pages.get(INDEX) else { return html };
    let mut heading = "";
    for link in index.links.iter().filter(|link| site.pages.contains_key(&link.target.path)) {
        if link.heading != heading {
            if !heading.is_empty() {
                html.push_str("</ul>\n");
            }
            heading = &link.heading;
            let _ = write!(html, "<h2>{}</h2>\n<ul>\n", escape(heading));
        }
        let target = html_path(&link.target.path);
        let current =
            if target == path && link.target.anchor.is_empty() { " aria-current=\"page\"" } else { "" };
        let href = if link.target.anchor.is_empty() {
            relative(path, &target)
        } else {
            format!("{}#{}", relative(path, &target), link.target.anchor)
        };
        let _ = writeln!(
            html,
            "<li><a href=\"{}\"{current}>{}</a></li>",
            escape(&href),
            escape(&capitalized(&link.label))
        );
    }
    if !heading.is_empty() {
        html.push_str("</ul>\n");
    }
    html
}

/// Returns a label that starts with a capital letter.
fn capitalized(label: &str) -> String {
    let mut chars = label.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Returns the list of pages for language models: the index with the Markdown of each page.
pub(super) fn llms(site: &Site) -> String {
    let mut text = "# Codewright\n\n> An AI coding agent in one binary: terminal, scripts, browser, editors, HTTP API.\n".to_owned();
    let Some(index) = site.pages.get(INDEX) else { return text };
    for line in index.markdown.lines().skip_while(|line| !line.starts_with("## ")) {
        text.push('\n');
        let mut pieces = line.split("](");
        text.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let (link, rest) = piece.split_once(')').unwrap_or((piece, ""));
            let target = resolve(INDEX, link).map_or_else(|| link.to_owned(), |target| target.path);
            let _ = write!(text, "]({target}){rest}");
        }
    }
    text.push('\n');
    text
}
