use super::*;
use crate::{Protocol, ToolSpec};

fn model() -> Model {
    let mut model = Model::new("anthropic", "claude-mock", Protocol::Anthropic, "http://127.0.0.1:8199/v1");
    model.capabilities.input.image = true;
    model
}

fn text(text: &str) -> Message {
    Message::User(vec![UserContent::Text(text.into())])
}

fn assistant_text(text: &str) -> AssistantContent {
    AssistantContent::Text(text.into())
}

fn thought(text: &str, metadata: Value) -> AssistantContent {
    AssistantContent::Reasoning { text: text.into(), metadata: Some(metadata) }
}

fn call(id: &str, input: Value) -> AssistantContent {
    AssistantContent::ToolCall { id: id.into(), name: "read".into(), input }
}

fn result(id: &str, output: &str) -> ToolResult {
    ToolResult { call_id: id.into(), name: "read".into(), output: output.into(), ..ToolResult::default() }
}

fn mark() -> Value {
    json!({"type": "ephemeral"})
}

/// Compares bytes, because the order of fields matters.
#[track_caller]
fn check_messages(messages: Vec<Message>, expected: &Value) {
    let body = lower(&Request { messages, ..Request::default() }, &model());
    assert_eq!(body["messages"].to_string(), expected.to_string());
}

#[test]
fn a_title_request_matches_the_recorded_one() {
    let mut model = model();
    model.limits.output = 64_000;
    let thinking = json!({"type": "enabled", "budgetTokens": 16_000});
    let request = Request {
        system: "Title prompt".into(),
        messages: vec![text("Generate a title for this conversation:\n"), text("Please look")],
        max_output_tokens: 32_000,
        temperature: Some(0.5),
        options: Map::from_iter([("thinking".to_owned(), thinking)]),
        ..Request::default()
    };
    let expected = json!({
        "model": "claude-mock",
        "max_tokens": 48000,
        "thinking": {"type": "enabled", "budget_tokens": 16000},
        "system": [{"type": "text", "text": "Title prompt", "cache_control": mark()}],
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "Generate a title for this conversation:\n", "cache_control": mark()},
            {"type": "text", "text": "Please look", "cache_control": mark()},
        ]}],
        "stream": true,
    });
    assert_eq!(lower(&request, &model).to_string(), expected.to_string());
    assert_eq!(headers(&request, &model), [("anthropic-version", "2023-06-01".to_owned())]);
}

#[test]
fn a_request_with_tools_matches_the_recorded_one() {
    let tool =
        ToolSpec { name: "bash".into(), description: "Runs".into(), parameters: json!({"type": "object"}) };
    let signature = json!({"anthropic": {"signature": "c2lnbmF0dXJl"}});
    let request = Request {
        system: "You are".into(),
        messages: vec![
            text("Please look"),
            Message::Assistant(vec![
                thought("Thinking first.", signature),
                assistant_text("Looking."),
                call("toolu_1", json!({"filePath": "a"})),
                call("toolu_2", json!({"filePath": "b"})),
            ]),
            Message::Tool(vec![
                result("toolu_1", "<path>"),
                ToolResult { is_error: true, ..result("toolu_2", "File not found: b") },
            ]),
        ],
        tools: vec![tool],
        max_output_tokens: 32_000,
        options: Map::from_iter([
            ("thinking".to_owned(), json!({"type": "adaptive"})),
            ("effort".to_owned(), json!("max")),
        ]),
        ..Request::default()
    };
    let expected = json!({
        "model": "claude-mock",
        "max_tokens": 32000,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "max"},
        "system": [{"type": "text", "text": "You are", "cache_control": mark()}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Please look"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Thinking first.", "signature": "c2lnbmF0dXJl"},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"filePath": "a"}},
                {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"filePath": "b"}, "cache_control": mark()},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "<path>"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "File not found: b",
                    "is_error": true, "cache_control": mark()},
            ]},
        ],
        "tools": [{"name": "bash", "description": "Runs", "input_schema": {"type": "object"}, "eager_input_streaming": true}],
        "tool_choice": {"type": "auto"},
        "stream": true,
    });
    assert_eq!(lower(&request, &model()).to_string(), expected.to_string());
    let names: Vec<&str> = headers(&request, &model()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["anthropic-version", "anthropic-beta"]);
}

