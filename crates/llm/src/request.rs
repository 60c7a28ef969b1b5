//! What to ask: a conversation, tools and sampling, free of any wire protocol.

use serde_json::{Map, Value};

/// Where a request says which session it belongs to.
const SESSION_HEADER: &str = "x-session-id";

/// One question to a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The system text; empty means none.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools the model may call, in the order they are sent.
    pub tools: Vec<ToolSpec>,
    /// Whether it must call one; not sent without tools.
    pub tool_choice: ToolChoice,
    /// Tokens the answer may have; zero sends no limit where the protocol allows it.
    pub max_output_tokens: u64,
    /// Sampling temperature, if one is to be sent.
    pub temperature: Option<f64>,
    /// Nucleus sampling, if it is to be sent.
    pub top_p: Option<f64>,
    /// Headers of this request, such as `x-session-id`.
    pub headers: Vec<(String, String)>,
    /// Merged into the body after the model's own options; `null` removes a
    /// field. Both the wire's spelling (`reasoning_effort`) and the one config
    /// files use (`reasoningEffort`) are understood.
    pub options: Map<String, Value>,
}

impl Request {
    /// The session the request belongs to, as its headers say.
    pub(crate) fn session(&self) -> Option<&str> {
        let named = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(SESSION_HEADER));
        named.map(|(_, id)| id.as_str())
    }
}

/// One turn of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// What the user said.
    User(Vec<UserContent>),
    /// What the model said.
    Assistant(Vec<AssistantContent>),
    /// What the tools answered to the calls before.
    Tool(Vec<ToolResult>),
}

/// A piece of a user's message.
#[derive(Debug, Clone, PartialEq)]
pub enum UserContent {
    /// Words.
    Text(String),
    /// A file.
    File(File),
}

/// A file for the model to look at.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Its media type.
    pub mime: String,
    /// Its name, if it has one.
    pub filename: Option<String>,
    /// Its content.
    pub data: FileData,
}

/// Where a file's content is.
#[derive(Debug, Clone, PartialEq)]
pub enum FileData {
    /// The content itself, in base64.
    Base64(String),
    /// An address the provider can fetch.
    Url(String),
}

/// A piece of a model's message.
#[derive(Debug, Clone, PartialEq)]
pub enum AssistantContent {
    /// Words.
    Text(String),
    /// Thought, with whatever the provider needs to recognise it again.
    Reasoning {
        /// The thought in words; may be empty when the provider hides it.
        text: String,
        /// As `ModelEvent::ReasoningEnd` gave it.
        metadata: Option<Value>,
    },
    /// A call of a tool.
    ToolCall {
        /// The call's id; a [`ToolResult`] answers it.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments.
        input: Value,
    },
    /// What belongs to the words or the call before it, as `ModelEvent::Metadata` gave it.
    Metadata(Value),
}

/// What a tool answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// The call this answers.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The answer in words.
    pub output: String,
    /// The call failed and `output` says why.
    pub is_error: bool,
    /// Files that belong to the answer.
    pub attachments: Vec<File>,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name it is called by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments, sent unchanged.
    pub parameters: Value,
}

/// Whether the model must call a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must call one.
    Required,
    /// It must not.
    None,
}
