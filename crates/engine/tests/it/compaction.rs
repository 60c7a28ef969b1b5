//! Summaries that replace conversations, on request and automatically.

use codewright_engine::Published;
use codewright_proto::{
    Message, MessageError, MessageWithParts, PartBody, Signal, SummarizeInput, ToolState,
};
use codewright_scripted::{Kind, Script, Turn, Usage};
use serde_json::{Value, json};

use crate::desk::{DEADLINE, Desk};

const SUMMARY: &str = "## Goal\nsum of it";
const QUESTION: &str = "What did we do so far?";

fn too_long() -> Turn {
    let message = "This model's maximum context length is 20000 tokens. However, your messages resulted in 30000 tokens.";
    let error =
        json!({"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"});
    Turn::http_error(400).body(json!({ "error": error })).into()
}

/// Returns a message as one word: its kind, and its content or request.
fn shape(transcript: &[MessageWithParts]) -> Vec<String> {
    transcript
        .iter()
        .map(|message| {
            let parts = message.parts.iter().filter_map(|part| match &part.body {
                PartBody::Text(text) if text.metadata == Some(json!({"compaction_continue": true})) => {
                    assert_eq!(text.synthetic, Some(true));
                    Some("(go on)".to_owned())
                }
                PartBody::Text(text) => Some(text.text.to_string()),
                PartBody::Tool(call) => Some(format!("({})", call.tool)),
                PartBody::Compaction { auto, overflow, .. } => Some(format!("(compact {auto} {overflow:?})")),
                _ => None,
            });
            let who = match &message.info {
                Message::User(info) => format!("user {}", info.agent),
                Message::Assistant(info) => {
                    assert!(info.time.completed.is_some());
                    let summary = if info.summary == Some(true) { " summary" } else { "" };
                    let error = if info.error.is_some() { " failed" } else { "" };
                    format!("{}{summary}{error}", info.agent)
                }
            };
            format!("{who}: {}", parts.collect::<Vec<_>>().join(" "))
        })
        .collect()
}

/// Returns the messages of a request, one line each: `u`, `a` or `t` and the text.
fn message_lines(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter();
    let spoken = messages.filter(|message| message["role"] != "system");
    spoken
        .map(|message| {
            let text = match &message["content"] {
                Value::String(text) => text.clone(),
                Value::Array(parts) => {
                    parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join(" ")
                }
                _ => String::new(),
            };
            format!("{} {text}", &message["role"].as_str().unwrap()[..1])
        })
        .collect()
}

fn summaries(desk: &Desk) -> Vec<Value> {
    let requests = desk.server.requests();
    requests
        .iter()
        .filter(|request| request.kind == Kind::Summary)
        .map(|request| (*request.body).clone())
        .collect()
}

fn small(context: u64) -> Value {
    json!({"provider": {"mock": {"models": {"plain-model": {"limit": {"context": context, "output": 8000}}}}}})
}