#[test]
fn a_tools_image_stays_in_its_result() {
    let image =
        File { mime: "image/png".into(), filename: None, data: FileData::Base64("iVBORw0KGgo=".into()) };
    check_messages(
        vec![Message::Tool(vec![ToolResult {
            attachments: vec![image],
            ..result("toolu_1", "Image read successfully")
        }])],
        &json!([{"role": "user", "content": [{
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [
                {"type": "text", "text": "Image read successfully"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
            ],
            "cache_control": mark(),
        }]}]),
    );
}

#[test]
fn neighbours_of_one_role_are_joined_after_marking() {
    check_messages(
        vec![
            Message::Assistant(vec![call("call 1", Value::Null)]),
            Message::Tool(vec![result("call 1", "")]),
            text("more"),
        ],
        &json!([
            {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "(no output)", "cache_control": mark()},
                {"type": "text", "text": "more", "cache_control": mark()},
            ]},
        ]),
    );
}

#[test]
fn reasoning_is_sent_only_to_its_provider() {
    check_messages(
        vec![
            Message::Assistant(vec![
                thought("", json!({"anthropic": {"redactedData": "eHg="}})),
                thought("of another", json!({"openai": {"itemId": "rs"}})),
                AssistantContent::Reasoning { text: "unsigned".into(), metadata: None },
                assistant_text("a"),
            ]),
            Message::Assistant(vec![thought("alone", json!({"anthropic": {"signature": "c2ln"}}))]),
            text("b"),
        ],
        &json!([
            {"role": "assistant", "content": [
                {"type": "redacted_thinking", "data": "eHg="},
                {"type": "text", "text": "a", "cache_control": mark()},
            ]},
            {"role": "user", "content": [{"type": "text", "text": "b", "cache_control": mark()}]},
        ]),
    );
}

#[test]
fn empty_content_is_not_sent() {
    check_messages(
        vec![
            text("a"),
            text(" \n"),
            Message::User(Vec::new()),
            Message::Assistant(vec![assistant_text("b \n")]),
            Message::Assistant(vec![assistant_text(" ")]),
        ],
        &json!([
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": mark()}]},
            {"role": "assistant", "content": [{"type": "text", "text": "b", "cache_control": mark()}]},
        ]),
    );
}

#[test]
fn a_budget_is_added_up_to_the_models_limit() {
    let thinking = json!({"type": "enabled", "budget_tokens": 16_000});
    for (requested, output, expected) in [
        (32_000, 0, 48_000),
        (32_000, 64_000, 48_000),
        (32_000, 40_000, 40_000),
        (32_000, 8_000, 48_000),
        (0, 0, 20_096),
    ] {
        let mut model = model();
        model.limits.output = output;
        let request = Request { max_output_tokens: requested, ..Request::default() };
        assert_eq!(limit(&request, &model, Some(&thinking)), expected, "{requested} of {output}");
    }
}

#[test]
fn documents_and_urls_are_sources() {
    let mut model = model();
    model.capabilities.input.pdf = true;
    let pdf = File {
        mime: "application/pdf".into(),
        filename: Some("f.pdf".into()),
        data: FileData::Base64("QQ==".into()),
    };
    assert_eq!(
        file_block(&pdf, &model),
        json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QQ=="}, "title": "f.pdf"})
    );
    let image = File { mime: "image/png".into(), filename: None, data: FileData::Url("https://h/i".into()) };
    assert_eq!(
        file_block(&image, &model),
        json!({"type": "image", "source": {"type": "url", "url": "https://h/i"}})
    );
    model.capabilities.input.image = false;
    assert_eq!(file_block(&image, &model)["type"], "text");
}

#[test]
fn vertex_has_the_version_in_the_body_and_the_model_in_the_path() {
    let mut model = model();
    model.endpoint = Endpoint::Vertex;
    model.api_id = "claude-sonnet-4-5@20250929".into();
    let tool =
        ToolSpec { name: "bash".into(), description: "Runs".into(), parameters: json!({"type": "object"}) };
    let request = Request {
        messages: vec![text("hi")],
        tools: vec![tool],
        max_output_tokens: 100,
        ..Request::default()
    };
    let expected = json!({
        "anthropic_version": "vertex-2023-10-16",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": mark()}]}],
        "tools": [{"name": "bash", "description": "Runs", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
        "stream": true,
    });
    assert_eq!(lower(&request, &model).to_string(), expected.to_string());
    assert_eq!(headers(&request, &model), []);
    assert_eq!(crate::protocol::anthropic::path(&model), "claude-sonnet-4-5@20250929:streamRawPredict");
}
