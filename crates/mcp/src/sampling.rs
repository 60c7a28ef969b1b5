//! Requests of servers for answers of the model (sampling).
//!
//! Only a server whose configuration permits it can send them. They contain text only, and their size is limited.

#![expect(deprecated, reason = "servers still use sampling, which the newest protocol drops")]

use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage};

/// The limit of messages in a request.
const MAX_MESSAGES: usize = 50;
/// The limit for the texts of a request.
const MAX_BYTES: usize = 64 * 1024;
/// The limit of an answer in tokens.
const MAX_TOKENS: u64 = 8192;

/// A request for an answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    pub system: Option<String>,
    /// The conversation, oldest first. The last message is the user's.
    pub messages: Vec<(Speaker, String)>,
    pub max_tokens: u64,
    pub temperature: Option<f64>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    User,
    Model,
}

/// An answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    pub text: String,
    /// The name of the model.
    pub model: String,
    pub stop: Stop,
}

/// The reason why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    End,
    Length,
}

/// Reads a request. Fails with a reason for the server.
pub(crate) fn read(params: CreateMessageRequestParams) -> Result<Sampling, String> {
    if params.tools.is_some_and(|tools| !tools.is_empty()) {
        return Err("tools are not supported in sampling".to_owned());
    }
    if params.messages.is_empty() || params.messages.len() > MAX_MESSAGES {
        return Err(format!("a sampling request contains 1 to {MAX_MESSAGES} messages"));
    }
    let mut messages = Vec::new();
    for message in params.messages {
        let speaker = match message.role {
            Role::User => Speaker::User,
            Role::Assistant => Speaker::Model,
        };
        for block in message.content.into_vec() {
            let text = block.as_text().ok_or("only text is supported in sampling")?;
            messages.push((speaker, text.text.clone()));
        }
    }
    let texts = messages.iter().map(|(_, text)| text).chain(&params.system_prompt);
    if texts.map(String::len).sum::<usize>() > MAX_BYTES {
        return Err(format!("the texts of a sampling request exceed {} KiB", MAX_BYTES / 1024));
    }
    if messages.last().is_none_or(|(speaker, _)| *speaker != Speaker::User) {
        return Err("the last message of a sampling request must be the user's".to_owned());
    }
    Ok(Sampling {
        system: params.system_prompt,
        messages,
        max_tokens: u64::from(params.max_tokens).clamp(1, MAX_TOKENS),
        temperature: params.temperature.map(f64::from).filter(|value| (0.0..=2.0).contains(value)),
    })
}

/// The result for the server.
pub(crate) fn result(sampled: Sampled) -> CreateMessageResult {
    let reason = match sampled.stop {
        Stop::End => CreateMessageResult::STOP_REASON_END_TURN,
        Stop::Length => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
    };
    let message = SamplingMessage::assistant_text(sampled.text);
    CreateMessageResult::new(message, sampled.model).with_stop_reason(reason)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reading(params: Value) -> Result<Sampling, String> {
        read(serde_json::from_value(params).unwrap())
    }

    fn text(role: &str, text: &str) -> Value {
        json!({"role": role, "content": {"type": "text", "text": text}})
    }

    #[test]
    fn a_request_is_read_with_its_limits() {
        let messages = [text("user", "a"), text("assistant", "b"), text("user", "c")];
        let read = reading(
            json!({"messages": messages, "maxTokens": 1_000_000, "temperature": 7, "systemPrompt": "s"}),
        );
        let read = read.unwrap();
        assert_eq!(read.messages[1], (Speaker::Model, "b".to_owned()));
        assert_eq!(
            (read.max_tokens, read.temperature, read.system.as_deref()),
            (MAX_TOKENS, None, Some("s"))
        );
    }

    #[test]
    fn other_requests_are_refused() {
        let image =
            json!({"role": "user", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}});
        let many: Vec<_> = (0..51).map(|_| text("user", "a")).collect();
        for (params, word) in [
            (json!({"messages": [], "maxTokens": 5}), "1 to 50"),
            (json!({"messages": many, "maxTokens": 5}), "1 to 50"),
            (json!({"messages": [image], "maxTokens": 5}), "only text"),
            (json!({"messages": [text("user", &"x".repeat(70_000))], "maxTokens": 5}), "64 KiB"),
            (json!({"messages": [text("assistant", "x")], "maxTokens": 5}), "the last message"),
            (
                json!({"messages": [text("user", "x")], "maxTokens": 5, "tools": [{"name": "t", "inputSchema": {}}]}),
                "tools",
            ),
        ] {
            let error = reading(params).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
