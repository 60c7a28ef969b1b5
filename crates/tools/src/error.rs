//! How a call fails.

use crate::Output;

/// A call that did not complete.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The model is told and may try something else.
    #[error("{0}")]
    Model(String),
    /// The call was cancelled; it is recorded with what it had so far.
    #[error("cancelled")]
    Cancelled(Option<Box<Output>>),
    /// The program is at fault; the run ends.
    #[error("{0}")]
    Broken(String),
}

impl ToolError {
    /// A failure the model is told about.
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
