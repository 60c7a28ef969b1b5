//! Tests with a server that checks AWS signatures and answers in frames.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;

use codewright_llm::{
    Auth, Aws, Client, Error, FinishReason, Keys, Message, Model, ModelEvent, Protocol, Request, Sources,
    Usage, UserContent,
};
use codewright_proto::Clock;
use codewright_scripted::bedrock_frame;
use ring::{digest, hmac};

use crate::server::{Answer, Server, response, says};

const NOW_MS: u64 = 1_440_938_160_000;
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn model(server: &Server) -> Model {
    let keys = Keys {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: SECRET.into(),
        session_token: Some("TOKEN".into()),
        expires_ms: None,
    };
    let sources = Sources { keys: Some(keys), region: Some("eu-west-1".into()), ..Sources::default() };
    let id = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
    let mut model =
        Model::new("amazon-bedrock", id, Protocol::Bedrock, server.base_url().trim_end_matches("/v1"));
    model.auth = Auth::Aws(Aws::new(sources, Clock::stepping(NOW_MS, 0)));
    model
}

fn request() -> Request {
    Request { messages: vec![Message::User(vec![UserContent::Text("hi".into())])], ..Request::default() }
}

fn frame(kind: &str, name: &str, payload: &str) -> Vec<u8> {
    bedrock_frame(kind, name, payload.as_bytes())
}

fn beginning() -> Vec<u8> {
    [
        ("messageStart", r#"{"p":"abcdef","role":"assistant"}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"Hel"},"p":"ab"}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"lo €"},"p":"a"}"#),
        ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
    ]
    .iter()
    .flat_map(|(name, payload)| frame("event", name, payload))
    .collect()
}

fn whole() -> Vec<u8> {
    let end = [
        ("messageStop", r#"{"stopReason":"end_turn"}"#),
        (
            "metadata",
            r#"{"metrics":{"latencyMs":1},"usage":{"inputTokens":3,"outputTokens":2,"totalTokens":5}}"#,
        ),
    ];
    beginning()
        .into_iter()
        .chain(end.iter().flat_map(|(name, payload)| frame("event", name, payload)))
        .collect()
}

/// Sends frames in pieces of `size` and closes the connection. The client may close it first.
fn sends(frames: Vec<u8>, size: usize) -> Answer {
    Box::new(move |socket: &mut TcpStream| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\nconnection: close\r\n\r\n";
        socket.write_all(head.as_bytes()).unwrap();
        for piece in frames.chunks(size) {
            if socket.write_all(piece).and_then(|()| socket.flush()).is_err() {
                break;
            }
        }
    })
}

async fn play(answer: Answer) -> (String, Option<(FinishReason, Usage)>, Option<Error>, String) {
    let server = Server::new(vec![answer]);
    let client = Client::new("codewright/test").unwrap();
    let (mut text, mut end, mut error) = (String::new(), None, None);
    match client.stream(&model(&server), &request()).await {
        Err(why) => error = Some(why),
        Ok(mut stream) => {
            while let Some(event) = stream.next().await {
                match event {
                    Ok(ModelEvent::TextDelta(more)) => text.push_str(&more),
                    Ok(ModelEvent::Finish { reason, usage }) => end = Some((reason, usage)),
                    Ok(_) => {}
                    Err(why) => error = Some(why),
                }
            }
        }
    }
    (text, end, error, server.requests().await.remove(0))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn hash(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

/// Computes the expected signature of a received request.
fn expected_signature(request: &str) -> String {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines = head.split("\r\n");
    let path = lines.next().unwrap().split(' ').nth(1).unwrap().replace('%', "%25");
    let headers: Vec<(String, &str)> = lines
        .map(|line| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value)).unwrap())
        .collect();
    let names = "content-type;host;x-amz-date;x-amz-security-token";
    let signed: String = names
        .split(';')
        .map(|name| {
            let (_, value) = headers.iter().find(|(found, _)| found == name).expect(name);
            format!("{name}:{value}\n")
        })
        .collect();
    let canonical = format!("POST\n{path}\n\n{signed}\n{names}\n{}", hash(body));
    let scope = "20150830/eu-west-1/bedrock/aws4_request";
    let text = format!("AWS4-HMAC-SHA256\n20150830T123600Z\n{scope}\n{}", hash(&canonical));
    let mac = |key: &[u8], text: &str| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
    };
    let key = scope.split('/').fold(format!("AWS4{SECRET}").into_bytes(), |key, part| mac(&key, part));
    let signature = hex(&mac(&key, &text));
    format!("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{scope}, SignedHeaders={names}, Signature={signature}")
}

