//! The words of a formatter's command, with the file in them.
//!
//! A name of a file can contain anything, also text that a shell or an interpreter would run. So it is never pasted into the
//! text of a program: a shell gets it as a variable in quotes, and other interpreters get only names without special characters.

use std::path::Path;

/// What stands for the file in a configured command.
const PLACEHOLDER: &str = "$FILE";
/// The variable with the file, for the text of a shell.
pub(crate) const VARIABLE: &str = "FILE";
/// Programs whose option `-c` is followed by text in the language of a shell.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "ash"];
/// Options of other interpreters that are followed by a program.
const CODE_OPTIONS: &[&str] = &["-c", "-e", "-E", "-p", "-r", "--eval", "--print"];
/// Characters that mean nothing in a program, besides letters and digits.
const PLAIN: &str = "/._-+@%,=: ";

/// Returns the words of a command for a file. `None` if the name of the file cannot be a part of one of them.
pub(crate) fn words(command: &[String], file: &Path) -> Option<Vec<String>> {
    let path = file.to_string_lossy();
    let is_plain = path.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c));
    let place = |(at, word): (usize, &String)| {
        if !word.contains(PLACEHOLDER) {
            return Some(word.clone());
        }
        let before = &command[..at];
        match before.split_last() {
            Some((option, before)) if is_text_option(option) && before.iter().any(|word| is_shell(word)) => {
                Some(quoted(word))
            }
            Some((option, _)) if CODE_OPTIONS.contains(&option.as_str()) && !is_plain => None,
            Some(_) | None => Some(word.replace(PLACEHOLDER, &path)),
        }
    };
    command.iter().enumerate().map(place).collect()
}

fn is_shell(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    SHELLS.contains(&name)
}

/// Whether an option, perhaps with others as in `-ec`, is followed by the text of a shell.
fn is_text_option(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| {
        letters.ends_with('c') && letters.chars().all(|letter| letter.is_ascii_alphabetic())
    })
}

/// The text of a shell with the variable in quotes, wherever the placeholder is.
fn quoted(text: &str) -> String {
    let (mut result, mut rest) = (String::new(), text);
    let mut quote = None;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix(PLACEHOLDER) {
            result += match quote {
                None => "\"${FILE}\"",
                Some('"') => "${FILE}",
                Some(_) => "'\"${FILE}\"'",
            };
            rest = after;
            continue;
        }
        let mut length = c.len_utf8();
        match (quote, c) {
            // What is escaped begins and ends no quotes.
            (None | Some('"'), '\\') => {
                length += rest[length..].chars().next().map_or(0, char::len_utf8);
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (_, _) => {}
        }
        result += &rest[..length];
        rest = &rest[length..];
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_text_of_a_program() {
        let evil = "/w/a'; touch HIT; '$(x).txt";
        for (command, file, expected) in [
            (&["fmt", "--write", "$FILE"][..], evil, Some(vec!["fmt", "--write", evil])),
            (&["fmt", "--file=$FILE"], "/w/a b", Some(vec!["fmt", "--file=/w/a b"])),
            (&["sh", "-c", "cat $FILE"], evil, Some(vec!["sh", "-c", "cat \"${FILE}\""])),
            (
                &["sh", "-c", "cat \"$FILE\" > \"$FILE.x\""],
                evil,
                Some(vec!["sh", "-c", "cat \"${FILE}\" > \"${FILE}.x\""]),
            ),
            (
                &["/bin/bash", "-ec", "cat '$FILE'"],
                evil,
                Some(vec!["/bin/bash", "-ec", "cat ''\"${FILE}\"''"]),
            ),
            (
                &["env", "A=b", "zsh", "-c", "echo \\\" $FILE"],
                evil,
                Some(vec!["env", "A=b", "zsh", "-c", "echo \\\" \"${FILE}\""]),
            ),
            (
                &["sh", "-c", "cat \"$1\"", "x", "$FILE"],
                evil,
                Some(vec!["sh", "-c", "cat \"$1\"", "x", evil]),
            ),
            (&["python3", "-c", "open('$FILE')"], evil, None),
            (&["python3", "-c", "open('$FILE')"], "/w/a.py", Some(vec!["python3", "-c", "open('/w/a.py')"])),
            (&["fmt", "-c", "conf", "$FILE"], evil, Some(vec!["fmt", "-c", "conf", evil])),
        ] {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(words(&command, Path::new(file)), expected, "{command:?}");
        }
    }
}
