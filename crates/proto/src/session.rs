//! A session: one conversation in one directory.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Map, MessageId, MessageWithParts, PartId, ProjectId, Rule, SessionId};

/// A session: one conversation in one directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The id of the session.
    pub id: SessionId,
    /// A readable name of two words.
    pub slug: String,
    /// The project of the directory.
    #[serde(rename = "projectID")]
    pub project_id: ProjectId,
    /// The workspace the session belongs to.
    #[serde(default, rename = "workspaceID", skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
    /// The absolute path of the directory that the session works in.
    pub directory: String,
    /// The directory relative to the worktree; empty at its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The session that started this one as a subtask.
    #[serde(default, rename = "parentID", skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<SessionId>,
    /// All changes of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SessionSummary>,
    /// The cost of the session in US dollars.
    #[serde(default)]
    pub cost: f64,
    /// The tokens the session used.
    #[serde(default)]
    pub tokens: TokenUsage,
    /// Where the session is shared, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// A short title.
    pub title: String,
    /// The agent of the last prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model of the last prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// The program version that created the session.
    pub version: String,
    /// Arbitrary data stored by a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map>,
    /// Permission rules for this session only, applied after all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Vec<Rule>>,
    /// The state of a revert, while it can still be unreverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<Revert>,
    /// Who may use the session, on a server with several users. The access of a subagent's session is that of the
    /// session that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<SessionAccess>,
    /// The times of the session.
    pub time: SessionTime,
}

/// The owner of a session, and those with whom it is shared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionAccess {
    /// The name of the user who owns the session.
    pub owner: String,
    /// The team whose quota the session counts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// The teams that may use the session.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shared: BTreeMap<String, ShareMode>,
    /// Whether only administrators have created the session and set its rules. The rules of other sessions can only make
    /// decisions stricter. Sessions from before this field count as those of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub admin: bool,
}

/// What the members of a team may do with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShareMode {
    /// Read it.
    Read,
    /// Read it, send prompts, answer requests and change it.
    Full,
}

/// The state of a reverted session. The reverted messages are deleted by the next prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revert {
    /// The first reverted message.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// The first reverted part of that message. Absent if the whole message is reverted.
    #[serde(default, rename = "partID", skip_serializing_if = "Option::is_none")]
    pub part_id: Option<PartId>,
    /// The snapshot of the worktree before the revert.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The reverted file changes as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Files that were not reverted, because that would have destroyed changes of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptFile>,
    /// Whether only messages were reverted, as requested.
    #[serde(default, rename = "messagesOnly", skip_serializing_if = "std::ops::Not::not")]
    pub messages_only: bool,
}

/// A file that was not reverted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptFile {
    /// The file, relative to the worktree.
    pub file: String,
    /// The reason, for the user.
    pub reason: String,
}

/// An item of a session's todo list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// The task.
    pub content: String,
    /// `pending`, `in_progress`, `completed` or `cancelled`.
    pub status: String,
    /// `high`, `medium` or `low`.
    pub priority: String,
}

/// A session with its messages, in the format of exports and imports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionExport {
    /// The session.
    pub info: Session,
    /// The messages, oldest first.
    pub messages: Vec<MessageWithParts>,
}

/// The times of a session, in milliseconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionTime {
    /// When it was created.
    pub created: u64,
    /// When it was last changed.
    pub updated: u64,
    /// When the current compaction started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacting: Option<u64>,
    /// When it was archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<u64>,
}

/// The share of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// The public URL.
    pub url: String,
}

/// The size of a session's changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// Added lines.
    pub additions: u64,
    /// Removed lines.
    pub deletions: u64,
    /// Changed files.
    pub files: u64,
    /// The diff of each file, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diffs: Option<Vec<FileDiff>>,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// The file, relative to the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Added lines.
    pub additions: u64,
    /// Removed lines.
    pub deletions: u64,
    /// `added`, `deleted` or `modified`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// A model in the form that sessions use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelRef {
    /// The model id at the provider.
    pub id: String,
    /// The provider.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// A named set of options of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// Token counts of the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// The total, if the provider reports one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Input tokens outside of the cache.
    pub input: u64,
    /// Output tokens without reasoning.
    pub output: u64,
    /// Reasoning tokens.
    pub reasoning: u64,
    /// Tokens read from or written to the cache.
    pub cache: CacheUsage,
}

/// Token counts of the provider's cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheUsage {
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to the cache.
    pub write: u64,
}

impl TokenUsage {
    /// Returns the number of all tokens, also those of the cache.
    #[must_use]
    pub fn all(&self) -> u64 {
        let counts = [self.input, self.output, self.reasoning, self.cache.read, self.cache.write];
        counts.into_iter().fold(0, u64::saturating_add)
    }

    /// Adds the usage of another step. The `total` is dropped, because the totals of single steps do not add up.
    pub fn add(&mut self, other: &Self) {
        self.total = None;
        self.input += other.input;
        self.output += other.output;
        self.reasoning += other.reasoning;
        self.cache.read += other.cache.read;
        self.cache.write += other.cache.write;
    }
}

/// The current activity of a session; never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SessionStatus {
    /// The session waits for a prompt.
    Idle,
    /// A turn is running.
    Busy,
    /// The provider is busy; the request will be retried.
    Retry {
        /// The number of retries so far.
        attempt: u32,
        /// The message of the provider.
        message: String,
        /// The time of the next attempt, in milliseconds since 1970.
        next: u64,
    },
}
