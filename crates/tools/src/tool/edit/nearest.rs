//! Shows the lines of a file that a quotation probably means, for a model whose edit did not apply.

use std::collections::HashMap;
use std::ops::Range;

use crate::tags::neutralize;

/// A quotation with more lines is compared by its first ones.
const MAX_QUOTED_LINES: usize = 200;
/// A line that occurs more often says nothing about the place.
const MAX_OCCURRENCES: usize = 32;
/// The lines that are compared by edit distance if no line is equal.
const MAX_COMPARED_LINES: usize = 20_000;
/// The characters of a line that are compared by edit distance.
const MAX_COMPARED_CHARS: usize = 200;
/// The least similarity of a line, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.6;
/// The limits of what is shown.
const MAX_SHOWN_LINES: usize = 40;
const MAX_SHOWN_BYTES: usize = 4000;
/// The numbers of lines that are listed for several matches.
const MAX_LISTED: usize = 10;

/// The lines that are closest to a quotation, with their numbers, as a part of a message. Empty if no line is close.
pub(super) fn nearest(text: &str, old: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let quoted: Vec<&str> = old.trim_matches('\n').split('\n').take(MAX_QUOTED_LINES).collect();
    let Some(start) = by_equal_lines(&lines, &quoted).or_else(|| by_likeness(&lines, &quoted)) else {
        return String::new();
    };
    let end = (start + quoted.len()).min(lines.len());
    let mut shown = String::new();
    for (at, line) in lines[start..end].iter().enumerate().take(MAX_SHOWN_LINES) {
        let line = format!("\n{}: {line}", start + at + 1);
        if shown.len() + line.len() > MAX_SHOWN_BYTES {
            break;
        }
        shown.push_str(&line);
    }
    if shown.is_empty() {
        return shown;
    }
    format!("\n\nThe closest lines of the file are:{}", neutralize(&shown))
}

/// The numbers of the lines where some ranges start, as a part of a message.
pub(super) fn numbers(text: &str, ranges: &[Range<usize>]) -> String {
    let number = |range: &Range<usize>| (text[..range.start].matches('\n').count() + 1).to_string();
    let mut list: Vec<String> = ranges.iter().take(MAX_LISTED).map(number).collect();
    list.dedup();
    let more = if ranges.len() > MAX_LISTED { " and others" } else { "" };
    format!("The matches start at the lines {}{more}.", list.join(", "))
}

/// The first line of the block that has most lines of the quotation at the same distance.
fn by_equal_lines(lines: &[&str], quoted: &[&str]) -> Option<usize> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for line in quoted.iter().map(|line| line.trim()).filter(|line| line.chars().any(char::is_alphanumeric)) {
        places.entry(line).or_default();
    }
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = places.get_mut(line.trim()).filter(|found| found.len() <= MAX_OCCURRENCES) {
            found.push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (at, line) in quoted.iter().enumerate() {
        let found = places.get(line.trim()).filter(|found| found.len() <= MAX_OCCURRENCES);
        for place in found.into_iter().flatten() {
            *votes.entry(place.saturating_sub(at)).or_default() += 1;
        }
    }
    votes.into_iter().max_by_key(|(start, votes)| (*votes, usize::MAX - start)).map(|(start, _)| start)
}

/// The line that is most similar to the longest line of the quotation, as the first line of its block.
fn by_likeness(lines: &[&str], quoted: &[&str]) -> Option<usize> {
    let cut = |line: &str| line.trim().chars().take(MAX_COMPARED_CHARS).collect::<String>();
    let (at, wanted) =
        quoted.iter().map(|line| cut(line)).enumerate().max_by_key(|(_, line)| line.chars().count())?;
    let rated = lines.iter().take(MAX_COMPARED_LINES).enumerate();
    let rated = rated.map(|(place, line)| (strsim::normalized_levenshtein(&wanted, &cut(line)), place));
    let (likeness, place) = rated.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
    (likeness >= MIN_SIMILARITY && !wanted.is_empty()).then(|| place.saturating_sub(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_lines_are_shown() {
        let text =
            "package a\n\nfunc one() {\n\tx := 1\n\treturn x\n}\n\nfunc two() {\n\ty := 2\n\treturn y\n}\n";
        let shown = nearest(text, "func two() {\n\ty := 3\n\treturn y\n}\n");
        assert_eq!(
            shown,
            "\n\nThe closest lines of the file are:\n8: func two() {\n9: \ty := 2\n10: \treturn y\n11: }"
        );
        assert_eq!(nearest(text, "\ty := 22"), "\n\nThe closest lines of the file are:\n9: \ty := 2");
        assert_eq!(nearest(text, "nothing like this at all"), "");
        assert_eq!(nearest("", "x"), "");
        assert_eq!(nearest("}\n}\n", "}\n {"), "");
    }

    #[test]
    fn what_is_shown_is_bounded_and_has_no_tags() {
        let long = format!("{}\n<system-reminder>\nb\n", "a".repeat(100_000));
        assert_eq!(nearest(&long, &format!("{}\nx", "a".repeat(100_000))), "");
        assert!(!nearest(&long, "x\n<system-reminder>\ny").contains("<system"));
        let many: String = (0..500).map(|n| format!("line {n}\n")).collect();
        assert!(
            nearest(&many, &many.replace("line 7\n", "line x\n")).lines().count() <= 2 + 1 + MAX_SHOWN_LINES
        );
    }

    #[test]
    fn several_matches_are_listed() {
        assert_eq!(numbers("a\nb\na\n", &[0..1, 4..5]), "The matches start at the lines 1, 3.");
        let all: Vec<_> = (0..20).map(|at| 2 * at..2 * at + 1).collect();
        assert!(numbers(&"a\n".repeat(20), &all).ends_with("10 and others."));
    }
}
