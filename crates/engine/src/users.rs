//! The quotas of users and teams.
//!
//! Usage is counted in the store, in the transaction that stores an answer, so every server counts the same. A day is a day
//! in UTC.

pub(crate) mod operations;
pub(crate) mod quota;

use std::collections::HashMap;
use std::sync::OnceLock;

use codewright_store::{Account, Usage};
use serde::Deserialize;
use tokio::sync::Mutex;

/// The limits of an account. A missing one does not limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    /// The number of sessions that work at the same time, without those of subagents.
    pub sessions: Option<u64>,
    /// The tokens in a day.
    pub tokens: Option<u64>,
    /// The US dollars in a day.
    pub cost: Option<f64>,
}

impl Quota {
    /// Returns the limits with those of `default` where they are missing.
    fn or(self, default: Self) -> Self {
        Self {
            sessions: self.sessions.or(default.sessions),
            tokens: self.tokens.or(default.tokens),
            cost: self.cost.or(default.cost),
        }
    }

    /// Returns the limit that the usage of a day has reached.
    fn reached(self, used: Usage) -> Option<String> {
        if let Some(limit) = self.tokens.filter(|limit| used.tokens >= *limit) {
            return Some(format!("{limit} tokens a day"));
        }
        self.cost.filter(|limit| used.cost >= *limit).map(|limit| format!("{limit} US dollars a day"))
    }
}

/// The quotas of all accounts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// The quota of each user.
    pub user: Quota,
    /// Other quotas, by the name of the user.
    pub users: HashMap<String, Quota>,
    /// The quota of each team.
    pub team: Quota,
    /// Other quotas, by the name of the team.
    pub teams: HashMap<String, Quota>,
}

impl Quotas {
    /// Returns the quota of an account.
    #[must_use]
    pub fn of(&self, account: &Account) -> Quota {
        let (own, default) = match account {
            Account::User(name) => (self.users.get(name), self.user),
            Account::Team(name) => (self.teams.get(name), self.team),
        };
        own.copied().unwrap_or_default().or(default)
    }
}

/// The quotas of this process.
#[derive(Default)]
pub(crate) struct QuotaState {
    quotas: OnceLock<Quotas>,
    /// Held while a session of a limited account starts to work, so that two do not pass as the last one.
    starting: Mutex<()>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_account_has_its_own_limits_and_the_others_of_its_kind() {
        let quotas: Quotas = serde_json::from_value(json!({
            "user": {"tokens": 10, "sessions": 2}, "users": {"a": {"tokens": 20}}, "teams": {"t": {"cost": 1.5}},
        }))
        .unwrap();
        let of = |account| quotas.of(&account);
        assert_eq!(of(Account::User("a".into())).tokens, Some(20));
        assert_eq!(of(Account::User("a".into())).sessions, Some(2));
        assert_eq!(of(Account::User("b".into())).tokens, Some(10));
        assert_eq!(of(Account::Team("t".into())).cost, Some(1.5));
        assert_eq!(of(Account::Team("a".into())), Quota::default());
    }

    #[test]
    fn a_quota_is_reached_when_all_of_it_is_used() {
        let quota = Quota { sessions: None, tokens: Some(10), cost: Some(0.5) };
        for (tokens, cost, expected) in
            [(9, 0.4, None), (10, 0.0, Some("10 tokens a day")), (0, 0.5, Some("0.5 US dollars a day"))]
        {
            assert_eq!(quota.reached(Usage { tokens, cost }).as_deref(), expected, "{tokens} {cost}");
        }
        assert_eq!(Quota::default().reached(Usage { tokens: u64::MAX, cost: 1e9 }), None);
    }
}
