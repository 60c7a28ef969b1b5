//! Tests of the selection of turns, and of connections.

use std::time::Duration;

use codewright_scripted::{Content, Kind, Protocol, Reply, Request, Script, Server, Steps, Turn};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::client::{Client, DEADLINE, post, prompt};

async fn answer_text(server: &Server, protocol: Protocol, text: &str) -> String {
    Client::connect(server).await.ask(protocol, &prompt(protocol, text)).await.answer_text()
}

#[tokio::test]
async fn turns_are_played_in_order_then_the_default() {
    let server =
        Server::start(Script::new().text("one").text("two").default_turn(Turn::text("over"))).await.unwrap();
    for expected in ["one", "two", "over", "over"] {
        assert_eq!(answer_text(&server, Protocol::Chat, "Go").await, expected);
    }
    let server = Server::start(Script::new().text("one").text("two").repeat()).await.unwrap();
    for expected in ["one", "two", "one"] {
        assert_eq!(answer_text(&server, Protocol::Anthropic, "Go").await, expected);
    }
    let server = Server::start(Script::new()).await.unwrap();
    assert_eq!(answer_text(&server, Protocol::Chat, "Go").await, "Done.");
}

#[tokio::test]
async fn titles_and_summaries_use_no_turn() {
    let server = Server::start(Script::new().title("A name").summary(Turn::text("So far.")).text("one"))
        .await
        .unwrap();
    let mut client = Client::connect(&server).await;
    let without_tools = |system: &str| {
        let mut body = prompt(Protocol::Chat, "Go");
        body.as_object_mut().unwrap().remove("tools");
        body["messages"][0]["content"] = json!(system);
        body
    };
    assert_eq!(client.ask(Protocol::Chat, &without_tools("Write a title.")).await.answer_text(), "A name");
    assert_eq!(client.ask(Protocol::Chat, &without_tools("Write a summary.")).await.answer_text(), "So far.");
    assert_eq!(client.ask(Protocol::Chat, &without_tools("Be good.")).await.answer_text(), "one");
    let requests = server.requests();
    let kinds: Vec<_> = requests.iter().map(|recorded| (recorded.kind, recorded.turn)).collect();
    assert_eq!(kinds, [(Kind::Title, None), (Kind::Summary, None), (Kind::Main, Some(0))]);
    assert_eq!(server.main_requests().len(), 1);
}

#[tokio::test]
async fn sessions_have_their_own_turns() {
    let script = Script::new().session("ALPHA", [Turn::text("a1"), Turn::text("a2")]).text("other");
    let server = Server::start(script).await.unwrap();
    assert_eq!(answer_text(&server, Protocol::Chat, "for ALPHA").await, "a1");
    assert_eq!(answer_text(&server, Protocol::Chat, "for nobody").await, "other");
    assert_eq!(answer_text(&server, Protocol::Anthropic, "ALPHA again").await, "a2");
    assert_eq!(server.requests()[2].session.as_deref(), Some("ALPHA"));
}

#[tokio::test]
async fn a_turn_may_be_computed_from_the_request() {
    let reply = |request: &Request| -> Steps {
        match request.last_result() {
            Some(result) => Turn::text(format!("{} said {}", result.id, result.text)),
            None => Turn::tools([("read", json!({"filePath": request.last_user()}))]),
        }
    };
    let server = Server::start(Script::new().default_turn(Turn::respond(reply))).await.unwrap();
    let mut client = Client::connect(&server).await;
    let mut body = prompt(Protocol::Anthropic, "/tmp/a");
    let events = client.ask(Protocol::Anthropic, &body).await.events();
    let input: String = events.iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
    assert_eq!(input, r#"{"filePath":"/tmp/a"}"#);
    let messages = body["messages"].as_array_mut().unwrap();
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}});
    messages.push(json!({"role": "assistant", "content": [call]}));
    let result =
        json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "hi"}]});
    messages.push(json!({"role": "user", "content": [result]}));
    assert_eq!(client.ask(Protocol::Anthropic, &body).await.answer_text(), "toolu_1 said hi");
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let server =
        Server::start(Script::new().text("one").turn(Turn::http_error(500)).text("three")).await.unwrap();
    let mut client = Client::connect(&server).await;
    assert_eq!(client.ask(Protocol::Chat, &prompt(Protocol::Chat, "Go")).await.answer_text(), "one");
    assert_eq!(client.ask(Protocol::Anthropic, &prompt(Protocol::Anthropic, "Go")).await.status, 500);
    client.write("GET /v1/models HTTP/1.1\r\n\r\n").await;
    assert_eq!(client.response().await.status, 200);
    // Two requests at once: the second one waits in the socket.
    let request = post(Protocol::Chat, &prompt(Protocol::Chat, "Go").to_string());
    client.write(format!("{request}{request}")).await;
    assert_eq!(client.response().await.answer_text(), "three");
    assert_eq!(client.response().await.answer_text(), "Done.");
}

