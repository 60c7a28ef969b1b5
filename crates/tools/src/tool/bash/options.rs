//! Finds options among the words of a command.

use super::word::Word;

/// The shortest accepted abbreviation of a long option.
const MIN_ABBREVIATION: usize = 3;

/// The values of options, in every form: `-o x`, `-ox`, `-vox`, `--output x`, `--output=x`, `--out=x`.
///
/// A letter among short options counts at any position, so a value that looks like options may be mistaken
/// for some.
pub(super) fn values_of(words: &[Word], names: &[&str]) -> Vec<Word> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for name in names {
            found.extend(value_of(words, at, word, name));
        }
    }
    found
}

/// Whether one of the options is present, with or without a value.
pub(super) fn has(words: &[Word], names: &[&str]) -> bool {
    words.iter().flat_map(|word| &word.values).any(|value| {
        names.iter().any(|name| match name.strip_prefix("--") {
            Some(long) => is_long(value.split('=').next().unwrap_or_default(), long),
            None => value == name || cluster(value, name).is_some(),
        })
    })
}

fn value_of(words: &[Word], at: usize, word: &Word, name: &str) -> Option<Word> {
    let next = || words.get(at + 1).cloned();
    if word.text() == name {
        return next();
    }
    if let Some(long) = name.strip_prefix("--") {
        let (option, _) = word.text().split_once('=').unwrap_or((word.text(), ""));
        if !is_long(option, long) {
            return None;
        }
        return match word.text().contains('=') {
            true => word.map(|value| value.split_once('=').map(|(_, value)| value.to_owned())),
            false => next(),
        };
    }
    match cluster(word.text(), name)? {
        "" => next(),
        _ => word.map(|value| cluster(value, name).map(str::to_owned)),
    }
}

/// Whether a word is a long option, perhaps abbreviated.
fn is_long(option: &str, long: &str) -> bool {
    let given = option.strip_prefix("--");
    given.is_some_and(|given| given.len() + 2 >= MIN_ABBREVIATION && long.starts_with(given))
}

/// The text after a short option in a word with several.
fn cluster<'a>(word: &'a str, name: &str) -> Option<&'a str> {
    let letter = name.strip_prefix('-').filter(|letter| letter.chars().count() == 1)?;
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    letters.split_once(letter).map(|(_, rest)| rest)
}

/// The words that are neither options nor values of options in `valued`.
pub(super) fn plain<'a>(words: &'a [Word], valued: &[&str]) -> Vec<&'a Word> {
    let mut found = Vec::new();
    let (mut takes_value, mut ended) = (false, false);
    for word in words {
        let text = word.text();
        if std::mem::take(&mut takes_value) {
            continue;
        }
        if !ended && word.is_option() {
            ended = text == "--";
            takes_value = valued.contains(&text);
        } else {
            found.push(word);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_options_are_found_in_every_form() {
        for (words, expected) in [
            ("-o a", &["a"][..]),
            ("-oa -o b", &["a", "b"]),
            ("-vo a", &["a"]),
            ("--output a --output=b", &["a", "b"]),
            ("--outp=a", &["a"]),
            ("--other=a", &[]),
            ("a o -x", &[]),
        ] {
            let words: Vec<Word> = words.split(' ').map(Word::fixed).collect();
            let found = values_of(&words, &["-o", "--output"]);
            assert_eq!(found.iter().map(Word::text).collect::<Vec<_>>(), expected);
        }
    }
}
