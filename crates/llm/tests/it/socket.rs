//! Tests with working and failing servers on a real socket.

use std::io::{Read, Write};
use std::time::Duration;

use codewright_llm::{
    Client, Error, EventStream, FinishReason, Message, Model, ModelEvent, Protocol, Request, UserContent,
};

use crate::server::{
    Answer, CHAT_END, Server, chat, resets_after, response, says, stalls_after, stream_head,
};

fn model(server: &Server) -> Model {
    let mut model = Model::new("test", "m", Protocol::OpenAiChat, &server.base_url());
    model.api_key = Some("sk-test".into());
    model.timeouts.first_byte = Duration::from_secs(20);
    model.timeouts.idle = Duration::from_secs(20);
    model
}

fn client() -> Client {
    Client::new("codewright/test").unwrap()
}

fn request() -> Request {
    Request { messages: vec![Message::User(vec![UserContent::Text("hi".into())])], ..Request::default() }
}

async fn ask(model: &Model) -> Result<EventStream, Error> {
    client().stream(model, &request()).await
}

/// Returns all events of the stream until its end or first error.
async fn all(mut stream: EventStream) -> (String, Option<FinishReason>, Option<Error>) {
    let (mut text, mut finish, mut error) = (String::new(), None, None);
    while let Some(event) = stream.next().await {
        match event {
            Ok(ModelEvent::TextDelta(more)) => text.push_str(&more),
            Ok(ModelEvent::Finish { reason, .. }) => finish = Some(reason),
            Ok(_) => {}
            Err(why) => error = Some(why),
        }
    }
    assert!(stream.next().await.is_none(), "the end is the end");
    (text, finish, error)
}

async fn play(answer: Answer) -> (String, Option<FinishReason>, Option<Error>) {
    let server = Server::new(vec![answer]);
    all(ask(&model(&server)).await.unwrap()).await
}

async fn refusal(answer: Answer) -> Error {
    let server = Server::new(vec![answer]);
    match ask(&model(&server)).await {
        Err(error) => error,
        Ok(stream) => all(stream).await.2.expect("the server refused"),
    }
}

