//! Terminals over WebSockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use codewright_testkit::Script;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Stage, ask, get, is_running, post, program, serve, wait_until};

/// A message of a WebSocket.
#[derive(Debug, PartialEq, Eq)]
enum Frame {
    Text(String),
    Binary(Vec<u8>),
    Close(u16),
}

/// A WebSocket client like that of a browser.
pub(crate) struct Socket(TcpStream);

/// Sends a request with this head. Returns the status and the body.
fn request(url: &str, head: &str, body: &str) -> Result<(u16, Value)> {
    let address = url.strip_prefix("http://").context("not an http address")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let length = body.len();
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    write!(
        stream,
        "{head}\r\nHost: {address}\r\nConnection: close\r\n{kind}Content-Length: {length}\r\n\r\n{body}"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no answer")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, serde_json::from_str(body).unwrap_or(Value::Null)))
}

impl Socket {
    /// Connects, or returns the status of the rejection.
    pub(crate) fn open(url: &str, path: &str, more: &str) -> Result<Result<Self, u16>> {
        let address = url.strip_prefix("http://").context("not an http address")?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{more}\r\n"
        )?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head)?;
        let status: u16 = head.split(' ').nth(1).context("no status")?.parse()?;
        if status != 101 {
            return Ok(Err(status));
        }
        ensure!(head.to_lowercase().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
        Ok(Ok(Self(stream)))
    }

    fn next(&mut self) -> Result<Frame> {
        loop {
            let mut head = [0; 2];
            self.0.read_exact(&mut head)?;
            let length = match head[1] {
                126 => {
                    let mut long = [0; 2];
                    self.0.read_exact(&mut long)?;
                    usize::from(u16::from_be_bytes(long))
                }
                127 => bail!("a frame this long is not expected"),
                short => usize::from(short),
            };
            let mut payload = vec![0; length];
            self.0.read_exact(&mut payload)?;
            match head[0] {
                0x81 => return Ok(Frame::Text(String::from_utf8(payload)?)),
                0x82 => return Ok(Frame::Binary(payload)),
                0x88 => return Ok(Frame::Close(u16::from_be_bytes([payload[0], payload[1]]))),
                0x89 | 0x8a => {}
                other => bail!("an unexpected frame {other:#x}"),
            }
        }
    }

    /// Reads texts until one of them, or all together, end with a text.
    pub(crate) fn text_until(&mut self, end: &str) -> Result<String> {
        let mut text = String::new();
        while !text.ends_with(end) {
            match self.next()? {
                Frame::Text(more) => text.push_str(&more),
                other => bail!("{other:?} after {text:?}"),
            }
        }
        Ok(text)
    }

    /// The position at which the connection starts.
    pub(crate) fn place(&mut self) -> Result<u64> {
        let Frame::Binary(bytes) = self.next()? else { bail!("no place") };
        ensure!(bytes[0] == 0, "{bytes:?}");
        let place: Value = serde_json::from_slice(&bytes[1..])?;
        place["cursor"].as_u64().context("no cursor")
    }

    pub(crate) fn send(&mut self, text: &str) -> Result<()> {
        let mask = [1, 2, 3, 4];
        let mut frame = vec![0x81, 0x80 | u8::try_from(text.len())?];
        frame.extend(mask);
        frame.extend(text.bytes().zip(mask.into_iter().cycle()).map(|(byte, mask)| byte ^ mask));
        Ok(self.0.write_all(&frame)?)
    }
}

fn open(url: &str, line: &str) -> Result<String> {
    let input =
        json!({"command": "/bin/bash", "args": ["--norc", "-c", line], "title": "T", "env": {"WORD": "b"}});
    let (status, made) = post(url, "/pty", &input)?;
    ensure!(status == 200 && made["status"] == "running" && made["title"] == "T", "{made}");
    Ok(made["id"].as_str().context("no id")?.to_owned())
}

