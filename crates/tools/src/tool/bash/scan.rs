//! A look at a command line before it is parsed.
//!
//! The parser's memory and time grow with the square of some inputs, such as a pipeline of thousands of empty commands.
//! Neither can be limited from outside. So operators are counted first, and a line with too many is not parsed.

/// Operators outside of quotes and here-documents.
pub(super) const MAX_OPERATORS: usize = 512;
/// Here-documents that may wait for their text on one line.
const MAX_HEREDOCS: usize = 16;

/// The number of operators outside of quotes and here-documents, as far as a simple scan tells.
///
/// The result limits cost only: a text that is wrongly taken for a here-document makes the parser slower, which its
/// deadline ends.
pub(super) fn operators(source: &str) -> usize {
    let bytes = source.as_bytes();
    let mut count = 0;
    let mut heredocs: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\'' => at = closing(bytes, at, b'\'', false),
            b'"' => {
                let end = closing(bytes, at, b'"', true);
                // A substitution is parsed inside of quotes too.
                let inside = &bytes[at..end.min(bytes.len())];
                count += inside.iter().filter(|byte| matches!(byte, b'$' | b'`')).count();
                at = end;
            }
            b'\n' => {
                for delimiter in heredocs.drain(..) {
                    at = end_of_heredoc(source, at, delimiter);
                }
            }
            b'<' if bytes[at..].starts_with(b"<<<") => {
                count += 1;
                at += 2;
            }
            b'<' if bytes[at..].starts_with(b"<<") => {
                count += 4;
                at += 1;
                if heredocs.len() < MAX_HEREDOCS {
                    heredocs.extend(delimiter(&source[at + 1..]));
                }
            }
            b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>' | b'`' | b'{' | b'}' | b'[' | b']' | b'$'
            | b'!' => {
                count += 1;
            }
            _ => {}
        }
        at += 1;
    }
    count
}

/// Where a quotation that begins at `at` ends.
fn closing(bytes: &[u8], at: usize, quote: u8, escapes: bool) -> usize {
    let mut at = at + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if escapes && bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// The word that ends a here-document, without its quotes.
fn delimiter(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches(['-', ' ', '\t', '\\', '\'', '"']);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|word| !word.is_empty())
}

/// The position of the last byte of a here-document whose text begins after the line break at `at`.
fn end_of_heredoc(source: &str, at: usize, delimiter: &str) -> usize {
    let mut end = at;
    for line in source.get(at + 1..).unwrap_or_default().split_inclusive('\n') {
        end += line.len();
        if line.trim() == delimiter {
            return end;
        }
    }
    end
}

/// The source without line continuations, if it has any. The shell removes them before it looks for words.
pub(super) fn without_continuations(source: &str) -> Option<String> {
    if !source.contains("\\\n") {
        return None;
    }
    let mut out = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => {
                chars.next();
            }
            ('\\', Some(_)) => {
                out.push(c);
                out.extend(chars.next());
            }
            _ => out.push(c),
        }
    }
    Some(out)
}

/// The commands of the substitutions in a text that a program takes for shell code: `$(…)`, backticks, `<(…)`.
///
/// One that does not end runs to the end of the text.
pub(super) fn substitutions(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'`' {
            let end = closing(bytes, at, b'`', true).min(bytes.len());
            found.extend(text.get(at + 1..end));
            at = end;
        } else if bytes[at] == b'(' && at > 0 && matches!(bytes[at - 1], b'$' | b'<' | b'>') {
            let end = closing_parenthesis(bytes, at);
            // Arithmetic runs nothing itself; a substitution inside of it does.
            if bytes.get(at + 1) != Some(&b'(') {
                found.extend(text.get(at + 1..end));
                at = end;
            }
        }
        at += 1;
    }
    found
}

fn closing_parenthesis(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in bytes[at..].iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + offset;
        }
    }
    bytes.len()
}

/// Whether a word is written with braces that the shell expands: outside of quotes, and not those of `${…}`.
pub(super) fn has_braces(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\'' => at = closing(bytes, at, b'\'', false),
            b'"' => at = closing(bytes, at, b'"', true),
            b'{' if at == 0 || bytes[at - 1] != b'$' => return true,
            _ => {}
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_counted_outside_of_quotes_and_here_documents() {
        for (source, expected) in [
            ("a | b; c && d", 4),
            ("echo 'a|b|c' \"d|e\"", 0),
            ("cat <<'E' > f\na|b|c;;;\nE\na|b", 6),
            ("cat <<E\na|b", 4),
            ("a\\|b", 0),
            ("echo \"$(a)\"", 1),
        ] {
            assert_eq!(operators(source), expected, "{source}");
        }
    }

    #[test]
    fn continuations_are_removed() {
        for (source, expected) in
            [("to\\\nuch x", Some("touch x")), ("a\\\\\nb", Some("a\\\\\nb")), ("a\nb", None)]
        {
            assert_eq!(without_continuations(source).as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn substitutions_are_found() {
        for (text, expected) in [
            ("a[$(touch x)]", &["touch x"][..]),
            ("`a` <(b (c) d)", &["a", "b (c) d"]),
            ("$(a", &["a"]),
            ("a (b)", &[]),
            ("$((1 + 2))", &[]),
            ("$((a[$(b)]))", &["b"]),
        ] {
            assert_eq!(substitutions(text), expected, "{text}");
        }
    }
}
