//! Instruction files on the way from the project down to a file that is read.
//!
//! Those of the project itself stand in the system text; the ones further down are told
//! when something beside them is read, each once.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::tags;

/// Files of one directory, of which the first that is there counts.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];
/// Directories above a file that are looked into.
const MAX_DEPTH: usize = 64;
/// Bytes of one file; a larger one is left out.
const MAX_BYTES: u64 = 64 * 1024;
/// Bytes told with one call.
const MAX_TOLD_BYTES: usize = 256 * 1024;

/// How the reminder begins that instructions stand in, and how it ends.
const REMINDER_START: &str = "\n\n<system-reminder>\n";
const REMINDER_END: &str = "\n</system-reminder>";

/// The instruction files that the model has been told, so that each is told once. Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct ToldInstructions(Arc<Mutex<HashSet<PathBuf>>>);

impl ToldInstructions {
    /// These were told.
    pub fn new(told: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(Arc::new(Mutex::new(told.into_iter().collect())))
    }

    /// Whether this is the first time; from now on it was told.
    fn claim(&self, path: &Path) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned())
    }
}

/// A file of instructions.
pub(super) struct Instruction {
    pub(super) path: PathBuf,
    text: String,
}

/// The instructions for a file below a directory that were not told yet, the nearest first.
/// One that the rules about reading withhold is left out.
pub(super) fn found(
    file: &Path,
    directory: &Path,
    (told, is_readable): (&ToldInstructions, &dyn Fn(&Path) -> bool),
) -> Vec<Instruction> {
    let mut left = MAX_TOLD_BYTES;
    let mut found = Vec::new();
    let folders = file.ancestors().skip(1).take(MAX_DEPTH);
    for folder in folders.take_while(|folder| folder.starts_with(directory) && *folder != directory) {
        let Some(path) = NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file()) else {
            continue;
        };
        let Some(text) = read(&path, directory).filter(|text| path != file && text.len() <= left) else {
            continue;
        };
        if is_readable(&path) && told.claim(&path) {
            left -= text.len();
            found.push(Instruction { path, text });
        }
    }
    found
}

/// The text of a file that lies in the project, links followed, and is short and not empty.
fn read(path: &Path, directory: &Path) -> Option<String> {
    let real = path.canonicalize().ok().filter(|real| real.starts_with(directory))?;
    let mut bytes = Vec::new();
    std::fs::File::open(real).ok()?.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= MAX_BYTES)?;
    (!text.trim().is_empty()).then_some(text)
}

/// How instructions stand behind what was read.
pub(super) fn reminder(found: &[Instruction]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let told =
        found.iter().map(|one| format!("Instructions from: {}\n{}", one.path.display(), one.text.trim_end()));
    let told = told.collect::<Vec<_>>().join("\n\n");
    format!("{REMINDER_START}{}{REMINDER_END}", tags::neutralize(&told))
}

/// Where the reminder begins that [`reminder`] added to an output; the end of the output if there is none.
///
/// The reminder is the last thing of the output and holds no such tag inside, so the last one that begins is it.
pub(crate) fn reminder_at(output: &str) -> usize {
    let begin = output.ends_with(REMINDER_END).then(|| output.rfind(REMINDER_START)).flatten();
    begin.unwrap_or(output.len())
}