#[tokio::test]
async fn a_requested_summary_replaces_the_conversation() {
    let desk =
        Desk::new(Script::new().summary(Turn::text(SUMMARY)).text("one").text("two").text("three")).await;
    let session = desk.session().await;
    desk.prompt(&session, "first").await;
    desk.prompt(&session, "second").await;
    let before = desk.engine.sessions().get(&session.id).await.unwrap();
    let mut events = desk.engine.events().subscribe();
    let input = SummarizeInput { provider_id: "mock".into(), model_id: "plain-model".into(), auto: None };
    let done = tokio::time::timeout(DEADLINE, desk.engine.sessions().summarize(&session.id, input)).await;
    assert!(done.unwrap().unwrap());
    let mut heard = Vec::new();
    while heard.last().map(String::as_str) != Some("session.idle") {
        let published = tokio::time::timeout(DEADLINE, events.next()).await.unwrap().unwrap();
        heard.push(match &published {
            Published::Event(envelope) => envelope.event.name().to_owned(),
            Published::Signal { signal, .. } => {
                let name = json!(**signal)["type"].as_str().unwrap().to_owned();
                if name == "message.part.delta" {
                    continue;
                }
                name
            }
        });
    }
    let expected = [
        "message.updated",
        "message.part.updated",
        "session.status",
        "message.updated",
        // The request for the summary has changed no file.
        "message.updated",
        "session.status",
        "message.part.updated",
        "message.part.updated",
        "message.part.updated",
        "message.part.updated",
        "message.updated",
        "message.updated",
        "session.compacted",
        "session.updated",
        "session.status",
        "session.status",
        "session.idle",
    ];
    assert_eq!(heard, expected);
    let transcript = desk.transcript(&session).await;
    let expected = [
        "user build: first",
        "build: one",
        "user build: second",
        "build: two",
        "user build: (compact false None)",
        &format!("compaction summary: {SUMMARY}"),
    ];
    assert_eq!(shape(&transcript), expected);
    let Message::Assistant(info) = &transcript[5].info else { panic!("a summary") };
    assert_eq!(
        (info.mode.as_str(), &info.parent_id, info.finish.as_deref()),
        ("compaction", transcript[4].info.id(), Some("stop"))
    );
    let after = desk.engine.sessions().get(&session.id).await.unwrap();
    assert_eq!(after.tokens.input, before.tokens.input + info.tokens.input);
    let asked = &summaries(&desk)[0];
    assert!(asked.get("tools").is_none(), "{asked}");
    let text = message_lines(asked).join("\n");
    for piece in ["[User]\nfirst", "[Assistant]\none", "[User]\nsecond", "## Relevant files / directories"] {
        assert!(text.contains(piece), "{piece} in {text}");
    }
    desk.prompt(&session, "third").await;
    let sent = desk.server.main_requests().pop().unwrap();
    assert_eq!(
        message_lines(&sent.body),
        [format!("u {QUESTION}"), format!("a {SUMMARY}"), "u third".to_owned()]
    );
    desk.assert_clean();
}

#[tokio::test]
async fn a_full_context_is_summarized_between_steps_and_the_turn_continues() {
    let usage = Usage { input: 19_500, output: 300, ..Usage::default() };
    let script = Script::new()
        .summary(Turn::text(SUMMARY))
        .turn(Turn::steps().tool("read", json!({"filePath": "a.txt"})).usage(usage))
        .text("Continuing.");
    let desk = Desk::with(script, small(20_000)).await;
    std::fs::write(desk.project.join("a.txt"), "alpha\n").unwrap();
    let session = desk.session().await;
    desk.prompt(&session, "question").await;
    let expected = [
        "user build: question",
        "build: (read)",
        "user build: (compact true Some(false))",
        &format!("compaction summary: {SUMMARY}"),
        "user build: (go on)",
        "build: Continuing.",
    ];
    assert_eq!(shape(&desk.transcript(&session).await), expected);
    let told = message_lines(&summaries(&desk)[0]).join("\n");
    assert!(told.contains("(call of read:") && told.contains("1: alpha"), "{told}");
    let sent = message_lines(&desk.server.main_requests().pop().unwrap().body);
    assert_eq!(sent[..2], [format!("u {QUESTION}"), format!("a {SUMMARY}")]);
    assert!(sent.len() == 3 && sent[2].starts_with("u The conversation was summarised"), "{sent:?}");
    desk.assert_clean();
}

#[tokio::test]
async fn a_prompt_in_a_full_context_is_repeated_after_the_summary() {
    let usage = Usage { input: 19_500, output: 300, ..Usage::default() };
    let script = Script::new().summary(Turn::text(SUMMARY)).turn(Turn::text("one").usage(usage)).text("two");
    let desk = Desk::with(script, small(20_000)).await;
    let session = desk.session().await;
    desk.prompt(&session, "first").await;
    assert_eq!(desk.transcript(&session).await.len(), 2, "what is over is not summarised yet");
    desk.prompt(&session, "second").await;
    let expected = [
        "user build: first",
        "build: one",
        "user build: second",
        "user build: (compact true Some(false))",
        &format!("compaction summary: {SUMMARY}"),
        "user build: second",
        "build: two",
    ];
    assert_eq!(shape(&desk.transcript(&session).await), expected);
    assert!(!message_lines(&summaries(&desk)[0]).join("\n").contains("second"));
}

