//! What the parsers promise about any input, as functions that hold them to it.
//!
//! The tests of the suite give them some thousand inputs, the long runs under `fuzz/` as
//! many as there is time for. None returns anything: a promise that is broken panics.

#![expect(clippy::missing_panics_doc, reason = "that is what they are for")]

use codewright_workspace::TextFile;

use crate::tool::{apply_patch, bash, edit, webfetch};
use crate::trim;

/// A longer line is judged as a whole, and has more commands than are looked at.
const MAX_PLAIN_BYTES: usize = 256;

/// An edit is made at places of the text that lie apart and split no character, and nowhere
/// if it is not found; every byte outside of them is kept.
pub fn edit(content: &str, old: &str, new: &str) {
    if old.is_empty() {
        return;
    }
    let file = TextFile::parse(content);
    for is_all in [false, true] {
        let Some(ranges) = edit::places(&file.text, old, is_all) else { continue };
        assert!(!ranges.is_empty() && (is_all || ranges.len() == 1), "{} places", ranges.len());
        let (mut at, mut kept) = (0, 0);
        for range in &ranges {
            assert!(range.start >= at && range.end >= range.start, "places overlap");
            assert!(file.text.get(range.clone()).is_some(), "a character is split");
            kept += range.start - at;
            at = range.end;
        }
        kept += file.text.len() - at;
        let edited = TextFile::parse(&file.replaced(&ranges, new)).text;
        let plain = TextFile::parse(new).text;
        assert!(edited.len() >= kept, "text was lost: {} of {kept} bytes", edited.len());
        assert!(
            edited.starts_with(&file.text[..ranges[0].start]) || new.contains('\r'),
            "the beginning changed"
        );
        assert!(edited.ends_with(&file.text[at..]) || new.contains('\r'), "the end changed");
        assert!(
            plain.is_empty() || edited.contains(plain.trim_matches('\n')) || new.contains('\r'),
            "it is not in"
        );
    }
}

/// A patch is understood or refused, and applied to a text gives a text or a refusal.
pub fn patch(patch: &str, content: &str) {
    apply_patch::tried(patch, content);
}

/// A command line is taken apart, whatever it is, every command of it is a part of the line, and where it
/// is nothing but words, blanks and separators, every command is seen with every word.
pub fn shell(line: &str) {
    let bash::Tried { texts, seen, is_complete } = bash::tried(line);
    for text in texts {
        assert!(line.contains(&text), "`{text}` is not in the line");
    }
    // Where the analysis gave up, any command counts as run.
    for command in plain_commands(line).into_iter().filter(|_| is_complete) {
        assert!(seen.contains(&command), "{command:?} is not seen in {line:?}, only {seen:?}");
    }
}

/// Words that begin or end something else than a command.
const RESERVED: [&str; 24] = [
    "case", "coproc", "declare", "do", "done", "elif", "else", "esac", "export", "fi", "for", "function",
    "if", "in", "local", "readonly", "select", "then", "time", "typeset", "unset", "unsetenv", "until",
    "while",
];

/// The commands of a line that has nothing but words, blanks and separators; none of any other.
fn plain_commands(line: &str) -> Vec<Vec<String>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ;&|\n_-./,:@%+".contains(c);
    if !line.chars().all(is_plain) || line.len() > MAX_PLAIN_BYTES {
        return Vec::new();
    }
    let line = line.replace("&&", ";").replace("||", ";").replace(['&', '|', '\n'], ";");
    let words =
        |command: &str| command.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let commands: Vec<Vec<String>> = line.split(';').map(words).collect();
    let is_odd = |word: &String| RESERVED.contains(&word.as_str());
    // What is not well-formed is not understood, and asked about as a whole.
    let is_odd = commands.iter().any(|words| words.is_empty() || words.iter().any(is_odd));
    if is_odd { Vec::new() } else { commands }
}

/// What is shown of a text is a part of it, within the bounds, and splits no character.
pub fn truncation(text: &str) {
    trim::tried(text);
}

/// A page is read, whatever it is, and no word is lost or doubled.
pub fn page(html: &str) {
    webfetch::tried(html);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_edit_is_made_once_or_not_at_all(
            content in "([ab{}\"\\\\]| |\t|\r?\n|\u{e9}|\u{1f600}|foo){0,60}",
            old in "([ab{}\"\\\\]| |\t|\r?\n|\u{e9}|\u{1f600}|foo){1,20}",
            new in "([ab]| |\n|\u{e9}){0,12}",
        ) {
            super::edit(&content, &old, &new);
        }

        #[test]
        fn a_patch_is_applied_or_refused(
            lines in proptest::collection::vec("(@@.{0,3}|[ +-](a|b|\u{e9}|))", 0..12),
            content in "((a|b|\u{e9})?\r?\n){0,8}a?",
        ) {
            let patch = format!("*** Begin Patch\n*** Update File: f\n{}\n*** End Patch", lines.join("\n"));
            super::patch(&patch, &content);
        }

        #[test]
        fn a_command_line_is_taken_apart(
            line in "(ls|\\$\\(|\\)|`|'|\"|\\\\|[|&;<>]| |\n|<<E|E|\u{e9}|~/|\\*|\\{|\\}|if|then|fi|[$][$]?[(]?[(]?){0,40}",
        ) {
            super::shell(&line);
        }

        #[test]
        fn every_word_of_a_plain_line_is_seen(
            line in "([a-z]{1,3}[0-9]?|[./]{0,2}[a-z]{1,2}|-[a-z]|[0-9]{1,2}|,|:|@|%|\\+)( (&&|[|][|]|[|]|;|&|\n|) ?([a-z]{1,3}|-[a-z]{1,2}|[0-9]|[./]{1,2}[a-z])){0,12}",
        ) {
            super::shell(&line);
        }

        #[test]
        fn a_page_is_read(html in "(<|>|/|!--|-->|&#|;|x27|a|pre|li|td|table|title|=|'| |\u{e9}|\n){0,60}") {
            super::page(&html);
        }
    }
}
