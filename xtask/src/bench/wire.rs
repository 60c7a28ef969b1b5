//! A minimal HTTP client that uses little CPU: kept-alive connections and event streams.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The deadline of an answer.
const DEADLINE: Duration = Duration::from_secs(300);
/// The largest body.
const BODY_LIMIT_BYTES: u64 = 256 << 20;

/// A kept-alive connection.
pub(crate) struct Connection {
    address: String,
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn new(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_nodelay(true)?;
        Ok(Self { address: address.to_owned(), stream: BufReader::new(stream) })
    }

    /// Sends a request and returns the JSON of the answer.
    pub(crate) fn request(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let bytes = self.bytes(method, path, body)?;
        Ok(serde_json::from_slice(bytes.trim_ascii())?)
    }

    /// Sends a large JSON body, and returns the status of the answer.
    ///
    /// The server may answer before it has read the body, and close the connection.
    pub(super) fn send_large(mut self, path: &str, body: &[u8]) -> Result<String> {
        let fields = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
        let head_of_request = format!("POST {path} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n\r\n", self.address);
        self.stream.get_mut().write_all(head_of_request.as_bytes())?;
        // A failure means that the server has closed the connection; its answer is still readable.
        self.stream.get_mut().write_all(body).ok();
        Ok(head(&mut self.stream)?.status)
    }

    /// Sends a request and returns the body of the answer.
    pub(crate) fn bytes(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Vec<u8>> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{kind}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let head = head(&mut self.stream)?;
        let mut answer = Vec::new();
        if head.is_chunked {
            Chunks::new(&mut self.stream).take(BODY_LIMIT_BYTES).read_to_end(&mut answer)?;
        } else {
            (&mut self.stream).take(head.length).read_to_end(&mut answer)?;
        }
        let is_good = head.status.starts_with('2');
        ensure!(is_good, "{method} {path}: {}: {}", head.status, String::from_utf8_lossy(&answer));
        Ok(answer)
    }
}

/// An event stream.
pub(super) struct EventStream(BufReader<Chunks<BufReader<TcpStream>>>);

impl EventStream {
    /// Opens the stream and waits for `server.connected`.
    pub(super) fn open(address: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        write!(stream, "GET /event HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
        // A thousand of these are open at once, so their buffers are small.
        let mut stream = BufReader::with_capacity(1024, stream);
        let head = head(&mut stream)?;
        ensure!(head.status.starts_with("200") && head.is_chunked, "/event: {}", head.status);
        let mut stream = Self(BufReader::with_capacity(1024, Chunks::new(stream)));
        stream.until("server.connected")?;
        Ok(stream)
    }

    /// Reads the next line. Returns false at the end of the stream.
    pub(super) fn line(&mut self, line: &mut String) -> Result<bool> {
        line.clear();
        Ok(self.0.read_line(line)? > 0)
    }

    /// Reads until a line contains `text`.
    pub(super) fn until(&mut self, text: &str) -> Result<()> {
        let mut line = String::new();
        while self.line(&mut line)? {
            if line.contains(text) {
                return Ok(());
            }
        }
        anyhow::bail!("the stream ended before `{text}`")
    }
}

struct Head {
    /// The status code and its reason.
    status: String,
    length: u64,
    is_chunked: bool,
}

fn head(stream: &mut BufReader<TcpStream>) -> Result<Head> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.trim_end().split_once(' ').context("no answer")?.1.to_owned();
    let mut head = Head { status, length: 0, is_chunked: false };
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let field = line.trim_end().to_ascii_lowercase();
        match field.split_once(':') {
            Some(("content-length", length)) => head.length = length.trim().parse()?,
            Some(("transfer-encoding", coding)) => head.is_chunked = coding.contains("chunked"),
            Some(_) => {}
            None => return Ok(head),
        }
    }
}

/// A reader of a chunked body.
struct Chunks<R> {
    from: R,
    left: u64,
    ended: bool,
}

impl<R> Chunks<R> {
    fn new(from: R) -> Self {
        Self { from, left: 0, ended: false }
    }
}

impl<R: std::io::BufRead> Read for Chunks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && !self.ended {
            let mut line = String::new();
            self.from.read_line(&mut line)?;
            self.left = u64::from_str_radix(line.trim(), 16)
                .map_err(|_| std::io::Error::other(format!("`{}` is not a chunk length", line.trim())))?;
            if self.left == 0 {
                self.ended = true;
                self.from.read_line(&mut line)?;
            }
        }
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        let count = self.from.read(&mut buffer[..most])?;
        self.left -= count as u64;
        if self.left == 0 {
            self.from.read_line(&mut String::new())?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined() {
        let mut text = String::new();
        let mut chunks = Chunks::new(&b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"[..]);
        chunks.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc0123456789");
    }
}
