//! A model request, independent of its protocol.

use std::sync::Arc;

use serde_json::Value;

use crate::http::Headers;
use crate::protocol::Protocol;

/// The part of the system prompt that is searched for the request's purpose.
const SYSTEM_HEAD_CHARS: usize = 600;
/// The part of a user text that is searched, from its start.
const USER_HEAD_CHARS: usize = 200;
/// The part of the last user text that is searched, from its end.
const USER_TAIL_CHARS: usize = 6000;

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It requests a title.
    Title,
    /// It requests a summary.
    Summary,
    /// It continues the conversation.
    Main,
}

/// The result of a tool call, as sent by the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The text.
    pub text: String,
}

/// A model request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its protocol.
    pub protocol: Protocol,
    /// Its path, without the query.
    pub path: String,
    /// Its headers.
    pub headers: Headers,
    /// Its body as sent.
    pub body: Arc<Value>,
    /// The requested model.
    pub model: String,
    /// Whether the answer must be streamed.
    pub stream: bool,
    /// The system prompt.
    pub system: String,
    /// The text of each user message.
    pub users: Vec<String>,
    /// The names of the offered tools.
    pub tools: Vec<String>,
    /// All tool results in the conversation, oldest first.
    pub results: Vec<ToolResult>,
    /// The number of the model's answers since the user's last message.
    pub round: usize,
    /// The number of requests that this conversation's script has answered before.
    pub turn: usize,
}

/// The parts of a body that all protocols share.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) system: String,
    pub(crate) users: Vec<String>,
    pub(crate) tools: Vec<String>,
    pub(crate) results: Vec<ToolResult>,
    pub(crate) round: usize,
}

impl Request {
    /// Parses a request. Missing or invalid parts become empty.
    pub(crate) fn read(protocol: Protocol, path: &str, headers: Headers, body: Arc<Value>) -> Self {
        let View { system, users, tools, results, round } = protocol.view(&body);
        let (model, stream) = protocol.requested_model(path, &body);
        Self {
            protocol,
            path: path.to_owned(),
            headers,
            model,
            stream,
            body,
            system,
            users,
            tools,
            results,
            round,
            turn: 0,
        }
    }

    /// Returns the purpose of the request, detected from its text. Only requests without tools can
    /// request a title or a summary.
    pub fn kind(&self) -> Kind {
        if !self.tools.is_empty() {
            return Kind::Main;
        }
        let system = head(&self.system, SYSTEM_HEAD_CHARS).to_lowercase();
        let opens = |user: &String| head(user, USER_HEAD_CHARS).to_lowercase().contains("generate a title");
        if system.contains("title") || self.users.iter().any(opens) {
            return Kind::Title;
        }
        let closes = |user: &String| tail(user, USER_TAIL_CHARS).to_lowercase().contains("summar");
        if system.contains("summar") || system.contains("compact") || self.users.last().is_some_and(closes) {
            return Kind::Summary;
        }
        Kind::Main
    }

    /// Returns the last text of the user.
    pub fn last_user(&self) -> &str {
        self.users.last().map_or("", String::as_str)
    }

    /// Returns the latest tool result.
    pub fn last_result(&self) -> Option<&ToolResult> {
        self.results.last()
    }

    /// Returns whether a tool is offered.
    pub fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }
}

/// Returns all text in a message content of any form.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(part) => {
            let inner = ["text", "content", "parts"].iter().find_map(|key| part.get(*key));
            inner.map(text_of).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}

fn tail(text: &str, chars: usize) -> &str {
    text.char_indices().nth_back(chars.saturating_sub(1)).map_or(text, |(at, _)| &text[at..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(body: Value, expected: Kind) {
        let request =
            Request::read(Protocol::Chat, "/v1/chat/completions", Headers::default(), Arc::new(body));
        assert_eq!(request.kind(), expected);
    }

    #[test]
    fn the_text_determines_the_purpose() {
        let user = json!({"role": "user", "content": "hello"});
        let system = |text: &str| json!({"role": "system", "content": text});
        check(json!({"messages": [user]}), Kind::Main);
        check(json!({"messages": [system("You write a Title."), user]}), Kind::Title);
        check(
            json!({"messages": [{"role": "user", "content": "Generate a title for this conversation:"}]}),
            Kind::Title,
        );
        check(json!({"messages": [system("You are good at summaries."), user]}), Kind::Summary);
        check(
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "Summarize"}]}]}),
            Kind::Summary,
        );
    }

    #[test]
    fn a_request_with_tools_is_never_for_a_title() {
        let tools = json!([{"type": "function", "function": {"name": "read"}}]);
        check(json!({"messages": [{"role": "system", "content": "title"}], "tools": tools}), Kind::Main);
    }
}
