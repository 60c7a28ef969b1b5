//! A minimal HTTP client that uses one connection for each request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The read timeout, longer than any case waits for an answer.
const DEADLINE: Duration = Duration::from_secs(90);
/// The largest answer, far above that of any case.
const LIMIT_BYTES: u64 = 64 << 20;

/// The host and port of a server, such as `127.0.0.1:4096`.
#[derive(Debug, Clone)]
pub(super) struct Address(pub(super) String);

impl Address {
    /// Sends a request and returns the status and the JSON body, or null if the body is empty.
    pub(super) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let mut reader = self.open(method, path, body)?;
        let status = head(&mut reader)?;
        let mut text = String::new();
        reader.take(LIMIT_BYTES).read_to_string(&mut text)?;
        let value = if text.trim().is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).with_context(|| format!("{method} {path} answered {text:.200}"))?
        };
        Ok((status, value))
    }

    /// Opens the event stream.
    pub(super) fn events(&self) -> Result<impl Iterator<Item = Value> + use<>> {
        let mut reader = self.open("GET", "/event", None)?;
        let status = head(&mut reader)?;
        if status != 200 {
            bail!("GET /event answered {status}");
        }
        let lines = reader.lines().map_while(Result::ok);
        Ok(lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok()))
    }

    fn open(&self, method: &str, path: &str, body: Option<&Value>) -> Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(&self.0)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        let body = body.map(Value::to_string);
        let length = body.as_ref().map_or(0, String::len);
        // HTTP/1.0 has no chunked encoding: the answer ends when the connection is closed.
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{}",
            self.0,
            body.unwrap_or_default(),
        )?;
        Ok(BufReader::new(stream))
    }
}

fn head(reader: &mut impl BufRead) -> Result<u16> {
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.with_context(|| format!("no HTTP answer: {first:?}"))?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(status);
        }
    }
}
