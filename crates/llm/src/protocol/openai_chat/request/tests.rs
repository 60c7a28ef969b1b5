use super::*;
use crate::{Protocol, ToolSpec};

fn model() -> Model {
    let mut model = Model::new("mockchat", "plain-model", Protocol::OpenAiChat, "http://127.0.0.1:8199/v1");
    model.capabilities.input.image = true;
    model
}

fn text(text: &str) -> Message {
    Message::User(vec![UserContent::Text(text.into())])
}

fn assistant_text(text: &str) -> AssistantContent {
    AssistantContent::Text(text.into())
}

fn call(id: &str, name: &str, input: Value) -> AssistantContent {
    AssistantContent::ToolCall { id: id.into(), name: name.into(), input }
}

fn result(id: &str, output: &str) -> ToolResult {
    ToolResult { call_id: id.into(), name: "read".into(), output: output.into(), ..ToolResult::default() }
}

fn bash() -> ToolSpec {
    let parameters = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"timeout": {"minimum": -9_007_199_254_740_991_i64, "exclusiveMinimum": 0, "type": "integer"}},
        "required": ["command"],
    });
    ToolSpec { name: "bash".into(), description: "Runs".into(), parameters }
}

/// Compares bytes, because the order of fields matters.
#[track_caller]
fn check(request: &Request, expected: &Value) {
    assert_eq!(lower(request, &model()).to_string(), expected.to_string());
}

#[track_caller]
fn check_messages(messages: Vec<Message>, expected: &Value) {
    let body = lower(&Request { messages, ..Request::default() }, &model());
    assert_eq!(body["messages"].to_string(), expected.to_string());
}

#[test]
fn a_title_request_matches_the_recorded_one() {
    let request = Request {
        system: "Title prompt".into(),
        messages: vec![text("Generate a title for this conversation:\n"), text("Please look")],
        max_output_tokens: 32_000,
        temperature: Some(0.5),
        options: Map::from_iter([("reasoningEffort".to_owned(), json!("low"))]),
        ..Request::default()
    };
    check(
        &request,
        &json!({
            "model": "plain-model",
            "max_tokens": 32000,
            "temperature": 0.5,
            "reasoning_effort": "low",
            "messages": [
                {"role": "system", "content": "Title prompt"},
                {"role": "user", "content": "Generate a title for this conversation:\n"},
                {"role": "user", "content": "Please look"},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
        }),
    );
}

#[test]
fn a_request_with_tools_matches_the_recorded_one() {
    let request = Request {
        system: "You are".into(),
        messages: vec![
            text("Please look"),
            Message::Assistant(vec![
                AssistantContent::Reasoning { text: "Thinking first.".into(), metadata: None },
                assistant_text("Looking."),
                call("call_mock_2_3", "read", json!({"filePath": "$PROJECT/src/util.py"})),
                call("call_mock_2_4", "read", json!({"filePath": "$PROJECT/src/missing.py"})),
            ]),
            Message::Tool(vec![
                result("call_mock_2_3", "<path>"),
                ToolResult { is_error: true, ..result("call_mock_2_4", "File not found: x") },
            ]),
            Message::Assistant(vec![assistant_text("Done now.")]),
            text("Second question"),
        ],
        tools: vec![bash()],
        max_output_tokens: 32_000,
        temperature: Some(1.0),
        top_p: Some(0.95),
        ..Request::default()
    };
    check(
        &request,
        &json!({
            "model": "plain-model",
            "max_tokens": 32000,
            "temperature": 1,
            "top_p": 0.95,
            "messages": [
                {"role": "system", "content": "You are"},
                {"role": "user", "content": "Please look"},
                {
                    "role": "assistant",
                    "content": "Looking.",
                    "reasoning_content": "Thinking first.",
                    "tool_calls": [
                        {"id": "call_mock_2_3", "type": "function", "function": {
                            "name": "read", "arguments": "{\"filePath\":\"$PROJECT/src/util.py\"}"}},
                        {"id": "call_mock_2_4", "type": "function", "function": {
                            "name": "read", "arguments": "{\"filePath\":\"$PROJECT/src/missing.py\"}"}},
                    ],
                },
                {"role": "tool", "tool_call_id": "call_mock_2_3", "content": "<path>"},
                {"role": "tool", "tool_call_id": "call_mock_2_4", "content": "File not found: x"},
                {"role": "assistant", "content": "Done now."},
                {"role": "user", "content": "Second question"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "bash", "description": "Runs", "parameters": bash().parameters}}],
            "tool_choice": "auto",
            "stream": true,
            "stream_options": {"include_usage": true},
        }),
    );
}

