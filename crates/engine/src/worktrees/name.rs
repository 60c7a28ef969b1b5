//! The names of worktrees. They are directory names and parts of branch names.

/// The longest name that a client chooses.
const MAX_CHARS: usize = 48;

/// Returns a requested name with only lower-case letters, digits and single dashes; `None` if nothing is left.
pub(super) fn plain(requested: &str) -> Option<String> {
    let mut name = String::new();
    for letter in requested.chars() {
        if name.len() >= MAX_CHARS {
            break;
        }
        match letter.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9') => name.push(letter),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let name = name.trim_end_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the name of an attempt: the requested one first, then with two random words.
pub(super) fn candidate(requested: Option<&str>, attempt: usize, words: &str) -> String {
    match requested {
        Some(name) if attempt == 0 => name.to_owned(),
        Some(name) => format!("{name}-{words}"),
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_plain_word() {
        for (requested, expected) in [
            ("My Feature: x/../y", Some("my-feature-x-y")),
            ("../../etc", Some("etc")),
            ("--force", Some("force")),
            ("a.lock", Some("a-lock")),
            ("@{u}", Some("u")),
            ("Grüße\0\n", Some("gr-e")),
            ("", None),
            ("!!!", None),
            ("äöü", None),
        ] {
            assert_eq!(plain(requested).as_deref(), expected, "{requested:?}");
        }
        assert_eq!(plain(&"x".repeat(300)).unwrap().len(), MAX_CHARS);
        assert_eq!(plain(&format!("{}-b", "x".repeat(MAX_CHARS - 1))).unwrap(), "x".repeat(MAX_CHARS - 1));
    }

    #[test]
    fn a_taken_name_gets_two_words() {
        assert_eq!(candidate(Some("fix"), 0, "calm-river"), "fix");
        assert_eq!(candidate(Some("fix"), 1, "calm-river"), "fix-calm-river");
        assert_eq!(candidate(None, 0, "calm-river"), "calm-river");
    }
}
