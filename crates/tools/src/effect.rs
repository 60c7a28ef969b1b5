//! What a call did to a file, said by the tool that did it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One file before and after a call changed it, exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEffect {
    /// The file, with its links followed.
    pub path: PathBuf,
    /// Its bytes before; absent if it was not there.
    pub before: Option<Vec<u8>>,
    /// Its bytes after; absent if it was removed.
    pub after: Option<Vec<u8>>,
    /// How many of the directories above it were made, counted from the file.
    pub made: usize,
}

/// Takes what calls did to files.
#[derive(Clone)]
pub struct Effects(Arc<Sink>);

type Sink = dyn Fn(FileEffect) + Send + Sync;

impl Effects {
    /// Calls `sink` for each file; it must not block.
    pub fn new(sink: impl Fn(FileEffect) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Tells nobody.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    pub(crate) fn report(&self, effect: FileEffect) {
        (self.0)(effect);
    }
}

/// How many of the directories above a file are not there.
pub(crate) fn missing_above(path: &Path) -> usize {
    path.ancestors().skip(1).take_while(|directory| !directory.exists()).count()
}
