//! A proxy for a program of this program, which reaches fixed hosts and asks nobody.

use std::sync::{Arc, Mutex, PoisonError};

use codewright_proxy::{Connecting, Outside, Proxy, Refusal, RefusalKind, Target};
use codewright_tools::Web;
use codewright_workspace::{Confined, Connections, Network, RefusedHost};

use super::connect;
use super::judge::{Reach, is_private};
use super::socket::new_socket;
use crate::inner::Inner;

/// The largest number of refused hosts that are kept.
const MAX_REFUSED: usize = 32;

/// A host that the program may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FixedHost {
    pub(crate) name: String,
    pub(crate) port: u16,
    /// Whether the user named it, so that it may be in a private network.
    pub(crate) is_configured: bool,
}

/// Gives a sandbox a proxy to these hosts and no others.
///
/// # Errors
///
/// Fails with a sentence if the proxy cannot be started. The program must then not run.
pub(crate) fn only(inner: &Inner, hosts: &[FixedHost], mut confined: Confined) -> Result<Confined, String> {
    let targets = hosts.iter().filter_map(|host| {
        let target = Target::new(&host.name, host.port).ok()?;
        Some((target, if host.is_configured { Reach::Anywhere } else { Reach::Internet }))
    });
    let gateway = Arc::new(Gateway {
        targets: targets.collect(),
        web: Arc::clone(&inner.web),
        refused: Mutex::default(),
    });
    let proxy = new_socket(inner)
        .and_then(|socket| {
            Proxy::start(socket, Arc::clone(&gateway) as Arc<dyn Outside>, &inner.hosts.shared)
        })
        .map_err(|error| format!("The network proxy could not be started: {error}"))?;
    confined.sandbox.network = Network::Proxy(proxy.socket().to_owned());
    confined.connections = Some(Arc::new(Fixed { _proxy: proxy, gateway }));
    Ok(confined)
}

/// The connections of one program.
struct Fixed {
    _proxy: Proxy,
    gateway: Arc<Gateway>,
}

impl std::fmt::Debug for Fixed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fixed").field("targets", &self.gateway.targets).finish_non_exhaustive()
    }
}

impl Connections for Fixed {
    fn refused(&self) -> Vec<RefusedHost> {
        self.gateway.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Gateway {
    targets: Vec<(Target, Reach)>,
    web: Arc<dyn Web>,
    refused: Mutex<Vec<RefusedHost>>,
}

impl Gateway {
    fn refuse(&self, target: &Target, reason: &str) -> Refusal {
        let host = target.to_string();
        let message = format!("The sandbox refused the connection to {host}: {reason}.");
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < MAX_REFUSED && !refused.iter().any(|known| known.host == host) {
            refused.push(RefusedHost { host, reason: reason.to_owned(), rule: None });
        }
        Refusal::new(RefusalKind::Forbidden, message)
    }
}

impl Outside for Gateway {
    fn connect(&self, target: Target) -> Connecting<'_> {
        Box::pin(async move {
            let Some((_, reach)) = self.targets.iter().find(|(known, _)| *known == target) else {
                return Err(self.refuse(&target, "it is not a host of a configured registry"));
            };
            let private = "it is this machine or in a private network";
            if is_private(&target) && *reach == Reach::Internet {
                return Err(self.refuse(&target, private));
            }
            match connect::addresses(&*self.web, &target, *reach).await? {
                Some(addresses) => connect::connect(&addresses).await,
                None => Err(self.refuse(&target, private)),
            }
        })
    }
}
