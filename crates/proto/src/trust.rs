//! Workspace trust: the actions that a repository requests, and the decisions of the user.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a directory is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrustStatus {
    /// The repository requests nothing, so there is nothing to decide.
    Unneeded,
    /// The user has not decided about these control files.
    Undecided,
    /// The user trusts these control files.
    Trusted,
    /// The user does not trust these control files, or the directory cannot be trusted.
    Restricted,
}

/// An action of a repository's configuration that waits for trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustRequest {
    /// The file that requests it, relative to the root.
    pub source: String,
    /// The key of the configuration.
    pub key: String,
    /// The action, in words for the user.
    pub text: String,
}

/// How a control file differs from the version that the user decided about.
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
    /// Identifies the version of the control files that a decision is about.
    pub fingerprint: String,
    /// The actions that need trust or that trust has allowed.
    pub requests: Vec<TrustRequest>,
    /// The control files that changed since the last decision.
    pub changes: Vec<TrustChange>,
    /// Why the directory cannot be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

/// A decision about a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrustChoice {
    /// The whole configuration takes effect.
    Trust,
    /// Only the harmless parts of the configuration take effect.
    Restrict,
}

/// The body of `POST /trust`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustInput {
    /// The decision.
    pub decision: TrustChoice,
    /// The version of the control files that the user saw. A decision about other versions is rejected.
    pub fingerprint: String,
}

/// The body of `POST /trust/dismiss`: the user closed the dialog without a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustDismissal {
    /// The version of the control files that the user saw.
    pub fingerprint: String,
}

/// A stored decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustRecord {
    /// The directory.
    pub path: String,
    /// The decision.
    pub decision: TrustChoice,
    /// When it was made, in milliseconds since 1970.
    pub time: u64,
    /// The actions that were listed for the decision.
    pub requests: Vec<String>,
}
