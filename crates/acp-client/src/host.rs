//! The program that uses agents.

use std::path::PathBuf;

use codewright_workspace::Command;

/// A configured agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Its name in the configuration.
    pub name: String,
    /// The program that serves the protocol on its input and output.
    pub program: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The variables of the program.
    pub environment: Vec<(String, String)>,
    /// Its working directory, relative to the directory of the session.
    pub cwd: Option<PathBuf>,
    /// Options of a session as the agent names them, such as its model.
    pub options: Vec<(String, String)>,
    /// Whether a repository's configuration starts it.
    pub of_repository: bool,
    /// Whether its sandbox permits no changes, because a caller requires that.
    pub is_read_only: bool,
}

/// What agents need from their owner.
pub trait Host: Send + Sync + 'static {
    /// Returns the command that starts the program of an agent, in its sandbox. Blocks.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the program must not start.
    fn command(&self, spec: &Spec) -> Result<Command, String>;

    /// Returns the version of this program.
    fn version(&self) -> String;

    /// Writes a line about an agent to the log.
    fn log(&self, agent: &str, text: &str);
}
