//! Whole turns over OpenAI Responses.

use codewright_proto::{Message, MessageError, MessageWithParts, PartBody};
use codewright_scripted::{Finish, Protocol, Script, Step, Steps, StreamError, Turn, Usage};
use serde_json::{Value, json};

use crate::desk::{Desk, calls, text};

/// Encrypted reasoning may be any text, which must be sent back unchanged.
const SEAL: &str = "gAAAA+/=\u{e4}\\n\"sealed thought\"==";
const THOUGHT: &str = "First I look,\n\tthen \u{1f914} I \"act\".  ";

async fn desk(script: Script) -> Desk {
    Desk::with(script, json!({ "model": "mockopenai/gpt-5-mock" })).await
}

fn error(answer: &MessageWithParts) -> Option<&MessageError> {
    let Message::Assistant(info) = &answer.info else { panic!("an answer") };
    info.error.as_ref()
}

fn failing(kind: Option<&str>, code: &str, message: &str) -> Steps {
    Turn::steps().step(Step::StreamError(StreamError {
        kind: kind.map(str::to_owned),
        code: Some(json!(code)),
        message: message.to_owned(),
    }))
}

#[tokio::test]
async fn reasoning_is_sent_back_byte_for_byte() {
    let usage = Usage { input: 70, output: 30, cache_read: 500, cache_write: 0, reasoning: 12 };
    let script = Script::new()
        .turn(
            Turn::steps()
                .reasoning(THOUGHT)
                .encrypted(SEAL)
                .text("Looking.")
                .tool("read", json!({ "filePath": "a.txt" }))
                .id("call_one")
                .tool("read", json!({ "filePath": "missing.txt" }))
                .id("call_two")
                .usage(usage),
        )
        // Reasoning whose text the provider keeps back.
        .turn(Turn::steps().reasoning("").encrypted("second").text("Done now."))
        .text("Again.");
    let desk = desk(script).await;
    std::fs::write(desk.project.join("a.txt"), "one\n").unwrap();
    let session = desk.session().await;
    assert_eq!(text(&desk.prompt(&session, "Please look").await), "Done now.");
    desk.prompt(&session, "Second question").await;

    let transcript = desk.transcript(&session).await;
    assert_eq!(calls(&transcript).len(), 2);
    let Message::Assistant(info) = &transcript[1].info else { panic!("an answer") };
    assert_eq!((info.tokens.input, info.tokens.output, info.tokens.reasoning), (70, 18, 12));
    assert_eq!(info.tokens.cache.read, 500);
    let thought = transcript[1].parts.iter().find_map(|part| match &part.body {
        PartBody::Reasoning { text, .. } => Some(text.to_string()),
        _ => None,
    });
    assert_eq!(thought.as_deref(), Some(THOUGHT));

    let requests = desk.server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.protocol == Protocol::Responses));
    let input = requests[2].body["input"].as_array().unwrap();
    assert_eq!(input[0]["role"], "developer");
    let expected = json!([
        { "type": "reasoning", "encrypted_content": SEAL, "summary": [{ "type": "summary_text", "text": THOUGHT }] },
        { "role": "assistant", "content": [{ "type": "output_text", "text": "Looking." }] },
        { "type": "function_call", "call_id": "call_one", "name": "read", "arguments": "{\"filePath\":\"a.txt\"}" },
        { "type": "function_call", "call_id": "call_two", "name": "read", "arguments": "{\"filePath\":\"missing.txt\"}" },
    ]);
    assert_eq!(input[2..6], *expected.as_array().unwrap());
    let output = |at: usize| input[at]["output"].as_str().unwrap_or_default();
    assert!(output(6).contains("1: one"), "{}", output(6));
    assert!(output(7).contains("missing.txt"), "{}", output(7));
    let expected = json!([
        { "type": "reasoning", "encrypted_content": "second", "summary": [] },
        { "role": "assistant", "content": [{ "type": "output_text", "text": "Done now." }] },
        { "role": "user", "content": [{ "type": "input_text", "text": "Second question" }] },
    ]);
    assert_eq!(input[8..], *expected.as_array().unwrap());
    // Earlier content is sent again byte for byte.
    for pair in requests.windows(2) {
        let (before, after) = (pair[0].body["input"].to_string(), pair[1].body["input"].to_string());
        assert!(after.starts_with(before.trim_end_matches(']')), "{before}\n{after}");
    }
    desk.assert_clean();
}

