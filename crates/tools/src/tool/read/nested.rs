//! Instruction files in the directories between the project and a file.
//!
//! The project's own files are in the system prompt. The others are added to the output of the first call
//! that reads a file in or below their directory.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use codewright_workspace::{Held, Node, Place, Workspace};

use crate::reading::node;
use crate::tags;

/// The usual names of instruction files. Only the first one in a directory is used.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];
/// The limit of directories that are searched.
const MAX_DEPTH: usize = 64;
/// The limit for the size of a file. Larger files are left out with a warning.
const MAX_BYTES: u64 = 64 * 1024;
/// The limit for the size of the instructions that one call adds.
const MAX_ADDED_BYTES: usize = 256 * 1024;

/// The beginning and the end of the reminder that contains instructions.
const REMINDER_START: &str = "\n\n<system-reminder>\n";
const REMINDER_END: &str = "\n</system-reminder>";

/// The instruction files that the model has received, so that each is sent once. Clones share them.
#[derive(Clone)]
pub struct LoadedInstructions {
    paths: Arc<Mutex<HashSet<PathBuf>>>,
    names: Arc<[&'static str]>,
    warn: Arc<dyn Fn(&str) + Send + Sync>,
}

impl LoadedInstructions {
    /// Starts with files that the model has received.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths = Arc::new(Mutex::new(paths.into_iter().collect()));
        Self { paths, names: NAMES.into(), warn: Arc::new(|_| {}) }
    }

    /// Sets the names of instruction files, of which the first in a directory is used.
    #[must_use]
    pub fn with_names(self, names: impl IntoIterator<Item = &'static str>) -> Self {
        Self { names: names.into_iter().collect(), ..self }
    }

    /// Sets the receiver of warnings about files that were left out. It must not block.
    #[must_use]
    pub fn with_warnings(self, warn: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { warn: Arc::new(warn), ..self }
    }

    fn warn(&self, path: &Path, reason: &str) {
        (self.warn)(&format!("`{}` was left out: {reason}", path.display()));
    }

    /// Records a file. Returns whether the model had not received it before.
    fn claim(&self, path: &Path) -> bool {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned())
    }
}

impl Default for LoadedInstructions {
    fn default() -> Self {
        Self::new([])
    }
}

/// An instruction file.
pub(super) struct Instruction {
    pub(super) path: PathBuf,
    text: String,
}

/// The project that a file is in.
#[derive(Clone, Copy)]
pub(super) struct Project<'a> {
    pub(super) workspace: &'a Workspace,
    /// Its directory, without links.
    pub(super) directory: &'a Path,
}

/// The instructions for a file that the model has not received, the nearest first. Files that the rules of
/// `read` withhold are ignored.
pub(super) fn found(
    file: &Path,
    project: Project<'_>,
    loaded: &LoadedInstructions,
    is_readable: &dyn Fn(&Place) -> bool,
) -> Vec<Instruction> {
    let Project { workspace, directory } = project;
    let mut left = MAX_ADDED_BYTES;
    let mut found = Vec::new();
    let folders = file.ancestors().skip(1).take(MAX_DEPTH);
    for folder in folders.take_while(|folder| folder.starts_with(directory) && *folder != directory) {
        let paths = loaded.names.iter().map(|name| folder.join(name));
        // Most directories have none, which shows without resolving the path.
        let mut named = paths.filter(|path| path.symlink_metadata().is_ok());
        let Some((path, held)) = named.find_map(|path| held(workspace, path)) else { continue };
        if path == file || !held.place.real.starts_with(directory) || !is_readable(&held.place) {
            continue;
        }
        let Some(text) = read(&held) else { continue };
        if text.len() as u64 > MAX_BYTES {
            loaded.warn(&path, &format!("it is larger than {} KiB", MAX_BYTES / 1024));
        } else if text.len() > left {
            let most = MAX_ADDED_BYTES / 1024;
            loaded.warn(&path, &format!("the instructions for one file would be larger than {most} KiB"));
        } else if loaded.claim(&path) {
            left -= text.len();
            found.push(Instruction { path, text });
        }
    }
    found
}

/// Holds a path if it is a regular file.
fn held(workspace: &Workspace, path: PathBuf) -> Option<(PathBuf, Held)> {
    let held = workspace.hold(&path).ok()?;
    let is_file = node(&held).is_ok_and(|node| node == Some(Node::File));
    is_file.then_some((path, held))
}

/// The text of a non-empty file. Of a file that is too large, only the start is read.
fn read(held: &Held) -> Option<String> {
    let mut bytes = Vec::new();
    held.file().ok()?.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    // The end may be in the middle of a character.
    let text = if bytes.len() as u64 > MAX_BYTES {
        String::from_utf8_lossy(&bytes).into_owned()
    } else {
        String::from_utf8(bytes).ok()?
    };
    (!text.trim().is_empty()).then_some(text)
}

/// The reminder that is added to an output.
pub(super) fn reminder(found: &[Instruction]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let texts =
        found.iter().map(|one| format!("Instructions from: {}\n{}", one.path.display(), one.text.trim_end()));
    let texts = texts.collect::<Vec<_>>().join("\n\n");
    format!("{REMINDER_START}{}{REMINDER_END}", tags::neutralize(&texts))
}

/// Returns the start of the reminder that [`reminder`] added to an output, or the length of the output if
/// there is none.
///
/// The reminder is at the end and contains no such tag, so the last tag starts it.
pub(crate) fn reminder_at(output: &str) -> usize {
    let begin = output.ends_with(REMINDER_END).then(|| output.rfind(REMINDER_START)).flatten();
    begin.unwrap_or(output.len())
}
