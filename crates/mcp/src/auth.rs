//! Sign-ins to remote servers with OAuth 2.1.
//!
//! The protocol is the SDK's: discovery, registration of a client, PKCE and the checks of issuer, resource and state. This
//! module decides which requests it may send, and turns its errors into one sentence. It stores nothing: the program
//! keeps the [`Grant`] and calls [`renew`] before it expires.

mod begin;
mod grant;
mod guard;
mod reason;
mod renew;

pub use begin::{Discovered, Pending, SignInRequest, begin, discover, needs_registration};
pub use grant::Grant;
pub use guard::{MAX_BODY_BYTES, Web, is_loopback, is_secure};
pub use renew::{RenewError, renew};