#[test]
fn a_terminal_accepts_input_is_resized_and_reconnected() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let (server, url) = stage.serve()?;
    let mut events = ask(&url, "/event")?;
    let mut heard = String::new();
    let mut hear = |heard: &mut String, wanted: &str| {
        let mut buffer = [0; 4096];
        while !heard.contains(wanted) {
            let count = events.read(&mut buffer)?;
            ensure!(count > 0, "{heard}");
            *heard += &String::from_utf8_lossy(&buffer[..count]);
        }
        Ok(())
    };
    // A client that is not connected yet receives nothing.
    hear(&mut heard, "server.connected")?;
    assert_eq!(get(&url, "/pty")?, json!([]));
    ensure!(
        get(&url, "/pty/shells")?.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "sh"))
    );
    let id = open(
        &url,
        "trap 'stty size' WINCH; echo $WORD; tty -s && echo tty; while read line; do echo got $line; done; exit 3",
    )?;
    assert_eq!(get(&url, "/pty")?[0]["id"], json!(id));
    let path = format!("/pty/{id}/connect");
    let mut first = Socket::open(&url, &path, "")?.ok().context("refused")?;
    // Earlier output is sent in one message, or partly after the position.
    let mut text = String::new();
    while !text.ends_with("b\r\ntty\r\n") {
        if let Frame::Text(more) = first.next()? {
            text += &more;
        }
    }
    let mut second = Socket::open(&url, &format!("{path}?cursor=3"), "")?.ok().context("refused")?;
    assert_eq!(second.text_until("tty\r\n")?, "tty\r\n");
    assert_eq!(second.place()?, 8);
    let mut third = Socket::open(&url, &format!("{path}?cursor=-1"), "")?.ok().context("refused")?;
    assert_eq!(third.place()?, 8);
    first.send("one\n")?;
    assert_eq!(third.text_until("got one\r\n")?, "one\r\ngot one\r\n");
    second.text_until("got one\r\n")?;
    let head = format!("PUT /pty/{id} HTTP/1.1");
    let (status, changed) = request(&url, &head, r#"{"title":"N","size":{"rows":10,"cols":20}}"#)?;
    assert_eq!((status, &changed["title"]), (200, &json!("N")), "{changed}");
    // The shell runs its trap when it has read a line.
    third.send("two\n")?;
    ensure!(third.text_until("got two\r\n")?.contains("10 20"));
    third.send("\u{4}")?;
    assert_eq!(third.next()?, Frame::Close(1000));
    let gone = |id: &str| request(&url, &format!("GET /pty/{id} HTTP/1.1"), "");
    wait_until("the end of the terminal", || gone(&id).is_ok_and(|(status, _)| status == 404))?;
    let (_, error) = gone(&id)?;
    let message = format!("PTY session not found: {id}");
    assert_eq!(error, json!({"_tag": "PtyNotFoundError", "ptyID": id, "message": message}));
    let taken = open(&url, "cat")?;
    assert_eq!(request(&url, &format!("DELETE /pty/{taken} HTTP/1.1"), "")?.0, 200);
    hear(&mut heard, "pty.deleted")?;
    let at = |name: &str| heard.find(name).with_context(|| format!("no {name} in {heard}"));
    assert!(at("pty.created")? < at("pty.updated")? && at("pty.updated")? < at("pty.exited")?, "{heard}");
    let deleted = &heard[at("pty.deleted")?..];
    assert!(
        deleted.contains(taken.as_str()) && !deleted.contains(id.as_str()),
        "one that ended is not deleted: {heard}"
    );
    assert!(heard.contains(r#""exitCode":3"#), "{heard}");
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

#[test]
fn a_terminal_needs_access_and_ends_its_processes() -> Result<()> {
    let own = |n: u32| format!("8{n}.{}", std::process::id());
    let stage = Stage::plain(Script::new())?;
    let (server, url) = stage.serve()?;
    let id = open(&url, &format!("trap '' TERM HUP; setsid sleep {} & sleep {}", own(1), own(1)))?;
    let path = format!("/pty/{id}/connect");
    let refused = |path: &str, more: &str| Socket::open(&url, path, more).map(|opened| opened.err());
    assert_eq!(refused(&path, "Origin: http://evil.example\r\n")?, Some(403));
    assert_eq!(refused(&format!("{path}?ticket=bad"), "")?, Some(403));
    assert_eq!(refused("/pty/pty_nope/connect", "")?, Some(404));
    assert_eq!(refused(&format!("{path}?cursor=x"), "")?, Some(400));
    let head = format!("POST /pty/{id}/connect-token HTTP/1.1");
    assert_eq!(request(&url, &head, "")?.0, 403);
    let (status, ticket) = request(&url, &format!("{head}\r\nx-opencode-ticket: 1"), "")?;
    assert_eq!((status, &ticket["expires_in"]), (200, &json!(60)), "{ticket}");
    let with = format!("{path}?ticket={}", ticket["ticket"].as_str().context("no ticket")?);
    assert_eq!(refused(&with, "")?, None);
    assert_eq!(refused(&with, "")?, Some(403), "a ticket is good once");
    wait_until("the program", || is_running(&own(1)))?;
    let (status, removed) = request(&url, &format!("DELETE /pty/{id} HTTP/1.1"), "")?;
    assert_eq!((status, removed), (200, json!(true)));
    wait_until("the end of the program", || !is_running(&own(1)))?;
    // A killed server ends its terminals.
    open(&url, &format!("trap '' TERM HUP; setsid sleep {} & sleep {}", own(2), own(2)))?;
    wait_until("the program", || is_running(&own(2)))?;
    drop(server);
    let begun = Instant::now();
    wait_until("the end of the program", || !is_running(&own(2)))?;
    assert!(begun.elapsed() < Duration::from_secs(20));
    Ok(())
}

#[test]
fn a_terminal_gets_no_secrets_and_a_ticket_replaces_the_password() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let run =
        stage.program(["serve"]).env("OPENCODE_SERVER_PASSWORD", "hunter2").env("OPENAI_API_KEY", "hunter2");
    let (server, url) = serve(run)?;
    let sign = "Authorization: Basic b3BlbmNvZGU6aHVudGVyMg==";
    let line = r#"{"command":"/bin/bash","args":["--norc","-c","env; read x"]}"#;
    let (status, made) = request(&url, &format!("POST /pty HTTP/1.1\r\n{sign}"), line)?;
    ensure!(status == 200, "{made}");
    let path = format!("/pty/{}/connect", made["id"].as_str().context("no id")?);
    assert_eq!(Socket::open(&url, &path, "")?.err(), Some(401));
    let token = format!("POST {path}-token HTTP/1.1\r\n{sign}\r\nx-opencode-ticket: 1");
    let (_, ticket) = request(&url, &token, "")?;
    let with = format!("{path}?ticket={}", ticket["ticket"].as_str().context("no ticket")?);
    let mut socket = Socket::open(&url, &with, "")?.ok().context("refused")?;
    let mut text = String::new();
    while !text.contains("_=/usr/bin/env\r\n") {
        if let Frame::Text(more) = socket.next()? {
            text += &more;
        }
    }
    ensure!(text.contains("TERM=xterm-256color") && !text.contains("hunter2"), "{text}");
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

#[test]
fn a_terminal_is_the_same_under_both_names() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let run = program(&stage.project, ["serve", "--port", "0"]).env("OPENCODE_SERVER_PASSWORD", "secret");
    let (_server, url) = serve(run)?;
    // `opencode:secret`.
    let auth = "\r\nAuthorization: Basic b3BlbmNvZGU6c2VjcmV0";
    let (status, made) = request(&url, &format!("POST /api/pty HTTP/1.1{auth}"), r#"{"command": "cat"}"#)?;
    ensure!(status == 200 && made["data"]["command"] == "cat", "{status} {made}");
    let id = made["data"]["id"].as_str().context("no id")?;
    let (_, listed) = request(&url, &format!("GET /pty HTTP/1.1{auth}"), "")?;
    ensure!(listed[0]["id"] == id, "{listed}");
    let path = format!("/api/pty/{id}");
    let head = format!("POST {path}/connect-token HTTP/1.1{auth}\r\nx-opencode-ticket: 1");
    let (_, ticket) = request(&url, &head, "")?;
    let ticket = ticket["data"]["ticket"].as_str().context("no ticket")?;
    // The ticket replaces the password once, on this route only.
    let mut socket = Socket::open(&url, &format!("{path}/connect?ticket={ticket}"), "")?
        .map_err(|status| anyhow::anyhow!("refused with {status}"))?;
    ensure!(matches!(socket.next()?, Frame::Binary(_)), "the place comes first");
    ensure!(Socket::open(&url, &format!("{path}/connect?ticket={ticket}"), "")?.is_err(), "used twice");
    ensure!(Socket::open(&url, &format!("{path}/connect"), "")?.err() == Some(401), "without a ticket");
    ensure!(request(&url, &format!("GET /api/pty?ticket={ticket} HTTP/1.1"), "")?.0 == 401, "another route");
    ensure!(request(&url, &format!("DELETE {path} HTTP/1.1{auth}"), "")?.0 == 204, "it ends");
    ensure!(request(&url, &format!("GET {path} HTTP/1.1{auth}"), "")?.0 == 404, "it is gone");
    Ok(())
}
