//! Makes text safe to display on a terminal.
//!
//! Text of models, tools and file names can contain control sequences that move the cursor, set the window
//! title or write the clipboard. They are removed, with all control characters except line feeds and tabs.

/// Removes control sequences and control characters from a complete text.
pub fn clean(text: &str) -> String {
    without(text, |_, _| {})
}

/// Makes code, commands and names safe to display.
///
/// Characters that change the direction of text are replaced by their code points, because they can make a
/// command look like another one.
pub fn clean_code(text: &str) -> String {
    without(text, |c, cleaned| {
        if is_turning(c) {
            cleaned.push_str(&format!("‹U+{:04X}›", u32::from(c)));
        }
    })
}

/// Removes control sequences and control characters. `instead` may append a replacement.
fn without(text: &str, instead: impl Fn(char, &mut String)) -> String {
    if !text.chars().any(is_control) {
        return text.to_owned();
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut chars),
            '\u{9b}' => skip_parameters(&mut chars),
            // A single carriage return would overwrite the line.
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => cleaned.push('\n'),
            c if is_control(c) => instead(c, &mut cleaned),
            c => cleaned.push(c),
        }
    }
    cleaned
}

/// Makes a text safe to display in one line, so that a file name cannot start a new line.
pub fn clean_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// Makes a file name safe to display in one line, without hiding characters.
pub(crate) fn clean_name(text: &str) -> String {
    clean_code(text).replace(['\n', '\t'], " ")
}

/// Escapes the characters of a JSON text that a terminal would obey or not show.
///
/// Outside of its strings a JSON text is ASCII, and inside `\uXXXX` means the character, so the value is the same.
pub fn escape_json(text: &str) -> std::borrow::Cow<'_, str> {
    let is_escaped = |c: char| (is_control(c) && c != '\r') || is_invisible(c);
    if is_plain(text) || !text.chars().any(is_escaped) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

/// Removes control characters from a piece of a stream.
///
/// A sequence may be split between pieces. Without its escape character the rest is harmless text.
pub fn clean_piece(text: &str) -> std::borrow::Cow<'_, str> {
    if is_plain(text) {
        return text.into();
    }
    if text.chars().any(is_control) {
        text.chars().filter(|c| !is_control(*c)).collect::<String>().into()
    } else {
        text.into()
    }
}

/// Whether the text is printable ASCII and white space, like most text.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'))
}

/// Whether a character is removed: control characters except line feed and tab, and direction marks.
fn is_control(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || is_turning(c)
}

/// Whether a character changes the direction of text.
fn is_turning(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// Whether a character has no shape of its own: spaces without a width, joiners, fillers, tags and private marks.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn skip_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => skip_parameters(chars),
        // Strings for the terminal (OSC, DCS, APC, PM, SOS) end with BEL or ESC and a backslash.
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' || c == '\u{9c}' {
                    return;
                }
                if c == '\u{1b}' {
                    chars.next_if_eq(&'\\');
                    return;
                }
            }
        }
        Some('(' | ')' | '*' | '+' | '#' | '%') => drop(chars.next()),
        Some(_) | None => {}
    }
}

fn skip_parameters(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = chars.next_if(|c| (' '..='~').contains(c)) {
        if ('@'..='~').contains(&c) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_sequence_survives() {
        for (text, expected) in [
            ("plain \u{e4}\n\ttext", "plain \u{e4}\n\ttext"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]52;c;aGk=\u{1b}\\after", "after"),
            ("\u{1b}P1;2|x\u{1b}\\after", "after"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("\u{9b}2Jx", "x"),
            ("\u{1b}(Bx\u{8}y", "xy"),
            ("open \u{1b}[", "open "),
            ("\u{202e}evil", "evil"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn direction_marks_in_code_are_displayed_as_code_points() {
        assert_eq!(clean_code("if x /*\u{202e} } \u{2066}*/"), "if x /*‹U+202E› } ‹U+2066›*/");
        assert_eq!(clean_code("a\u{200f}\u{61c}\u{1b}[2Jb"), "a‹U+200F›‹U+061C›b");
        assert_eq!(clean("a\u{200e}\u{200f}\u{61c}b"), "ab");
    }

    #[test]
    fn json_keeps_its_value_without_characters_that_a_terminal_obeys() {
        for (text, expected) in [
            ("{\"a\": \"plain ä 日本\"}\n", "{\"a\": \"plain ä 日本\"}\n"),
            ("\"\u{9b}31m\"", r#""\u009b31m""#),
            ("\"\u{7f}\u{85}\"", r#""\u007f\u0085""#),
            ("\"\u{202e}a\u{200b}\u{feff}\"", r#""\u202ea\u200b\ufeff""#),
            ("\"\u{e0041}\"", r#""\udb40\udc41""#),
        ] {
            let escaped = escape_json(text);
            assert_eq!(escaped, expected, "{text:?}");
        }
    }

    #[test]
    fn a_name_stays_in_one_line() {
        assert_eq!(clean_line("a\nError: b\r\u{1b}[31mc\td"), "a Error: b c d");
    }

    #[test]
    fn a_piece_loses_its_escapes() {
        assert_eq!(clean_piece("a\u{1b}[31m\n"), "a[31m\n");
        assert_eq!(clean_piece("plain"), "plain");
    }
}
