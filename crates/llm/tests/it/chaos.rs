//! Tests with servers that fail in many ways, for all protocols. Each case must end in limited time
//! and memory, with the right class of error.

use std::io::Write;
use std::time::Duration;

use codewright_llm::{Client, Error, Message, Model, ModelEvent, Protocol, Request, UserContent};
use codewright_scripted::bedrock_frame;

use crate::server::{Answer, Server, resets_after, response, says, stalls_after, stream_head};

/// Time limit of a case.
const LIMIT: Duration = Duration::from_secs(30);

/// The events of one protocol.
struct Events {
    protocol: Protocol,
    /// Opens a text and sends `a`.
    opening: Vec<u8>,
    /// Sends `b`.
    more: Vec<u8>,
    /// Sends text with an invalid byte.
    garbled: Vec<u8>,
    /// Ends the text and the answer.
    ending: Vec<u8>,
    /// Unknown events.
    strange: Vec<u8>,
    /// An event with invalid content.
    unreadable: Vec<u8>,
    /// An event whose text never ends.
    endless: Vec<u8>,
    /// The error for an endless event.
    too_long: &'static str,
    /// The error for endless JSON.
    no_answer: &'static str,
}

/// An error in the middle of an answer.
#[derive(Clone, Copy)]
enum Trouble {
    Overloaded,
    Broken,
    TooLong,
    Stranger,
    Bad,
}

impl Events {
    /// Returns the events of a protocol with server-sent events.
    fn of_events(protocol: Protocol, [opening, more, ending, endless]: [&str; 4]) -> Self {
        let garbled = more.replace("\"b\"", "\"#\"").into_bytes();
        Self {
            protocol,
            opening: opening.into(),
            more: more.into(),
            garbled: garbled.into_iter().map(|byte| if byte == b'#' { 0xFF } else { byte }).collect(),
            ending: ending.into(),
            strange:
                "event: ping\n\n: comment\n\ndata: {\"type\":\"from_the_future\",\"choices\":[]}\n\nid: 3\n\n"
                    .into(),
            unreadable: "data: {oops\n\n".into(),
            endless: endless.into(),
            too_long: "rejected: the answer contains an event of more than 16777216 bytes",
            no_answer: "rejected: the answer contains more than",
        }
    }

    /// Returns the frames of Bedrock.
    fn of_frames() -> Self {
        let event = |name: &str, body: &[u8]| bedrock_frame("event", name, body);
        let delta = |text: &[u8]| {
            let body = [b"{\"contentBlockIndex\":0,\"delta\":{\"text\":\"", text, b"\"}}"].concat();
            event("contentBlockDelta", &body)
        };
        // The start of a frame of 100 MB.
        let mut endless = [100_u32 << 20, 64].map(u32::to_be_bytes).concat();
        endless.extend(crc32fast::hash(&endless).to_be_bytes());
        Self {
            protocol: Protocol::Bedrock,
            opening: [event("messageStart", b"{\"role\":\"assistant\"}"), delta(b"a")].concat(),
            more: delta(b"b"),
            garbled: delta(b"\xFF"),
            ending: [
                event("contentBlockStop", b"{\"contentBlockIndex\":0}"),
                event("messageStop", b"{\"stopReason\":\"end_turn\"}"),
                event("metadata", b"{}"),
            ]
            .concat(),
            strange: [event("fromTheFuture", b"{\"a\":[]}"), bedrock_frame("novelty", "x", b"\0")].concat(),
            unreadable: event("contentBlockDelta", b"{oops"),
            endless,
            too_long: "rejected: the answer contains a frame of more than 16777216 bytes",
            no_answer: "rejected: the answer is not an Amazon event stream",
        }
    }

    fn error(&self, trouble: Trouble) -> Vec<u8> {
        let name = match trouble {
            Trouble::Overloaded => ["serviceUnavailableException", "overloaded_error", "UNAVAILABLE"],
            Trouble::Broken => ["internalServerException", "server_error", "INTERNAL"],
            Trouble::TooLong | Trouble::Bad => {
                ["validationException", "invalid_request_error", "INVALID_ARGUMENT"]
            }
            Trouble::Stranger => ["accessDeniedException", "authentication_error", "UNAUTHENTICATED"],
        };
        let message = match trouble {
            Trouble::TooLong => "prompt is too long: 213462 tokens > 200000 maximum",
            Trouble::Overloaded | Trouble::Broken | Trouble::Stranger | Trouble::Bad => "as it is",
        };
        match self.protocol {
            Protocol::Bedrock => {
                let body = format!("{{\"message\":\"{message}\"}}");
                bedrock_frame("exception", name[0], body.as_bytes())
            }
            Protocol::Gemini => {
                format!("data: {{\"error\":{{\"status\":\"{}\",\"message\":\"{message}\"}}}}\n\n", name[2])
                    .into()
            }
            _ => format!(
                "data: {{\"type\":\"error\",\"error\":{{\"type\":\"{}\",\"message\":\"{message}\"}}}}\n\n",
                name[1]
            )
            .into(),
        }
    }
}

