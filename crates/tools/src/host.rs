//! What a call may ask of whoever runs it: things that no tool can do alone.
//!
//! A tool sees no session and no user. What it needs of them it asks of its host, whose answer
//! it puts in the words that models know.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ToolError;
use crate::tool::Boxed;

/// Whoever runs a call.
pub trait Host: Send + Sync {
    /// Puts questions to the user and waits; `None` if the user would not answer.
    fn ask_user(&self, questions: Vec<Question>) -> Boxed<'_, Option<Answers>>;
    /// Hands work to another agent and waits for its end, unless it is to go on in the background.
    fn delegate(&self, work: Work) -> Boxed<'_, Handed>;
    /// The file that holds the session's plan, as it is shown.
    fn plan_file(&self) -> Boxed<'_, String>;
    /// Lets another agent go on with the session, which is told why.
    fn switch_agent<'a>(&'a self, agent: &'a str, word: String) -> Boxed<'a, ()>;
}

/// Work for another agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Work {
    /// A few words for it.
    pub description: String,
    /// What is to be done.
    pub prompt: String,
    /// Who does it.
    #[serde(rename = "subagent_type")]
    pub agent: String,
    /// Earlier work that this goes on with.
    pub task_id: Option<String>,
    /// The command it came from.
    pub command: Option<String>,
    /// Whether nobody waits for it.
    pub background: Option<bool>,
}

/// Work that was handed over.
#[derive(Debug, Clone, PartialEq)]
pub struct Handed {
    /// Its name, with which it can be gone on with.
    pub task_id: String,
    /// What the other agent said last; `None` while it works.
    pub result: Option<String>,
    /// Facts for clients.
    pub metadata: Map<String, Value>,
}

/// What was chosen or written, a list for each question in order.
pub type Answers = Vec<Vec<String>>;

/// One question to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The whole question.
    pub question: String,
    /// A few words that stand for it.
    pub header: String,
    /// What may be chosen.
    pub options: Vec<Choice>,
    /// Whether several may be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple: Option<bool>,
    /// Whether the user may write an answer of their own; so if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<bool>,
}

/// One thing that may be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What is shown, and what the answer says.
    pub label: String,
    /// What it means.
    pub description: String,
}

/// A host that has nobody to turn to.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl Host for Nobody {
    fn ask_user(&self, _questions: Vec<Question>) -> Boxed<'_, Option<Answers>> {
        Box::pin(async { Err(ToolError::model("there is no user to ask")) })
    }

    fn delegate(&self, _work: Work) -> Boxed<'_, Handed> {
        Box::pin(async { Err(ToolError::model("there is no other agent")) })
    }

    fn plan_file(&self) -> Boxed<'_, String> {
        Box::pin(async { Err(ToolError::model("there is no plan")) })
    }

    fn switch_agent<'a>(&'a self, _agent: &'a str, _word: String) -> Boxed<'a, ()> {
        Box::pin(async { Err(ToolError::model("there is no other agent")) })
    }
}
