//! Ports of this machine.
//!
//! A loopback address stands for a port of the machine. Its permission names `localhost`, because programs use the name and
//! the common addresses of both protocols for the same service. Other loopback addresses are services of their own.

use std::collections::HashSet;
use std::fs::{Metadata, metadata, read_dir, read_link};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use codewright_config::{Env, env};
use codewright_proxy::Target;
use codewright_workspace::listeners;

use super::connect::{own_sockets, sockets_in};

/// The name of this machine in permissions.
const LOCALHOST: &str = "localhost";
/// The port of a database whose address names none.
const DATABASE_PORT: u16 = 5432;
/// The number of sockets that are remembered.
const MAX_KNOWN: usize = 1024;
/// What the kernel adds to the path of a program whose file was removed.
const REMOVED: &str = " (deleted)";

/// A port of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port {
    name: String,
    /// The names under which rules may know it, at least one.
    spellings: Vec<String>,
    /// The addresses that a connection tries.
    addresses: Vec<SocketAddr>,
}

/// Who listens at a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Service {
    /// Nobody.
    Missing,
    /// This program: its server, another process of it, or the database of its sessions.
    OfProgram,
    /// Another program, at these addresses.
    Other(Vec<SocketAddr>),
}

/// The numbers of sockets that are known not to be of this program.
#[derive(Debug, Clone, Default)]
pub(super) struct Listening(Arc<Mutex<HashSet<u64>>>);

impl Port {
    /// The port that a target stands for. `None` for a target that is not this machine by its name or address.
    pub(crate) fn of(target: &Target) -> Option<Self> {
        let number = target.port();
        let common = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
        let ips = match target.address() {
            None if target.is_localhost() => common.to_vec(),
            Some(IpAddr::V4(ip)) if ip.is_unspecified() => vec![Ipv4Addr::LOCALHOST.into()],
            Some(IpAddr::V6(ip)) if ip.is_unspecified() => vec![Ipv6Addr::LOCALHOST.into()],
            Some(ip) if ip.is_loopback() => vec![ip],
            None | Some(_) => return None,
        };
        let is_common = ips.iter().all(|ip| common.contains(ip));
        let name = if is_common { format!("{LOCALHOST}:{number}") } else { target.to_string() };
        let mut spellings = vec![name.clone()];
        spellings.extend(Some(target.to_string()).filter(|spelled| *spelled != name));
        let addresses = ips.into_iter().map(|ip| SocketAddr::new(ip, number)).collect();
        Some(Self { name, spellings, addresses })
    }

    /// The pattern of its permission.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The names under which rules may know it.
    pub(super) fn spellings(&self) -> &[String] {
        &self.spellings
    }

    /// The host in the pattern.
    pub(super) fn host(&self) -> String {
        self.name.rsplit_once(':').map_or_else(String::new, |(host, _)| host.to_owned())
    }

    /// The number.
    pub(super) fn number(&self) -> u16 {
        self.addresses.first().map_or(0, SocketAddr::port)
    }

    /// Finds out who listens.
    ///
    /// # Errors
    ///
    /// Fails if the system does not tell.
    pub(super) async fn service(&self, variables: &Env, known: &Listening) -> io::Result<Service> {
        let is_database =
            database_ports(variables.filled(env::STORE).unwrap_or_default()).contains(&self.number());
        let (addresses, known) = (self.addresses.clone(), known.clone());
        let found = tokio::task::spawn_blocking(move || look(&addresses, &known)).await;
        Ok(match found.map_err(io::Error::other)?? {
            Service::Other(_) if is_database => Service::OfProgram,
            found => found,
        })
    }
}

fn look(addresses: &[SocketAddr], known: &Listening) -> io::Result<Service> {
    let (mut listening, mut sockets) = (Vec::new(), Vec::new());
    for address in addresses {
        let found = listeners(*address)?;
        if !found.is_empty() {
            listening.push(*address);
        }
        sockets.extend(found);
    }
    if listening.is_empty() {
        return Ok(Service::Missing);
    }
    let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    sockets.retain(|socket| !known.contains(socket));
    if !sockets.is_empty() {
        if is_of_program(&sockets)? {
            return Ok(Service::OfProgram);
        }
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.extend(sockets);
    }
    Ok(Service::Other(listening))
}

