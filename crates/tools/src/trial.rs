//! The invariants of the parsers for any input, as functions that check them.
//!
//! The test suite checks some thousand inputs, and the long runs in `fuzz/` as many as time allows. A
//! function panics if an invariant does not hold.

#![expect(clippy::missing_panics_doc, reason = "they panic if an invariant does not hold")]

use codewright_workspace::TextFile;

use crate::tool::{apply_patch, bash, edit, webfetch};
use crate::trim;

/// Longer lines are judged as a whole, because they have more commands than are analysed.
const MAX_PLAIN_BYTES: usize = 256;

/// An edit replaces ranges that do not overlap and split no character, and keeps every other byte. It
/// replaces nothing if its text is not found.
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
            "the new text is missing"
        );
    }
}

/// Returns the content of a file after an edit, or the sentence that the model gets instead.
///
/// # Errors
///
/// If the quoted text is not found, or is found in several places.
pub fn edited(content: &str, old: &str, new: &str, is_all: bool) -> Result<String, String> {
    edit::tried(content, old, new, is_all).map_err(|error| error.to_string())
}

/// Returns the parts of a file that an edit would replace.
pub fn replaced(content: &str, old: &str, is_all: bool) -> Vec<String> {
    let text = TextFile::parse(content).text;
    let places = edit::places(&text, old, is_all).unwrap_or_default();
    places.into_iter().map(|place| text[place].to_owned()).collect()
}

/// A patch is parsed or rejected, and applying it returns a text or an error.
pub fn patch(patch: &str, content: &str) {
    apply_patch::tried(patch, content);
}

/// Any command line is analysed. Its commands are parts of the line. If it has only words, spaces and
/// separators, every command is found with every word.
pub fn shell(line: &str) {
    let bash::Tried { texts, seen, is_complete } = bash::tried(line);
    for text in texts {
        assert!(line.contains(&text), "`{text}` is not in the line");
    }
    // If the analysis gave up, any command counts as run.
    for command in plain_commands(line).into_iter().filter(|_| is_complete) {
        assert!(seen.contains(&command), "{command:?} is not seen in {line:?}, only {seen:?}");
    }
}

/// Words that begin or end another construct than a command.
const RESERVED: [&str; 24] = [
    "case", "coproc", "declare", "do", "done", "elif", "else", "esac", "export", "fi", "for", "function",
    "if", "in", "local", "readonly", "select", "then", "time", "typeset", "unset", "unsetenv", "until",
    "while",
];

/// The commands of a line with only words, spaces and separators; empty for other lines.
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
    // An invalid line is not analysed; permission is requested for the whole line.
    let is_odd = commands.iter().any(|words| words.is_empty() || words.iter().any(is_odd));
    if is_odd { Vec::new() } else { commands }
}

/// A truncated text is a part of the text, keeps the limits and splits no character.
pub fn truncation(text: &str) {
    trim::tried(text);
}

/// Any page is read, and no word is lost or repeated.
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
