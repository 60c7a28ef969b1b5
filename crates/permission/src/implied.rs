//! Decisions about implied permissions: the commands and writes that come with a call.
//!
//! A command may run other commands and write files. The rules about these can only make the decision about the call
//! stricter. Some effects are known only when the command runs; a rule that denies or asks and may match then leads to a request. If
//! a call could not be analysed, it may have any effect: a rule that denies everything of a kind denies the call, and
//! every other rule that denies or asks leads to a request.

use codewright_proto::{Action, Rule};

use codewright_workspace::plain;

use crate::ask::{Certainty, Implied, UNKNOWN};
use crate::evaluate::{Naming, matches, naming, strictest};
use crate::kind::Permission;

/// A longer pattern with unknown parts is treated as unknown.
const MAX_UNKNOWN_CHARS: usize = 4096;

/// Decides about an implied permission by one layer of rules.
pub(crate) fn judge(rules: &[Rule], implied: &Implied) -> Action {
    let action = strictest_match(rules, implied);
    // An effect that is only possible does not deny the call; it needs permission.
    if implied.certainty == Certainty::Possible && action == Action::Deny { Action::Ask } else { action }
}

fn strictest_match(rules: &[Rule], implied: &Implied) -> Action {
    let pattern = bounded(&implied.pattern);
    let is_open = pattern.contains(UNKNOWN);
    let mut worst = Action::Allow;
    for rule in rules.iter().rev().filter(|rule| matches(&rule.permission, &implied.permission)) {
        match naming(rule, &implied.permission, pattern) {
            Naming::Same => {
                let action = if counts(rule, implied) { rule.action } else { Action::Allow };
                return strictest([worst, action].into_iter());
            }
            Naming::Alike if counts(rule, implied) => worst = strictest([worst, rule.action].into_iter()),
            Naming::Alike | Naming::Other => {}
        }
        if is_open
            && rule.action != Action::Allow
            && counts(rule, implied)
            && may_match(&plain(&rule.pattern), &plain(pattern))
        {
            worst = strictest([worst, Action::Ask].into_iter());
        }
    }
    // A command without a matching rule needs permission, like a command that the model writes. A file does not.
    if implied.permission == Permission::Bash && implied.spelled.is_none() { Action::Ask } else { worst }
}

/// Reports whether a rule adds something to the decision about the command itself.
fn counts(rule: &Rule, implied: &Implied) -> bool {
    if let Some(spelled) = &implied.spelled {
        return !matches(&rule.pattern, spelled);
    }
    // The default rules ask about external directories and environment files. They do not apply to computed paths.
    if implied.certainty == Certainty::Possible
        && implied.permission != Permission::Bash
        && rule.action != Action::Deny
    {
        return false;
    }
    if implied.permission == Permission::ExternalDirectory && implied.certainty == Certainty::Unknown {
        return true;
    }
    // `* ask` before `bash allow` is about the command. A rule that denies everything also denies writes.
    let is_about_files = !matches(&rule.permission, &Permission::Bash);
    implied.permission == Permission::Bash
        || is_about_files
        || (implied.permission == Permission::Edit && rule.action == Action::Deny)
}

fn bounded(pattern: &str) -> &str {
    let is_long = pattern.contains(UNKNOWN) && pattern.chars().nth(MAX_UNKNOWN_CHARS).is_some();
    if is_long { "\0" } else { pattern }
}

/// Reports whether a wildcard matches a text for some value of the text's unknown parts.
fn may_match(wildcard: &str, text: &str) -> bool {
    let bare = wildcard.strip_suffix(" *");
    bare.is_some_and(|bare| may_glob(bare, text)) || may_glob(wildcard, text)
}

