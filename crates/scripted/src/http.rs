//! As much of HTTP/1.1 as model clients speak, without the manners.
//!
//! Requests are read strictly and within bounds. Answers are bytes: whoever
//! writes one decides whether its length is true and whether it ever ends.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// The longest request line and headers together.
const HEAD_LIMIT_BYTES: usize = 64 << 10;
/// The largest request body.
const BODY_LIMIT_BYTES: usize = 64 << 20;
/// The longest line that announces a chunk.
const CHUNK_LINE_LIMIT_BYTES: usize = 1 << 10;
/// How much is read ahead at least when more is wanted.
const READ_BYTES: usize = 16 << 10;
/// How much a peer may send while it is being answered.
const AHEAD_LIMIT_BYTES: usize = 1 << 20;
/// How long a connection may wait for its next request.
const IDLE_LIMIT: Duration = Duration::from_secs(120);
/// How long a request that has begun may take to arrive.
const REQUEST_LIMIT: Duration = Duration::from_secs(120);
/// How long a peer may leave what is written to it unread.
const WRITE_LIMIT: Duration = Duration::from_secs(600);

/// Headers whose values are not shown.
const SECRET: [&str; 6] =
    ["authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"];

/// The headers of a request, in order, by lower-case name.
///
/// The values of credentials can be read but are never shown by `Debug`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The value of the first header of this name, in whatever case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Every name and value, in the order sent.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether a comma-separated header names this token.
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
        let shown = |(name, value)| (name, if SECRET.contains(&name) { "<redacted>" } else { value });
        f.debug_map().entries(self.iter().map(shown)).finish()
    }
}

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) method: String,
    /// The path without its query.
    pub(crate) path: String,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
    pub(crate) keeps_alive: bool,
}

/// Why no request could be read.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The peer is gone, or was silent for too long.
    Left,
    /// The peer sent something that is refused; the connection cannot go on.
    Refused { status: u16, reason: String },
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Self::Left
    }
}

impl Ended {
    fn refused(status: u16, reason: impl Into<String>) -> Self {
        Self::Refused { status, reason: reason.into() }
    }
}

struct Head {
    method: String,
    path: String,
    headers: Headers,
    is_old: bool,
}

