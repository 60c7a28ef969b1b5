//! The peer of a connection: its user or machine, and whether a command of the model opened it.
//!
//! On loopback the kernel knows the user that owns the other socket. It is looked up once per
//! connection, when it is accepted: by `sock_diag`, which finds one socket in a few microseconds,
//! or else in `/proc/net/tcp`. On systems with neither, the user is unknown and a password is
//! required. For a socket file the kernel reports the process and its user.
//!
//! A socket without an inode has been closed by its owner. The kernel reports user 0 for it, so
//! such a socket counts as missing.

use std::net::{IpAddr, SocketAddr};
#[cfg(target_os = "linux")]
use std::time::Duration;

use codewright_engine::{Descent, has_commands, process_descent, socket_descent};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::spawn_blocking;
#[cfg(target_os = "linux")]
use tokio::time::sleep;

/// The superuser, who may do everything on this machine anyway.
const ROOT: u32 = 0;

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) identity: Identity,
    /// Whether a command of the model made the connection.
    pub(crate) descent: Descent,
}

/// The owner of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// The user that runs the server, or root.
    Owner,
    /// Another user of this machine.
    User(u32),
    /// A user of this machine that cannot be determined.
    Unknown,
    /// Another machine. The addresses of one IPv6 network count as one.
    Remote(IpAddr),
}

/// The attempts to find a socket, because a connection without an owner is refused.
#[cfg(target_os = "linux")]
const LOOKUPS: u32 = 3;
/// The pause between two attempts.
#[cfg(target_os = "linux")]
const LOOKUP_PAUSE: Duration = Duration::from_millis(10);

/// The owner and inode of a socket of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SocketInfo {
    user: u32,
    inode: u64,
}

impl Peer {
    /// Returns the peer of a TCP connection that was just accepted.
    pub(crate) async fn of_tcp(socket: &TcpStream) -> Self {
        let (Ok(peer), Ok(local)) = (socket.peer_addr(), socket.local_addr()) else {
            return Self { identity: Identity::Unknown, descent: Descent::Elsewhere };
        };
        let (peer, local) = (canonical(peer), canonical(local));
        if !peer.ip().is_loopback() || !local.ip().is_loopback() {
            return Self { identity: Identity::Remote(network(peer.ip())), descent: Descent::Elsewhere };
        }
        // Read before the lookup: a command that ends in between has closed its socket by then.
        let has_commands = has_commands();
        let Some(found) = lookup(peer, local).await else {
            return Self { identity: Identity::Unknown, descent: Descent::Elsewhere };
        };
        let identity = identity(found.user);
        if !has_commands {
            return Self { identity, descent: Descent::Elsewhere };
        }
        let searched = spawn_blocking(move || socket_descent(found.inode)).await;
        let descent = match searched.unwrap_or(Descent::Unknown) {
            // A descendant that ended during the search has closed the socket or passed it on.
            Descent::Elsewhere if lookup(peer, local).await != Some(found) => Descent::Unknown,
            descent => descent,
        };
        Self { identity, descent }
    }

    /// Returns the peer of a connection to a socket file.
    pub(crate) async fn of_unix(socket: &UnixStream) -> Self {
        let Ok(credentials) = socket.peer_cred() else {
            return Self { identity: Identity::Unknown, descent: Descent::Elsewhere };
        };
        let identity = identity(credentials.uid());
        if !has_commands() {
            return Self { identity, descent: Descent::Elsewhere };
        }
        let process = credentials.pid().and_then(|id| u32::try_from(id).ok()).filter(|id| *id > 0);
        let descent = match process {
            Some(id) => spawn_blocking(move || process_descent(id)).await.unwrap_or(Descent::Unknown),
            None => Descent::Unknown,
        };
        Self { identity, descent }
    }
}

