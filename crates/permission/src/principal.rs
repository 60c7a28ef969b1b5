//! What each principal may loosen.
//!
//! Everybody may tighten: a rule that denies or asks holds until a principal that sets rules and has at least the same
//! authority sets another one. [`may`] is the table of the opposite. A principal never has a power that one above it
//! lacks.

pub use codewright_proto::Principal;
use codewright_proto::{Map, Rule, SessionAccess};

use crate::ask::Policy;
use crate::kind::Permission;

/// A way to loosen what holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Power {
    /// Allow what the configuration denies.
    LiftDenial,
    /// Allow by a rule what the configuration asks about.
    SetRules,
    /// Run a command without the sandbox, with the network of the machine, or where the machine cannot restrict it.
    LeaveSandbox,
    /// Reach a directory outside of the worktree.
    LeaveDirectory,
    /// Reach an address of this machine or of its network.
    ReachPrivate,
    /// Read a file that is hidden from commands: credentials, and files of other people.
    ReadHidden,
    /// Write a file that decides what the agent or another program executes.
    WriteControlFile,
    /// Accept the configuration of a repository.
    Trust,
    /// Save an approval that holds for everybody who works in the directory.
    ApproveForAll,
    /// Grant a request about ordinary work in the directory and the sandbox of a session.
    Answer,
}

impl Power {
    /// Every power.
    pub const ALL: [Self; 10] = [
        Self::LiftDenial,
        Self::SetRules,
        Self::LeaveSandbox,
        Self::LeaveDirectory,
        Self::ReachPrivate,
        Self::ReadHidden,
        Self::WriteControlFile,
        Self::Trust,
        Self::ApproveForAll,
        Self::Answer,
    ];
}

/// Reports whether a principal may loosen something in this way. This is the whole table.
///
/// The rules of a repository that the user accepted with the trust question count as the user's answer to a question.
/// They are the exceptions of [`crate::PermissionRules`], not a power of the repository.
pub fn may(principal: Principal, power: Power) -> bool {
    match principal {
        // Both wrote the denials themselves.
        Principal::Owner | Principal::Operator => true,
        Principal::Admin => match power {
            Power::LiftDenial => false,
            Power::SetRules
            | Power::LeaveSandbox
            | Power::LeaveDirectory
            | Power::ReachPrivate
            | Power::ReadHidden
            | Power::WriteControlFile
            | Power::Trust
            | Power::ApproveForAll
            | Power::Answer => true,
        },
        Principal::Member => match power {
            Power::Answer => true,
            Power::LiftDenial
            | Power::SetRules
            | Power::LeaveSandbox
            | Power::LeaveDirectory
            | Power::ReachPrivate
            | Power::ReadHidden
            | Power::WriteControlFile
            | Power::Trust
            | Power::ApproveForAll => false,
        },
        Principal::Repository | Principal::Plugin | Principal::Document | Principal::Model => false,
    }
}

/// Returns the power that a reply to a request needs if it grants the request.
pub fn needed(permission: &Permission, policy: &Policy, target: Target) -> Power {
    let by_policy = match policy {
        Policy::Reply(_) | Policy::Unenforced { .. } => Some(Power::LeaveSandbox),
        Policy::Exact if *permission == Permission::Network => Some(Power::ReachPrivate),
        Policy::Exact => Some(Power::ReadHidden),
        Policy::Named => Some(Power::ReachPrivate),
        Policy::Rules | Policy::Spelled => None,
    };
    let by_target = || match target {
        Target::ControlFile => Some(Power::WriteControlFile),
        Target::Ordinary => None,
    };
    by_policy.or_else(|| reserved(permission)).or_else(by_target).unwrap_or(Power::Answer)
}

