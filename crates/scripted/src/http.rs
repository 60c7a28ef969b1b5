//! A minimal HTTP/1.1 server connection.
//!
//! It supports the part of HTTP that model clients use. Requests are parsed strictly and within
//! limits. Answers are raw bytes: their author decides whether a length is right and whether the
//! answer ends.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// Limit of a request's head.
const HEAD_LIMIT_BYTES: usize = 64 << 10;
/// Limit of a request's body.
const BODY_LIMIT_BYTES: usize = 64 << 20;
/// Limit of the line before a chunk.
const CHUNK_LINE_LIMIT_BYTES: usize = 1 << 10;
/// The minimum size of a read.
const READ_BYTES: usize = 16 << 10;
/// Limit of bytes that a client may send during an answer.
const AHEAD_LIMIT_BYTES: usize = 1 << 20;
/// Time limit of a connection between requests.
const IDLE_LIMIT: Duration = Duration::from_secs(120);
/// Time limit for the arrival of a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(120);
/// Time limit of a write that the client does not read.
const WRITE_LIMIT: Duration = Duration::from_secs(600);

/// Headers whose values `Debug` hides.
const SECRET: [&str; 6] =
    ["authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"];

/// The headers of a request, in order, with lower-case names.
///
/// `Debug` hides the values of credentials.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Returns the value of the first header with this name, ignoring case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns all names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns whether a comma-separated header contains a token.
    fn has(&self, name: &str, token: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.split(',').any(|each| each.trim().eq_ignore_ascii_case(token)))
    }
}

impl<N: AsRef<str>, V: Into<String>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(headers: I) -> Self {
        Self(
            headers
                .into_iter()
                .map(|(name, value)| (name.as_ref().to_ascii_lowercase(), value.into()))
                .collect(),
        )
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let redact = |(name, value)| (name, if SECRET.contains(&name) { "<redacted>" } else { value });
        f.debug_map().entries(self.iter().map(redact)).finish()
    }
}

/// A received request.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) method: String,
    /// The path without its query.
    pub(crate) path: String,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
    pub(crate) keeps_alive: bool,
}

/// The reason why no request was read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The client disconnected or sent nothing for too long.
    Disconnected,
    /// The client sent an invalid request. The connection must be closed.
    Invalid { status: u16, reason: String },
}

impl From<io::Error> for ReadError {
    fn from(_: io::Error) -> Self {
        Self::Disconnected
    }
}

impl ReadError {
    fn invalid(status: u16, reason: impl Into<String>) -> Self {
        Self::Invalid { status, reason: reason.into() }
    }
}

struct Head {
    method: String,
    path: String,
    headers: Headers,
    is_old: bool,
}

