//! Connects a command to ports of the machine that the user permits.
//!
//! The network namespace of a command has a loopback interface of its own, so a program of the user that listens on
//! `localhost` cannot be reached. A filter of system calls makes the calls wait that connect a socket
//! ([`crate::seccomp`]). If such a call names a loopback address at which nothing listens inside, a thread asks the proxy
//! outside for this address; the proxy asks the user if that is needed. If it connects, a thread listens at the same address
//! inside and forwards, and in every case the kernel then makes the call of the command. So nothing depends on what was
//! read from the command's memory: a call that is changed meanwhile, or not seen, reaches only what is inside.
//!
//! A port at which something listens inside needs no proxy and no question, also if that begins while a question is open.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use codewright_notify::{Call, Listener};
use rustix::net::{
    AddressFamily, Shutdown, SocketFlags, SocketType, bind, ipproto, listen, shutdown, sockopt,
};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::forward::{Slot, Slots, copy_both, proxy_address, spawn};
use crate::listeners::listeners;

/// The number of ports that are asked for at a time. Calls for further ones are refused.
const MAX_QUESTIONS: usize = 16;
/// The number of calls that wait for one port. Further ones are refused.
const MAX_WAITING: usize = 1024;
/// The number of ports that are forwarded at a time.
const MAX_TUNNELS: usize = 32;
/// The number of connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// The interval at which a thread with an open question looks whether it is still needed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The longest wait for the proxy, which has a shorter deadline of its own for the reply of a user.
const DEADLINE: Duration = Duration::from_secs(30 * 60);
/// The longest address of a socket that is read.
const MAX_ADDRESS_BYTES: usize = 28;
/// The version of SOCKS.
const VERSION: u8 = 5;
/// The length of a reply of the proxy, which always names an address of version 4.
const REPLY_BYTES: usize = 10;

/// What is needed to reach ports, before the filter is installed.
#[derive(Debug)]
pub(crate) struct Ports {
    socket: PathBuf,
    slots: Slots,
}

impl Ports {
    /// The ports behind the proxy with this socket.
    pub(crate) fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), slots: Slots::default() }
    }

    /// The connections of the command, which all its ports share.
    pub(crate) fn slots(&self) -> Slots {
        self.slots.clone()
    }
}

/// Decides about the calls that connect a socket.
pub(crate) struct Connector(Arc<Shared>);

struct Shared {
    listener: Arc<Listener>,
    ports: Ports,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The calls that wait for each port that is being asked for.
    asked: HashMap<SocketAddr, Vec<Call>>,
    tunnels: usize,
}

impl Connector {
    /// Nothing is asked yet.
    pub(crate) fn new(ports: Ports, listener: &Arc<Listener>) -> Self {
        Self(Arc::new(Shared { listener: Arc::clone(listener), ports, state: Mutex::default() }))
    }

    /// Lets the kernel make a call, after a port was asked for if the call needs one. This does not wait.
    pub(crate) fn handle(&self, call: &Call) {
        let shared = &self.0;
        match wanted(call) {
            // It is answered with the others.
            Some(address) if shared.enqueue(call, address) => {}
            Some(_) | None => shared.pass(call),
        }
    }
}

