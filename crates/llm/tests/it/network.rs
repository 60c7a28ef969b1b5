//! Tests of proxies and certificates on real sockets.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use codewright_llm::{Client, Error, Message, Model, ModelEvent, Network, Protocol, Request, UserContent};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::server::{CHAT_END, chat, response, stream_head};

const LONG: Duration = Duration::from_secs(30);
const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/authority.pem");
const AUTHORITY_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls");

fn answer() -> String {
    format!("{}{}{CHAT_END}", stream_head(), chat(&["{\"content\":\"Hello.\"}"]))
}

/// Reads one request and answers it.
fn serve(mut socket: impl Read + Write) -> String {
    let (mut request, mut piece) = (String::new(), [0; 4096]);
    // The bodies in these tests end like this and contain it nowhere else.
    while !request.ends_with("}}") {
        match socket.read(&mut piece) {
            Ok(read) if read > 0 => request.push_str(&String::from_utf8_lossy(&piece[..read])),
            // A client that rejects the certificate disconnects here.
            _ => return request,
        }
    }
    socket.write_all(answer().as_bytes()).unwrap();
    socket.flush().unwrap();
    request
}

/// A server for `model.test` and this machine, with a certificate of the tests' authority.
fn secure_server() -> u16 {
    let chain = CertificateDer::pem_slice_iter(include_bytes!("tls/server.pem"));
    let chain = chain.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.unwrap();
            socket.set_read_timeout(Some(LONG)).unwrap();
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, socket);
            serve(&mut stream);
            stream.conn.send_close_notify();
            // The client may have disconnected already.
            drop(stream.flush());
        }
    });
    port
}

/// A proxy that connects all tunnels to a local `port` and answers plain requests itself.
fn proxy(port: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heads = Arc::clone(&asked);
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            socket.set_read_timeout(Some(LONG)).unwrap();
            let mut first = [0; 7];
            socket.peek(&mut first).unwrap();
            if &first != b"CONNECT" {
                heads.lock().unwrap().push(serve(&mut socket));
                continue;
            }
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            heads.lock().unwrap().push(String::from_utf8(head).unwrap());
            socket.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let ways = [(&socket, &server), (&server, &socket)];
            let ways = ways.map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()));
            for (mut from, mut to) in ways {
                thread::spawn(move || {
                    // Either side may disconnect at any time.
                    drop(std::io::copy(&mut from, &mut to));
                    drop(to.shutdown(Shutdown::Write));
                });
            }
        }
    });
    (own, asked)
}

async fn ask(base_url: &str, variables: &[(&str, &str)]) -> Result<String, Error> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let client = Client::with_network(Network { variables: variables.collect() }, "codewright/test").unwrap();
    let mut model = Model::new("test", "m", Protocol::OpenAiChat, base_url);
    model.timeouts.connect = LONG;
    let request =
        Request { messages: vec![Message::User(vec![UserContent::Text("hi".into())])], ..Request::default() };
    let mut stream = client.stream(&model, &request).await?;
    let mut said = String::new();
    while let Some(event) = stream.next().await {
        if let ModelEvent::TextDelta(text) = event? {
            said.push_str(&text);
        }
    }
    Ok(said)
}

#[tokio::test]
async fn a_private_authority_is_trusted_if_configured() {
    let base_url = format!("https://127.0.0.1:{}/v1", secure_server());
    for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        assert_eq!(ask(&base_url, &[(variable, AUTHORITY)]).await.unwrap(), "Hello.", "{variable}");
    }
    assert_eq!(ask(&base_url, &[("SSL_CERT_DIR", AUTHORITY_FOLDER)]).await.unwrap(), "Hello.");
    let error = ask(&base_url, &[]).await.unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.starts_with("could not make a secure connection to https://127.0.0.1:"), "{said}");
    assert!(said.contains("NODE_EXTRA_CA_CERTS"), "{said}");
    // The certificate is not valid for another name.
    let error = ask(&base_url.replace("127.0.0.1", "localhost"), &[("NODE_EXTRA_CA_CERTS", AUTHORITY)]).await;
    assert!(error.unwrap_err().to_string().starts_with("could not make a secure connection"));
}