fn all_events() -> Vec<Events> {
    let chat = [
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"",
    ];
    let anthropic = [
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
            data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"b\"}}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"",
    ];
    let responses = [
        "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\"}}\n\n\
            data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"item_id\":\"m\",\"delta\":\"a\"}\n\n",
        "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"item_id\":\"m\",\"delta\":\"b\"}\n\n",
        "data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n",
        "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"",
    ];
    let cohere = [
        "data: {\"type\":\"content-start\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"type\":\"text\",\"text\":\"\"}}}}\n\n\
            data: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\"a\"}}}}\n\n",
        "data: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\"b\"}}}}\n\n",
        "data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"COMPLETE\"}}\n\n",
        "data: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\"",
    ];
    let gemini = [
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}],\"role\":\"model\"}}]}\r\n\r\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"b\"}],\"role\":\"model\"}}]}\r\n\r\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[]},\"finishReason\":\"STOP\"}]}\r\n\r\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"",
    ];
    let of_events = [
        (Protocol::OpenAiChat, chat),
        (Protocol::Anthropic, anthropic),
        (Protocol::OpenAiResponses, responses),
        (Protocol::Cohere, cohere),
        (Protocol::Gemini, gemini),
    ];
    let mut all: Vec<Events> =
        of_events.into_iter().map(|(protocol, said)| Events::of_events(protocol, said)).collect();
    all.push(Events::of_frames());
    all
}

/// Returns a streamed answer of these pieces that ends with the connection.
fn stream(pieces: &[&[u8]]) -> Vec<u8> {
    [stream_head().as_bytes(), &pieces.concat()].concat()
}

/// Plays an answer and returns its text, and the class and message of its end.
async fn play(protocol: Protocol, answer: Answer, idle: Duration) -> (String, String) {
    let server = Server::new(vec![answer]);
    let mut model = Model::new("test", "m", protocol, &server.base_url());
    model.timeouts.idle = idle;
    let request =
        Request { messages: vec![Message::User(vec![UserContent::Text("hi".into())])], ..Request::default() };
    let all = async {
        let mut text = String::new();
        let mut stream = match Client::new("codewright/test").unwrap().stream(&model, &request).await {
            Ok(stream) => stream,
            Err(error) => return (text, describe(&error)),
        };
        let mut end = "nothing".to_owned();
        while let Some(event) = stream.next().await {
            match event {
                Ok(ModelEvent::TextDelta(more)) => text.push_str(&more),
                Ok(ModelEvent::Finish { reason, .. }) => end = format!("finish {}", reason.as_str()),
                Ok(_) => {}
                Err(error) => end = describe(&error),
            }
        }
        (text, end)
    };
    let found = tokio::time::timeout(LIMIT, all).await.expect("an answer ends in bounded time");
    // The server's assertions count too.
    server.requests().await;
    found
}

fn describe(error: &Error) -> String {
    let class = match error {
        Error::Busy { .. } => "busy",
        Error::Overflow { .. } => "overflow",
        Error::Auth { .. } => "auth",
        Error::Rejected { .. } => "rejected",
    };
    format!("{class}: {error}")
}

#[track_caller]
fn check(protocol: Protocol, found: &(String, String), text: &str, end: &str) {
    assert_eq!(found.0, text, "{protocol:?}: {}", found.1);
    assert!(found.1.starts_with(end), "{protocol:?}: {} instead of {end}", found.1);
}

#[tokio::test]
async fn a_broken_stream_is_busy() {
    const LONG: Duration = Duration::from_secs(20);
    for Events { protocol, opening, more, .. } in all_events() {
        let cut = &more[..more.len() / 2];
        let lengthy = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99999\r\n\r\n";
        let answer = resets_after([lengthy.as_bytes(), &opening, cut].concat());
        let found = play(protocol, answer, LONG).await;
        check(protocol, &found, "a", "busy: Connection reset");

        let found = play(protocol, says(stream(&[&opening, cut])), LONG).await;
        check(protocol, &found, "a", "busy: connection closed");

        let idle = Duration::from_millis(200);
        let found = play(protocol, stalls_after(stream(&[&opening, cut])), idle).await;
        check(protocol, &found, "a", "busy: the server sent nothing");

        let found = play(protocol, says(""), LONG).await;
        check(protocol, &found, "", "busy: ");
    }
}