/// One client's connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Read, but not yet used.
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Reads the next request.
    pub(crate) async fn read(&mut self) -> Result<Incoming, Ended> {
        if self.buffer.is_empty() {
            timeout(IDLE_LIMIT, self.fill()).await.map_err(|_| Ended::Left)??;
        }
        timeout(REQUEST_LIMIT, self.read_begun()).await.map_err(|_| Ended::Left)?
    }

    /// Writes bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        timeout(WRITE_LIMIT, self.stream.write_all(bytes)).await.map_err(|_| io::ErrorKind::TimedOut)?
    }

    /// Pauses for a while; the peer's leaving ends that with an error.
    pub(crate) async fn pause(&mut self, length: Duration) -> io::Result<()> {
        if length.is_zero() { Ok(()) } else { self.pause_until(Instant::now() + length).await }
    }

    /// Pauses until a moment; the peer's leaving ends that with an error.
    pub(crate) async fn pause_until(&mut self, end: Instant) -> io::Result<()> {
        while let Ok(read) = timeout_at(end, self.fill()).await {
            read?;
            if self.buffer.len() > AHEAD_LIMIT_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    }

    /// Ends the sending side, so that the peer sees the end and not a reset.
    ///
    /// What the peer still sends is read for a moment: closing a socket with
    /// unread bytes would take back the answer that was just written.
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
        // A peer that neither leaves nor stops sending is simply cut.
        timeout(LINGER, drain).await.unwrap_or_default();
    }

    async fn read_begun(&mut self) -> Result<Incoming, Ended> {
        let head = self.read_head().await?;
        let keeps_alive = !head.is_old && !head.headers.has("connection", "close");
        if head.headers.has("expect", "100-continue") {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        if let Some(coding) = head.headers.get("content-encoding").filter(|coding| *coding != "identity") {
            return Err(Ended::refused(
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

    async fn read_head(&mut self) -> Result<Head, Ended> {
        let mut searched = 0;
        let end = loop {
            // The mark may straddle two reads.
            let from = usize::saturating_sub(searched, 3);
            let found = self.buffer[from..].windows(4).position(|window| window == b"\r\n\r\n");
            searched = found.map_or(self.buffer.len(), |at| from + at);
            if searched > HEAD_LIMIT_BYTES {
                let reason = format!("the request's head is larger than {HEAD_LIMIT_BYTES} bytes");
                return Err(Ended::refused(431, reason));
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

    async fn read_sized(&mut self, headers: &Headers) -> Result<Vec<u8>, Ended> {
        let Some(length) = headers.get("content-length") else { return Ok(Vec::new()) };
        let length: usize = length
            .parse()
            .map_err(|_| Ended::refused(400, format!("the content-length `{length}` is not a number")))?;
        self.take(length, 0).await
    }

    async fn read_chunked(&mut self) -> Result<Vec<u8>, Ended> {
        let mut body = Vec::new();
        loop {
            let line = self.read_line().await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| {
                Ended::refused(400, format!("the chunk size `{size}` is not a hexadecimal number"))
            })?;
            if size == 0 {
                break;
            }
            body.extend(self.take(size, body.len()).await?);
            if !self.read_line().await?.is_empty() {
                return Err(Ended::refused(400, "a chunk is longer than its size"));
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
                return Err(Ended::refused(431, "the request's trailers are too large"));
            }
        }
    }

    async fn read_line(&mut self) -> Result<String, Ended> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.drain(..end + 2);
                return Ok(line);
            }
            if self.buffer.len() > CHUNK_LINE_LIMIT_BYTES {
                return Err(Ended::refused(400, "a line of the chunked body does not end"));
            }
            self.fill().await?;
        }
    }

    /// Takes the next bytes of a body of which some were taken before.
    async fn take(&mut self, length: usize, before: usize) -> Result<Vec<u8>, Ended> {
        if length > BODY_LIMIT_BYTES.saturating_sub(before) {
            let reason = format!("the request's body is larger than {BODY_LIMIT_BYTES} bytes");
            return Err(Ended::refused(413, reason));
        }
        while self.buffer.len() < length {
            self.fill().await?;
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// Reads what there is; the end of the stream is an error.
    async fn fill(&mut self) -> io::Result<()> {
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Head, Ended> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| Ended::refused(400, "the request's head is not UTF-8"))?;
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Ended::refused(400, format!("the request line `{first}` is not three words")));
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err(Ended::refused(505, format!("the version `{version}` is not spoken")));
    }
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (!name.is_empty() && !name.contains(' ')).then(|| (name.to_owned(), value.trim().to_owned()))
    };
    let mut headers = Vec::new();
    for line in lines {
        headers.push(header(line).ok_or_else(|| Ended::refused(400, format!("`{line}` is not a header")))?);
    }
    Ok(Head {
        method: method.to_owned(),
        path: target.split('?').next().unwrap_or_default().to_owned(),
        headers: Headers::from_iter(headers),
        is_old: version == "HTTP/1.0",
    })
}

/// The first lines of an answer, up to the empty one.
pub(crate) fn head(status: u16, headers: &[(String, String)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        // A line break in a script's header would end it and begin another.
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
    fn check_refused(head: &str, expected: u16) {
        match parse_head(head.as_bytes()) {
            Err(Ended::Refused { status, .. }) => assert_eq!(status, expected),
            Err(Ended::Left) | Ok(_) => panic!("`{head}` was taken"),
        }
    }

    #[test]
    fn a_head_is_read_strictly() {
        let head =
            parse_head(b"POST /v1/messages?beta=1 HTTP/1.1\r\nHost: x\r\nX-Api-Key:  k ").ok().unwrap();
        assert_eq!((head.method.as_str(), head.path.as_str()), ("POST", "/v1/messages"));
        assert_eq!(head.headers.get("x-api-key"), Some("k"));
        check_refused("PRI * HTTP/2.0", 505);
        check_refused("POST /", 400);
        check_refused("POST / HTTP/1.1\r\nnonsense", 400);
        check_refused("POST / HTTP/1.1\r\na b: c", 400);
    }

    #[test]
    fn credentials_are_kept_but_not_shown() {
        let headers = Headers::from_iter([("Authorization", "Bearer sk-secret"), ("host", "x")]);
        assert_eq!(headers.get("authorization"), Some("Bearer sk-secret"));
        let shown = format!("{headers:?}");
        assert!(!shown.contains("secret") && shown.contains("<redacted>") && shown.contains('x'), "{shown}");
    }
}