#[tokio::test]
async fn a_secure_server_is_reached_through_a_tunnel() {
    let (port, asked) = proxy(secure_server());
    let way = format!("http://user:p%40ss@127.0.0.1:{port}");
    for variable in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        let variables = [(variable, way.as_str()), ("NODE_EXTRA_CA_CERTS", AUTHORITY)];
        assert_eq!(ask("https://model.test/v1", &variables).await.unwrap(), "Hello.", "{variable}");
        let head = asked.lock().unwrap().pop().unwrap();
        assert!(head.starts_with("CONNECT model.test:443 HTTP/1.1\r\n"), "{head}");
        let head = head.to_lowercase();
        // `user:p@ss`
        assert!(head.contains("proxy-authorization: basic dxnlcjpwqhnz\r\n"), "{head}");
    }
}

#[tokio::test]
async fn a_proxy_gets_the_whole_url_of_a_plain_server() {
    let (port, asked) = proxy(0);
    let way = format!("127.0.0.1:{port}");
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        assert_eq!(ask("http://model.test/v1", &[(variable, &way)]).await.unwrap(), "Hello.", "{variable}");
        let request = asked.lock().unwrap().pop().unwrap();
        assert!(request.starts_with("POST http://model.test/v1/chat/completions HTTP/1.1\r\n"), "{request}");
    }
    assert_eq!(asked.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn some_servers_are_reached_without_a_proxy() {
    let (port, asked) = proxy(0);
    let way = format!("http://127.0.0.1:{port}");
    // An address of this machine that is not exempt from proxies by default.
    let plain = || crate::server::Server::new(vec![crate::server::says(answer())]);
    let elsewhere = |server: &crate::server::Server| server.base_url().replace("127.0.0.1", "0.0.0.0");
    assert_eq!(ask(&elsewhere(&plain()), &[("HTTP_PROXY", way.as_str())]).await.unwrap(), "Hello.");
    assert_eq!(asked.lock().unwrap().drain(..).count(), 1);
    for without in ["0.0.0.0", "other.test, 0.0.0.0/8", "other.test;0.0.0.0", "0.0.0.0:*", "*"] {
        let variables = [("HTTP_PROXY", way.as_str()), ("NO_PROXY", without)];
        assert_eq!(ask(&elsewhere(&plain()), &variables).await.unwrap(), "Hello.", "{without}");
        assert_eq!(asked.lock().unwrap().len(), 0, "{without}");
    }
    // Local servers use no proxy.
    let server = crate::server::Server::new(vec![crate::server::says(answer())]);
    let variables = [("HTTP_PROXY", way.as_str()), ("ALL_PROXY", "nonsense://")];
    assert_eq!(ask(&server.base_url(), &variables).await.unwrap(), "Hello.");
    assert_eq!(asked.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn network_problems_are_named() {
    // This port is closed.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = format!("http://{gone}");
    for (url, variables, expected) in [
        ("https://model.test/v1", [("HTTPS_PROXY", "socks5://p")], "HTTPS_PROXY is not the URL of a proxy"),
        ("http://model.test/v1", [("http_proxy", "http://:x")], "http_proxy is not the URL of a proxy"),
        ("https://model.test/v1", [("SSL_CERT_FILE", "/no")], "SSL_CERT_FILE names `/no`, which cannot be"),
        ("https://model.test/v1", [("NODE_EXTRA_CA_CERTS", "/no")], "NODE_EXTRA_CA_CERTS names `/no`, which"),
        ("https://model.test/v1", [("HTTPS_PROXY", &gone)], &format!("HTTPS_PROXY names the proxy {gone}")),
    ] {
        let error = ask(url, &variables).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_refusing_proxy_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let way = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let read = socket.read(&mut [0; 4096]).unwrap();
        let head = response("407 Proxy Authentication Required", "connection: close\r\n", "");
        socket.write_all(head.as_bytes()).unwrap();
        read
    });
    let error = ask("https://model.test/v1", &[("HTTPS_PROXY", &way)]).await.unwrap_err().to_string();
    assert!(error.contains("proxy authorization required"), "{error}");
    assert!(error.contains(&format!("HTTPS_PROXY names the proxy {way}")), "{error}");
    assert!(server.join().unwrap() > 0);
}
