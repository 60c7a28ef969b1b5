//! Bodies in pieces, with a window that the receiver extends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::host::Body;
use crate::protocol::{CHUNK_BYTES, WINDOW_BYTES};

/// The bodies that are sent at the same time, for example event streams.
const MAX_BODIES: usize = 64;
/// The pieces of a received body that wait. The window limits their bytes, and a piece has at least one byte.
const MAX_PIECES: usize = 1024;

/// The answer of a plugin's own `fetch`.
pub struct FetchResponse {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
}

/// The bodies that are sent to the process.
#[derive(Default)]
pub(crate) struct Outgoing(Mutex<HashMap<String, Sending>>);

#[derive(Clone)]
struct Sending {
    window: Arc<Semaphore>,
    cancel: CancellationToken,
}

impl Outgoing {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Sending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request. Returns the token that its cancellation cancels, or `None` if too many are open.
    pub(crate) fn begin(&self, id: &str) -> Option<CancellationToken> {
        let mut open = self.lock();
        if open.len() >= MAX_BODIES || open.contains_key(id) {
            return None;
        }
        let sending =
            Sending { window: Arc::new(Semaphore::new(WINDOW_BYTES)), cancel: CancellationToken::new() };
        let cancel = sending.cancel.clone();
        open.insert(id.to_owned(), sending);
        Some(cancel)
    }

    pub(crate) fn end(&self, id: &str) {
        self.lock().remove(id);
    }

    /// The process has read these bytes.
    pub(crate) fn extend(&self, id: &str, bytes: usize) {
        if let Some(sending) = self.lock().get(id) {
            let room = WINDOW_BYTES.saturating_sub(sending.window.available_permits());
            sending.window.add_permits(bytes.min(room));
        }
    }

    pub(crate) fn cancel(&self, id: &str) {
        if let Some(sending) = self.lock().remove(id) {
            sending.cancel.cancel();
        }
    }

    /// Sends a body to its end. The process knows it by its id.
    pub(crate) async fn send(&self, connection: &Connection, id: &str, mut body: Body) {
        let Some(sending) = self.lock().get(id).cloned() else { return };
        let work = async {
            while let Some(piece) = body.next().await {
                let piece = piece?;
                for part in piece.chunks(CHUNK_BYTES) {
                    // At most a sixteenth of the window, so this number fits.
                    let needed = u32::try_from(part.len()).unwrap_or(u32::MAX);
                    let Ok(room) = sending.window.acquire_many(needed).await else { return Ok(()) };
                    room.forget();
                    connection.notify("http.data", &json!({ "id": id, "data": STANDARD.encode(part) }));
                }
            }
            Ok::<(), String>(())
        };
        let ended = tokio::select! {
            ended = sending.cancel.run_until_cancelled(work) => ended,
            () = connection.ended() => None,
        };
        self.end(id);
        match ended {
            None => {}
            Some(Ok(())) => connection.notify("http.end", &json!({ "id": id })),
            Some(Err(error)) => connection.notify("http.end", &json!({ "id": id, "error": error })),
        }
    }
}

/// The bodies that the process sends.
#[derive(Default)]
pub(crate) struct Incoming(Mutex<HashMap<String, mpsc::Sender<Result<Bytes, String>>>>);

impl Incoming {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<Result<Bytes, String>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the body of a request that is about to be sent.
    pub(crate) fn open(self: &Arc<Self>, id: &str, connection: &Connection) -> Body {
        let (sender, pieces) = mpsc::channel(MAX_PIECES);
        self.lock().insert(id.to_owned(), sender);
        let reading = Reading {
            id: id.to_owned(),
            pieces,
            connection: connection.clone(),
            bodies: self.clone(),
            taken: 0,
        };
        Box::pin(futures_util::stream::unfold(reading, |mut reading| async move {
            let piece = tokio::select! {
                piece = reading.pieces.recv() => piece?,
                () = reading.connection.ended() => return reading.rest(),
            };
            reading.took(piece.as_ref().map_or(0, Bytes::len));
            Some((piece, reading))
        }))
    }

    /// A piece has arrived. A body whose reader is behind the window is broken off.
    pub(crate) fn push(&self, id: &str, data: &str) {
        let mut open = self.lock();
        let Some(sender) = open.get(id) else { return };
        let piece = STANDARD.decode(data).map(Bytes::from).map_err(|error| error.to_string());
        if sender.try_send(piece).is_err() {
            open.remove(id);
        }
    }

    pub(crate) fn end(&self, id: &str, error: Option<String>) {
        let sender = self.lock().remove(id);
        if let (Some(sender), Some(error)) = (sender, error) {
            // A reader that is this far behind gets a body that is cut off.
            drop(sender.try_send(Err(error)));
        }
    }
}

/// The reader of a body. The process stops sending when it is dropped.
struct Reading {
    id: String,
    pieces: mpsc::Receiver<Result<Bytes, String>>,
    connection: Connection,
    bodies: Arc<Incoming>,
    taken: usize,
}

impl Reading {
    /// Tells the process that it may send more. Few large grants are cheaper than many small ones.
    fn took(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken >= WINDOW_BYTES / 4 {
            self.connection.notify("fetch.credit", &json!({ "id": self.id, "bytes": self.taken }));
            self.taken = 0;
        }
    }

    /// What has arrived before the process ended, and then an error.
    fn rest(mut self) -> Option<(Result<Bytes, String>, Self)> {
        match self.pieces.try_recv() {
            Ok(piece) => Some((piece, self)),
            Err(mpsc::error::TryRecvError::Disconnected) => None,
            Err(mpsc::error::TryRecvError::Empty) => {
                self.pieces.close();
                Some((Err("the process that runs plugins has ended".to_owned()), self))
            }
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if self.bodies.lock().remove(&self.id).is_some() {
            self.connection.notify("fetch.cancel", &json!({ "id": self.id }));
        }
    }
}
