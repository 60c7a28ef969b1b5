//! The errors of this crate.
//!
//! Messages name the position and the key, never a value, because values may be secrets.

use std::{fmt, io, path::PathBuf};

/// An error while loading or using the configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directories cannot be determined without a home.
    #[error("`HOME` is not set to an absolute path")]
    Home,
    /// A configuration file exists and cannot be read.
    #[error("`{}` {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: FileProblem,
    },
    /// The text is not JSON with comments.
    #[error("{position}: {problem}")]
    Syntax {
        /// The position of the error.
        position: Position,
        /// The problem.
        problem: String,
    },
    /// A key is misspelt.
    #[error("{position}: unknown key `{key}`; did you mean `{nearest}`?")]
    UnknownKey {
        /// The position of the key's value.
        position: Position,
        /// The key.
        key: String,
        /// The known key that is most similar.
        nearest: String,
    },
    /// A known key has a value of the wrong type.
    #[error("{position}: `{key}` must be {expected}, found {found}")]
    Value {
        /// The start of the value.
        position: Position,
        /// The path of the key, separated by dots.
        key: String,
        /// The accepted values.
        expected: String,
        /// The type of the value.
        found: &'static str,
    },
    /// A `{file:…}` reference cannot be resolved.
    #[error("{position}: `{reference}` refers to a file that {problem}")]
    Insert {
        /// The start of the string.
        position: Position,
        /// The reference, unchanged.
        reference: String,
        /// The problem with the file.
        problem: FileProblem,
    },
    /// A value that did not come from a file has the wrong type.
    #[error("`{key}` must be {expected}, found {found}")]
    Permission {
        /// The path of the key, separated by dots.
        key: String,
        /// The accepted values.
        expected: String,
        /// The type of the value.
        found: &'static str,
    },
    /// The chosen agent cannot start a session.
    #[error("the agent `{name}` {problem}")]
    Agent {
        /// The configured name.
        name: String,
        /// The reason.
        problem: &'static str,
        /// Similar names.
        nearest: Vec<String>,
    },
    /// An agent's model does not have the form `provider/model`.
    #[error("the model of the agent `{agent}` does not have the form `provider/model`")]
    Model {
        /// The agent.
        agent: String,
    },
    /// An agent of the type `acp` does not name its program.
    #[error("the agent `{name}` has the type `acp` and no `command`")]
    AgentProgram {
        /// The agent.
        name: String,
    },
}

impl Error {
    /// Advice for the user.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Home => "set HOME to the user's home directory".to_owned(),
            Self::File { problem, .. } => return problem.hint(),
            Self::Syntax { .. } => {
                "comments and trailing commas are allowed; keys and strings need double quotes".to_owned()
            }
            Self::UnknownKey { .. } => {
                "correct the key; unknown keys of other programs are ignored".to_owned()
            }
            Self::Value { .. } | Self::Permission { .. } => "correct the value, or remove the key".to_owned(),
            Self::Insert { .. } => {
                "a relative path starts at the configuration file; `~/` is the home directory".to_owned()
            }
            Self::Agent { nearest, .. } if nearest.is_empty() => return None,
            Self::Agent { nearest, .. } => format!("did you mean `{}`?", nearest.join("`, `")),
            Self::Model { .. } => "add the provider, as in `anthropic/…`".to_owned(),
            Self::AgentProgram { .. } => "name the program, as in `[\"gemini\", \"--acp\"]`".to_owned(),
        };
        Some(text)
    }
}

/// A problem with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// The file does not exist.
    #[error("does not exist")]
    Missing,
    /// The path is a directory.
    #[error("is a directory, not a file")]
    Directory,
    /// The path is a pipe, socket or device, which could block forever.
    #[error("is not a regular file")]
    Special,
    /// The bytes are not UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
    /// The file's owner is another user.
    #[error("belongs to another user")]
    Foreign,
    /// The path leads out of the allowed directory.
    #[error("is a link out of the worktree")]
    Outside,
    /// The file is too large.
    #[error("exceeds the limit of {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The system reported an error.
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
            Self::Directory | Self::Special => "replace it with a regular file, or remove it",
            Self::NotText => "save the file as UTF-8",
            Self::Foreign => "only files that you own are read: copy the file, or change its owner",
            Self::Outside => "replace the link with a regular file in the worktree",
            Self::TooLarge { .. } => "remove everything that is not configuration from the file",
            Self::Unreadable(_) => "check the permissions of the file and its parent directories",
        };
        Some(text.to_owned())
    }
}

/// A position in a configuration text; lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file's path, or the name of the variable.
    pub source: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` line {}, column {}", self.source, self.line, self.column)
    }
}
