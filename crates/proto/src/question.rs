//! Questions of the model to the user.
//!
//! A question is not stored. The user can answer it while its tool call waits; the answer is
//! stored with the call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{QuestionId, SessionId, ToolRef};

/// A group of questions that waits for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionRequest {
    /// The id of the request, used in the reply.
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
    /// The full text of the question.
    pub question: String,
    /// A short label.
    pub header: String,
    /// The options to choose from.
    pub options: Vec<QuestionOption>,
    /// Whether the user may choose several options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple: Option<bool>,
    /// Whether the user may write a different answer. Defaults to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<bool>,
}

/// An option of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionOption {
    /// The displayed text, which is also the answer.
    pub label: String,
    /// An explanation of the option.
    pub description: String,
}

/// The body of `POST /question/{id}/reply`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswers {
    /// The answers: one list per question, in order.
    pub answers: Vec<Vec<String>>,
}
