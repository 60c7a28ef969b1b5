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
    /// Whether it runs or loads code of the project that it works on.
    pub runs_project: bool,
}

/// A server that is not installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The id of the server.
    pub server: &'a str,
    /// The npm package that contains it, and others that it needs, each with a range of versions.
    pub packages: &'static [&'static str],
    /// The name of the program in the first package.
    pub program: &'static str,
    /// Whether a repository's configuration defines or enables it.
    pub of_repository: bool,
}

/// The state of a server that the program can install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provided {
    /// It is installed.
    Ready {
        /// The program that runs it, and its script.
        words: Vec<String>,
        /// The directory with the installed packages.
        modules: PathBuf,
    },
    /// It is being installed. [`Servers::look_again`](crate::Servers::look_again) is called at the end.
    Installing,
    /// The user has not enabled installations.
    Disabled,
    /// It cannot be installed. Holds the reason.
    Failed(String),
}

/// Does what servers need from the program.
pub trait Host: Send + Sync + 'static {
    /// The command that starts a server, with its sandbox. May block for some seconds.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the server must not be started.
    fn command(&self, launch: &Launch) -> Result<Command, String>;
    /// A server that is not on `PATH`. An installation that is enabled begins in the background. Reads a few files.
    fn provide(&self, wanted: &Wanted<'_>) -> Provided;
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
