//! Sends malformed requests and reads the answers.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::dice::Dice;
use super::routes::Route;

/// How long to read a stream, or to wait for an answer that may never arrive.
const GLANCE: Duration = Duration::from_millis(60);
/// The number of bytes to read of an answer.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// The pause between the pieces of a slow request.
const PAUSE: Duration = Duration::from_millis(30);

/// The result of a request.
pub(super) enum Answer {
    /// There is no answer, and none is required.
    None,
    /// There was no answer in time.
    Late,
    /// An answer. The body may be cut off.
    Received { status: u16, body: Vec<u8> },
}

/// The address of the server and the deadline of an answer.
pub(super) struct Wire {
    address: String,
    patience: Duration,
}

impl Wire {
    pub(super) fn new(address: String, patience: Duration) -> Self {
        Self { address, patience }
    }

    /// Returns the JSON at a path.
    pub(super) fn get(&self, path: &str) -> Result<Value> {
        let mut stream = self.connect().context("the server accepts no connection")?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address)?;
        stream.set_read_timeout(Some(self.patience))?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let at = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").context("no answer")?;
        Ok(serde_json::from_slice(&answer[at + 4..])?)
    }

    /// Fails unless the server reports within this time that it is healthy.
    pub(super) fn check_health(&self, within: Duration) -> Result<()> {
        let begun = Instant::now();
        let wire = Self { address: self.address.clone(), patience: within };
        let health = wire.get("/global/health")?;
        ensure!(health["healthy"] == true, "{health}");
        ensure!(begun.elapsed() < within, "it took {:?}", begun.elapsed());
        Ok(())
    }

    fn connect(&self) -> Option<TcpStream> {
        let address: SocketAddr = self.address.parse().ok()?;
        let stream = TcpStream::connect_timeout(&address, self.patience).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_write_timeout(Some(self.patience)).ok()?;
        Some(stream)
    }

    /// Sends a request in one of many ways. If the server closes the connection, no answer is required.
    pub(super) fn send(&self, dice: &mut Dice, route: &Route, path: &str, body: &[u8]) -> Answer {
        let Some(mut stream) = self.connect() else { return Answer::Late };
        if route.is_socket() && dice.one_in(2) {
            return self.terminal(&mut stream, dice, path);
        }
        let (head, is_whole) = self.head(dice, route, path, body.len());
        let whole = [head.as_slice(), body].concat();
        match dice.roll(40) {
            0 => cut_off(&mut stream, dice, &whole),
            1 => slowly(&mut stream, dice, &whole),
            2 => self.chunked(&mut stream, dice, &format!("{} {path}", route.method), body),
            3 => {
                let garbage = dice.bytes();
                // The server may accept, refuse or close it.
                stream.write_all(&garbage).ok();
                glance(&mut stream);
                Answer::None
            }
            4 => {
                stream.write_all(&whole).ok();
                // A client that reads a byte and disconnects.
                stream.set_read_timeout(Some(GLANCE)).ok();
                drop(stream.read(&mut [0]));
                thread::sleep(PAUSE);
                Answer::None
            }
            _ if !is_whole => {
                stream.write_all(&whole).ok();
                glance(&mut stream);
                Answer::None
            }
            5 => {
                let twice = [whole.as_slice(), whole.as_slice()].concat();
                stream.write_all(&twice).ok();
                self.answer(&mut stream, route)
            }
            _ => {
                // The server may answer before it has read the whole request.
                stream.write_all(&whole).ok();
                self.answer(&mut stream, route)
            }
        }
    }

    /// Returns the head of a request, which is mostly valid, and whether the body agrees with it.
    fn head(&self, dice: &mut Dice, route: &Route, path: &str, length: usize) -> (Vec<u8>, bool) {
        const KINDS: [&str; 8] = [
            "application/json",
            "application/json; charset=utf-8",
            "application/merge-patch+json",
            "text/plain",
            "multipart/form-data; boundary=x",
            "application/x-www-form-urlencoded",
            "\u{202e}",
            "",
        ];
        let kind = if dice.one_in(12) { *dice.pick(&KINDS) } else { KINDS[0] };
        let host = if dice.one_in(40) { dice.text().replace(['\r', '\n'], "") } else { self.address.clone() };
        let mut head =
            format!("{} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n", route.method).into_bytes();
        if length > 0 || dice.one_in(4) {
            head.extend(format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n").bytes());
        }
        let mut is_whole = true;
        if dice.one_in(15) {
            let number = dice.roll(10);
            is_whole = !matches!(number, 3 | 4);
            let header = match number {
                0 => format!("X-Long: {}\r\n", "a".repeat(dice.roll(90_000))).into_bytes(),
                1 => "X-Many: 1\r\n".repeat(dice.roll(200)).into_bytes(),
                2 => [b"X-Raw: ".as_slice(), &[0xff, 0xfe, 0x80], b"\r\n"].concat(),
                3 => format!("Content-Length: {}\r\n", u64::MAX).into_bytes(),
                4 => b"Transfer-Encoding: gzip, chunked\r\n".to_vec(),
                5 => b"Authorization: Basic ====\r\nCookie: \x01\r\n".to_vec(),
                6 => b"Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n".to_vec(),
                7 => format!("traceparent: {}\r\nx-request-id: \t\"\r\n", "0".repeat(dice.roll(99)))
                    .into_bytes(),
                8 => b"Expect: 100-continue\r\nUpgrade: h2c\r\n".to_vec(),
                _ => b"Last-Event-ID: -1\r\nRange: bytes=0-\r\nAccept-Encoding: br;q=x\r\n".to_vec(),
            };
            head.extend(header);
        }
        head.extend(b"\r\n");
        (head, is_whole)
    }

    /// Sends a body with an invalid or incomplete chunked encoding; `target` is the method and the path.
    fn chunked(&self, stream: &mut TcpStream, dice: &mut Dice, target: &str, body: &[u8]) -> Answer {
        const SIZES: [&str; 5] = ["ffffffffffffffffff", "-1", "zz", "0", "7fffffffffffffff"];
        let start = format!(
            "{target} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
            self.address
        );
        let size = if dice.one_in(2) { format!("{:x}", body.len()) } else { (*dice.pick(&SIZES)).to_owned() };
        let end = if dice.one_in(3) { "" } else { "\r\n0\r\n\r\n" };
        let whole = [start.as_bytes(), size.as_bytes(), b"\r\n", body, end.as_bytes()].concat();
        stream.write_all(&whole).ok();
        glance(stream);
        Answer::None
    }

    /// Opens a WebSocket and sends invalid frames.
    fn terminal(&self, stream: &mut TcpStream, dice: &mut Dice, path: &str) -> Answer {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).ok();
        let (answer, _) = read(stream, self.patience, |bytes| bytes.windows(4).any(|end| end == b"\r\n\r\n"));
        for _ in 0..dice.roll(6) {
            let frame = match dice.roll(7) {
                0 => vec![0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4],
                1 => vec![0xf1, 0x80, 0, 0, 0, 0],
                2 => vec![0x81, 0x02, b'h', b'i'],
                3 => vec![0x00, 0x81, 0, 0, 0, 0, 0xff],
                4 => vec![0x88, 0x81, 0, 0, 0, 0, 1],
                5 => [vec![0x81, 0x83, 0, 0, 0, 0], b"\x1b[A".to_vec()].concat(),
                _ => dice.bytes(),
            };
            if stream.write_all(&frame).is_err() {
                break;
            }
        }
        glance(stream);
        parse(&answer).unwrap_or(Answer::None)
    }

    fn answer(&self, stream: &mut TcpStream, route: &Route) -> Answer {
        let patience = if route.waits() { GLANCE } else { self.patience };
        let (bytes, is_over) = read(stream, patience, |_| false);
        if !is_over && !route.waits() {
            return Answer::Late;
        }
        // Without an answer the server closed the connection.
        parse(&bytes).unwrap_or(Answer::None)
    }
}

