//! Tests of failing answers.

use std::time::Duration;

use codewright_scripted::{Outcome, Protocol, Script, Server, Turn};
use serde_json::json;

use crate::client::{Client, DEADLINE, prompt};

const PROTOCOLS: [Protocol; 7] = [
    Protocol::Chat,
    Protocol::Anthropic,
    Protocol::Gemini,
    Protocol::Responses,
    Protocol::Bedrock,
    Protocol::Cohere,
    Protocol::Vertex,
];

#[tokio::test]
async fn an_http_error_carries_its_headers_and_body() {
    let script = Script::new()
        .turn(
            Turn::http_error(429)
                .header("retry-after-ms", "10")
                .body(json!({"error": {"message": "Slow down"}})),
        )
        .turn(Turn::http_error(529))
        .turn(Turn::html(502, "<h1>Bad gateway</h1>"))
        .turn(Turn::http_error(500).body("oops").delay(Duration::from_millis(5)))
        .text("After all.");
    let server = Server::start(script).await.unwrap();
    let mut client = Client::connect(&server).await;
    let body = prompt(Protocol::Anthropic, "Go");
    let limited = client.ask(Protocol::Anthropic, &body).await;
    assert_eq!((limited.status, limited.json()), (429, json!({"error": {"message": "Slow down"}})));
    assert!(
        limited.head.contains("retry-after-ms: 10")
            && limited.head.contains("content-type: application/json")
    );
    let overloaded = client.ask(Protocol::Anthropic, &body).await;
    assert_eq!((overloaded.status, &overloaded.json()["error"]["type"]), (529, &json!("overloaded_error")));
    let page = client.ask(Protocol::Anthropic, &body).await;
    assert_eq!((page.status, page.text().as_str()), (502, "<h1>Bad gateway</h1>"));
    assert!(page.head.contains("content-type: text/html"));
    let text = client.ask(Protocol::Anthropic, &body).await;
    assert_eq!((text.status, text.text().as_str()), (500, "oops"));
    assert_eq!(client.ask(Protocol::Anthropic, &body).await.answer_text(), "After all.");
    let outcomes: Vec<_> = server.requests().iter().map(|recorded| recorded.outcome).collect();
    assert_eq!(outcomes[..3], [Outcome::Status(429), Outcome::Status(529), Outcome::Status(502)]);
}

#[tokio::test]
async fn a_disconnect_happens_in_the_middle_of_an_event() {
    for protocol in PROTOCOLS {
        let server = Server::start(Script::new().turn(Turn::text("Half a").disconnect())).await.unwrap();
        let mut client = Client::connect(&server).await;
        let response = client.ask(protocol, &prompt(protocol, "Go")).await;
        assert!(!response.is_whole);
        assert_eq!(response.answer_text(), "Half a");
        if protocol == Protocol::Bedrock {
            let begun = String::from_utf8_lossy(&response.body);
            let (_, rest) = begun.rsplit_once("contentBlockDelta").unwrap();
            assert!(!rest.ends_with('}') && !rest.contains("cut"), "`{rest}` is not part of a frame");
        } else {
            let text = response.text();
            let (_, rest) = text.rsplit_once("\n\n").unwrap();
            let begun = [
                "data: {",
                "event: content_block_delta",
                "event: response.output_text.delta",
                "event: content-delta",
            ];
            let begun = begun.iter().any(|start| rest.starts_with(start));
            assert!(begun && !rest.ends_with('\n'), "`{rest}` is not part of an event");
        }
        assert!(client.is_closed().await);
        assert_eq!(server.wait_for_end(1, DEADLINE).await.unwrap().outcome, Outcome::Cut);
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_is_cut_in_the_middle_too() {
    let server = Server::start(Script::new().turn(Turn::text("Half a").disconnect())).await.unwrap();
    let mut client = Client::connect(&server).await;
    let mut body = prompt(Protocol::Anthropic, "Go");
    body["stream"] = json!(false);
    let response = client.ask(Protocol::Anthropic, &body).await;
    assert!(!response.is_whole && !response.body.is_empty());
}

#[tokio::test]
async fn a_hang_lasts_until_the_client_disconnects() {
    for protocol in PROTOCOLS {
        let server = Server::start(Script::new().turn(Turn::text("Wait. ".repeat(50)).hang().text("never")))
            .await
            .unwrap();
        let mut client = Client::connect(&server).await;
        client.write(crate::client::post(protocol, &prompt(protocol, "Go").to_string())).await;
        let seen = String::from_utf8_lossy(client.read_at_least(300).await).into_owned();
        assert!(seen.starts_with("HTTP/1.1 200"), "{seen}");
        let recorded = server.wait_for_request(1, DEADLINE).await.unwrap();
        assert_eq!(recorded.outcome, Outcome::Open);
        drop(client);
        assert_eq!(server.wait_for_end(1, DEADLINE).await.unwrap().outcome, Outcome::Disconnected);
    }
}

#[tokio::test]
async fn a_client_that_disconnects_during_a_pause_is_noticed() {
    let pauses = [
        Turn::text("x").delay(Duration::from_secs(300)).into(),
        Turn::text("x").chunk_delay_ms(300_000).into(),
        Turn::http_error(500).delay(Duration::from_secs(300)).into(),
        Turn::Silent,
    ];
    for turn in pauses {
        let server = Server::start(Script::new().turn(turn)).await.unwrap();
        let mut client = Client::connect(&server).await;
        client.write(crate::client::post(Protocol::Chat, &prompt(Protocol::Chat, "Go").to_string())).await;
        server.wait_for_request(1, DEADLINE).await.unwrap();
        drop(client);
        assert_eq!(server.wait_for_end(1, DEADLINE).await.unwrap().outcome, Outcome::Disconnected);
    }
}

#[tokio::test]
async fn an_empty_turn_closes_without_an_answer() {
    let server = Server::start(Script::new().turn(Turn::Empty)).await.unwrap();
    let mut client = Client::connect(&server).await;
    let response = client.ask(Protocol::Chat, &prompt(Protocol::Chat, "Go")).await;
    assert_eq!((response.status, response.body.len()), (0, 0));
}

#[tokio::test]
async fn lengths_may_be_wrong() {
    let script = Script::new()
        .turn(Turn::raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"a\""))
        .turn(Turn::http_error(500).header("content-length", "50").body("short"));
    let server = Server::start(script).await.unwrap();
    for expected in ["{\"a\"", "short"] {
        let mut client = Client::connect(&server).await;
        let response = client.ask(Protocol::Chat, &prompt(Protocol::Chat, "Go")).await;
        assert!(!response.is_whole);
        assert_eq!(response.text(), expected);
    }
}
