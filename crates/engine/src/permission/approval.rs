//! Approvals: the permissions that a user granted with "always".
//!
//! An approval is saved in the store. It survives a restart, and every process that uses the store sees it at its next
//! permission request. It is bound to:
//!
//! - the project and the directory of its worktree, because another directory may hold another author's code
//!   under the same project id;
//! - the rules that asked. A stricter rule that is written later leads to a new request, in spite of the approval;
//! - the user who owns the session, on a server with users. An approval of before there were users, or of a program that
//!   uses no server, holds for sessions without an owner;
//! - for a control file (see [`super::control`]) the exact path. A wildcard in an approval never covers such a file.
//!
//! Approvals only answer requests. They do not change a rule that denies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use codewright_proto::{Action, PermissionRequest, ProjectId, Rule};
use codewright_store::SavedPermission;

use super::evaluate::{Subject, evaluate, is_named, matches};
use super::rules::PermissionRules;
use crate::instance::Instance;

/// Longer patterns are not saved, so the same request is made again.
pub(super) const MAX_PATTERN_BYTES: usize = 8 * 1024;
/// The number of patterns of one request that are saved.
const MAX_PATTERNS: usize = 200;
/// The entry of [`AskingRules`] for the built-in rule about control files.
const CONTROL: &str = "control file";
/// The entry of [`AskingRules`] for a command that this machine cannot restrict.
const UNENFORCED: &str = "sandbox not enforced";
/// The entry of [`AskingRules`] for a layer in which no rule matches.
const NO_RULE: &str = "no rule";
/// The beginning of the entry of [`AskingRules`] with the user of a server whose session asks. A rule cannot look like it,
/// because a permission key contains no control character.
const USER: &str = "\u{1}user ";
/// The user in an approval for the sessions of all users.
const EVERYONE: &str = "*";

/// The scope of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The project.
    pub(crate) project: ProjectId,
    /// The root of the worktree; outside a repository, the directory.
    pub(crate) directory: PathBuf,
}

impl Scope {
    /// Returns the scope of an open directory.
    pub(crate) fn of(instance: &Instance) -> Self {
        let root = &instance.worktree.root;
        let directory = if root.parent().is_none() { &instance.directory } else { root };
        Self { project: instance.project.id.clone(), directory: directory.clone() }
    }

    /// Returns the directory in its stored form.
    pub(crate) fn directory(&self) -> String {
        text(&self.directory)
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The rules that ask about a pattern, in a form that can be stored and compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AskingRules(BTreeSet<String>);

impl AskingRules {
    /// Returns the rules that ask about one pattern.
    pub(crate) fn of(rules: &PermissionRules, subject: Subject<'_>, is_control: Control) -> Self {
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
        asking.extend(rules.user().map(|user| format!("{USER}{user}")));
        Self(asking)
    }

    /// Makes an approval one for the sessions of all users.
    pub(super) fn of_everyone(mut self) -> Self {
        self.0.insert(format!("{USER}{EVERYONE}"));
        self
    }

    fn user(&self) -> Option<&str> {
        self.0.iter().find_map(|entry| entry.strip_prefix(USER))
    }

    /// Whether an approval with these rules grants what `asking` asks about. It holds only for the user in whose session it
    /// was given.
    fn cover(&self, asking: &Self) -> bool {
        let is_for_user = self.user() == Some(EVERYONE) || self.user() == asking.user();
        is_for_user && asking.0.iter().all(|entry| entry.starts_with(USER) || self.0.contains(entry))
    }

    /// Adds that this machine cannot restrict the command. Only an approval of exactly this command covers it.
    pub(crate) fn without_sandbox(mut self) -> Self {
        self.0.insert(UNENFORCED.to_owned());
        self
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    fn from_json(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok().map(Self)
    }
}

/// Whether a request is about a write to a control file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    Yes,
    No,
}

/// The approvals of one scope, read from the store for one decision or one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Approvals(Vec<(Rule, AskingRules)>);

impl Approvals {
    /// Parses saved approvals. Approvals that cannot be parsed are ignored.
    pub(crate) fn new(saved: &[SavedPermission]) -> Self {
        let approvals = saved.iter().filter_map(|one| {
            let rules = AskingRules::from_json(&one.rules)?;
            Some((Rule::new(&one.action, &one.resource, Action::Allow), rules))
        });
        Self(approvals.collect())
    }

    /// Reports whether an approval grants the request for a pattern.
    pub(crate) fn allow(&self, subject: Subject<'_>, asking: &AskingRules, name: Name) -> bool {
        let Subject { permission, pattern } = subject;
        self.0.iter().any(|(rule, rules)| {
            let is_same = if rules.0.contains(CONTROL) || rules.0.contains(UNENFORCED) {
                rule.permission == permission && rule.pattern == pattern
            } else {
                matches(&rule.permission, permission) && matches(&rule.pattern, pattern)
            };
            let is_named = match name {
                Name::Optional => true,
                Name::Required | Name::RequiredOfUser => is_named(rule),
                Name::Exact => rule.permission == permission && rule.pattern == pattern,
                Name::Never => false,
            };
            is_same && is_named && rules.cover(asking)
        })
    }
}

/// Whether only a rule that names a kind and a target can allow a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Required,
    /// Also, the rule must be the user's. An accepted rule of a repository does not count.
    RequiredOfUser,
    /// The rule must be the user's and have the same permission and pattern.
    Exact,
    /// No rule and no approval can allow it.
    Never,
    Optional,
}

/// Returns the approvals to save for a reply of "always".
pub(crate) fn saved(
    request: &PermissionRequest,
    scope: &Scope,
    asking: &AskingRules,
    stamp: impl Fn() -> (String, u64),
) -> Vec<SavedPermission> {
    let patterns = request.always.iter().filter(|pattern| pattern.len() <= MAX_PATTERN_BYTES);
    patterns
        .take(MAX_PATTERNS)
        .map(|pattern| {
            let (id, created_ms) = stamp();
            SavedPermission {
                id,
                project_id: scope.project.clone(),
                directory: scope.directory(),
                action: request.permission.clone(),
                resource: pattern.clone(),
                rules: asking.to_json(),
                created_ms,
            }
        })
        .collect()
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
        let saved = SavedPermission {
            id: "x".to_owned(),
            project_id: ProjectId::global(),
            directory: "/p".to_owned(),
            action: action.to_owned(),
            resource: resource.to_owned(),
            rules: asking.to_json(),
            created_ms: 0,
        };
        Approvals::new(&[saved])
    }

