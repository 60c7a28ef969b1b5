//! Invalid requests on the socket, many clients, and socket files.

use codewright_client::Client;
use codewright_testkit::Script;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::bench::{Bench, PATIENCE, quick};

/// Sends bytes and reads until the server closes the connection.
async fn exchange(url: &str, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap();
    // The server may close the connection before everything is written.
    socket.write_all(bytes).await.ok();
    let mut answer = Vec::new();
    timeout(PATIENCE, socket.read_to_end(&mut answer)).await.unwrap().ok();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn invalid_requests_are_rejected_and_the_server_continues() {
    let bench = Bench::new(Script::new()).await;
    let listening = bench.listen(quick()).await;
    // A request that is never finished must not delay others.
    let mut dawdler = TcpStream::connect(listening.url.strip_prefix("http://").unwrap()).await.unwrap();
    dawdler.write_all(b"GET /path HTTP/1.1\r\nHost: loc").await.unwrap();

    let many = (0..200).map(|at| format!("x-{at}: y\r\n")).collect::<String>();
    let many = format!("GET /path HTTP/1.1\r\nHost: localhost\r\n{many}\r\n");
    assert!(exchange(&listening.url, many.as_bytes()).await.starts_with("HTTP/1.1 431 "));
    let long = format!("GET /path HTTP/1.1\r\nHost: localhost\r\nx: {}\r\n\r\n", "y".repeat(200_000));
    let answer = exchange(&listening.url, long.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert!(exchange(&listening.url, b"\x16\x03\x01\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    let absolute = b"GET http://evil.example/path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert!(exchange(&listening.url, absolute).await.starts_with("HTTP/1.1 403 "));
    let bare = b"GET /path HTTP/1.0\r\n\r\n";
    assert!(exchange(&listening.url, bare).await.starts_with("HTTP/1.0 403 "));

    let client = Client::http(&listening.url, None, None).unwrap();
    assert!(client.health().await.unwrap().healthy);
    drop(dawdler);
}

#[tokio::test]
async fn many_clients_are_served_at_once() {
    let bench = Bench::new(Script::new()).await;
    let listening = bench.listen(quick()).await;
    let mut streams = Vec::new();
    for _ in 0..100 {
        let client = Client::http(&listening.url, None, None).unwrap();
        streams.push((client.events().await.unwrap(), client));
    }
    let session = streams[0].1.create_session(&codewright_proto::SessionInput::default()).await.unwrap();
    for (events, _) in &mut streams {
        crate::bench::until(events, |notice| notice.session_id() == Some(&session.id)).await;
    }
}

#[tokio::test]
async fn only_the_owner_may_use_a_socket_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let bench = Bench::new(Script::new()).await;
    let path = bench.project.path("server.sock");
    let start = || {
        let cancel = tokio_util::sync::CancellationToken::new();
        let mut task = tokio::task::JoinSet::new();
        let listener = codewright_server::Listener::owned(&path).unwrap();
        task.spawn(codewright_server::serve(listener, bench.router(quick()), cancel.clone()));
        (cancel, task)
    };
    let (cancel, mut task) = start();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut socket = tokio::net::UnixStream::connect(&path).await.unwrap();
    let request = b"GET /global/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"healthy\":true"), "{answer}");
    let second = codewright_server::Listener::owned(&path).err().unwrap();
    assert_eq!(second.kind(), std::io::ErrorKind::AddrInUse);
    cancel.cancel();
    timeout(PATIENCE, task.join_next()).await.unwrap();
    // The socket of a stopped server is replaced, but another file is not.
    let (cancel, _task) = start();
    cancel.cancel();
    let file = bench.project.write("file", "x").unwrap();
    assert_eq!(
        codewright_server::Listener::owned(&file).err().unwrap().kind(),
        std::io::ErrorKind::AlreadyExists
    );
    assert_eq!(bench.project.read("file").unwrap(), "x");
    let left = std::fs::read_dir(bench.project.directory()).unwrap().flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with(".codewright")));
}
