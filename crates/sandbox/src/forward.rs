//! Connects the network namespace of a command with the proxy outside.
//!
//! The proxy listens on a unix socket that is visible inside. Programs can only be configured for a proxy on a
//! TCP port, so a thread inside accepts connections on [`PROXY_PORT`] and copies their bytes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The port inside the namespace, which is otherwise empty.
const PROXY_PORT: u16 = 17_171;
/// The largest number of connections at a time, to hosts and to ports of the machine. Further ones to hosts are closed at
/// once, and those to ports wait. The proxy accepts some more.
const MAX_CONNECTIONS: usize = 256;
/// The stack of a thread that copies bytes.
const STACK_BYTES: usize = 64 * 1024;
/// The size of one read.
const CHUNK_BYTES: usize = 16 * 1024;
/// The pause after a failed accept, for example without free descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// The variables that make programs use the proxy.
pub(crate) fn proxy_variables() -> Vec<(String, String)> {
    let http = format!("http://127.0.0.1:{PROXY_PORT}");
    let all = format!("socks5h://127.0.0.1:{PROXY_PORT}");
    let none = "localhost,127.0.0.1,::1";
    let mut variables = Vec::new();
    for (name, value) in
        [("http_proxy", http.as_str()), ("https_proxy", &http), ("all_proxy", &all), ("no_proxy", none)]
    {
        variables.push((name.to_owned(), value.to_owned()));
        variables.push((name.to_uppercase(), value.to_owned()));
    }
    // Node reads the variables above only with this one.
    variables.push(("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned()));
    variables
}

/// The address of the port inside.
pub(crate) fn proxy_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, PROXY_PORT).into()
}

/// The connections of a command that may be open at a time. Clones share the number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots(Arc<(Mutex<usize>, Condvar)>);

/// A connection that counts, until it is dropped.
pub(crate) struct Slot(Slots);

impl Slots {
    /// Takes a slot. Returns `None` at the limit of connections.
    fn try_take(&self) -> Option<Slot> {
        let mut open = self.open();
        (*open < MAX_CONNECTIONS).then(|| self.counted(&mut open))
    }

    /// Takes a slot. Waits while all are taken; the proxy closes connections that are idle.
    pub(crate) fn take(&self) -> Slot {
        let open = self.open();
        let full = |open: &mut usize| *open >= MAX_CONNECTIONS;
        let mut open = self.0.1.wait_while(open, full).unwrap_or_else(PoisonError::into_inner);
        self.counted(&mut open)
    }

    fn counted(&self, open: &mut usize) -> Slot {
        *open += 1;
        Slot(self.clone())
    }

    fn open(&self) -> MutexGuard<'_, usize> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *self.0.open() -= 1;
        self.0.0.1.notify_one();
    }
}

/// Starts the thread that accepts connections.
///
/// # Errors
///
/// Fails if the port is in use or no thread can be started.
pub(crate) fn start(socket: PathBuf, slots: Slots) -> std::io::Result<()> {
    let listener = TcpListener::bind(proxy_address())?;
    spawn(move || accept(&listener, &socket, &slots))
}

fn accept(listener: &TcpListener, socket: &Path, slots: &Slots) {
    loop {
        let Ok((client, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        let Some(slot) = slots.try_take() else { continue };
        let socket = socket.to_owned();
        // Without a thread, and if the connection cannot be made, it is closed, which the client sees.
        drop(spawn(move || {
            drop(UnixStream::connect(&socket).and_then(|server| copy_both(client, server)));
            drop(slot);
        }));
    }
}

/// Copies in both directions until both are closed.
pub(crate) fn copy_both(client: TcpStream, server: UnixStream) -> std::io::Result<()> {
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let up = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        copy(&from_client, &to_server);
        // The other side may be closed already.
        drop(to_server.shutdown(Shutdown::Write));
    })?;
    copy(&server, &client);
    drop(client.shutdown(Shutdown::Write));
    // The thread cannot panic, and its result does not matter.
    drop(up.join());
    Ok(())
}

/// Copies until the end or an error of either side.
fn copy(mut from: impl Read, mut to: impl Write) {
    let mut chunk = [0; CHUNK_BYTES];
    while let Ok(count) = from.read(&mut chunk) {
        if count == 0 || to.write_all(&chunk[..count]).is_err() {
            break;
        }
    }
}

pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().stack_size(STACK_BYTES).spawn(work).map(drop)
}
