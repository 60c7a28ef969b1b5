use super::*;
use crate::{Protocol, ToolChoice, ToolSpec};

fn model(provider: &str, id: &str) -> Model {
    let mut model = Model::new(provider, id, Protocol::OpenAiResponses, "https://api.openai.com/v1");
    model.capabilities.input.image = true;
    model.capabilities.input.pdf = true;
    model
}

fn text(text: &str) -> Message {
    Message::User(vec![UserContent::Text(text.into())])
}

fn call(id: &str) -> AssistantContent {
    AssistantContent::ToolCall { id: id.into(), name: "read".into(), input: json!({"filePath": "a"}) }
}

fn thought(text: &str, id: &str, encrypted: Option<&str>) -> AssistantContent {
    let metadata = json!({"openai": {"itemId": id, "reasoningEncryptedContent": encrypted}});
    AssistantContent::Reasoning { text: text.into(), metadata: Some(metadata) }
}

fn result(id: &str, output: &str) -> ToolResult {
    ToolResult { call_id: id.into(), name: "read".into(), output: output.into(), ..ToolResult::default() }
}

fn session_headers() -> Vec<(String, String)> {
    vec![("x-session-id".into(), "ses_1".into())]
}

fn options(options: &[(&str, Value)]) -> Map<String, Value> {
    options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// Compares bytes, because the order of fields matters.
#[track_caller]
fn check(request: &Request, model: &Model, expected: &Value) {
    assert_eq!(lower(request, model).to_string(), expected.to_string());
}

#[test]
fn a_request_matches_the_recorded_one() {
    let schema = json!({"$schema": "s", "properties": {"timeout": {"minimum": 1, "type": "integer"}}, "type": "object"});
    let mut request = Request {
        system: "You are".into(),
        messages: vec![
            text("Please look"),
            Message::Assistant(vec![
                thought("Thinking first.", "rs_1", Some("bW9jaw==")),
                AssistantContent::Text("Looking.".into()),
                call("call_1"),
            ]),
            Message::Tool(vec![result("call_1", "<path>")]),
        ],
        tools: vec![ToolSpec { name: "bash".into(), description: "Runs".into(), parameters: schema }],
        max_output_tokens: 32_000,
        temperature: Some(1.0),
        headers: session_headers(),
        options: options(&[("reasoningEffort", json!("medium")), ("reasoningSummary", json!("auto"))]),
        ..Request::default()
    };
    let expected = json!({
        "model": "gpt-5",
        "input": [
            {"role": "developer", "content": "You are"},
            {"role": "user", "content": [{"type": "input_text", "text": "Please look"}]},
            {"type": "reasoning", "encrypted_content": "bW9jaw==",
                "summary": [{"type": "summary_text", "text": "Thinking first."}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{\"filePath\":\"a\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "<path>"},
        ],
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "ses_1",
        "reasoning": {"effort": "medium", "summary": "auto"},
        "tools": [{"type": "function", "name": "bash", "description": "Runs",
            "parameters": {"properties": {"timeout": {"type": "integer"}}, "type": "object"}, "strict": false}],
        "tool_choice": "auto",
        "stream": true,
    });
    check(&request, &model("openai", "gpt-5"), &expected);
    request.tool_choice = ToolChoice::Required;
    assert_eq!(lower(&request, &model("openai", "gpt-5"))["tool_choice"], "required");
}

#[test]
fn a_title_request_matches_the_recorded_one() {
    let mut request = Request {
        system: "Title".into(),
        messages: vec![text("Generate"), text("Please look")],
        max_output_tokens: 32_000,
        temperature: Some(0.5),
        headers: session_headers(),
        options: options(&[("reasoningEffort", json!("none")), ("reasoningSummary", json!("auto"))]),
        ..Request::default()
    };
    let input = |role: &str| {
        json!([
            {"role": role, "content": "Title"},
            {"role": "user", "content": [{"type": "input_text", "text": "Generate"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "Please look"}]},
        ])
    };
    let expected = json!({
        "model": "gpt-5.4-nano",
        "input": input("developer"),
        "temperature": 0.5,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "none", "summary": "auto"},
        "stream": true,
    });
    check(&request, &model("openai", "gpt-5.4-nano"), &expected);
    request.options.clear();
    let expected = json!({
        "model": "plain-model",
        "input": input("system"),
        "temperature": 0.5,
        "max_output_tokens": 32000,
        "store": false,
        "stream": true,
    });
    check(&request, &model("mockresp", "plain-model"), &expected);
    let expected = json!({
        "model": "gpt-5",
        "input": input("developer"),
        "max_output_tokens": 32000,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "stream": true,
    });
    check(&request, &model("mockresp", "gpt-5"), &expected);
}

#[test]
fn openai_gets_the_programs_name() {
    let request = Request { headers: session_headers(), ..Request::default() };
    let found = headers(&request, &model("openai", "gpt-5"));
    assert_eq!(found, [("originator", "codewright".to_owned()), ("session-id", "ses_1".to_owned())]);
    assert_eq!(headers(&request, &model("other", "gpt-5")), []);
}

#[track_caller]
fn check_input(messages: Vec<Message>, expected: &Value) {
    let body = lower(&Request { messages, ..Request::default() }, &model("openai", "gpt-5"));
    assert_eq!(body["input"].to_string(), expected.to_string());
}

#[test]
fn pieces_of_reasoning_become_one_item() {
    check_input(
        vec![Message::Assistant(vec![
            thought("a", "rs_1", None),
            thought("b", "rs_1", Some("X")),
            thought("", "rs_2", Some("Y")),
            thought("lost", "rs_3", None),
            AssistantContent::Reasoning { text: "of another".into(), metadata: None },
            AssistantContent::Text("t".into()),
        ])],
        &json!([
            {"type": "reasoning", "encrypted_content": "X",
                "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]},
            {"type": "reasoning", "encrypted_content": "Y", "summary": []},
            {"role": "assistant", "content": [{"type": "output_text", "text": "t"}]},
        ]),
    );
}

#[test]
fn empty_content_is_not_sent() {
    check_input(
        vec![
            text(""),
            Message::Assistant(vec![thought("hm", "rs_1", Some("X")), AssistantContent::Text(String::new())]),
            Message::Tool(vec![result("c", "")]),
        ],
        &json!([{"type": "function_call_output", "call_id": "c", "output": "(no output)"}]),
    );
}

#[test]
fn files_stay_in_their_message() {
    let file = |mime: &str, data: FileData| File { mime: mime.into(), filename: Some("f".into()), data };
    let image = file("image/png", FileData::Base64("iVBORw0KGgo=".into()));
    let pdf = file("application/pdf", FileData::Base64("QQ==".into()));
    let far = file("application/pdf", FileData::Url("https://h/f.pdf".into()));
    let parts = json!([
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
        {"type": "input_file", "filename": "f", "file_data": "data:application/pdf;base64,QQ=="},
        {"type": "input_file", "file_url": "https://h/f.pdf"},
    ]);
    let files = vec![image, pdf, far];
    check_input(
        vec![
            Message::User(files.iter().cloned().map(UserContent::File).collect()),
            Message::Tool(vec![ToolResult {
                attachments: vec![files[0].clone()],
                ..result("c", "Image read")
            }]),
        ],
        &json!([
            {"role": "user", "content": parts},
            {"type": "function_call_output", "call_id": "c", "output": [
                {"type": "input_text", "text": "Image read"}, parts[0]]},
        ]),
    );
    let mut blind = model("openai", "gpt-5");
    blind.capabilities.input = crate::Modalities::default();
    for file in files {
        let part = file_part(&file, &blind);
        assert!(
            part["type"] == "input_text" && part["text"].as_str().unwrap().contains(&file.mime),
            "{part}"
        );
    }
    assert_eq!(
        file_part(&file("text/plain", FileData::Base64("aGk=".into())), &blind),
        json!({"type": "input_text", "text": "hi"})
    );
}

#[test]
fn options_get_their_field_and_win() {
    let mut model = model("openai", "gpt-5.4");
    model.options = options(&[
        ("textVerbosity", json!("low")),
        ("reasoning", json!({"effort": "low", "summary": "auto"})),
        ("apiKey", json!("sk-leak")),
    ]);
    let request = Request {
        options: options(&[
            ("reasoning_effort", json!("high")),
            ("store", json!(true)),
            ("serviceTier", json!("flex")),
        ]),
        ..Request::default()
    };
    let expected = json!({
        "model": "gpt-5.4",
        "input": [],
        "store": true,
        "reasoning": {"effort": "high", "summary": "auto"},
        "service_tier": "flex",
        "text": {"verbosity": "low"},
        "stream": true,
    });
    assert_eq!(lower(&request, &model), expected);
}

#[test]
fn answers_have_a_type_for_other_servers() {
    let request = Request {
        messages: vec![
            Message::User(vec![UserContent::Text("q".into())]),
            Message::Assistant(vec![AssistantContent::Text("a".into())]),
            Message::User(vec![UserContent::Text("r".into())]),
        ],
        ..Request::default()
    };
    let model = Model::new("local", "m", Protocol::OpenAiResponses, "http://127.0.0.1:8080/v1");
    let body = lower(&request, &model);
    let expected = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}"#;
    assert_eq!(body["input"][1].to_string(), expected);
}
