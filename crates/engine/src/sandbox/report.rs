//! The state of the sandbox for users, and a command to try it.

use std::sync::Arc;
use std::time::Duration;

use codewright_config::{NetworkAccess, SandboxMode};
use codewright_proto::SessionId;
use codewright_tools::Environment;
use codewright_workspace::{Author, Command, Ended, Limits, Output, Probe};
use tokio_util::sync::CancellationToken;

use super::Subject;
use super::enforcement::{Consent, Enforcement, Outer, has_outer, mode};
use super::masked::masked;
use crate::Error;
use crate::hosts::Origin;
use crate::instance::Instance;
use crate::interface::Sandboxes;
use crate::permission::rules::PermissionRules;

/// The time limit of a command that a user tries.
const TRIAL_DEADLINE: Duration = Duration::from_secs(10 * 60);
/// The output of a command that a user tries.
const TRIAL_LINES: usize = 100_000;
/// See [`TRIAL_LINES`].
const TRIAL_BYTES: usize = 16 * 1024 * 1024;

/// What holds in a directory, in short.
#[derive(Debug, Clone)]
pub struct SandboxStatus {
    /// The configured mode.
    pub mode: SandboxMode,
    /// What the machine can enforce. `None` if no command has run yet.
    pub support: Option<Probe>,
    /// Whether the kernel enforces the mode. `None` if that is not known yet.
    pub is_enforced: Option<bool>,
    /// The access of commands to the network.
    pub network: NetworkAccess,
    /// Whether the user states that another sandbox contains this program.
    pub has_outer: bool,
}

/// Whether a process may be started to find out what the machine can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxLook {
    /// Only what is known is reported.
    Known,
    /// A process is started if nothing is known.
    Probe,
}

/// What holds in a directory.
#[derive(Debug, Clone)]
pub struct SandboxReport {
    /// The configured mode.
    pub mode: SandboxMode,
    /// What the machine can enforce.
    pub support: Probe,
    /// Paths that commands can write.
    pub write: Vec<String>,
    /// Paths that commands cannot read.
    pub hidden: Vec<String>,
    /// The access of commands to the network. Without a complete mechanism it is not the configured proxy.
    pub network: NetworkAccess,
    /// Whether the configuration states that another sandbox contains this program.
    pub has_outer: bool,
}

impl Sandboxes<'_> {
    /// Sets the mode for all directories. It overrides the configuration.
    pub fn set_mode(self, mode: SandboxMode) {
        // A second call has no effect: the mode is a flag of the command line.
        let _ = self.0.sandbox_mode.set(mode);
    }

    /// Returns what holds for commands in a directory, in short.
    pub async fn status(self, instance: &Arc<Instance>, look: SandboxLook) -> SandboxStatus {
        let mode = mode(self.0, instance, SandboxMode::Off);
        let outer = has_outer(self.0, instance);
        let support = match look {
            SandboxLook::Known => self.0.sandbox_probe.get().cloned(),
            SandboxLook::Probe => Some(self.0.sandbox_support().await),
        };
        let is_enforced =
            support.as_ref().map(|support| Enforcement::of(mode, support, outer) == Enforcement::Whole);
        let network = match &support {
            Some(support) => reachable(instance.sandbox.network, support),
            None => instance.sandbox.network,
        };
        SandboxStatus { mode, support, is_enforced, network, has_outer: outer == Outer::Stated }
    }

    /// Returns what holds for commands in a directory. The first call starts a process to find out.
    ///
    /// # Errors
    ///
    /// Fails if the private directory for commands cannot be created.
    pub async fn report(self, instance: &Arc<Instance>) -> Result<SandboxReport, Error> {
        let session_id = trial_session()?;
        let subject = Subject::new(self.0, instance, &session_id, &[]);
        let mode = subject.mode();
        let (config, outer) = (subject.config, subject.outer);
        let sandbox = subject.sandbox().map_err(|error| Error::machine(error.to_string()))?.sandbox;
        let texts = |paths: &[std::path::PathBuf]| {
            let existing = paths.iter().filter(|path| path.exists());
            let mut texts: Vec<String> = existing.map(|path| path.to_string_lossy().into_owned()).collect();
            texts.sort();
            texts.dedup();
            texts
        };
        let support = self.0.sandbox_support().await;
        let network = reachable(config.network, &support);
        Ok(SandboxReport {
            mode,
            support,
            write: texts(&sandbox.write),
            hidden: texts(&sandbox.hide),
            network,
            has_outer: outer == Outer::Stated,
        })
    }

    /// Runs a program in the sandbox of a directory. `watch` receives its output so far. Returns what was refused while the
    /// sandbox was prepared, too.
    ///
    /// # Errors
    ///
    /// Fails if the sandbox cannot be enforced or the program cannot be started.
    pub async fn run(
        self,
        instance: &Arc<Instance>,
        command: Vec<std::ffi::OsString>,
        watch: &mut (dyn FnMut(&Output) + Send),
    ) -> Result<(Ended, Vec<String>), Error> {
        let session_id = trial_session()?;
        let agent = instance.agent(&instance.agent_name(None)?)?;
        let rules = PermissionRules::of_agent(agent, &[]);
        let masked = masked(&rules, self.0, instance).await.map_err(Error::machine)?;
        let subject = Subject { masked, ..Subject::new(self.0, instance, &session_id, &[]) };
        let support = self.0.sandbox_support().await;
        // A user who tries a command wants to see that it is restricted.
        let restricted = subject.confine(&support, Consent::Missing).map_err(Error::machine)?;
        let origin = Origin::without_user(self.0, instance, &session_id, "")?;
        let restricted =
            restricted.map(|restricted| origin.connect(restricted)).transpose().map_err(Error::machine)?;
        let notes = restricted.as_ref().map(|restricted| restricted.notes.clone()).unwrap_or_default();
        let mut words = command.into_iter();
        let variables = restricted.iter().flat_map(|restricted| restricted.variables.clone());
        let Environment { set, remove } = self.0.child_environment(instance);
        let env = set.into_iter().chain(variables).collect();
        let command = Command {
            program: words.next().unwrap_or_default().into(),
            args: words.collect(),
            directory: instance.directory.clone(),
            env,
            env_remove: remove,
            confinement: self.0.confinement.clone(),
            sandbox: restricted.map(|restricted| restricted.confined),
            author: Author::User,
        };
        let spill = self.0.dirs.tool_output().join(self.0.ids.tool_output().to_string());
        let limits = Limits { timeout: TRIAL_DEADLINE, lines: TRIAL_LINES, bytes: TRIAL_BYTES, spill };
        let ended = codewright_workspace::run(command, limits, &CancellationToken::new(), watch).await;
        ended.map(|ended| (ended, notes)).map_err(|error| Error::machine(error.to_string()))
    }
}

/// The access to the network that a machine can give. A proxy needs a network namespace.
fn reachable(configured: NetworkAccess, support: &Probe) -> NetworkAccess {
    match configured {
        NetworkAccess::Proxy if !support.mechanism.is_complete() => NetworkAccess::Off,
        configured => configured,
    }
}

/// The private directory of commands that a user tries is not that of a session.
fn trial_session() -> Result<SessionId, Error> {
    SessionId::parse("ses_trial").map_err(|error| Error::machine(error.to_string()))
}
