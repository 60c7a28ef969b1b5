//! Starts commands in a sandbox, and the helper inside it.

use std::ffi::OsString;
use std::fmt;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use codewright_sandbox::{Launch, Mechanism, Probe, Sandbox, Strongest, detect, plan, restrict};

use super::Confinement;
use super::supervisor::{SUPERVISE, supervise};
use crate::Error;

/// The path of the running program, whatever its file is now.
const OWN: &str = "/proc/self/exe";
/// The argument that makes the helper end before a command, which proves that it can be started and what it can do.
const PROBE: &str = "probe";
/// The exit code if a command is not started because it cannot be restricted.
const NOT_RESTRICTED: u8 = 126;

/// A sandbox and the mechanism that enforces it.
#[derive(Debug, Clone)]
pub struct Confined {
    /// The access of the command.
    pub sandbox: Sandbox,
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The connections through the proxy, which ends with the last clone of this value.
    pub connections: Option<Arc<dyn Connections>>,
}

/// The connections of a command outside its sandbox.
pub trait Connections: fmt::Debug + Send + Sync {
    /// The hosts that were refused so far, in the order of the first attempt.
    fn refused(&self) -> Vec<RefusedHost>;
}

/// A host that a command could not reach, because it was not permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedHost {
    /// The host and port, as rules name them.
    pub host: String,
    /// The reason, as the second half of a sentence.
    pub reason: String,
    /// The rule that would allow it, unless another rule denies it.
    pub rule: Option<String>,
}

impl Confined {
    /// How the command's helper is started.
    pub(super) fn launch(&self, confinement: &Confinement, directory: &Path) -> Result<Launch, Error> {
        Ok(Launch::new(&self.sandbox, &self.mechanism, &helper(confinement)?, directory)?)
    }

    /// How the command's helper is started before the restrictions are known, if the mechanism permits it.
    pub(super) fn launch_early(&self, confinement: &Confinement) -> Result<Option<Launch>, Error> {
        Ok(Launch::waiting(&self.sandbox, &self.mechanism, &helper(confinement)?))
    }

    /// The restrictions for that helper. `None` if it must be started with them.
    pub(super) fn plan(&self, confinement: &Confinement, directory: &Path) -> Result<Option<Vec<u8>>, Error> {
        Ok(plan(&self.sandbox, &self.mechanism, &helper(confinement)?, directory)?)
    }
}

/// What this machine can enforce. The first call starts a process and waits for it, at most some seconds.
pub fn sandbox_support(confinement: &Confinement) -> &'static Probe {
    static SUPPORT: OnceLock<Probe> = OnceLock::new();
    SUPPORT.get_or_init(|| probe_sandbox(confinement, Strongest::Any))
}

/// Finds out what this machine can enforce. This starts a process and waits for it, at most some seconds.
#[must_use]
pub fn probe_sandbox(confinement: &Confinement, strongest: Strongest) -> Probe {
    match helper(confinement) {
        Ok(helper) => detect(&helper, PROBE, strongest),
        Err(error) => {
            Probe { mechanism: Mechanism::Nothing, reasons: vec![error.to_string()], in_container: false }
        }
    }
}

/// The helper's path by name, because other namespaces do not have this process.
fn helper(confinement: &Confinement) -> Result<PathBuf, Error> {
    match confinement {
        // Other systems restrict a process from outside, without a helper.
        Confinement::Group if cfg!(not(target_os = "linux")) => Ok(PathBuf::new()),
        Confinement::Group => Err(unsupervised()),
        Confinement::Supervisor(path) if path != Path::new(OWN) => Ok(path.clone()),
        Confinement::Supervisor(_) => {
            let at = |source| Error::at(Path::new(OWN), source);
            let path = std::env::current_exe().map_err(at)?;
            let running = std::fs::metadata(OWN).map_err(at)?;
            match std::fs::metadata(&path) {
                Ok(file) if (file.dev(), file.ino()) == (running.dev(), running.ino()) => Ok(path),
                _ => Err(codewright_sandbox::Error::Replaced(path).into()),
            }
        }
    }
}

fn unsupervised() -> Error {
    codewright_sandbox::Error::Unsupported("commands have no supervisor".to_owned()).into()
}

/// Restricts this process and then supervises a command: the restrictions, [`crate::SUPERVISE`], and its arguments.
#[must_use]
pub fn confine(args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut args = args.peekable();
    if args.peek().is_some_and(|first| first == PROBE) {
        return ExitCode::SUCCESS;
    }
    // A command must not take over its supervisor, which ends it.
    super::deny_tracing();
    match restrict(&mut args) {
        Ok(()) => match args.next() {
            Some(first) if first == SUPERVISE => supervise(args),
            Some(first) if first == PROBE => ExitCode::SUCCESS,
            Some(_) | None => ExitCode::FAILURE,
        },
        Err(error) => {
            // Stderr may be closed.
            drop(writeln!(std::io::stderr(), "the command was not started: {error}"));
            ExitCode::from(NOT_RESTRICTED)
        }
    }
}
