//! Commands at the start of a prompt.

/// Returns the name and the arguments of the command that a text begins with: `init` and `now` of `/init now`.
///
/// A path is not a command, and neither is a text that does not begin with the slash.
#[must_use]
pub fn slash_command(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('/')?;
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_first = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    (is_first && is_name).then(|| (name, arguments.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_name_after_a_slash() {
        for (text, expected) in [
            ("/init", Some(("init", ""))),
            ("/init  two words ", Some(("init", "two words"))),
            ("/team:review x", Some(("team:review", "x"))),
            ("/a\nb", Some(("a", "b"))),
            ("/etc/hosts is wrong", None),
            ("/", None),
            ("// a comment", None),
            ("/.hidden", None),
            ("/main.rs", None),
            (" /init", None),
            ("init", None),
        ] {
            assert_eq!(slash_command(text), expected, "{text}");
        }
    }
}
