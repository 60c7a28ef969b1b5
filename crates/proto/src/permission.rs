//! Permission rules, and permission requests with their replies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Map, MessageId, PermissionId, Principal, SessionId};

/// The decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The call runs.
    Allow,
    /// The user decides.
    Ask,
    /// The call is denied, and the model receives an error.
    Deny,
}

/// A permission rule: the action for calls of `permission` on objects that match `pattern`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// A permission key such as `edit` or `bash`, or a wildcard for keys.
    pub permission: String,
    /// A wildcard for the object of the call: a path, a command, a directory.
    pub pattern: String,
    /// The decision if both match.
    pub action: Action,
    /// Who set a rule of a session. It is missing if that is the owner of the machine, and in rules that older versions
    /// stored. The server sets it and ignores what clients send.
    ///
    /// Earlier versions marked rules of imported documents with `imported`.
    #[serde(
        default,
        alias = "imported",
        deserialize_with = "crate::principal::stored",
        skip_serializing_if = "Option::is_none"
    )]
    pub by: Option<Principal>,
}

impl Rule {
    /// Returns a rule with these fields.
    #[must_use]
    pub fn new(permission: &str, pattern: &str, action: Action) -> Self {
        Self { permission: permission.to_owned(), pattern: pattern.to_owned(), action, by: None }
    }
}

/// A request for the user's permission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRequest {
    /// The id of the request, used in the reply.
    pub id: PermissionId,
    /// The session whose run waits.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// The permission key.
    pub permission: String,
    /// The objects of the call, such as paths or commands.
    pub patterns: Vec<String>,
    /// Details that clients display: a command, a path, a diff.
    pub metadata: Map,
    /// The patterns that the reply `always` allows.
    pub always: Vec<String>,
    /// The call that waits, if it is a tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
}

/// A reference to a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolRef {
    /// The assistant message that made the call.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// The id that the provider gave the call.
    #[serde(rename = "callID")]
    pub call_id: String,
}

/// The reply to a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PermissionReply {
    /// Allows this call only.
    Once,
    /// Allows this call and all calls that the `always` patterns of the request match.
    Always,
    /// Denies this call.
    Reject,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_stored_rule_keeps_its_principal_and_older_marks_are_understood() {
        for (mark, by, stored) in [
            (json!({}), None, json!({})),
            (json!({"by": "member"}), Some(Principal::Member), json!({"by": "member"})),
            (json!({"by": null}), None, json!({})),
            (json!({"imported": true}), Some(Principal::Document), json!({"by": "document"})),
            (json!({"imported": false}), None, json!({})),
            (json!({"by": "emperor"}), Some(Principal::Model), json!({"by": "model"})),
            (json!({"by": {"name": "x"}}), Some(Principal::Model), json!({"by": "model"})),
        ] {
            let with = |more: &Value| {
                let mut rule = json!({"permission": "bash", "pattern": "*", "action": "allow"});
                rule.as_object_mut()
                    .into_iter()
                    .for_each(|rule| rule.extend(more.as_object().cloned().unwrap()));
                rule
            };
            let rule: Rule = serde_json::from_value(with(&mark)).unwrap();
            assert_eq!(rule.by, by, "{mark}");
            assert_eq!(serde_json::to_value(&rule).unwrap(), with(&stored), "{mark}");
        }
    }
}
