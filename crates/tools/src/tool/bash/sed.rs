//! The files that a `sed` script reads and writes, and the commands that it runs.

use super::options::{plain, values_of};
use super::touch::{FileUse, Touch};
use super::word::Word;

/// The effects of a script besides changing text.
#[derive(Debug, Default, PartialEq)]
struct Script {
    touched: Vec<(FileUse, String)>,
    /// The commands that it runs. An empty one is computed from the text.
    commands: Vec<String>,
    /// Whether the whole script was analysed.
    is_complete: bool,
}

/// The files that the scripts among the arguments read and write.
pub(super) fn touched(rest: &[Word]) -> Vec<Touch> {
    let mut found = Vec::new();
    for word in scripts(rest) {
        for script in word.values.iter().map(|text| parse(text)) {
            found.extend(script.touched.into_iter().map(|(usage, path)| Touch { usage, path: Some(path) }));
            found.extend(
                (!script.is_complete).then(|| Touch { usage: FileUse::MayFill, path: Some(".".to_owned()) }),
            );
        }
        found
            .extend((!word.is_closed).then(|| Touch { usage: FileUse::MayFill, path: Some(".".to_owned()) }));
    }
    found
}

/// The commands that the scripts run. An empty one is unknown.
pub(super) fn commands(rest: &[Word]) -> Vec<String> {
    let scripts = scripts(rest);
    scripts.iter().flat_map(|word| &word.values).flat_map(|text| parse(text).commands).collect()
}

fn scripts(rest: &[Word]) -> Vec<Word> {
    let named = values_of(rest, &["-e", "--expression"]);
    if !named.is_empty() || rest.iter().any(|word| matches!(word.text(), "-f" | "--file")) {
        return named;
    }
    plain(rest, &["-l", "--line-length"]).into_iter().take(1).cloned().collect()
}

fn parse(text: &str) -> Script {
    let mut script = Script { is_complete: true, ..Script::default() };
    let mut rest = text;
    while !rest.is_empty() {
        match command(&mut script, rest) {
            Some(after) => rest = after,
            None => {
                script.is_complete = false;
                return script;
            }
        }
    }
    script
}

/// Parses one command. Returns the rest of the script.
fn command<'a>(script: &mut Script, text: &'a str) -> Option<&'a str> {
    let text = without_address(text.trim_start_matches([' ', '\t', '\n', ';', '{', '}']))?;
    let mut chars = text.chars();
    let Some(name) = chars.next() else { return Some("") };
    let rest = chars.as_str();
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let argument = line.trim_start().to_owned();
    match name {
        's' | 'y' => {
            let delimiter = rest.chars().next()?;
            let rest = section(&rest[delimiter.len_utf8()..], delimiter)?;
            let rest = section(rest, delimiter)?;
            if name == 'y' {
                return Some(rest);
            }
            let end = rest.find([';', '}', '\n', ' ']).unwrap_or(rest.len());
            let (flags, after) = rest.split_at(end);
            if flags.contains('e') {
                script.commands.push(String::new());
            }
            let Some(at) = flags.find('w') else { return Some(after) };
            let (line, after) = rest[at + 1..].split_once('\n').unwrap_or((&rest[at + 1..], ""));
            script.touched.push((FileUse::Writes, line.trim_start().to_owned()));
            Some(after)
        }
        'w' | 'W' => {
            script.touched.push((FileUse::Writes, argument));
            Some(after)
        }
        'r' | 'R' => {
            script.touched.push((FileUse::Reads, argument));
            Some(after)
        }
        'e' => {
            script.commands.push(argument);
            Some(after)
        }
        'a' | 'i' | 'c' => {
            // The text continues after a line that ends with a backslash.
            let mut after = rest;
            loop {
                let (line, next) = after.split_once('\n').unwrap_or((after, ""));
                after = next;
                if !line.ends_with('\\') || after.is_empty() {
                    return Some(after);
                }
            }
        }
        '#' | ':' => Some(after),
        'b' | 't' | 'T' | 'q' | 'Q' | 'l' | 'L' | 'v' => {
            let end = rest.find([';', '}', '\n']).unwrap_or(rest.len());
            Some(&rest[end..])
        }
        'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' | '=' => Some(rest),
        _ => None,
    }
}

/// The text after the next delimiter that is not escaped or in brackets.
fn section(text: &str, delimiter: char) -> Option<&str> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else if c == delimiter {
            return Some(&text[at + c.len_utf8()..]);
        }
    }
    None
}

fn without_address(text: &str) -> Option<&str> {
    let mut text = text;
    loop {
        text = text.trim_start_matches(|c: char| c.is_ascii_digit() || " \t,~+$!".contains(c));
        text = match text.chars().next() {
            Some('/') => section(&text[1..], '/')?,
            Some('\\') => {
                let delimiter = text[1..].chars().next()?;
                section(&text[1 + delimiter.len_utf8()..], delimiter)?
            }
            Some('{') => &text[1..],
            _ => return Some(text),
        };
        // Flags of an expression.
        text = text.trim_start_matches(['I', 'M']);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_commands_of_scripts_are_found() {
        let writes = |path: &str| vec![(FileUse::Writes, path.to_owned())];
        for (text, touched, commands) in [
            ("s/a/b/", Vec::new(), &[][..]),
            ("s/a/b/g;s|/x|/y|", Vec::new(), &[]),
            ("w out", writes("out"), &[]),
            ("/x/w out", writes("out"), &[]),
            ("1,5!w out", writes("out"), &[]),
            ("s/a/b/w out", writes("out"), &[]),
            ("s/a/b/gpw out", writes("out"), &[]),
            ("p;w out", writes("out"), &[]),
            ("s/a/touch x/e", Vec::new(), &[""]),
            ("1e touch x", Vec::new(), &["touch x"]),
            ("$!N;P;D", Vec::new(), &[]),
            ("a\\\nw text\\\nw more\nw out", writes("out"), &[]),
            ("r in", vec![(FileUse::Reads, "in".to_owned())], &[]),
            ("\\,x,d", Vec::new(), &[]),
            (":a;N;$!ba;s/\\n/ /g", Vec::new(), &[]),
            ("5,10{p;q}", Vec::new(), &[]),
        ] {
            let script = parse(text);
            assert_eq!(script.touched, touched, "{text}");
            assert_eq!(script.commands, commands, "{text}");
            assert!(script.is_complete, "{text}");
        }
        assert!(!parse("s/a").is_complete && !parse("?").is_complete);
    }
}
