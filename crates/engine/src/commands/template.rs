//! The insertion of arguments into a command's template.
//!
//! Only shell commands of the template itself run. Arguments and the output of commands are inserted
//! literally.

use std::ops::Range;

/// The highest number of a placeholder; longer numbers are text.
const MAX_PLACEHOLDER: usize = 99;

/// A piece of a filled template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// A shell command. Its output is inserted here.
    Shell(String),
}

/// Returns the placeholders of a template in the form that clients show: numbers in order, then `$ARGUMENTS`.
pub(crate) fn hints(template: &str) -> Vec<String> {
    let mut numbers: Vec<_> = placeholders(template).into_iter().map(|(_, number)| number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut hints: Vec<_> = numbers.into_iter().map(|number| format!("${number}")).collect();
    if template.contains(ALL) {
        hints.push(ALL.to_owned());
    }
    hints
}

const ALL: &str = "$ARGUMENTS";

/// Inserts arguments into a template. Its shell commands stay unchanged, because they get parameters.
pub(crate) fn filled(template: &str, arguments: &str) -> Vec<Piece> {
    let words = words(arguments);
    let places = placeholders(template);
    let last = places.iter().map(|(_, number)| *number).max().unwrap_or(0);
    let takes_any = last > 0 || template.contains(ALL);
    let mut pieces: Vec<_> = shells(template)
        .into_iter()
        .map(|piece| match piece {
            Piece::Text(text) => Piece::Text(fill(&text, &words, last, arguments)),
            shell @ Piece::Shell(_) => shell,
        })
        .collect();
    if !takes_any && !arguments.trim().is_empty() {
        pieces.push(Piece::Text(format!("\n\n{arguments}")));
    }
    pieces
}

/// Returns the values of `$1`, `$2`, … for the shell commands of a template. The highest number gets the rest.
///
/// A shell inserts parameters without parsing them, so no argument ever runs.
pub(crate) fn parameters(template: &str, arguments: &str) -> Vec<String> {
    let words = words(arguments);
    let last = placeholders(template).iter().map(|(_, number)| *number).max().unwrap_or(0);
    (1..=last)
        .map(|number| match words.get(number - 1) {
            None => String::new(),
            Some(_) if number == last => words[number - 1..].join(" "),
            Some(word) => word.clone(),
        })
        .collect()
}

fn fill(text: &str, words: &[String], last: usize, arguments: &str) -> String {
    let mut filled = String::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(after) = rest.strip_prefix(ALL) {
            filled.push_str(arguments);
            at = text.len() - after.len();
        } else if let Some((number, len)) = placeholder(rest) {
            let from = number - 1;
            let word = match words.get(from) {
                None => String::new(),
                Some(_) if number == last => words[from..].join(" "),
                Some(word) => word.clone(),
            };
            filled.push_str(&word);
            at += len;
        } else {
            let char = rest.chars().next().expect("the rest is not empty");
            filled.push(char);
            at += char.len_utf8();
        }
    }
    filled
}

/// Returns the number of the placeholder at the start of a text, and its length.
fn placeholder(text: &str) -> Option<(usize, usize)> {
    let digits = text.strip_prefix('$')?;
    let len = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number = digits[..len].parse().ok().filter(|number| (1..=MAX_PLACEHOLDER).contains(number))?;
    Some((number, 1 + len))
}

fn placeholders(text: &str) -> Vec<(usize, usize)> {
    text.match_indices('$').filter_map(|(at, _)| Some((at, placeholder(&text[at..])?.0))).collect()
}

/// Splits a text into words. Quotes keep words together and are removed.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    let mut word = String::new();
    while let Some(char) = chars.next() {
        match char {
            '"' | '\'' if chars.clone().any(|next| next == char) => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                words.push(chars.by_ref().take_while(|next| *next != char).collect());
            }
            char if char.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            char => word.push(char),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Splits a template at its shell commands: `` !`command` ``.
fn shells(template: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(begin) = rest.find("!`") {
        let Some(len) = rest[begin + 2..].find('`').filter(|len| *len > 0) else { break };
        pieces.push(Piece::Text(rest[..begin].to_owned()));
        pieces.push(Piece::Shell(rest[begin + 2..begin + 2 + len].to_owned()));
        rest = &rest[begin + 3 + len..];
    }
    pieces.push(Piece::Text(rest.to_owned()));
    pieces
}

/// Returns the ranges of file and agent names: `@name`, without the sign, but not inside a word or in backticks.
pub(crate) fn references(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '`')) {
            continue;
        }
        let rest = &text[at + 1..];
        let mut end = rest.find(|c: char| c.is_whitespace() || matches!(c, '`' | ',')).unwrap_or(rest.len());
        // A name does not end with punctuation.
        end = rest[..end].trim_end_matches(['.', ';', ':', '!', '?', ')']).len();
        if end > 0 {
            found.push(at + 1..at + 1 + end);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, arguments: &str, expected: &str) {
        let text = filled(template, arguments).into_iter().map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Shell(text) => format!("<{text}>"),
        });
        assert_eq!(text.collect::<String>(), expected, "{template} {arguments}");
    }

    #[test]
    fn arguments_replace_placeholders() {
        check("A $1 B $2", "one two three", "A one B two three");
        check("A $1 B $2", "'one two' \"three four\" five", "A one two B three four five");
        check("A $2 B $1 C $3", "x y", "A y B x C ");
        check("$1 and all: $ARGUMENTS", "a  'b c'", "a b c and all: a  'b c'");
        check("$1 $1", "a b", "a b a b");
        check("cost $0 $x $", "a", "cost $0 $x $\n\na");
        check("plain", " ", "plain");
        check("plain", "more", "plain\n\nmore");
        check("$1", "it's", "it's");
    }

    #[test]
    fn only_the_templates_own_commands_run() {
        check("x !`echo $1` y", "hi", "x <echo $1> y");
        check("x $ARGUMENTS", "!`rm -rf /`", "x !`rm -rf /`");
        check("$1", "$2 $ARGUMENTS", "$2 $ARGUMENTS");
        check("!`` !`open", "", "!`` !`open");
    }

    #[test]
    fn shell_commands_get_arguments_as_parameters() {
        assert_eq!(parameters("!`echo $2 $1`", "a 'b c' d"), ["a", "b c d"]);
        assert_eq!(parameters("!`echo $2`", "a"), ["a", ""]);
        assert_eq!(parameters("none", "a"), Vec::<String>::new());
    }

    #[test]
    fn placeholders_are_listed_for_clients() {
        assert_eq!(hints("Hello $2 $1 all: $ARGUMENTS $1"), ["$1", "$2", "$ARGUMENTS"]);
        assert_eq!(hints("none $0"), Vec::<String>::new());
    }

    #[test]
    fn names_after_an_at_sign_are_found() {
        let found = |text: &'static str| references(text).into_iter().map(|at| &text[at]).collect::<Vec<_>>();
        assert_eq!(found("see @src/a.rs, @~/b.md and (@README)."), ["src/a.rs", "~/b.md", "README"]);
        assert_eq!(found("mail me@x.org or `@x` @ @."), Vec::<&str>::new());
        assert_eq!(found("@explore find @./deep/x"), ["explore", "./deep/x"]);
    }
}
