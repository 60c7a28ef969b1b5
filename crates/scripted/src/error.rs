//! What can go wrong for the one who uses the scripted model.

use std::time::Duration;

/// A failure of the script or of the wait, never of the client under test.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The script text is not JSON at all.
    #[error("the script is not JSON")]
    Syntax(#[source] serde_json::Error),
    /// One place in the script says something that cannot be played.
    #[error("the script is wrong at `{at}`: {reason}")]
    Script {
        /// Where, as a path into the JSON: `turns[2].steps[0]`.
        at: String,
        /// What is wrong there.
        reason: String,
    },
    /// What was waited for did not come.
    #[error("{awaited} did not come within {deadline:?}; there were {seen}")]
    Deadline {
        /// What was waited for.
        awaited: String,
        /// How long it was waited for.
        deadline: Duration,
        /// What came instead.
        seen: String,
    },
}
