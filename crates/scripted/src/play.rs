//! Plays a turn to a client.
//!
//! Events are collected and written in large pieces. Only a pause causes a separate write, so that
//! a fast stream costs little.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::flood::Flood;
use crate::http::{self, Connection};
use crate::protocol::{Block, Part, Protocol, Wire};
use crate::record::Outcome;
use crate::request::Request;
use crate::script::{Args, Call, Content, Pace, Reply, Step, Steps, StreamError};

/// Events are collected up to this size.
const WRITE_BYTES: usize = 64 << 10;
/// Time limit of an answer that hangs until the client disconnects.
const HANG_LIMIT: Duration = Duration::from_secs(600);
/// Limit of cached floods.
const FLOODS_LIMIT: usize = 8;
/// Limit of a cached flood's encoded size.
const FLOOD_KEPT_LIMIT_BYTES: usize = 64 << 20;
/// The default signature of reasoning.
const SIGNATURE: &str = "c2lnbmF0dXJl";
/// The default encrypted form of reasoning.
const ENCRYPTED: &str = "ZW5jcnlwdGVk";

/// An answer that is being played.
pub(crate) struct Answer<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) request: &'a Request,
    pub(crate) floods: &'a Floods,
    /// The script's pace, for steps without their own.
    pub(crate) pace: Pace,
    /// The part of the answer's ids that makes them unique.
    pub(crate) label: &'a str,
}

impl Answer<'_> {
    /// Plays a model's answer, streamed or in one piece as requested.
    pub(crate) async fn steps(self, steps: &Steps) -> io::Result<Outcome> {
        // The cached bytes of a flood contain the id, so it must always be the same.
        let has_flood = steps.steps.iter().any(|step| matches!(step, Step::Flood(_)));
        let label = if has_flood { "flood" } else { self.label };
        let wire = self.request.protocol.wire(label, &self.request.model, steps.usage);
        if self.request.stream { self.stream(steps, wire).await } else { self.whole(steps, wire).await }
    }

    /// Sends a plain HTTP answer.
    pub(crate) async fn reply(self, reply: &Reply) -> io::Result<Outcome> {
        self.connection.pause(reply.delay).await?;
        send(self.connection, reply, Some(self.request.protocol)).await?;
        Ok(Outcome::Status(reply.status))
    }

    async fn stream(self, steps: &Steps, wire: Box<dyn Wire>) -> io::Result<Outcome> {
        let mut headers = vec![
            ("content-type".to_owned(), self.request.protocol.stream_type().to_owned()),
            ("cache-control".to_owned(), "no-cache".to_owned()),
            ("transfer-encoding".to_owned(), "chunked".to_owned()),
            ("x-request-id".to_owned(), format!("req_mock_{}", self.label)),
        ];
        headers.extend_from_slice(&steps.headers);
        let out = http::head(200, &headers);
        let mut stream = Stream { connection: self.connection, wire, head: out, events: Vec::new() };
        stream.wire.begin(&mut stream.events);
        for (n, step) in steps.steps.iter().enumerate() {
            let pace = |pace: &Pace| pace.or(self.pace);
            match step {
                Step::Text { text, pace: own } => stream.block(Block::Text, text, pace(own)).await?,
                Step::Reasoning { text, signature, encrypted, pace: own } => {
                    let signature = signature.as_deref().unwrap_or(SIGNATURE);
                    let encrypted = encrypted.as_deref().unwrap_or(ENCRYPTED);
                    stream.block(Block::Reasoning { signature, encrypted }, text, pace(own)).await?;
                }
                Step::Tool { pace: own, .. } | Step::AnyTool { pace: own, .. } => {
                    if let Some(call) = select_call(step, self.request) {
                        let id = call_id(call, self.request.protocol, self.label, n);
                        let (args, is_custom) = arguments(call, self.request.protocol);
                        let block = Block::Tool { id: &id, name: &call.name, is_custom };
                        stream.block(block, &args, pace(own)).await?;
                    }
                }
                Step::Flood(flood) => stream.flood(*flood, self.floods).await?,
                Step::Delay(delay) => {
                    stream.flush().await?;
                    stream.connection.pause(*delay).await?;
                }
                Step::StreamError(error) => {
                    stream.wire.error(&mut stream.events, error);
                    stream.finish().await?;
                    return Ok(Outcome::Finished);
                }
                Step::Disconnect => {
                    stream.cut().await?;
                    return Ok(Outcome::Cut);
                }
                Step::Hang => {
                    stream.flush().await?;
                    return hang(stream.connection).await;
                }
            }
        }
        stream.wire.end(&mut stream.events, &steps.stop_reason());
        stream.finish().await?;
        Ok(Outcome::Finished)
    }

    async fn whole(self, steps: &Steps, wire: Box<dyn Wire>) -> io::Result<Outcome> {
        let mut parts = Vec::new();
        let mut is_cut = false;
        for (n, step) in steps.steps.iter().enumerate() {
            match step {
                Step::Text { text, .. } => parts.push(Part::Text(text.clone())),
                Step::Reasoning { text, signature, encrypted, .. } => {
                    let signature = signature.as_deref().unwrap_or(SIGNATURE).to_owned();
                    let encrypted = encrypted.as_deref().unwrap_or(ENCRYPTED).to_owned();
                    parts.push(Part::Reasoning { text: text.clone(), signature, encrypted });
                }
                Step::Tool { .. } | Step::AnyTool { .. } => {
                    if let Some(call) = select_call(step, self.request) {
                        let id = call_id(call, self.request.protocol, self.label, n);
                        let (args, is_custom) = arguments(call, self.request.protocol);
                        parts.push(Part::Tool { id, name: call.name.clone(), args, is_custom });
                    }
                }
                Step::Flood(flood) => parts.push(Part::Text(flood.text())),
                Step::Delay(delay) => self.connection.pause(*delay).await?,
                Step::StreamError(StreamError { kind, message, .. }) => {
                    let kind = kind.as_deref().unwrap_or("server_error");
                    let mut reply = Reply::new(500, self.request.protocol.error_body(kind, message).into());
                    reply.headers = self.request.protocol.error_headers(kind);
                    return self.reply(&reply).await;
                }
                Step::Disconnect => {
                    is_cut = true;
                    break;
                }
                Step::Hang => return hang(self.connection).await,
            }
        }
        let body = wire.whole(&parts, &steps.stop_reason());
        let mut reply = Reply::new(200, body.into());
        reply.headers.clone_from(&steps.headers);
        let (head, body) = render(&reply, Some(self.request.protocol));
        self.connection.write(&head).await?;
        let body = if is_cut { &body[..body.len() / 2] } else { &body };
        self.connection.write(body).await?;
        Ok(if is_cut { Outcome::Cut } else { Outcome::Finished })
    }
}

