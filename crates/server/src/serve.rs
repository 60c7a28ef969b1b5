//! The listener: accepts connections, passes requests to the router and shuts down gracefully.
//!
//! Every connection is accepted immediately. Then its peer is looked up, and the connection gets a slot
//! or is rejected. So clients of a full server do not have to wait for the rejection.

use std::convert::Infallible;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::{Extension, Router};
use bytes::Bytes;
use codewright_engine::Descent;
use futures_util::future::{Either, select};
use http::Request;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::limit::{ActiveRequest, Full, Limiter, Slot};
use crate::peer::{Identity, Peer};

/// The maximum number of concurrent peer lookups; further connections wait in the queue of the system.
const MAX_ARRIVING: usize = 64;
/// The deadline of a peer lookup.
const PEER_DEADLINE: Duration = Duration::from_secs(5);
/// The deadline for the head of a request, and for an idle connection between requests.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// The same for peers other than the owner.
const STRANGER_DEADLINE: Duration = Duration::from_secs(5);
/// The response to a rejected connection.
const REJECTION: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
connection: close\r\ncontent-length: 96\r\n\r\n\
{\"name\":\"UnknownError\",\"data\":{\"message\":\"the server has too many open connections, try later\"}}";
/// The maximum size of the head of a request.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The maximum number of headers of a request.
const MAX_HEADERS: usize = 100;
/// The deadline for open requests when the server stops.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);
/// The pause after a failure to accept, such as a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The number of consecutive failures to accept after which the server stops.
const MAX_ACCEPT_FAILURES: u32 = 600;

/// The cancellation of requests that wait when the server stops.
#[derive(Clone)]
pub(crate) struct Closing(CancellationToken);

impl Closing {
    /// Returns the token of a request's connection. It is never cancelled for requests without a connection.
    pub(crate) fn token(closing: Option<Extension<Self>>) -> CancellationToken {
        closing.map(|Extension(Self(token))| token).unwrap_or_default()
    }
}

/// The source of connections.
pub enum Listener {
    /// A TCP listener.
    Tcp(TcpListener),
    /// A socket file that only its owner may use.
    Unix(UnixListener),
}

/// A connection of either listener.
type Socket = tokio_util::either::Either<TcpStream, UnixStream>;

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl Listener {
    /// Listens on a socket file that only its owner may use. The file is created in a private directory and moved to
    /// `path` after its mode is set, so that no other user can ever connect. It replaces the socket of a dead server.
    ///
    /// # Errors
    ///
    /// Fails if a server listens on `path` already, or if `path` is another kind of file.
    pub fn owned(path: &Path) -> io::Result<Self> {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "a server already listens on this socket"));
        }
        if std::fs::symlink_metadata(path).is_ok_and(|file| !file.file_type().is_socket()) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists and is not a socket"));
        }
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let private = directory.join(format!(".codewright-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&private)?;
        let socket = private.join("s");
        let listening = UnixListener::bind(&socket).and_then(|listener| {
            std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
            std::fs::rename(&socket, path)?;
            Ok(Self::Unix(listener))
        });
        // Only holds the socket if moving it failed. It is not needed in either case.
        std::fs::remove_dir_all(&private).ok();
        listening
    }

    async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => {
                let (socket, _) = listener.accept().await?;
                // Small frames must be sent immediately. The server also works without the option.
                socket.set_nodelay(true).ok();
                Ok(Socket::Left(socket))
            }
            Self::Unix(listener) => Ok(Socket::Right(listener.accept().await?.0)),
        }
    }
}

/// Serves a listener until `cancel`. Then it stops accepting, ends the streams and waits a few seconds for open requests.
///
/// # Errors
///
/// Fails if the listener repeatedly fails to accept.
pub async fn serve(
    listener: impl Into<Listener>,
    router: Router,
    cancel: CancellationToken,
) -> io::Result<()> {
    let listener = listener.into();
    let mut connections = JoinSet::new();
    // Also cancelled when the listener fails, so that the connections end.
    let closing = cancel.child_token();
    let result = accept(&listener, &router, &closing, &mut connections).await;
    drop(listener);
    closing.cancel();
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout(CLOSE_DEADLINE, ended).await.is_err() {
        connections.shutdown().await;
    }
    result
}

