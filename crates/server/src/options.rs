//! Who may use a server, and how patient it is.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use crate::Error;

/// What is decided when a server starts.
#[derive(Clone)]
pub struct Options {
    /// The name that goes with the password.
    pub username: String,
    /// The password; without one, or with an empty one, everybody on this machine may come in.
    pub password: Option<String>,
    /// Origins of web pages that may use the server beside those of this machine.
    pub cors: Vec<String>,
    /// How often a stream or a waiting prompt shows that it lives.
    pub heartbeat: Duration,
    /// How long a request may take that is neither a stream nor a waiting prompt.
    pub deadline: Duration,
    /// How long the body of a request may take to arrive.
    pub body_deadline: Duration,
    /// The longest body of a request; prompts carry images.
    pub body_limit_bytes: usize,
    /// Changes that are finished even when their client has gone; whoever stops the server
    /// waits for them.
    pub tasks: TaskTracker,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            username: "opencode".to_owned(),
            password: None,
            cors: Vec::new(),
            heartbeat: Duration::from_secs(10),
            deadline: Duration::from_secs(60),
            body_deadline: Duration::from_secs(60),
            body_limit_bytes: 32 * 1024 * 1024,
            tasks: TaskTracker::new(),
        }
    }
}

impl Options {
    /// Whether a server with these options may listen on an address.
    ///
    /// Beyond loopback it may not without a password: whoever reaches it could run commands.
    pub fn check(&self, address: SocketAddr) -> Result<(), Error> {
        let alone = address.ip().to_canonical().is_loopback();
        if alone || self.password().is_some() { Ok(()) } else { Err(Error::Open { address }) }
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
    fn listening_beyond_loopback_takes_a_password() {
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
