//! The socket: connections in, requests to the router, and an end in good order.
//!
//! Every connection is accepted at once; its peer is looked up and it gets a seat, or it is refused. A
//! full server so never keeps anybody waiting.

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

use crate::limit::{Busy, Full, Room, Seat};
use crate::peer::{Identity, Peer};

/// Connections whose peer is being looked up; more wait in the queue of the system.
const MAX_ARRIVING: usize = 64;
/// How long looking a peer up may take.
const PEER_DEADLINE: Duration = Duration::from_secs(5);
/// How long the head of a request may take, and a connection may be idle between requests.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// The same, for others than the owner.
const STRANGER_DEADLINE: Duration = Duration::from_secs(5);
/// What a connection is told for which there is no seat.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
connection: close\r\ncontent-length: 96\r\n\r\n\
{\"name\":\"UnknownError\",\"data\":{\"message\":\"the server has too many open connections, try later\"}}";
/// The largest head of a request.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The most headers of a request.
const MAX_HEADERS: usize = 100;
/// How long open requests may take to end when the server stops.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);
/// How long to wait when no connection can be accepted, such as for want of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often in a row accepting may fail before the listener is given up.
const MAX_ACCEPT_FAILURES: u32 = 600;

/// Tells what waits on a connection that the server stops.
#[derive(Clone)]
pub(crate) struct Closing(CancellationToken);

impl Closing {
    /// The token of a request's connection; without a socket nobody ever closes it.
    pub(crate) fn token(closing: Option<Extension<Self>>) -> CancellationToken {
        closing.map(|Extension(Self(token))| token).unwrap_or_default()
    }
}

/// Where connections come from.
pub enum Listener {
    /// The network.
    Tcp(TcpListener),
    /// A file that its owner alone may use.
    Unix(UnixListener),
}

/// A connection of either kind.
type Socket = tokio_util::either::Either<TcpStream, UnixStream>;

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl Listener {
    /// Listens on a socket file. It is made where nobody else may look and moved to its place
    /// when it is its owner's alone; what a dead server left there goes.
    pub fn owned(path: &Path) -> io::Result<Self> {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "a server listens there already"));
        }
        if std::fs::symlink_metadata(path).is_ok_and(|file| !file.file_type().is_socket()) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is no socket"));
        }
        let beside = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let hidden = beside.join(format!(".codewright-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&hidden)?;
        let made = hidden.join("s");
        let listening = UnixListener::bind(&made).and_then(|listener| {
            std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o600))?;
            std::fs::rename(&made, path)?;
            Ok(Self::Unix(listener))
        });
        // Empty, unless it could not be moved; either way nobody needs it.
        std::fs::remove_dir_all(&hidden).ok();
        listening
    }

    async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => {
                let (socket, _) = listener.accept().await?;
                // Frames of a few bytes are wanted now, not when there are more. Without the option
                // all still works.
                socket.set_nodelay(true).ok();
                Ok(Socket::Left(socket))
            }
            Self::Unix(listener) => Ok(Socket::Right(listener.accept().await?.0)),
        }
    }
}

/// Serves a listener until `cancel`, then accepts no more, ends the streams and
/// gives open requests a moment.
///
/// Ends early only when the listener can accept nothing any more.
pub async fn serve(
    listener: impl Into<Listener>,
    router: Router,
    cancel: CancellationToken,
) -> io::Result<()> {
    let listener = listener.into();
    let mut connections = JoinSet::new();
    // Also cancelled when the listener fails: then nobody serves the connections any more.
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
    let room = Room::new();
    let arriving = Arc::new(Semaphore::new(MAX_ARRIVING));
    let (mut failures, mut number) = (0, 0);
    loop {
        // The ended ones are collected as new ones come, so the set stays bounded.
        while connections.try_join_next().is_some() {}
        let accepted = cancel.run_until_cancelled(async {
            let permit = Arc::clone(&arriving).acquire_owned().await.expect("the semaphore is never closed");
            listener.accept().await.map(|socket| (socket, permit))
        });
        let Some(accepted) = accepted.await else { return Ok(()) };
        match accepted {
            Ok((socket, permit)) => {
                (failures, number) = (0, number + 1);
                let (router, cancel, room) = (router.clone(), cancel.clone(), room.clone());
                connections.spawn(async move {
                    let peer = peer_of(&socket).await;
                    let admitted = room.admit(peer.identity, number);
                    drop(permit);
                    match admitted {
                        Ok(seat) => serve_connection(socket, router, (peer, seat), cancel).await,
                        Err(Full) => refuse(&socket),
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
    let looked_up = async {
        match socket {
            Socket::Left(socket) => Peer::of_tcp(socket).await,
            Socket::Right(socket) => Peer::of_unix(socket).await,
        }
    };
    let unknown = Peer { identity: Identity::Unknown, descent: Descent::Unknown };
    timeout(PEER_DEADLINE, looked_up).await.unwrap_or(unknown)
}

/// Says that there is no room, without waiting for anything.
fn refuse(socket: &Socket) {
    // A client that does not read it sees that the connection is closed.
    drop(match socket {
        Socket::Left(socket) => socket.try_write(REFUSAL),
        Socket::Right(socket) => socket.try_write(REFUSAL),
    });
}

async fn serve_connection(
    socket: Socket,
    router: Router,
    (peer, seat): (Peer, Seat),
    cancel: CancellationToken,
) {
    let closing = Closing(cancel.clone());
    let asked = seat.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let busy = asked.begin();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(closing.clone());
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(asked.clone());
        let answered = router.clone().oneshot(request);
        async move {
            let answer = answered.await.unwrap_or_else(|never| match never {});
            Ok::<_, Infallible>(answer.map(|body| Answer { body, _busy: busy }))
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
            () = seat.evicted().cancelled() => {}
        }
    };
    // A connection that breaks is the client's affair; there is nobody to tell.
    match select(connection, std::pin::pin!(stopped)).await {
        Either::Left((ended, _)) => drop(ended),
        Either::Right(((), mut connection)) if cancel.is_cancelled() || !seat.is_idle() => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
        // It is idle and makes room for another one. A request that began in this very moment is finished.
        Either::Right(_) => {}
    }
}

/// The body of an answer, whose request is at work until all of it has been sent.
struct Answer {
    body: Body,
    _busy: Busy,
}

impl http_body::Body for Answer {
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
    fn the_refusal_is_an_answer_of_its_length() {
        let text = std::str::from_utf8(REFUSAL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
