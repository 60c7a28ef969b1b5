//! The socket of a proxy and the tasks of its connections.

use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::activity::{Activity, Watched};
use crate::http1::Session;
use crate::{Deadlines, Outside, socks};

/// The connections of one proxy at a time. Further ones are closed at once.
pub const MAX_CONNECTIONS: usize = 320;
/// The connections of all proxies at a time.
const MAX_OF_ALL: usize = 1024;
/// The pause after a failed accept, for example without free descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// The state that all proxies of a process share.
#[derive(Debug, Clone)]
pub struct Shared {
    connections: Arc<Semaphore>,
    /// The owner of all tasks.
    tasks: TaskTracker,
    deadlines: Deadlines,
}

impl Shared {
    /// The state of a process whose tasks are waited for by `tasks`.
    pub fn new(tasks: TaskTracker, deadlines: Deadlines) -> Self {
        Self { connections: Arc::new(Semaphore::new(MAX_OF_ALL)), tasks, deadlines }
    }
}

/// A running proxy. Dropping it closes its socket and all connections.
#[derive(Debug)]
pub struct Proxy {
    socket: PathBuf,
    _end: DropGuard,
}

impl Proxy {
    /// Listens on a new socket. Only its owner can use it if nobody else can search its directory.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be created.
    pub fn start(socket: PathBuf, outside: Arc<dyn Outside>, shared: &Shared) -> io::Result<Self> {
        let listener = bind(&socket)?;
        let cancel = CancellationToken::new();
        let accepting = Accepting {
            listener,
            outside,
            shared: shared.clone(),
            own: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            cancel: cancel.clone(),
        };
        shared.tasks.spawn(accepting.accept());
        Ok(Self { socket, _end: cancel.drop_guard() })
    }

    /// The path of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // A socket that remains is removed when the next process starts a proxy.
        drop(std::fs::remove_file(&self.socket));
    }
}

/// Binds a socket, whose path may be longer than the address of a socket.
fn bind(socket: &Path) -> io::Result<UnixListener> {
    let listener = match (socket.parent(), socket.file_name()) {
        #[cfg(target_os = "linux")]
        (Some(directory), Some(name)) => {
            use std::os::fd::AsRawFd as _;
            let directory = std::fs::File::open(directory)?;
            StdListener::bind(Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name))?
        }
        _ => StdListener::bind(socket)?,
    };
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

struct Accepting {
    listener: UnixListener,
    outside: Arc<dyn Outside>,
    shared: Shared,
    own: Arc<Semaphore>,
    cancel: CancellationToken,
}

impl Accepting {
    async fn accept(self) {
        while let Some(accepted) = self.cancel.run_until_cancelled(self.listener.accept()).await {
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            // A connection beyond the limits is dropped, which closes it.
            if let Some(permits) = self.permits() {
                self.shared.tasks.spawn(self.connection(stream, permits));
            }
        }
    }

    fn permits(&self) -> Option<[OwnedSemaphorePermit; 2]> {
        let own = Arc::clone(&self.own).try_acquire_owned().ok()?;
        let of_all = Arc::clone(&self.shared.connections).try_acquire_owned().ok()?;
        Some([own, of_all])
    }

    /// Serves a connection until it ends, is idle for too long, or the proxy ends.
    fn connection(
        &self,
        stream: UnixStream,
        permits: [OwnedSemaphorePermit; 2],
    ) -> impl Future<Output = ()> + use<> {
        let cancel = self.cancel.child_token();
        let (outside, deadlines) = (Arc::clone(&self.outside), self.shared.deadlines);
        let session = Session::new(Arc::clone(&outside), self.shared.tasks.clone(), cancel.clone());
        async move {
            let _end = cancel.clone().drop_guard();
            let activity = Activity::new();
            let stream = Watched::new(stream, activity.clone());
            let served = serve(stream, outside, session, deadlines.head);
            tokio::select! {
                // The client sees the end of the connection, whatever its reason is.
                served = served => drop(served),
                () = activity.ended(deadlines.idle) => {}
                () = cancel.cancelled() => {}
            }
            drop(permits);
        }
    }
}

/// Finds out the protocol and serves it.
async fn serve(
    mut stream: Watched<UnixStream>,
    outside: Arc<dyn Outside>,
    session: Session,
    head_deadline: Duration,
) -> io::Result<()> {
    let first = tokio::time::timeout(head_deadline, stream.read_u8()).await??;
    if first == socks::VERSION {
        return socks::serve(stream, &*outside, head_deadline).await;
    }
    let (reader, writer) = tokio::io::split(stream);
    let reader = io::Cursor::new([first]).chain(reader);
    session.serve(tokio::io::join(reader, writer), head_deadline).await
}
