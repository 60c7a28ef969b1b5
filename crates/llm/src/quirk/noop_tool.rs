//! LiteLLM proxies reject a conversation with calls that declares no tools.

use std::borrow::Cow;

use serde_json::json;

use crate::{AssistantContent, Message, Request, ToolSpec};

pub(super) fn request(request: &Request) -> Cow<'_, Request> {
    let is_call = |content: &AssistantContent| matches!(content, AssistantContent::ToolCall { .. });
    let has_calls = request.messages.iter().any(|message| match message {
        Message::User(_) => false,
        Message::Assistant(content) => content.iter().any(is_call),
        Message::Tool(results) => !results.is_empty(),
    });
    if !has_calls || !request.tools.is_empty() {
        return Cow::Borrowed(request);
    }
    let noop = ToolSpec {
        name: "_noop".to_owned(),
        description: "Does nothing. Some proxies want a tool to be listed; leave it alone.".to_owned(),
        parameters: json!({"type": "object", "properties": {}}),
    };
    Cow::Owned(Request { tools: vec![noop], ..request.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::lower;
    use crate::{Model, Protocol, Quirk, ToolResult};

    fn call() -> Message {
        Message::Assistant(vec![AssistantContent::ToolCall {
            id: "c".into(),
            name: "read".into(),
            input: json!({}),
        }])
    }

    fn result() -> Message {
        Message::Tool(vec![ToolResult {
            call_id: "c".into(),
            name: "read".into(),
            output: "text".into(),
            is_error: false,
            attachments: Vec::new(),
        }])
    }

    #[test]
    fn a_tool_is_declared_only_if_needed() {
        let read = ToolSpec { name: "read".into(), description: String::new(), parameters: json!({}) };
        let user = || Message::User(vec![crate::UserContent::Text("hi".into())]);
        for (messages, tools, expected) in [
            (vec![user(), call(), result()], vec![], Some("_noop")),
            (vec![user(), result()], vec![], Some("_noop")),
            (vec![user()], vec![], None),
            (vec![user(), call(), result()], vec![read], Some("read")),
        ] {
            let given = Request { messages, tools, ..Request::default() };
            let found = request(&given);
            assert_eq!(found.tools.first().map(|tool| tool.name.as_str()), expected, "{given:?}");
        }
    }

    #[test]
    fn every_protocol_of_a_proxy_declares_it() {
        let request = Request {
            messages: vec![Message::User(vec![crate::UserContent::Text("hi".into())]), call(), result()],
            ..Request::default()
        };
        for protocol in [Protocol::OpenAiChat, Protocol::OpenAiResponses, Protocol::Anthropic] {
            let mut model = Model::new("p", "m", protocol, "https://h");
            assert_eq!(lower(&request, &model).get("tools"), None, "{protocol:?}");
            model.quirks = vec![Quirk::NoopTool];
            let body = lower(&request, &model);
            assert_eq!(body["tools"].as_array().map(Vec::len), Some(1), "{protocol:?}");
            assert!(body["tools"].to_string().contains("\"_noop\""), "{protocol:?}: {body}");
        }
    }
}
