//! A request to a model: conversation, tools and sampling, independent of the wire protocol.

use serde_json::{Map, Value};

/// Some servers reject an empty result, but every call needs one.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// The header with the session's id.
const SESSION_HEADER: &str = "x-session-id";

/// A request to a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The system prompt; may be empty.
    pub system: String,
    /// More pieces of the system prompt, sent after it as messages or blocks of their own.
    pub more_system: Vec<String>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools that the model may call, in the order in which they are sent.
    pub tools: Vec<ToolSpec>,
    /// Whether the model must call a tool. Not sent without tools.
    pub tool_choice: ToolChoice,
    /// Limit of the answer in tokens. With zero, no limit is sent if the protocol allows it.
    pub max_output_tokens: u64,
    /// The sampling temperature, if set.
    pub temperature: Option<f64>,
    /// Nucleus sampling, if set.
    pub top_p: Option<f64>,
    /// Extra headers, such as `x-session-id`.
    pub headers: Vec<(String, String)>,
    /// Merged into the body after the model's options; `null` removes a field. Accepts the wire
    /// format's spelling (`reasoning_effort`) and the one of configuration files
    /// (`reasoningEffort`).
    pub options: Map<String, Value>,
}

impl Request {
    /// Returns the pieces of the system prompt that contain text.
    pub(crate) fn system_pieces(&self) -> impl Iterator<Item = &str> {
        let pieces = [&self.system].into_iter().chain(&self.more_system).map(String::as_str);
        pieces.filter(|piece| !piece.trim().is_empty())
    }

    /// Returns whether the conversation contains files.
    pub(crate) fn has_files(&self) -> bool {
        self.messages.iter().any(|message| match message {
            Message::User(content) => content.iter().any(|part| matches!(part, UserContent::File(_))),
            Message::Tool(results) => results.iter().any(|result| !result.attachments.is_empty()),
            Message::Assistant(_) => false,
        })
    }

    /// Returns the session's id from the headers.
    pub(crate) fn session(&self) -> Option<&str> {
        let named = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(SESSION_HEADER));
        named.map(|(_, id)| id.as_str())
    }
}

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// From the user.
    User(Vec<UserContent>),
    /// From the model.
    Assistant(Vec<AssistantContent>),
    /// The results of the calls in the message before.
    Tool(Vec<ToolResult>),
}

/// A part of a user's message.
#[derive(Debug, Clone, PartialEq)]
pub enum UserContent {
    /// Text.
    Text(String),
    /// A file.
    File(File),
}

/// A file for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// The media type.
    pub mime: String,
    /// The name, if it has one.
    pub filename: Option<String>,
    /// The content.
    pub data: FileData,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum FileData {
    /// The content itself, in base64.
    Base64(String),
    /// A URL from which the provider can download it.
    Url(String),
}

/// A part of a model's message.
#[derive(Debug, Clone, PartialEq)]
pub enum AssistantContent {
    /// Text.
    Text(String),
    /// Reasoning, with the data that the provider needs to recognize it.
    Reasoning {
        /// The text; may be empty if the provider hides it.
        text: String,
        /// The value from `ModelEvent::ReasoningEnd`.
        metadata: Option<Value>,
    },
    /// A tool call.
    ToolCall {
        /// The call's id; a [`ToolResult`] refers to it.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments.
        input: Value,
    },
    /// Data of the text or the call before it, from `ModelEvent::Metadata`.
    Metadata(Value),
}

/// The result of a tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The output text.
    pub output: String,
    /// The call failed, and `output` contains the error.
    pub is_error: bool,
    /// Files that belong to the result.
    pub attachments: Vec<File>,
}

/// A tool, as described to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The JSON schema of the arguments, sent unchanged.
    pub parameters: Value,
}

/// Whether the model must call a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must call a tool.
    Required,
    /// The model must not call a tool.
    None,
}
