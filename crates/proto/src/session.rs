//! A session: one conversation in one directory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Map, MessageId, MessageWithParts, PartId, ProjectId, Rule, SessionId};

/// One conversation, as clients list it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The session.
    pub id: SessionId,
    /// Two words for people.
    pub slug: String,
    /// The project of the directory.
    #[serde(rename = "projectID")]
    pub project_id: ProjectId,
    /// The workspace the session belongs to.
    #[serde(default, rename = "workspaceID", skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
    /// The directory the session works in, absolute.
    pub directory: String,
    /// The directory relative to the worktree; empty at its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The session that started this one as a subtask.
    #[serde(default, rename = "parentID", skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<SessionId>,
    /// What the session changed in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SessionSummary>,
    /// What the session cost, in US dollars.
    #[serde(default)]
    pub cost: f64,
    /// The tokens the session used.
    #[serde(default)]
    pub tokens: TokenUsage,
    /// Where the session is published, if it is.
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
    /// The program version that made the session.
    pub version: String,
    /// Whatever a client attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map>,
    /// Rules that hold in this session only, after all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Vec<Rule>>,
    /// Where the session was taken back to, while that can still be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<Revert>,
    /// When.
    pub time: SessionTime,
}

/// How far a session is taken back. Its messages stay until the next prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revert {
    /// The first message that no longer counts.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// The first part of that message that no longer counts; absent if none of it does.
    #[serde(default, rename = "partID", skip_serializing_if = "Option::is_none")]
    pub part_id: Option<PartId>,
    /// The worktree's tree before anything was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// What taking back changed, as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Files left as they are, because taking them back would have destroyed what a user did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptFile>,
    /// Whether no file was taken back, as was asked for.
    #[serde(default, rename = "messagesOnly", skip_serializing_if = "std::ops::Not::not")]
    pub messages_only: bool,
}

/// A file that was left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptFile {
    /// The file, relative to the worktree.
    pub file: String,
    /// Why, in words for a person.
    pub reason: String,
}

/// One item of a session's list of things to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// `pending`, `in_progress`, `completed` or `cancelled`.
    pub status: String,
    /// `high`, `medium` or `low`.
    pub priority: String,
}

/// A session with all it holds, as it is exported and imported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionExport {
    /// The session.
    pub info: Session,
    /// Its messages, oldest first.
    pub messages: Vec<MessageWithParts>,
}

/// When a session was made and last changed, in milliseconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionTime {
    /// Made.
    pub created: u64,
    /// Changed.
    pub updated: u64,
    /// Being compacted since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacting: Option<u64>,
    /// Put away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<u64>,
}

/// Where a session is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// The public address.
    pub url: String,
}

/// How much a session changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// Lines added.
    pub additions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// Files touched.
    pub files: u64,
    /// Each file, when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diffs: Option<Vec<FileDiff>>,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// The file, relative to the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Lines added.
    pub additions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// `added`, `deleted` or `modified`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// A model as a session names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelRef {
    /// The model within its provider.
    pub id: String,
    /// The provider.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// A named set of options of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// Tokens, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// The provider's own total, when it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Read and not cached.
    pub input: u64,
    /// Written, without reasoning.
    pub output: u64,
    /// Written while reasoning.
    pub reasoning: u64,
    /// Served from or put into the provider's cache.
    pub cache: CacheUsage,
}

/// Tokens that went through the provider's cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheUsage {
    /// Served from it.
    pub read: u64,
    /// Put into it.
    pub write: u64,
}

impl TokenUsage {
    /// Adds another step's usage; totals of single steps do not add up to anything and are dropped.
    pub fn add(&mut self, other: &Self) {
        self.total = None;
        self.input += other.input;
        self.output += other.output;
        self.reasoning += other.reasoning;
        self.cache.read += other.cache.read;
        self.cache.write += other.cache.write;
    }
}

/// What a session does at this moment; never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SessionStatus {
    /// Nothing.
    Idle,
    /// A turn runs.
    Busy,
    /// The provider asked for patience.
    Retry {
        /// How often the request was repeated.
        attempt: u32,
        /// What the provider said.
        message: String,
        /// When it is sent again, in milliseconds since 1970.
        next: u64,
    },
}
