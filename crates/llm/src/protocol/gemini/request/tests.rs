use super::*;
use crate::{Protocol, ToolSpec};

fn model(id: &str) -> Model {
    let mut model = Model::new("google", id, Protocol::Gemini, "http://127.0.0.1:8199/v1beta");
    model.capabilities.input.image = true;
    model.capabilities.input.pdf = true;
    model
}

fn thinker(id: &str) -> Model {
    let mut model = model(id);
    model.capabilities.reasoning = true;
    model
}

fn text(text: &str) -> Message {
    Message::User(vec![UserContent::Text(text.into())])
}

fn assistant_text(text: &str) -> AssistantContent {
    AssistantContent::Text(text.into())
}

fn thought(text: &str, metadata: Option<Value>) -> AssistantContent {
    AssistantContent::Reasoning { text: text.into(), metadata }
}

fn call(path: &str) -> AssistantContent {
    AssistantContent::ToolCall { id: "x".into(), name: "read".into(), input: json!({"filePath": path}) }
}

fn signed(signature: &str) -> Value {
    json!({"google": {"thoughtSignature": signature}})
}

fn result(output: &str) -> ToolResult {
    ToolResult { call_id: "x".into(), name: "read".into(), output: output.into(), ..ToolResult::default() }
}

fn image() -> File {
    File { mime: "image/png".into(), filename: None, data: FileData::Base64("iVBORw0KGgo=".into()) }
}

/// Compares bytes, because the order of fields matters.
#[track_caller]
fn check(model: &Model, messages: Vec<Message>, expected: &Value) {
    let body = lower(&Request { messages, ..Request::default() }, model);
    assert_eq!(body["contents"].to_string(), expected.to_string());
}

#[track_caller]
fn check_generation(model: &Model, options: Value, expected: &Value) {
    let options = options.as_object().unwrap().clone();
    let body = lower(&Request { options, ..Request::default() }, model);
    assert_eq!(body["generationConfig"].to_string(), expected.to_string());
}

#[test]
fn a_title_request_matches_the_recorded_one() {
    let request = Request {
        system: "Title prompt".into(),
        messages: vec![text("Generate a title for this conversation:\n"), text("Please look")],
        max_output_tokens: 32_000,
        temperature: Some(0.5),
        options: Map::from_iter([("thinkingConfig".to_owned(), json!({"thinkingLevel": "low"}))]),
        ..Request::default()
    };
    let expected = json!({
        "generationConfig": {
            "maxOutputTokens": 32000,
            "temperature": 0.5,
            "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "low"},
        },
        "contents": [{"role": "user", "parts": [
            {"text": "Generate a title for this conversation:\n"},
            {"text": "Please look"},
        ]}],
        "systemInstruction": {"parts": [{"text": "Title prompt"}]},
    });
    assert_eq!(lower(&request, &thinker("gemini-3.8-flash")).to_string(), expected.to_string());
}

#[test]
fn a_request_with_tools_matches_the_recorded_one() {
    let tool = ToolSpec {
        name: "read".into(),
        description: "Reads".into(),
        parameters: json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"filePath": {"description": "p", "type": "string"}},
            "required": ["filePath"],
        }),
    };
    let request = Request {
        system: "You are".into(),
        messages: vec![
            text("Please look"),
            Message::Assistant(vec![
                thought("Thinking first.", None),
                assistant_text("Looking."),
                call("a"),
                AssistantContent::Metadata(signed("c2lnbmF0dXJl")),
                call("b"),
                AssistantContent::Metadata(signed("c2ln/+==")),
            ]),
            Message::Tool(vec![
                result("<path>"),
                ToolResult { is_error: true, ..result("File not found: b") },
            ]),
        ],
        tools: vec![tool],
        max_output_tokens: 32_000,
        temperature: Some(1.0),
        top_p: Some(0.95),
        ..Request::default()
    };
    let expected = json!({
        "generationConfig": {
            "maxOutputTokens": 32000,
            "temperature": 1,
            "topK": 64,
            "topP": 0.95,
            "thinkingConfig": {"includeThoughts": true},
        },
        "contents": [
            {"role": "user", "parts": [{"text": "Please look"}]},
            {"role": "model", "parts": [
                {"text": "Thinking first.", "thought": true},
                {"text": "Looking."},
                {"functionCall": {"name": "read", "args": {"filePath": "a"}}, "thoughtSignature": "c2lnbmF0dXJl"},
                {"functionCall": {"name": "read", "args": {"filePath": "b"}}, "thoughtSignature": "c2ln/+=="},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"name": "read", "content": "<path>"}}},
                {"functionResponse": {"name": "read", "response": {"name": "read", "content": "File not found: b"}}},
            ]},
        ],
        "systemInstruction": {"parts": [{"text": "You are"}]},
        "tools": [{"functionDeclarations": [{"name": "read", "description": "Reads", "parameters": {
            "required": ["filePath"],
            "type": "object",
            "properties": {"filePath": {"description": "p", "type": "string"}},
        }}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    });
    assert_eq!(lower(&request, &thinker("gemini-2.5-pro")).to_string(), expected.to_string());
}