/// Both texts may contain runs of any characters. The table records which prefixes match each other.
fn may_glob(wildcard: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut row: Vec<bool> = vec![true];
    row.extend(text.iter().scan(true, |fits, c| {
        *fits &= *c == UNKNOWN;
        Some(*fits)
    }));
    for w in wildcard.chars() {
        let mut next = vec![w == '*' && row[0]];
        for (at, c) in text.iter().enumerate() {
            let any = w == '*' || *c == UNKNOWN;
            let one = w == '?' || w == *c;
            next.push(if any {
                row[at + 1] || next[at] || (row[at] && *c != UNKNOWN)
            } else {
                one && row[at]
            });
        }
        row = next;
    }
    row.last().is_some_and(|fits| *fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wildcard: &str, text: &str, expected: bool) {
        assert_eq!(may_match(wildcard, &text.replace('#', "\0")), expected, "{wildcard} on {text}");
    }

    #[test]
    fn an_unknown_part_matches_anything() {
        for (wildcard, text, expected) in [
            ("rm *", "# x", true),
            ("rm *", "#", true),
            ("rm -rf *", "rm #", true),
            ("rm -rf *", "rm -f #", false),
            ("rm -rf", "rm #", true),
            ("git push *", "git commit #", false),
            ("*.rs", "src/#", true),
            ("docs/*", "src/#", false),
            ("* --force", "# x", false),
            ("a?c", "a#", true),
            ("", "#", true),
            ("x", "", false),
            ("*", "", true),
        ] {
            check(wildcard, text, expected);
        }
    }

    fn action(rules: &[(&str, &str, Action)], implied: &Implied) -> Action {
        let rules: Vec<Rule> =
            rules.iter().map(|(key, pattern, action)| Rule::new(key, pattern, *action)).collect();
        judge(&rules, implied)
    }

    #[test]
    fn another_spelling_is_judged_only_by_rules_that_the_first_did_not_match() {
        use Action::{Allow, Ask, Deny};
        let spelled =
            Implied { spelled: Some("./gradlew x".to_owned()), ..Implied::new("bash", "gradlew x") };
        assert_eq!(action(&[("bash", "*", Ask), ("bash", "./gradlew *", Allow)], &spelled), Allow);
        assert_eq!(action(&[("bash", "*", Allow), ("bash", "gradlew *", Deny)], &spelled), Deny);
        assert_eq!(action(&[], &spelled), Allow);
    }

    #[test]
    fn a_command_inside_a_command_is_held_to_all_rules() {
        use Action::{Allow, Ask, Deny};
        let inner = Implied::new("bash", "rm x");
        assert_eq!(action(&[("bash", "*", Deny), ("bash", "find *", Allow)], &inner), Deny);
        assert_eq!(action(&[("*", "*", Allow)], &inner), Allow);
        assert_eq!(action(&[], &inner), Ask);
    }

    fn unknown(permission: &str, certainty: Certainty) -> Implied {
        Implied { certainty, ..Implied::new(permission, "\0") }
    }

    #[test]
    fn a_call_that_was_not_analysed_is_held_to_every_rule_of_every_kind() {
        use Action::{Allow, Ask, Deny};
        for (rules, expected) in [
            (&[("K", "*", Allow)][..], Allow),
            (&[("K", "*", Deny)], Deny),
            (&[("K", "*", Allow), ("K", "x/*", Deny)], Ask),
            (&[("K", "*", Allow), ("K", "x/*", Ask)], Ask),
            (&[("K", "*", Ask), ("K", "x/*", Allow)], Ask),
            (&[("K", "*", Deny), ("K", "x/*", Allow)], Deny),
        ] {
            for kind in ["bash", "read", "edit", "external_directory"] {
                let rules: Vec<_> =
                    rules.iter().map(|(_, pattern, action)| (kind, *pattern, *action)).collect();
                assert_eq!(action(&rules, &unknown(kind, Certainty::Unknown)), expected, "{kind} {rules:?}");
            }
        }
    }

    #[test]
    fn a_possible_effect_asks_if_it_is_denied() {
        use Action::{Allow, Ask, Deny};
        for kind in ["read", "edit", "external_directory"] {
            let possible = unknown(kind, Certainty::Possible);
            assert_eq!(action(&[(kind, "*", Deny)], &possible), Ask, "{kind}");
            assert_eq!(action(&[(kind, "*", Allow), (kind, "x", Deny)], &possible), Ask, "{kind}");
            assert_eq!(action(&[(kind, "*", Allow), (kind, "x", Ask)], &possible), Allow, "{kind}");
            assert_eq!(action(&[(kind, "*", Ask)], &possible), Allow, "{kind}");
        }
    }

    #[test]
    fn files_are_held_to_the_rules_about_files() {
        use Action::{Allow, Ask, Deny};
        let (read, edit) = (Implied::new("read", "a"), Implied::new("edit", "a"));
        for (rules, reads, edits) in [
            (&[("*", "*", Ask), ("bash", "*", Allow)][..], Allow, Allow),
            (&[("*", "*", Deny), ("bash", "*", Allow)], Allow, Deny),
            (&[("read", "*", Ask), ("edit", "*", Ask)], Ask, Ask),
            (&[("edit", "*", Deny), ("edit", "a", Allow)], Allow, Allow),
            (&[], Allow, Allow),
        ] {
            assert_eq!((action(rules, &read), action(rules, &edit)), (reads, edits), "{rules:?}");
        }
    }
}
