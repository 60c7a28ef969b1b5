//! Texts of servers in a form that is safe to show to the user.

use url::Url;

/// The longest line.
const MAX_LINE_CHARS: usize = 200;
/// The longest address that is shown.
const MAX_URL_CHARS: usize = 2000;

/// Returns a text of limited length. Control characters and those that are invisible or change the direction of text
/// become spaces; the ends of lines stay.
pub(super) fn text(text: &str, chars: usize) -> String {
    let clean = text.chars().map(|c| if c != '\n' && is_hidden(c) { ' ' } else { c });
    let mut short: String = clean.take(chars).collect();
    if text.chars().count() > chars {
        short.push('…');
    }
    short
}

/// Returns one line.
pub(super) fn line(line: &str) -> String {
    text(line, MAX_LINE_CHARS).replace('\n', " ")
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Returns an address that the user may open: HTTPS, or HTTP on this machine, without a user name. Its host is in ASCII,
/// so that letters which look alike are visible.
///
/// # Errors
///
/// Fails with a reason.
pub(super) fn address(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|_| "it is not a URL".to_owned())?;
    let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match url.scheme() {
        "https" => {}
        "http" if is_local => {}
        _ => return Err("it is not HTTPS".to_owned()),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it contains a user name".to_owned());
    }
    let text = url.to_string();
    if text.len() > MAX_URL_CHARS { Err("it is too long".to_owned()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_become_spaces() {
        assert_eq!(text("a\u{1b}[31m\nb\u{202e}c\u{200b}d", 100), "a [31m\nb c d");
        assert_eq!(text("abc", 2), "ab…");
        assert_eq!(line("a\nb"), "a b");
    }

    #[test]
    fn only_safe_addresses_are_shown() {
        for (given, expected) in [
            ("https://example.com/a?b", Some("https://example.com/a?b")),
            ("http://127.0.0.1:8000/x", Some("http://127.0.0.1:8000/x")),
            // The first letter is Cyrillic.
            ("https://\u{430}pple.com/", Some("https://xn--pple-43d.com/")),
            ("http://example.com/", None),
            ("https://example.com@evil.example/", None),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("data:text/html,x", None),
            ("no address", None),
        ] {
            assert_eq!(address(given).ok().as_deref(), expected, "{given}");
        }
        assert!(address(&format!("https://example.com/{}", "x".repeat(3000))).is_err());
    }
}
