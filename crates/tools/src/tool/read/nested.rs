//! Instruction files in the directories between the project and a file.
//!
//! The project's own files are in the system prompt. The others are added to the output of the first call
//! that reads a file in or below their directory.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::tags;

/// Names of instruction files. Only the first one in a directory is used.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];
/// The limit of directories that are searched.
const MAX_DEPTH: usize = 64;
/// The limit for the size of a file. Larger files are ignored.
const MAX_BYTES: u64 = 64 * 1024;
/// The limit for the size of the instructions that one call adds.
const MAX_ADDED_BYTES: usize = 256 * 1024;

/// The beginning and the end of the reminder that contains instructions.
const REMINDER_START: &str = "\n\n<system-reminder>\n";
const REMINDER_END: &str = "\n</system-reminder>";

/// The instruction files that the model has received, so that each is sent once. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct LoadedInstructions(Arc<Mutex<HashSet<PathBuf>>>);

impl LoadedInstructions {
    /// Starts with files that the model has received.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(Arc::new(Mutex::new(paths.into_iter().collect())))
    }

    /// Records a file. Returns whether the model had not received it before.
    fn claim(&self, path: &Path) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned())
    }
}

/// An instruction file.
pub(super) struct Instruction {
    pub(super) path: PathBuf,
    text: String,
}

/// The instructions for a file that the model has not received, the nearest first. Files that the rules of
/// `read` withhold are ignored.
pub(super) fn found(
    file: &Path,
    directory: &Path,
    loaded: &LoadedInstructions,
    is_readable: &dyn Fn(&Path) -> bool,
) -> Vec<Instruction> {
    let mut left = MAX_ADDED_BYTES;
    let mut found = Vec::new();
    let folders = file.ancestors().skip(1).take(MAX_DEPTH);
    for folder in folders.take_while(|folder| folder.starts_with(directory) && *folder != directory) {
        let Some(path) = NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file()) else {
            continue;
        };
        let Some(text) = read(&path, directory).filter(|text| path != file && text.len() <= left) else {
            continue;
        };
        if is_readable(&path) && loaded.claim(&path) {
            left -= text.len();
            found.push(Instruction { path, text });
        }
    }
    found
}

/// The text of a short, non-empty file inside the project, after following links.
fn read(path: &Path, directory: &Path) -> Option<String> {
    let real = path.canonicalize().ok().filter(|real| real.starts_with(directory))?;
    let mut bytes = Vec::new();
    std::fs::File::open(real).ok()?.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= MAX_BYTES)?;
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