/// Whether one of the sockets belongs to this process or to another one of this program.
fn is_of_program(sockets: &[u64]) -> io::Result<bool> {
    if own_sockets()?.iter().any(|own| sockets.contains(own)) {
        return Ok(true);
    }
    let own = Program::of(Path::new("/proc/self"))?;
    for entry in read_dir("/proc")? {
        let process = entry?.path();
        // Processes end at any time, and those of other users show neither their program nor their sockets.
        let is_same = Program::of(&process).is_ok_and(|program| program.is(&own));
        if is_same && sockets_in(&process.join("fd"))?.iter().any(|socket| sockets.contains(socket)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The program of a process.
struct Program {
    file: Metadata,
    path: PathBuf,
}

impl Program {
    fn of(process: &Path) -> io::Result<Self> {
        let program = process.join("exe");
        Ok(Self { file: metadata(&program)?, path: read_link(program)? })
    }

    /// Whether this is the same file, or one of the same name: another version of the program.
    fn is(&self, other: &Self) -> bool {
        let identity = |program: &Self| (program.file.dev(), program.file.ino());
        identity(self) == identity(other) || self.name() == other.name()
    }

    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_suffix(REMOVED).unwrap_or(&name).to_owned()
    }
}

/// The ports of this machine in the address of a database.
fn database_ports(address: &str) -> Vec<u16> {
    let Some((_, rest)) = address.split_once("://") else { return Vec::new() };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    let port = |host: &str| {
        let target = Target::of_authority(host, Some(DATABASE_PORT)).ok()?;
        Port::of(&target).map(|port| port.number())
    };
    hosts.split(',').filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_spellings_of_a_port_have_one_name() {
        for (target, expected) in [
            ("localhost:80", Some(("localhost:80", &["localhost:80"][..], 2))),
            ("LOCALHOST.:80", Some(("localhost:80", &["localhost:80"], 2))),
            ("app.localhost:80", Some(("localhost:80", &["localhost:80", "app.localhost:80"], 2))),
            ("127.0.0.1:80", Some(("localhost:80", &["localhost:80", "127.0.0.1:80"], 1))),
            ("0x7f.1:80", Some(("localhost:80", &["localhost:80", "127.0.0.1:80"], 1))),
            ("[::1]:80", Some(("localhost:80", &["localhost:80", "[::1]:80"], 1))),
            ("[::ffff:127.0.0.1]:80", Some(("localhost:80", &["localhost:80", "127.0.0.1:80"], 1))),
            ("0.0.0.0:80", Some(("localhost:80", &["localhost:80", "0.0.0.0:80"], 1))),
            ("127.0.0.2:80", Some(("127.0.0.2:80", &["127.0.0.2:80"], 1))),
            ("10.0.0.1:80", None),
            ("[64:ff9b::7f00:1]:80", None),
            ("localhost.example:80", None),
        ] {
            let port = Port::of(&Target::of_authority(target, None).unwrap());
            let found = port.as_ref().map(|port| (port.name(), port.spellings(), port.addresses.len()));
            let expected = expected.map(|(name, spellings, count)| {
                let spellings: Vec<String> = spellings.iter().map(|name| (*name).to_owned()).collect();
                (name, spellings, count)
            });
            let expected = expected.as_ref().map(|(name, spellings, count)| (*name, &spellings[..], *count));
            assert_eq!(found, expected, "{target}");
        }
    }

    #[test]
    fn a_database_of_this_machine_has_its_port() {
        for (address, expected) in [
            ("", &[][..]),
            ("/var/lib/x.db", &[]),
            ("postgres://user:a%40b@localhost/db", &[5432]),
            ("postgres://127.0.0.1:6000,db.example:5432/x?sslmode=disable", &[6000]),
            ("postgresql://u@[::1]:7000", &[7000]),
            ("postgres://u@db.example:5432/x", &[]),
        ] {
            assert_eq!(database_ports(address), expected, "{address}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_port_of_this_process_is_one_of_the_program() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(look(&[address], &Listening::default()).unwrap(), Service::OfProgram);
        drop(listener);
        assert_eq!(look(&[address], &Listening::default()).unwrap(), Service::Missing);
    }
}
