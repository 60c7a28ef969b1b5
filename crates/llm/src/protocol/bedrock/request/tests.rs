use super::*;
use crate::{Protocol, ToolSpec};

fn model(id: &str) -> Model {
    let mut model = Model::new("amazon-bedrock", id, Protocol::Bedrock, "https://h");
    model.capabilities.input.image = true;
    model.capabilities.input.pdf = true;
    model
}

const CLAUDE: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const LLAMA: &str = "meta.llama3-70b-instruct-v1:0";

fn text(text: &str) -> Message {
    Message::User(vec![UserContent::Text(text.into())])
}

fn assistant_text(text: &str) -> AssistantContent {
    AssistantContent::Text(text.into())
}

fn thought(text: &str, metadata: Value) -> AssistantContent {
    AssistantContent::Reasoning { text: text.into(), metadata: Some(metadata) }
}

fn call(id: &str) -> AssistantContent {
    AssistantContent::ToolCall { id: id.into(), name: "read".into(), input: json!({"p": 1}) }
}

fn result(id: &str, output: &str) -> ToolResult {
    ToolResult { call_id: id.into(), name: "read".into(), output: output.into(), ..ToolResult::default() }
}

fn file(mime: &str, filename: Option<&str>, data: FileData) -> File {
    File { mime: mime.into(), filename: filename.map(str::to_owned), data }
}

fn tool() -> ToolSpec {
    ToolSpec { name: "read".into(), description: "Reads".into(), parameters: json!({"type": "object"}) }
}

fn options(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Compares bytes, because the order of fields matters.
#[track_caller]
fn check_messages(id: &str, messages: Vec<Message>, expected: &Value) {
    let body = lower(&Request { messages, ..Request::default() }, &model(id));
    assert_eq!(body["messages"].to_string(), expected.to_string());
}

#[test]
fn a_request_with_tools_is_complete() {
    let signature = json!({"bedrock": {"signature": "c2ln"}});
    let request = Request {
        system: "You are".into(),
        messages: vec![
            text("Look"),
            Message::Assistant(vec![
                thought("Hm.", signature),
                assistant_text("Looking."),
                call("t1"),
                call("t2"),
            ]),
            Message::Tool(vec![
                result("t1", "one"),
                ToolResult { is_error: true, ..result("t2", "no such file") },
            ]),
        ],
        tools: vec![tool()],
        max_output_tokens: 32_000,
        temperature: Some(1.5),
        top_p: Some(0.9),
        ..Request::default()
    };
    let expected = json!({
        "inferenceConfig": {"maxTokens": 32000, "temperature": 1, "topP": 0.9},
        "system": [{"text": "You are"}, mark()],
        "toolConfig": {
            "tools": [{"toolSpec": {
                "name": "read", "description": "Reads", "inputSchema": {"json": {"type": "object"}},
            }}],
            "toolChoice": {"auto": {}},
        },
        "messages": [
            {"role": "user", "content": [{"text": "Look"}]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
                {"text": "Looking."},
                {"toolUse": {"toolUseId": "t1", "name": "read", "input": {"p": 1}}},
                {"toolUse": {"toolUseId": "t2", "name": "read", "input": {"p": 1}}},
                mark(),
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "one"}], "status": "success"}},
                {"toolResult": {"toolUseId": "t2", "content": [{"text": "no such file"}], "status": "error"}},
                mark(),
            ]},
        ],
    });
    assert_eq!(lower(&request, &model(CLAUDE)).to_string(), expected.to_string());
}

#[test]
fn only_families_that_support_marks_get_them() {
    for (id, expected) in [
        (CLAUDE, true),
        ("anthropic.claude-3-haiku-20240307-v1:0", false),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", true),
        ("us.amazon.nova-pro-v1:0", true),
        (LLAMA, false),
        ("mistral.mistral-large-2402-v1:0", false),
        ("openai.gpt-oss-120b-1:0", false),
    ] {
        let request = Request { system: "s".into(), messages: vec![text("a")], ..Request::default() };
        let body = lower(&request, &model(id)).to_string();
        assert_eq!(body.contains("cachePoint"), expected, "{id}");
    }
}

#[test]
fn reasoning_is_sent_back_unchanged() {
    let hidden = json!({"bedrock": {"redactedData": "eHg+/w=="}});
    let foreign = json!({"anthropic": {"signature": "x"}});
    check_messages(
        LLAMA,
        vec![
            text("a"),
            Message::Assistant(vec![thought("", hidden), thought("f", foreign), assistant_text("b")]),
            text("c"),
        ],
        &json!([
            {"role": "user", "content": [{"text": "a"}]},
            {"role": "assistant", "content": [{"reasoningContent": {"redactedContent": "eHg+/w=="}}, {"text": "b"}]},
            {"role": "user", "content": [{"text": "c"}]},
        ]),
    );
}

