//! Servers that break in every way, against every protocol: each ends in
//! bounded time and memory, and with the class that says what to do.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use codewright_llm::{Client, Error, Message, Model, ModelEvent, Protocol, Request, UserContent};

use crate::server::{Answer, Server, resets_after, response, says, stalls_after, stream_head};

/// No case may last longer, whatever the server does.
const LIMIT: Duration = Duration::from_secs(30);

/// How one protocol says the same things.
struct Tongue {
    protocol: Protocol,
    /// Opens a text and says `a`.
    opening: &'static str,
    /// Says `b` more.
    more: &'static str,
    /// Ends the text and the answer.
    ending: &'static str,
    /// An event whose text never ends.
    endless: &'static str,
}

const TONGUES: [Tongue; 4] = [
    Tongue {
        protocol: Protocol::OpenAiChat,
        opening: "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
        more: "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n",
        ending: "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        endless: "data: {\"choices\":[{\"delta\":{\"content\":\"",
    },
    Tongue {
        protocol: Protocol::Anthropic,
        opening: "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
            data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n",
        more: "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"b\"}}\n\n",
        ending: "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        endless: "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"",
    },
    Tongue {
        protocol: Protocol::OpenAiResponses,
        opening: "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\"}}\n\n\
            data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"item_id\":\"m\",\"delta\":\"a\"}\n\n",
        more: "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"item_id\":\"m\",\"delta\":\"b\"}\n\n",
        ending: "data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n",
        endless: "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"",
    },
    Tongue {
        protocol: Protocol::Cohere,
        opening: "data: {\"type\":\"content-start\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"type\":\"text\",\"text\":\"\"}}}}\n\n\
            data: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\"a\"}}}}\n\n",
        more: "data: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\"b\"}}}}\n\n",
        ending: "data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"COMPLETE\"}}\n\n",
        endless: "data: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\"",
    },
];

/// What came of one answer: its text, and the class and words of its end.
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
            Err(error) => return (text, told(&error)),
        };
        let mut end = "nothing".to_owned();
        while let Some(event) = stream.next().await {
            match event {
                Ok(ModelEvent::TextDelta(more)) => text.push_str(&more),
                Ok(ModelEvent::Finish { reason, .. }) => end = format!("finish {}", reason.as_str()),
                Ok(_) => {}
                Err(error) => end = told(&error),
            }
        }
        (text, end)
    };
    let found = tokio::time::timeout(LIMIT, all).await.expect("an answer ends in bounded time");
    // What the server has to say about it counts too.
    server.requests().await;
    found
}