/// Returns the power that a rule needs besides [`Power::SetRules`] if it does not deny, because its key is or may stand
/// for a kind that ordinary work does not need.
pub fn reserved(key: &str) -> Option<Power> {
    // The spelling of rules is checked loosely here, so that nothing depends on how another part reads it.
    let key = key.trim();
    let is = |kind: &Permission| key.eq_ignore_ascii_case(kind);
    if is(&Permission::Sandbox) || key.contains(['*', '?', '[', '{']) {
        Some(Power::LeaveSandbox)
    } else if is(&Permission::ExternalDirectory) {
        Some(Power::LeaveDirectory)
    } else {
        None
    }
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Anything else.
    Ordinary,
    /// A write to a control file, see [`crate::control`].
    ControlFile,
}

impl Target {
    /// The metadata key that tells clients why a write to a control file needs permission.
    pub const CONTROL: &'static str = "controlFile";

    /// Returns the target of a stored request.
    pub fn of_stored(metadata: &Map) -> Self {
        if metadata.contains_key(Self::CONTROL) { Self::ControlFile } else { Self::Ordinary }
    }
}

/// Returns the principal of a session's rule.
///
/// Older versions stored no principal. Their rules are the owner's, unless the session belongs to a user of a server: then
/// they are those of an administrator if only administrators have set rules, and of a member otherwise.
pub fn principal_of(rule: &Rule, access: Option<&SessionAccess>) -> Principal {
    rule.by.unwrap_or_else(|| creator(access))
}

/// Returns the principal who creates a session with this access.
pub fn creator(access: Option<&SessionAccess>) -> Principal {
    match access {
        None => Principal::Owner,
        Some(access) if access.admin => Principal::Admin,
        Some(_) => Principal::Member,
    }
}

/// Marks a rule with the principal who sets it in a session, whatever it was marked with before.
///
/// The owner's rules are only marked in a session of a user, because a rule without a mark is that of the user there.
#[must_use]
pub fn marked(rule: Rule, by: Principal, access: Option<&SessionAccess>) -> Rule {
    let by = match (by, access) {
        (Principal::Owner, None) => None,
        (by, _) => Some(by),
    };
    Rule { by, ..rule }
}

/// Adds a rule to those of a session, as set by a principal.
///
/// It replaces the rule for the same permission and pattern, unless that is one of a principal with more authority.
pub fn add(rules: &mut Vec<Rule>, rule: Rule, access: Option<&SessionAccess>) {
    let by = principal_of(&rule, access);
    rules.retain(|old| {
        let is_same = (&old.permission, &old.pattern) == (&rule.permission, &rule.pattern);
        !(is_same && principal_of(old, access) >= by)
    });
    rules.push(rule);
}

#[cfg(test)]
mod tests {
    use codewright_proto::Action::{Allow, Ask, Deny};

    use super::*;
    use crate::ask::Lift;

