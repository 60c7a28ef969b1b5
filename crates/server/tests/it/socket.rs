//! What arrives on the socket and is no decent request.

use codewright_client::Client;
use codewright_testkit::Script;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::bench::{Bench, PATIENCE, quick};

/// Sends bytes and reads until the server closes the connection.
async fn exchange(url: &str, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap();
    // A server that has seen enough closes before all is written.
    socket.write_all(bytes).await.ok();
    let mut answer = Vec::new();
    timeout(PATIENCE, socket.read_to_end(&mut answer)).await.unwrap().ok();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn indecent_requests_are_refused_and_the_server_goes_on() {
    let bench = Bench::new(Script::new()).await;
    let listening = bench.listen(quick()).await;
    // Begun and never finished; nobody else waits for it.
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