#[tokio::test]
async fn a_request_that_is_too_long_is_repeated_after_a_summary() {
    let script = Script::new().summary(Turn::text(SUMMARY)).text("one").turn(too_long()).text("After.");
    let desk = Desk::new(script).await;
    let session = desk.session().await;
    desk.prompt(&session, "first").await;
    let mut events = desk.engine.events().subscribe();
    desk.prompt(&session, "second").await;
    let expected = [
        "user build: first",
        "build: one",
        "user build: second",
        "build: ",
        "user build: (compact true Some(true))",
        &format!("compaction summary: {SUMMARY}"),
        "user build: second",
        "build: After.",
    ];
    assert_eq!(shape(&desk.transcript(&session).await), expected);
    let sent = desk.server.main_requests().pop().unwrap();
    assert_eq!(
        message_lines(&sent.body),
        [format!("u {QUESTION}"), format!("a {SUMMARY}"), "u second".to_owned()]
    );
    let mut told = false;
    while let Ok(Ok(published)) =
        tokio::time::timeout(std::time::Duration::from_millis(200), events.next()).await
    {
        if let Published::Signal { signal, .. } = &published
            && let Signal::SessionError { error, .. } = &**signal
        {
            told |= matches!(error, MessageError::ContextOverflowError { response_body: Some(_), .. });
        }
    }
    assert!(told, "clients receive the event");
    desk.assert_clean();
}

async fn fails_after(desk: &Desk, prompts: &[&str], requests: usize) -> MessageError {
    let session = desk.session().await;
    for prompt in prompts {
        desk.prompt(&session, prompt).await;
    }
    let transcript = desk.transcript(&session).await;
    assert_eq!(
        desk.server.requests().iter().filter(|request| request.kind != Kind::Title).count(),
        requests,
        "{:#?}",
        shape(&transcript)
    );
    let Message::Assistant(info) = &transcript.last().unwrap().info else { panic!("an answer") };
    assert!(desk.engine.sessions().statuses().is_empty());
    info.error.clone().expect("an error")
}

#[tokio::test]
async fn a_request_that_is_too_long_ends_the_turn_if_compaction_is_off() {
    let script = Script::new().summary(Turn::text(SUMMARY)).text("one").turn(too_long());
    let desk = Desk::with(script, json!({"compaction": {"auto": false}})).await;
    let error = fails_after(&desk, &["first", "second"], 2).await;
    assert!(matches!(error, MessageError::ContextOverflowError { .. }));
}

#[tokio::test]
async fn a_first_prompt_that_is_too_long_ends_the_turn() {
    let desk = Desk::new(Script::new().summary(Turn::text(SUMMARY)).default_turn(too_long())).await;
    let error = fails_after(&desk, &["first"], 1).await;
    assert!(matches!(error, MessageError::ContextOverflowError { .. }));
}

#[tokio::test]
async fn a_useless_summary_ends_the_turn() {
    let desk =
        Desk::new(Script::new().summary(Turn::text(SUMMARY)).text("one").default_turn(too_long())).await;
    // The answer, the refusal, the summary, and the second refusal.
    let error = fails_after(&desk, &["first", "second"], 4).await;
    assert!(matches!(error, MessageError::ContextOverflowError { .. }));
}

#[tokio::test]
async fn a_summary_that_does_not_fit_is_retried_with_less_input() {
    let desk = Desk::new(Script::new().summary(too_long()).text("one").turn(too_long()).text("never")).await;
    let error = fails_after(&desk, &[&"first ".repeat(100_000), "second"], 5).await;
    assert!(matches!(error, MessageError::ContextOverflowError { .. }));
    let sizes: Vec<_> = summaries(&desk).iter().map(|body| body.to_string().len()).collect();
    assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
}

