//! An effect that needs permission: what a call does, where, and which consent it needs.

use codewright_proto::Map;
use serde_json::Value;

use crate::kind::Permission;

/// A permission that a call needs before it may run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The kind of effect.
    pub permission: Permission,
    /// The targets of the effect. All of them must be allowed.
    pub patterns: Vec<String>,
    /// The wider patterns that the reply "always" would allow.
    pub always: Vec<String>,
    /// Which rules, approvals and replies can allow it.
    pub policy: Policy,
    /// Why something in it cannot be undone. An approval of anything else does not cover it.
    pub irreversible: Option<&'static str>,
    /// Facts that help the user to decide, with the policy for display. No decision reads them.
    pub metadata: Map,
    /// Effects that come with the call. They can only make the decision stricter.
    pub implied: Vec<Implied>,
}

/// Which rules, approvals and replies can allow a request. A rule that denies always does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Policy {
    /// Any rule and any approval that matches.
    #[default]
    Rules,
    /// A rule or an approval that names the kind and more of the target than its scheme. A bare `*` does not count. The
    /// target is an address of this machine or of its network.
    Named,
    /// A rule of the user, or an approval, with exactly the permission and the pattern of the request.
    Exact,
    /// Another file has the normal form of this file's name: a rule that allows must have the name as it is spelled.
    Spelled,
    /// This machine cannot restrict the command: a rule of the user or an approval that names it, or a reply.
    Unenforced {
        /// Why the machine cannot restrict it, for the user.
        reason: String,
    },
    /// Only a reply, each time.
    Reply(Lift),
}

/// What a reply lifts for one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lift {
    /// The whole sandbox.
    Sandbox,
    /// The proxy: the command has the network of the machine.
    Network,
}

impl Policy {
    /// The metadata key that tells clients that a target must be named.
    pub(crate) const NAMED: &'static str = "named";
    /// The metadata key that tells clients that only exactly this target can be granted.
    pub(crate) const EXACT: &'static str = "exact";
    /// The metadata key that tells clients that another file has the normal form of the name.
    const SPELLED: &'static str = "spelled";
    /// The metadata key of the reason why a command cannot be restricted.
    pub(crate) const UNENFORCED: &'static str = "sandbox";
    /// The metadata key of the wider network.
    const NETWORK: &'static str = "network";

    /// Returns what clients display of the policy: a metadata key and its value.
    fn display(&self) -> Option<(&'static str, Value)> {
        match self {
            Self::Rules | Self::Reply(Lift::Sandbox) => None,
            Self::Named => Some((Self::NAMED, true.into())),
            Self::Exact => Some((Self::EXACT, true.into())),
            Self::Spelled => Some((Self::SPELLED, true.into())),
            Self::Unenforced { reason } => Some((Self::UNENFORCED, reason.as_str().into())),
            Self::Reply(Lift::Network) => Some((Self::NETWORK, "open".into())),
        }
    }

    /// Returns the policy of a stored request whose call waits in another process.
    ///
    /// A request that carries keys of several policies, or keys that a plugin chose, gets the strictest of them.
    pub fn of_stored(permission: &Permission, metadata: &Map) -> Self {
        let is_set = |key: &str| metadata.get(key).is_some_and(|value| *value == true);
        if *permission == Permission::Sandbox {
            let is_network = metadata.contains_key(Self::NETWORK);
            return Self::Reply(if is_network { Lift::Network } else { Lift::Sandbox });
        }
        if is_set(Self::EXACT) {
            Self::Exact
        } else if let Some(reason) = metadata.get(Self::UNENFORCED) {
            Self::Unenforced { reason: reason.as_str().unwrap_or_default().to_owned() }
        } else if is_set(Self::NAMED) {
            Self::Named
        } else if is_set(Self::SPELLED) {
            Self::Spelled
        } else {
            Self::Rules
        }
    }
}

/// Stands in the pattern of an [`Implied`] for text that is only known when the call runs.
pub const UNKNOWN: char = '\0';

/// How certain an implied effect is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Certainty {
    /// The call states it.
    #[default]
    Stated,
    /// It depends on the run. A rule that denies it leads to a question. Rules that ask are ignored, because
    /// they would ask about most calls.
    Possible,
    /// The call could not be analysed, so anything may happen. Every rule counts.
    Unknown,
}

/// An effect of a call that is checked against the rules, but not requested separately.
#[derive(Debug, Clone, PartialEq)]
pub struct Implied {
    /// The kind of effect, as in [`Ask`].
    pub permission: Permission,
    /// The effect, perhaps with [`UNKNOWN`] parts.
    pub pattern: String,
    /// The pattern of which this one is another spelling. Rules that match that pattern were already applied
    /// to it.
    pub spelled: Option<String>,
    /// The wider pattern that the reply "always" would allow, if there is a sensible one.
    pub always: Option<String>,
    /// How certain the effect is.
    pub certainty: Certainty,
    /// Why it cannot be undone. Then only a rule of the user or a reply allows it.
    pub irreversible: Option<&'static str>,
}

impl Implied {
    /// An effect that the call states.
    pub fn new(permission: impl Into<Permission>, pattern: &str) -> Self {
        Self {
            permission: permission.into(),
            pattern: pattern.to_owned(),
            spelled: None,
            always: None,
            certainty: Certainty::Stated,
            irreversible: None,
        }
    }

    /// The pattern for display.
    pub fn display(&self) -> String {
        self.pattern.replace(UNKNOWN, "\u{2026}")
    }
}

impl Ask {
    /// The metadata key of the reason why a command cannot be undone.
    pub const IRREVERSIBLE: &'static str = "irreversible";

    /// The metadata key of the reason why the call could not be analysed.
    pub const REASON: &'static str = "reason";

    /// A permission request for some patterns. The reply "always" would allow every pattern.
    pub fn new(permission: impl Into<Permission>, patterns: Vec<String>) -> Self {
        Self {
            permission: permission.into(),
            patterns,
            always: vec!["*".to_owned()],
            policy: Policy::default(),
            irreversible: None,
            metadata: Map::new(),
            implied: Vec::new(),
        }
    }

    /// Adds a fact to the metadata.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Sets the policy, and shows it in the metadata.
    #[must_use]
    pub fn under(mut self, policy: Policy) -> Self {
        self.set_policy(policy);
        self
    }

    /// Sets the policy, and shows it in the metadata.
    pub fn set_policy(&mut self, policy: Policy) {
        if let Some((key, value)) = policy.display() {
            self.metadata.insert(key.to_owned(), value);
        }
        self.policy = policy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_request_keeps_its_policy() {
        let unenforced = Policy::Unenforced { reason: "no bubblewrap".to_owned() };
        for (permission, policy) in [
            ("bash", Policy::Rules),
            ("webfetch", Policy::Named),
            ("read", Policy::Exact),
            ("read", Policy::Spelled),
            ("bash", unenforced),
            ("sandbox", Policy::Reply(Lift::Sandbox)),
            ("sandbox", Policy::Reply(Lift::Network)),
        ] {
            let ask = Ask::new(permission, vec!["x".to_owned()]).under(policy);
            assert_eq!(Policy::of_stored(&ask.permission, &ask.metadata), ask.policy);
        }
    }
}
