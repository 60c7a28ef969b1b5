//! What can be wrong with configuration.
//!
//! A message names the place and the key, never a value: values may be secrets.

use std::{fmt, io, path::PathBuf};

/// Why configuration could not be loaded or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No directory can be placed without a home.
    #[error("`HOME` is not set to an absolute path")]
    Home,
    /// A configuration file is there and cannot be read.
    #[error("`{}` {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: FileProblem,
    },
    /// The text is not JSON, comments and trailing commas allowed.
    #[error("{place}: {problem}")]
    Syntax {
        /// Where the parser stopped.
        place: Place,
        /// What it found.
        problem: String,
    },
    /// A known key has a value of another type.
    #[error("{place}: `{key}` must be {expected}, found {found}")]
    Value {
        /// Where the value begins.
        place: Place,
        /// The key with those above it, separated by dots.
        key: String,
        /// What is accepted.
        expected: String,
        /// What kind of value is there.
        found: &'static str,
    },
    /// A `{file:…}` reference cannot be filled in.
    #[error("{place}: `{reference}` refers to a file that {problem}")]
    Insert {
        /// Where the string begins.
        place: Place,
        /// The reference as it is written.
        reference: String,
        /// What is wrong with the file.
        problem: FileProblem,
    },
    /// A value that did not come from a file has the wrong type.
    #[error("`{key}` must be {expected}, found {found}")]
    Permission {
        /// The key with those above it, separated by dots.
        key: String,
        /// What is accepted.
        expected: String,
        /// What kind of value is there.
        found: &'static str,
    },
    /// The chosen agent cannot start a session.
    #[error("the agent `{name}` {problem}")]
    Agent {
        /// The name that was asked for.
        name: String,
        /// Why it will not do.
        problem: &'static str,
        /// Names it may have been meant as.
        nearest: Vec<String>,
    },
    /// An agent's model is not named as `provider/model`.
    #[error("the model of the agent `{agent}` is not written as `provider/model`")]
    Model {
        /// The agent.
        agent: String,
    },
}

impl Error {
    /// What the user may try.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Home => "set HOME to the user's home directory".to_owned(),
            Self::File { problem, .. } => return problem.hint(),
            Self::Syntax { .. } => {
                "comments and trailing commas are fine; keys and strings need double quotes".to_owned()
            }
            Self::Value { .. } | Self::Permission { .. } => "correct the value, or remove the key".to_owned(),
            Self::Insert { .. } => {
                "a relative path starts at the configuration file; `~/` is the home directory".to_owned()
            }
            Self::Agent { nearest, .. } if nearest.is_empty() => return None,
            Self::Agent { nearest, .. } => format!("did you mean `{}`?", nearest.join("`, `")),
            Self::Model { .. } => "write the provider before the model, as in `anthropic/…`".to_owned(),
        };
        Some(text)
    }
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// There is none.
    #[error("does not exist")]
    Missing,
    /// The path names a directory.
    #[error("is a directory, not a file")]
    Directory,
    /// The path names a pipe, socket or device, which could block for ever.
    #[error("is not a regular file")]
    Special,
    /// The bytes are not UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
    /// The file's owner is not the user who runs the program.
    #[error("belongs to another user")]
    Foreign,
    /// The path leads out of the directory that it has to stay inside.
    #[error("is a link out of the worktree")]
    Outside,
    /// There is more than we are willing to hold.
    #[error("exceeds the limit of {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The system refused.
    #[error("cannot be read ({0})")]
    Unreadable(#[source] io::Error),
}

impl FileProblem {
    /// A copy of the problem, for a file that is read once and reported more than once.
    pub(crate) fn copy(&self) -> Self {
        match self {
            Self::Missing => Self::Missing,
            Self::Directory => Self::Directory,
            Self::Special => Self::Special,
            Self::NotText => Self::NotText,
            Self::Foreign => Self::Foreign,
            Self::Outside => Self::Outside,
            Self::TooLarge { limit_bytes } => Self::TooLarge { limit_bytes: *limit_bytes },
            Self::Unreadable(error) => Self::Unreadable(io::Error::new(error.kind(), error.to_string())),
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Missing => "create the file, or correct the path",
            Self::Directory | Self::Special => "put a regular file there, or remove what is there",
            Self::NotText => "save the file as UTF-8",
            Self::Foreign => "only files of your own are read: copy the file, or change its owner",
            Self::Outside => "put a regular file into the worktree",
            Self::TooLarge { .. } => "move what is not configuration out of the file",
            Self::Unreadable(_) => "check the permissions of the file and of the directories above it",
        };
        Some(text.to_owned())
    }
}

/// A position in a configuration text; lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file's path, or the variable that held the text.
    pub source: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` line {}, column {}", self.source, self.line, self.column)
    }
}
