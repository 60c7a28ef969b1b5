use serde_json::json;

use super::*;
use crate::Protocol;

fn model(protocol: Protocol) -> Model {
    Model::new("p", "m", protocol, "https://h")
}

fn error(message: &str) -> Error {
    let failure = Failure { message: message.into(), status: Some(400), ..Failure::default() };
    Error::Rejected { failure: Box::new(failure) }
}

fn scope<'a>(refusals: &'a Refusals, model: &'a Model) -> Scope<'a> {
    Scope { refusals, model, session: "ses_1" }
}

fn anthropic() -> Value {
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}});
    json!({
        "system": [{"type": "text", "text": "s"}],
        "tools": [{"name": "read", "input_schema": {}}, {"name": "docs_find", "input_schema": {}}],
        "tool_choice": {"type": "auto"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}, image.clone()]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "t", "signature": "S"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}},
                {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [image, {"type": "text", "text": "one"}]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "two"},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
            {"role": "user", "content": [{"type": "text", "text": "and now?"}]},
        ],
    })
}

/// Returns the body after an error, and whether the request is repeated.
fn after(protocol: Protocol, mut body: Value, message: &str) -> (Value, bool) {
    let (refusals, model) = (Refusals::default(), model(protocol));
    let repeats = scope(&refusals, &model).repair(&mut body, &error(message));
    (body, repeats)
}

#[test]
fn the_named_part_is_left_out() {
    for (message, pointer) in [
        ("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum", "/messages/0/content/1"),
        ("messages[0].content[1]: Could not process image", "/messages/0/content/1"),
        (
            "messages.2.content.0.tool_result.content.0.image.source.base64.data: too wide",
            "/messages/2/content/0/content/0",
        ),
    ] {
        let (body, repeats) = after(Protocol::Anthropic, anthropic(), message);
        assert!(repeats, "{message}");
        let text = body.pointer(pointer).unwrap()["text"].as_str().unwrap();
        assert!(text.starts_with("[A picture is left out here"), "{text}");
        assert_eq!(body.to_string().matches("AA").count(), 1, "{message}");
    }
    for message in [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "Invalid signature in thinking block",
    ] {
        let (body, _) = after(Protocol::Anthropic, anthropic(), message);
        assert!(!body.to_string().contains("thinking"), "{message}: {body}");
    }
    let (body, _) = after(Protocol::Anthropic, anthropic(), "This model does not support image input");
    assert!(!body.to_string().contains("AA"), "{body}");
}

#[test]
fn a_place_that_is_of_another_kind_means_the_kind() {
    let message = "messages.0.content.0.image.source.base64: Could not process image";
    let (body, repeats) = after(Protocol::Anthropic, anthropic(), message);
    assert!(repeats);
    assert_eq!(body["messages"][0]["content"][0]["text"], "look");
    assert!(!body.to_string().contains("AA"), "{body}");
}

#[test]
fn a_tool_is_left_out_by_its_place_or_its_name() {
    for message in
        ["tools.1.custom.input_schema: JSON schema is invalid", "Invalid schema for function 'docs_find': x"]
    {
        let (body, repeats) = after(Protocol::Anthropic, anthropic(), message);
        assert!(repeats, "{message}");
        assert_eq!(body["tools"], json!([{"name": "read", "input_schema": {}}]));
        assert!(body["system"][1]["text"].as_str().unwrap().contains("docs_find"), "{body}");
    }
    let mut body = anthropic();
    body["tools"] = json!([{"name": "docs_find"}]);
    let (body, _) = after(Protocol::Anthropic, body, "tools.0: bad");
    assert!(body.get("tools").is_none() && body.get("tool_choice").is_none());
}

#[test]
fn a_call_becomes_text_with_its_result() {
    for message in ["messages.1.content.3.tool_use.id: bad id", "`tool_use` ids must be unique: toolu_2"] {
        let (body, repeats) = after(Protocol::Anthropic, anthropic(), message);
        assert!(repeats);
        assert_eq!(body["messages"][2]["content"].as_array().unwrap().len(), 1);
        let text = body["messages"][1]["content"][3]["text"].as_str().unwrap();
        assert!(text.contains("toolu_2") && text.contains("two"), "{text}");
    }
    let chat = json!({"messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "function": {"name": "r", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "out"},
    ]});
    let (body, _) = after(Protocol::OpenAiChat, chat, "Invalid 'messages[1].tool_calls[0].id': too long");
    assert_eq!(body["messages"][1].get("tool_calls"), None);
    assert!(body["messages"][1]["content"].as_str().unwrap().contains("out"), "{body}");
    assert_eq!(body["messages"][2], json!({"role": "user", "content": CONTINUE}));
}

const CONTINUE: &str = "Continue.";

#[test]
fn other_protocols_name_their_parts_too() {
    let gemini = json!({
        "tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}],
        "contents": [{"role": "user", "parts": [{"text": "q"}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]}],
    });
    let (body, _) = after(
        Protocol::Gemini,
        gemini.clone(),
        "* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[x].items: missing field.",
    );
    assert_eq!(body["tools"][0]["functionDeclarations"], json!([{"name": "a"}]));
    assert!(body["systemInstruction"]["parts"][0]["text"].as_str().unwrap().contains('b'));
    let (body, _) = after(Protocol::Gemini, gemini, "Unable to process input image.");
    assert!(body["contents"][0]["parts"][1]["text"].is_string());
    let responses = json!({"input": [
        {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "reasoning", "encrypted_content": "E", "summary": []},
        {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "r"}]},
    ]});
    let (body, _) = after(
        Protocol::OpenAiResponses,
        responses,
        "The encrypted content for item rs_1 could not be verified.",
    );
    assert!(!body.to_string().contains("reasoning"), "{body}");
}

