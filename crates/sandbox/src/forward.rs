//! Connects the network namespace of a command with the proxy outside.
//!
//! The proxy listens on a unix socket that is visible inside. Programs can only be configured for a proxy on a
//! TCP port, so a thread inside accepts connections on [`PROXY_PORT`] and copies their bytes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The port inside the namespace, which is otherwise empty.
const PROXY_PORT: u16 = 17_171;
/// The largest number of connections at a time. Further ones are closed at once.
const MAX_CONNECTIONS: usize = 128;
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

/// Starts the thread that accepts connections.
///
/// # Errors
///
/// Fails if the port is in use or no thread can be started.
pub(crate) fn start(socket: PathBuf) -> std::io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?;
    spawn(move || accept(&listener, &socket))
}

fn accept(listener: &TcpListener, socket: &Path) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((client, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (counter, socket) = (Arc::clone(&open), socket.to_owned());
        let connect = move || {
            // A connection that cannot be made is closed, which the client sees.
            drop(UnixStream::connect(&socket).and_then(|server| copy_both(client, server)));
            counter.fetch_sub(1, Ordering::Relaxed);
        };
        if spawn(connect).is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Copies in both directions until both are closed.
fn copy_both(client: TcpStream, server: UnixStream) -> std::io::Result<()> {
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

fn spawn(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().stack_size(STACK_BYTES).spawn(work).map(drop)
}
