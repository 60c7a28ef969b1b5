//! The client against a small server, in process and over a socket.

#![allow(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use codewright_client::{Client, Error, SessionQuery};
use codewright_proto::{
    Clock, Fact, Ids, Notice, PartInput, PermissionAnswer, PermissionReply, PromptInput, SessionId, Signal,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A generous time limit, for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns a server that answers every request with a description of the request, and a channel of these descriptions.
fn echo() -> (Router, mpsc::UnboundedReceiver<Value>) {
    let (sender, requests) = mpsc::unbounded_channel();
    let router = Router::new().fallback(async move |request: Request| {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let header = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let seen = json!({
            "method": head.method.as_str(),
            "uri": head.uri.to_string(),
            "host": header("host"),
            "directory": header("x-opencode-directory"),
            "authorization": header("authorization"),
            "type": header("content-type"),
            "body": String::from_utf8(body.to_vec()).unwrap(),
        });
        sender.send(seen.clone()).unwrap();
        Json(seen)
    });
    (router, requests)
}

async fn listen(router: Router) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum_serve(listener, router).await });
    (url, tasks)
}

/// Serves connections until it is dropped.
async fn axum_serve(listener: TcpListener, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let router = router.clone();
        connections.spawn(async move {
            let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                tower::ServiceExt::oneshot(router.clone(), request.map(Body::new))
            });
            let io = hyper_util::rt::TokioIo::new(socket);
            // Connections fail when a test drops its client.
            drop(hyper::server::conn::http1::Builder::new().serve_connection(io, service).await);
        });
    }
}

fn session() -> SessionId {
    Ids::seeded(Clock::stepping(1_795_293_417_297, 1), 7).session()
}

fn notice(id: u64, text: &str) -> String {
    format!(
        "id: {id}\ndata: {}\n\n",
        json!({"id": format!("evt_{id}"), "type": "session.error", "properties": {
            "error": {"name": "UnknownError", "data": {"message": text}}}})
    )
}

const CONNECTED: &str = "data: {\"id\":\"evt_0\",\"type\":\"server.connected\",\"properties\":{}}\n\n";

fn event_stream(chunks: Vec<String>, endless: bool) -> Response<Body> {
    let chunks = stream::iter(chunks.into_iter().map(Ok::<_, Infallible>));
    let body =
        if endless { Body::from_stream(chunks.chain(stream::pending())) } else { Body::from_stream(chunks) };
    Response::builder().header("content-type", "text/event-stream").body(body).unwrap()
}

#[tokio::test]
async fn the_directory_is_sent_in_the_query_or_in_a_header() {
    let (router, mut requests) = echo();
    let client = Client::in_process(router).in_directory("/a b");
    let read = client.config().await.unwrap();
    assert_eq!(read["uri"], "/config?directory=%2Fa%20b");
    assert_eq!(read["host"], "localhost");
    assert_eq!(read["directory"], Value::Null);
    assert_eq!(requests.recv().await, Some(read));

    let other = SessionQuery { directory: Some("/c".to_owned()), ..SessionQuery::default() };
    assert!(client.sessions(&other).await.is_err(), "an echo is not a list of sessions");
    assert_eq!(requests.recv().await.unwrap()["uri"], "/session?directory=%2Fc");

    assert!(client.abort(&session()).await.is_err(), "an echo is not a yes");
    let sent = requests.recv().await.unwrap();
    assert_eq!(sent["uri"], format!("/session/{}/abort", session()));
    assert_eq!((&sent["directory"], &sent["type"]), (&json!("%2Fa%20b"), &Value::Null));
}

