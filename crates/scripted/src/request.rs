//! A model request, seen the same way whatever protocol it came by.

use std::sync::Arc;

use serde_json::Value;

use crate::http::Headers;
use crate::protocol::Protocol;

/// How much of a system text is read to tell what a request is for.
const SYSTEM_HEAD_CHARS: usize = 600;
/// How much of a user text is read for the same, from its beginning.
const USER_HEAD_CHARS: usize = 200;
/// How much of the last user text is read for the same, from its end.
const USER_TAIL_CHARS: usize = 6000;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It wants a title for the conversation.
    Title,
    /// It wants the conversation summed up.
    Summary,
    /// It wants the conversation to go on.
    Main,
}

/// The result of a tool call, as the client reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call it answers.
    pub id: String,
    /// Its text.
    pub text: String,
}

/// A model request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The protocol it came by.
    pub protocol: Protocol,
    /// Where it was sent, without the query.
    pub path: String,
    /// Its headers.
    pub headers: Headers,
    /// Its body as sent.
    pub body: Arc<Value>,
    /// The model asked for.
    pub model: String,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// All system text.
    pub system: String,
    /// The text of each user message.
    pub users: Vec<String>,
    /// The names of the tools on offer.
    pub tools: Vec<String>,
    /// Every tool result of the conversation, oldest first.
    pub results: Vec<ToolResult>,
    /// How many answers the model has given since the user last spoke.
    pub round: usize,
    /// How many requests this conversation's script has answered before.
    pub turn: usize,
}

/// What a protocol reads out of a body.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) system: String,
    pub(crate) users: Vec<String>,
    pub(crate) tools: Vec<String>,
    pub(crate) results: Vec<ToolResult>,
    pub(crate) round: usize,
}

impl Request {
    /// Reads a request; what is missing or misshapen reads as empty.
    pub(crate) fn read(protocol: Protocol, path: &str, headers: Headers, body: Arc<Value>) -> Self {
        let View { system, users, tools, results, round } = protocol.view(&body);
        let (model, stream) = protocol.asked(path, &body);
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

    /// What the request is for, told by its words: only requests without tools
    /// can want a title or a summary.
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

    /// What the user said last.
    pub fn last_user(&self) -> &str {
        self.users.last().map_or("", String::as_str)
    }

    /// The newest tool result.
    pub fn last_result(&self) -> Option<&ToolResult> {
        self.results.last()
    }

    /// Whether a tool of this name is on offer.
    pub fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }
}

/// All text in a message content, whatever its shape.
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
    fn a_request_is_told_by_its_words() {
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