/// Finds a socket by its address and the address of its peer, which are both on loopback.
async fn lookup(own: SocketAddr, other: SocketAddr) -> Option<SocketInfo> {
    #[cfg(target_os = "linux")]
    {
        for attempt in 0..LOOKUPS {
            if attempt > 0 {
                sleep(LOOKUP_PAUSE).await;
            }
            if let Ok(Some(found)) = diag::socket(own, other) {
                return Some(found);
            }
            // The kernel does not support it, or a sandbox forbids it. It can also miss a socket on a busy machine.
            if let Ok(Some(found)) = spawn_blocking(move || table::socket(own, other)).await {
                return Some(found);
            }
        }
        None
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (own, other);
        None
    }
}

/// Returns the identity of the owner of a socket.
fn identity(user: u32) -> Identity {
    let own = nix::unistd::geteuid().as_raw();
    identity_of(user, own, || {
        let overflow = std::fs::read_to_string("/proc/sys/kernel/overflowuid").unwrap_or_default();
        let mapped = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        overflow.trim().parse() == Ok(user) && !maps_all(&mapped)
    })
}

/// Returns the identity of a user id; `is_any` returns whether the id may stand for any user that has none in the user
/// namespace.
fn identity_of(user: u32, own: u32, is_any: impl FnOnce() -> bool) -> Identity {
    if user == own {
        // Only called here, because it reads files and makes no difference elsewhere.
        return if user != ROOT && is_overflow(user) && is_any() {
            Identity::Unknown
        } else {
            Identity::Owner
        };
    }
    if user == ROOT { Identity::Owner } else { Identity::User(user) }
}

/// Returns whether an id may be the overflow id, which stands for users without an id.
fn is_overflow(user: u32) -> bool {
    user >= 65_534
}

/// Returns whether a map of user ids contains all users.
fn maps_all(map: &str) -> bool {
    let fields: Vec<_> = map.split_ascii_whitespace().collect();
    matches!(fields[..], ["0", "0", "4294967295"])
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns the address that identifies a remote peer: an IPv4 address or a /64 network of IPv6.
fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() & !u128::from(u64::MAX)).into()),
    }
}

/// Finds a socket with `sock_diag(7)`.
#[cfg(target_os = "linux")]
mod diag {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    use rustix::io::Errno;
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

    use super::{SocketInfo, canonical};

    /// `SOCK_DIAG_BY_FAMILY`.
    const BY_FAMILY: u16 = 20;
    /// `NLMSG_ERROR`.
    const FAILED: u16 = 2;
    /// `NLM_F_REQUEST`.
    const REQUEST: u16 = 1;
    const TCP: u8 = 6;
    const INET: u8 = 2;
    const INET6: u8 = 10;
    /// The length of a netlink header.
    const HEADER: usize = 16;
    /// The length of a request with its header.
    const REQUEST_BYTES: usize = HEADER + 8 + 48;
    /// The minimum length of a reply with its header.
    const REPLY_BYTES: usize = HEADER + 72;
    /// The size of the receive buffer: more than a reply about one socket.
    const BUFFER: usize = 4096;

