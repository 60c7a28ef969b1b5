use super::*;
use crate::{Protocol, ToolSpec};

fn model() -> Model {
    let mut model = Model::new("cohere", "command-a-03-2025", Protocol::Cohere, "https://h");
    model.capabilities.input.image = true;
    model
}

fn kept(kind: &str, text: &str) -> AssistantContent {
    AssistantContent::Reasoning { text: text.into(), metadata: Some(json!({"cohere": {"type": kind}})) }
}

fn png() -> File {
    File { mime: "image/png".into(), filename: None, data: FileData::Base64("aGk=".into()) }
}

#[test]
fn a_request_with_tools_is_complete() {
    let request = Request {
        system: "You are".into(),
        messages: vec![
            Message::User(vec![UserContent::Text("Look".into()), UserContent::File(png())]),
            Message::Assistant(vec![
                kept("thinking", "Hm."),
                kept("tool_plan", "I will read."),
                AssistantContent::Reasoning { text: "foreign".into(), metadata: None },
                AssistantContent::ToolCall { id: "t1".into(), name: "read".into(), input: json!({"p": 1}) },
            ]),
            Message::Tool(vec![ToolResult {
                call_id: "t1".into(),
                name: "read".into(),
                attachments: vec![png()],
                ..ToolResult::default()
            }]),
            Message::Assistant(vec![AssistantContent::Text("Done.".into())]),
            Message::User(vec![UserContent::Text(" ".into())]),
        ],
        tools: vec![ToolSpec {
            name: "read".into(),
            description: "Reads".into(),
            parameters: json!({"type": "object"}),
        }],
        tool_choice: ToolChoice::Required,
        max_output_tokens: 8000,
        temperature: Some(0.3),
        top_p: Some(0.9),
        options: Map::from_iter([
            ("thinking".to_owned(), json!({"type": "enabled", "tokenBudget": 500})),
            ("topK".to_owned(), json!(3)),
        ]),
        ..Request::default()
    };
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}});
    let expected = json!({
        "model": "command-a-03-2025",
        "max_tokens": 8000,
        "temperature": 0.3,
        "p": 0.9,
        "thinking": {"type": "enabled", "token_budget": 500},
        "k": 3,
        "messages": [
            {"role": "system", "content": "You are"},
            {"role": "user", "content": [{"type": "text", "text": "Look"}, image]},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Hm."}],
                "tool_plan": "I will read.",
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "read", "arguments": "{\"p\":1}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "t1", "content": "(no output)"},
            {"role": "user", "content": [{"type": "text", "text": MEDIA_LEAD_IN}, image]},
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [{"type": "function", "function": {
            "name": "read", "description": "Reads", "parameters": {"type": "object"},
        }}],
        "tool_choice": "REQUIRED",
        "stream": true,
    });
    assert_eq!(lower(&request, &model()).to_string(), expected.to_string());
}

#[test]
fn an_empty_message_is_not_sent() {
    let request = Request {
        messages: vec![
            Message::User(vec![UserContent::Text("a".into())]),
            Message::Assistant(vec![kept("thinking", "only thought")]),
        ],
        ..Request::default()
    };
    let expected = json!([{"role": "user", "content": "a"}]);
    assert_eq!(lower(&request, &model())["messages"], expected);
}
