//! The compression of long replies.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use codewright_proto::{PromptInput, SessionInput};
use codewright_server::Options;
use codewright_testkit::{Script, Turn};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;

use crate::bench::{Bench, quick, request, says, send};

/// Returns the headers and the body of a reply to a client that accepts gzip.
async fn get(router: &Router, path: &str, encoding: &str) -> (HeaderMap, Vec<u8>) {
    let message = request("GET", path).header("accept-encoding", encoding);
    let response = send(router, message.body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    let headers = response.headers().clone();
    (headers, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

fn inflate(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut text).unwrap();
    text
}

#[tokio::test]
async fn long_json_is_compressed_for_clients_that_accept_it() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let (headers, plain) = get(&router, "/doc", "identity").await;
    assert!(!headers.contains_key("content-encoding"));
    let (headers, packed) = get(&router, "/doc", "gzip, deflate, br").await;
    assert_eq!(headers["content-encoding"], "gzip");
    assert!(headers.get_all("vary").iter().any(|vary| vary.to_str().unwrap().contains("accept-encoding")));
    assert!(!headers.contains_key("content-length"));
    assert!(packed.len() * 4 < plain.len(), "{} of {}", packed.len(), plain.len());
    assert_eq!(inflate(&packed), plain);
    let (headers, _) = get(&router, "/doc", "gzip;q=0").await;
    assert!(!headers.contains_key("content-encoding"));
    let (headers, _) = get(&router, "/path", "gzip").await;
    assert!(!headers.contains_key("content-encoding"), "a short reply is sent as it is");
}

#[tokio::test]
async fn a_streamed_transcript_is_compressed_and_complete() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let client = bench.client();
    let session = client.create_session(&SessionInput::default()).await.unwrap().id;
    for _ in 0..40 {
        let input = PromptInput { no_reply: Some(true), ..says(&"words ".repeat(20_000)) };
        client.prompt(&session, &input).await.unwrap();
    }
    let path = format!("/session/{session}/message");
    let (headers, packed) = get(&router, &path, "gzip").await;
    assert_eq!(headers["content-encoding"], "gzip");
    assert_eq!(inflate(&packed), get(&router, &path, "identity").await.1);
}

#[tokio::test]
async fn event_streams_and_waiting_replies_are_not_compressed() {
    let bench =
        Bench::new(Script::new().turn(Turn::steps().delay(Duration::from_millis(300)).text("Hello."))).await;
    let router = bench.router(Options { heartbeat: Duration::from_millis(20), ..quick() });
    for path in ["/event", "/global/event", "/global/sync-event", "/api/event"] {
        let message = request("GET", path).header("accept-encoding", "gzip");
        let response = send(&router, message.body(Body::empty()).unwrap()).await;
        assert!(!response.headers().contains_key("content-encoding"), "{path}");
    }
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap().id;
    let message = request("POST", &format!("/session/{session}/message"))
        .header("accept-encoding", "gzip")
        .header("content-type", "application/json");
    let body = serde_json::to_string(&says("go")).unwrap();
    let response = send(&router, message.body(Body::from(body)).unwrap()).await;
    assert!(!response.headers().contains_key("content-encoding"), "heartbeats must not be delayed");
}