    /// Returns the socket with these two addresses, or `None` if it is missing or closed.
    pub(super) fn socket(own: SocketAddr, other: SocketAddr) -> Result<Option<SocketInfo>, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::SOCK_DIAG);
        let kernel = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol)?;
        rustix::net::send(&kernel, &request(own, other), SendFlags::empty())?;
        let mut buffer = [0; BUFFER];
        // The kernel replies before `send` returns.
        let (length, _) = rustix::net::recv(&kernel, &mut buffer, RecvFlags::DONTWAIT)?;
        parse_reply(buffer.get(..length).unwrap_or_default(), own, other)
    }

    fn request(own: SocketAddr, other: SocketAddr) -> Vec<u8> {
        let family = if own.is_ipv4() { INET } else { INET6 };
        let mut bytes = Vec::with_capacity(REQUEST_BYTES);
        bytes.extend((REQUEST_BYTES as u32).to_ne_bytes());
        bytes.extend(BY_FAMILY.to_ne_bytes());
        bytes.extend(REQUEST.to_ne_bytes());
        bytes.extend(1_u32.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend([family, TCP, 0, 0]);
        // All states.
        bytes.extend(u32::MAX.to_ne_bytes());
        bytes.extend(own.port().to_be_bytes());
        bytes.extend(other.port().to_be_bytes());
        bytes.extend(address(own.ip()));
        bytes.extend(address(other.ip()));
        // All interfaces and cookies.
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend([0xff; 8]);
        bytes
    }

    fn address(ip: IpAddr) -> [u8; 16] {
        let mut bytes = [0; 16];
        match ip {
            IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes = ip.octets(),
        }
        bytes
    }

    /// Parses a reply. Its addresses must match, because the kernel also returns listeners.
    pub(super) fn parse_reply(
        bytes: &[u8],
        own: SocketAddr,
        other: SocketAddr,
    ) -> Result<Option<SocketInfo>, Errno> {
        let number = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let short = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        match short(4) {
            Some(FAILED) => {
                let code = number(HEADER).map_or(0, u32::cast_signed);
                let error = Errno::from_raw_os_error(code.wrapping_neg());
                return if error == Errno::NOENT { Ok(None) } else { Err(error) };
            }
            Some(BY_FAMILY) if bytes.len() >= REPLY_BYTES => {}
            _ => return Err(Errno::BADMSG),
        }
        let end = |port: usize, ip: usize| {
            let port = u16::from_be_bytes(bytes.get(port..port + 2)?.try_into().ok()?);
            let octets: [u8; 16] = bytes.get(ip..ip + 16)?.try_into().ok()?;
            let ip = match *bytes.get(HEADER)? {
                INET => IpAddr::V4(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3])),
                INET6 => IpAddr::V6(Ipv6Addr::from(octets)),
                _ => return None,
            };
            Some(canonical(SocketAddr::new(ip, port)))
        };
        let ends = (end(HEADER + 4, HEADER + 8), end(HEADER + 6, HEADER + 24));
        let (Some(user), Some(inode)) = (number(HEADER + 64), number(HEADER + 68)) else {
            return Err(Errno::BADMSG);
        };
        let matches = ends == (Some(own), Some(other)) && inode != 0;
        Ok(matches.then_some(SocketInfo { user, inode: inode.into() }))
    }
}

/// Finds a socket in the tables of the kernel, which list all sockets.
#[cfg(target_os = "linux")]
mod table {
    use std::fs::File;
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    use super::{SocketInfo, canonical};

    /// The maximum number of bytes read from a table: about 400,000 sockets.
    const MAX_BYTES: u64 = 64 * 1024 * 1024;