#[tokio::test]
async fn a_picture_from_a_tool_is_seen() {
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
        \x00\x00\x00\x0dIDATx\xdacd\xf8\xcfP\x0f\x00\x03\x86\x01\x80Z4}k\x00\x00\x00\x00IEND\xaeB`\x82";
    let desk = desk(Script::new().tool("read", json!({ "filePath": "i.png" })).text("I see.")).await;
    std::fs::write(desk.project.join("i.png"), PNG).unwrap();
    let session = desk.session().await;
    assert_eq!(text(&desk.prompt(&session, "look").await), "I see.");
    let body = &desk.server.requests()[1].body;
    let output = body["input"].as_array().unwrap().last().unwrap()["output"].as_array().unwrap();
    assert!(output.iter().any(|part| {
        part["type"] == "input_image"
            && part["image_url"].as_str().is_some_and(|url| url.starts_with("data:image/png;base64,"))
    }));
    desk.assert_clean();
}

#[tokio::test]
async fn a_call_with_invalid_json_is_reported_and_sent_back_well_formed() {
    let desk = desk(Script::new().tool("read", "{bad json").text("went on")).await;
    let session = desk.session().await;
    assert_eq!(text(&desk.prompt(&session, "go").await), "went on");
    assert_eq!(calls(&desk.transcript(&session).await)[0].0, "invalid");
    desk.assert_clean();
}

#[tokio::test]
async fn a_truncated_answer_states_the_reason() {
    for (finish, expected) in [(Finish::Length, "length"), (Finish::ContentFilter, "content-filter")] {
        let desk = desk(Script::new().turn(Turn::text("cut off").finish(finish))).await;
        let session = desk.session().await;
        let answer = desk.prompt(&session, "go").await;
        let Message::Assistant(info) = &answer.info else { panic!("an answer") };
        assert_eq!(info.finish.as_deref(), Some(expected));
        assert_eq!(desk.server.main_requests().len(), 1);
        desk.assert_clean();
    }
}

#[tokio::test]
async fn a_temporary_failure_is_retried() {
    for turn in [
        failing(None, "server_error", "The server had an error"),
        failing(Some("tokens"), "rate_limit_exceeded", "Rate limit reached, try again in 20ms"),
        Turn::steps().reasoning("Half a thought").text("Half an answer").disconnect(),
    ] {
        let desk = desk(Script::new().turn(turn).text("Second attempt.")).await;
        let session = desk.session().await;
        assert_eq!(text(&desk.prompt(&session, "go").await), "Second attempt.");
        // The abandoned attempt is not sent back.
        desk.prompt(&session, "again").await;
        let sent = desk.server.main_requests();
        assert_eq!(sent.len(), 3);
        assert!(!sent[2].body.to_string().contains("Half"), "{}", sent[2].body);
        desk.assert_clean();
    }
}

#[tokio::test]
async fn a_permanent_failure_is_reported_once() {
    let quota = failing(Some("insufficient_quota"), "insufficient_quota", "You exceeded your current quota");
    let desk = desk(Script::new().turn(quota).text("fine")).await;
    let session = desk.session().await;
    let answer = desk.prompt(&session, "go").await;
    let told = matches!(
        error(&answer),
        Some(MessageError::APIError { message, is_retryable: false, .. }) if message.contains("quota")
    );
    assert!(told, "{:?}", error(&answer));
    assert_eq!(desk.server.main_requests().len(), 1);
    assert_eq!(text(&desk.prompt(&session, "again").await), "fine");
    desk.assert_clean();
}

#[tokio::test]
async fn a_context_overflow_is_recognized_in_every_form() {
    const MESSAGE: &str = "Your input exceeds the context window of this model.";
    let body: Value = json!({ "error": {
        "message": MESSAGE, "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded",
    } });
    let turns: [Turn; 3] = [
        Turn::http_error(400).body(body).into(),
        failing(Some("invalid_request_error"), "context_length_exceeded", MESSAGE).into(),
        failing(None, "context_length_exceeded", MESSAGE).into(),
    ];
    for turn in turns {
        let desk = desk(Script::new().turn(turn)).await;
        let session = desk.session().await;
        let answer = desk.prompt(&session, "go").await;
        let error = error(&answer);
        assert!(matches!(error, Some(MessageError::ContextOverflowError { .. })), "{error:?}");
        assert_eq!(desk.server.main_requests().len(), 1);
    }
}