#[test]
fn roles_alternate_and_begin_and_end_with_the_user() {
    let messages = || {
        vec![
            Message::Assistant(vec![assistant_text("hello")]),
            text("  "),
            text("a"),
            text("b"),
            Message::Assistant(vec![AssistantContent::Reasoning { text: "t".into(), metadata: None }]),
            text("c"),
            Message::Assistant(vec![assistant_text("go on ")]),
        ]
    };
    let mut expected = vec![
        json!({"role": "user", "content": [{"text": "Continue."}]}),
        json!({"role": "assistant", "content": [{"text": "hello"}]}),
        json!({"role": "user", "content": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}),
        json!({"role": "assistant", "content": [{"text": "go on"}]}),
    ];
    check_messages("anthropic.claude-instant-v1", messages(), &json!(expected));
    expected.push(json!({"role": "user", "content": [{"text": "Continue."}]}));
    check_messages(LLAMA, messages(), &json!(expected));
}

#[test]
fn files_are_sent_in_the_format_of_their_type() {
    let base64 = || FileData::Base64("aGk=".into());
    let content = vec![
        UserContent::File(file("image/png", None, base64())),
        UserContent::File(file("image/jpeg", None, FileData::Url("s3://b/k.jpg".into()))),
        UserContent::File(file("application/pdf", Some("My: report_v2.pdf"), base64())),
        UserContent::File(file("text/plain", Some("é.txt"), base64())),
        UserContent::File(file("text/x-rust", Some("a.rs"), base64())),
        UserContent::File(file("image/png", Some("far.png"), FileData::Url("https://h/far.png".into()))),
    ];
    let body =
        lower(&Request { messages: vec![Message::User(content)], ..Request::default() }, &model(LLAMA));
    let blocks = &body["messages"][0]["content"];
    let expected = json!([
        {"image": {"format": "png", "source": {"bytes": "aGk="}}},
        {"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://b/k.jpg"}}}},
        {"document": {"format": "pdf", "name": "My report v2 1", "source": {"bytes": "aGk="}}},
        {"document": {"format": "txt", "name": "document 2", "source": {"bytes": "aGk="}}},
        {"text": "hi"},
    ]);
    assert_eq!(blocks.as_array().unwrap()[..5].to_vec(), *expected.as_array().unwrap());
    assert!(blocks[5]["text"].as_str().unwrap().contains("far.png"), "{blocks}");
}

#[test]
fn a_document_needs_text_and_results_may_contain_files() {
    let pdf = file("application/pdf", None, FileData::Base64("aGk=".into()));
    let document = |number: u8| json!({"document": {"format": "pdf", "name": format!("document {number}"), "source": {"bytes": "aGk="}}});
    check_messages(
        LLAMA,
        vec![
            Message::User(vec![UserContent::File(pdf.clone())]),
            Message::Assistant(vec![call("t")]),
            Message::Tool(vec![ToolResult { attachments: vec![pdf], ..result("t", "") }]),
        ],
        &json!([
            {"role": "user", "content": [{"text": DOCUMENT_LEAD_IN}, document(1)]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "read", "input": {"p": 1}}}]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "t", "content": [document(2)], "status": "success"}},
            ]},
        ]),
    );
}

#[test]
fn ids_are_converted_for_the_model() {
    let id = |model_id: &str, id: &str| {
        let model = model(model_id);
        Conversation { model: &model, family: Family::of(&model), marks: false, documents: 0 }.sanitize_id(id)
    };
    assert_eq!(id(LLAMA, "call_1-a"), "call_1-a");
    assert_eq!(id(LLAMA, "functions.read:0"), "functions_read_0");
    assert_eq!(id(LLAMA, ""), "_");
    let (one, two) = ("x".repeat(90) + "1", "x".repeat(90) + "2");
    assert_eq!(id(LLAMA, &one).len(), ID_LENGTH);
    assert_ne!(id(LLAMA, &one), id(LLAMA, &two));
    let mistral = "mistral.mistral-large-2402-v1:0";
    assert_eq!(id(mistral, "abcDEF123"), "abcDEF123");
    let made = id(mistral, "tooluse_abc");
    assert!(
        made.len() == MISTRAL_ID_LENGTH && made.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        "{made}"
    );
    assert_eq!(made, id(mistral, "tooluse_abc"));
}

