//! An HTTP client that sends any bytes as an attacker would.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The deadline of an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The deadline of the beginning of an answer that may never arrive.
const GLANCE: Duration = Duration::from_millis(1500);
/// The deadline of a connection. A full queue of connections would block for minutes.
const CONNECTS: Duration = Duration::from_secs(3);
/// The number of bytes to read of an answer.
const MAX_BYTES: usize = 16 << 20;

/// The address of a server.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    /// The host and port.
    pub(super) address: String,
}

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// The status, or 0 if there was no answer in time.
    pub(super) status: u16,
    /// The unchanged head and body.
    pub(super) text: String,
}

impl Answer {
    /// Whether the server executed the request, or may have started to.
    pub(super) fn is_obeyed(&self) -> bool {
        self.status == 0 || (100..400).contains(&self.status)
    }

    /// Parses the body as JSON.
    pub(super) fn json(&self) -> Result<Value> {
        let (_, body) = self.text.split_once("\r\n\r\n").context("no answer")?;
        serde_json::from_str(body).with_context(|| format!("not JSON: {body:.200}"))
    }
}

impl Wire {
    pub(super) fn new(url: &str) -> Result<Self> {
        let address = url.trim().strip_prefix("http://").context("not an http address")?;
        Ok(Self { address: address.trim_end_matches('/').to_owned() })
    }

    /// Connects to the server.
    pub(super) fn connect(&self) -> Result<TcpStream> {
        Ok(TcpStream::connect_timeout(&self.address.parse()?, CONNECTS)?)
    }

    /// Sends a request with these headers besides `Host`.
    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer> {
        let host = [("Host", self.address.as_str())];
        self.send_raw(method, path, &[&host, headers].concat(), body)
    }

    /// Sends a request with only these headers and the length.
    pub(super) fn send_raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer> {
        let mut text = format!("{method} {path} HTTP/1.0\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        self.bytes(format!("{text}\r\n{body}").as_bytes(), PATIENCE)
    }

    /// Sends a request and reads only the beginning of the answer, which may be a stream or never arrive.
    pub(super) fn glance(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Answer> {
        let mut text = format!("{method} {path} HTTP/1.0\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let Ok(mut stream) = self.connect() else { return Ok(read_answer(b"")) };
        stream.set_read_timeout(Some(GLANCE))?;
        stream.write_all(format!("{text}\r\n").as_bytes())?;
        let mut buffer = vec![0; 16 << 10];
        let count = stream.read(&mut buffer).unwrap_or_default();
        Ok(read_answer(&buffer[..count]))
    }

    /// Sends bytes and reads the answer to its end or until the deadline.
    pub(super) fn bytes(&self, request: &[u8], patience: Duration) -> Result<Answer> {
        let Ok(mut stream) = self.connect() else { return Ok(read_answer(b"")) };
        stream.set_read_timeout(Some(patience))?;
        // A server may close the connection before it has read the whole request.
        stream.write_all(request).unwrap_or_default();
        let until = Instant::now() + patience;
        let mut answer = Vec::new();
        let mut buffer = [0; 16 << 10];
        while answer.len() < MAX_BYTES && Instant::now() < until {
            match stream.read(&mut buffer) {
                Ok(count @ 1..) => answer.extend_from_slice(&buffer[..count]),
                Ok(0) | Err(_) => break,
            }
        }
        Ok(read_answer(&answer))
    }

    /// Returns the JSON at a path.
    pub(super) fn get(&self, path: &str) -> Result<Value> {
        let answer = self.send("GET", path, &[], "")?;
        ensure!(answer.status == 200, "GET {path} answered {}: {:.300}", answer.status, answer.text);
        answer.json()
    }

    /// Sends a JSON body and returns the status and the JSON of the answer, or null if it has no JSON.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<(u16, Value)> {
        let kind = [("Content-Type", "application/json")];
        let answer = self.send("POST", path, &kind, &body.to_string())?;
        Ok((answer.status, answer.json().unwrap_or(Value::Null)))
    }

    /// Creates a session for a directory and returns its id.
    pub(super) fn session(&self, directory: &str) -> Result<String> {
        let (status, session) =
            self.post(&format!("/session?directory={directory}"), &serde_json::json!({}))?;
        let id = session["id"].as_str().with_context(|| format!("no session: {status} {session}"))?;
        Ok(id.to_owned())
    }
}

fn read_answer(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    Answer { status, text }
}
