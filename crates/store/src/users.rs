//! What the store keeps about the users of a server: usage, and who did what.

use codewright_proto::SessionId;

use crate::sql::{self, Value};
use crate::{Error, Queries};

/// The number of days after which usage is forgotten.
pub(crate) const MAX_USAGE_DAYS: u64 = 62;
/// The maximum number of audit entries, and of entries about refused sign-ins, which strangers can cause.
pub(crate) const MAX_AUDIT: [u64; 2] = [100_000, 10_000];
/// The maximum number of audit entries in one page.
pub(crate) const MAX_AUDIT_PAGE: usize = 1000;
/// The longest text of an audit entry.
const MAX_TEXT_BYTES: usize = 1000;
/// The number of running sessions that are counted.
pub(crate) const MAX_RUNNING: usize = 1000;

/// The account that usage and running sessions count for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// A user.
    User(String),
    /// A team.
    Team(String),
}

impl Account {
    pub(crate) fn name(&self) -> &str {
        let (Self::User(name) | Self::Team(name)) = self;
        name
    }

    /// The statement that sums the usage of a day.
    pub(crate) fn usage(&self) -> &'static str {
        match self {
            Self::User(_) => sql::USAGE_OF_OWNER,
            Self::Team(_) => sql::USAGE_OF_TEAM,
        }
    }

    /// The statement that finds its running sessions.
    pub(crate) fn running(&self) -> &'static str {
        match self {
            Self::User(_) => sql::RUNNING_OF_OWNER,
            Self::Team(_) => sql::RUNNING_OF_TEAM,
        }
    }
}

/// The usage of a day.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// All tokens, also those of the cache.
    pub tokens: u64,
    /// The cost in US dollars.
    pub cost: f64,
}

/// The number of a day in UTC, from 1970.
#[must_use]
pub fn day_of(time_ms: u64) -> u64 {
    time_ms / 86_400_000
}

/// An entry of the audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audited {
    /// The number of the entry; a new one gets a higher number than those before it.
    pub id: u64,
    /// The time in milliseconds since 1970.
    pub time: u64,
    /// The name of the user.
    pub account: String,
    /// The action, such as `permission.reply`.
    pub action: String,
    /// The id of the object that the action changed, such as a session.
    pub target: String,
    /// The outcome.
    pub detail: String,
    /// The id of the request.
    pub request: String,
    /// Whether a sign-in was refused. These entries have a limit of their own.
    pub is_refusal: bool,
}

impl Audited {
    /// The parameters of the statement that adds the entry, with shortened texts.
    pub(crate) fn values(&self) -> Vec<Value<'_>> {
        let mut values = vec![Value::number(self.time)];
        let texts = [&self.account, &self.action, &self.target, &self.detail, &self.request];
        values.extend(texts.map(|text| Value::text(shortened(text))));
        values.push(self.is_refusal());
        values
    }

    /// The parameters of the statement that removes the oldest entries.
    pub(crate) fn trim_values(&self) -> Vec<Value<'_>> {
        vec![self.is_refusal(), Value::number(MAX_AUDIT[usize::from(self.is_refusal)])]
    }

    fn is_refusal(&self) -> Value<'_> {
        Value::Int(self.is_refusal.into())
    }
}

/// Returns the sessions that have a living owner.
pub(crate) async fn living(store: &dyn Queries, owned: Vec<SessionId>) -> Result<Vec<SessionId>, Error> {
    let mut living = Vec::new();
    for id in owned {
        if store.holder(&id).await?.is_some() {
            living.push(id);
        }
    }
    Ok(living)
}

fn shortened(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_shortened_between_characters() {
        assert_eq!(shortened(&"\u{e4}".repeat(1000)).len(), MAX_TEXT_BYTES);
        assert_eq!(shortened(&format!("a{}", "\u{e4}".repeat(1000))).len(), MAX_TEXT_BYTES - 1);
        assert_eq!(shortened("ab"), "ab");
    }
}
