//! Shifts a new text by the difference between the indentation of a quotation and that of the file.

use std::iter::repeat_n;

/// The columns of a tab, if neither text says how wide a step is.
const TAB_WIDTH: usize = 4;

/// Returns `new` with the indentation of the file.
///
/// `old` is the quotation and `found` the text of the file that it means: the same lines, except for blanks and empty lines.
/// A line that `new` shares with `old` is indented like that line of the file. Other lines keep their distance from
/// the line of `old` whose indentation is closest. Returns `None` if the indentation is the same, or if the texts do not consist
/// of the same lines.
pub(super) fn shifted(old: &str, found: &str, new: &str) -> Option<String> {
    let (old, found) = (filled(old), filled(found));
    if old.len() != found.len() || old.iter().zip(&found).all(|(old, found)| indent(old) == indent(found)) {
        return None;
    }
    let pairs: Vec<(&str, &str)> =
        old.iter().zip(&found).map(|(old, found)| (indent(old), indent(found))).collect();
    let step = Step::of(&pairs, new);
    let mut next = 0;
    let lines = new.split('\n').map(|line| {
        let rest = line.trim_start_matches(BLANKS);
        if rest.trim().is_empty() {
            return line.to_owned();
        }
        let own = indent(line);
        let kept = old[next..].iter().position(|old| *old == line).map(|at| next + at);
        let pair = kept.and_then(|at| {
            next = at + 1;
            pairs.get(at)
        });
        let pair = pair.or_else(|| closest(&pairs, own, next));
        let (from, to) = pair.copied().unwrap_or_default();
        step.moved(own, from, to) + rest
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

const BLANKS: [char; 2] = [' ', '\t'];

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches(BLANKS).len()]
}

fn filled(text: &str) -> Vec<&str> {
    text.split('\n').filter(|line| !line.trim().is_empty()).collect()
}

/// The pair whose indentation in the quotation is closest to `own`: of the same distance, the last one before line `at`.
fn closest<'a, 'b>(pairs: &'b [(&'a str, &'a str)], own: &str, at: usize) -> Option<&'b (&'a str, &'a str)> {
    let distance = |pair: &(&str, &str)| pair.0.len().abs_diff(own.len());
    let (before, after) = pairs.split_at(at.min(pairs.len()));
    before.iter().rev().chain(after).min_by_key(|pair| distance(pair))
}

/// One step of indentation in the quotation, and in the file.
struct Step {
    /// The characters of a step in the quotation.
    old: usize,
    /// The character of the file.
    blank: char,
    /// The characters of a step in the file.
    found: usize,
}

impl Step {
    fn of(pairs: &[(&str, &str)], new: &str) -> Self {
        let has_tab = |indent: &str| indent.contains('\t');
        let old_has_tabs = pairs.iter().map(|pair| pair.0).chain(new.split('\n').map(indent)).any(has_tab);
        let is_plain = pairs.iter().all(|pair| pair.1.is_empty());
        let found_has_tabs = if is_plain { old_has_tabs } else { pairs.iter().any(|pair| has_tab(pair.1)) };
        let blank = if found_has_tabs { '\t' } else { ' ' };
        let differs = |pair: &[(&str, &str)]| {
            let (old, found) =
                (pair[0].0.len().abs_diff(pair[1].0.len()), pair[0].1.len().abs_diff(pair[1].1.len()));
            (old > 0 && found > 0).then_some((old, found))
        };
        let (old, found) = pairs.windows(2).find_map(differs).unwrap_or_else(|| {
            let width =
                |has_tabs: bool| if has_tabs { 1 } else { narrowest(pairs, new).unwrap_or(TAB_WIDTH) };
            let old = width(old_has_tabs);
            (
                old,
                if found_has_tabs {
                    1
                } else if old_has_tabs {
                    TAB_WIDTH
                } else {
                    old
                },
            )
        });
        Self { old, blank, found }
    }

    /// The indentation `own` of the quotation in the file, in which `from` became `to`.
    fn moved(&self, own: &str, from: &str, to: &str) -> String {
        let scaled = |count: usize| count * self.found / self.old;
        if own.len() >= from.len() {
            let more = own.len() - from.len();
            return to.chars().chain(repeat_n(self.blank, scaled(more))).collect();
        }
        let less = scaled(from.len() - own.len());
        to[..to.len().saturating_sub(less)].to_owned()
    }
}

/// The smallest difference between two indentations of spaces.
fn narrowest(pairs: &[(&str, &str)], new: &str) -> Option<usize> {
    let mut widths: Vec<usize> = pairs
        .iter()
        .map(|pair| pair.0.len())
        .chain(filled(new).into_iter().map(|line| indent(line).len()))
        .collect();
    widths.sort_unstable();
    widths.windows(2).map(|two| two[1] - two[0]).filter(|difference| *difference > 0).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, found: &str, new: &str, expected: &str) {
        assert_eq!(shifted(old, found, new).as_deref().unwrap_or(new), expected);
    }

    #[test]
    fn a_block_is_moved_as_a_whole() {
        check(
            "a {\n\tb\n}",
            "\t\ta {\n\t\t\tb\n\t\t}",
            "a {\n\tif c {\n\t\tb\n\t}\n}\n",
            "\t\ta {\n\t\t\tif c {\n\t\t\t\tb\n\t\t\t}\n\t\t}\n",
        );
        check("\t\t\ta\n\t\t\tb", "\ta\n\tb", "\t\t\ta\n\n\t\t\t\tc\n\t\t\tb", "\ta\n\n\t\tc\n\tb");
        check("  x", "      x", "y:\n  x\n", "    y:\n      x\n");
    }

    #[test]
    fn steps_have_the_width_of_the_file() {
        check("if x:\n    y", "\tif x:\n\t\ty", "if x:\n    if z:\n        y", "\tif x:\n\t\tif z:\n\t\t\ty");
        check("if x:\n\ty", "  if x:\n    y", "if x:\n\tif z:\n\t\ty", "  if x:\n    if z:\n      y");
        check("    foo()", "\tfoo()", "    if x {\n        foo()\n    }", "\tif x {\n\t\tfoo()\n\t}");
    }

    #[test]
    fn a_line_that_stays_has_the_indentation_of_the_file() {
        check("a\n\tb\nc", "a\n\t\t\tb\nc", "a\n\tb\n\tb\nd\nc", "a\n\t\t\tb\n\t\t\tb\nd\nc");
    }

    #[test]
    fn nothing_is_moved_without_a_difference() {
        assert_eq!(shifted("a\n  b", "a\n  b ", "c"), None);
        assert_eq!(shifted("a", "  a\n  b", "c"), None);
        assert_eq!(shifted("", "", ""), None);
    }

    proptest::proptest! {
        #[test]
        fn words_and_lines_stay(old in "([ab]|[ \t]|\n){0,30}", found in "([ab]|[ \t]|\n){0,30}", new in "([ab]|[ \t]|\n|\u{e9}){0,30}") {
            if let Some(moved) = shifted(&old, &found, &new) {
                let plain = |text: &str| text.split('\n').map(|line| line.trim_start_matches(BLANKS).to_owned()).collect::<Vec<_>>();
                proptest::prop_assert_eq!(plain(&moved).len(), plain(&new).len());
                for (moved, new) in plain(&moved).iter().zip(plain(&new)) {
                    proptest::prop_assert!(*moved == new || new.trim().is_empty());
                }
            }
        }
    }
}
