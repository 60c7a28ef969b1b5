//! Whole turns: answers, calls, failures, interruptions.

use std::time::Duration;

use codewright_proto::{
    Clock, Event, Fact, Message, MessageError, PartBody, SessionStatus, Signal, ToolState,
};
use codewright_scripted::{Script, Turn};
use serde_json::json;

use crate::desk::{Desk, calls, prompt, text, wait_for, wait_for_delta};

#[tokio::test]
async fn a_prompt_is_answered_and_counted() {
    let desk = Desk::new(Script::new().text("Hello.")).await;
    let session = desk.session().await;
    let answer = desk.prompt(&session, "hi").await;
    assert_eq!(text(&answer), "Hello.");
    let Message::Assistant(info) = &answer.info else { panic!("an answer") };
    assert_eq!(info.finish.as_deref(), Some("stop"));
    assert!(info.time.completed.is_some() && info.tokens.input > 0);
    let session = desk.engine.sessions().get(&session.id).await.unwrap();
    assert_eq!(session.tokens.input, info.tokens.input);
    assert_eq!(session.model.unwrap().id, "plain-model");
    desk.assert_clean();
}

#[tokio::test]
async fn a_clock_that_is_set_back_keeps_the_order() {
    const NOON: u64 = 1_800_000_000_000;
    const EARLIER: u64 = NOON - 86_400_000;
    let script = Script::new().text("One.").text("Two.").text("Three.");
    let mut desk = Desk::at(Clock::stepping(NOON, 3), script, json!({})).await;
    let session = desk.session().await;
    assert_eq!(text(&desk.prompt(&session, "1").await), "One.");
    for answer in ["Two.", "Three."] {
        desk.reopen(Clock::stepping(EARLIER, 3)).await;
        assert_eq!(text(&desk.prompt(&session, "again").await), answer);
    }
    let transcript = desk.transcript(&session).await;
    let said: Vec<_> = transcript.iter().map(text).collect();
    assert_eq!(said, ["1", "One.", "again", "Two.", "again", "Three."]);
    assert!(transcript.is_sorted_by_key(|message| message.info.id().clone()), "ids follow the order as well");
    desk.assert_clean();
}

#[tokio::test]
async fn calls_of_one_answer_run_in_parallel() {
    // Each call waits for the other's file, so they would never end one after the other.
    let wait = |mine: &str, other: &str| {
        format!(
            "touch {mine}; n=0; while [ ! -e {other} ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); done; test -e {other} && echo met"
        )
    };
    let turn = Turn::steps()
        .tool("bash", json!({ "command": wait("a", "b") }))
        .tool("bash", json!({ "command": wait("b", "a") }));
    let desk = Desk::new(Script::new().turn(turn).text("done")).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    for (_, state) in calls(&desk.transcript(&session).await) {
        assert!(matches!(&state, ToolState::Completed { output, .. } if output == "met\n"), "{state:?}");
    }
    desk.assert_clean();
}

#[tokio::test]
async fn an_invalid_call_is_reported_and_the_turn_continues() {
    let turn = Turn::steps()
        .tool("nonexistent_tool", json!({}))
        .tool("READ", json!({ "filePath": "a.txt" }))
        .tool("read", "{bad json")
        .tool("read", json!({ "file": "x" }));
    let desk = Desk::new(Script::new().turn(turn).text("went on")).await;
    std::fs::write(desk.project.join("a.txt"), "one\n").unwrap();
    let session = desk.session().await;
    assert_eq!(text(&desk.prompt(&session, "go").await), "went on");
    let calls = calls(&desk.transcript(&session).await);
    let names: Vec<_> = calls.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!(names, ["invalid", "read", "invalid", "read"]);
    let ToolState::Completed { input, output, title, .. } = &calls[0].1 else { panic!("completed") };
    assert_eq!(title, "Invalid Tool");
    assert_eq!(input["tool"], "nonexistent_tool");
    assert!(
        output.contains(
            "Available tools: bash, edit, glob, grep, invalid, question, read, skill, task, todowrite, webfetch, write."
        ),
        "{output}"
    );
    assert!(matches!(&calls[1].1, ToolState::Completed { output, .. } if output.contains("1: one")));
    let expected =
        "The read tool was called with invalid arguments: SchemaError(Missing key\n  at [\"filePath\"]).";
    assert!(
        matches!(&calls[3].1, ToolState::Error { error, .. } if error.starts_with(expected)),
        "{:?}",
        calls[3]
    );
    desk.assert_clean();
}

#[tokio::test]
async fn a_broken_stream_is_retried_without_duplicate_text() {
    let broken = Turn::text("Partial text").disconnect();
    let desk = Desk::new(Script::new().turn(broken).text("Second attempt.")).await;
    let session = desk.session().await;
    let answer = desk.prompt(&session, "go").await;
    assert_eq!(text(&answer), "Second attempt.");
    let starts = answer.parts.iter().filter(|part| matches!(part.body, PartBody::StepStart { .. })).count();
    assert_eq!(starts, 2);
    // The next request must not repeat the abandoned text.
    desk.prompt(&session, "again").await;
    let sent = desk.server.main_requests().pop().unwrap().body.to_string();
    assert!(!sent.contains("Partial"), "{sent}");
    desk.assert_clean();
}