fn told(error: &Error) -> String {
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

/// Bytes that may not be text, sent as they are.
fn sends(bytes: Vec<u8>) -> Answer {
    Box::new(move |socket: &mut TcpStream| {
        socket.write_all(&bytes).unwrap();
        socket.flush().unwrap();
    })
}

#[tokio::test]
async fn a_broken_stream_is_worth_another_try() {
    const LONG: Duration = Duration::from_secs(20);
    for Tongue { protocol, opening, more, .. } in TONGUES {
        let cut = &more[..more.len() / 2];
        let lengthy = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99999\r\n\r\n";
        let found = play(protocol, resets_after(format!("{lengthy}{opening}{cut}")), LONG).await;
        check(protocol, &found, "a", "busy: Connection reset");

        let found = play(protocol, says(format!("{}{opening}{cut}", stream_head())), LONG).await;
        check(protocol, &found, "a", "busy: connection closed");

        let idle = Duration::from_millis(200);
        let found = play(protocol, stalls_after(format!("{}{opening}{cut}", stream_head())), idle).await;
        check(protocol, &found, "a", "busy: the server fell silent");

        let found = play(protocol, says(""), LONG).await;
        check(protocol, &found, "", "busy: ");
    }
}

#[tokio::test]
async fn a_wrong_length_hides_nothing_and_adds_nothing() {
    const LONG: Duration = Duration::from_secs(20);
    for Tongue { protocol, opening, more, ending, .. } in TONGUES {
        let body = format!("{opening}{more}{ending}");
        let head = |length: usize| {
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n")
        };
        // The answer had ended by its own word.
        let found = play(protocol, says(format!("{}{body}", head(body.len() + 500))), LONG).await;
        check(protocol, &found, "ab", "finish stop");

        let found = play(protocol, says(format!("{}{body}", head(opening.len()))), LONG).await;
        check(protocol, &found, "a", "busy: connection closed");
    }
}

#[tokio::test]
async fn events_may_be_missing_repeated_or_broken() {
    const LONG: Duration = Duration::from_secs(20);
    for Tongue { protocol, opening, more, ending, .. } in TONGUES {
        let head = stream_head();
        let found = play(protocol, says(format!("{head}{opening}{more}{ending}{ending}{more}")), LONG).await;
        check(protocol, &found, "ab", "finish stop");

        let strange =
            "event: ping\n\n: comment\n\ndata: {\"type\":\"from_the_future\",\"choices\":[]}\n\nid: 3\n\n";
        let found =
            play(protocol, says(format!("{head}{strange}{opening}{strange}{more}{ending}")), LONG).await;
        check(protocol, &found, "ab", "finish stop");

        // Without its opening, text of the protocol that numbers its blocks has no place.
        let text = if protocol == Protocol::Anthropic { "" } else { "b" };
        let found = play(protocol, says(format!("{head}{more}{ending}")), LONG).await;
        check(protocol, &found, text, "finish stop");

        let mut bytes = format!("{head}{opening}").into_bytes();
        bytes.extend(more.bytes());
        bytes.extend(
            more.replace("\"b\"", "\"#\"").bytes().map(|byte| if byte == b'#' { 0xFF } else { byte }),
        );
        bytes.extend(ending.bytes());
        let found = play(protocol, sends(bytes), LONG).await;
        check(protocol, &found, "ab\u{fffd}", "finish stop");

        let found = play(protocol, says(format!("{head}{opening}data: {{oops\n\n{ending}")), LONG).await;
        check(protocol, &found, "a", "rejected: the answer holds an event that cannot be read");
    }
}

#[tokio::test]
async fn an_error_after_a_good_beginning_is_told_apart() {
    const LONG: Duration = Duration::from_secs(20);
    for Tongue { protocol, opening, .. } in TONGUES {
        for (error, end) in [
            (r#"{"type":"overloaded_error","message":"busy"}"#, "busy: "),
            (r#"{"type":"server_error","message":"boom"}"#, "busy: "),
            (r#"{"code":"context_length_exceeded","message":"too long"}"#, "overflow: "),
            (r#"{"type":"authentication_error","message":"who?"}"#, "auth: "),
            (r#"{"type":"invalid_request_error","message":"bad"}"#, "rejected: "),
        ] {
            let event = format!("data: {{\"type\":\"error\",\"error\":{error}}}\n\n");
            let found = play(protocol, says(format!("{}{opening}{event}", stream_head())), LONG).await;
            check(protocol, &found, "a", end);
        }
    }
}

#[tokio::test]
async fn a_storm_of_refusals_is_told_apart_each_time() {
    for Tongue { protocol, .. } in TONGUES {
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

/// Sends 100 MB unless the peer leaves before, which it should.
fn floods(beginning: String) -> Answer {
    Box::new(move |socket| {
        socket.set_write_timeout(Some(LIMIT)).unwrap();
        let piece = vec![b'x'; 1024 * 1024];
        let mut sent = 0;
        if socket.write_all(beginning.as_bytes()).is_ok() {
            while sent < 100 && socket.write_all(&piece).is_ok() {
                sent += 1;
            }
        }
        assert!(sent < 90, "the reader took {sent} MB of one event");
    })
}

#[tokio::test]
async fn an_enormous_event_is_refused_before_it_is_read() {
    const LONG: Duration = Duration::from_secs(20);
    for Tongue { protocol, opening, endless, .. } in TONGUES {
        let head = stream_head();
        let server = floods(format!("{head}{opening}{endless}"));
        let found = play(protocol, server, LONG).await;
        check(protocol, &found, "a", "rejected: the answer holds an event of more than 16777216 bytes");

        let found = play(protocol, floods(format!("{head}{{\"error\":\"")), LONG).await;
        check(protocol, &found, "", "rejected: the answer holds more than");
    }
}
