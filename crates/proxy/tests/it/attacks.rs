//! Clients and servers that try to reach an unjudged host, or to use up the proxy.

use std::time::Duration;

use codewright_proxy::{Deadlines, MAX_CONNECTIONS};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::{HELLO, SOON, Stage, head, rest};

#[tokio::test]
async fn a_second_host_in_a_tunnel_is_only_data() {
    let stage = Stage::new(HELLO);
    let mut client = stage.client().await;
    client.write_all(b"CONNECT ok.test:80 HTTP/1.1\r\n\r\n").await.unwrap();
    head(&mut client).await;
    client.write_all(b"CONNECT ok.other:443 HTTP/1.1\r\n\r\n").await.unwrap();
    client.shutdown().await.unwrap();
    rest(&mut client).await;
    assert_eq!(stage.judged(), ["ok.test:80"]);
    assert_eq!(stage.received()[0].1, "CONNECT ok.other:443 HTTP/1.1\r\n\r\n");
}

#[tokio::test]
async fn requests_that_name_no_host_plainly_are_rejected() {
    let stage = Stage::new(HELLO);
    for request in [
        "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET //ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET https://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET ftp://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET http:///x HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET http://user@ok.test/ HTTP/1.1\r\n\r\n",
        "GET http://ok.test@evil.test/ HTTP/1.1\r\n\r\n",
        "GET http://ok.test:0/ HTTP/1.1\r\n\r\n",
        "GET http://ok.test:99999/ HTTP/1.1\r\n\r\n",
        "GET http://ok%2etest/ HTTP/1.1\r\n\r\n",
        "GET http://ok.test\\@evil.test/ HTTP/1.1\r\n\r\n",
        "GET http://ok.test\0/ HTTP/1.1\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "CONNECT ok.test HTTP/1.1\r\n\r\n",
        "CONNECT ok.test:0 HTTP/1.1\r\n\r\n",
        "CONNECT http://ok.test:443/ HTTP/1.1\r\n\r\n",
        "CONNECT user@ok.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT / HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
        "CONNECT ok.test:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        "\x04\x01\0\x50\x01\x01\x01\x01\0",
        "\x16\x03\x01\0\x05",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let answer = stage.send(request.as_bytes()).await;
        let is_rejected = answer.is_empty() || answer.starts_with("HTTP/1.1 400");
        let is_userless = request.starts_with("CONNECT http://ok.test:443");
        assert!(is_rejected || is_userless, "{request:?}: {answer}");
    }
    assert!(stage.judged().iter().all(|target| target == "ok.test:443"), "{:?}", stage.judged());
}

#[tokio::test]
async fn a_hidden_request_does_not_leave_as_a_request() {
    for request in [
        // Both lengths.
        "POST http://ok.test/ HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
        // Two lengths.
        "POST http://ok.test/ HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
        // Encodings that only one side may understand.
        "POST http://ok.test/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
        "POST http://ok.test/ HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
        "POST http://ok.test/ HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
        "POST http://ok.test/ HTTP/1.1\r\nX: a\r\n\tTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
        "POST http://ok.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
        // A length that the connection header would remove.
        "POST http://ok.test/ HTTP/1.1\r\nContent-Length: 30\r\nConnection: content-length\r\n\r\nGET /evil HTTP/1.1\r\nHost: b\r\n\r\n",
        "GET http://ok.test/ HTTP/1.1\r\nX: a\rGET /evil HTTP/1.1\r\n\r\n",
        "GET http://ok.test/\x0bGET HTTP/1.1\r\n\r\n",
    ] {
        let stage = Stage::new(HELLO);
        stage.send(request.as_bytes()).await;
        for (name, sent) in stage.received() {
            assert_eq!(name, "ok.test:80");
            let (head, body) = sent.split_once("\r\n\r\n").unwrap_or((&sent, ""));
            assert!(!head.contains("/evil"), "{request:?} sent {sent:?}");
            // A body is framed as one.
            let is_framed = head.contains("ontent-Length: 30") || head.to_lowercase().contains("chunked");
            assert!(body.is_empty() || is_framed, "{request:?} sent {sent:?}");
        }
    }
}

#[tokio::test]
async fn a_server_cannot_confuse_the_client_about_the_end_of_a_response() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nHTTP/1.1 200 evil\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 evil\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nHTTP/1.1 200 evil\r\n\r\n",
    ] {
        let stage = Stage::new(Some(answer));
        let got =
            stage.send(b"GET http://ok.test/ HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
        assert!(!got.contains("evil"), "{got}");
        assert!(got.matches("HTTP/1.1 ").count() == 1, "{got}");
    }
}

