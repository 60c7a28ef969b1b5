//! Failures of the process that runs plugins.

/// The reason why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The process has ended or is not running.
    Closed,
    /// The process did not answer in time and was ended.
    Blocked,
    /// A plugin answered with an error.
    Plugin {
        /// The message.
        message: String,
        /// The place in the code of the plugin, if it is known.
        place: Option<String>,
    },
    /// The request or its answer exceeds a limit, or has the wrong form. Holds a sentence.
    Refused(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("the process that runs plugins has ended"),
            Self::Blocked => f.write_str("the process that runs plugins did not answer"),
            Self::Plugin { message, place: None } => f.write_str(message),
            Self::Plugin { message, place: Some(place) } => write!(f, "{message} ({place})"),
            Self::Refused(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}
