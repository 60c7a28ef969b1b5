//! A raw HTTP client that shows the exact bytes of an answer, even if it is aborted.

#![expect(clippy::unwrap_used, reason = "a test's helper fails the test")]

use std::net::SocketAddr;
use std::time::Duration;

use codewright_scripted::{Protocol, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Long enough for a busy machine; only a failing test waits this long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The head in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Whether the body ended as announced by the head.
    pub(crate) is_whole: bool,
}

impl Client {
    pub(crate) async fn connect(server: &Server) -> Self {
        Self::connect_to(server.address()).await
    }

    pub(crate) async fn connect_to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn ask(&mut self, protocol: Protocol, body: &Value) -> Response {
        self.write(post(protocol, &body.to_string())).await;
        self.response().await
    }

    /// Reads one answer. The server may close the connection early.
    pub(crate) async fn response(&mut self) -> Response {
        timeout(DEADLINE, self.read_response()).await.expect("the answer did not end in time")
    }

    /// Reads until this many bytes of the answer have arrived.
    pub(crate) async fn read_at_least(&mut self, bytes: usize) -> &[u8] {
        while self.buffer.len() < bytes {
            assert!(
                timeout(DEADLINE, self.fill()).await.unwrap(),
                "closed after {} bytes",
                self.buffer.len()
            );
        }
        &self.buffer
    }

    /// Returns whether the server closed the connection without further bytes.
    pub(crate) async fn is_closed(&mut self) -> bool {
        !timeout(DEADLINE, self.fill()).await.expect("the connection stayed open")
    }

    async fn read_response(&mut self) -> Response {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            if !self.fill().await {
                return Response {
                    status: 0,
                    head: String::new(),
                    body: self.buffer.clone(),
                    is_whole: false,
                };
            }
        };
        let head = String::from_utf8(self.buffer.drain(..end + 4).collect()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = Vec::new();
        let is_whole = if head.contains("transfer-encoding: chunked") {
            self.read_chunks(&mut body).await
        } else {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map(str::trim);
            let length: usize = length.expect("an answer has a length").parse().unwrap();
            while self.buffer.len() < length && self.fill().await {}
            body = self.buffer.drain(..length.min(self.buffer.len())).collect();
            body.len() == length
        };
        Response { status, head, body, is_whole }
    }

    async fn read_chunks(&mut self, body: &mut Vec<u8>) -> bool {
        loop {
            let end = loop {
                if let Some(at) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                    break at;
                }
                if !self.fill().await {
                    return false;
                }
            };
            let size = usize::from_str_radix(std::str::from_utf8(&self.buffer[..end]).unwrap(), 16).unwrap();
            self.buffer.drain(..end + 2);
            while self.buffer.len() < size + 2 {
                if !self.fill().await {
                    body.append(&mut self.buffer);
                    return false;
                }
            }
            body.extend(self.buffer.drain(..size));
            assert_eq!(self.buffer.drain(..2).collect::<Vec<_>>(), b"\r\n");
            if size == 0 {
                return true;
            }
        }
    }

    async fn fill(&mut self) -> bool {
        self.buffer.reserve(1 << 16);
        self.stream.read_buf(&mut self.buffer).await.is_ok_and(|read| read > 0)
    }
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the data of each complete event; `[DONE]` is a string, and a frame is `{name:
    /// payload}`.
    pub(crate) fn events(&self) -> Vec<Value> {
        if self.head.contains("application/vnd.amazon.eventstream") {
            return frames(&self.body);
        }
        let text = self.text();
        let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
        let events = whole.split("\n\n").filter(|event| !event.is_empty());
        let data = events.map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap());
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data))).collect()
    }

    /// Returns the text of the answer.
    pub(crate) fn answer_text(&self) -> String {
        let piece = |event: &Value| {
            let chat = &event["choices"][0]["delta"]["content"];
            let gemini = &event["candidates"][0]["content"]["parts"][0]["text"];
            let responses = Some(&event["delta"]).filter(|_| event["type"] == "response.output_text.delta");
            let text = chat.as_str().or(responses.and_then(Value::as_str));
            let bedrock = &event["contentBlockDelta"]["delta"]["text"];
            let cohere = &event["delta"]["message"]["content"]["text"];
            let text = text.or(bedrock.as_str()).or(cohere.as_str());
            text.or(event["delta"]["text"].as_str()).or(gemini.as_str()).map(str::to_owned)
        };
        self.events().iter().filter_map(piece).collect()
    }
}