/// Sends a part of a request and disconnects.
fn cut_off(stream: &mut TcpStream, dice: &mut Dice, whole: &[u8]) -> Answer {
    let part = &whole[..dice.roll(whole.len())];
    stream.write_all(part).ok();
    if dice.one_in(2) {
        thread::sleep(PAUSE);
    }
    Answer::None
}

/// Sends a request in pieces.
fn slowly(stream: &mut TcpStream, dice: &mut Dice, whole: &[u8]) -> Answer {
    for piece in whole.chunks(whole.len() / (1 + dice.roll(6)) + 1) {
        if stream.write_all(piece).is_err() {
            break;
        }
        thread::sleep(PAUSE);
    }
    glance(stream);
    Answer::None
}

fn glance(stream: &mut TcpStream) {
    drop(read(stream, GLANCE, |_| false));
}

/// Reads until the end, the limit or `is_enough`, and returns true. Returns false if the time is over first.
fn read(stream: &mut TcpStream, patience: Duration, is_enough: impl Fn(&[u8]) -> bool) -> (Vec<u8>, bool) {
    let (end, mut bytes, mut piece) = (Instant::now() + patience, Vec::new(), vec![0; 16 * 1024]);
    while bytes.len() < MAX_ANSWER_BYTES && !is_enough(&bytes) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return (bytes, false);
        }
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                return (bytes, !is_late);
            }
        }
    }
    (bytes, true)
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let at = bytes.windows(4).position(|end| end == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..at]);
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some(Answer::Received { status, body: bytes[at + 4..].to_vec() })
}