async fn accept(
    listener: &Listener,
    router: &Router,
    cancel: &CancellationToken,
    connections: &mut JoinSet<()>,
) -> io::Result<()> {
    let limiter = Limiter::new();
    let arriving = Arc::new(Semaphore::new(MAX_ARRIVING));
    let (mut failures, mut number) = (0, 0);
    loop {
        // Finished tasks are removed before each new one, so the set stays bounded.
        while connections.try_join_next().is_some() {}
        let accepted = cancel.run_until_cancelled(async {
            let permit = Arc::clone(&arriving).acquire_owned().await.expect("the semaphore is never closed");
            listener.accept().await.map(|socket| (socket, permit))
        });
        let Some(accepted) = accepted.await else { return Ok(()) };
        match accepted {
            Ok((socket, permit)) => {
                (failures, number) = (0, number + 1);
                let (router, cancel, limiter) = (router.clone(), cancel.clone(), limiter.clone());
                connections.spawn(async move {
                    let peer = peer_of(&socket).await;
                    let admitted = limiter.admit(peer.identity, number);
                    drop(permit);
                    match admitted {
                        Ok(slot) => serve_connection(socket, router, Client { peer, slot }, cancel).await,
                        Err(Full) => reject(&socket),
                    }
                });
            }
            Err(error) => {
                failures += 1;
                if failures > MAX_ACCEPT_FAILURES {
                    return Err(error);
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn peer_of(socket: &Socket) -> Peer {
    let lookup = async {
        match socket {
            Socket::Left(socket) => Peer::of_tcp(socket).await,
            Socket::Right(socket) => Peer::of_unix(socket).await,
        }
    };
    let unknown = Peer { identity: Identity::Unknown, descent: Descent::Unknown };
    timeout(PEER_DEADLINE, lookup).await.unwrap_or(unknown)
}

/// Sends the rejection without waiting.
fn reject(socket: &Socket) {
    // If the write fails, the client still sees that the connection is closed.
    drop(match socket {
        Socket::Left(socket) => socket.try_write(REJECTION),
        Socket::Right(socket) => socket.try_write(REJECTION),
    });
}

/// An admitted connection: its peer and its slot.
struct Client {
    peer: Peer,
    slot: Slot,
}

async fn serve_connection(socket: Socket, router: Router, client: Client, cancel: CancellationToken) {
    let Client { peer, slot } = client;
    let closing = Closing(cancel.clone());
    let own = slot.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let busy = own.begin();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(closing.clone());
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(own.clone());
        let response = router.clone().oneshot(request);
        async move {
            let response = response.await.unwrap_or_else(|never| match never {});
            Ok::<_, Infallible>(response.map(|body| ResponseBody { body, _busy: busy }))
        }
    });
    let deadline = if peer.identity == Identity::Owner { HEAD_DEADLINE } else { STRANGER_DEADLINE };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(deadline)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    let connection = std::pin::pin!(connection);
    let stopped = async {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = slot.evicted().cancelled() => {}
        }
    };
    // A broken connection needs no handling: the client has closed it.
    match select(connection, std::pin::pin!(stopped)).await {
        Either::Left((ended, _)) => drop(ended),
        Either::Right(((), mut connection)) if cancel.is_cancelled() || !slot.is_idle() => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
        // The connection is idle and closes in favour of another one.
        Either::Right(_) => {}
    }
}

/// A response body. Its request is active until the body has been sent.
struct ResponseBody {
    body: Body,
    _busy: ActiveRequest,
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rejection_is_a_valid_response() {
        let text = std::str::from_utf8(REJECTION).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