#[tokio::test]
async fn a_wrong_length_does_not_change_the_answer() {
    const LONG: Duration = Duration::from_secs(20);
    for Events { protocol, opening, more, ending, .. } in all_events() {
        let body = [&opening[..], &more, &ending].concat();
        let with_length = |length: usize| {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
            );
            [head.as_bytes(), &body].concat()
        };
        // The answer had ended with its end event.
        let found = play(protocol, says(with_length(body.len() + 500)), LONG).await;
        check(protocol, &found, "ab", "finish stop");

        let found = play(protocol, says(with_length(opening.len())), LONG).await;
        check(protocol, &found, "a", "busy: connection closed");
    }
}

#[tokio::test]
async fn events_may_be_missing_repeated_or_broken() {
    const LONG: Duration = Duration::from_secs(20);
    for Events { protocol, opening, more, garbled, ending, strange, unreadable, .. } in all_events() {
        let answer = stream(&[&opening, &more, &ending, &ending, &more]);
        let found = play(protocol, says(answer), LONG).await;
        // Without an end event, everything before the end of the connection is part of the answer.
        let text = if protocol == Protocol::Gemini { "abb" } else { "ab" };
        check(protocol, &found, text, "finish stop");

        let answer = stream(&[&strange, &opening, &strange, &more, &ending]);
        let found = play(protocol, says(answer), LONG).await;
        check(protocol, &found, "ab", "finish stop");

        // Without its opening, a protocol with numbered blocks ignores the text.
        let text = if protocol == Protocol::Anthropic { "" } else { "b" };
        let found = play(protocol, says(stream(&[&more, &ending])), LONG).await;
        check(protocol, &found, text, "finish stop");

        let found = play(protocol, says(stream(&[&opening, &more, &garbled, &ending])), LONG).await;
        check(protocol, &found, "ab\u{fffd}", "finish stop");

        let found = play(protocol, says(stream(&[&opening, &unreadable, &ending])), LONG).await;
        check(protocol, &found, "a", "rejected: the answer contains an event that cannot be decoded");
    }
}

#[tokio::test]
async fn an_error_inside_the_stream_is_classified() {
    const LONG: Duration = Duration::from_secs(20);
    for tongue in all_events() {
        for (trouble, end) in [
            (Trouble::Overloaded, "busy: "),
            (Trouble::Broken, "busy: "),
            (Trouble::TooLong, "overflow: "),
            (Trouble::Stranger, "auth: "),
            (Trouble::Bad, "rejected: "),
        ] {
            let answer = stream(&[&tongue.opening, &tongue.error(trouble)]);
            let found = play(tongue.protocol, says(answer), LONG).await;
            check(tongue.protocol, &found, "a", end);
        }
    }
}

#[tokio::test]
async fn repeated_rate_limits_are_classified() {
    for Events { protocol, .. } in all_events() {
        let body = r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#;
        let answer =
            || says(response("429 Too Many Requests", "retry-after-ms: 1500\r\nconnection: close\r\n", body));
        let server = Server::new((0..5).map(|_| answer()).collect());
        let model = Model::new("test", "m", protocol, &server.base_url());
        let client = Client::new("codewright/test").unwrap();
        for _ in 0..5 {
            match client.stream(&model, &Request::default()).await {
                Err(Error::Busy { retry_after, .. }) => {
                    assert_eq!(retry_after, Some(Duration::from_millis(1500)));
                }
                other => panic!("{protocol:?}: {other:?}"),
            }
        }
    }
}

/// Sends 100 MB unless the client disconnects first, which it should.
fn floods(beginning: Vec<u8>) -> Answer {
    Box::new(move |socket| {
        socket.set_write_timeout(Some(LIMIT)).unwrap();
        let piece = vec![b'x'; 1024 * 1024];
        let mut sent = 0;
        if socket.write_all(&beginning).is_ok() {
            while sent < 100 && socket.write_all(&piece).is_ok() {
                sent += 1;
            }
        }
        assert!(sent < 90, "the reader took {sent} MB of one event");
    })
}

#[tokio::test]
async fn a_huge_event_is_rejected_before_it_is_read() {
    const LONG: Duration = Duration::from_secs(20);
    for Events { protocol, opening, endless, too_long, no_answer, .. } in all_events() {
        let found = play(protocol, floods(stream(&[&opening, &endless])), LONG).await;
        check(protocol, &found, "a", too_long);

        let found = play(protocol, floods(stream(&[b"{\"error\":\""])), LONG).await;
        check(protocol, &found, "", no_answer);
    }
}
