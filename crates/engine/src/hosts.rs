//! The hosts that the commands of a sandbox may reach.
//!
//! Each command with a network has its own proxy, so every connection belongs to exactly one call. A host is judged
//! in this order:
//!
//! 1. A loopback address is a port of this machine. If nothing listens there, the connection is closed as without a
//!    sandbox. A port of this program is refused. Others need a rule, an approval or a reply with exactly the port.
//! 2. The address of a private network needs a rule of the user that names exactly this host and port. Nobody is asked.
//! 3. The rules and approvals of the permission `network` decide about `host:port`. If they ask, the user is asked, and
//!    all connections of the command to this host wait for the same reply.
//! 4. Only then the name is resolved. None of its addresses may be in a private network or of this machine, and the connection uses these
//!    addresses, so the name cannot lead elsewhere later.

mod connect;
mod fixed;
mod judge;
mod origin;
mod port;
mod question;
mod socket;
pub(crate) mod table;

use std::fmt;
use std::sync::Arc;

use codewright_config::NetworkAccess;
use codewright_proxy::{Connecting, Outside, Proxy, Refusal, RefusalKind, Stream, Target};
use codewright_workspace::{Connections, Network, RefusedHost};
use tokio_util::sync::DropGuard;

use crate::sandbox::Restricted;
pub(crate) use fixed::{FixedHost, only};
use judge::Reach;
pub use judge::names_private_host;
use origin::Reason;
pub(crate) use origin::{Origin, User};
pub(crate) use port::Port;
use port::{Listening, Service};
use question::{Destination, Questions};
use socket::new_socket;

impl Origin {
    /// Gives the command of a sandbox its proxy, if the configuration says so and the mechanism can isolate the network.
    ///
    /// # Errors
    ///
    /// Fails if the proxy cannot be started. The command must then not run.
    pub(crate) fn connect(self, restricted: Restricted) -> Result<Restricted, String> {
        let is_complete = restricted.confined.mechanism.is_complete();
        let is_open = restricted.confined.sandbox.network == Network::Open;
        if self.instance.sandbox.network != NetworkAccess::Proxy || is_open || !is_complete {
            return Ok(restricted);
        }
        let hosts =
            self.start().map_err(|error| format!("The network proxy could not be started: {error}"))?;
        let mut confined = Arc::unwrap_or_clone(restricted.confined);
        confined.sandbox.network = Network::Proxy(hosts.proxy.socket().to_owned());
        confined.connections = Some(Arc::new(hosts));
        Ok(Restricted { confined: Arc::new(confined), ..restricted })
    }

    fn start(self) -> std::io::Result<Hosts> {
        let socket = new_socket(&self.inner)?;
        let cancel = self.inner.cancel.child_token();
        let shared = self.inner.hosts.shared.clone();
        let questions = Questions::new(cancel.clone());
        let gateway = Arc::new(Gateway { questions, origin: self, listening: Listening::default() });
        let proxy = Proxy::start(socket, Arc::clone(&gateway) as Arc<dyn Outside>, &shared)?;
        Ok(Hosts { proxy, gateway, _end: cancel.drop_guard() })
    }
}

/// The proxy of one command. It ends with this value, and open questions are withdrawn.
struct Hosts {
    proxy: Proxy,
    gateway: Arc<Gateway>,
    _end: DropGuard,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("proxy", &self.proxy).finish_non_exhaustive()
    }
}

impl Connections for Hosts {
    fn refused(&self) -> Vec<RefusedHost> {
        self.gateway.questions.refused()
    }
}

/// Judges the targets of one command and connects to them.
struct Gateway {
    origin: Origin,
    questions: Questions,
    listening: Listening,
}

impl Outside for Gateway {
    fn connect(&self, target: Target) -> Connecting<'_> {
        Box::pin(async move {
            if let Some(port) = Port::of(&target) {
                return self.connect_to_port(&port).await;
            }
            let host = target.to_string();
            let reach = judge::reach(&self.origin.rules, &target);
            if judge::is_private(&target) && reach == Reach::Internet {
                return Err(self.refuse(&host, Reason::Private));
            }
            self.questions
                .permit(&self.origin, &Destination::host(&target))
                .await
                .map_err(|reason| self.refuse(&host, reason))?;
            match connect::addresses(&*self.origin.inner.web, &target, reach).await? {
                Some(addresses) => connect::connect(&addresses).await,
                None => Err(self.refuse(&host, Reason::Private)),
            }
        })
    }
}

impl Gateway {
    /// Connects to a port of this machine, if something else than this program listens there and that is permitted.
    async fn connect_to_port(&self, port: &Port) -> Result<Box<dyn Stream>, Refusal> {
        let addresses = match port.service(&self.origin.inner.env, &self.listening).await {
            Ok(Service::Other(addresses)) => addresses,
            Ok(Service::Missing) => {
                let message = format!("Nothing listens on {} of this machine.", port.name());
                return Err(Refusal::new(RefusalKind::Closed, message));
            }
            Ok(Service::OfProgram) => return Err(self.refuse(port.name(), Reason::OfProgram)),
            // Without the list of the system it is not known whose port this is.
            Err(_) => return Err(self.refuse(port.name(), Reason::Private)),
        };
        self.questions
            .permit(&self.origin, &Destination::port(port))
            .await
            .map_err(|reason| self.refuse(port.name(), reason))?;
        connect::connect(&addresses).await
    }

    fn refuse(&self, host: &str, reason: Reason) -> Refusal {
        let refused = reason.of(host);
        let mut message =
            format!("The sandbox refused the connection to {}: {}.", refused.host, refused.reason);
        if let Some(rule) = &refused.rule {
            message += &format!(" This rule in the configuration allows it: {rule}");
        }
        self.questions.note(refused);
        Refusal::new(RefusalKind::Forbidden, message)
    }
}
