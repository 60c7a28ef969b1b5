//! A server that a repository names: it keeps what it is sent and refuses everything.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;

/// How long one request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of all requests that are kept.
const MAX_BYTES: usize = 8 << 20;
/// An answer that no client repeats its request after.
const ANSWER: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: 31\r\n\
                      Connection: close\r\n\r\n{\"error\":{\"message\":\"refused\"}}";

/// A listener on a free port of the loopback address; dropping it ends its thread.
pub(super) struct Listener {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (kept, over) = (Arc::clone(&heard), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                take(stream, &kept);
            }
        });
        Ok(Self { address, heard, is_over, thread: Some(thread) })
    }

    /// Where it listens, as `http://127.0.0.1:PORT`.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything it was sent; a contact without a byte shows as a line of its own.
    pub(super) fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // The connection ends the wait of the thread; if it fails, the thread has ended already.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
    }
}

/// Reads one request and refuses it.
fn take(mut stream: TcpStream, kept: &Mutex<Vec<u8>>) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap_or_default();
    let mut request = Vec::new();
    let mut buffer = [0; 16 << 10];
    while !is_whole(&request) {
        let Ok(count @ 1..) = stream.read(&mut buffer) else { break };
        request.extend_from_slice(&buffer[..count]);
    }
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let room = MAX_BYTES.saturating_sub(kept.len());
    kept.extend_from_slice(b"--- contact\n");
    kept.extend_from_slice(&request[..request.len().min(room)]);
    drop(kept);
    // A client that has left needs no answer.
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