#[test]
fn what_names_no_part_is_not_repeated() {
    for message in [
        "Your credit balance is too low",
        "messages.4.content.0.text: too long",
        "max_tokens: 99 > 50",
        "messages.99.content.0: bad",
        "The model `m` does not exist",
    ] {
        let (body, repeats) = after(Protocol::Anthropic, anthropic(), message);
        assert!(!repeats, "{message}");
        assert_eq!(body, anthropic());
    }
}

#[test]
fn a_refused_part_is_left_out_of_later_requests() {
    let (refusals, model) = (Refusals::default(), model(Protocol::Anthropic));
    let mut body = anthropic();
    assert!(scope(&refusals, &model).repair(&mut body, &error("messages.0.content.1.image: bad")));
    let mut next = anthropic();
    next["messages"][0]["content"][1]["cache_control"] = json!({"type": "ephemeral"});
    scope(&refusals, &model).apply(&mut next);
    assert!(next["messages"][0]["content"][1]["text"].is_string(), "{next}");
    let other = Model::new("other", "m", Protocol::Anthropic, "https://h");
    for other in [scope(&refusals, &other), Scope { session: "ses_2", ..scope(&refusals, &model) }] {
        let mut body = anthropic();
        other.apply(&mut body);
        assert_eq!(body, anthropic());
    }
}

#[test]
fn a_turn_that_must_not_think_is_remembered() {
    let (refusals, model) = (Refusals::default(), model(Protocol::Anthropic));
    let thinking = || {
        let mut body = anthropic();
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        // The prompt and two calls with results.
        body["messages"].as_array_mut().unwrap().truncate(3);
        body
    };
    let mut body = thinking();
    let message = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`";
    assert!(scope(&refusals, &model).repair(&mut body, &error(message)));
    let mut step = thinking();
    let more = [
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_3", "name": "read", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_3", "content": "x"}]}),
    ];
    step["messages"].as_array_mut().unwrap().extend(more);
    scope(&refusals, &model).apply(&mut step);
    assert!(step.get("thinking").is_none(), "{step}");
    let mut next_turn = thinking();
    next_turn["messages"]
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "user", "content": [{"type": "text", "text": "next"}]}));
    scope(&refusals, &model).apply(&mut next_turn);
    assert!(next_turn["thinking"].is_object(), "{next_turn}");
}

#[test]
fn the_signature_of_a_call_of_gemini_is_left_out() {
    let call = |signature: &str| json!({"functionCall": {"name": "read", "args": {}}, "thoughtSignature": signature});
    let body = || {
        json!({"contents": [
            {"role": "user", "parts": [{"text": "q"}]},
            {"role": "model", "parts": [{"text": "t", "thoughtSignature": "dGV4dA=="}, call("c2ln")]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {}}}]},
        ]})
    };
    for message in [
        "Corrupted thought signature.",
        "Thought signature is not valid",
        "contents[1].parts[1]: thought_signature is invalid",
    ] {
        for (api_id, expected) in
            [("gemini-3-pro", json!("skip_thought_signature_validator")), ("gemini-2.5-pro", Value::Null)]
        {
            let (refusals, model) =
                (Refusals::default(), Model::new("p", api_id, Protocol::Gemini, "https://h"));
            let mut first = body();
            assert!(scope(&refusals, &model).repair(&mut first, &error(message)), "{message}");
            assert_eq!(first["contents"][1]["parts"][1]["thoughtSignature"], expected, "{message}");
            assert_eq!(first["contents"][1]["parts"][1]["functionCall"]["name"], "read");
            let mut next = body();
            scope(&refusals, &model).apply(&mut next);
            assert_eq!(next, first);
        }
    }
}

#[test]
fn missing_reasoning_is_added_from_then_on() {
    let (refusals, model) = (Refusals::default(), model(Protocol::OpenAiChat));
    let body = || {
        json!({"messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "function": {"name": "r", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "out"},
            {"role": "assistant", "content": "a", "reasoning_content": "hm"},
            {"role": "user", "content": "r"},
        ]})
    };
    for message in [
        "Missing `reasoning_content` field in the assistant message at message index 1. For more information, read on",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
    ] {
        let mut first = body();
        assert!(scope(&refusals, &model).repair(&mut first, &error(message)), "{message}");
        assert_eq!(first["messages"][1]["reasoning_content"], " ");
        assert_eq!(first["messages"][3]["reasoning_content"], "hm");
        let mut next = body();
        scope(&refusals, &model).apply(&mut next);
        assert_eq!(next, first);
    }
}

#[test]
fn a_path_in_a_schema_names_the_tool_that_has_it() {
    let tool = |name: &str, properties: Value| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}});
    let text = json!({"type": "string"});
    let body = json!({"messages": [{"role": "user", "content": "q"}], "tools": [
        tool("read", json!({"path": text})),
        tool("docs_good", json!({"good_q": text})),
        tool("docs_bad", json!({"bad_q": {"anyOf": [{}]}, "path": {"description": "d"}})),
    ]});
    for path in ["properties.bad_q", "properties.bad_q.anyOf.0", "properties.path"] {
        let message = format!(
            "Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: \
             <At path '{path}': type is not defined>"
        );
        let (body, repeats) = after(Protocol::OpenAiChat, body.clone(), &message);
        assert!(repeats, "{path}");
        let names: Vec<&Value> =
            body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
        assert_eq!(names, ["read", "docs_good"], "{path}");
        assert!(body["messages"][0]["content"].as_str().unwrap().contains("docs_bad"), "{body}");
    }
    let message =
        "tools.function.parameters is not a valid schema: At path 'properties.other': type is not defined";
    assert!(!after(Protocol::OpenAiChat, body, message).1);
}