    pub(super) fn socket(own: SocketAddr, other: SocketAddr) -> Option<SocketInfo> {
        // An IPv6 socket can be connected to an IPv4 address.
        ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|path| {
            let lines = BufReader::new(File::open(path).ok()?.take(MAX_BYTES)).lines();
            lines.map_while(Result::ok).find_map(|line| line_of(&line, own, other))
        })
    }

    /// Returns the socket of a line, if its addresses match and it is not closed.
    pub(super) fn line_of(line: &str, own: SocketAddr, other: SocketAddr) -> Option<SocketInfo> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let ends = (address(fields.next()?)?, address(fields.next()?)?);
        if ends != (own, other) {
            return None;
        }
        let user = fields.nth(4)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        (inode != 0).then_some(SocketInfo { user, inode })
    }

    /// Parses an address of hexadecimal words in native byte order.
    fn address(text: &str) -> Option<SocketAddr> {
        let (ip, port) = text.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
        let ip = match ip.len() {
            8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
            32 => {
                let words = [word(0)?, word(8)?, word(16)?, word(24)?];
                let octets: [u8; 16] = words.concat().try_into().ok()?;
                IpAddr::V6(Ipv6Addr::from(octets))
            }
            _ => return None,
        };
        Some(canonical(SocketAddr::new(ip, port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_and_root_are_the_owner() {
        let identity = |user, own, is_any| identity_of(user, own, || is_any);
        assert_eq!(identity(1000, 1000, true), Identity::Owner);
        assert_eq!(identity(0, 1000, false), Identity::Owner);
        assert_eq!(identity(0, 0, true), Identity::Owner);
        assert_eq!(identity(1001, 1000, false), Identity::User(1001));
        assert_eq!(identity(1000, 0, false), Identity::User(1000));
        assert_eq!(identity(65_534, 65_534, false), Identity::Owner);
        assert_eq!(identity(65_534, 65_534, true), Identity::Unknown, "it may stand for any user");
    }

    #[test]
    fn a_map_of_all_users_is_recognised() {
        assert!(maps_all("         0          0 4294967295\n"));
        for part in ["0 1000 1\n", "0 1000 1\n1 100000 65536\n", "", "0 0 4294967295\n0 0 1"] {
            assert!(!maps_all(part), "{part}");
        }
    }

    #[test]
    fn addresses_of_one_network_are_one_peer() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::1"));
        assert_ne!(of("2001:db8:1:3::4"), of("2001:db8:1:2::4"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[cfg(target_os = "linux")]
    mod linux {
        use std::net::{TcpListener, TcpStream};

        use super::super::*;

        fn pair(address: &str) -> (TcpStream, TcpStream) {
            let listener = TcpListener::bind(address).unwrap();
            let port = listener.local_addr().unwrap().port();
            let to = address.replace("[::]", "127.0.0.1").replace(":0", &format!(":{port}"));
            let client = TcpStream::connect(to).unwrap();
            let (server, _) = listener.accept().unwrap();
            (client, server)
        }

        fn ends(server: &TcpStream) -> (SocketAddr, SocketAddr) {
            (canonical(server.peer_addr().unwrap()), canonical(server.local_addr().unwrap()))
        }

        #[test]
        fn both_lookups_find_the_socket_of_the_peer() {
            for address in ["127.0.0.1:0", "[::]:0", "[::1]:0"] {
                // Machines without IPv6 support only the first.
                if TcpListener::bind(address).is_err() {
                    continue;
                }
                let (client, server) = pair(address);
                let (own, other) = ends(&server);
                let by_table = table::socket(own, other).unwrap();
                assert_eq!(by_table.user, nix::unistd::geteuid().as_raw());
                if let Ok(by_diag) = diag::socket(own, other) {
                    assert_eq!(by_diag, Some(by_table), "{address}");
                    assert_ne!(
                        diag::socket(other, own).unwrap(),
                        by_diag,
                        "the socket of the server is different"
                    );
                }
                drop(client);
                assert_eq!(table::socket(own, other), None, "a closed socket has no owner");
                assert!(!matches!(diag::socket(own, other), Ok(Some(_))), "{address}");
            }
        }

        #[test]
        fn a_listener_is_not_mistaken_for_the_peer() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let own = listener.local_addr().unwrap();
            let other = "127.0.0.1:9".parse().unwrap();
            assert!(!matches!(diag::socket(own, other), Ok(Some(_))));
            assert_eq!(table::socket(own, other), None);
        }

        #[test]
        fn invalid_replies_name_no_user() {
            let (own, other) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
            for length in 0..200 {
                for byte in [0, 2, 20, 255] {
                    assert!(!matches!(diag::parse_reply(&vec![byte; length], own, other), Ok(Some(_))));
                }
            }
            for line in [
                "",
                "0:",
                "0: 0100007F:0001 0100007F:0002 01 0:0 0:0 0 1000 0 0",
                "0: 0100007F:0001 0100007F:0002 01 0:0 0:0 0 x 0 7",
                "0: 0100007F:0001 0100007F:0003 01 0:0 0:0 0 1000 0 7",
                "0: 0100007F00:0001 0100007F:0002 01 0:0 0:0 0 1000 0 7",
                "0: \u{e4}100007F:0001 0100007F:0002 01 0:0 0:0 0 1000 0 7",
            ] {
                assert_eq!(table::line_of(line, own, other), None, "{line}");
            }
            let line = "0: 0100007F:0001 0100007F:0002 01 0:0 0:0 0 1000 0 7 1 0";
            assert_eq!(table::line_of(line, own, other), Some(SocketInfo { user: 1000, inode: 7 }));
        }
    }
}
