//! Suggests names for a mistyped name.

/// The least similarity, between 0 and 1, of a suggestion.
const MIN_SIMILARITY: f64 = 0.5;

/// The number of characters that are compared, because the comparison is quadratic.
const COMPARED_CHARS: usize = 120;

/// At most `n` of `names` that are similar to `wanted`, most similar first.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>, n: usize) -> Vec<String> {
    let wanted = lowercase(wanted);
    let mut scored: Vec<(f64, &str)> = names
        .map(|name| (similarity(&wanted, &lowercase(name)), name))
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
        .collect();
    // Swapped letters are a more frequent mistake than a letter too many.
    let by_length = |name: &str| name.len().abs_diff(wanted.len());
    scored
        .sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (by_length(a.1), a.1).cmp(&(by_length(b.1), b.1))));
    scored.into_iter().take(n).map(|(_, name)| name.to_owned()).collect()
}

fn lowercase(name: &str) -> String {
    name.chars().take(COMPARED_CHARS).flat_map(char::to_lowercase).collect()
}

fn similarity(wanted: &str, name: &str) -> f64 {
    let edits = strsim::normalized_damerau_levenshtein(wanted, name);
    // Users often type a part of the name: `sonnet` for `claude-sonnet-4-5`.
    let contained = wanted.chars().count() > 2 && (name.contains(wanted) || wanted.contains(name));
    if contained && !name.is_empty() { edits.max(0.6 + edits / 4.0) } else { edits }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["claude-sonnet-4-5", "claude-opus-4-1", "gpt-5", "gpt-5-mini", "build"];

    #[track_caller]
    fn check(wanted: &str, n: usize, expected: &[&str]) {
        assert_eq!(nearest(wanted, NAMES.into_iter(), n), expected);
    }

    #[test]
    fn a_typing_mistake_finds_the_name() {
        check("biuld", 3, &["build"]);
        check("GPT-5", 1, &["gpt-5"]);
        assert_eq!(nearest("modle", ["mode", "model"].into_iter(), 1), ["model"]);
        check("claude-sonnet-4.5", 1, &["claude-sonnet-4-5"]);
    }

    #[test]
    fn a_part_of_the_name_finds_it() {
        check("sonnet", 1, &["claude-sonnet-4-5"]);
        check("gpt-5", 2, &["gpt-5", "gpt-5-mini"]);
    }

    #[test]
    fn dissimilar_names_are_not_suggested() {
        check("zzzz", 3, &[]);
        check("", 3, &[]);
        check("build", 0, &[]);
    }
}
