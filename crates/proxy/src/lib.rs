//! A proxy through which the programs of a sandbox reach permitted hosts.
//!
//! The proxy listens on a unix socket and understands HTTP (`CONNECT` and requests with a whole URL) and SOCKS5
//! (`CONNECT`). It guarantees:
//!
//! - Every byte that leaves was sent to a [`Target`] for which [`Outside::connect`] returned a stream. Each request on
//!   a connection is judged separately, and names are neither resolved nor connected to here.
//! - A [`Target`] has one spelling, so that a rule for a host cannot be avoided by writing its name differently.
//! - Requests and responses are parsed and written again, so both sides agree on where a message ends.
//! - Connections, heads and waiting times are limited. Bodies are not, but are never held in memory as a whole.

mod activity;
mod http1;
mod listener;
mod socks;
mod target;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

pub use listener::{MAX_CONNECTIONS, Proxy, Shared};
pub use target::{BadTarget, Target};

/// The time for the head of a request, and for the whole negotiation of SOCKS.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// The time without a byte in either direction after which a connection is closed. It is longer than a user may take
/// to reply.
const IDLE_DEADLINE: Duration = Duration::from_secs(15 * 60);

/// The limits of waiting.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// The time for the head of a request, and for the whole negotiation of SOCKS.
    pub head: Duration,
    /// The time without a byte in either direction.
    pub idle: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { head: HEAD_DEADLINE, idle: IDLE_DEADLINE }
    }
}

/// Judges targets and connects to them.
pub trait Outside: Send + Sync + 'static {
    /// Connects to a target if that is permitted. This may wait for a user. The caller may drop the future.
    fn connect(&self, target: Target) -> Connecting<'_>;
}

/// The future of a connection.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn Stream>, Refusal>> + Send + 'a>>;

/// A connection to a host.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The reason why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind, which decides about the status.
    pub kind: RefusalKind,
    /// One line for the program and its user.
    pub message: String,
}

/// The kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// It is not permitted.
    Forbidden,
    /// The name has no address, or the host cannot be reached.
    Unreachable,
    /// The host refused the connection.
    Closed,
    /// The host did not answer in time.
    TimedOut,
    /// Too many connections are open.
    Busy,
}

impl Refusal {
    /// A refusal with a message of one line.
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