#[test]
fn an_image_of_a_tool_result_follows_in_a_user_message() {
    let image = File {
        mime: "image/png".into(),
        filename: Some("i.png".into()),
        data: FileData::Base64("iVBORw0KGgo=".into()),
    };
    check_messages(
        vec![
            Message::Assistant(vec![call("c", "read", json!({"filePath": "i.png"}))]),
            Message::Tool(vec![ToolResult {
                attachments: vec![image],
                ..result("c", "Image read successfully")
            }]),
        ],
        &json!([
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": {
                "name": "read", "arguments": "{\"filePath\":\"i.png\"}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "Image read successfully"},
            {"role": "user", "content": [
                {"type": "text", "text": "Attached media from tool result:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            ]},
        ]),
    );
}

#[test]
fn empty_content_is_not_sent() {
    check_messages(
        vec![
            text(""),
            Message::User(Vec::new()),
            Message::Assistant(vec![assistant_text("")]),
            Message::Assistant(vec![AssistantContent::Reasoning { text: "hm".into(), metadata: None }]),
            Message::Tool(vec![result("c", "")]),
            Message::User(vec![UserContent::Text("a".into()), UserContent::Text(String::new())]),
        ],
        &json!([
            {"role": "tool", "tool_call_id": "c", "content": "(no output)"},
            {"role": "user", "content": "a"},
        ]),
    );
}

#[test]
fn files_are_sent_in_a_format_that_the_model_supports() {
    let mut model = model();
    model.capabilities.input.pdf = true;
    model.capabilities.input.audio = true;
    let part = |mime: &str, data: FileData| {
        let file = File { mime: mime.into(), filename: Some("f".into()), data };
        file_part(&file, &model)
    };
    let base64 = |data: &str| FileData::Base64(data.into());
    assert_eq!(
        part("image/png", FileData::Url("https://h/i.png".into())),
        json!({"type": "image_url", "image_url": {"url": "https://h/i.png"}})
    );
    assert_eq!(
        part("application/pdf", base64("QQ==")),
        json!({"type": "file", "file": {"filename": "f", "file_data": "data:application/pdf;base64,QQ=="}})
    );
    assert_eq!(
        part("audio/mpeg", base64("QQ==")),
        json!({"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}})
    );
    assert_eq!(part("text/plain", base64("aGk=")), json!({"type": "text", "text": "hi"}));
    for (mime, data) in [("video/mp4", "QQ=="), ("application/zip", "QQ=="), ("text/plain", "%%%")] {
        let text = part(mime, base64(data))["text"].as_str().unwrap().to_owned();
        assert!(text.contains(mime) && text.contains("f ("), "{text}");
    }
}

#[test]
fn options_win_and_null_removes() {
    let mut model = model();
    model.options = Map::from_iter([
        ("apiKey".to_owned(), json!("sk-leak")),
        ("reasoningEffort".to_owned(), json!("low")),
        ("stream_options".to_owned(), json!({"x": 1})),
        ("max_tokens".to_owned(), Value::Null),
    ]);
    let request = Request {
        messages: vec![text("hi")],
        max_output_tokens: 10,
        options: Map::from_iter([("reasoning_effort".to_owned(), json!("high"))]),
        ..Request::default()
    };
    let expected = json!({
        "model": "plain-model",
        "reasoning_effort": "high",
        "stream_options": {"x": 1, "include_usage": true},
        "messages": [{"role": "user", "content": "hi"}],
        "stream": true,
    });
    let mut found = lower(&request, &model);
    assert_eq!(found, expected);
    model.base_url = "https://api.openai.com/v1".into();
    model.options.clear();
    found = lower(&request, &model);
    assert_eq!(found["max_completion_tokens"], json!(10));
    assert_eq!(found.get("max_tokens"), None);
}

#[test]
fn a_choice_is_sent_with_tools_only() {
    for (choice, expected) in
        [(ToolChoice::Auto, "auto"), (ToolChoice::Required, "required"), (ToolChoice::None, "none")]
    {
        let mut request = Request { tool_choice: choice, tools: vec![bash()], ..Request::default() };
        assert_eq!(lower(&request, &model())["tool_choice"], expected);
        request.tools.clear();
        assert_eq!(lower(&request, &model()).get("tool_choice"), None);
    }
}

#[test]
fn reasoning_details_are_sent_back() {
    let detail = json!({"type": "reasoning.encrypted", "data": "E"});
    let thought = AssistantContent::Reasoning {
        text: "hm".into(),
        metadata: Some(json!({"openrouter": {"reasoning_details": [detail]}})),
    };
    let messages = vec![Message::Assistant(vec![thought, assistant_text("a")])];
    let request = Request { messages, ..Request::default() };
    let mut model = model();
    let plain = json!([{"role": "assistant", "content": "a", "reasoning_content": "hm"}]);
    assert_eq!(lower(&request, &model)["messages"], plain);
    model.quirks = vec![Quirk::ReasoningField, Quirk::ReasoningDetails];
    let whole =
        json!([{"role": "assistant", "content": "a", "reasoning": "hm", "reasoning_details": [detail]}]);
    assert_eq!(lower(&request, &model)["messages"], whole);
}

#[test]
fn reasoning_is_sent_back_in_the_configured_field() {
    let detail = json!({"type": "reasoning.encrypted", "data": "E"});
    let thought = AssistantContent::Reasoning {
        text: "hm".into(),
        metadata: Some(json!({"openrouter": {"reasoning_details": [detail]}})),
    };
    let request = Request {
        messages: vec![Message::Assistant(vec![thought, assistant_text("a")])],
        ..Request::default()
    };
    for (field, expected) in [
        ("reasoning_text", json!({"role": "assistant", "content": "a", "reasoning_text": "hm"})),
        ("own", json!({"role": "assistant", "content": "a", "own": "hm"})),
        (
            "reasoning_details",
            json!({"role": "assistant", "content": "a", "reasoning_content": "hm", "reasoning_details": [detail]}),
        ),
    ] {
        let mut model = model();
        model.thought_field = Some(field.to_owned());
        assert_eq!(lower(&request, &model)["messages"][0], expected);
    }
}

#[test]
fn a_cache_key_is_sent_if_enabled() {
    let mut model = model();
    let headers = vec![("x-session-id".to_owned(), "ses_1".to_owned())];
    let request = Request { headers, ..Request::default() };
    assert_eq!(lower(&request, &model).get("prompt_cache_key"), None);
    model.options.insert("setCacheKey".into(), json!(true));
    assert_eq!(lower(&request, &model)["prompt_cache_key"], "ses_1");
    assert_eq!(lower(&request, &model).get("setCacheKey"), None);
}
