//! Finds the positions of a patch's changes in a file and applies them.
//!
//! Each position is searched after the one before it: first exactly, then ignoring spaces at the ends of
//! lines, then also at their beginnings, then treating typographic characters as plain ones. Unchanged lines
//! keep the spelling of the file.

use std::ops::Range;

use codewright_workspace::TextFile;

use super::parse::{Change, Line};

/// The reason why a change does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The line above the change is missing.
    Context(String),
    /// The lines of the change are missing.
    Lines(String),
}

/// Returns the content of a file after all changes.
pub(super) fn changed(file: &TextFile, changes: &[Change]) -> Result<String, Misfit> {
    let lines = Lines::new(&file.text);
    let mut edits = Vec::new();
    let mut below = 0;
    for change in changes {
        let found = find(&lines, change, below)?;
        below = found.below;
        edit(&lines, &change.lines[..found.count], found.start, &mut edits);
    }
    // Insertions at the end may precede changes above them in the patch.
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    end_with_newline(&file.text, &mut edits);
    Ok(file.changed(&edits))
}

type Edit = (Range<usize>, String);

/// A changed file ends with a newline, unless it is empty.
fn end_with_newline(text: &str, edits: &mut Vec<Edit>) {
    if text.is_empty() || text.ends_with('\n') {
        return;
    }
    match edits.iter_mut().find(|(range, _)| range.end == text.len()) {
        None => edits.push((text.len()..text.len(), "\n".to_owned())),
        Some((range, new)) if range.start == range.end => new.insert(0, '\n'),
        // The last line has changed, and each new line has its newline.
        Some(_) => {}
    }
}

struct Lines<'a> {
    all: Vec<&'a str>,
    /// The start of each line, and the end of the text.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let (mut all, mut starts, mut at) = (Vec::new(), vec![0], 0);
        for line in text.split_inclusive('\n') {
            all.push(line.strip_suffix('\n').unwrap_or(line));
            at += line.len();
            starts.push(at);
        }
        Self { all, starts }
    }
}

/// The position of a change.
struct Found {
    /// The index of the first line.
    start: usize,
    /// The number of lines to apply.
    count: usize,
    /// The index at which the search for the next change starts.
    below: usize,
}

fn find(lines: &Lines, change: &Change, below: usize) -> Result<Found, Misfit> {
    let mut from = below;
    let mut context = None;
    for line in &change.below {
        let found = seek(&lines.all, &[line], from, false).ok_or_else(|| Misfit::Context(line.clone()))?;
        from = found + 1;
        context = Some(found);
    }
    let whole = change.lines.len();
    if change.old(whole).is_empty() {
        let at_end = change.at_end || context.is_none();
        let start = if at_end { lines.all.len() } else { from };
        return Ok(Found { start, count: whole, below: if at_end { below } else { from } });
    }
    // Empty lines after a change may only separate it from the next.
    let blank = change.lines.iter().rev().take_while(|line| **line == Line::Keep(String::new())).count();
    for count in [whole, whole - blank] {
        let old = change.old(count);
        // Some models repeat the line of the header in the change.
        for from in [Some(from), context].into_iter().flatten().filter(|_| !old.is_empty()) {
            if let Some(start) = seek(&lines.all, &old, from, change.at_end) {
                return Ok(Found { start, count, below: start + old.len() });
            }
        }
    }
    Err(Misfit::Lines(change.old(whole).join("\n")))
}

type Same = fn(&str, &str) -> bool;

/// The ways to compare lines, the strictest first.
const READINGS: [Same; 4] = [
    |a, b| a == b,
    |a, b| a.trim_end() == b.trim_end(),
    |a, b| a.trim() == b.trim(),
    |a, b| a.trim().chars().map(plain).eq(b.trim().chars().map(plain)),
];

/// Finds a run of lines.
fn seek(lines: &[&str], run: &[&str], from: usize, at_end: bool) -> Option<usize> {
    let last = lines.len().checked_sub(run.len())?;
    READINGS.iter().find_map(|same| {
        let fits =
            |at: &usize| lines[*at..*at + run.len()].iter().zip(run).all(|(line, wanted)| same(line, wanted));
        let end = Some(last).filter(|at| at_end && *at >= from && fits(at));
        end.or_else(|| (from..=last).find(fits))
    })
}

