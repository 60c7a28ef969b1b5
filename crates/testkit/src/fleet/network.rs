//! Networks of a fleet: each server in a network namespace of its own, as if it were a machine.
//!
//! There are three networks: one for clients and the model, one for the database, and one between the servers. Each is a
//! bridge, and each server has a cable to each. A cable that is pulled out loses everything silently: programs see no
//! error, and packets just do not arrive. Needs root and `ip` (package `iproute2`).

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// A network of the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Net {
    /// Clients and the model.
    Clients,
    /// The database.
    Database,
    /// The servers.
    Servers,
}

const NETS: [Net; 3] = [Net::Clients, Net::Database, Net::Servers];

/// The networks. They are deleted when this is dropped.
pub(super) struct Network {
    /// The beginning of all names, which are at most 15 bytes long.
    tag: String,
    /// The number of servers. The database is the machine after the last one.
    servers: usize,
}

impl Network {
    /// Creates the networks for some servers and a database.
    pub(super) fn new(servers: usize) -> Result<Self> {
        let network = Self { tag: format!("cw{}", std::process::id()), servers };
        for net in NETS {
            let bridge = network.bridge(net);
            ip(&format!("link add {bridge} type bridge"))?;
            ip(&format!("addr add {}/24 dev {bridge}", network.host(net)))?;
            ip(&format!("link set {bridge} up"))?;
        }
        for at in 0..=servers {
            let space = network.namespace(at);
            ip(&format!("netns add {space}"))?;
            ip(&format!("-n {space} link set lo up"))?;
            for net in NETS {
                let (cable, name) = (network.cable(net, at), format!("net{}", net as u8));
                ip(&format!("link add {cable} type veth peer name {name} netns {space}"))?;
                ip(&format!("link set {cable} up"))?;
                ip(&format!("-n {space} addr add {}/24 dev {name}", network.address(net, at)))?;
                ip(&format!("-n {space} link set {name} up"))?;
                network.cut(net, at, false)?;
            }
        }
        Ok(network)
    }

    /// The machine of the database.
    pub(super) fn database(&self) -> usize {
        self.servers
    }

    /// The namespace of a machine.
    pub(super) fn namespace(&self, at: usize) -> String {
        format!("{}-{at}", self.tag)
    }

    /// The address of a machine in a network.
    pub(super) fn address(&self, net: Net, at: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, net as u8, 10 + at as u8)
    }

    /// The address of this process in a network.
    pub(super) fn host(&self, net: Net) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, net as u8, 1)
    }

    /// Pulls out the cable of a machine, or plugs it in.
    pub(super) fn cut(&self, net: Net, at: usize, is_cut: bool) -> Result<()> {
        let cable = self.cable(net, at);
        if is_cut {
            ip(&format!("link set {cable} nomaster"))
        } else {
            ip(&format!("link set {cable} master {}", self.bridge(net)))
        }
    }

    fn bridge(&self, net: Net) -> String {
        format!("{}b{}", self.tag, net as u8)
    }

    fn cable(&self, net: Net, at: usize) -> String {
        format!("{}c{}{at}", self.tag, net as u8)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Whatever exists of them. A namespace takes its cables with it.
        for at in 0..=self.servers {
            drop(ip(&format!("netns del {}", self.namespace(at))));
        }
        for net in NETS {
            drop(ip(&format!("link del {}", self.bridge(net))));
        }
    }
}

/// Runs `ip` with words.
fn ip(words: &str) -> Result<()> {
    let done = Command::new("ip")
        .args(words.split(' '))
        .stdin(Stdio::null())
        .output()
        .context("cannot start `ip` (package `iproute2`)")?;
    ensure!(done.status.success(), "`ip {words}` failed: {}", String::from_utf8_lossy(&done.stderr).trim());
    Ok(())
}
