//! A small server on a real socket that plays prepared answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

/// Answers one connection after its request was read.
pub(crate) type Answer = Box<dyn FnOnce(&mut TcpStream) + Send>;

/// Answers one connection per entry, in order, and records the requests.
pub(crate) struct Server {
    address: SocketAddr,
    thread: JoinHandle<Vec<String>>,
}

impl Server {
    pub(crate) fn new(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let mut requests = Vec::new();
            for answer in answers {
                let (mut socket, _) = listener.accept().unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                requests.push(read_request(&mut socket));
                answer(&mut socket);
            }
            requests
        });
        Self { address, thread }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the requests after all connections were answered.
    pub(crate) async fn requests(self) -> Vec<String> {
        // The runtime must keep running, because it closes the connections.
        tokio::task::spawn_blocking(|| self.thread.join().unwrap()).await.unwrap()
    }
}

/// Sends bytes and closes the connection.
pub(crate) fn says(bytes: impl Into<Vec<u8>>) -> Answer {
    let bytes = bytes.into();
    Box::new(move |socket| write(socket, &bytes))
}

/// Sends bytes and then nothing until the client disconnects.
pub(crate) fn stalls_after(bytes: impl Into<Vec<u8>>) -> Answer {
    let bytes = bytes.into();
    Box::new(move |socket| {
        write(socket, &bytes);
        // The kind of disconnect does not matter.
        drop(socket.read(&mut [0; 1]));
    })
}

/// Sends bytes and resets the connection.
pub(crate) fn resets_after(bytes: impl Into<Vec<u8>>) -> Answer {
    let bytes = bytes.into();
    Box::new(move |socket| {
        write(socket, &bytes);
        // The head announced more bytes, so closing the connection aborts the answer.
        socket.shutdown(std::net::Shutdown::Both).unwrap();
    })
}

/// Returns a complete answer with its length.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// Returns the head of a streamed answer that ends with the connection.
pub(crate) fn stream_head() -> String {
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_owned()
}

/// Returns the events of a chat server for these deltas.
pub(crate) fn chat(deltas: &[&str]) -> String {
    deltas.iter().map(|delta| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n")).collect()
}

pub(crate) const CHAT_END: &str =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn write(socket: &mut TcpStream, bytes: &[u8]) {
    socket.write_all(bytes).unwrap();
    socket.flush().unwrap();
}

fn read_request(socket: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_lowercase().strip_prefix("content-length:").map(|n| n.trim().parse().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return text.into_owned();
            }
        }
        match socket.read(&mut piece).unwrap() {
            0 => return String::from_utf8_lossy(&request).into_owned(),
            read => request.extend_from_slice(&piece[..read]),
        }
    }
}
