//! The errors of a call.

use crate::Output;

/// A call that did not complete.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The model gets the message and may try something else.
    #[error("{0}")]
    Model(String),
    /// The call was cancelled. Its output so far is recorded.
    #[error("cancelled")]
    Cancelled(Option<Box<Output>>),
    /// The program has a fault. The run ends.
    #[error("{0}")]
    Broken(String),
}

impl ToolError {
    /// An error whose message the model gets.
    pub fn model(reason: impl std::fmt::Display) -> Self {
        Self::Model(reason.to_string())
    }
}

impl From<codewright_workspace::Error> for ToolError {
    fn from(error: codewright_workspace::Error) -> Self {
        match error {
            codewright_workspace::Error::Cancelled => Self::Cancelled(None),
            other => Self::model(other),
        }
    }
}