    #[test]
    fn an_approval_holds_only_for_the_rules_that_asked() {
        let then = rules(&[("edit", "*", Action::Ask)]);
        let asking = AskingRules::of(&then, Subject::new("edit", "a.rs"), Control::No);
        let approvals = approved("edit", "*", &asking);
        let answers = |rules: &PermissionRules, pattern: &str, control| {
            let asking = AskingRules::of(rules, Subject::new("edit", pattern), control);
            approvals.allow(Subject::new("edit", pattern), &asking, Name::Optional)
        };
        assert!(answers(&then, "b.rs", Control::No));
        let now = rules(&[("edit", "*", Action::Ask), ("edit", "infra/*", Action::Ask)]);
        assert!(answers(&now, "b.rs", Control::No));
        assert!(!answers(&now, "infra/x", Control::No), "a rule that was written later needs a reply");
        assert!(!answers(&rules(&[]), "b.rs", Control::No), "without rules there is another reason");
        assert!(!answers(&then, ".git/config", Control::Yes));
    }

    #[test]
    fn an_approval_holds_for_the_user_in_whose_session_it_was_given() {
        let rules = rules(&[("bash", "*", Action::Ask)]);
        let asking = |user: Option<&str>| {
            let rules = user.map_or_else(|| rules.clone(), |user| rules.clone().of_user(user));
            AskingRules::of(&rules, Subject::new("bash", "ls"), Control::No)
        };
        for (given, used, expected) in [
            (Some("alice"), Some("alice"), true),
            (Some("alice"), Some("bob"), false),
            (Some("alice"), None, false),
            (None, Some("alice"), false),
            (None, None, true),
        ] {
            let approvals = approved("bash", "ls", &asking(given));
            let found = approvals.allow(Subject::new("bash", "ls"), &asking(used), Name::Optional);
            assert_eq!(found, expected, "{given:?} {used:?}");
        }
        let approvals = approved("bash", "ls", &asking(None).of_everyone());
        for user in [None, Some("alice"), Some("bob")] {
            assert!(approvals.allow(Subject::new("bash", "ls"), &asking(user), Name::Optional), "{user:?}");
        }
    }

    #[test]
    fn an_approval_of_a_control_file_is_for_that_file_only() {
        let rules = rules(&[("edit", "*", Action::Allow)]);
        let asking = AskingRules::of(&rules, Subject::new("edit", ".git/*"), Control::Yes);
        let approvals = approved("edit", ".git/*", &asking);
        for (pattern, expected) in [(".git/*", true), (".git/config", false), ("src/a", false)] {
            let asking = AskingRules::of(&rules, Subject::new("edit", pattern), Control::Yes);
            assert_eq!(
                approvals.allow(Subject::new("edit", pattern), &asking, Name::Optional),
                expected,
                "{pattern}"
            );
        }
    }

    #[test]
    fn approvals_that_cannot_be_parsed_are_ignored() {
        let asking = AskingRules::default();
        for rules in ["", "null", "{}", "[1]"] {
            let saved = SavedPermission {
                id: "x".to_owned(),
                project_id: ProjectId::global(),
                directory: String::new(),
                action: "*".to_owned(),
                resource: "*".to_owned(),
                rules: rules.to_owned(),
                created_ms: 0,
            };
            assert!(
                !Approvals::new(&[saved]).allow(Subject::new("bash", "ls"), &asking, Name::Optional),
                "{rules}"
            );
        }
    }
}
