use std::path::{Path, PathBuf};

/// The reason why a package is not available. The messages are for users.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text does not name a package. It must be changed.
    #[error("`{spec}` is not a usable plugin or package: {reason}")]
    Spec {
        /// The text.
        spec: String,
        /// The reason.
        reason: String,
    },
    /// No package manager is installed.
    #[error("neither `npm` nor `bun` is installed; one of them is needed to install packages")]
    NoManager,
    /// The registry did not deliver the package. A later attempt may succeed.
    #[error("cannot install `{spec}`: {reason}")]
    Unavailable {
        /// The package.
        spec: String,
        /// The reason, perhaps of several lines.
        reason: String,
    },
    /// The package is not safe to use, or not what was expected.
    #[error("refused to install `{spec}`: {reason}")]
    Refused {
        /// The package.
        spec: String,
        /// The reason.
        reason: String,
    },
    /// The cache cannot be used.
    #[error("cannot use `{}`: {source}", .path.display())]
    Cache {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn spec(spec: &str, reason: &str) -> Self {
        let shown = spec.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character });
        Self::Spec { spec: shown.take(200).collect(), reason: reason.to_owned() }
    }

    pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Cache { path: path.to_owned(), source }
    }
}
