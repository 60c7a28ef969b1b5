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
    let repeats = repair(&Refusals::default(), &model(protocol), &mut body, &error(message));
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
    assert!(repair(&refusals, &model, &mut body, &error("messages.0.content.1.image: bad")));
    let mut next = anthropic();
    next["messages"][0]["content"][1]["cache_control"] = json!({"type": "ephemeral"});
    apply(&refusals, &model, &mut next);
    assert!(next["messages"][0]["content"][1]["text"].is_string(), "{next}");
    let mut other = anthropic();
    apply(&refusals, &Model::new("other", "m", Protocol::Anthropic, "https://h"), &mut other);
    assert_eq!(other, anthropic());
}