impl Shared {
    fn pass(&self, call: &Call) {
        // It fails if the caller has ended.
        drop(self.listener.pass(call));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call wait for a port, and asks for it if nobody does. Returns whether the call waits.
    fn enqueue(self: &Arc<Self>, call: &Call, address: SocketAddr) -> bool {
        let mut state = self.state();
        let count = state.asked.len();
        match state.asked.entry(address) {
            Entry::Occupied(mut waiting) => {
                let is_full = waiting.get().len() >= MAX_WAITING;
                if !is_full {
                    waiting.get_mut().push(*call);
                }
                !is_full
            }
            Entry::Vacant(place) => {
                let shared = Arc::clone(self);
                let begun = count < MAX_QUESTIONS && spawn(move || shared.ask(address)).is_ok();
                if begun {
                    place.insert(vec![*call]);
                }
                begun
            }
        }
    }

    /// Asks the proxy for a port, and forwards it if the proxy connects. Then the kernel makes the calls that wait.
    fn ask(self: Arc<Self>, address: SocketAddr) {
        release_rights();
        if let Ok(server) = self.connected(address, || self.is_needed(address)) {
            self.forward(address, server);
        }
        let waiting = self.state().asked.remove(&address).unwrap_or_default();
        for call in &waiting {
            self.pass(call);
        }
    }

    /// Whether a call still waits for a port, and nothing listens inside.
    fn is_needed(&self, address: SocketAddr) -> bool {
        let mut state = self.state();
        let Some(waiting) = state.asked.get_mut(&address) else { return false };
        waiting.retain(|call| self.listener.is_waiting(call));
        !waiting.is_empty() && !is_inside(address)
    }

    /// A connection of the proxy to an address outside. Fails if the proxy refuses it, or once it is not needed.
    fn connected(&self, address: SocketAddr, is_needed: impl Fn() -> bool) -> Result<UnixStream, Error> {
        let mut stream = UnixStream::connect(&self.ports.socket)?;
        let mut request = vec![VERSION, 1, 0, VERSION, 1, 0];
        match address.ip() {
            IpAddr::V4(ip) => {
                request.push(1);
                request.extend(ip.octets());
            }
            IpAddr::V6(ip) => {
                request.push(4);
                request.extend(ip.octets());
            }
        }
        request.extend(address.port().to_be_bytes());
        stream.write_all(&request)?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        let mut reply = [0; 2 + REPLY_BYTES];
        let (mut filled, until) = (0, Instant::now() + DEADLINE);
        while filled < reply.len() {
            match stream.read(&mut reply[filled..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if Instant::now() >= until || !is_needed() {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if reply[..4] != [VERSION, 0, VERSION, 0] {
            return Err(ErrorKind::ConnectionRefused.into());
        }
        stream.set_read_timeout(None)?;
        Ok(stream)
    }

    /// Starts the thread that accepts the connections to a port inside. Without one the calls are refused by the kernel.
    fn forward(self: &Arc<Self>, address: SocketAddr, first: UnixStream) {
        let Ok(listener) = listening(address) else { return };
        {
            let mut state = self.state();
            if state.tunnels >= MAX_TUNNELS {
                return;
            }
            state.tunnels += 1;
        }
        let shared = Arc::clone(self);
        let tunnel = move || {
            shared.accept(address, &Arc::new(listener), first);
            shared.state().tunnels -= 1;
        };
        if spawn(tunnel).is_err() {
            self.state().tunnels -= 1;
        }
    }

    /// Accepts connections until the program outside does not accept one. Then the port is asked for again.
    fn accept(self: &Arc<Self>, address: SocketAddr, listener: &Arc<TcpListener>, first: UnixStream) {
        let mut first = Some(first);
        loop {
            let slot = self.ports.slots.take();
            let Ok((client, _)) = listener.accept() else { return };
            let (shared, listener, ready) = (Arc::clone(self), Arc::clone(listener), first.take());
            let copy = move || {
                let _slot: Slot = slot;
                let server = ready.map_or_else(|| shared.connected(address, || true), Ok);
                match server {
                    // The client sees the end of the connection, whatever its reason is.
                    Ok(server) => drop(copy_both(client, server)),
                    // It ends the thread that accepts. An error means that it has ended already.
                    Err(_) => drop(shutdown(&*listener, Shutdown::Read)),
                }
            };
            // Without a thread the connection is closed.
            drop(spawn(copy));
        }
    }
}

/// The loopback address that a call connects to, if nothing listens there inside. `None` if the call needs no port of the
/// machine.
fn wanted(call: &Call) -> Option<SocketAddr> {
    let mut bytes = [0; MAX_ADDRESS_BYTES];
    let length = usize::try_from(call.args[2]).ok()?.min(MAX_ADDRESS_BYTES);
    let filled = call.bytes(1, &mut bytes[..length]).ok()?;
    let address = parse(&bytes[..filled]).and_then(loopback)?;
    let is_wanted = address != proxy_address() && !is_inside(address) && is_stream(call);
    is_wanted.then_some(address)
}

/// The address in the form of the kernel.
fn parse(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let ip: IpAddr = match family {
        libc::AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?).into(),
        _ => return None,
    };
    (port != 0).then(|| SocketAddr::new(ip.to_canonical(), port))
}

/// The address of this machine that an address stands for. `None` for addresses of other machines.
fn loopback(address: SocketAddr) -> Option<SocketAddr> {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    ip.is_loopback().then(|| SocketAddr::new(ip, address.port()))
}

/// Whether something listens at an address inside. Without an answer the kernel decides.
fn is_inside(address: SocketAddr) -> bool {
    listeners(address).map_or(true, |found| !found.is_empty())
}

/// Whether the socket of a call is one of TCP. A resolver of names, for example, is connected over UDP.
fn is_stream(call: &Call) -> bool {
    let socket = || {
        let text = std::fs::read_to_string(format!("/proc/{}/status", call.thread)).ok()?;
        let process = text.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()?;
        let process = pidfd_open(Pid::from_raw(process)?, PidfdFlags::empty()).ok()?;
        let number = i32::try_from(call.args[0]).ok()?;
        let socket = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()?;
        Some(sockopt::socket_type(&socket).ok()? == SocketType::STREAM)
    };
    socket().unwrap_or(false)
}

/// Listens at an address inside, and at no other one.
fn listening(address: SocketAddr) -> Result<TcpListener, Error> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC;
    let socket: OwnedFd = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    // An earlier server of the command may have left connections behind.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Removes the right that this thread has inherited.
fn release_rights() {
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    // It fails if there is none.
    let _ = set_capabilities(None, none);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of an address as programs pass them.
    fn bytes(family: i32, port: u16, ip: &[u8]) -> Vec<u8> {
        let family = u16::try_from(family).unwrap().to_ne_bytes();
        let flow: &[u8] = if ip.len() == 16 { &[0; 4] } else { &[] };
        [&family[..], &port.to_be_bytes(), flow, ip, &[0; 8]].concat()
    }

    #[test]
    fn only_addresses_of_this_machine_are_ports() {
        let v6 = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets().to_vec();
        for (family, ip, expected) in [
            (libc::AF_INET, vec![127, 0, 0, 1], Some("127.0.0.1:80")),
            (libc::AF_INET, vec![127, 9, 0, 1], Some("127.9.0.1:80")),
            (libc::AF_INET, vec![0, 0, 0, 0], Some("127.0.0.1:80")),
            (libc::AF_INET, vec![10, 0, 0, 1], None),
            (libc::AF_INET, vec![169, 254, 169, 254], None),
            (libc::AF_INET6, v6("::1"), Some("[::1]:80")),
            (libc::AF_INET6, v6("::"), Some("[::1]:80")),
            (libc::AF_INET6, v6("::ffff:127.0.0.1"), Some("127.0.0.1:80")),
            (libc::AF_INET6, v6("::ffff:10.0.0.1"), None),
            (libc::AF_INET6, v6("fd00::1"), None),
            (libc::AF_UNIX, b"/run/x\0\0".to_vec(), None),
        ] {
            let found = parse(&bytes(family, 80, &ip)).and_then(loopback);
            assert_eq!(found, expected.map(|text| text.parse().unwrap()), "{family} {ip:?}");
        }
        assert_eq!(parse(&bytes(libc::AF_INET, 0, &[127, 0, 0, 1])), None);
        for length in 0..8 {
            assert_eq!(parse(&bytes(libc::AF_INET, 80, &[127, 0, 0, 1])[..length]), None);
        }
    }
}
