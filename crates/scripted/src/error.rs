//! Errors of the scripted model's user.

use std::time::Duration;

/// An error in a script, or an expired wait. Never an error of the client under test.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The script is not JSON.
    #[error("the script is not JSON")]
    Syntax(#[source] serde_json::Error),
    /// A part of the script is invalid.
    #[error("the script is wrong at `{at}`: {reason}")]
    Script {
        /// The path into the JSON: `turns[2].steps[0]`.
        at: String,
        /// The problem.
        reason: String,
    },
    /// An expected event did not happen in time.
    #[error("{awaited} did not come within {deadline:?}; there were {seen}")]
    Deadline {
        /// The expected event.
        awaited: String,
        /// The time limit.
        deadline: Duration,
        /// The events that happened instead.
        seen: String,
    },
}
