//! The exact changes of files that tools report.

use std::path::PathBuf;
use std::sync::Arc;

/// One file before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEffect {
    /// The file, with its links followed.
    pub path: PathBuf,
    /// The content before, or `None` if the file did not exist.
    pub before: Option<Vec<u8>>,
    /// The content after, or `None` if the file was removed.
    pub after: Option<Vec<u8>>,
    /// The number of parent directories that were created, counted from the file.
    pub made: usize,
}

/// Receives the changes that calls make to files.
#[derive(Clone)]
pub struct Effects(Arc<Sink>);

type Sink = dyn Fn(FileEffect) + Send + Sync;

impl Effects {
    /// Calls `sink` for each file. It must not block.
    pub fn new(sink: impl Fn(FileEffect) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Discards all reports.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    /// Reports the change of one file.
    pub fn report(&self, effect: FileEffect) {
        (self.0)(effect);
    }
}
