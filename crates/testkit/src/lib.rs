//! What tests share: the scripted model, a temporary project and the built
//! binary.
//!
//! A [`Project`] is a directory with a home of its own, so that no test sees
//! the tester's configuration or leaves anything behind. A [`Run`] is the
//! program in it, and ends by its deadline whatever the program does. The
//! scripted model is re-exported whole; [`BlockingServer`] is for tests without
//! a runtime.
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
pub mod contract;
mod crash;
pub mod escape;
mod fuzz;
mod hang;
mod project;
mod run;
mod terminal;

pub use blocking::BlockingServer;
pub use codewright_scripted::*;
pub use crash::{Crash, Found};
pub use fuzz::{Fuzz, Fuzzed};
pub use hang::{Hang, Hung};
pub use project::Project;
pub use run::{Finished, Run, Running};
pub use terminal::{Staged, Terminal};
