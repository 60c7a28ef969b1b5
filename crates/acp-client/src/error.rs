//! Why an agent did not answer.

/// An error of an agent. The text is a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The user has to sign in with the agent's own program.
    #[error("{0}")]
    SignIn(String),
    /// The prompt failed.
    #[error("{0}")]
    Failed(String),
}
