//! The proxy through its socket, against servers in memory.

#![allow(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod attacks;
mod random;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use codewright_proxy::{Connecting, Deadlines, Outside, Proxy, Refusal, RefusalKind, Shared, Stream, Target};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::UnixStream;
use tokio_util::task::TaskTracker;

/// Longer than any test needs on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// A permitted host and what it received, in the order of the connections.
type Received = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Hosts in memory. Names that begin with `ok` are permitted.
#[derive(Clone)]
struct Hosts {
    /// Every target that was judged.
    judged: Arc<Mutex<Vec<String>>>,
    received: Received,
    /// The answer of each host after the first bytes. Without one the bytes are sent back.
    answer: Option<&'static str>,
    tasks: TaskTracker,
}

impl Outside for Hosts {
    fn connect(&self, target: Target) -> Connecting<'_> {
        Box::pin(async move {
            let name = target.to_string();
            self.judged.lock().unwrap().push(name.clone());
            let refuse = |kind| Err(Refusal::new(kind, format!("no connection to {name}")));
            match target.host().as_str() {
                "timeout.test" => return refuse(RefusalKind::TimedOut),
                "missing.test" => return refuse(RefusalKind::Unreachable),
                "closed.test" => return refuse(RefusalKind::Closed),
                host if !host.starts_with("ok") => return refuse(RefusalKind::Forbidden),
                _ => {}
            }
            let (near, far) = duplex(64 * 1024);
            let at = {
                let mut received = self.received.lock().unwrap();
                received.push((name, Vec::new()));
                received.len() - 1
            };
            self.tasks.spawn(host(far, at, Arc::clone(&self.received), self.answer));
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

async fn host(mut stream: DuplexStream, at: usize, received: Received, answer: Option<&'static str>) {
    let mut chunk = vec![0; 16 * 1024];
    let mut has_answered = false;
    while let Ok(count) = stream.read(&mut chunk).await {
        if count == 0 {
            break;
        }
        received.lock().unwrap()[at].1.extend(&chunk[..count]);
        match answer {
            Some(answer) if !has_answered => drop(stream.write_all(answer.as_bytes()).await),
            Some(_) => {}
            None => drop(stream.write_all(&chunk[..count]).await),
        }
        has_answered = true;
    }
    // The client may be gone.
    drop(stream.write_all(if answer.is_none() { b"[end]" } else { b"" }).await);
}

struct Stage {
    hosts: Hosts,
    proxy: Proxy,
    _directory: tempfile::TempDir,
}

impl Stage {
    fn new(answer: Option<&'static str>) -> Self {
        Self::with(answer, Deadlines::default())
    }

    fn with(answer: Option<&'static str>, deadlines: Deadlines) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let tasks = TaskTracker::new();
        let hosts = Hosts { judged: Arc::default(), received: Arc::default(), answer, tasks: tasks.clone() };
        let shared = Shared::new(tasks, deadlines);
        let socket = directory.path().join("s");
        let proxy = Proxy::start(socket, Arc::new(hosts.clone()), &shared).unwrap();
        Self { hosts, proxy, _directory: directory }
    }

    fn socket(&self) -> PathBuf {
        self.proxy.socket().to_owned()
    }

    async fn client(&self) -> UnixStream {
        UnixStream::connect(self.proxy.socket()).await.unwrap()
    }

    /// Sends bytes, ends the sending side and returns everything that comes back.
    async fn send(&self, bytes: &[u8]) -> String {
        let mut client = self.client().await;
        // The proxy may have closed the connection before it read everything.
        drop(client.write_all(bytes).await);
        drop(client.shutdown().await);
        rest(&mut client).await
    }

    fn judged(&self) -> Vec<String> {
        self.hosts.judged.lock().unwrap().clone()
    }

    fn received(&self) -> Vec<(String, String)> {
        let received = self.hosts.received.lock().unwrap();
        received.iter().map(|(name, bytes)| (name.clone(), String::from_utf8_lossy(bytes).into())).collect()
    }
}

async fn rest(client: &mut UnixStream) -> String {
    let mut text = Vec::new();
    // A reset is an end, too.
    drop(tokio::time::timeout(SOON, client.read_to_end(&mut text)).await.expect("an end"));
    String::from_utf8_lossy(&text).into_owned()
}

/// Reads until the end of a head.
async fn head(client: &mut UnixStream) -> String {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        let byte = tokio::time::timeout(SOON, client.read_u8()).await.expect("in time").expect("a head");
        text.push(char::from(byte));
    }
    text
}

const HELLO: Option<&str> =
    Some("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\r\nhello");

#[tokio::test]
async fn a_tunnel_carries_bytes_and_half_closes() {
    let stage = Stage::new(None);
    let mut client = stage.client().await;
    client.write_all(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\nfirst").await.unwrap();
    assert!(head(&mut client).await.starts_with("HTTP/1.1 200"));
    let mut bytes = [0; 5];
    client.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"first");
    client.write_all(b" second").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await, " second[end]");
    assert_eq!(stage.judged(), ["ok.test:443"]);
}

#[tokio::test]
async fn a_request_is_sent_on_without_headers_of_the_connection() {
    let stage = Stage::new(HELLO);
    let answer = stage
        .send(
            b"GET http://OK.test:80/a?b=c HTTP/1.1\r\nHost: evil.test\r\nX-Own: 1\r\nProxy-Authorization: secret\r\n\
              Proxy-Connection: keep-alive\r\nConnection: X-Own, host, keep-alive\r\nTE: trailers\r\nX-Kept: 2\r\n\r\n",
        )
        .await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("hello"), "{answer}");
    assert!(!answer.contains("X-Hop"), "{answer}");
    let (name, sent) = stage.received().remove(0);
    assert_eq!(name, "ok.test:80");
    let mut lines: Vec<&str> = sent.trim_end().split("\r\n").collect();
    lines[1..].sort_unstable();
    assert_eq!(lines, ["GET /a?b=c HTTP/1.1", "Host: ok.test", "X-Kept: 2"]);
}