/// A streamed body in chunked encoding.
struct Stream<'a> {
    connection: &'a mut Connection,
    wire: Box<dyn Wire>,
    /// The response's head, until it is written.
    head: Vec<u8>,
    /// Complete events that are not written yet.
    events: Vec<u8>,
}

impl Stream<'_> {
    async fn block(&mut self, block: Block<'_>, text: &str, pace: Pace) -> io::Result<()> {
        self.wire.open(&mut self.events, block);
        // Counted from the start, so that a slow machine does not add up delays.
        let mut due = Instant::now();
        for piece in pace.pieces(text) {
            self.wire.delta(&mut self.events, block, piece);
            match pace.chunk_delay.filter(|delay| !delay.is_zero()) {
                Some(delay) => {
                    self.flush().await?;
                    due += delay;
                    self.connection.pause_until(due).await?;
                }
                None if self.events.len() >= WRITE_BYTES => self.flush().await?,
                None => {}
            }
        }
        self.wire.close(&mut self.events, block);
        Ok(())
    }

    async fn flood(&mut self, flood: Flood, floods: &Floods) -> io::Result<()> {
        self.wire.open(&mut self.events, Block::Text);
        self.flush().await?;
        let encoded = floods.encode(flood, self.wire.as_mut());
        self.wire.after_flood(flood);
        self.connection.write(&encoded).await?;
        self.wire.close(&mut self.events, Block::Text);
        Ok(())
    }

    /// Writes the collected events as one chunk.
    async fn flush(&mut self) -> io::Result<()> {
        let mut out = std::mem::take(&mut self.head);
        frame(&mut out, &self.events);
        self.events.clear();
        if out.is_empty() { Ok(()) } else { self.connection.write(&out).await }
    }

    async fn finish(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.connection.write(b"0\r\n\r\n").await
    }

    /// Announces another event and sends one half.
    async fn cut(&mut self) -> io::Result<()> {
        self.flush().await?;
        let mut event = Vec::new();
        self.wire.delta(&mut event, Block::Text, "cut");
        let mut out = Vec::new();
        frame(&mut out, &event);
        out.truncate(out.len() / 2);
        self.connection.write(&out).await
    }
}

/// A cache of encoded floods, because encoding is slower than sending.
#[derive(Default)]
pub(crate) struct Floods(Mutex<Vec<(FloodKey, Arc<Vec<u8>>)>>);

