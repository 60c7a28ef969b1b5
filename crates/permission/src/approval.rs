//! Approvals: the permissions that a user granted with "always".
//!
//! An approval is bound to:
//!
//! - the project and the directory of its worktree, because another directory may hold another author's code
//!   under the same project id. The engine passes only approvals of this scope;
//! - the rules that asked. A stricter rule that is written later leads to a new request, in spite of the approval;
//! - for a control file (see [`crate::control`]) the exact path. A wildcard in an approval never covers such a file;
//! - on a server with users, the user in whose session it was given. An approval of before there were users, or of a
//!   program that uses no server, holds for sessions without an owner.
//!
//! Approvals only answer requests. They do not change a rule that denies.

use std::collections::BTreeSet;

use codewright_proto::{Action, Rule};

use crate::ask::Policy;
use crate::evaluate::{Subject, evaluate, is_named, matches};
use crate::rules::PermissionRules;

/// Longer patterns are not saved, so the same request is made again.
pub const MAX_PATTERN_BYTES: usize = 8 * 1024;
/// The entry of [`AskingRules`] for the built-in rule about control files.
const CONTROL: &str = "control file";
/// The entry of [`AskingRules`] for a command that this machine cannot restrict.
const UNENFORCED: &str = "sandbox not enforced";
/// The entry of [`AskingRules`] for a command that cannot be undone.
const IRREVERSIBLE: &str = "irreversible";
/// The entry of [`AskingRules`] for files and directories with secrets.
const SECRET: &str = "secret";
/// The entry of [`AskingRules`] for a layer in which no rule matches.
const NO_RULE: &str = "no rule";
/// The start of the entry that names the user. The entries of rules start with a permission key, which contains no
/// control character.
const USER: &str = "\u{1}user ";
/// The start of the entry that names who gave the approval. It decides nothing.
const GIVER: &str = "\u{1}by ";
/// The user in an approval for the sessions of all users.
const EVERYONE: &str = "*";

/// The rules that ask about a pattern, in a form that can be stored and compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskingRules(BTreeSet<String>);

impl AskingRules {
    /// Returns the rules that ask about one pattern.
    pub fn of(rules: &PermissionRules, subject: Subject<'_>, is_control: Control) -> Self {
        let mut asking = BTreeSet::new();
        for layer in rules.layers() {
            match evaluate(layer.iter(), subject.permission, subject.pattern) {
                Some(rule) if rule.action == Action::Ask => {
                    asking.insert(format!("{} {}", rule.permission, rule.pattern));
                }
                Some(_) => {}
                None => {
                    asking.insert(NO_RULE.to_owned());
                }
            }
        }
        if is_control == Control::Yes {
            asking.insert(CONTROL.to_owned());
        }
        Self(asking).with_user(rules.user())
    }

    /// Adds that this machine cannot restrict the command. Only an approval of exactly this command covers it.
    #[must_use]
    pub fn without_sandbox(mut self) -> Self {
        self.0.insert(UNENFORCED.to_owned());
        self
    }

    /// Adds that the command cannot be undone. An approval of other commands does not cover it.
    #[must_use]
    pub fn irreversible(mut self) -> Self {
        self.0.insert(IRREVERSIBLE.to_owned());
        self
    }

    /// Adds that the target may have secrets. A general approval does not cover it.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.0.insert(SECRET.to_owned());
        self
    }

    /// Makes an approval one for the sessions of all users.
    #[must_use]
    pub fn of_everyone(mut self) -> Self {
        self.0.insert(format!("{USER}{EVERYONE}"));
        self
    }

    /// Adds who gives the approval.
    #[must_use]
    pub fn given_by(mut self, giver: &str) -> Self {
        self.0.retain(|entry| !entry.starts_with(GIVER));
        self.0.insert(format!("{GIVER}{giver}"));
        self
    }

    /// Returns who gave an approval in its stored form. `None` for approvals of earlier versions.
    pub fn giver_of_stored(json: &str) -> Option<String> {
        let rules = Self::from_json(json)?;
        rules.0.iter().find_map(|entry| entry.strip_prefix(GIVER).map(str::to_owned))
    }

    fn with_user(mut self, user: Option<&str>) -> Self {
        self.0.extend(user.map(|user| format!("{USER}{user}")));
        self
    }

    /// Adds the rules of another pattern.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the stored form.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    fn from_json(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok().map(Self)
    }

    fn user(&self) -> Option<&str> {
        self.0.iter().find_map(|entry| entry.strip_prefix(USER))
    }

    /// Reports whether an approval that these rules led to answers a request that other rules lead to. It holds only for
    /// the user in whose session it was given.
    fn cover(&self, asking: &Self) -> bool {
        let is_for_user = self.user() == Some(EVERYONE) || self.user() == asking.user();
        let mut rules = asking.0.iter().filter(|entry| !entry.starts_with(USER));
        is_for_user && rules.all(|entry| self.0.contains(entry))
    }
}

/// Whether a request is about a write to a control file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// An approval as the store keeps it.
#[derive(Debug, Clone, Copy)]
pub struct SavedApproval<'a> {
    /// The permission key.
    pub permission: &'a str,
    /// The pattern that is approved.
    pub pattern: &'a str,
    /// The stored form of [`AskingRules`].
    pub rules: &'a str,
}

/// The approvals of one scope, read from the store for one decision or one call.
#[derive(Debug, Clone, Default)]
pub struct Approvals(Vec<(Rule, AskingRules)>);

