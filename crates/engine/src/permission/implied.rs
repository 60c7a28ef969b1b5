//! What rules say about things that come with a call and are not asked for by themselves.
//!
//! A command may run others and write files. What rules say of those can only make the answer
//! to the call stricter. Of some only the run tells everything: a rule that would forbid or
//! ask, and might be meant, asks then. If a call could not be analysed, it may do anything: a rule that forbids
//! everything of a kind forbids it, and any other rule that forbids or asks is a question.

use codewright_proto::{Action, Rule};
use codewright_tools::{Certainty, Implied, UNKNOWN};

use super::evaluate::{matches, strictest};

/// A longer pattern with unknown parts is taken to be unknown as a whole.
const MAX_UNKNOWN_CHARS: usize = 4096;
/// The kind of leave that a call which implies something asks for itself.
const COMMAND: &str = "bash";

/// The kind that rules allow or ask about by directory.
const OUTSIDE: &str = "external_directory";

/// What one layer of rules says of something implied.
pub(crate) fn judge(rules: &[Rule], implied: &Implied) -> Action {
    let action = strictest_match(rules, implied);
    // What may not happen at all is no reason to forbid a call, but one to ask.
    if implied.certainty == Certainty::Possible && action == Action::Deny { Action::Ask } else { action }
}

fn strictest_match(rules: &[Rule], implied: &Implied) -> Action {
    let pattern = bounded(&implied.pattern);
    let is_open = pattern.contains(UNKNOWN);
    let mut worst = Action::Allow;
    for rule in rules.iter().rev().filter(|rule| matches(&rule.permission, &implied.permission)) {
        if matches(&rule.pattern, pattern) {
            let action = if counts(rule, implied) { rule.action } else { Action::Allow };
            return strictest([worst, action].into_iter());
        }
        if is_open
            && rule.action != Action::Allow
            && counts(rule, implied)
            && may_match(&rule.pattern, pattern)
        {
            worst = Action::Ask;
        }
    }
    // Commands of which nothing is said are asked about, as those that are written; files are not.
    if implied.permission == COMMAND && implied.spelled.is_none() { Action::Ask } else { worst }
}

/// Whether a rule has something to say that was not heard with the command itself.
fn counts(rule: &Rule, implied: &Implied) -> bool {
    if let Some(spelled) = &implied.spelled {
        return !matches(&rule.pattern, spelled);
    }
    // By default outside and environment files ask. Whoever computes a path is not asked about those.
    if implied.certainty == Certainty::Possible
        && implied.permission != COMMAND
        && rule.action != Action::Deny
    {
        return false;
    }
    if implied.permission == OUTSIDE && implied.certainty == Certainty::Unknown {
        return true;
    }
    // `* ask` before `bash allow` is about the command; who forbids everything forbids to write all the same.
    let is_about_files = !matches(&rule.permission, COMMAND);
    implied.permission == COMMAND
        || is_about_files
        || (implied.permission == "edit" && rule.action == Action::Deny)
}

fn bounded(pattern: &str) -> &str {
    let is_long = pattern.contains(UNKNOWN) && pattern.chars().nth(MAX_UNKNOWN_CHARS).is_some();
    if is_long { "\0" } else { pattern }
}

/// Whether a wildcard matches a text for some value of its unknown parts.
fn may_match(wildcard: &str, text: &str) -> bool {
    let bare = wildcard.strip_suffix(" *");
    bare.is_some_and(|bare| may_glob(bare, text)) || may_glob(wildcard, text)
}

/// Both sides have runs of any characters; the table tells which beginnings fit each other.
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
    fn an_unknown_part_may_be_anything() {
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
    fn another_spelling_hears_only_the_rules_that_the_first_did_not() {
        use Action::{Allow, Ask, Deny};
        let spelled =
            Implied { spelled: Some("./gradlew x".to_owned()), ..Implied::new("bash", "gradlew x") };
        assert_eq!(action(&[("bash", "*", Ask), ("bash", "./gradlew *", Allow)], &spelled), Allow);
        assert_eq!(action(&[("bash", "*", Allow), ("bash", "gradlew *", Deny)], &spelled), Deny);
        assert_eq!(action(&[], &spelled), Allow);
    }

    #[test]
    fn what_a_command_runs_is_held_to_all_rules() {
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
    fn what_may_happen_is_asked_about_where_it_is_forbidden() {
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