    /// The whole table, one row a principal, in the order of [`Power::ALL`].
    #[test]
    fn the_table_of_powers() {
        use Principal::{Admin, Document, Member, Model, Operator, Owner, Plugin, Repository};
        let table: [(Principal, [u8; 10]); 8] = [
            (Owner, [1; 10]),
            (Operator, [1; 10]),
            (Admin, [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
            (Member, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            (Repository, [0; 10]),
            (Plugin, [0; 10]),
            (Document, [0; 10]),
            (Model, [0; 10]),
        ];
        assert_eq!(table.map(|(principal, _)| principal), Principal::ALL);
        for (principal, row) in table {
            let found = Power::ALL.map(|power| u8::from(may(principal, power)));
            assert_eq!(found, row, "{principal:?}");
            assert_eq!(principal.is_limited(), !may(principal, Power::SetRules), "{principal:?}");
        }
    }

    #[test]
    fn nobody_has_a_power_that_a_principal_above_lacks() {
        for pair in Principal::ALL.windows(2) {
            assert!(pair[0] < pair[1]);
            for power in Power::ALL {
                assert!(may(pair[0], power) || !may(pair[1], power), "{pair:?} {power:?}");
            }
        }
    }

    #[test]
    fn a_reply_needs_the_power_for_what_it_lifts() {
        let unenforced = || Policy::Unenforced { reason: String::new() };
        for (permission, policy, target, expected) in [
            ("bash", Policy::Rules, Target::Ordinary, Power::Answer),
            ("read", Policy::Rules, Target::Ordinary, Power::Answer),
            ("network", Policy::Rules, Target::Ordinary, Power::Answer),
            ("webfetch", Policy::Named, Target::Ordinary, Power::ReachPrivate),
            ("bash", unenforced(), Target::Ordinary, Power::LeaveSandbox),
            ("sandbox", Policy::Rules, Target::Ordinary, Power::LeaveSandbox),
            ("sandbox", Policy::Reply(Lift::Network), Target::Ordinary, Power::LeaveSandbox),
            ("network", Policy::Exact, Target::Ordinary, Power::ReachPrivate),
            ("read", Policy::Exact, Target::Ordinary, Power::ReadHidden),
            ("external_directory", Policy::Rules, Target::Ordinary, Power::LeaveDirectory),
            ("ext*", Policy::Rules, Target::Ordinary, Power::LeaveSandbox),
            ("edit", Policy::Rules, Target::Ordinary, Power::Answer),
            ("edit", Policy::Rules, Target::ControlFile, Power::WriteControlFile),
        ] {
            assert_eq!(needed(&permission.into(), &policy, target), expected, "{permission} {policy:?}");
        }
    }

    #[test]
    fn a_key_that_may_stand_for_a_reserved_kind_needs_its_power() {
        for (key, expected) in [
            ("*", Some(Power::LeaveSandbox)),
            ("external_directory", Some(Power::LeaveDirectory)),
            ("External_Directory ", Some(Power::LeaveDirectory)),
            ("ext*", Some(Power::LeaveSandbox)),
            ("sandbox", Some(Power::LeaveSandbox)),
            ("bash", None),
            ("read", None),
        ] {
            assert_eq!(reserved(key), expected, "{key}");
        }
    }

    fn access(admin: bool) -> SessionAccess {
        SessionAccess { owner: "ann".to_owned(), admin, ..SessionAccess::default() }
    }

    #[test]
    fn an_older_rule_is_that_of_the_least_principal_who_can_have_set_it() {
        let rule = Rule::new("bash", "*", Allow);
        assert_eq!(principal_of(&rule, None), Principal::Owner);
        assert_eq!(principal_of(&rule, Some(&access(true))), Principal::Admin);
        assert_eq!(principal_of(&rule, Some(&access(false))), Principal::Member);
    }

    #[test]
    fn a_mark_of_a_client_is_replaced() {
        let claimed = Rule { by: Some(Principal::Operator), ..Rule::new("bash", "*", Allow) };
        for (by, access, expected) in [
            (Principal::Owner, None, None),
            (Principal::Owner, Some(access(false)), Some(Principal::Owner)),
            (Principal::Member, Some(access(true)), Some(Principal::Member)),
            (Principal::Document, None, Some(Principal::Document)),
        ] {
            let found = marked(claimed.clone(), by, access.as_ref());
            assert_eq!(found.by, expected, "{by:?}");
            assert_eq!(principal_of(&found, access.as_ref()), by);
        }
    }

    #[test]
    fn a_rule_replaces_only_rules_of_the_same_or_less_authority() {
        let by = |rule: Rule, by| Rule { by, ..rule };
        let (admin, member, document) =
            (Some(Principal::Admin), Some(Principal::Member), Some(Principal::Document));
        let rule = |pattern: &str, action, who| by(Rule::new("bash", pattern, action), who);
        for (old, new, expected) in [
            (rule("*", Deny, admin), rule("*", Allow, member), 2),
            (rule("*", Deny, member), rule("*", Allow, member), 1),
            (rule("*", Deny, member), rule("*", Allow, admin), 1),
            (rule("*", Deny, document), rule("*", Allow, member), 1),
            (rule("git *", Deny, member), rule("*", Allow, member), 2),
            (rule("*", Ask, document), rule("git *", Allow, member), 2),
            (rule("*", Deny, None), rule("*", Allow, member), 1),
        ] {
            let mut rules = vec![old.clone()];
            add(&mut rules, new.clone(), Some(&access(false)));
            assert_eq!(rules.len(), expected, "{old:?} {new:?}");
            assert_eq!(rules.last(), Some(&new));
        }
    }
}
