//! Who replied to a permission request.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::Principal;

/// The author of a reply to a permission request.
///
/// The server sets it, as it sets the principal of a rule. Replies of versions that did not store it have none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replier {
    /// On whose behalf the reply was given. `None` if the program withdrew the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The name of the user on a server with users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How the reply came about.
    #[serde(default)]
    pub means: ReplyMeans,
}

/// How a reply to a permission request came about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReplyMeans {
    /// The principal chose it.
    #[default]
    Chosen,
    /// A client gave it without showing the request to a user, for example with `--auto`.
    Automatic,
    /// It follows from the principal's reply to another request: an approval that covers this one, or a rejection that
    /// ended the turn.
    Rule,
    /// Nobody replied: the turn was aborted, the time limit passed, or the process ended.
    Withdrawn,
}

impl Replier {
    /// Returns a principal who chooses a reply.
    #[must_use]
    pub fn new(principal: Principal) -> Self {
        Self { principal: Some(principal), ..Self::default() }
    }

    /// Returns the replier of a request that the program withdraws.
    #[must_use]
    pub fn nobody() -> Self {
        Self { means: ReplyMeans::Withdrawn, ..Self::default() }
    }

    /// Returns the same principal with other means.
    #[must_use]
    pub fn by(self, means: ReplyMeans) -> Self {
        Self { means, ..self }
    }

    /// Returns the principal and the name of the user, for example `member ann`.
    #[must_use]
    pub fn label(&self) -> String {
        let principal = self.principal.map(Principal::name);
        let words = [principal, self.name.as_deref()].into_iter().flatten();
        words.collect::<Vec<_>>().join(" ")
    }

    /// Whether clients are shown who replied. They are not if the machine has a single owner, because no other
    /// program tells them.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.principal.is_some_and(|principal| principal != Principal::Owner)
    }
}

/// Reads the author of a stored reply. One that this version does not know counts as unknown, because the reply was
/// given and must be readable.
pub(crate) fn stored<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Replier>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Replier(Replier),
        Unknown(serde::de::IgnoredAny),
    }
    Ok(match Option::<Stored>::deserialize(from)? {
        Some(Stored::Replier(replier)) => Some(replier),
        Some(Stored::Unknown(_)) | None => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Event;

    fn event(by: Option<&Value>) -> Value {
        let mut properties = json!({"sessionID": "ses_1", "requestID": "per_1", "reply": "once"});
        if let Some(by) = by {
            properties["by"] = by.clone();
        }
        json!({"type": "permission.replied", "properties": properties})
    }

    #[test]
    fn the_author_of_a_reply_is_stored_and_read_again() {
        let member = Replier { name: Some("ann".to_owned()), ..Replier::new(Principal::Member) };
        for (by, replier) in [
            (json!({"principal": "member", "name": "ann", "means": "chosen"}), member.clone()),
            (json!({"principal": "owner", "means": "automatic"}), {
                Replier::new(Principal::Owner).by(ReplyMeans::Automatic)
            }),
            (json!({"means": "withdrawn"}), Replier::nobody()),
        ] {
            let written = event(Some(&by));
            let Event::PermissionReplied { by: found, .. } = serde_json::from_value(written.clone()).unwrap()
            else {
                panic!("not a reply");
            };
            assert_eq!(found, Some(replier));
            let read: Event = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), written);
        }
    }

    #[test]
    fn a_reply_without_an_author_or_with_an_unknown_one_is_readable() {
        let unknown = json!({"principal": "committee", "means": "vote"});
        for by in [None, Some(&unknown), Some(&json!(7)), Some(&Value::Null)] {
            let read: Event = serde_json::from_value(event(by)).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), event(None), "{by:?}");
        }
    }

    #[test]
    fn the_replies_of_the_single_owner_look_as_before() {
        assert!(!Replier::new(Principal::Owner).is_shown());
        assert!(!Replier::nobody().is_shown());
        assert!(Replier::new(Principal::Operator).is_shown());
        assert!(Replier::new(Principal::Member).by(ReplyMeans::Rule).is_shown());
    }
}
