//! Replays recorded OpenCode sessions against a built program and compares the results.
//!
//! A recording holds the events of a session and its messages at the end. The model's answers become a
//! script, the user's actions become calls of the same routes in the same order. The program's events and
//! messages must equal the recorded ones after ids, times and paths are replaced by placeholders.
//!
//! Events are compared in lanes, because the order between lanes is not promised. Of an event whose time is
//! not promised either, such as a title update, only the last content counts.
//!
//! A case can be identical (all values are equal) or alike (same sequence and shape). Texts and counts that
//! Codewright words or counts differently by design may differ in an alike case: see `shape.rs`.

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

/// The result of one case.
#[derive(Debug)]
pub struct Outcome {
    /// The case.
    pub name: String,
    /// Recorded events and messages.
    pub recorded: usize,
    /// The comparison of values.
    pub values: Matches,
    /// The comparison of shapes.
    pub shapes: Matches,
}

/// The recorded events and messages that the program repeated.
#[derive(Debug, Default)]
pub struct Matches {
    /// The number of recorded events and messages that were found.
    pub same: usize,
    /// Events and messages that were recorded but not found (`-`), or found but not recorded (`+`).
    pub differences: Vec<String>,
}

impl Outcome {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), recorded: 0, values: Matches::default(), shapes: Matches::default() }
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

/// Replays a case against the program.
pub fn play(program: &Path, folder: &Path, name: &str) -> Result<Outcome> {
    let recording =
        Recording::read(folder, name).with_context(|| format!("cannot read the case `{name}`"))?;
    let played =
        stage::play(program, &recording).with_context(|| format!("cannot play the case `{name}`"))?;
    Ok(compare::compare(&recording, &played))
}