#[test]
fn calls_in_the_conversation_need_a_declared_tool() {
    let conversation =
        vec![text("a"), Message::Assistant(vec![call("t")]), Message::Tool(vec![result("t", "x")])];
    let request = |messages: &[Message], tools: Vec<ToolSpec>, tool_choice: ToolChoice| {
        let request = Request { messages: messages.to_vec(), tools, tool_choice, ..Request::default() };
        lower(&request, &model(LLAMA))["toolConfig"].clone()
    };
    let stand_in = request(&conversation, vec![], ToolChoice::Auto);
    assert_eq!(stand_in["tools"][0]["toolSpec"]["name"], "_noop");
    assert_eq!(request(&[text("a")], vec![], ToolChoice::Auto), Value::Null);
    assert_eq!(request(&[text("a")], vec![tool()], ToolChoice::Required)["toolChoice"], json!({"any": {}}));
    assert_eq!(request(&[text("a")], vec![tool()], ToolChoice::None), Value::Null);
    let kept = request(&conversation, vec![tool()], ToolChoice::None);
    assert_eq!((&kept["tools"][0]["toolSpec"]["name"], &kept["toolChoice"]), (&json!("read"), &Value::Null));
}

#[test]
fn reasoning_options_use_the_familys_spelling() {
    let lowered = |id: &str, given: Value| {
        let request = Request {
            messages: vec![text("a")],
            max_output_tokens: 32_000,
            temperature: Some(0.5),
            options: options(given),
            ..Request::default()
        };
        let mut model = model(id);
        model.limits.output = 64_000;
        let body = lower(&request, &model);
        (body["inferenceConfig"].clone(), body["additionalModelRequestFields"].clone())
    };
    let budget = json!({"reasoningConfig": {"type": "enabled", "budgetTokens": 16000}});
    let adaptive = json!({"reasoningConfig": {"type": "adaptive", "maxReasoningEffort": "high"}});
    let effort = json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}});
    for (id, given, inference, fields) in [
        (
            CLAUDE,
            budget,
            json!({"maxTokens": 48000}),
            json!({"thinking": {"type": "enabled", "budget_tokens": 16000}}),
        ),
        (
            "us.anthropic.claude-opus-4-6-v1",
            adaptive,
            json!({"maxTokens": 32000}),
            json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ),
        (
            CLAUDE,
            json!({"reasoningConfig": {"type": "enabled", "budgetTokens": 16000}, "thinking": null}),
            json!({"maxTokens": 32000, "temperature": 0.5}),
            Value::Null,
        ),
        (
            "us.amazon.nova-2-lite-v1:0",
            json!({"reasoningConfig": {"type": "adaptive", "maxReasoningEffort": "low"}}),
            json!({"maxTokens": 32000, "temperature": 0.5}),
            json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}),
        ),
        (
            "openai.gpt-oss-120b-1:0",
            effort,
            json!({"maxTokens": 32000, "temperature": 0.5}),
            json!({"reasoning_effort": "low"}),
        ),
    ] {
        assert_eq!(lowered(id, given), (inference, fields), "{id}");
    }
}

#[test]
fn options_get_their_field_and_connection_settings_are_dropped() {
    let request = Request {
        messages: vec![text("a")],
        max_output_tokens: 10,
        options: options(json!({
            "region": "us-east-1", "profile": "p", "accessKeyId": "AK", "secretAccessKey": "S", "apiKey": "k",
            "topK": 5, "anthropicBeta": ["b"], "additionalModelRequestFields": {"x": 1},
            "guardrailConfig": {"guardrailIdentifier": "g"}, "stopSequences": ["END"],
            "inferenceConfig": {"maxTokens": null},
        })),
        ..Request::default()
    };
    let expected = json!({
        "inferenceConfig": {"stopSequences": ["END"]},
        "messages": [{"role": "user", "content": [{"text": "a"}]}],
        "guardrailConfig": {"guardrailIdentifier": "g"},
        "additionalModelRequestFields": {"top_k": 5, "anthropic_beta": ["b"], "x": 1},
    });
    assert_eq!(lower(&request, &model(LLAMA)), expected);
}

#[test]
fn nova_gets_a_plain_schema() {
    let schema =
        json!({"$schema": "s", "type": "object", "properties": {"a": {"minLength": 1}}, "required": ["a"]});
    let lowered = |id: &str| {
        let tools = vec![ToolSpec { parameters: schema.clone(), ..tool() }];
        let body = lower(&Request { messages: vec![text("a")], tools, ..Request::default() }, &model(id));
        body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"].clone()
    };
    assert_eq!(lowered(CLAUDE), schema);
    let plain = json!({"type": "object", "properties": {"a": {"minLength": 1}}, "required": ["a"]});
    assert_eq!(lowered("us.amazon.nova-pro-v1:0"), plain);
}
