//! Brace expansion: `a{b,c}d`, `{1..3}`, nested and in a row.

use super::limits::{Limits, Reason};
use super::word::{MAX_VALUES, NUMBER};

/// The limit of braces in one word.
const MAX_BRACES: usize = 32;
/// The limit of words whose next braces are not expanded yet.
const MAX_WAITING: usize = 4 * MAX_VALUES;
/// Longer words with braces are not expanded.
const MAX_BYTES: usize = 4096;

/// Expands the braces of a word. Returns at least the word itself, or `None` if there are too many results.
pub(super) fn braces(word: &str, limits: &Limits) -> Option<Vec<String>> {
    if !word.contains('{') {
        return Some(vec![word.to_owned()]);
    }
    let is_long = word.len() > MAX_BYTES || word.matches('{').count() > MAX_BRACES;
    let (mut done, mut todo) = (Vec::new(), vec![word.to_owned()]);
    while let Some(word) = todo.pop() {
        if is_long || done.len() + todo.len() > MAX_WAITING || done.len() > MAX_VALUES || !limits.has_time() {
            limits.give_up(Reason::Values);
            return None;
        }
        match first_group(&word) {
            None => done.push(word),
            Some(group) => {
                let (before, after) = (&word[..group.start], &word[group.end..]);
                todo.extend(group.choices.into_iter().rev().map(|choice| format!("{before}{choice}{after}")));
            }
        }
    }
    Some(done)
}

/// Braces that expand to several texts.
struct Group {
    start: usize,
    end: usize,
    choices: Vec<String>,
}

fn first_group(word: &str) -> Option<Group> {
    for (start, _) in word.match_indices('{') {
        let Some((commas, close)) = commas_and_close(word, start) else { continue };
        let inside = &word[start + 1..close];
        let choices = if commas.is_empty() {
            sequence(inside)
        } else {
            let mut from = start + 1;
            let ends = commas.into_iter().chain([close]);
            Some(ends.map(|end| word[std::mem::replace(&mut from, end + 1)..end].to_owned()).collect())
        };
        if let Some(choices) = choices {
            return Some(Group { start, end: close + 1, choices });
        }
    }
    None
}

/// The commas of the braces that open at `start`, and the position of the closing brace.
fn commas_and_close(word: &str, start: usize) -> Option<(Vec<usize>, usize)> {
    let (mut depth, mut commas) = (0_usize, Vec::new());
    for (offset, byte) in word.as_bytes()[start..].iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some((commas, start + offset)),
            b'}' => depth -= 1,
            b',' if depth == 1 => commas.push(start + offset),
            _ => {}
        }
    }
    None
}

/// Expands `1..9`, `a..e` or `1..9..2`.
fn sequence(inside: &str) -> Option<Vec<String>> {
    let mut parts = inside.split("..");
    let (first, last, step) = (parts.next()?, parts.next()?, parts.next());
    let step = step.map_or(Ok(1), str::parse::<i64>).ok()?.unsigned_abs().max(1);
    if parts.next().is_some() {
        return None;
    }
    if let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) {
        if usize::try_from(from.abs_diff(to) / step).map_or(true, |count| count >= MAX_VALUES) {
            let negative = (from < 0 || to < 0).then(|| format!("-{NUMBER}"));
            return Some([NUMBER.to_owned()].into_iter().chain(negative).collect());
        }
        let is_padded = |text: &str| text.trim_start_matches('-').starts_with('0') && text.len() > 1;
        let width = if is_padded(first) || is_padded(last) { first.len().max(last.len()) } else { 0 };
        return Some(range(from, to, step).map(|number| format!("{number:0width$}")).collect());
    }
    let (mut from, mut to) = (first.chars(), last.chars());
    let ends = (from.next()?, to.next()?);
    let is_letters = from.next().is_none() && to.next().is_none() && ends.0.is_ascii() && ends.1.is_ascii();
    let letter = |number| u8::try_from(number).ok().map(|byte| char::from(byte).to_string());
    is_letters.then(|| range(ends.0 as i64, ends.1 as i64, step).filter_map(letter).collect())
}

fn range(from: i64, to: i64, step: u64) -> impl Iterator<Item = i64> {
    let count = from.abs_diff(to) / step;
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    let step = if from <= to { step } else { -step };
    (0..=count).filter_map(move |at| i64::try_from(at).ok()?.checked_mul(step)?.checked_add(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_expand_to_several_words() {
        for (word, expected) in [
            ("r{m,}", &["rm", "r"][..]),
            ("{a,b}/c", &["a/c", "b/c"]),
            ("{}", &["{}"]),
            ("{", &["{"]),
            ("{a}", &["{a}"]),
            ("{a,{b,c}d}", &["a", "bd", "cd"]),
            ("{a,b}{c,d}", &["ac", "ad", "bc", "bd"]),
            ("{{a,b}", &["{a", "{b"]),
            ("x{1..3}", &["x1", "x2", "x3"]),
            ("{08..10}", &["08", "09", "10"]),
            ("{3..1..2}", &["3", "1"]),
            ("{c..a}", &["c", "b", "a"]),
            ("f{1..100000}", &["f[0-9]*"]),
            ("{-9223372036854775808..9223372036854775807}", &["[0-9]*", "-[0-9]*"]),
        ] {
            assert_eq!(braces(word, &Limits::new()).unwrap(), expected, "{word}");
        }
    }

    #[test]
    fn too_many_words_end_the_expansion() {
        for word in ["{a,b}".repeat(10), "{".repeat(100_000), "{1..200}{1..200}".to_owned()] {
            let limits = Limits::new();
            assert_eq!(braces(&word, &limits), None);
            assert!(matches!(limits.outcome(()), super::super::limits::Analysis::Unknown { .. }));
        }
    }
}