/// A client's connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes that were read but not used yet.
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Reads the next request.
    pub(crate) async fn read(&mut self) -> Result<Incoming, ReadError> {
        if self.buffer.is_empty() {
            timeout(IDLE_LIMIT, self.fill()).await.map_err(|_| ReadError::Disconnected)??;
        }
        timeout(REQUEST_LIMIT, self.read_request()).await.map_err(|_| ReadError::Disconnected)?
    }

    /// Writes raw bytes.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        timeout(WRITE_LIMIT, self.stream.write_all(bytes)).await.map_err(|_| io::ErrorKind::TimedOut)?
    }

    /// Pauses. Fails if the client disconnects.
    pub(crate) async fn pause(&mut self, length: Duration) -> io::Result<()> {
        if length.is_zero() { Ok(()) } else { self.pause_until(Instant::now() + length).await }
    }

    /// Pauses until a point in time. Fails if the client disconnects.
    pub(crate) async fn pause_until(&mut self, end: Instant) -> io::Result<()> {
        while let Ok(read) = timeout_at(end, self.fill()).await {
            read?;
            if self.buffer.len() > AHEAD_LIMIT_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    }

    /// Closes the sending side, so that the client sees the end of the stream instead of a reset.
    ///
    /// Reads and ignores further bytes for a moment: closing a socket with unread bytes would
    /// discard the answer that was just written.
    pub(crate) async fn close(mut self) {
        const LINGER: Duration = Duration::from_secs(2);
        const LINGER_LIMIT_BYTES: usize = 256 << 20;
        if self.stream.shutdown().await.is_err() {
            return;
        }
        let drain = async {
            let mut seen = 0;
            loop {
                self.buffer.clear();
                match self.fill().await {
                    Ok(()) if seen < LINGER_LIMIT_BYTES => seen += self.buffer.len(),
                    Ok(()) | Err(_) => break,
                }
            }
        };
        // A client that keeps sending is cut off.
        timeout(LINGER, drain).await.unwrap_or_default();
    }

    async fn read_request(&mut self) -> Result<Incoming, ReadError> {
        let head = self.read_head().await?;
        let keeps_alive = !head.is_old && !head.headers.has("connection", "close");
        if head.headers.has("expect", "100-continue") {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        if let Some(coding) = head.headers.get("content-encoding").filter(|coding| *coding != "identity") {
            return Err(ReadError::invalid(
                415,
                format!("a body with the content-encoding `{coding}` is not read"),
            ));
        }
        let body = if head.headers.has("transfer-encoding", "chunked") {
            self.read_chunked().await?
        } else {
            self.read_sized(&head.headers).await?
        };
        let Head { method, path, headers, .. } = head;
        Ok(Incoming { method, path, headers, body, keeps_alive })
    }

    async fn read_head(&mut self) -> Result<Head, ReadError> {
        let mut searched = 0;
        let end = loop {
            // The mark may span two reads.
            let from = usize::saturating_sub(searched, 3);
            let found = self.buffer[from..].windows(4).position(|window| window == b"\r\n\r\n");
            searched = found.map_or(self.buffer.len(), |at| from + at);
            if searched > HEAD_LIMIT_BYTES {
                let reason = format!("the request's head is larger than {HEAD_LIMIT_BYTES} bytes");
                return Err(ReadError::invalid(431, reason));
            }
            if found.is_some() {
                break searched;
            }
            self.fill().await?;
        };
        let head = parse_head(&self.buffer[..end]);
        self.buffer.drain(..end + 4);
        head
    }

    async fn read_sized(&mut self, headers: &Headers) -> Result<Vec<u8>, ReadError> {
        let Some(length) = headers.get("content-length") else { return Ok(Vec::new()) };
        let length: usize = length
            .parse()
            .map_err(|_| ReadError::invalid(400, format!("the content-length `{length}` is not a number")))?;
        self.take(length, 0).await
    }

    async fn read_chunked(&mut self) -> Result<Vec<u8>, ReadError> {
        let mut body = Vec::new();
        loop {
            let line = self.read_line().await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| {
                ReadError::invalid(400, format!("the chunk size `{size}` is not a hexadecimal number"))
            })?;
            if size == 0 {
                break;
            }
            body.extend(self.take(size, body.len()).await?);
            if !self.read_line().await?.is_empty() {
                return Err(ReadError::invalid(400, "a chunk is longer than its size"));
            }
        }
        let mut trailer_bytes = 0;
        loop {
            let line = self.read_line().await?;
            trailer_bytes += line.len();
            if line.is_empty() {
                return Ok(body);
            }
            if trailer_bytes > HEAD_LIMIT_BYTES {
                return Err(ReadError::invalid(431, "the request's trailers are too large"));
            }
        }
    }

    async fn read_line(&mut self) -> Result<String, ReadError> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.drain(..end + 2);
                return Ok(line);
            }
            if self.buffer.len() > CHUNK_LINE_LIMIT_BYTES {
                return Err(ReadError::invalid(400, "a line of the chunked body does not end"));
            }
            self.fill().await?;
        }
    }

    /// Takes the next bytes of a body, `before` of which were read already.
    async fn take(&mut self, length: usize, before: usize) -> Result<Vec<u8>, ReadError> {
        if length > BODY_LIMIT_BYTES.saturating_sub(before) {
            let reason = format!("the request's body is larger than {BODY_LIMIT_BYTES} bytes");
            return Err(ReadError::invalid(413, reason));
        }
        while self.buffer.len() < length {
            self.fill().await?;
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// Reads available bytes. The end of the stream is an error.
    async fn fill(&mut self) -> io::Result<()> {
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Head, ReadError> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| ReadError::invalid(400, "the request's head is not UTF-8"))?;
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(ReadError::invalid(400, format!("the request line `{first}` is not three words")));
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err(ReadError::invalid(505, format!("the version `{version}` is not spoken")));
    }
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (!name.is_empty() && !name.contains(' ')).then(|| (name.to_owned(), value.trim().to_owned()))
    };
    let mut headers = Vec::new();
    for line in lines {
        headers
            .push(header(line).ok_or_else(|| ReadError::invalid(400, format!("`{line}` is not a header")))?);
    }
    Ok(Head {
        method: method.to_owned(),
        path: target.split('?').next().unwrap_or_default().to_owned(),
        headers: Headers::from_iter(headers),
        is_old: version == "HTTP/1.0",
    })
}

/// Returns the head of an answer, including the empty line.
pub(crate) fn head(status: u16, headers: &[(String, String)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        // A line break in a script's header would start another header.
        let value = value.replace(['\r', '\n'], " ");
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_invalid(head: &str, expected: u16) {
        match parse_head(head.as_bytes()) {
            Err(ReadError::Invalid { status, .. }) => assert_eq!(status, expected),
            Err(ReadError::Disconnected) | Ok(_) => panic!("`{head}` was accepted"),
        }
    }

    #[test]
    fn a_head_is_parsed_strictly() {
        let head =
            parse_head(b"POST /v1/messages?beta=1 HTTP/1.1\r\nHost: x\r\nX-Api-Key:  k ").ok().unwrap();
        assert_eq!((head.method.as_str(), head.path.as_str()), ("POST", "/v1/messages"));
        assert_eq!(head.headers.get("x-api-key"), Some("k"));
        check_invalid("PRI * HTTP/2.0", 505);
        check_invalid("POST /", 400);
        check_invalid("POST / HTTP/1.1\r\nnonsense", 400);
        check_invalid("POST / HTTP/1.1\r\na b: c", 400);
    }

    #[test]
    fn debug_output_hides_credentials() {
        let headers = Headers::from_iter([("Authorization", "Bearer sk-secret"), ("host", "x")]);
        assert_eq!(headers.get("authorization"), Some("Bearer sk-secret"));
        let text = format!("{headers:?}");
        assert!(!text.contains("secret") && text.contains("<redacted>") && text.contains('x'), "{text}");
    }
}