#[tokio::test]
async fn a_failed_summary_does_not_change_the_conversation() {
    let desk = Desk::new(Script::new().summary(Turn::http_error(401)).text("one").text("two")).await;
    let session = desk.session().await;
    desk.prompt(&session, "first").await;
    assert!(desk.engine.sessions().compact(&session.id).await.unwrap());
    let last = desk.transcript(&session).await.pop().unwrap();
    assert!(
        matches!(&last.info, Message::Assistant(info) if info.summary == Some(true) && info.error.is_some())
    );
    desk.prompt(&session, "second").await;
    let sent = desk.server.main_requests().pop().unwrap();
    assert_eq!(message_lines(&sent.body), ["u first", "a one", "u second"]);
    desk.assert_clean();
}

#[tokio::test]
async fn old_outputs_are_cleared_from_requests_and_kept_in_the_store() {
    let usage = |input| Usage { input, output: 10, ..Usage::default() };
    let big = || Turn::steps().tool("bash", json!({"command": "head -c 48000 /dev/zero | tr '\\0' x"}));
    let mut script = Script::new().summary(Turn::text(SUMMARY));
    for _ in 0..6 {
        script = script.turn(big().usage(usage(1000)));
    }
    let desk = Desk::new(script.text("done").text("again")).await;
    let session = desk.session().await;
    desk.prompt(&session, "work").await;
    let cleared: Vec<_> = desk
        .transcript(&session)
        .await
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match &part.body {
            PartBody::Tool(call) => Some(call.state.clone()),
            _ => None,
        })
        .map(|state| match state {
            ToolState::Completed { output, time, .. } => (output.len() > 40_000, time.compacted.is_some()),
            state => panic!("{state:?}"),
        })
        .collect();
    assert_eq!(
        cleared,
        [(true, true), (true, true), (true, true), (true, false), (true, false), (true, false)]
    );
    desk.prompt(&session, "more").await;
    let sent = message_lines(&desk.server.main_requests().pop().unwrap().body);
    assert_eq!(sent.iter().filter(|line| *line == "t [Old tool result content cleared]").count(), 3);
    assert!(summaries(&desk).is_empty());
    desk.assert_clean();
}

