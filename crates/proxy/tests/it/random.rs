//! Random and damaged requests: nothing leaves without a judgement, and the proxy goes on.

use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{HELLO, SOON, Stage};

const REQUESTS: [&[u8]; 7] = [
    b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n",
    b"GET http://ok.test:8080/a HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
    b"POST http://ok.test/ HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody",
    b"POST http://evil.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    b"\x05\x01\x00\x05\x01\x00\x03\x07ok.test\x01\xbb",
    b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50",
    b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n",
];

const PIECES: [&[u8]; 9] =
    [b"\r\n", b" ", b"@", b"\0", b"Host: evil.test\r\n", b"http://", b":", b"evil.test", b"\r\n\r\n"];

/// A change of one request: at a position, some bytes are replaced by others.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..4),
        proptest::sample::select(PIECES.as_slice()).prop_map(<[u8]>::to_vec),
    ];
    let change = (any::<proptest::sample::Index>(), 0_usize..6, piece);
    let requests = proptest::collection::vec(proptest::sample::select(REQUESTS.as_slice()), 1..4);
    (requests, proptest::collection::vec(change, 0..4)).prop_map(|(requests, changes)| {
        let mut bytes = requests.concat();
        for (at, removed, piece) in changes {
            let at = at.index(bytes.len() + 1).min(bytes.len());
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, piece);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_leaves_without_a_judgement(
        bytes in prop_oneof![damaged(), proptest::collection::vec(any::<u8>(), 0..200)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (received, judged, is_alive) = runtime.block_on(async {
            let stage = Stage::new(HELLO);
            stage.send(&bytes).await;
            let received = stage.received();
            let mut client = stage.client().await;
            client.write_all(REQUESTS[0]).await.unwrap();
            let mut first = [0; 12];
            let read = tokio::time::timeout(SOON, client.read_exact(&mut first)).await;
            (received, stage.judged(), read.is_ok_and(|read| read.is_ok()))
        });
        let has_tunnel = bytes.starts_with(b"\x05") || bytes.windows(7).any(|window| window == b"CONNECT");
        prop_assert!(is_alive, "the proxy does not answer any more");
        for (name, sent) in received {
            prop_assert!(judged.contains(&name) && name.starts_with("ok"));
            // Without a tunnel it is one request in the proxy's own words, for the judged host.
            if !has_tunnel {
                let host = name.strip_suffix(":80").unwrap_or(&name);
                let head = sent.split("\r\n\r\n").next().unwrap_or_default();
                let hosts: Vec<&str> = head.lines().filter(|line| line.to_lowercase().starts_with("host:")).collect();
                prop_assert!(hosts.len() == 1 && hosts[0][5..].trim() == host, "{sent}");
                prop_assert!(head.split(' ').nth(1).is_some_and(|path| path.starts_with('/')), "{sent}");
            }
        }
    }
}