#[test]
fn an_image_of_a_tool_result_is_a_user_part_for_older_models() {
    let messages = vec![
        text("look"),
        Message::Assistant(vec![call("i.png"), AssistantContent::Metadata(signed("c2lnbmF0dXJl"))]),
        Message::Tool(vec![ToolResult { attachments: vec![image()], ..result("Image read successfully") }]),
    ];
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}});
    let before = [
        json!({"role": "user", "parts": [{"text": "look"}]}),
        json!({"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"filePath": "i.png"}},
            "thoughtSignature": "c2lnbmF0dXJl"}]}),
    ];
    let answer = json!({"name": "read", "content": "Image read successfully"});
    check(
        &model("gemini-2.5-pro"),
        messages.clone(),
        &json!([
            before[0],
            before[1],
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": answer}}]},
            {"role": "user", "parts": [{"text": "Attached media from tool result:"}, inline]},
        ]),
    );
    check(
        &model("gemini-3-pro-preview"),
        messages,
        &json!([
            before[0],
            before[1],
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": answer, "parts": [inline]}}]},
        ]),
    );
}

#[test]
fn turns_are_never_empty_and_alternate() {
    check(
        &model("gemini-2.5-pro"),
        vec![
            text("a"),
            text(""),
            text("b"),
            Message::Assistant(vec![thought("only thought", None)]),
            Message::Assistant(vec![assistant_text(""), AssistantContent::Metadata(signed("s"))]),
            Message::Assistant(vec![assistant_text("c")]),
            Message::Assistant(vec![assistant_text("d"), AssistantContent::Metadata(signed("s"))]),
            text("e"),
        ],
        &json!([
            {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
            {"role": "model", "parts": [{"text": "c"}, {"text": "d", "thoughtSignature": "s"}]},
            {"role": "user", "parts": [{"text": "e"}]},
        ]),
    );
}

#[test]
fn files_are_sent_in_a_format_that_the_model_supports() {
    let file =
        |mime: &str, data: FileData| UserContent::File(File { mime: mime.into(), filename: None, data });
    let base64 = |text: &str| FileData::Base64(text.into());
    check(
        &model("gemini-2.5-pro"),
        vec![Message::User(vec![
            file("application/pdf", base64("JVBERi0=")),
            file("image/png", FileData::Url("https://h/i.png".into())),
            file("text/plain", base64("aGk=")),
            file("audio/mpeg", base64("AA==")),
        ])],
        &json!([{"role": "user", "parts": [
            {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}},
            {"fileData": {"mimeType": "image/png", "fileUri": "https://h/i.png"}},
            {"text": "hi"},
            {"text": "[a file (audio/mpeg) is left out: this model cannot read it. Say so to the user.]"},
        ]}]),
    );
}

#[test]
fn a_call_without_a_required_signature_gets_a_placeholder() {
    let turn = |signature: Option<&str>| {
        let mut calls = vec![call("a")];
        calls.extend(signature.map(|signature| AssistantContent::Metadata(signed(signature))));
        calls.push(call("b"));
        vec![Message::Assistant(calls), Message::Tool(vec![result("1"), result("2")])]
    };
    let signatures = |id: &str| -> Vec<Option<String>> {
        let mut messages = vec![text("one")];
        messages.extend(turn(None));
        messages.extend(turn(Some("real")));
        let body = lower(&Request { messages, ..Request::default() }, &model(id));
        let parts =
            body["contents"].as_array().unwrap().iter().flat_map(|turn| turn["parts"].as_array().unwrap());
        let calls = parts.filter(|part| part.get("functionCall").is_some());
        calls.map(|call| call["thoughtSignature"].as_str().map(str::to_owned)).collect()
    };
    let real = Some("real".to_owned());
    let none = Some(NO_SIGNATURE.to_owned());
    assert_eq!(signatures("gemini-3-pro-preview"), [none, None, real.clone(), None]);
    assert_eq!(signatures("gemini-2.5-pro"), [None, None, real, None]);
}