#[tokio::test]
async fn an_answer_is_streamed() {
    let server = Server::new(vec![says(format!(
        "{}{}{CHAT_END}",
        stream_head(),
        chat(&[r#"{"content":"Hel"}"#, r#"{"content":"lo"}"#])
    ))]);
    let stream = ask(&model(&server)).await.unwrap();
    assert_eq!(all(stream).await, ("Hello".into(), Some(FinishReason::Stop), None));

    let asked = server.requests().await.remove(0);
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(head.starts_with("post /v1/chat/completions "), "{head}");
    for line in
        ["authorization: bearer sk-test", "content-type: application/json", "user-agent: codewright/test"]
    {
        assert!(head.lines().any(|found| found == line), "{line} in {head}");
    }
    assert_eq!(
        body,
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}"#
    );
}

#[tokio::test]
async fn decoded_events_are_available_without_waiting() {
    let text = chat(&[r#"{"content":"a"}"#, r#"{"content":"b"}"#]);
    let server = Server::new(vec![says(format!("{}{text}{CHAT_END}", stream_head()))]);
    let mut stream = ask(&model(&server)).await.unwrap();
    assert!(stream.try_next().is_none());
    let mut seen = 0;
    while let Some(event) = stream.next().await {
        event.unwrap();
        seen += 1;
        while stream.try_next().is_some() {
            seen += 1;
        }
    }
    assert_eq!(seen, 5);
}

#[tokio::test]
async fn a_reset_inside_an_event_is_busy() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
    let (text, finish, error) =
        play(resets_after(format!("{head}{}data: {{\"choi", chat(&[r#"{"content":"a"}"#])))).await;
    assert_eq!((text.as_str(), finish), ("a", None));
    let error = error.unwrap();
    assert!(matches!(error, Error::Busy { .. }), "{error:?}");
    assert_eq!(error.to_string(), "Connection reset by server");
    assert_eq!(error.failure().provider, "test");
}

#[tokio::test]
async fn an_incomplete_answer_is_busy() {
    for tail in ["", "data: {\"choices\":[{\"del"] {
        let (text, finish, error) =
            play(says(format!("{}{}{tail}", stream_head(), chat(&[r#"{"content":"a"}"#])))).await;
        assert_eq!((text.as_str(), finish), ("a", None));
        let error = error.unwrap();
        assert!(matches!(error, Error::Busy { .. }), "{error:?}");
        assert_eq!(error.to_string(), "connection closed before the answer was complete");
    }
}

#[tokio::test]
async fn an_answer_may_end_without_its_end_mark() {
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}";
    let (text, finish, error) =
        play(says(format!("{}{}{end}", stream_head(), chat(&[r#"{"content":"a"}"#])))).await;
    assert_eq!((text.as_str(), finish, error), ("a", Some(FinishReason::Stop), None));
}

#[tokio::test]
async fn a_silent_server_is_disconnected() {
    let server =
        Server::new(vec![stalls_after(format!("{}{}", stream_head(), chat(&[r#"{"content":"a"}"#])))]);
    let mut model = model(&server);
    model.timeouts.idle = Duration::from_millis(200);
    let (text, finish, error) = all(ask(&model).await.unwrap()).await;
    assert_eq!((text.as_str(), finish), ("a", None));
    let error = error.unwrap();
    assert!(matches!(error, Error::Busy { .. }));
    assert_eq!(error.to_string(), "the server sent nothing for 0.2 s");
    // The disconnect lets the server's thread end.
    assert_eq!(server.requests().await.len(), 1);
}

#[tokio::test]
async fn a_server_that_never_answers_is_disconnected() {
    let server = Server::new(vec![stalls_after("")]);
    let mut model = model(&server);
    model.timeouts.first_byte = Duration::from_millis(200);
    let error = ask(&model).await.unwrap_err();
    assert!(matches!(error, Error::Busy { .. }));
    assert_eq!(error.to_string(), "the server did not begin to answer within 0.2 s");
}

#[tokio::test]
async fn an_endless_answer_is_aborted() {
    let drip: Answer = Box::new(|socket| {
        socket.write_all(stream_head().as_bytes()).unwrap();
        // Until the client disconnects.
        while socket.write_all(b": keep-alive\n\n").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let server = Server::new(vec![drip]);
    let mut model = model(&server);
    model.timeouts.total = Some(Duration::from_millis(400));
    let (_, _, error) = all(ask(&model).await.unwrap()).await;
    assert_eq!(error.unwrap().to_string(), "the answer was not complete after 0.4 s");
}

#[tokio::test]
async fn a_stream_that_is_never_closed_ends_with_its_end_mark() {
    let server = Server::new(vec![stalls_after(format!(
        "{}{}{CHAT_END}",
        stream_head(),
        chat(&[r#"{"content":"a"}"#])
    ))]);
    let (text, finish, error) = all(ask(&model(&server)).await.unwrap()).await;
    assert_eq!((text.as_str(), finish, error), ("a", Some(FinishReason::Stop), None));
}

#[tokio::test]
async fn a_rejected_key_is_an_auth_error() {
    let body = r#"{"error": {"message": "Invalid API key", "type": "authentication_error"}}"#;
    let error = refusal(says(response("401 Unauthorized", "content-type: application/json\r\n", body))).await;
    let Error::Auth { failure } = &error else { panic!("{error:?}") };
    assert_eq!(failure.message, "Invalid API key");
    assert_eq!(failure.status, Some(401));
    assert_eq!(failure.body.as_deref(), Some(body));
    assert_eq!(failure.headers["content-type"], "application/json");
    assert_eq!(failure.headers.len(), 2);
    assert!(failure.url.as_ref().unwrap().ends_with("/v1/chat/completions"));
}

#[tokio::test]
async fn a_rate_limit_contains_the_retry_delay() {
    let body = r#"{"error": {"message": "Rate limit reached", "type": "rate_limit_error"}}"#;
    let error = refusal(says(response("429 Too Many Requests", "retry-after: 7\r\n", body))).await;
    assert!(
        matches!(&error, Error::Busy { retry_after: Some(wait), .. } if *wait == Duration::from_secs(7)),
        "{error:?}"
    );
    assert_eq!(error.to_string(), "Rate limit reached");
}

#[tokio::test]
async fn a_server_error_is_busy() {
    let error =
        refusal(says(response("500 Internal Server Error", "", r#"{"error":{"message":"Internal error"}}"#)))
            .await;
    assert!(matches!(&error, Error::Busy { retry_after: None, .. }), "{error:?}");
    assert_eq!(error.to_string(), "Internal error");
}

#[tokio::test]
async fn a_bad_request_is_rejected_and_a_full_context_is_not() {
    let bad = r#"{"error": {"message": "Bad thing", "type": "invalid_request_error", "code": "bad"}}"#;
    let error = refusal(says(response("400 Bad Request", "", bad))).await;
    assert!(matches!(&error, Error::Rejected { failure } if failure.message == "Bad thing"), "{error:?}");
    let full = r#"{"error": {"message": "too long", "code": "context_length_exceeded"}}"#;
    let error = refusal(says(response("400 Bad Request", "", full))).await;
    assert!(matches!(&error, Error::Overflow { .. }), "{error:?}");
}

#[tokio::test]
async fn html_pages_are_summarized() {
    let page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    let error = refusal(says(response("502 Bad Gateway", "content-type: text/html\r\n", page))).await;
    assert!(matches!(&error, Error::Busy { .. }), "{error:?}");
    assert_eq!(error.to_string(), "the server answered with an HTML page (502 Bad Gateway): 502 Bad Gateway");

    let error =
        refusal(says(response("200 OK", "content-type: text/html\r\n", "<!doctype html><p>hi"))).await;
    assert!(matches!(&error, Error::Rejected { .. }), "{error:?}");
    assert!(error.to_string().contains("HTML page (200 OK)"), "{error}");
}

#[tokio::test]
async fn an_answer_in_one_piece_is_decoded() {
    let body = r#"{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}"#;
    let (text, finish, error) =
        play(says(response("200 OK", "content-type: application/json\r\n", body))).await;
    assert_eq!((text.as_str(), finish, error), ("whole", Some(FinishReason::Stop), None));

    let error = refusal(says(response("200 OK", "", r#"{"error":{"message":"no","code":401}}"#))).await;
    assert!(matches!(&error, Error::Auth { .. }), "{error:?}");
    let error = refusal(says(response("200 OK", "", r#"{"status":"fine"}"#))).await;
    assert!(matches!(&error, Error::Rejected { .. }), "{error:?}");
}

#[tokio::test]
async fn a_compressed_answer_is_decompressed() {
    // `gzip -n` of: data: {"choices":[{"delta":{"content":"zip"},"finish_reason":"stop"}]}\n\n
    const PACKED: &[u8] = include_bytes!("zip.gz");
    let answer: Answer = Box::new(|socket| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n";
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(PACKED).unwrap();
    });
    assert_eq!(play(answer).await, ("zip".into(), Some(FinishReason::Stop), None));
}

#[tokio::test]
async fn a_garbled_answer_is_busy() {
    let head = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
    let (_, _, error) = play(says(response("200 OK", head, "this was never packed"))).await;
    let error = error.unwrap();
    assert!(matches!(&error, Error::Busy { .. }), "{error:?}");
    assert!(error.to_string().starts_with("the answer could not be decompressed"), "{error}");
}

#[tokio::test]
async fn a_connection_without_an_answer_is_busy() {
    let error = refusal(says("")).await;
    assert!(matches!(&error, Error::Busy { .. }), "{error:?}");
    assert!(error.to_string().contains("closed the connection without an answer"), "{error}");
}

#[tokio::test]
async fn a_refused_connection_is_reported() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let model = Model::new("test", "m", Protocol::OpenAiChat, &format!("http://{free}/v1"));
    let error = ask(&model).await.unwrap_err();
    assert!(matches!(&error, Error::Busy { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!(
            "could not connect to http://{free} (connection refused); start the server, or correct the base URL of the provider"
        )
    );
}

#[tokio::test]
async fn a_server_without_tls_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("https://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 4096]).unwrap();
        socket.write_all(response("400 Bad Request", "", "no tls here").as_bytes()).unwrap();
    });
    let mut model = Model::new("test", "m", Protocol::OpenAiChat, &base_url);
    model.timeouts.connect = Duration::from_secs(20);
    let error = ask(&model).await.unwrap_err();
    assert!(
        error.to_string().starts_with("could not make a secure connection to https://127.0.0.1:"),
        "{error}"
    );
    server.join().unwrap();
}

#[tokio::test]
async fn a_key_is_not_sent_to_another_server() {
    let elsewhere = "location: http://127.0.0.2:1/v1/chat/completions\r\n";
    let error = refusal(says(response("307 Temporary Redirect", elsewhere, ""))).await;
    assert!(matches!(&error, Error::Rejected { .. }), "{error:?}");
    assert!(error.to_string().contains("`http://127.0.0.2:1/"), "{error}");
}

#[tokio::test]
async fn a_huge_error_is_truncated() {
    let error = refusal(says(response("400 Bad Request", "", &"x".repeat(300_000)))).await;
    assert_eq!(error.failure().body.as_ref().unwrap().len(), 64 * 1024);
    assert!(error.to_string().len() < 3000);
}

#[tokio::test]
async fn an_invalid_url_is_named() {
    let model = Model::new("test", "m", Protocol::OpenAiChat, "localhost:8080/v1");
    let error = ask(&model).await.unwrap_err();
    assert!(matches!(&error, Error::Rejected { failure } if failure.provider == "test"), "{error:?}");
    assert!(error.to_string().contains("`localhost:8080/v1`"), "{error}");
}

#[tokio::test]
async fn anthropic_requests_have_its_headers() {
    let events = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n\
        data: {\"type\":\"message_stop\"}\n\n";
    let server = Server::new(vec![says(format!("{}{events}", stream_head()))]);
    let mut model = model(&server);
    model.protocol = Protocol::Anthropic;
    let stream = ask(&model).await.unwrap();
    assert_eq!(all(stream).await, ("hi".into(), Some(FinishReason::Stop), None));
    let head = server.requests().await.remove(0).split("\r\n\r\n").next().unwrap().to_lowercase();
    assert!(head.starts_with("post /v1/messages "), "{head}");
    for line in ["x-api-key: sk-test", "anthropic-version: 2023-06-01"] {
        assert!(head.lines().any(|found| found == line), "{line} in {head}");
    }
    assert!(!head.contains("anthropic-beta"), "{head}");
}

#[tokio::test]
async fn models_are_listed() {
    let server = Server::new(vec![says(response("200 OK", "", r#"{"data":[{"id":"a"},{"id":"b"}]}"#))]);
    let wait = Duration::from_secs(20);
    let found = codewright_llm::list_models(&client(), &server.base_url(), None, wait).await.unwrap();
    assert_eq!(found, ["a", "b"]);
    assert!(server.requests().await[0].starts_with("GET /v1/models "));

    let silent = Server::new(vec![stalls_after("")]);
    let wait = Duration::from_millis(200);
    let error = codewright_llm::list_models(&client(), &silent.base_url(), None, wait).await.unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error:?}");
}