/// The plain character for a typographic one.
fn plain(sign: char) -> char {
    match sign {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// The edits of one change at its position. Neighbouring lines become one edit.
fn edit(lines: &Lines, change: &[Line], start: usize, edits: &mut Vec<Edit>) {
    let mut at = start;
    let mut open: Option<Edit> = None;
    for line in change {
        let here = lines.starts[at];
        match line {
            Line::Keep(_) => {
                edits.extend(open.take());
                at += 1;
            }
            Line::Remove(_) => {
                at += 1;
                open.get_or_insert((here..here, String::new())).0.end = lines.starts[at];
            }
            Line::Insert(text) => {
                let new = &mut open.get_or_insert((here..here, String::new())).1;
                new.push_str(text);
                new.push('\n');
            }
        }
    }
    edits.extend(open);
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Part, parse};
    use super::*;
    use proptest::prelude::*;

    fn apply(text: &str, changes: &str) -> Result<String, Misfit> {
        let patch = format!("*** Begin Patch\n*** Update File: f\n{changes}\n*** End Patch");
        match parse(&patch).expect("a patch").remove(0) {
            Part::Update { changes, .. } => changed(&TextFile::parse(text), &changes),
            other => panic!("not an update: {other:?}"),
        }
    }

    #[track_caller]
    fn check(text: &str, changes: &str, expected: &str) {
        assert_eq!(apply(text, changes).as_deref(), Ok(expected), "{changes}");
    }

    #[test]
    fn a_position_is_found_by_its_lines_and_by_the_line_above() {
        let text = "def a():\n    x = 1\n    return x\n\ndef b():\n    x = 1\n    return x\n";
        check(text, "@@\n-    x = 1\n+    x = 2", &text.replacen("x = 1", "x = 2", 1));
        let second = "def a():\n    x = 1\n    return x\n\ndef b():\n    x = 2\n    return x\n";
        check(text, "@@ def b():\n-    x = 1\n+    x = 2", second);
        check(text, "@@ def b():\n def b():\n-    x = 1\n+    x = 2", second);
        check(text, "@@\n def b():\n-    x = 1\n+    x = 2\n     return x", second);
        check(text, "@@ def b():\n+    pass", &text.replacen("b():\n", "b():\n    pass\n", 1));
        check(text, " def b():\n-    x = 1\n+    x = 2", second);
    }

    #[test]
    fn several_changes_follow_one_another() {
        let text = "a\nb\nc\na\nb\nc\n";
        check(text, "@@\n-b\n+1\n@@\n-b\n+2", "a\n1\nc\na\n2\nc\n");
        check(text, "@@\n+end\n@@\n-a\n+start", "start\nb\nc\na\nb\nc\nend\n");
        check(text, "@@\n a\n-b\n c\n+d\n a\n-b\n+e\n c", "a\nc\nd\na\ne\nc\n");
        assert_eq!(apply(text, "@@\n-b\n@@\n-b\n@@\n-b"), Err(Misfit::Lines("b".to_owned())));
    }

    #[test]
    fn a_change_can_be_at_the_end_of_the_file() {
        let text = "a\nb\na\nb\n";
        check(text, "@@\n a\n-b\n+c\n*** End of File", "a\nb\na\nc\n");
        check(text, "@@\n-a\n+c\n*** End of File", "c\nb\na\nb\n");
        check(text, "@@ a\n+end\n*** End of File", "a\nb\na\nb\nend\n");
    }

    #[test]
    fn spaces_and_characters_are_compared_leniently_and_kept() {
        check("  a\n\tb  \nc\n", "@@\n a\n b\n-c\n+d", "  a\n\tb  \nd\n");
        check("say \u{201c}hi\u{201d}\nx\n", "@@\n say \"hi\"\n-x\n+y", "say \u{201c}hi\u{201d}\ny\n");
        // The exact copy is preferred to a similar one above it.
        check("  a\na\n", "@@\n-a\n+b", "  a\nb\n");
        check("no newline", "@@\n-  no newline  \n+trimmed", "trimmed\n");
        check("a\nb\n", "@@\n-a\n+c\n\n", "c\nb\n");
    }

    #[test]
    fn missing_lines_are_not_found() {
        for (changes, expected) in [
            ("@@\n-notthere\n+b", Misfit::Lines("notthere".to_owned())),
            ("@@ class X\n-a\n+b", Misfit::Context("class X".to_owned())),
            ("@@ b\n-a\n+b", Misfit::Lines("a".to_owned())),
            ("@@\n a\n-c\n+b", Misfit::Lines("a\nc".to_owned())),
            ("@@\n-a\n-b\n-c\n-d", Misfit::Lines("a\nb\nc\nd".to_owned())),
            ("@@\n-A\n+b", Misfit::Lines("A".to_owned())),
        ] {
            assert_eq!(apply("a\nb\nc\n", changes), Err(expected), "{changes}");
        }
    }

    #[test]
    fn the_form_of_the_file_is_kept() {
        check("\u{feff}a\r\nb\r\n", "@@\n a\n-b\n+c\n+d", "\u{feff}a\r\nc\r\nd\r\n");
        check("a\nb", "@@\n-a\n+c", "c\nb\n");
        check("a\nb", "@@\n b\n+c", "a\nb\nc\n");
        check("a\nb", "@@\n+c\n@@\n+d", "a\nb\nc\nd\n");
        check("a\nb", "@@\n-b", "a\n");
        check("a", "@@\n-a", "");
        check("", "@@\n+added", "added\n");
    }

    proptest! {
        #[test]
        fn the_difference_of_two_texts_makes_one_of_the_other(
            old in proptest::collection::vec("[ab ]{0,2}", 1..20),
            new in proptest::collection::vec("[ab ]{0,2}", 1..20),
        ) {
            let text = |lines: &[String]| lines.iter().fold(String::new(), |text, line| text + line + "\n");
            let (old_text, new_text) = (text(&old), text(&new));
            let patch = codewright_workspace::unified("f", &old_text, &new_text).patch;
            let changes: Vec<&str> = patch.lines().skip(4).collect();
            prop_assume!(!changes.is_empty());
            // With context the positions may be ambiguous; with all lines they are not.
            let all: Vec<String> = old.iter().map(|line| format!("-{line}")).chain(new.iter().map(|line| format!("+{line}"))).collect();
            prop_assert_eq!(apply(&old_text, &format!("@@\n{}", all.join("\n"))), Ok(new_text));
            if let Ok(changed) = apply(&old_text, &changes.join("\n")) {
                prop_assert_eq!(changed.lines().count(), new.len());
            }
        }
    }
}
