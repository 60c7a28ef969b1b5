//! A server of the attacker, which keeps all requests and answers with 401.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;

/// The longest time a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(2);
/// The number of bytes to keep of all requests.
const MAX_BYTES: usize = 8 << 20;
/// An answer after which no client retries.
const ANSWER: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: 31\r\n\
                      Connection: close\r\n\r\n{\"error\":{\"message\":\"refused\"}}";

/// A listener on a free port of the loopback address; dropping it ends its thread.
pub(super) struct Listener {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (requests, over) = (Arc::clone(&received), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                refuse(stream, &requests);
            }
        });
        Ok(Self { address, received, is_over, thread: Some(thread) })
    }

    /// Returns the address, `http://127.0.0.1:PORT`.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns everything it received. Each connection adds a line, even without a request.
    pub(super) fn received(&self) -> String {
        String::from_utf8_lossy(&self.received.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // The connection wakes the thread. If it fails, the thread has ended already.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
    }
}

/// Reads one request and refuses it.
fn refuse(mut stream: TcpStream, requests: &Mutex<Vec<u8>>) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap_or_default();
    let mut request = Vec::new();
    let mut buffer = [0; 16 << 10];
    while !is_whole(&request) {
        let Ok(count @ 1..) = stream.read(&mut buffer) else { break };
        request.extend_from_slice(&buffer[..count]);
    }
    let mut requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
    let room = MAX_BYTES.saturating_sub(requests.len());
    requests.extend_from_slice(b"--- contact\n");
    requests.extend_from_slice(&request[..request.len().min(room)]);
    drop(requests);
    // The client may have closed the connection.
    stream.write_all(ANSWER.as_bytes()).unwrap_or_default();
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return request.len() > MAX_BYTES };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    request.len() >= head.len() + 4 + length.unwrap_or(0).min(MAX_BYTES)
}
