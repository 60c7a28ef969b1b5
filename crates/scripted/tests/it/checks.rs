//! Tests of rejected requests over the wire. The rules are tested next to their code.

use codewright_scripted::{Checks, Protocol, Script, Server};
use serde_json::json;

use crate::client::{Client, post, prompt};

#[tokio::test]
async fn an_invalid_request_is_rejected_recorded_and_uses_no_turn() {
    for protocol in [Protocol::Chat, Protocol::Anthropic, Protocol::Responses] {
        let server = Server::start(Script::new().text("first")).await.unwrap();
        let mut client = Client::connect(&server).await;
        let mut bad = prompt(protocol, "Go");
        bad["model"] = json!(7);
        let response = client.ask(protocol, &bad).await;
        assert_eq!(response.status, 400);
        let error = &response.json()["error"];
        assert_eq!(error["message"], "the scripted model refuses this request: `model` is not a string");
        assert_eq!(error["type"], "invalid_request_error");
        assert_eq!(server.problems(), ["request 1: `model` is not a string"]);
        assert_eq!(server.requests()[0].problems, ["`model` is not a string"]);
        assert_eq!(client.ask(protocol, &prompt(protocol, "Go")).await.answer_text(), "first");
    }
}

#[tokio::test]
async fn an_invalid_request_to_a_cloud_is_rejected_in_its_format() {
    let server = Server::start(Script::new().text("first")).await.unwrap();
    let mut client = Client::connect(&server).await;
    let mut bad = prompt(Protocol::Bedrock, "Go");
    bad["messages"][0]["role"] = json!("assistant");
    let response = client.ask(Protocol::Bedrock, &bad).await;
    assert_eq!(response.status, 400);
    assert!(response.head.contains("x-amzn-errortype: validationexception"), "{}", response.head);
    assert_eq!(
        response.json()["message"],
        "the scripted model refuses this request: `messages[0]` is not the user's"
    );
    let mut bad = prompt(Protocol::Vertex, "Go");
    bad["model"] = json!("claude-mock");
    bad["anthropic_version"] = json!("2023-06-01");
    assert_eq!(client.ask(Protocol::Vertex, &bad).await.status, 400);
    assert_problem(&server, "`anthropic_version` is `2023-06-01` and not `vertex-2023-10-16`");
    assert_problem(&server, "`model` is set, and belongs into the path");
    let unsigned = post(Protocol::Bedrock, &prompt(Protocol::Bedrock, "Go").to_string());
    client.write(unsigned.replace("AWS4-HMAC-SHA256", "AWS4")).await;
    assert_eq!(client.response().await.status, 400);
    assert_problem(&server, "neither a signature nor a key");
    for protocol in [Protocol::Bedrock, Protocol::Vertex, Protocol::Cohere] {
        let response = client.ask(protocol, &prompt(protocol, "Go")).await;
        assert_eq!(response.status, 200, "{protocol:?} {:?}", server.problems());
    }
    let models: Vec<_> = server.requests().iter().map(|recorded| recorded.path.clone()).collect();
    assert_eq!(models[0], "/model/us.mock%3A0/converse-stream");
}

#[tokio::test]
async fn checks_can_be_recorded_only_or_disabled() {
    for (checks, problems) in [(Checks::Record, 1), (Checks::Off, 0)] {
        let server = Server::start(Script::new().text("first").checks(checks)).await.unwrap();
        let mut bad = prompt(Protocol::Chat, "Go");
        bad["messages"][1]["content"] = json!("");
        let response = Client::connect(&server).await.ask(Protocol::Chat, &bad).await;
        assert_eq!((response.status, response.answer_text().as_str()), (200, "first"));
        assert_eq!(server.problems().len(), problems, "{:?}", server.problems());
    }
}

#[track_caller]
fn assert_problem(server: &Server, expected: &str) {
    let problems = server.problems();
    assert!(problems.iter().any(|problem| problem.contains(expected)), "{problems:?}");
}

#[tokio::test]
async fn invalid_json_is_rejected() {
    let server = Server::start(Script::new()).await.unwrap();
    let mut client = Client::connect(&server).await;
    client.write(post(Protocol::Chat, "{\"a\":")).await;
    assert_eq!(client.response().await.status, 400);
    assert_problem(&server, "the body is not JSON: EOF");
    client.write(post(Protocol::Chat, "[]")).await;
    assert_eq!(client.response().await.status, 400);
    assert_problem(&server, "the body is not a JSON object");
    let text = post(Protocol::Chat, &prompt(Protocol::Chat, "Go").to_string());
    client.write(text.replace("application/json", "text/plain")).await;
    assert_eq!(client.response().await.status, 400);
    assert_problem(&server, "the content-type is `text/plain`, not `application/json`");
    let text = post(Protocol::Anthropic, &prompt(Protocol::Anthropic, "Go").to_string());
    client.write(text.replace("anthropic-version", "x-version")).await;
    assert_eq!(client.response().await.status, 400);
    assert_problem(&server, "the header `anthropic-version` is missing");
}

#[tokio::test]
async fn invalid_http_is_rejected() {
    let huge = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(70 << 10));
    let table = [
        ("nonsense\r\n\r\n", 400, "not three words"),
        ("PRI * HTTP/2.0\r\n\r\n", 505, "`HTTP/2.0` is not spoken"),
        (&huge, 431, "head is larger than 65536 bytes"),
        ("POST /v1/messages HTTP/1.1\r\ncontent-length: 67108865\r\n\r\n", 413, "larger than 67108864 bytes"),
        ("POST /v1/messages HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400, "`-1` is not a number"),
        (
            "POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
            400,
            "`xyz` is not a hexadecimal",
        ),
        ("POST /v1/messages HTTP/1.1\r\ncontent-encoding: gzip\r\n\r\n", 415, "`gzip` is not read"),
    ];
    let server = Server::start(Script::new()).await.unwrap();
    for (request, status, problem) in table {
        let mut client = Client::connect(&server).await;
        client.write(request).await;
        let response = client.response().await;
        assert_eq!(response.status, status, "{problem}");
        assert!(response.text().contains(problem), "{}", response.text());
        assert_problem(&server, problem);
        assert!(client.is_closed().await);
    }
}

#[tokio::test]
async fn an_unknown_route_is_a_problem() {
    let server = Server::start(Script::new()).await.unwrap();
    let mut client = Client::connect(&server).await;
    client.write("GET /v2/nothing?x=1 HTTP/1.1\r\n\r\n").await;
    assert_eq!(client.response().await.status, 404);
    assert_eq!(server.problems(), ["there is no route `GET /v2/nothing`"]);
}
