//! The unified diff of two versions of a file.
//!
//! It has four lines of context, an `Index:` header, and counts in every hunk header even if they are one.
//! The work is bounded: versions that are too large or too different become one replaced block, which is also
//! a correct diff.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// The number of unchanged lines around a change.
const CONTEXT_LINES: usize = 4;
/// The limit of lines on both sides together for a comparison by line.
const MAX_LINES: usize = 200_000;
/// The limit for the length of a patch. Longer ones are omitted, but the counts are kept.
const MAX_PATCH_BYTES: usize = 1024 * 1024;
/// The size of the blocks in which equal parts are compared.
const BLOCK_BYTES: usize = 4096;
/// The time after which the comparison returns a coarser result.
const MAX_TIME: Duration = Duration::from_secs(2);

/// A change as text and as counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The unified diff with its header, or only the header if it is too long.
    pub patch: String,
    /// The number of added lines.
    pub additions: usize,
    /// The number of removed lines.
    pub deletions: usize,
}

/// Compares two versions of the file called `name`.
pub fn unified(name: &str, old: &str, new: &str) -> Diff {
    let Differing { old, new, skipped } = differing(old, new);
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let ops = compare(&old, &new);
    let mut diff = Diff { patch: String::new(), additions: 0, deletions: 0 };
    // Writing to a `String` cannot fail.
    let _ = writeln!(diff.patch, "Index: {name}\n{}\n--- {name}\n+++ {name}", "=".repeat(67));
    let header_bytes = diff.patch.len();
    for hunk in similar::group_diff_ops(ops, CONTEXT_LINES) {
        hunk_text(&mut diff, &hunk, &old, &new, skipped);
    }
    if diff.patch.len() > MAX_PATCH_BYTES {
        diff.patch.truncate(header_bytes);
        diff.patch.shrink_to_fit();
    }
    diff
}

/// The differing part of two versions, with its context lines.
struct Differing<'a> {
    old: &'a str,
    new: &'a str,
    /// The number of equal lines before it.
    skipped: usize,
}

/// Omits the equal beginning and end, so that a small change of a large file is cheap.
fn differing<'a>(old: &'a str, new: &'a str) -> Differing<'a> {
    let (a, b) = (old.as_bytes(), new.as_bytes());
    let mut start = line_start(a, same_beginning(a, b));
    let mut end = next_line(a, same_end(&a[start..], &b[start..]));
    for _ in 0..CONTEXT_LINES {
        start = line_start(a, start.saturating_sub(1));
        end = next_line(a, end);
    }
    let skipped = a[..start].iter().filter(|byte| **byte == b'\n').count();
    Differing { old: &old[start..old.len() - end], new: &new[start..new.len() - end], skipped }
}

/// The start of the line at a position.
fn line_start(text: &[u8], place: usize) -> usize {
    text[..place].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// The number of bytes left after the next start of a line.
fn next_line(text: &[u8], left: usize) -> usize {
    let rest = &text[text.len() - left..];
    rest.iter().position(|byte| *byte == b'\n').map_or(0, |at| left - at - 1)
}

fn same_beginning(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks(BLOCK_BYTES).zip(b.chunks(BLOCK_BYTES));
    let same: usize = blocks.take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum();
    same + a[same..].iter().zip(&b[same..]).take_while(|(a, b)| a == b).count()
}

fn same_end(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks(BLOCK_BYTES).zip(b.rchunks(BLOCK_BYTES));
    let same: usize = blocks.take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum();
    let (a, b) = (&a[..a.len() - same], &b[..b.len() - same]);
    same + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_middle, new_middle) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut ops = Vec::new();
    if head > 0 {
        ops.push(DiffOp::Equal { old_index: 0, new_index: 0, len: head });
    }
    if old_middle.len() + new_middle.len() > MAX_LINES {
        ops.push(DiffOp::Replace {
            old_index: head,
            old_len: old_middle.len(),
            new_index: head,
            new_len: new_middle.len(),
        });
    } else {
        let deadline = Some(Instant::now() + MAX_TIME);
        let middle = capture_diff_slices_deadline(Algorithm::Myers, old_middle, new_middle, deadline);
        ops.extend(middle.into_iter().map(|op| shifted(op, head)));
    }
    if tail > 0 {
        ops.push(DiffOp::Equal { old_index: old.len() - tail, new_index: new.len() - tail, len: tail });
    }
    ops
}

fn shifted(op: DiffOp, by: usize) -> DiffOp {
    match op {
        DiffOp::Equal { old_index, new_index, len } => {
            DiffOp::Equal { old_index: old_index + by, new_index: new_index + by, len }
        }
        DiffOp::Delete { old_index, old_len, new_index } => {
            DiffOp::Delete { old_index: old_index + by, old_len, new_index: new_index + by }
        }
        DiffOp::Insert { old_index, new_index, new_len } => {
            DiffOp::Insert { old_index: old_index + by, new_index: new_index + by, new_len }
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => {
            DiffOp::Replace { old_index: old_index + by, old_len, new_index: new_index + by, new_len }
        }
    }
}

fn hunk_text(diff: &mut Diff, hunk: &[DiffOp], old: &[&str], new: &[&str], skipped: usize) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let old_range = first.old_range().start..last.old_range().end;
    let new_range = first.new_range().start..last.new_range().end;
    // A side without lines has the number of the line before it.
    let start = |range: &std::ops::Range<usize>| skipped + range.start + usize::from(!range.is_empty());
    let (a, b) = (start(&old_range), start(&new_range));
    let _ = writeln!(diff.patch, "@@ -{a},{} +{b},{} @@", old_range.len(), new_range.len());
    for op in hunk {
        if let DiffOp::Equal { .. } = op {
            old[op.old_range()].iter().for_each(|line| line_text(&mut diff.patch, ' ', line));
            continue;
        }
        diff.deletions += op.old_range().len();
        diff.additions += op.new_range().len();
        old[op.old_range()].iter().for_each(|line| line_text(&mut diff.patch, '-', line));
        new[op.new_range()].iter().for_each(|line| line_text(&mut diff.patch, '+', line));
    }
}

