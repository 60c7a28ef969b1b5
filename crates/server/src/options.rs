//! The options of a server: access, deadlines and limits.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use codewright_engine::{Engine, Instance};
use codewright_proto::BugReport;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{Auth, Error};

/// Who may read a route about the server itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Those who may use the server.
    #[default]
    Guarded,
    /// Everyone who can connect.
    Open,
}

/// Writes the report of a problem about the engine and a directory. The text contains none of the given secrets.
pub type Reporter = Arc<dyn Fn(Engine, Arc<Instance>, Vec<String>) -> Reporting + Send + Sync>;
/// The report that is being written.
pub type Reporting = Pin<Box<dyn Future<Output = BugReport> + Send>>;

/// The options of a server.
#[derive(Clone)]
pub struct Options {
    /// The user name for the password.
    pub username: String,
    /// The password. If it is missing or empty, only the user that runs the server may use it, from this machine.
    pub password: Option<String>,
    /// Origins of web pages that may use the server in addition to those of this machine.
    pub cors: Vec<String>,
    /// The users, if the server has several. Then there is no password.
    pub auth: Option<Arc<Auth>>,
    /// The metrics, if they are served.
    pub metrics: Option<Access>,
    /// The file that keeps the sign-ins of browsers over a restart.
    pub sign_ins: Option<PathBuf>,
    /// Who may read `/global/health` and `/global/ready`.
    pub probes: Access,
    /// Writes reports of problems. Without it the route is not supported.
    pub report: Option<Reporter>,
    /// The interval of heartbeats on streams and waiting prompts.
    pub heartbeat: Duration,
    /// The deadline of a short request: one that is not a stream and waits neither for a model nor for a user.
    pub deadline: Duration,
    /// The deadline for receiving the body of a request.
    pub body_deadline: Duration,
    /// The maximum length of a request body. Prompts contain images.
    pub body_limit_bytes: usize,
    /// Changes that run to completion even if their client disconnects. They must be awaited before the program ends.
    pub tasks: TaskTracker,
    /// Ends the tasks that run as long as the server does.
    pub closing: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            username: "opencode".to_owned(),
            password: None,
            cors: Vec::new(),
            auth: None,
            metrics: None,
            sign_ins: None,
            probes: Access::Guarded,
            report: None,
            heartbeat: Duration::from_secs(10),
            deadline: Duration::from_secs(60),
            body_deadline: Duration::from_secs(60),
            body_limit_bytes: 32 * 1024 * 1024,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }
}

impl Options {
    /// Checks whether a server with these options may listen on an address.
    ///
    /// # Errors
    ///
    /// Fails for non-loopback addresses without a password, because every machine in the network could run commands.
    pub fn check(&self, address: SocketAddr) -> Result<(), Error> {
        let is_local = address.ip().to_canonical().is_loopback();
        if is_local || self.password().is_some() || self.auth.is_some() {
            Ok(())
        } else {
            Err(Error::Open { address })
        }
    }

    /// Whether everyone who can connect may read a path.
    pub(crate) fn is_open(&self, path: &str) -> bool {
        match path {
            "/metrics" => self.metrics == Some(Access::Open),
            "/global/health" | "/global/ready" => self.probes == Access::Open,
            _ => false,
        }
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref().filter(|password| !password.is_empty())
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("username", &self.username)
            .field("password", &self.password().map(|_| "…"))
            .field("cors", &self.cors)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, password: Option<&str>, allowed: bool) {
        let options = Options { password: password.map(str::to_owned), ..Options::default() };
        assert_eq!(options.check(address.parse().unwrap()).is_ok(), allowed, "{address} {password:?}");
    }

    #[test]
    fn a_non_loopback_address_requires_a_password() {
        check("127.0.0.1:4096", None, true);
        check("127.0.0.2:4096", None, true);
        check("[::1]:4096", None, true);
        check("[::ffff:127.0.0.1]:4096", None, true);
        check("0.0.0.0:4096", None, false);
        check("[::]:4096", None, false);
        check("192.168.1.2:4096", Some(""), false);
        check("192.168.1.2:4096", Some("secret"), true);
    }

    #[test]
    fn the_password_is_not_printed() {
        let options = Options { password: Some("hunter2".to_owned()), ..Options::default() };
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