#[tokio::test]
async fn a_signed_request_gets_a_framed_answer() {
    for size in [1, 7, 10_000] {
        let (text, end, error, asked) = play(sends(whole(), size)).await;
        assert_eq!((text.as_str(), error), ("Hello €", None));
        let usage = Usage { input: 3, output: 2, total: Some(5), ..Usage::default() };
        assert_eq!(end, Some((FinishReason::Stop, usage)));
        let path = "POST /model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream HTTP/1.1\r\n";
        assert!(asked.starts_with(path), "{asked}");
        assert!(asked.contains("x-amz-security-token: TOKEN\r\n"), "{asked}");
        let signed = format!("authorization: {}\r\n", expected_signature(&asked));
        assert!(asked.contains(&signed), "{signed} in {asked}");
    }
}

#[tokio::test]
async fn a_bedrock_api_key_needs_no_signature() {
    let server = Server::new(vec![sends(whole(), 100)]);
    let mut model = model(&server);
    model.api_key = Some("bedrock-key".into());
    let mut stream = Client::new("t").unwrap().stream(&model, &request()).await.unwrap();
    while let Some(event) = stream.next().await {
        event.unwrap();
    }
    let asked = server.requests().await.remove(0);
    assert!(asked.contains("authorization: Bearer bedrock-key\r\n") && !asked.contains("x-amz"), "{asked}");
}

#[tokio::test]
async fn an_aborted_answer_is_busy() {
    let whole = whole();
    let exception =
        [beginning(), frame("exception", "throttlingException", r#"{"message":"slow"}"#)].concat();
    let mut damaged = whole.clone();
    let at = beginning().len() - 8;
    damaged[at] ^= 1;
    for frames in
        [beginning(), beginning()[..200].to_vec(), whole[..10].to_vec(), Vec::new(), exception, damaged]
    {
        let (_, end, error, _) = play(sends(frames, 64)).await;
        assert!(matches!(error, Some(Error::Busy { .. })), "{error:?}");
        assert_eq!(end, None);
    }
}

#[tokio::test]
async fn error_answers_are_classified() {
    let refused = |status: &str, name: &str, message: &str| {
        let headers = format!("x-amzn-ErrorType: {name}\r\nconnection: close\r\n");
        says(response(status, &headers, &format!(r#"{{"message":"{message}"}}"#)))
    };
    let busy = play(refused("429 Too Many Requests", "ThrottlingException:", "slow")).await.2;
    assert!(matches!(busy, Some(Error::Busy { .. })), "{busy:?}");
    let full =
        play(refused("400 Bad Request", "ValidationException", "Input is too long for requested model."))
            .await
            .2;
    assert!(matches!(full, Some(Error::Overflow { .. })), "{full:?}");
    let auth = play(refused("403 Forbidden", "ExpiredTokenException", "expired")).await.2;
    assert!(matches!(auth, Some(Error::Auth { .. })), "{auth:?}");
    let foreign = play(says(response("200 OK", "connection: close\r\n", "{\"hello\":\"world\"}"))).await.2;
    assert!(
        matches!(&foreign, Some(Error::Rejected { failure }) if failure.message.contains("base URL")),
        "{foreign:?}"
    );
}
