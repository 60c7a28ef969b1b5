//! Rules that say what a tool may do, and the question put to a user.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Map, MessageId, PermissionId, SessionId};

/// What a rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The call runs.
    Allow,
    /// A user decides.
    Ask,
    /// The call is refused, and the model is told so.
    Deny,
}

/// One rule: for calls of `permission` on something that matches `pattern`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// A permission key such as `edit` or `bash`, or a wildcard over keys.
    pub permission: String,
    /// A wildcard over what the call touches: a path, a command, a directory.
    pub pattern: String,
    /// What holds when both match.
    pub action: Action,
}

impl Rule {
    /// A rule from its three parts.
    #[must_use]
    pub fn new(permission: &str, pattern: &str, action: Action) -> Self {
        Self { permission: permission.to_owned(), pattern: pattern.to_owned(), action }
    }
}

/// A tool call that waits for a user's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRequest {
    /// The request, named in the reply.
    pub id: PermissionId,
    /// The session whose run waits.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// The permission key that asked.
    pub permission: String,
    /// What the call touches, one entry each.
    pub patterns: Vec<String>,
    /// What a client shows: a command, a path, a diff.
    pub metadata: Map,
    /// The patterns that an answer of `always` allows.
    pub always: Vec<String>,
    /// The call that waits, when it is a tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
}

/// Names one tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolRef {
    /// The assistant message that made the call.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// The provider's id of the call.
    #[serde(rename = "callID")]
    pub call_id: String,
}

/// A user's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PermissionReply {
    /// This call only.
    Once,
    /// This call and those that the request's `always` patterns match.
    Always,
    /// Not this call.
    Reject,
}
