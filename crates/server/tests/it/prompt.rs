//! Prompts: waiting for the response, disconnecting, aborting, and permission requests.

use std::time::Duration;

use axum::body::Body;
use codewright_client::Client;
use codewright_proto::{
    Event, Fact, Message, MessageWithParts, Part, PartBody, PermissionAnswer, PermissionReply, SessionInput,
    SessionStatus, Signal,
};
use codewright_testkit::{Script, Turn};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::timeout;

use crate::bench::{Bench, PATIENCE, event, quick, read, request, says, send, until};

fn texts(parts: &[Part]) -> String {
    let text = |part: &Part| match &part.body {
        PartBody::Text(text) => Some(text.text.to_string()),
        _ => None,
    };
    parts.iter().filter_map(text).collect()
}

#[tokio::test]
async fn the_response_to_a_prompt_is_that_of_the_model() {
    let bench = Bench::new(Script::new().text("Hello there")).await;
    let client = bench.client();
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let answer = client.prompt(&session.id, &says("Hi")).await.unwrap();
    assert!(matches!(answer.info, Message::Assistant(_)));
    assert_eq!(texts(&answer.parts), "Hello there");
    assert_eq!(bench.model.problems(), Vec::<String>::new());
}

#[tokio::test]
async fn a_slow_response_is_preceded_by_spaces() {
    let slow = Turn::steps().delay(Duration::from_millis(400)).text("At last");
    let bench = Bench::new(Script::new().turn(slow)).await;
    let router = bench.router(quick());
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap();
    let pending = request("POST", &format!("/session/{}/message", session.id))
        .header("content-type", "application/json")
        .body(Body::from(r#"{"parts":[{"type":"text","text":"Hi"}]}"#))
        .unwrap();
    let response = timeout(PATIENCE, send(&router, pending)).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    let bytes = timeout(PATIENCE, response.into_body().collect()).await.unwrap().unwrap().to_bytes();
    assert!(bytes.starts_with(b"  "), "the response takes several heartbeats");
    let answer: MessageWithParts = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(texts(&answer.parts), "At last");
}

#[tokio::test]
async fn a_client_that_disconnects_does_not_abort_the_turn() {
    let slow = Turn::steps().delay(Duration::from_millis(300)).text("Nobody waited");
    let bench = Bench::new(Script::new().turn(slow)).await;
    let listening = bench.listen(quick()).await;
    let client = Client::http(&listening.url, None, None).unwrap();
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let mut events = client.events().await.unwrap();
    let impatient = Client::http(&listening.url, None, None).unwrap();
    let input = says("Hi");
    tokio::select! {
        answer = impatient.prompt(&session.id, &input) => panic!("answered too soon: {answer:?}"),
        _ = until(&mut events, |notice| {
            matches!(&notice.fact, Fact::Signal(Signal::SessionStatus { status: SessionStatus::Busy, .. }))
        }) => {}
    }
    drop(impatient);
    until(&mut events, |notice| matches!(notice.fact, Fact::Signal(Signal::SessionIdle { .. }))).await;
    let messages = client.messages(&session.id, None).await.unwrap();
    assert_eq!(texts(&messages.last().unwrap().parts), "Nobody waited");
}

#[tokio::test]
async fn a_turn_sends_events_and_can_be_aborted() {
    let bench = Bench::new(Script::new().turn(Turn::steps().text("Begun").hang())).await;
    let client = bench.client();
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let mut events = client.events().await.unwrap();
    client.prompt_async(&session.id, &says("Hi")).await.unwrap();
    until(&mut events, |notice| matches!(&notice.fact, Fact::Signal(Signal::PartDelta { .. }))).await;
    assert_eq!(client.statuses().await.unwrap()[&session.id], SessionStatus::Busy);
    assert!(client.abort(&session.id).await.unwrap());
    until(&mut events, |notice| matches!(notice.fact, Fact::Signal(Signal::SessionIdle { .. }))).await;
    assert!(client.statuses().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_permission_request_is_listed_and_answered_by_both_routes() {
    let command = json!({"command": "echo hi", "description": "says hi"});
    let script = Script::new().tool("bash", command.clone()).tool("bash", command).text("Done");
    let bench = Bench::configured(script, |config| config["permission"] = json!({"bash": "ask"})).await;
    let router = bench.router(quick());
    let client = Client::in_process(router.clone());
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let mut events = client.events().await.unwrap();
    client.prompt_async(&session.id, &says("Hi")).await.unwrap();
    for deprecated in [false, true] {
        let pending =
            until(&mut events, |notice| matches!(event(notice), Some(Event::PermissionAsked(_)))).await;
        let Some(Event::PermissionAsked(pending)) = event(&pending) else { unreachable!("checked above") };
        assert_eq!(client.permissions().await.unwrap(), std::slice::from_ref(pending));
        if deprecated {
            let path = format!("/session/{}/permissions/{}", session.id, pending.id);
            let reply = request("POST", &path).header("content-type", "application/json");
            let reply = send(&router, reply.body(Body::from(r#"{"response":"once"}"#)).unwrap()).await;
            assert_eq!(read(reply).await, (http::StatusCode::OK, json!(true)));
        } else {
            let answer = PermissionReply::Once.into();
            assert!(client.reply_permission(&pending.id, &answer).await.unwrap());
        }
    }
    until(&mut events, |notice| matches!(notice.fact, Fact::Signal(Signal::SessionIdle { .. }))).await;
    let messages = client.messages(&session.id, None).await.unwrap();
    assert_eq!(texts(&messages.last().unwrap().parts), "Done");
    assert!(client.permissions().await.unwrap().is_empty());
}

#[tokio::test]
async fn the_message_of_a_rejection_is_not_sent_to_other_clients() {
    let command = json!({"command": "echo hi", "description": "says hi"});
    let script = Script::new().tool("bash", command).text("Done");
    let bench = Bench::configured(script, |config| config["permission"] = json!({"bash": "ask"})).await;
    let client = bench.client();
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let mut events = client.events().await.unwrap();
    client.prompt_async(&session.id, &says("Hi")).await.unwrap();
    let pending = until(&mut events, |notice| matches!(event(notice), Some(Event::PermissionAsked(_)))).await;
    let Some(Event::PermissionAsked(pending)) = event(&pending) else { unreachable!("checked above") };
    let answer = PermissionAnswer { message: Some("say ho".to_owned()), ..PermissionReply::Reject.into() };
    client.reply_permission(&pending.id, &answer).await.unwrap();
    let is_replied = |notice: &_| matches!(event(notice), Some(Event::PermissionReplied { .. }));
    let replied = until(&mut events, is_replied).await;
    assert!(matches!(event(&replied), Some(Event::PermissionReplied { message: None, .. })), "{replied:?}");
    until(&mut events, |notice| matches!(notice.fact, Fact::Signal(Signal::SessionIdle { .. }))).await;
    let sent = bench.model.main_requests().pop().unwrap();
    assert!(sent.body.to_string().contains("say ho"), "{}", sent.body);
}

#[tokio::test]
async fn a_server_that_stops_ends_waiting_prompts() {
    let bench = Bench::new(Script::new().turn(Turn::steps().text("Begun").hang())).await;
    let mut listening = bench.listen(quick()).await;
    let client = Client::http(&listening.url, None, None).unwrap();
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let mut events = client.events().await.unwrap();
    let input = says("Hi");
    let (answer, ()) = tokio::join!(client.prompt(&session.id, &input), async {
        until(&mut events, |notice| matches!(&notice.fact, Fact::Signal(Signal::PartDelta { .. }))).await;
        listening.cancel.cancel();
    });
    assert_eq!(answer.unwrap_err().to_string(), "the server is stopping");
    timeout(PATIENCE, listening.task.join_next()).await.unwrap().unwrap().unwrap().unwrap();
    bench.client().abort(&session.id).await.unwrap();
}
