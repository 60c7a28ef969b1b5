//! Properties of wildcards that hold for any input, for the test suite and for fuzzing.

#![expect(clippy::missing_panics_doc, reason = "that is what it is for")]

use crate::permission::evaluate::matches;

/// Longer texts are not compared with the simple algorithm, whose time is the product of both lengths.
const MAX_CHARS: usize = 400;

/// Panics unless a pattern matches exactly the texts that the simple algorithm accepts.
pub fn wildcard(pattern: &str, text: &str) {
    let matched = matches(pattern, text);
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    if pattern.len() > MAX_CHARS || text.len() > MAX_CHARS {
        return;
    }
    let bare = pattern.strip_suffix(&[' ', '*']);
    let expected = plain(&pattern, &text) || bare.is_some_and(|bare| plain(bare, &text));
    assert_eq!(matched, expected, "{pattern:?} on {text:?}");
}

/// Computes row by row which prefixes of the text a prefix of the pattern matches.
fn plain(pattern: &[char], text: &[char]) -> bool {
    let mut row = vec![false; text.len() + 1];
    row[0] = true;
    for sign in pattern {
        let mut next = vec![false; text.len() + 1];
        for at in 0..=text.len() {
            next[at] = match sign {
                '*' => row[at] || (at > 0 && next[at - 1]),
                '?' => at > 0 && row[at - 1],
                sign => at > 0 && row[at - 1] && text[at - 1] == *sign,
            };
        }
        row = next;
    }
    row[text.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
               fn a_wildcard_matches_like_the_simple_algorithm(
            pattern in "([ab ]|\\*|\\?|\u{e9}){0,12}", text in "([ab ]|\u{e9}|/){0,16}",
        ) {
            super::wildcard(&pattern, &text);
        }
    }
}