#[tokio::test]
async fn a_stream_that_breaks_after_a_call_does_not_repeat_the_call() {
    let broken = Turn::steps()
        .tool("bash", json!({ "command": "echo x >> count" }))
        .delay(Duration::from_millis(300))
        .disconnect();
    let desk = Desk::new(Script::new().turn(broken).text("went on")).await;
    let session = desk.session().await;
    assert_eq!(text(&desk.prompt(&session, "go").await), "went on");
    let count = std::fs::read_to_string(desk.project.join("count")).unwrap();
    assert_eq!(count, "x\n");
    desk.assert_clean();
}

#[tokio::test]
async fn a_retry_after_an_overload_is_visible() {
    let busy = Turn::http_error(429)
        .header("retry-after-ms", "20")
        .body(json!({ "error": { "message": "Rate limit reached" } }));
    // A clock like that of a database whose machine is an hour ahead.
    let (machine, begun) = (Clock::system(), Clock::system().now_ms());
    let ahead = Clock::stepping(begun + 3_600_000, 1);
    let desk = Desk::at(ahead, Script::new().turn(busy).text("After retry."), json!({})).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    assert_eq!(text(&desk.prompt(&session, "go").await), "After retry.");
    let retry = wait_for(&mut feed, |published| match published.notice().fact {
        Fact::Signal(Signal::SessionStatus {
            status: SessionStatus::Retry { attempt: 1, message, next },
            ..
        }) => Some((message, next)),
        _ => None,
    });
    let (message, next) = retry.await;
    assert_eq!(message, "Rate limit reached");
    assert!((begun..=machine.now_ms() + 20).contains(&next), "{next} is not a time of this machine's clock");
}

#[tokio::test]
async fn a_providers_error_is_stored_and_the_session_continues() {
    let refused = Turn::http_error(401).body(json!({ "error": { "message": "Invalid key" } }));
    let desk = Desk::new(Script::new().turn(refused).text("fine")).await;
    let session = desk.session().await;
    let answer = desk.prompt(&session, "go").await;
    let Message::Assistant(info) = &answer.info else { panic!("an answer") };
    let expected = matches!(
        &info.error,
        Some(MessageError::APIError { message, status_code: Some(401), is_retryable: false, .. }) if message.starts_with("Invalid key (")
    );
    assert!(expected, "{:?}", info.error);
    assert_eq!(text(&desk.prompt(&session, "again").await), "fine");
    desk.assert_clean();
}

#[tokio::test]
async fn an_abort_during_an_answer_keeps_the_received_text() {
    let desk = Desk::new(Script::new().turn(Turn::text("Starting to speak").hang()).text("after")).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    wait_for_delta(&mut feed).await;
    assert!(desk.engine.sessions().abort(&session.id).await.unwrap());
    assert!(desk.engine.sessions().statuses().is_empty());
    let transcript = desk.transcript(&session).await;
    let Message::Assistant(info) = &transcript[1].info else { panic!("an answer") };
    assert_eq!(info.error, Some(MessageError::aborted()));
    assert_eq!(text(&transcript[1]), "Starting to speak");
    assert_eq!(text(&desk.prompt(&session, "again").await), "after");
    desk.assert_clean();
}

#[tokio::test]
async fn a_prompt_that_is_aborted_at_once_has_an_aborted_answer() {
    let desk = Desk::new(Script::new().default_turn(Turn::text("late").hang())).await;
    // At any point of its progress.
    for pause in [0, 0, 0, 1, 2, 4, 8, 16] {
        let session = desk.session().await;
        let asked = desk.engine.sessions().prompt(&session.id, prompt("go"));
        let stopped = async {
            while desk.engine.sessions().statuses().is_empty() {
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_millis(pause)).await;
            desk.engine.sessions().abort(&session.id).await.unwrap()
        };
        let (answer, stopped) = tokio::join!(asked, stopped);
        let Message::Assistant(info) = answer.expect("an answer").info else { panic!("an answer") };
        assert!(stopped && info.error == Some(MessageError::aborted()), "{pause}: {info:?}");
        assert_eq!(desk.transcript(&session).await.len(), 2);
        assert!(desk.engine.sessions().statuses().is_empty());
    }
}

#[tokio::test]
async fn an_abort_during_a_command_keeps_its_output() {
    let turn = Turn::steps().tool("bash", json!({ "command": "echo start; sleep 300; echo end" }));
    let desk = Desk::new(Script::new().turn(turn).text("after")).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    wait_for(&mut feed, |published| {
        let Fact::Event(Event::PartUpdated { part, .. }) = published.notice().fact else { return None };
        let PartBody::Tool(call) = part.body else { return None };
        let ToolState::Running { metadata: Some(shown), .. } = call.state else { return None };
        (shown["output"] == "start\n").then_some(())
    })
    .await;
    desk.engine.sessions().abort(&session.id).await.unwrap();
    let calls = calls(&desk.transcript(&session).await);
    let ToolState::Completed { output, metadata, .. } = &calls[0].1 else { panic!("{:?}", calls[0]) };
    assert!(output.starts_with("start\n") && output.contains("<shell_metadata>"), "{output}");
    assert!(metadata["exit"].is_null());
    assert_eq!(text(&desk.prompt(&session, "again").await), "after");
    desk.assert_clean();
}

