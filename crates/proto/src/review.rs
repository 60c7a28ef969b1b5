//! Reviews of changes: the request to a model, and the findings in its answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PromptInput, SessionInput};

/// The reply of `GET /experimental/review`: the session and the prompt of a review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewRequest {
    /// The session, whose rules allow reading and nothing else.
    pub session: SessionInput,
    /// The prompt. The client adds the model.
    pub prompt: PromptInput,
}

/// The reply of `GET /session/{id}/review`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// A short judgement of the whole change.
    pub summary: String,
    /// The findings, most severe first.
    pub findings: Vec<Finding>,
    /// A line for each finding that was left out.
    #[serde(default)]
    pub problems: Vec<String>,
}

/// A problem in a changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The file, relative to the root of the repository.
    pub file: String,
    /// The first line, from 1.
    pub line: u64,
    /// The last line.
    #[serde(default)]
    pub end_line: Option<u64>,
    /// How bad the problem is.
    pub severity: Severity,
    /// The problem in one line.
    pub title: String,
    /// When it happens, and why.
    pub description: String,
    /// The lines that `suggestion` replaces, as they are in the file. Absent if the suggestion is a sentence.
    #[serde(default)]
    pub original: Option<String>,
    /// The replacement of the lines, or a sentence.
    #[serde(default)]
    pub suggestion: Option<String>,
    /// The suggestion as a patch for `POST /vcs/apply`. Absent if the file does not have the original lines.
    #[serde(default)]
    pub patch: Option<String>,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A detail.
    Low,
    /// A problem in rare situations.
    Medium,
    /// A bug that users meet.
    High,
    /// Loss of data, a security hole or a crash.
    Critical,
}

impl Severity {
    /// Every severity, most severe first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Medium, Self::Low];

    /// Returns the name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// The reply of `POST /experimental/bug`: a report for the developers, without credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BugReport {
    /// The name of the file to write.
    pub name: String,
    /// Its content.
    pub text: String,
    /// What to do with the file.
    pub advice: String,
}