/// Returns the complete frames of a body, parsed independently of the server's code.
fn frames(mut body: &[u8]) -> Vec<Value> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let mut found = Vec::new();
    while body.len() >= 12 {
        let total = number(&body[..4]) as usize;
        let Some(frame) = body.get(..total) else { break };
        assert_eq!(crc32fast::hash(&frame[..8]), number(&frame[8..12]), "the checksum of the lengths");
        assert_eq!(crc32fast::hash(&frame[..total - 4]), number(&frame[total - 4..]), "the checksum");
        let (mut headers, payload) = frame[12..total - 4].split_at(number(&frame[4..8]) as usize);
        let mut name = String::new();
        while !headers.is_empty() {
            let (key, rest) = headers[1..].split_at(usize::from(headers[0]));
            assert_eq!(rest[0], 7, "the value is text");
            let length = usize::from(rest[1]) << 8 | usize::from(rest[2]);
            if key.ends_with(b"-type") && key != b":message-type" && key != b":content-type" {
                name = String::from_utf8(rest[3..3 + length].to_vec()).unwrap();
            }
            headers = &rest[3 + length..];
        }
        found.push(json!({name: serde_json::from_slice::<Value>(payload).unwrap()}));
        body = &body[total..];
    }
    found
}

/// An `authorization` header with the form of a signature.
const SIGNATURE: &str = "authorization: AWS4-HMAC-SHA256 Credential=AK/20150830/eu-west-1/bedrock/aws4_request, \
    SignedHeaders=content-type;host;x-amz-date, \
    Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\nx-amz-date: 20150830T123600Z";

/// Returns a request with all headers that its protocol needs.
pub(crate) fn post(protocol: Protocol, body: &str) -> String {
    let (path, headers) = match protocol {
        Protocol::Chat => ("/v1/chat/completions", "authorization: Bearer sk-secret"),
        Protocol::Anthropic => ("/v1/messages", "anthropic-version: 2023-06-01\r\nx-api-key: sk-secret"),
        Protocol::Gemini => {
            ("/v1beta/models/gemini-mock:streamGenerateContent?alt=sse", "x-goog-api-key: sk-secret")
        }
        Protocol::Responses => ("/v1/responses", "authorization: Bearer sk-secret"),
        Protocol::Bedrock => ("/model/us.mock%3A0/converse-stream", SIGNATURE),
        Protocol::Cohere => ("/v2/chat", "authorization: Bearer sk-secret"),
        Protocol::Vertex => (
            "/v1/projects/p/locations/global/publishers/anthropic/models/claude-mock:streamRawPredict",
            "authorization: Bearer token",
        ),
    };
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{headers}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Returns a streaming request that offers a tool `read`.
pub(crate) fn prompt(protocol: Protocol, text: &str) -> Value {
    match protocol {
        Protocol::Chat => json!({
            "model": "plain-model", "stream": true, "stream_options": {"include_usage": true},
            "messages": [{"role": "system", "content": "Be good."}, {"role": "user", "content": text}],
            "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
        }),
        Protocol::Anthropic => json!({
            "model": "claude-mock", "max_tokens": 100, "stream": true, "system": "Be good.",
            "messages": [{"role": "user", "content": text}],
            "tools": [{"name": "read", "input_schema": {"type": "object"}}],
        }),
        Protocol::Gemini => json!({
            "systemInstruction": {"parts": [{"text": "Be good."}]},
            "contents": [{"role": "user", "parts": [{"text": text}]}],
            "tools": [{"functionDeclarations": [{"name": "read", "description": "Reads"}]}],
        }),
        Protocol::Responses => json!({
            "model": "gpt-mock", "stream": true, "store": false,
            "input": [{"role": "system", "content": "Be good."},
                {"role": "user", "content": [{"type": "input_text", "text": text}]}],
            "tools": [{"type": "function", "name": "read", "strict": false,
                "parameters": {"type": "object", "properties": {}}}],
        }),
        Protocol::Bedrock => json!({
            "system": [{"text": "Be good."}],
            "messages": [{"role": "user", "content": [{"text": text}]}],
            "toolConfig": {"tools": [{"toolSpec": {"name": "read", "description": "Reads",
                "inputSchema": {"json": {"type": "object"}}}}]},
        }),
        Protocol::Cohere => json!({
            "model": "command-mock", "stream": true,
            "messages": [{"role": "system", "content": "Be good."}, {"role": "user", "content": text}],
            "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
        }),
        Protocol::Vertex => json!({
            "anthropic_version": "vertex-2023-10-16", "max_tokens": 100, "stream": true, "system": "Be good.",
            "messages": [{"role": "user", "content": text}],
            "tools": [{"name": "read", "input_schema": {"type": "object"}}],
        }),
    }
}
