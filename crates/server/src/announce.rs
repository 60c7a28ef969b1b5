//! The server under a name of the local network (mDNS), for clients that look for one.
//!
//! What is announced is the service `opencode-PORT` of the kind `_http._tcp`, at a host name that the
//! operator chose. It is told for as long as the value is held and taken back at the end; both need
//! one thread, which is there only then.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};
use tokio::time::timeout;

use crate::Error;

/// What clients look for.
const KIND: &str = "_http._tcp.local.";
/// Where the server's root is, as clients read it.
const PROPERTIES: [(&str, &str); 1] = [("path", "/")];
/// How the name of a host of the local network ends.
const LOCAL: &str = ".local";
/// The longest part of a host name.
const MAX_LABEL_BYTES: usize = 63;
/// The longest host name.
const MAX_DOMAIN_BYTES: usize = 253;
/// How long taking the name back may take, and ending the thread after it.
const WITHDRAW_DEADLINE: Duration = Duration::from_secs(1);

/// A server that is announced.
pub struct Announcement {
    daemon: ServiceDaemon,
    name: String,
}

impl Announcement {
    /// Announces a server that listens on an address beyond this machine.
    pub fn begin(address: SocketAddr, domain: &str) -> Result<Self, Error> {
        let host = host(domain).ok_or_else(|| Error::Domain { domain: domain.to_owned() })?;
        Self::try_begin(address, &host).map_err(Error::Announce)
    }

    fn try_begin(address: SocketAddr, host: &str) -> mdns_sd::Result<Self> {
        let name = format!("opencode-{}", address.port());
        let ip = address.ip().to_canonical();
        let own = if ip.is_unspecified() { String::new() } else { ip.to_string() };
        let service = ServiceInfo::new(KIND, &name, host, own.as_str(), address.port(), &PROPERTIES[..])?;
        let service = if ip.is_unspecified() { service.enable_addr_auto() } else { service };
        let name = service.get_fullname().to_owned();
        let announced = Self { daemon: ServiceDaemon::new()?, name };
        // Nobody is told an address that does not answer.
        match ip {
            IpAddr::V4(ip) if ip.is_unspecified() => announced.daemon.disable_interface(IfKind::IPv6)?,
            ip if ip.is_unspecified() => {}
            ip => {
                announced.daemon.disable_interface(IfKind::All)?;
                announced.daemon.enable_interface(IfKind::Addr(ip))?;
            }
        }
        announced.daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?;
        announced.daemon.register(service)?;
        Ok(announced)
    }

    /// Tells the network that the server is gone.
    pub async fn withdraw(self) {
        if let Ok(withdrawn) = self.daemon.unregister(&self.name) {
            // Who is not told forgets the name by itself two minutes later.
            drop(timeout(WITHDRAW_DEADLINE, withdrawn.recv_async()).await);
        }
        if let Ok(ended) = self.daemon.shutdown() {
            drop(timeout(WITHDRAW_DEADLINE, ended.recv_async()).await);
        }
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // The thread ends by itself; whoever can wait has called `withdraw`.
        drop(self.daemon.shutdown());
    }
}

/// The addresses under which others reach a server that listens on all of this machine's.
#[must_use]
pub fn addresses() -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let others = interfaces.into_iter().filter(|interface| !interface.is_loopback());
    others.map(|interface| interface.ip()).filter(IpAddr::is_ipv4).collect()
}

/// The host name as the network knows it, if it is one.
fn host(domain: &str) -> Option<String> {
    let domain = domain.strip_suffix('.').unwrap_or(domain).to_ascii_lowercase();
    let is_label = |label: &str| {
        let letters = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (1..=MAX_LABEL_BYTES).contains(&label.len()) && letters && !label.starts_with('-')
    };
    let is_name = domain.len() <= MAX_DOMAIN_BYTES && domain.split('.').all(is_label);
    (is_name && domain.ends_with(LOCAL)).then(|| format!("{domain}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_the_local_network_ends_with_local() {
        for (domain, expected) in [
            ("opencode.local", Some("opencode.local.")),
            ("Opencode.Local.", Some("opencode.local.")),
            ("my-machine.office.local", Some("my-machine.office.local.")),
            ("", None),
            ("local", None),
            (".local", None),
            ("opencode", None),
            ("opencode.example.org", None),
            ("two words.local", None),
            ("-x.local", None),
            ("a..local", None),
            ("\u{e4}.local", None),
        ] {
            assert_eq!(host(domain).as_deref(), expected, "{domain}");
        }
        assert_eq!(host(&format!("{}.local", "a".repeat(64))), None);
    }
}