#[tokio::test]
async fn a_connection_is_closed_on_request() {
    let server = Server::start(Script::new().text("one")).await.unwrap();
    let mut client = Client::connect(&server).await;
    let request = post(Protocol::Chat, &prompt(Protocol::Chat, "Go").to_string());
    client.write(request.replacen("host: x", "connection: close", 1)).await;
    assert_eq!(client.response().await.answer_text(), "one");
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_chunked_body_is_read() {
    let server = Server::start(Script::new().text("one")).await.unwrap();
    let mut client = Client::connect(&server).await;
    let body = prompt(Protocol::Chat, "Go").to_string();
    let (first, second) = body.split_at(40);
    client
        .write("POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    assert!(client.read_at_least(25).await.starts_with(b"HTTP/1.1 100 Continue\r\n\r\n"));
    let chunks = [first, second].map(|chunk| format!("{:x};note=1\r\n{chunk}\r\n", chunk.len()));
    client.write(format!("{}{}0\r\ntrailer: x\r\n\r\n", chunks[0], chunks[1])).await;
    assert!(server.wait_for_end(1, DEADLINE).await.unwrap().problems.is_empty());
    assert_eq!(*server.requests()[0].body, serde_json::from_str::<Value>(&body).unwrap());
}

#[tokio::test]
async fn a_request_in_two_parts_is_read_as_one() {
    let server = Server::start(Script::new().text("x").repeat()).await.unwrap();
    let mut client = Client::connect(&server).await;
    let request = post(Protocol::Chat, &prompt(Protocol::Chat, "Go").to_string());
    let head = request.find("\r\n\r\n").unwrap();
    // Near the end of the head, each position is tested; elsewhere, a sample.
    for at in (1..request.len()).filter(|at| at.abs_diff(head) < 8 || at % 23 == 0) {
        let (first, second) = request.split_at(at);
        client.write(first).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
        client.write(second).await;
        assert_eq!(client.response().await.answer_text(), "x", "cut at byte {at}");
    }
    assert!(server.problems().is_empty(), "{:?}", server.problems());
}

#[tokio::test]
async fn models_and_pages_are_listed() {
    let page = Reply::new(200, Content::Text("<p>hi</p>".to_owned())).header("content-type", "text/html");
    let server = Server::start(Script::new().models(["a", "b"]).page("p", page)).await.unwrap();
    let mut client = Client::connect(&server).await;
    client.write("GET /v1/models HTTP/1.1\r\n\r\n").await;
    let models = client.response().await.json();
    let ids: Vec<_> = models["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect();
    assert_eq!(ids, ["a", "b"]);
    client.write("GET /__mock/pages/p HTTP/1.1\r\n\r\n").await;
    assert_eq!(client.response().await.text(), "<p>hi</p>");
}

#[tokio::test]
async fn a_json_script_is_played() {
    let script = r#"{
        "title": "Fix it",
        "turns": [{"steps": [{"text": "Looking."}, {"tool_any": [{"tool": "view"}, {"tool": "read", "args": {"filePath": "${DIR}/a"}}]}]}],
        "default": "Done."
    }"#;
    let server = Server::start(Script::from_json_with(script, &[("DIR", "/w")]).unwrap()).await.unwrap();
    let mut client = Client::connect(&server).await;
    let text = client.ask(Protocol::Chat, &prompt(Protocol::Chat, "Go")).await.text();
    assert!(text.contains(r#""name":"read""#), "the tool on offer is called: {text}");
    assert_eq!(client.ask(Protocol::Chat, &prompt(Protocol::Chat, "Go")).await.answer_text(), "Done.");
}

#[tokio::test]
async fn recorded_requests_hide_credentials() {
    let server = Server::start(Script::new()).await.unwrap();
    answer_text(&server, Protocol::Anthropic, "Go").await;
    let recorded = server.wait_for_end(1, DEADLINE).await.unwrap();
    assert_eq!(recorded.headers.get("x-api-key"), Some("sk-secret"));
    assert_eq!((recorded.path.as_str(), recorded.protocol), ("/v1/messages", Protocol::Anthropic));
    assert!(!format!("{recorded:?}").contains("sk-secret"));
}

#[tokio::test]
async fn an_expired_wait_lists_the_requests() {
    let server = Server::start(Script::new()).await.unwrap();
    answer_text(&server, Protocol::Chat, "Go").await;
    let error = server.wait_for_request(2, Duration::from_millis(20)).await.unwrap_err().to_string();
    assert!(
        error.contains("request 2 did not come within 20ms; there were 1 requests, 1 of them main"),
        "{error}"
    );
}

#[tokio::test]
async fn many_clients_are_served_at_once() {
    const CLIENTS: usize = 200;
    let server = Server::start(Script::new().text("x").repeat()).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Client::connect(&server).await;
        client.write(post(Protocol::Chat, &prompt(Protocol::Chat, "Go").to_string())).await;
        clients.push(client);
    }
    for client in &mut clients {
        assert_eq!(client.response().await.answer_text(), "x");
    }
    assert_eq!(server.requests().len(), CLIENTS);
}

#[tokio::test]
async fn stopping_closes_all_connections() {
    for is_dropped in [false, true] {
        let server = Server::start(Script::new().turn(Turn::steps().hang())).await.unwrap();
        let address = server.address();
        let mut client = Client::connect(&server).await;
        client.write(post(Protocol::Chat, &prompt(Protocol::Chat, "Go").to_string())).await;
        server.wait_for_request(1, DEADLINE).await.unwrap();
        if is_dropped {
            drop(server);
        } else {
            server.stop().await;
        }
        assert!(!client.response().await.is_whole);
        let refused = async {
            while TcpStream::connect(address).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(DEADLINE, refused).await.expect("the port is still served");
    }
}
