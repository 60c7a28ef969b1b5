//! The program around the servers: it starts processes and publishes events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use codewright_workspace::{Command, TreeOptions};

/// A server to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The id of the server.
    pub server: String,
    /// The path of the program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The directory that it works in.
    pub root: PathBuf,
    /// Additional variables.
    pub environment: BTreeMap<String, String>,
    /// Whether a repository's configuration defines or enables it.
    pub of_repository: bool,
}

/// Does what servers need from the program.
pub trait Host: Send + Sync + 'static {
    /// The command that starts a server, with its sandbox. May block for some seconds.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the server must not be started.
    fn command(&self, launch: &Launch) -> Result<Command, String>;
    /// The directory to watch for servers that register for changes of files, unless watching is disabled.
    fn watched(&self) -> Option<TreeOptions>;
    /// The version of the program.
    fn version(&self) -> String;
    /// The status of a server changed.
    fn updated(&self);
    /// A server sent the diagnostics of a file.
    fn diagnosed(&self, server: &str, path: &Path);
    /// Stores a line about a server in the log.
    fn log(&self, server: &str, text: &str);
}