#[tokio::test]
async fn a_prompt_during_a_turn_is_answered_by_the_same_run() {
    let first = Turn::steps().tool("bash", json!({ "command": "sleep 1" }));
    let desk = Desk::new(Script::new().turn(first).text("both answered")).await;
    let session = desk.session().await;
    let (engine, id) = (desk.engine.clone(), session.id.clone());
    let mut feed = desk.engine.events().subscribe();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { engine.sessions().prompt(&id, prompt("first")).await });
    wait_for(&mut feed, |published| {
        let Fact::Event(Event::PartUpdated { part, .. }) = published.notice().fact else { return None };
        matches!(part.body, PartBody::Tool(_)).then_some(())
    })
    .await;
    let second = desk.prompt(&session, "second").await;
    let first = tasks.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!((text(&first).as_str(), text(&second).as_str()), ("both answered", "both answered"));
    let sent = desk.server.main_requests();
    assert_eq!(sent.len(), 2);
    assert!(sent[1].body.to_string().contains("second"));
    desk.assert_clean();
}

#[tokio::test]
async fn a_new_session_gets_a_title_in_the_background() {
    let desk = Desk::new(Script::new().title("A good name").text("Hello.")).await;
    let session = desk
        .engine
        .sessions()
        .create(&desk.instance, codewright_proto::SessionInput::default())
        .await
        .unwrap();
    assert!(session.title.starts_with("New session - "));
    let mut feed = desk.engine.events().subscribe();
    desk.prompt(&session, "hi").await;
    wait_for(&mut feed, |published| {
        let Fact::Event(Event::SessionUpdated { info, .. }) = published.notice().fact else { return None };
        (info.title == "A good name").then_some(())
    })
    .await;
    desk.assert_clean();
}

#[tokio::test]
async fn reasoning_is_recorded_and_sent_back() {
    let turn = Turn::steps().reasoning("Let me think.").text("42").tool("glob", json!({ "pattern": "*" }));
    let desk = Desk::new(Script::new().turn(turn).text("done")).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let transcript = desk.transcript(&session).await;
    let thought = transcript[1].parts.iter().any(|part| {
        matches!(&part.body, PartBody::Reasoning { text, time, .. } if &**text == "Let me think." && time.end.is_some())
    });
    assert!(thought, "{:?}", transcript[1].parts);
    let sent = desk.server.main_requests().pop().unwrap();
    assert_eq!(sent.body["messages"][2]["reasoning_content"], "Let me think.");
    desk.assert_clean();
}

#[tokio::test]
async fn an_answer_that_reaches_the_limit_ends_the_turn() {
    let turn = Turn::text("cut off").finish(codewright_scripted::Finish::Length);
    let desk = Desk::new(Script::new().turn(turn)).await;
    let session = desk.session().await;
    let answer = desk.prompt(&session, "go").await;
    let Message::Assistant(info) = &answer.info else { panic!("an answer") };
    assert_eq!(info.finish.as_deref(), Some("length"));
    assert_eq!(desk.server.main_requests().len(), 1);
}

#[tokio::test]
async fn a_fork_has_the_messages_under_new_ids() {
    let desk = Desk::new(Script::new().text("one").text("two")).await;
    let session = desk.session().await;
    desk.prompt(&session, "hi").await;
    let fork = desk.engine.sessions().fork(&session.id, None).await.unwrap();
    assert_eq!(fork.title, "Test (fork #1)");
    assert_eq!(text(&desk.prompt(&fork, "more").await), "two");
    assert_eq!(desk.transcript(&session).await.len(), 2);
    let copied = desk.transcript(&fork).await;
    assert_eq!(copied.len(), 4);
    let Message::Assistant(answer) = &copied[1].info else { panic!("an answer") };
    assert_eq!(&answer.parent_id, copied[0].info.id());
    let sent = desk.server.main_requests().pop().unwrap();
    assert_eq!(sent.body["messages"][2]["content"], "one");
    desk.assert_clean();
}

#[tokio::test]
async fn an_empty_answer_is_accepted_after_a_few_attempts() {
    let nothing = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 0\r\n\r\n";
    let desk = Desk::new(Script::new().default_turn(Turn::raw(nothing))).await;
    let session = desk.session().await;
    // The delays between the attempts are real: 2, 4 and 8 seconds.
    let answer = desk.prompt(&session, "go").await;
    let Message::Assistant(info) = &answer.info else { panic!("an answer") };
    assert!(
        matches!(&info.error, Some(MessageError::APIError { is_retryable: true, .. })),
        "{:?}",
        info.error
    );
    assert_eq!(desk.server.main_requests().len(), 4);
}