impl Approvals {
    /// Parses saved approvals. Approvals that cannot be parsed are ignored.
    pub fn new<'a>(saved: impl IntoIterator<Item = SavedApproval<'a>>) -> Self {
        let approvals = saved.into_iter().filter_map(|one| {
            let rules = AskingRules::from_json(one.rules)?;
            Some((Rule::new(one.permission, one.pattern, Action::Allow), rules))
        });
        Self(approvals.collect())
    }

    /// Reports whether an approval grants the request for a pattern.
    pub fn allow(&self, subject: Subject<'_>, asking: &AskingRules, policy: &Policy) -> bool {
        let Subject { permission, pattern } = subject;
        self.0.iter().any(|(rule, rules)| {
            let is_exact = rule.permission == permission && rule.pattern == pattern;
            let is_same = if rules.0.contains(CONTROL) || rules.0.contains(UNENFORCED) {
                is_exact
            } else {
                matches(&rule.permission, permission) && matches(&rule.pattern, pattern)
            };
            let is_named = match policy {
                Policy::Rules | Policy::Spelled => true,
                Policy::Named | Policy::Unenforced { .. } => is_named(rule),
                Policy::Exact => is_exact,
                Policy::Reply(_) => false,
            };
            is_same && is_named && rules.cover(asking)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rules: &[(&str, &str, Action)]) -> PermissionRules {
        PermissionRules::of(
            rules.iter().map(|(key, pattern, action)| Rule::new(key, pattern, *action)).collect(),
        )
    }

    fn approved(action: &str, resource: &str, asking: &AskingRules) -> Approvals {
        let rules = asking.to_json();
        Approvals::new([SavedApproval { permission: action, pattern: resource, rules: &rules }])
    }

    #[test]
    fn an_approval_holds_only_for_the_rules_that_asked() {
        let then = rules(&[("edit", "*", Action::Ask)]);
        let asking = AskingRules::of(&then, Subject::new("edit", "a.rs"), Control::No);
        let approvals = approved("edit", "*", &asking);
        let answers = |rules: &PermissionRules, pattern: &str, control| {
            let asking = AskingRules::of(rules, Subject::new("edit", pattern), control);
            approvals.allow(Subject::new("edit", pattern), &asking, &Policy::Rules)
        };
        assert!(answers(&then, "b.rs", Control::No));
        let now = rules(&[("edit", "*", Action::Ask), ("edit", "infra/*", Action::Ask)]);
        assert!(answers(&now, "b.rs", Control::No));
        assert!(!answers(&now, "infra/x", Control::No), "a rule that was written later needs a reply");
        assert!(!answers(&rules(&[]), "b.rs", Control::No), "without rules there is another reason");
        assert!(!answers(&then, ".git/config", Control::Yes));
    }

    #[test]
    fn an_approval_of_a_control_file_is_for_that_file_only() {
        let rules = rules(&[("edit", "*", Action::Allow)]);
        let asking = AskingRules::of(&rules, Subject::new("edit", ".git/*"), Control::Yes);
        let approvals = approved("edit", ".git/*", &asking);
        for (pattern, expected) in [(".git/*", true), (".git/config", false), ("src/a", false)] {
            let asking = AskingRules::of(&rules, Subject::new("edit", pattern), Control::Yes);
            assert_eq!(
                approvals.allow(Subject::new("edit", pattern), &asking, &Policy::Rules),
                expected,
                "{pattern}"
            );
        }
    }

    #[test]
    fn approvals_that_cannot_be_parsed_are_ignored() {
        let asking = AskingRules::default();
        for rules in ["", "null", "{}", "[1]"] {
            let saved = SavedApproval { permission: "*", pattern: "*", rules };
            assert!(
                !Approvals::new([saved]).allow(Subject::new("bash", "ls"), &asking, &Policy::Rules),
                "{rules}"
            );
        }
    }

    #[test]
    fn an_approval_holds_for_the_user_in_whose_session_it_was_given() {
        let rules = rules(&[("bash", "*", Action::Ask)]);
        let subject = Subject::new("bash", "make");
        let asking = |user: Option<&str>| AskingRules::of(&rules, subject, Control::No).with_user(user);
        for (given, used, expected) in [
            (Some("alice"), Some("alice"), true),
            (Some("alice"), Some("bob"), false),
            (Some("alice"), None, false),
            (None, Some("alice"), false),
            (None, None, true),
        ] {
            let approvals = approved("bash", "make", &asking(given));
            let found = approvals.allow(subject, &asking(used), &Policy::Rules);
            assert_eq!(found, expected, "{given:?} {used:?}");
        }
        let approvals = approved("bash", "make", &asking(None).of_everyone());
        for user in [None, Some("alice"), Some("bob")] {
            assert!(approvals.allow(subject, &asking(user), &Policy::Rules), "{user:?}");
        }
    }

    #[test]
    fn an_approval_names_who_gave_it_and_covers_the_same() {
        let rules = rules(&[("bash", "*", Action::Ask)]);
        let subject = Subject::new("bash", "make");
        let asking = AskingRules::of(&rules, subject, Control::No);
        let given = asking.clone().given_by("owner").given_by("member ann");
        assert!(approved("bash", "make", &given).allow(subject, &asking, &Policy::Rules));
        assert_eq!(AskingRules::giver_of_stored(&given.to_json()).as_deref(), Some("member ann"));
        for unknown in [asking.to_json().as_str(), "", "{}"] {
            assert_eq!(AskingRules::giver_of_stored(unknown), None);
        }
    }

    #[test]
    fn a_user_whose_name_looks_like_a_rule_gains_nothing() {
        let rules = rules(&[("bash", "*", Action::Ask)]);
        let subject = Subject::new("bash", "make");
        let asking = AskingRules::of(&rules, subject, Control::No).with_user(Some("x"));
        let other = AskingRules::default().with_user(Some("x\",\"bash *"));
        assert!(!approved("*", "*", &other).allow(subject, &asking, &Policy::Rules));
    }
}