#[tokio::test]
async fn credentials_and_bodies_are_sent_over_a_socket() {
    let (router, mut requests) = echo();
    let (url, _tasks) = listen(router).await;
    let auth = Some(("opencode".to_owned(), "päss:word".to_owned()));
    let client = Client::http(&format!("{url}/prefix/"), auth, None).unwrap();
    client.agents().await.unwrap();
    let sent = requests.recv().await.unwrap();
    assert_eq!(sent["uri"], "/prefix/agent");
    assert_eq!(sent["authorization"], "Basic b3BlbmNvZGU6cMOkc3M6d29yZA==");

    let answer = PermissionAnswer { message: Some("no".to_owned()), ..PermissionReply::Reject.into() };
    let id = Ids::seeded(Clock::stepping(1, 1), 7).permission();
    assert!(client.reply_permission(&id, &answer).await.is_err(), "an echo is not a yes");
    let sent = requests.recv().await.unwrap();
    assert_eq!(sent["uri"], format!("/prefix/permission/{id}/reply"));
    assert_eq!(sent["body"], r#"{"reply":"reject","message":"no"}"#);
    assert_eq!(sent["type"], "application/json");
}

#[tokio::test]
async fn an_error_keeps_its_status_and_message() {
    let router = Router::new()
        .route(
            "/path",
            get(async || {
                (
                    StatusCode::NOT_FOUND,
                    Json(json!({"name": "NotFoundError", "data": {"message": "Session not found: ses_x"}})),
                )
            }),
        )
        .route(
            "/permission",
            get(async || {
                (
                    StatusCode::NOT_FOUND,
                    Json(json!({"_tag": "PermissionNotFoundError", "requestID": "per_x", "message": "gone"})),
                )
            }),
        )
        .route("/agent", get(async || StatusCode::UNAUTHORIZED))
        .route("/config", get(async || (StatusCode::BAD_GATEWAY, "upstream is down")))
        .route("/project/current", get(async || axum::response::Html("<p>hi")))
        .route("/session/status", get(async || "{"));
    let client = Client::in_process(router);
    let Err(Error::Api { status, error }) = client.path().await else { panic!("refused") };
    assert_eq!((status.as_u16(), error.name.as_str()), (404, "NotFoundError"));
    let error = client.permissions().await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(error.to_string(), "gone");
    assert!(matches!(client.agents().await, Err(Error::Unauthorized)));
    let error = client.config().await.unwrap_err();
    assert_eq!(error.to_string(), "502 Bad Gateway upstream is down");
    assert!(
        matches!(client.project().await, Err(Error::Protocol { reason, .. }) if reason.contains("web page"))
    );
    assert!(
        matches!(client.statuses().await, Err(Error::Protocol { reason, .. }) if reason.contains("/session/status"))
    );
}

#[tokio::test]
async fn statuses_are_keyed_by_session() {
    let router = Router::new()
        .route("/session/status", get(async || Json(json!({session().to_string(): {"type": "busy"}}))));
    let statuses = Client::in_process(router).statuses().await.unwrap();
    assert_eq!(statuses, BTreeMap::from([(session(), codewright_proto::SessionStatus::Busy)]));
}

#[tokio::test]
async fn a_closed_port_is_unreachable_and_another_protocol_is_a_protocol_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = Client::http(&url, None, None).unwrap().health().await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { url: named, .. } if *named == url), "{error}");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 16];
        socket.read_exact(&mut request).await.unwrap();
        socket.write_all(b"SSH-2.0-OpenSSH\r\n\r\n").await.unwrap();
        // The connection stays open until the client has read the line.
        std::future::pending::<()>().await;
    });
    let error = Client::http(&url, None, None).unwrap().health().await.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_times_out() {
    let router = Router::new()
        .route("/global/health", get(async || std::future::pending::<String>().await))
        .route("/event", get(async || event_stream(vec![CONNECTED.to_owned()], true)))
        .route("/session/{id}/message", post(async || std::future::pending::<String>().await));
    let client = Client::in_process(router);
    assert!(matches!(client.health().await, Err(Error::Timeout { after, .. }) if after.as_secs() == 30));
    let mut events = client.events().await.unwrap();
    assert!(matches!(events.next().await, Err(Error::Timeout { after, .. }) if after.as_secs() == 60));
    let error = client.prompt(&session(), &PromptInput::default()).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_waits_while_the_server_sends_heartbeats() {
    let late = |last: Value| {
        let beats = stream::unfold(0, move |beat| {
            let last = last.to_string();
            async move {
                tokio::time::sleep(Duration::from_secs(10)).await;
                let chunk = if beat < 60 { " ".to_owned() } else { last };
                (beat <= 60).then_some((Ok::<_, Infallible>(chunk), beat + 1))
            }
        });
        let response = Response::builder().header("content-type", "application/json");
        response.body(Body::from_stream(beats)).unwrap()
    };
    let message = json!({"info": {"role": "user", "id": "msg_1", "sessionID": "ses_1", "time": {"created": 1},
        "agent": "build", "model": {"providerID": "p", "modelID": "m"}}, "parts": []});
    let failed = json!({"name": "UnknownError", "data": {"message": "the disk is full"}});
    let good = Router::new().route("/session/{id}/message", post(async move || late(message)));
    let bad = Router::new().route("/session/{id}/message", post(async move || late(failed)));

    let input = PromptInput { parts: vec![PartInput::text("hi")], ..PromptInput::default() };
    let answer = Client::in_process(good).prompt(&session(), &input).await.unwrap();
    assert_eq!(answer.info.id().as_str(), "msg_1");
    let error = Client::in_process(bad).prompt(&session(), &input).await.unwrap_err();
    assert_eq!(error.to_string(), "the disk is full");
}

async fn reads_events(client: Client) {
    let mut events = client.events_after(3).await.unwrap();
    assert_eq!(events.position(), None);
    let mut read = Vec::new();
    while let Some(notice) = timeout(PATIENCE, events.next()).await.unwrap().unwrap() {
        let Notice { fact: Fact::Signal(Signal::SessionError { error, .. }), .. } = notice else {
            panic!("only errors are sent")
        };
        read.push(error.message().to_owned());
    }
    assert_eq!(read, ["from 3", "last"]);
    assert_eq!(events.position(), Some(9));
}

#[tokio::test]
async fn events_are_read_in_order_and_unknown_ones_are_skipped() {
    let router = Router::new().route(
        "/event",
        get(async |headers: HeaderMap| {
            let from = headers["last-event-id"].to_str().unwrap().to_owned();
            let unknown = "data: {\"id\":\"evt_5\",\"type\":\"room.not.built\",\"properties\":{}}\n\n";
            let last = notice(9, "last");
            let (head, tail) = last.split_at(20);
            let chunks = [CONNECTED, unknown, &notice(4, &format!("from {from}")), head, tail];
            event_stream(chunks.map(str::to_owned).to_vec(), false)
        }),
    );
    reads_events(Client::in_process(router.clone())).await;
    let (url, _tasks) = listen(router).await;
    reads_events(Client::http(&url, None, None).unwrap()).await;
}

#[tokio::test]
async fn a_stream_with_a_wrong_beginning_is_rejected() {
    let streams = [
        (event_stream(vec![notice(1, "early")], true), "does not begin"),
        (event_stream(vec![], false), "ended before"),
        (Response::new(Body::from("{}")), "not an event stream"),
        (event_stream(vec!["data: \u{0}\n\n".to_owned()], false), "ended before"),
    ];
    for (response, reason) in streams {
        let response = std::sync::Arc::new(std::sync::Mutex::new(Some(response)));
        let router = Router::new()
            .route("/event", get(async move || response.lock().unwrap().take().expect("one request")));
        let Err(error) = Client::in_process(router).events().await else { panic!("{reason}") };
        assert!(matches!(&error, Error::Protocol { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn dropping_the_events_ends_them_on_the_server() {
    struct OnDrop(Option<tokio::sync::oneshot::Sender<()>>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            // The test may have failed already.
            let _ = self.0.take().expect("dropped once").send(());
        }
    }
    let (dropped, ended) = tokio::sync::oneshot::channel();
    let on_drop = std::sync::Arc::new(std::sync::Mutex::new(Some(OnDrop(Some(dropped)))));
    let router = Router::new().route(
        "/event",
        get(async move || {
            let on_drop = on_drop.lock().unwrap().take().expect("one request");
            let beats = stream::unfold((on_drop, true), |(on_drop, first)| async move {
                if !first {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                let chunk = if first { CONNECTED } else { ": beat\n\n" };
                Some((Ok::<_, Infallible>(Bytes::from_static(chunk.as_bytes())), (on_drop, false)))
            });
            Response::builder()
                .header("content-type", "text/event-stream")
                .body(Body::from_stream(beats))
                .unwrap()
        }),
    );
    let (url, _tasks) = listen(router).await;
    let events = Client::http(&url, None, None).unwrap().events().await.unwrap();
    drop(events);
    timeout(PATIENCE, ended).await.unwrap().unwrap();
}
