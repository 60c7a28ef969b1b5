//! The announcement of a server in the local network by mDNS, so that clients can discover it.
//!
//! The service is `opencode-PORT` of the type `_http._tcp`, with a host name that the operator
//! chooses. It is announced until the [`Announcement`] is withdrawn or dropped. Until then a thread
//! answers the queries of the network.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};
use tokio::time::timeout;

use crate::Error;

/// The service type that clients search for.
const KIND: &str = "_http._tcp.local.";
/// The properties of the service: the path of the API.
const PROPERTIES: [(&str, &str); 1] = [("path", "/")];
/// The suffix of host names in the local network.
const LOCAL: &str = ".local";
/// The maximum length of a label of a host name.
const MAX_LABEL_BYTES: usize = 63;
/// The maximum length of a host name.
const MAX_DOMAIN_BYTES: usize = 253;
/// The deadline for withdrawing the announcement, and again for ending the thread.
const WITHDRAW_DEADLINE: Duration = Duration::from_secs(1);

/// An announced server.
pub struct Announcement {
    daemon: ServiceDaemon,
    name: String,
}

impl Announcement {
    /// Announces a server that listens on a non-loopback address.
    ///
    /// # Errors
    ///
    /// Fails if `domain` is not a host name of the local network, or if mDNS does not start.
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
        let announcement = Self { daemon: ServiceDaemon::new()?, name };
        // Only announce addresses that the server listens on.
        match ip {
            IpAddr::V4(ip) if ip.is_unspecified() => announcement.daemon.disable_interface(IfKind::IPv6)?,
            ip if ip.is_unspecified() => {}
            ip => {
                announcement.daemon.disable_interface(IfKind::All)?;
                announcement.daemon.enable_interface(IfKind::Addr(ip))?;
            }
        }
        announcement.daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?;
        announcement.daemon.register(service)?;
        Ok(announcement)
    }

    /// Withdraws the announcement.
    pub async fn withdraw(self) {
        if let Ok(withdrawn) = self.daemon.unregister(&self.name) {
            // A client that misses the withdrawal forgets the name after two minutes.
            drop(timeout(WITHDRAW_DEADLINE, withdrawn.recv_async()).await);
        }
        if let Ok(ended) = self.daemon.shutdown() {
            drop(timeout(WITHDRAW_DEADLINE, ended.recv_async()).await);
        }
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // The thread ends in the background. A caller that can wait has called `withdraw`.
        drop(self.daemon.shutdown());
    }
}

/// Returns the IPv4 addresses at which other machines reach a server that listens on all interfaces.
#[must_use]
pub fn addresses() -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let others = interfaces.into_iter().filter(|interface| !interface.is_loopback());
    others.map(|interface| interface.ip()).filter(IpAddr::is_ipv4).collect()
}

/// Returns the fully qualified host name, or `None` if `domain` is not a host name of the local network.
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
    fn a_host_name_of_the_local_network_ends_with_local() {
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
