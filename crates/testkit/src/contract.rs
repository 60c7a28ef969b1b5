//! Recorded cases of the original, played again against a built program.
//!
//! A recording holds the events of a session and what its routes showed afterwards. The model's
//! side of it is turned into a script, the user's side into calls of the same routes in the same
//! order, and what the program says is held against the record: every event of a lane in its
//! order, every message, after ids, times and places are taken out.
//!
//! Events whose moment is no promise (a title that arrives, totals that are counted again) count
//! with their last content; the rest counts one by one.
//!
//! A case comes again in one of two degrees: identical to the value, or in sequence and shape,
//! where what the program says in words of its own and what it counts by design may differ (the
//! rule stands in `shape.rs`).

mod act;
mod compare;
mod http;
mod recording;
mod script;
mod shape;
mod stage;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use recording::Recording;

/// What one case showed.
#[derive(Debug)]
pub struct Outcome {
    /// The case.
    pub name: String,
    /// Recorded events and messages.
    pub recorded: usize,
    /// What came again to the value.
    pub values: Found,
    /// What came again in sequence and shape.
    pub shapes: Found,
}

/// How much of a recording was found again.
#[derive(Debug, Default)]
pub struct Found {
    /// Recorded events and messages that were found.
    pub same: usize,
    /// What was recorded and not found (`-`), or found and not recorded (`+`).
    pub differences: Vec<String>,
}

impl Outcome {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), recorded: 0, values: Found::default(), shapes: Found::default() }
    }

    /// Whether nothing differs.
    #[must_use]
    pub fn is_identical(&self) -> bool {
        self.values.differences.is_empty()
    }

    /// Whether the events are the same in sequence and shape.
    #[must_use]
    pub fn is_alike(&self) -> bool {
        self.shapes.differences.is_empty()
    }
}

/// Returns the folder of the recordings.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings")
}

/// Returns the names of the recorded cases, sorted.
pub fn cases(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let events = folder.join("events");
    for entry in std::fs::read_dir(&events).with_context(|| format!("cannot list `{}`", events.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ext| ext == "jsonl") {
            names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Plays a case against the program.
pub fn play(program: &Path, folder: &Path, name: &str) -> Result<Outcome> {
    let recording =
        Recording::read(folder, name).with_context(|| format!("cannot read the case `{name}`"))?;
    let played =
        stage::play(program, &recording).with_context(|| format!("cannot play the case `{name}`"))?;
    Ok(compare::compare(&recording, &played))
}