/// Returns a session of many short messages as a document to import.
fn long_document(messages: usize) -> String {
    let session = "ses_san0000long00000000000000";
    let model = json!({"providerID": "mock", "modelID": "plain-model"});
    let messages = (0..messages).map(|n| {
        let id = format!("msg_{n:012x}aaaaaaaaaaaaaa");
        let mut info = json!({
            "id": id, "sessionID": session, "time": {"created": 1_000 + n}, "agent": "build", "model": model,
            "role": if n % 2 == 0 { "user" } else { "assistant" },
        });
        if n % 2 == 1 {
            let more = json!({
                "parentID": format!("msg_{:012x}aaaaaaaaaaaaaa", n - 1), "modelID": "plain-model", "providerID": "mock",
                "mode": "build", "path": {"cwd": "/", "root": "/"}, "cost": 0, "finish": "stop",
                "time": {"created": 1_000 + n, "completed": 1_000 + n},
                "tokens": {"input": n * 30, "output": 10, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            });
            info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        }
        let part = json!({
            "id": format!("prt_{n:012x}aaaaaaaaaaaaaa"), "sessionID": session, "messageID": id, "type": "text",
            "text": format!("message {n}: {}", "some words ".repeat(6)),
        });
        json!({"info": info, "parts": [part]})
    });
    let info = json!({
        "id": session, "slug": "long", "version": "1", "projectID": "global", "directory": "/", "title": "Long",
        "agent": "build", "model": {"id": "plain-model", "providerID": "mock"},
        "cost": 0, "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        "time": {"created": 1, "updated": 1},
    });
    json!({"info": info, "messages": messages.collect::<Vec<_>>()}).to_string()
}

#[tokio::test]
async fn a_session_of_five_thousand_messages_continues_in_a_small_window() {
    const CONTEXT: u64 = 24_000;
    const PROMPTS: usize = 24;
    // The model counts a token for every four bytes of input, and answers at length.
    let counted = |request: &codewright_scripted::Request| {
        let tokens = request.body.to_string().len() as u64 / 4;
        let usage = Usage { input: tokens, output: 300, ..Usage::default() };
        let words = if request.tools.is_empty() { SUMMARY.to_owned() } else { "An answer. ".repeat(180) };
        Turn::text(words).usage(usage)
    };
    let script = Script::new().summary(Turn::respond(counted)).default_turn(Turn::respond(counted));
    let desk = Desk::with(script, small(CONTEXT)).await;
    let imported =
        desk.engine.transfer().import_session(&desk.project, "long", long_document(5_000)).await.unwrap();
    let session = desk.engine.sessions().get(&imported.session).await.unwrap();
    for n in 0..PROMPTS {
        desk.prompt(&session, &format!("prompt {n}: {}", "more to do. ".repeat(20))).await;
    }
    let limit_bytes = usize::try_from(CONTEXT * 4).unwrap();
    let mut since_summary = 0;
    let mut filled = Vec::new();
    for request in desk.server.requests() {
        let bytes = request.body.to_string().len();
        assert!(bytes <= limit_bytes, "request {} ({:?}) has {bytes} bytes", request.number, request.kind);
        if request.kind == Kind::Summary {
            filled.push(since_summary);
            since_summary = 0;
        } else {
            since_summary += 1;
        }
    }
    // The first summary includes the imported messages; a full window lies between the others.
    assert_eq!(filled[0], 0, "{filled:?}");
    assert!(filled.len() >= 3 && filled[1..].iter().all(|answers| *answers >= 4), "{filled:?}");
    // The summarized messages can still be read.
    let transcript = desk.transcript(&session).await;
    assert!(transcript.len() > 5_000 + 2 * PROMPTS);
    assert!(transcript.iter().all(|message| match &message.info {
        Message::Assistant(info) => info.error.is_none(),
        Message::User(_) => true,
    }));
    desk.assert_clean();
}

#[tokio::test]
async fn the_most_recent_turns_are_kept_next_to_a_summary() {
    let script = Script::new().summary(Turn::text(SUMMARY)).default_turn(Turn::text("ok"));
    let desk = Desk::new(script).await;
    let session = desk.session().await;
    for words in ["first", "second", "third"] {
        desk.prompt(&session, words).await;
    }
    let input = SummarizeInput { provider_id: "mock".into(), model_id: "plain-model".into(), auto: None };
    tokio::time::timeout(DEADLINE, desk.engine.sessions().summarize(&session.id, input))
        .await
        .unwrap()
        .unwrap();
    let asked = message_lines(&summaries(&desk)[0]).join("\n");
    assert!(asked.contains("first") && !asked.contains("second"), "{asked}");
    desk.prompt(&session, "fourth").await;
    let sent = message_lines(&desk.server.main_requests().pop().unwrap().body);
    let expected = [
        "u What did we do so far?",
        "a ## Goal\nsum of it",
        "u second",
        "a ok",
        "u third",
        "a ok",
        "u fourth",
    ];
    assert_eq!(sent, expected);
    desk.assert_clean();
}

#[tokio::test]
async fn a_summary_that_is_not_shorter_is_discarded() {
    let usage = Usage { input: 19_500, output: 300, ..Usage::default() };
    let script = Script::new()
        .summary(Turn::text("A very long summary. ".repeat(100)))
        .turn(Turn::text("one").usage(usage))
        .text("two");
    let desk = Desk::with(script, small(20_000)).await;
    let session = desk.session().await;
    desk.prompt(&session, "first").await;
    desk.prompt(&session, "second").await;
    let failed = desk.transcript(&session).await.into_iter().find_map(|message| match message.info {
        Message::Assistant(info) if info.summary == Some(true) => info.error,
        _ => None,
    });
    let Some(MessageError::UnknownError { message, .. }) = failed else { panic!("{failed:?}") };
    assert_eq!(message, "the summary is no shorter than the conversation");
}
