//! Sentences about calls that were not permitted. The model reads the rules instead.

use codewright_proto::Rule;

use crate::clean::clean_line;

/// The start of the error of a call that a rule denies, and the words before its rules.
const DENIED: &str = "A permission rule forbids this call.";
const RULES: &str = "Rules that speak of it: ";
/// The start of the error of a call that a user rejected, and the words before the reason.
const REJECTED: &str = "The user rejected permission to use this specific tool call";
const FEEDBACK: &str = "with the following feedback: ";

/// Returns a sentence for people about a call that was not permitted.
pub(super) fn sentence(error: &str, agent: &str) -> Option<String> {
    if let Some(rest) = error.strip_prefix(REJECTED) {
        let reason = rest.split_once(FEEDBACK).map(|(_, reason)| clean_line(reason));
        return Some(match reason {
            Some(reason) => format!("Rejected: {reason}"),
            None => "Rejected.".to_owned(),
        });
    }
    let rest = error.strip_prefix(DENIED)?;
    let rules: Vec<Rule> = rest
        .split_once(RULES)
        .and_then(|(_, rules)| serde_json::from_str(rules.trim()).ok())
        .unwrap_or_default();
    let last = rules.iter().rev().find(|rule| rule.action == codewright_proto::Action::Deny);
    let Some(rule) = last else { return Some(format!("A rule does not allow this for the agent {agent}.")) };
    let what = match rule.permission.as_str() {
        "edit" => "edit files",
        "bash" => "run commands",
        "read" => "read files",
        "webfetch" | "websearch" => "use the web",
        "task" => "start subagents",
        "external_directory" => "use files outside the project",
        "*" => "do this",
        other => return Some(format!("The agent {} may not use {}.", clean_line(agent), clean_line(other))),
    };
    let matching = if rule.pattern == "*" {
        String::new()
    } else {
        format!(" that match `{}`", clean_line(&rule.pattern))
    };
    Some(format!("The agent {} may not {what}{matching}.", clean_line(agent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_sentence() {
        let denied = |rules: &str| format!("{DENIED} {RULES}{rules}");
        for (error, expected) in [
            (
                denied(r#"[{"permission":"edit","pattern":"*","action":"deny"}]"#),
                Some("The agent plan may not edit files."),
            ),
            (
                denied(
                    r#"[{"permission":"bash","pattern":"rm *","action":"deny"},{"permission":"bash","pattern":"*","action":"ask"}]"#,
                ),
                Some("The agent plan may not run commands that match `rm *`."),
            ),
            (denied("not json"), Some("A rule does not allow this for the agent plan.")),
            (format!("{REJECTED}."), Some("Rejected.")),
            (format!("{REJECTED} {FEEDBACK}use rg"), Some("Rejected: use rg")),
            ("no such file".to_owned(), None),
        ] {
            assert_eq!(sentence(&error, "plan").as_deref(), expected, "{error}");
        }
    }
}
