//! Installs npm packages into a cache with the package manager of the user.
//!
//! A package is installed into a directory of its version, which never changes afterwards. An installation has two
//! steps: the package manager resolves the versions into a lockfile, which is checked here, and then installs exactly
//! this lockfile. Lifecycle scripts never run. A directory appears under its name only when everything has been checked,
//! so an installation that is interrupted leaves nothing behind.
//!
//! The layout below the root:
//!
//! ```text
//! NAME@VERSION/            package.json, the lockfile and node_modules
//! .wanted/NAME@RANGE       the version that a range or tag had when it was last looked up
//! .lock                    held by the process that installs
//! ```

#![warn(missing_docs)]

mod check;
mod error;
mod install;
mod lock;
mod registry;
mod spec;

pub use error::Error;
pub use install::{Installed, Job, Limits, Order, Packages, Ran, Runner, Running, Tools};
pub use registry::{Host, MAX_SETTINGS_BYTES, Registries};
pub use spec::{Package, Source};
