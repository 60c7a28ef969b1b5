//! References in texts: `https://…`, `path/file`, `file:line` and `file:line:column`.

use std::ops::Range;

/// The maximum length of a reference, in bytes.
const MAX_BYTES: usize = 2_048;
/// The maximum length of a file name's extension.
const MAX_EXTENSION: usize = 10;
/// The largest line and column number.
const MAX_NUMBER: u32 = 9_999_999;
/// The schemes that can be linked. Paths of `file` URLs are checked like other paths.
const SCHEMES: [&str; 3] = ["https://", "http://", "file://"];

/// The target of a reference.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Reference {
    /// An address with the scheme `http` or `https`.
    Url(String),
    /// A file, which may not exist.
    File(FileReference),
}

/// A file, and a place in it counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FileReference {
    /// Absolute, or relative to the directory or the worktree.
    pub(crate) path: String,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
}

impl Reference {
    /// Parses a text that is a reference as a whole.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        if let Some(path) = text.strip_prefix("file://") {
            return file_url(path).map(Self::File);
        }
        if has_scheme(text) {
            return is_plain_url(text).then(|| Self::Url(text.to_owned()));
        }
        let (file, end) = file(text)?;
        (end == text.len()).then_some(Self::File(file))
    }
}

/// Returns the references in a text.
pub(crate) fn find(text: &str) -> Vec<Range<usize>> {
    // Most texts have neither a path nor a line number.
    if !text.contains(['/', ':', '#']) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = if has_scheme(rest) { url_length(rest) } else { token_length(rest) };
        if length == 0 {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let token = &rest[..length];
        let linked = if has_scheme(token) { length } else { file(token).map_or(0, |(_, end)| end) };
        // A mark on the next letter would belong to the last letter of the link.
        let is_clear = rest[linked..].chars().next().is_none_or(|next| next.is_ascii());
        if linked > 0 && is_clear && Reference::parse(&rest[..linked]).is_some() {
            found.push(at..at + linked);
        }
        at += length;
    }
    found
}

fn has_scheme(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

/// Returns the length of the URL at the start of a text, without punctuation after it.
fn url_length(text: &str) -> usize {
    let is_part = |c: char| match c {
        '"' | '\'' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' => false,
        c => c.is_alphanumeric() || c.is_ascii_graphic(),
    };
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    let mut url = &text[..end];
    loop {
        let closing = |open: char, close: char| {
            url.ends_with(close) && url.matches(close).count() > url.matches(open).count()
        };
        let is_trimmed = url.ends_with(['.', ',', ';', ':', '!', '?', '*', '_', '~'])
            || closing('(', ')')
            || closing('[', ']');
        if !is_trimmed {
            return url.len();
        }
        url = &url[..url.len() - 1];
    }
}

/// Returns the length of the characters at the start of a text that a path with a position can have.
fn token_length(text: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+' | ':' | '#');
    text.find(|c: char| !is_part(c)).unwrap_or(text.len())
}

/// Whether the host of a URL cannot be mistaken for another one.
///
/// A user name before the host looks like a host, and letters of other scripts look like Latin letters.
fn is_plain_url(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        Some(_) | None => (host, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let is_host = match address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_name),
    };
    is_host && port.is_none_or(is_port)
}

/// Parses the part of a `file` URL after its scheme.
fn file_url(rest: &str) -> Option<FileReference> {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    // A `%` could hide the characters of another path.
    if !path.starts_with('/') || path.contains(['%', '?']) {
        return None;
    }
    let (path, position) = path.split_once('#').unwrap_or((path, ""));
    let (line, column, end) = position_of(&format!("#{position}"));
    (position.is_empty() || end == position.len() + 1).then(|| FileReference {
        path: path.to_owned(),
        line,
        column,
    })
}

/// Parses the file at the start of a token. Returns the length of the path and the position.
fn file(token: &str) -> Option<(FileReference, usize)> {
    let end = token.find([':', '#']).unwrap_or(token.len());
    let path = token[..end].trim_end_matches(['.', '-', '+', '@', '/']);
    let (line, column, length) = if path.len() == end { position_of(&token[end..]) } else { (None, None, 0) };
    let name = path.rsplit('/').next().unwrap_or_default();
    let (stem, extension) = name.rsplit_once('.')?;
    let is_extension = (1..=MAX_EXTENSION).contains(&extension.len())
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && extension.bytes().any(|byte| byte.is_ascii_alphabetic());
    // Without a directory or a line, too many words with a point would be files.
    let is_file = is_extension && (path.contains('/') || line.is_some());
    let is_path = !path.starts_with("//") && !path.starts_with('-') && !path.contains("//");
    // A name that starts with a point, such as `.env`, has no stem.
    let is_named = !stem.is_empty() || path.contains('/');
    let used = path.len() + length;
    (is_file && is_path && is_named).then(|| (FileReference { path: path.to_owned(), line, column }, used))
}

