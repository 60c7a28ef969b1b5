//! The HTTP server: the API of the engine over HTTP and server-sent events.
//!
//! A route consists of extractors, one call of the engine and the reply. The checks that apply to
//! all routes are in `guard`. Paths, schemas and statuses are those of the OpenCode 1.18.33 API,
//! so that its clients work unchanged.

mod announce;
mod attempts;
mod auth;
mod compress;
mod directories;
mod document;
mod error;
mod extract;
mod frame;
mod guard;
mod host;
mod limit;
mod metrics;
mod nodes;
mod options;
mod origin;
mod peer;
mod plugins;
mod ready;
mod route;
mod serve;
mod sign_ins;
mod state;
mod stream;
mod trace;
mod v2;

pub use announce::{Announcement, addresses};
pub use auth::{Auth, new_token};
pub use error::Error;
pub use limit::raise_file_limit;
pub use options::{Access, Options, Reporter, Reporting};
pub use route::{router, routes};
pub use serve::{Listener, serve};
