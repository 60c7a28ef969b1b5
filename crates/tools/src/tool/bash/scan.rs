//! Scans a command line before it is parsed.
//!
//! The parser's memory and time grow with the square of some inputs, such as a pipeline of thousands of empty
//! commands, and cannot be limited from outside. So operators are counted first, and a line with too many is
//! not parsed.

use super::limits::Reason;

/// The limit of operators outside quotes and here-documents.
const MAX_OPERATORS: usize = 512;
/// The limit for the length of a word outside quotes.
const MAX_WORD_BYTES: usize = 4096;
/// The cost of a here-document in operators, because its end is searched.
const HEREDOC_OPERATORS: usize = 16;
/// The limit of here-documents that start on one line.
const MAX_HEREDOCS: usize = 16;

/// The result of a scan.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scan {
    /// The number of operators outside quotes and here-documents.
    operators: usize,
    /// The length of the longest word outside them, or of a quotation without an end.
    longest_word: usize,
}

impl Scan {
    /// The reason why the line is not parsed.
    pub(super) fn refusal(&self) -> Option<Reason> {
        if self.operators > MAX_OPERATORS {
            return Some(Reason::Operators);
        }
        (self.longest_word > MAX_WORD_BYTES).then_some(Reason::Length)
    }
}

/// Scans a line before it is parsed.
///
/// The result only limits cost: a text that is mistaken for a here-document makes the parser slower, until
/// its time limit.
pub(super) fn scan(source: &str) -> Scan {
    let bytes = source.as_bytes();
    let mut scan = Scan::default();
    let mut heredocs: Vec<&str> = Vec::new();
    let (mut at, mut word) = (0, 0);
    // Each here-document is searched for its end, so their number is limited.
    while at < bytes.len() && scan.operators <= MAX_OPERATORS {
        let start = at;
        let mut ends_word = true;
        match bytes[at] {
            b'\'' | b'"' => {
                let quote = bytes[at];
                let end = closing(bytes, at, quote, quote == b'"');
                if end >= bytes.len() {
                    scan.longest_word = scan.longest_word.max(end - at);
                }
                // Substitutions are parsed inside quotes, too.
                let inside = bytes[at..end.min(bytes.len())].iter();
                let expands = |byte: &&u8| quote == b'"' && matches!(byte, b'$' | b'`');
                scan.operators += inside.filter(expands).count();
                at = end;
            }
            b'\n' => {
                for delimiter in heredocs.drain(..) {
                    at = end_of_heredoc(source, at, delimiter);
                }
            }
            b'<' if bytes[at..].starts_with(b"<<<") => {
                scan.operators += 1;
                at += 2;
            }
            b'<' if bytes[at..].starts_with(b"<<") => {
                scan.operators += HEREDOC_OPERATORS;
                at += 1;
                if heredocs.len() < MAX_HEREDOCS {
                    heredocs.extend(source.get(at + 1..).and_then(delimiter));
                }
            }
            b'$' if bytes[at..].starts_with(b"${") => {
                scan.operators += 2;
                // The parser searches the end of an expansion more than once.
                scan.longest_word = scan.longest_word.max(closing(bytes, at, b'}', true) - at);
                at += 1;
            }
            b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>' | b'`' | b'{' | b'}' | b'[' | b']' | b'$'
            | b'!' => {
                scan.operators += 1;
            }
            b' ' | b'\t' => {}
            other => {
                at += usize::from(other == b'\\');
                ends_word = false;
            }
        }
        if ends_word {
            scan.longest_word = scan.longest_word.max(start - word);
            word = at + 1;
        }
        at += 1;
    }
    scan.longest_word = scan.longest_word.max(at.saturating_sub(word));
    scan
}

/// The end of a quotation that begins at `at`.
fn closing(bytes: &[u8], at: usize, quote: u8, escapes: bool) -> usize {
    let mut at = at + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if escapes && bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// The delimiter of a here-document, without its quotes.
fn delimiter(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches(['-', ' ', '\t', '\\', '\'', '"']);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|word| !word.is_empty())
}

/// The position of the last byte of a here-document whose text begins after the line break at `at`, or of the
/// line break if the document has no end.
fn end_of_heredoc(source: &str, at: usize, delimiter: &str) -> usize {
    let mut end = at;
    for line in source.get(at + 1..).unwrap_or_default().split_inclusive('\n') {
        end += line.len();
        if line.trim() == delimiter {
            return end;
        }
    }
    at
}

/// The source without line continuations, if it has any. The shell removes them before it splits words.
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

/// The commands of the substitutions in a text that a program evaluates as shell code: `$(…)`, backticks,
/// `<(…)`.
///
/// A substitution without an end reaches to the end of the text.
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
            // Arithmetic runs no commands, but a substitution in it does.
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

/// Whether a word contains braces that the shell expands: outside quotes, and not those of `${…}`.
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
            ("cat <<'E' > f\na|b|c;;;\nE\na|b", 18),
            ("cat <<E\na|b", 17),
            ("a\\|b", 0),
            ("echo \"$(a)\"", 1),
        ] {
            assert_eq!(scan(source).operators, expected, "{source}");
        }
    }

    #[test]
    fn long_words_are_found_outside_of_quotes_and_here_documents() {
        let long = "a".repeat(10_000);
        for (source, expected) in [
            ("echo 'L' \"L\"", None),
            ("cat <<E\nit's L\nE\n", None),
            ("echo L", Some(Reason::Length)),
            ("echo 'L", Some(Reason::Length)),
            ("cat <<E\nL", Some(Reason::Length)),
            ("L|L", Some(Reason::Length)),
            ("echo ${x:- 'L", Some(Reason::Length)),
        ] {
            assert_eq!(scan(&source.replace('L', &long)).refusal(), expected, "{source}");
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