/// Parses `:line`, `:line:column`, `#Lline` and `#LlineCcolumn`. Returns the length of the text that was used.
fn position_of(text: &str) -> (Option<u32>, Option<u32>, usize) {
    let (prefix, between) = if text.starts_with(':') { (":", ':') } else { ("#L", 'C') };
    let Some(rest) = text.strip_prefix(prefix) else { return (None, None, 0) };
    let Some((line, digits)) = number(rest) else { return (None, None, 0) };
    let used = prefix.len() + digits;
    match rest[digits..].strip_prefix(between).and_then(number) {
        Some((column, more)) => (Some(line), Some(column), used + 1 + more),
        None => (Some(line), None, used),
    }
}

/// Parses the number at the start of a text. Returns it with the number of its digits.
fn number(text: &str) -> Option<(u32, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text[..digits].parse().ok().filter(|number| (1..=MAX_NUMBER).contains(number))?;
    Some((number, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = find(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn references_are_found_in_prose_and_in_messages_of_tools() {
        check("see src/main.rs and lib.rs:10, or ./a.py.", &["src/main.rs", "lib.rs:10", "./a.py"]);
        check("src/main.rs:10:5: error: no", &["src/main.rs:10:5"]);
        check("src/main.rs:10:let x = 5;", &["src/main.rs:10"]);
        check("(/work/app/a.ts#L3) docs/a.md#L3C7", &["/work/app/a.ts#L3", "docs/a.md#L3C7"]);
        check("at src/漢字.rs:3 and app/.env.local", &["src/漢字.rs:3", "app/.env.local"]);
        check("read https://example.com/a_(b)?c=d#e.", &["https://example.com/a_(b)?c=d#e"]);
        check(
            "(http://localhost:4096/x), <https://[::1]:8/>",
            &["http://localhost:4096/x", "https://[::1]:8/"],
        );
        check(
            "file:///work/a.rs#L4 file://localhost/work/b.rs",
            &["file:///work/a.rs#L4", "file://localhost/work/b.rs"],
        );
    }

    #[test]
    fn other_text_is_not_a_reference() {
        for text in [
            "either/or and 1/2",
            "12:30",
            "e.g. 3.5",
            "a.b",
            "key: value",
            "Foo::bar()",
            "//comment.here/x",
            "javascript:alert(1)",
            "ssh://host/a",
            "vscode://file/a.rs:1",
            "data:text/html,x",
            "--flag=a",
            "-rf/x.sh",
            "me@example.com",
            "https://",
            "http:///x",
            "https://user@evil.example/",
            "https://good.example:80@evil.example/",
            "https://exаmple.com/",
            "https://a.example:99999/",
            "file://server/share/a.rs",
            "file:///work/%2e%2e/a.rs",
            "#L3",
            ":3",
        ] {
            check(text, &[]);
        }
        check(&format!("https://example.com/{}", "a".repeat(MAX_BYTES)), &[]);
    }

    #[test]
    fn a_reference_has_a_path_a_line_and_a_column() {
        let parsed = |text: &str| match Reference::parse(text) {
            Some(Reference::File(file)) => (file.path, file.line, file.column),
            other => panic!("{other:?}"),
        };
        assert_eq!(parsed("src/a.rs"), ("src/a.rs".to_owned(), None, None));
        assert_eq!(parsed("a.rs:3"), ("a.rs".to_owned(), Some(3), None));
        assert_eq!(parsed("a.rs:3:7"), ("a.rs".to_owned(), Some(3), Some(7)));
        assert_eq!(parsed("b/a.rs#L3C7"), ("b/a.rs".to_owned(), Some(3), Some(7)));
        assert_eq!(parsed("file:///w/a.rs#L3"), ("/w/a.rs".to_owned(), Some(3), None));
        assert_eq!(Reference::parse("a.rs:0"), None);
    }
}