#[tokio::test]
async fn socks_accepts_nothing_but_connect() {
    let stage = Stage::new(None);
    let long = [b'a'; 255];
    for (command, name, reply) in [
        ([2, 0, 3], &b"ok.test"[..], 7),
        ([3, 0, 3], b"ok.test", 7),
        ([0, 0, 3], b"ok.test", 7),
        ([1, 1, 3], b"ok.test", 1),
        ([1, 0, 3], &long, 1),
        ([1, 0, 3], b"", 1),
        ([1, 0, 3], b"ok.test\0evil", 1),
        ([1, 0, 3], b"ok\xff.test", 1),
        ([1, 0, 3], b"user@ok.test", 1),
        ([1, 0, 9], b"ok.test", 8),
    ] {
        let answer = stage.socks(&command, name, 443).await;
        assert_eq!(answer[..4], [5, 0, 5, reply], "{command:?} {name:?}");
    }
    assert_eq!(stage.socks(&[1, 0, 3], b"ok.test", 0).await[..4], [5, 0, 5, 1]);
    assert_eq!(stage.bytes(b"\x05\x01\x02").await, [5, 0xff]);
    assert_eq!(stage.bytes(b"\x05\x00").await, [5, 0xff]);
    assert_eq!(stage.bytes(b"\x05\x01\x00\x04\x01\0\x01").await[..2], [5, 0]);
    assert_eq!(stage.judged(), [""; 0]);
}

#[tokio::test]
async fn a_name_of_255_bytes_with_labels_is_rejected() {
    let stage = Stage::new(None);
    let name = "a.".repeat(127) + "a";
    assert_eq!(name.len(), 255);
    assert_eq!(stage.socks(&[1, 0, 3], name.as_bytes(), 443).await[..4], [5, 0, 5, 1]);
    assert_eq!(stage.judged(), [""; 0]);
}

#[tokio::test]
async fn slow_heads_and_idle_connections_are_closed() {
    let deadlines = Deadlines { head: Duration::from_millis(200), idle: Duration::from_millis(600) };
    let stage = Stage::with(None, deadlines);
    for start in [&b""[..], b"G", b"GET http://ok.test/ HTTP/1.1\r\nX: ", b"\x05", b"\x05\x01\x00\x05\x01"] {
        let mut client = stage.client().await;
        client.write_all(start).await.unwrap();
        let answer = rest(&mut client).await;
        assert!(answer.is_empty() || answer == "\x05\0", "{start:?}: {answer:?}");
    }
    let mut client = stage.client().await;
    client.write_all(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n").await.unwrap();
    head(&mut client).await;
    assert_eq!(rest(&mut client).await, "", "an idle tunnel is closed");
    assert_eq!(stage.judged(), ["ok.test:443"]);
}

#[tokio::test]
async fn a_head_that_is_too_long_is_rejected() {
    let stage = Stage::new(HELLO);
    let long = "a".repeat(200 * 1024);
    let fields = "X: y\r\n".repeat(500);
    for request in [
        format!("GET http://ok.test/{long} HTTP/1.1\r\n\r\n"),
        format!("GET http://ok.test/ HTTP/1.1\r\nX: {long}\r\n\r\n"),
        format!("GET http://ok.test/ HTTP/1.1\r\n{fields}\r\n"),
        long.clone(),
    ] {
        let answer = stage.send(request.as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(stage.judged(), [""; 0]);
}

#[tokio::test]
async fn thousands_of_connections_do_not_use_up_the_proxy() {
    let stage = Stage::new(None);
    let mut kept = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        kept.push(stage.client().await);
    }
    // Each of these is closed at once, because the kept ones use up the limit.
    for _ in 0..10_000 - MAX_CONNECTIONS {
        let mut client = stage.client().await;
        assert_eq!(rest(&mut client).await, "");
    }
    drop(kept);
    let until = tokio::time::Instant::now() + SOON;
    loop {
        let mut client = stage.client().await;
        drop(client.write_all(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n").await);
        let mut first = [0; 12];
        if client.read_exact(&mut first).await.is_ok() {
            assert_eq!(&first, b"HTTP/1.1 200");
            break;
        }
        assert!(tokio::time::Instant::now() < until, "the proxy does not recover");
    }
}

#[tokio::test]
async fn a_body_is_not_collected_in_memory() {
    let stage = Stage::new(None);
    let mut client = stage.client().await;
    client.write_all(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n").await.unwrap();
    head(&mut client).await;
    // The host sends everything back, and nobody reads it.
    let chunk = vec![b'x'; 64 * 1024];
    let mut sent = 0;
    while sent < 64 * 1024 * 1024 {
        let write = client.write(&chunk);
        match tokio::time::timeout(Duration::from_millis(500), write).await {
            Ok(count) => sent += count.unwrap(),
            Err(_) => break,
        }
    }
    assert!(sent < 8 * 1024 * 1024, "{sent} bytes were accepted without a reader");
    let mut client: UnixStream = stage.client().await;
    client.write_all(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n").await.unwrap();
    head(&mut client).await;
}
