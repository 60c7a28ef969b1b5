//! Workspace trust: what a repository asks for, and what the user decided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a directory is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrustStatus {
    /// The repository asks for nothing, so there is nothing to decide.
    Unneeded,
    /// The user has not decided about these control files.
    Undecided,
    /// The user trusts these control files.
    Trusted,
    /// The user does not trust these control files, or nobody can.
    Restricted,
}

/// An action of a repository's configuration that waits for trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustRequest {
    /// The file that asks for it, relative to the root.
    pub source: String,
    /// The key of the configuration.
    pub key: String,
    /// The action, as a person reads it.
    pub text: String,
}

/// How a control file differs from the one that was decided about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrustChangeKind {
    /// The file is new.
    Added,
    /// The file has other content.
    Changed,
    /// The file is gone.
    Removed,
}

/// A control file that changed since the user decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustChange {
    /// The file, relative to the root.
    pub path: String,
    /// How it differs.
    pub kind: TrustChangeKind,
}

/// The reply of `GET /trust`: the trust of one directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustReply {
    /// The directory that a decision is about: the worktree, or the directory itself outside of git.
    pub root: String,
    /// Whether it is trusted.
    pub status: TrustStatus,
    /// Names the control files that a decision is about.
    pub fingerprint: String,
    /// The actions that wait for trust, or that trust has allowed.
    pub requests: Vec<TrustRequest>,
    /// The control files that changed since the last decision.
    pub changes: Vec<TrustChange>,
    /// Why the directory cannot be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

/// What a user decides about a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrustChoice {
    /// Its configuration takes effect.
    Trust,
    /// Only the parts of its configuration take effect that cannot hurt.
    Restrict,
}

/// The body of `POST /trust`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustInput {
    /// The decision.
    pub decision: TrustChoice,
    /// The control files that the user was shown; a decision about others is refused.
    pub fingerprint: String,
}

/// The body of `POST /trust/dismiss`: the user was asked and has not decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustDismissal {
    /// The control files that the user was shown.
    pub fingerprint: String,
}

/// A decision that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustRecord {
    /// The directory.
    pub path: String,
    /// The decision.
    pub decision: TrustChoice,
    /// When it was made, in milliseconds since 1970.
    pub time: u64,
    /// The actions that were listed.
    pub requests: Vec<String>,
}