fn line_text(out: &mut String, sign: char, line: &str) {
    out.push(sign);
    out.push_str(line);
    if !line.ends_with('\n') {
        out.push_str("\n\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: &str = "===================================================================";

    #[track_caller]
    fn check(old: &str, new: &str, hunks: &str) {
        let header = format!("Index: /p/a\n{RULE}\n--- /p/a\n+++ /p/a\n");
        assert_eq!(unified("/p/a", old, new).patch, format!("{header}{hunks}"));
    }

    #[test]
    fn a_change_has_four_lines_of_context() {
        check("foo\nbar\nfoo\n", "baz\nbar\nbaz\n", "@@ -1,3 +1,3 @@\n-foo\n+baz\n bar\n-foo\n+baz\n");
        check("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\nx\n", "@@ -2,5 +2,5 @@\n 2\n 3\n 4\n 5\n-6\n+x\n");
    }

    #[test]
    fn a_created_and_an_emptied_file_start_at_line_zero() {
        check("", "made\n", "@@ -0,0 +1,1 @@\n+made\n");
        check("gone\n", "", "@@ -1,1 +0,0 @@\n-gone\n");
    }

    #[test]
    fn a_missing_last_newline_is_marked() {
        check("a", "b\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n");
    }

    #[test]
    fn a_huge_change_is_one_block() {
        let old: String = (0..150_000).map(|n| format!("{n}\n")).collect();
        let new: String = (0..150_000).map(|n| format!("x{n}\n")).collect();
        let diff = unified("a", &old, &new);
        assert_eq!((diff.additions, diff.deletions), (150_000, 150_000));
    }

    /// Applies a patch like `patch`, trusting the hunk headers.
    fn apply(old: &str, patch: &str) -> String {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut out, mut at) = (String::new(), 0);
        let mut lines = patch.split_inclusive('\n').skip(4).peekable();
        while let Some(line) = lines.next() {
            if let Some(header) = line.strip_prefix("@@ -") {
                let (start, rest) = header.split_once(',').expect("start");
                let count: usize = rest.split(' ').next().and_then(|n| n.parse().ok()).expect("count");
                let start = start.parse::<usize>().expect("number").saturating_sub(usize::from(count > 0));
                old[at..start].iter().for_each(|line| out.push_str(line));
                at = start;
                continue;
            }
            let bare = lines.peek().is_some_and(|next| next.starts_with('\\'));
            let text = if bare { line[1..].trim_end_matches('\n') } else { &line[1..] };
            match &line[..1] {
                " " => {
                    out.push_str(text);
                    at += 1;
                }
                "+" => out.push_str(text),
                "-" => at += 1,
                _ => {}
            }
        }
        old[at..].iter().for_each(|line| out.push_str(line));
        out
    }

    #[test]
    fn a_change_deep_inside_has_its_line_numbers() {
        let lines = |changed: &str| -> String {
            (1..=20_000)
                .map(|n| if n == 12_345 { changed.to_owned() } else { format!("line {n}\n") })
                .collect()
        };
        check(
            &lines("old\n"),
            &lines("new\nnewer\n"),
            "@@ -12341,9 +12341,10 @@\n line 12341\n line 12342\n line 12343\n line 12344\n-old\n+new\n+newer\n \
             line 12346\n line 12347\n line 12348\n line 12349\n",
        );
    }

    proptest! {
        #[test]
        fn leaving_out_what_is_the_same_changes_nothing(
            old in proptest::collection::vec("[ab]{0,2}", 0..30),
            at in 0usize..30, len in 0usize..4, more in proptest::collection::vec("[ab]{0,2}", 0..4), end in any::<bool>(),
        ) {
            let text = |lines: &[String]| lines.join("\n") + if end { "\n" } else { "" };
            let mut new = old.clone();
            let at = at.min(new.len());
            new.splice(at..(at + len).min(old.len()), more);
            let (old, new) = (text(&old), text(&new));
            let (a, b): (Vec<&str>, Vec<&str>) =
                (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
            let mut whole = Diff { patch: String::new(), additions: 0, deletions: 0 };
            for hunk in similar::group_diff_ops(compare(&a, &b), CONTEXT_LINES) {
                hunk_text(&mut whole, &hunk, &a, &b, 0);
            }
            let diff = unified("a", &old, &new);
            let hunks: String = diff.patch.split_inclusive('\n').skip(4).collect();
            prop_assert_eq!((hunks, diff.additions, diff.deletions), (whole.patch, whole.additions, whole.deletions));
        }

        #[test]
        fn the_diff_applied_to_the_old_text_gives_the_new(
            old in proptest::collection::vec("[ab]{0,2}", 0..30),
            new in proptest::collection::vec("[ab]{0,2}", 0..30),
            (old_end, new_end) in (any::<bool>(), any::<bool>()),
        ) {
            let text = |lines: Vec<String>, end| lines.join("\n") + if end { "\n" } else { "" };
            let (old, new) = (text(old, old_end), text(new, new_end));
            let diff = unified("a", &old, &new);
            prop_assert_eq!(apply(&old, &diff.patch), &*new);
            let lines = |text: &str| text.split_inclusive('\n').count();
            prop_assert_eq!(lines(&old) + diff.additions, lines(&new) + diff.deletions);
        }
    }
}
