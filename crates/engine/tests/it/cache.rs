//! Requests repeat earlier content byte for byte, so that providers can cache it.

use codewright_proto::Clock;
use codewright_scripted::{Recorded, Script, Turn};
use serde_json::{Value, json};

use crate::desk::Desk;

const HOUR_MS: u64 = 3_600_000;

/// Returns the request without the cache marks, which move on purpose.
fn unmarked(request: &Recorded) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.remove("cache_control");
                map.values_mut().for_each(strip);
            }
            Value::Array(items) => {
                items.retain(|item| item.get("cachePoint").is_none());
                items.iter_mut().for_each(strip);
            }
            _ => {}
        }
    }
    let mut body = (*request.body).clone();
    strip(&mut body);
    body
}

/// `history` is the field that contains the conversation.
async fn check(model: &str, history: &str) {
    let script = Script::new()
        .turn(
            Turn::steps()
                .reasoning("Where to begin?")
                .text("Looking.")
                .tool("glob", json!({ "pattern": "*" }))
                .tool("read", json!({ "filePath": "no" })),
        )
        .text("one")
        .tool("bash", json!({ "command": "echo x" }))
        .text("two")
        .text("three");
    // Each reading of the clock is an hour later, so days pass within the conversation.
    let clock = Clock::stepping(1_795_293_417_297, HOUR_MS);
    let desk = Desk::at(clock, script, json!({ "model": model })).await;
    let session = desk.session().await;
    for prompt in ["first", "second", "third"] {
        desk.prompt(&session, prompt).await;
    }
    let sent: Vec<_> = desk.server.main_requests().iter().map(unmarked).collect();
    assert_eq!(sent.len(), 5);
    for pair in sent.windows(2) {
        for key in ["tools", "toolConfig", "system", "systemInstruction"] {
            assert_eq!(pair[0][key].to_string(), pair[1][key].to_string(), "{key}");
        }
        assert!(pair[0]["tools"].is_array() || pair[0]["toolConfig"].is_object(), "tools are sent");
        let (before, after) = (pair[0][history].to_string(), pair[1][history].to_string());
        let shared = before.strip_suffix(']').unwrap();
        assert!(after.starts_with(shared), "{before}\nis not how this begins:\n{after}");
    }
    assert!(sent[4][history].to_string().contains("date is now"), "a later day is told");
    desk.assert_clean();
}

#[tokio::test]
async fn a_conversation_over_chat_completions_only_grows() {
    check("mock/plain-model", "messages").await;
}

#[tokio::test]
async fn a_conversation_over_anthropic_messages_only_grows() {
    check("mockanth/claude-mock", "messages").await;
}

#[tokio::test]
async fn a_conversation_over_openai_responses_only_grows() {
    check("mockopenai/gpt-5-mock", "input").await;
}

#[tokio::test]
async fn a_conversation_over_gemini_only_grows() {
    check("mockgoogle/gemini-3-mock", "contents").await;
}

#[tokio::test]
async fn a_conversation_over_bedrock_only_grows() {
    check("mockbedrock/anthropic.claude-mock", "messages").await;
}

#[tokio::test]
async fn a_conversation_over_cohere_only_grows() {
    check("mockcohere/command-mock", "messages").await;
}
