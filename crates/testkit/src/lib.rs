//! Helpers for tests of the built program: a temporary project, a process with a deadline, a scripted model.
//!
//! A [`Project`] is a temporary directory with its own home, so that no test reads the user's configuration. A
//! [`Run`] runs the program in it and kills it at a deadline. The scripted model is re-exported;
//! [`BlockingServer`] is for tests without a runtime.
//!
//! The larger modules are test suites that both the tests of `codewright` (in a short form) and `cargo xtask`
//! (in a long form) run: recorded sessions ([`contract`]), hostile repositories ([`attack`]) and commands
//! ([`Hang`]), random requests ([`Fuzz`]), kills ([`Crash`]), broken servers on one
//! database ([`Fleet`]), attempts to leave the sandbox, and
//! ordinary work in it ([`Work`]).
//!
//! ```no_run
//! # fn example() -> anyhow::Result<()> {
//! use codewright_testkit::{BlockingServer, Project, Run, Script};
//!
//! let server = BlockingServer::start(Script::new().text("Hello"))?;
//! let project = Project::git()?;
//! project.configure(&server.url())?;
//! // In the binary's own tests: env!("CARGO_BIN_EXE_codewright").
//! let done = Run::new("/path/to/codewright", &project).args(["run", "Hi"]).finish()?.success()?;
//! assert!(done.stdout.contains("Hello"));
//! assert!(server.problems().is_empty());
//! # Ok(())
//! # }
//! ```

pub mod attack;
mod blocking;
#[cfg(target_os = "linux")]
mod breakout;
pub mod contract;
mod crash;
pub mod escape;
mod file_server;
mod fleet;
mod fuzz;
mod hang;
mod postgres;
mod project;
mod run;
mod stores;
mod terminal;
mod work;

pub use blocking::BlockingServer;
#[cfg(target_os = "linux")]
pub use breakout::{Breakout, BreakoutReport};
pub use codewright_scripted::*;
pub use crash::{Crash, CrashReport};
pub use file_server::FileServer;
pub use fleet::{Fleet, FleetReport, percentile};
pub use fuzz::{Fuzz, FuzzReport};
pub use hang::{Hang, HangReport};
pub use postgres::Postgres;
pub use project::Project;
pub use run::{Finished, Run, Running};
pub use stores::is_default_store;
pub use terminal::{Terminal, TerminalOptions};
pub use work::{Work, WorkMechanism, WorkOutcome, WorkReport, WorkRows};