#[test]
fn signed_reasoning_is_sent_back_and_others_redacted_reasoning_is_not() {
    check(
        &model("gemini-2.5-pro"),
        vec![Message::Assistant(vec![
            thought("hm", Some(signed("c2ln"))),
            thought("", Some(json!({"anthropic": {"redactedData": "eHg="}}))),
            assistant_text("a"),
        ])],
        &json!([{"role": "model", "parts": [
            {"text": "hm", "thought": true, "thoughtSignature": "c2ln"},
            {"text": "a"},
        ]}]),
    );
}

#[test]
fn options_get_their_field() {
    let plain = model("gemma-3");
    check_generation(
        &plain,
        json!({"topK": 5, "stopSequences": ["x"], "safetySettings": [], "store": true, "apiKey": "k"}),
        &json!({"topK": 5, "stopSequences": ["x"]}),
    );
    let options = json!({"safetySettings": [{"a": 1}], "store": true, "generationConfig": {"seed": 1}});
    let request = Request { options: options.as_object().unwrap().clone(), ..Request::default() };
    let expected = json!({"generationConfig": {"seed": 1}, "contents": [], "safetySettings": [{"a": 1}]});
    assert_eq!(lower(&request, &plain), expected);
}

#[test]
fn thinking_has_a_budget_or_a_level() {
    let config = |thinking: Value| json!({"topK": 64, "thinkingConfig": thinking});
    let model = thinker("gemini-2.5-flash");
    check_generation(&model, json!({}), &config(json!({"includeThoughts": true})));
    check_generation(
        &model,
        json!({"thinkingConfig": {"thinkingBudget": 16000, "thinkingLevel": "low"}}),
        &config(json!({"includeThoughts": true, "thinkingBudget": 16000})),
    );
    check_generation(
        &model,
        json!({"thinkingConfig": {"thinkingBudget": 0}}),
        &config(json!({"thinkingBudget": 0})),
    );
    check_generation(&model, json!({"thinkingConfig": null}), &json!({"topK": 64}));
}

#[test]
fn a_tool_choice_is_converted() {
    for (choice, expected) in
        [(ToolChoice::Auto, "AUTO"), (ToolChoice::Required, "ANY"), (ToolChoice::None, "NONE")]
    {
        let tool =
            ToolSpec { name: "t".into(), description: "d".into(), parameters: json!({"type": "object"}) };
        let request = Request { tools: vec![tool], tool_choice: choice, ..Request::default() };
        let body = lower(&request, &model("gemini-2.5-pro"));
        assert_eq!(body["toolConfig"], json!({"functionCallingConfig": {"mode": expected}}));
        assert_eq!(body["tools"], json!([{"functionDeclarations": [{"name": "t", "description": "d"}]}]));
    }
}

#[test]
fn a_model_without_a_system_prompt_gets_it_as_user_text() {
    let request = Request { system: "Be brief.".into(), messages: vec![text("hi")], ..Request::default() };
    let body = lower(&request, &model("gemma-3-27b-it"));
    assert_eq!(
        body,
        json!({"contents": [{"role": "user", "parts": [{"text": "Be brief."}, {"text": "hi"}]}]})
    );
}

#[test]
fn the_prefix_of_a_longer_conversation_is_the_same_bytes() {
    let mut messages = vec![
        text("one"),
        Message::Assistant(vec![call("a"), AssistantContent::Metadata(signed("s"))]),
        Message::Tool(vec![result("1")]),
        Message::Assistant(vec![call("b")]),
        Message::Tool(vec![result("2")]),
    ];
    let lowered = |messages: &[Message]| {
        let request = Request { messages: messages.to_vec(), ..Request::default() };
        lower(&request, &model("gemini-3-pro"))["contents"].to_string()
    };
    let before = lowered(&messages);
    messages.extend([Message::Assistant(vec![assistant_text("done")]), text("two")]);
    let after = lowered(&messages);
    assert!(after.starts_with(before.trim_end_matches(']')), "{before}\n{after}");
}