/// A flood, and an empty event of the protocol and model.
type FloodKey = (Flood, Vec<u8>);

impl Floods {
    /// Returns the flood's deltas in chunked encoding.
    fn encode(&self, flood: Flood, wire: &mut dyn Wire) -> Arc<Vec<u8>> {
        let flood = flood.clamped();
        let mut sample = Vec::new();
        wire.delta(&mut sample, Block::Text, "");
        let key = (flood, sample);
        // No code under the lock can panic, so the data is consistent.
        let kept = |floods: &Self| {
            let floods = floods.0.lock().unwrap_or_else(PoisonError::into_inner);
            floods.iter().find(|(known, _)| *known == key).map(|(_, encoded)| Arc::clone(encoded))
        };
        if let Some(encoded) = kept(self) {
            return encoded;
        }
        let (mut encoded, mut events) = (Vec::new(), Vec::new());
        for piece in flood.pieces() {
            wire.delta(&mut events, Block::Text, &piece);
            if events.len() >= WRITE_BYTES {
                frame(&mut encoded, &events);
                events.clear();
            }
        }
        frame(&mut encoded, &events);
        let encoded = Arc::new(encoded);
        if encoded.len() <= FLOOD_KEPT_LIMIT_BYTES {
            let mut floods = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if floods.len() >= FLOODS_LIMIT {
                floods.remove(0);
            }
            floods.push((key, Arc::clone(&encoded)));
        }
        encoded
    }
}

/// Sends a plain answer.
pub(crate) async fn send(
    connection: &mut Connection,
    reply: &Reply,
    protocol: Option<Protocol>,
) -> io::Result<()> {
    let (mut out, body) = render(reply, protocol);
    out.extend_from_slice(&body);
    connection.write(&out).await
}

/// Waits until the client disconnects, up to a limit. The connection must be closed afterwards.
pub(crate) async fn hang(connection: &mut Connection) -> io::Result<Outcome> {
    connection.pause(HANG_LIMIT).await?;
    Ok(Outcome::Cut)
}

/// Returns whether the client may send another request after this answer.
pub(crate) fn keeps_alive(reply: &Reply) -> bool {
    // A scripted length may be wrong, so the end of the answer is unknown.
    !reply.headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("content-length")
            || (name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close"))
    })
}

/// Returns the head and the body of a plain answer.
fn render(reply: &Reply, protocol: Option<Protocol>) -> (Vec<u8>, Vec<u8>) {
    let standard = || match protocol {
        Some(protocol) => protocol.error_body(kind_of(reply.status), "scripted error"),
        None => Value::Null,
    };
    let (kind, body) = match &reply.body {
        Content::Standard => ("application/json", standard().to_string()),
        Content::Json(value) => ("application/json", value.to_string()),
        Content::Text(text) => ("text/plain; charset=utf-8", text.clone()),
    };
    let mut headers = reply.headers.clone();
    if let (Content::Standard, Some(protocol)) = (&reply.body, protocol) {
        headers.extend(protocol.error_headers(kind_of(reply.status)));
    }
    let mut add = |name: &str, value: String| {
        if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            headers.push((name.to_owned(), value));
        }
    };
    add("content-type", kind.to_owned());
    add("content-length", body.len().to_string());
    (http::head(reply.status, &headers), body.into_bytes())
}

fn kind_of(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// Returns the call of a step: the first one whose tool the request offers, otherwise the first
/// one.
fn select_call<'a>(step: &'a Step, request: &Request) -> Option<&'a Call> {
    match step {
        Step::Tool { call, .. } => Some(call),
        Step::AnyTool { calls, .. } => calls.iter().find(|call| request.offers(&call.name)).or(calls.first()),
        Step::Text { .. }
        | Step::Reasoning { .. }
        | Step::Flood(_)
        | Step::Delay(_)
        | Step::StreamError(_)
        | Step::Disconnect
        | Step::Hang => None,
    }
}

/// Returns a call's arguments, and whether it is a free-form call in this protocol.
fn arguments(call: &Call, protocol: Protocol) -> (String, bool) {
    match &call.args {
        Args::Custom(input) if protocol.has_custom_calls() => (input.clone(), true),
        args => (args.text(), false),
    }
}

fn call_id(call: &Call, protocol: Protocol, label: &str, step: usize) -> String {
    match &call.id {
        Some(id) => protocol.call_id(id),
        None => protocol.call_id(&format!("call_mock_{label}_{}", step + 1)),
    }
}

/// Appends bytes as one chunk. Skips empty chunks, which would end the body.
fn frame(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    out.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
