//! Questions that a model puts to a user while it works.
//!
//! A question is live: it can be answered for as long as its call waits, and what came of it
//! is kept with the call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{QuestionId, SessionId, ToolRef};

/// Questions that wait for a user, put together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionRequest {
    /// The request, named in the answer.
    pub id: QuestionId,
    /// The session whose run waits.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// The questions, in order.
    pub questions: Vec<Question>,
    /// The call that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The whole question.
    pub question: String,
    /// A few words that stand for it.
    pub header: String,
    /// What may be chosen.
    pub options: Vec<QuestionOption>,
    /// Whether several may be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple: Option<bool>,
    /// Whether the user may write an answer of their own; so if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<bool>,
}

/// One thing that may be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionOption {
    /// What is shown, and what the answer says.
    pub label: String,
    /// What it means.
    pub description: String,
}

/// The body of `POST /question/{id}/reply`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswers {
    /// What was chosen or written, a list for each question in order.
    pub answers: Vec<Vec<String>>,
}
