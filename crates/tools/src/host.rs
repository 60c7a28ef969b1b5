//! The host of a call: it does the things that need a user, a session or another agent.
//!
//! A tool sees neither the session nor the user. It turns the host's replies into text for the model.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ToolError;
use crate::tool::Boxed;

/// The environment of a call.
pub trait Host: Send + Sync {
    /// Puts questions to the user and waits for the answers. Returns `None` if the user dismisses them.
    fn ask_user(&self, questions: Vec<Question>) -> Boxed<'_, Option<Answers>>;
    /// Starts a subagent and waits for its result, unless it runs in the background.
    fn delegate(&self, input: TaskInput) -> Boxed<'_, TaskOutcome>;
    /// The path of the session's plan file, for display.
    fn plan_file(&self) -> Boxed<'_, String>;
    /// Continues the session with another agent, which gets `reason` as a prompt.
    fn switch_agent<'a>(&'a self, agent: &'a str, reason: String) -> Boxed<'a, ()>;
    /// Asks the language servers of a file.
    fn query_language(&self, query: LanguageQuery) -> Boxed<'_, LanguageAnswer>;
    /// Has the session's model write an answer outside of the conversation.
    fn complete(&self, wanted: Completion) -> Boxed<'_, Completed>;

    /// The call and its session, if there is one.
    fn identity(&self) -> Option<CallIdentity> {
        None
    }
}

/// A request for an answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The system text.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<CompletionMessage>,
    /// The limit of the answer in tokens.
    pub max_tokens: u64,
    /// The sampling temperature, if set.
    pub temperature: Option<f64>,
}

/// A message of a request for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionMessage {
    /// From the user.
    User(String),
    /// From the model.
    Model(String),
}

/// An answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// The text.
    pub text: String,
    /// The name of the model.
    pub model: String,
    /// Whether it ended because of its length.
    pub is_cut: bool,
}

/// The ids of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallIdentity {
    /// The session.
    pub session: String,
    /// The message of the model.
    pub message: String,
    /// The call.
    pub call: String,
    /// The agent.
    pub agent: String,
}

/// A question about code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageQuery {
    /// The kind of question, such as `goToDefinition`.
    pub operation: String,
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: u32,
    /// The character in the line, counted from 1.
    pub character: u32,
    /// The name for a search in the project.
    pub name: String,
}

/// The answer to a question about code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LanguageAnswer {
    /// Lines for the model. Empty if nothing was found.
    pub text: String,
    /// The entries in the form of the protocol.
    pub entries: Vec<Value>,
}

/// A task for a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TaskInput {
    /// A short title.
    pub description: String,
    /// The instructions for the subagent.
    pub prompt: String,
    /// The name of the subagent.
    #[serde(rename = "subagent_type")]
    pub agent: String,
    /// The id of an earlier task to continue.
    pub task_id: Option<String>,
    /// The slash command that led to the task.
    pub command: Option<String>,
    /// Whether to continue without waiting for the result.
    pub background: Option<bool>,
}

/// The state of a task that was started.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskOutcome {
    /// Its id, which can be used to continue it.
    pub task_id: String,
    /// The last answer of the subagent, or `None` while it runs.
    pub result: Option<String>,
    /// Facts for clients.
    pub metadata: Map<String, Value>,
}

/// The chosen labels or typed answers, one list for each question.
pub type Answers = Vec<Vec<String>>;

/// One question to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The whole question.
    pub question: String,
    /// A short title.
    pub header: String,
    /// The choices.
    pub options: Vec<Choice>,
    /// Whether several choices are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple: Option<bool>,
    /// Whether the user may type an answer. `None` means yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<bool>,
}

/// One choice of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The text on the screen and in the answer.
    pub label: String,
    /// An explanation.
    pub description: String,
}

/// A host without a user, a session or agents.
#[derive(Debug, Clone, Copy)]
pub struct NoHost;

impl Host for NoHost {
    fn ask_user(&self, _questions: Vec<Question>) -> Boxed<'_, Option<Answers>> {
        Box::pin(async { Err(ToolError::model("there is no user to ask")) })
    }

    fn delegate(&self, _input: TaskInput) -> Boxed<'_, TaskOutcome> {
        Box::pin(async { Err(ToolError::model("there is no other agent")) })
    }

    fn plan_file(&self) -> Boxed<'_, String> {
        Box::pin(async { Err(ToolError::model("there is no plan")) })
    }

    fn switch_agent<'a>(&'a self, _agent: &'a str, _reason: String) -> Boxed<'a, ()> {
        Box::pin(async { Err(ToolError::model("there is no other agent")) })
    }

    fn query_language(&self, _query: LanguageQuery) -> Boxed<'_, LanguageAnswer> {
        Box::pin(async { Err(ToolError::model("there is no language server")) })
    }

    fn complete(&self, _wanted: Completion) -> Boxed<'_, Completed> {
        Box::pin(async { Err(ToolError::model("there is no model")) })
    }
}
