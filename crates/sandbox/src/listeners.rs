//! The sockets of a network namespace that accept TCP connections.
//!
//! The kernel lists those that listen before all others, so the list is read in small pieces and only as far as needed: the
//! rest can be long.

use std::io::{BufRead as _, BufReader, Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The lists for both versions of the protocol.
const LISTS: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
/// The size of one read. A line is not shorter, so the kernel looks for one socket at a time.
const READ_BYTES: usize = 128;
/// The state of a socket that listens.
const LISTENS: &str = "0A";
/// The place of a socket's number in a line.
const NUMBER: usize = 9;

/// Returns the numbers of the sockets in the network namespace of this process that accept connections to an address.
/// A socket of version 6 that is bound to all addresses counts for version 4, too.
///
/// # Errors
///
/// Fails if the system has no such list.
pub fn listeners(address: SocketAddr) -> Result<Vec<u64>, Error> {
    let mut found = Vec::new();
    let mut lists = 0;
    for list in LISTS {
        // A machine without version 6 has no second list.
        let Ok(file) = std::fs::File::open(list) else { continue };
        lists += 1;
        for line in BufReader::with_capacity(READ_BYTES, file).lines().skip(1) {
            match socket(&line?) {
                Some(Some((local, number))) if accepts(local, address) => found.push(number),
                Some(_) => {}
                None => break,
            }
        }
    }
    if lists == 0 { Err(ErrorKind::Unsupported.into()) } else { Ok(found) }
}

/// The address and the number of a socket that listens. `None` for the first one that does not.
fn socket(line: &str) -> Option<Option<(SocketAddr, u64)>> {
    let fields: Vec<&str> = line.split_ascii_whitespace().take(NUMBER + 1).collect();
    if fields.get(3) != Some(&LISTENS) {
        return None;
    }
    let number = fields.get(NUMBER).and_then(|number| number.parse().ok());
    Some(fields.get(1).and_then(|local| local_address(local)).zip(number))
}

/// The address in a line: words of four bytes in the order of the processor, and the port.
fn local_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let words: Option<Vec<[u8; 4]>> = (0..address.len() / 8)
        .map(|word| u32::from_str_radix(address.get(8 * word..8 * (word + 1))?, 16).ok())
        .map(|word| word.map(u32::to_ne_bytes))
        .collect();
    let bytes = words?.concat();
    let address: IpAddr = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(bytes) => Ipv4Addr::from(bytes).into(),
        Err(_) => Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?).into(),
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

/// Whether a socket at a local address accepts connections to another address.
fn accepts(local: SocketAddr, address: SocketAddr) -> bool {
    let (bound, wanted) = (local.ip().to_canonical(), address.ip().to_canonical());
    let is_any = bound.is_unspecified() && (bound.is_ipv6() || wanted.is_ipv4());
    local.port() == address.port() && (bound == wanted || is_any)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_socket_accepts_what_its_address_covers() {
        for (local, address, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("127.0.0.1:80", "[::1]:80", false),
            ("127.0.0.1:80", "[::ffff:127.0.0.1]:80", true),
            ("0.0.0.0:80", "127.0.0.2:80", true),
            ("0.0.0.0:80", "[::1]:80", false),
            ("[::]:80", "[::1]:80", true),
            ("[::]:80", "127.0.0.1:80", true),
            ("[::1]:80", "127.0.0.1:80", false),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80", true),
        ] {
            assert_eq!(
                accepts(local.parse().unwrap(), address.parse().unwrap()),
                expected,
                "{local} {address}"
            );
        }
    }

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0 0 10 0";
        assert_eq!(socket(line), Some(Some(("127.0.0.1:8080".parse().unwrap(), 4242))));
        let line = "   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 7 1";
        assert_eq!(socket(line), Some(Some(("[::1]:80".parse().unwrap(), 7))));
        assert_eq!(socket(&line.replace(" 0A ", " 01 ")), None);
        for line in ["", "0: 1", "0: x y 0A 0 0 0 0 0 1"] {
            assert!(socket(line).is_none_or(|found| found.is_none()), "{line}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_listener_is_found_until_it_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(listeners(address).unwrap().len(), 1);
        let _client = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(listeners(address).unwrap().len(), 1);
        drop(listener);
        assert!(listeners(address).unwrap().is_empty());
    }
}