#[tokio::test]
async fn a_body_is_sent_on_and_every_request_is_judged() {
    let stage = Stage::new(HELLO);
    let answer = stage
        .send(
            b"POST http://ok.one:8080/ HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody\
              GET http://evil.test/ HTTP/1.1\r\nHost: ok.one\r\n\r\n\
              POST http://ok.two/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        )
        .await;
    assert_eq!(stage.judged(), ["ok.one:8080", "evil.test:80", "ok.two:80"]);
    assert!(answer.contains("HTTP/1.1 403 Forbidden") && answer.contains("no connection to evil.test:80\n"));
    let received = stage.received();
    assert_eq!(received.len(), 2, "{received:?}");
    assert!(received[0].1.ends_with("\r\n\r\nbody") && received[0].1.contains("ost: ok.one:8080\r\n"));
    assert!(received[1].1.ends_with("3\r\nabc\r\n0\r\n\r\n"), "{received:?}");
}

#[tokio::test]
async fn refusals_have_their_own_status() {
    let stage = Stage::new(None);
    for (host, status, reply) in
        [("evil.test", 403, 2), ("missing.test", 502, 4), ("closed.test", 502, 5), ("timeout.test", 504, 6)]
    {
        let answer = stage.send(format!("CONNECT {host}:443 HTTP/1.1\r\n\r\n").as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.ends_with(&format!("no connection to {host}:443\n")), "{answer}");
        let answer = stage.socks(&[1, 0, 3], host.as_bytes(), 443).await;
        assert_eq!(answer, [5, 0, 5, reply, 0, 1, 0, 0, 0, 0, 0, 0]);
    }
}

impl Stage {
    /// Sends a request of SOCKS with a name. Returns all that comes back.
    async fn socks(&self, command: &[u8; 3], name: &[u8], port: u16) -> Vec<u8> {
        let mut request = vec![5, 1, 0, 5];
        request.extend(command);
        request.push(u8::try_from(name.len()).unwrap());
        request.extend(name);
        request.extend(port.to_be_bytes());
        self.bytes(&request).await
    }

    async fn bytes(&self, request: &[u8]) -> Vec<u8> {
        let mut client = self.client().await;
        drop(client.write_all(request).await);
        drop(client.shutdown().await);
        let mut answer = Vec::new();
        drop(tokio::time::timeout(SOON, client.read_to_end(&mut answer)).await.expect("an end"));
        answer
    }
}

#[tokio::test]
async fn socks_connects_to_names_and_addresses() {
    let stage = Stage::new(None);
    let mut client = stage.client().await;
    client.write_all(b"\x05\x02\x02\x00\x05\x01\x00\x03\x07ok.TEST\x01\xbbhello").await.unwrap();
    client.shutdown().await.unwrap();
    let answer = rest(&mut client).await;
    assert!(answer.starts_with("\x05\0\x05\0\0\x01") && answer.ends_with("hello[end]"), "{answer:?}");
    let mut mapped = b"\x05\x01\0\x05\x01\0\x04".to_vec();
    mapped.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1, 0, 80]);
    assert_eq!(stage.bytes(&mapped).await[..4], [5, 0, 5, 2]);
    assert_eq!(stage.bytes(b"\x05\x01\0\x05\x01\0\x01\x7f\0\0\x01\0\x50").await[..4], [5, 0, 5, 2]);
    assert_eq!(stage.judged(), ["ok.test:443", "127.0.0.1:80", "127.0.0.1:80"]);
}

#[tokio::test]
async fn the_end_of_the_proxy_ends_its_connections_and_removes_its_socket() {
    let stage = Stage::new(None);
    let mut client = stage.client().await;
    client.write_all(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n").await.unwrap();
    head(&mut client).await;
    let socket = stage.socket();
    assert!(socket.exists());
    drop(stage.proxy);
    assert_eq!(rest(&mut client).await, "");
    assert!(!socket.exists());
    let tasks = stage.hosts.tasks.clone();
    tasks.close();
    tokio::time::timeout(SOON, tasks.wait()).await.expect("all tasks end");
}
