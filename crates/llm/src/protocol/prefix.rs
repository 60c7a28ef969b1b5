//! Tests that a turn's request starts with the bytes of the previous one, because providers cache
//! the start of requests.

use serde_json::{Value, json};

use super::lower;
use crate::{
    AssistantContent, File, FileData, Message, Model, Protocol, Quirk, Request, ToolResult, ToolSpec,
    UserContent,
};

/// The cached fields of a body, in order: the tools, the system prompt, the conversation.
fn cached_fields(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::OpenAiChat | Protocol::Cohere => &["tools", "messages"],
        Protocol::OpenAiResponses => &["tools", "input"],
        Protocol::Anthropic => &["tools", "system", "messages"],
        Protocol::Bedrock => &["toolConfig", "system", "messages"],
        Protocol::Gemini => &["tools", "systemInstruction", "contents"],
    }
}

fn thought(protocol: Protocol, number: usize) -> AssistantContent {
    let metadata = match protocol {
        Protocol::OpenAiChat => {
            json!({"openrouter": {"reasoning_details": [{"data": "E", "index": number}]}})
        }
        Protocol::OpenAiResponses => {
            json!({"openai": {"itemId": format!("rs_{number}"), "reasoningEncryptedContent": "E"}})
        }
        Protocol::Anthropic => json!({"anthropic": {"signature": "S"}}),
        Protocol::Bedrock => json!({"bedrock": {"signature": "S"}}),
        Protocol::Cohere => json!({"cohere": {"type": "tool_plan"}}),
        Protocol::Gemini => json!({"google": {"thoughtSignature": "S"}}),
    };
    AssistantContent::Reasoning { text: format!("thought {number}"), metadata: Some(metadata) }
}

/// Many tools, as Model Context Protocol servers describe them.
fn tools() -> Vec<ToolSpec> {
    let tool = |number: usize| {
        let parameters = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": format!("What to look for, {number}")},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
                "filter": {"anyOf": [{"type": "object", "additionalProperties": {"type": "string"}}, {"type": "null"}]},
            },
            "required": ["query"],
            "additionalProperties": false,
            "$schema": "http://json-schema.org/draft-07/schema#",
        });
        ToolSpec {
            name: format!("server_{number}_search"),
            description: format!("Searches {number}"),
            parameters,
        }
    };
    (0..60).map(tool).collect()
}

/// The conversation after `steps` steps. Every second step ends with a message of the user.
fn conversation(protocol: Protocol, steps: usize) -> Vec<Message> {
    let user = |number: usize| Message::User(vec![UserContent::Text(format!("question {number}\n"))]);
    let mut messages = vec![user(0)];
    for step in 1..=steps {
        let call = |part: usize| AssistantContent::ToolCall {
            id: format!("call_mock_{step}_{part}"),
            name: "server_1_search".into(),
            input: json!({"query": "x", "limit": part}),
        };
        let image = File {
            mime: "image/png".into(),
            filename: Some("a.png".into()),
            data: FileData::Base64("iVBORw0KGgo=".into()),
        };
        let result = |part: usize| ToolResult {
            call_id: format!("call_mock_{step}_{part}"),
            name: "server_1_search".into(),
            output: format!("found {part}"),
            is_error: part == 1,
            attachments: if part == 0 { vec![image.clone()] } else { Vec::new() },
        };
        if step % 2 == 1 {
            let text = AssistantContent::Text("Let me look.".into());
            messages.push(Message::Assistant(vec![thought(protocol, step), text, call(0), call(1)]));
            messages.push(Message::Tool(vec![result(0), result(1)]));
        } else {
            messages.push(Message::Assistant(vec![AssistantContent::Text(format!("Answer {step}"))]));
            messages.push(user(step));
        }
    }
    messages
}

fn without_marks(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept =
                fields.iter().filter(|(name, _)| !matches!(name.as_str(), "cache_control" | "cachePoint"));
            Value::Object(kept.map(|(name, value)| (name.clone(), without_marks(value))).collect())
        }
        // A mark that is a block is removed completely.
        Value::Array(items) => {
            items.iter().filter(|item| item.get("cachePoint").is_none()).map(without_marks).collect()
        }
        other => other.clone(),
    }
}

/// The text that the cache compares, up to the end of the conversation so far.
fn beginning(body: &Value, protocol: Protocol) -> String {
    let mut text = String::new();
    for field in cached_fields(protocol) {
        assert!(!body[*field].is_null(), "{field}");
        text.push_str(&without_marks(&body[*field]).to_string());
    }
    assert_eq!(text.pop(), Some(']'));
    text
}

#[test]
fn the_next_turn_begins_with_the_same_bytes() {
    let mistral = [Quirk::MistralIds, Quirk::MistralMessages];
    let relay = [Quirk::ReasoningField, Quirk::ReasoningDetails, Quirk::NoopTool, Quirk::PrintedCalls];
    for (protocol, id, quirks) in [
        (Protocol::OpenAiChat, "gpt-5", &[][..]),
        (Protocol::OpenAiChat, "gpt-5", &mistral),
        (Protocol::OpenAiChat, "gpt-5", &relay),
        (Protocol::OpenAiResponses, "gpt-5", &[]),
        (Protocol::Anthropic, "gpt-5", &[]),
        (Protocol::Bedrock, "us.anthropic.claude-sonnet-4-6", &[]),
        (Protocol::Cohere, "command-a", &[]),
        (Protocol::Gemini, "gemini-2.5-pro", &[]),
        (Protocol::Gemini, "gemini-3-pro", &[]),
    ] {
        let mut model = Model::new("p", id, protocol, "https://h");
        model.capabilities.input.image = true;
        model.quirks = quirks.to_vec();
        let mut last: Option<(String, Value)> = None;
        for steps in 0..7 {
            let request = Request {
                system: "You are\nIt is today.".into(),
                messages: conversation(protocol, steps),
                tools: tools(),
                max_output_tokens: 32_000,
                headers: vec![("x-session-id".into(), "ses_1".into())],
                ..Request::default()
            };
            let mut body = lower(&request, &model);
            assert_eq!(body.to_string(), lower(&request, &model).to_string(), "{protocol:?}");
            let text = beginning(&body, protocol);
            // Everything except the conversation stays the same, including marks.
            let conversation = cached_fields(protocol).last().expect("a conversation is cached");
            body[*conversation].take();
            if let Some((before, settings)) = &last {
                assert!(text.starts_with(before.as_str()), "{protocol:?} {quirks:?} at {steps}");
                assert!(text.len() > before.len());
                assert_eq!(body.to_string(), settings.to_string(), "{protocol:?}");
            }
            last = Some((text, body));
        }
    }
}
