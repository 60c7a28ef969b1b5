//! The parts that providers have refused.
//!
//! They are remembered by hashes, for the session and the model in whose requests they were refused. A file keeps them
//! for the next process that continues a session, so that its first request is not refused again. They are a cache: a
//! file that cannot be read or written costs one more request.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of remembered parts.
const REMEMBERED: usize = 2048;
/// The length of a key in hexadecimal digits.
const KEY_CHARS: usize = 64;
/// The largest file that is read.
const MOST_BYTES: u64 = (REMEMBERED * (KEY_CHARS + 1)) as u64;

/// The keys of refused parts. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    file: Option<PathBuf>,
    /// `None` until the file was read.
    keys: Mutex<Option<VecDeque<String>>>,
}

impl Refusals {
    /// Creates a memory that lasts in a file. Reads the file when it is first needed.
    pub(crate) fn in_file(path: PathBuf) -> Self {
        Self(Arc::new(Shared { file: Some(path), keys: Mutex::default() }))
    }

    /// Returns which of the keys are known.
    pub(super) fn known(&self, keys: &[String]) -> Vec<bool> {
        let mut known = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(|| self.stored());
        keys.iter().map(|key| known.contains(key)).collect()
    }

    /// Reports whether nothing was refused so far.
    pub(super) fn is_empty(&self) -> bool {
        let mut known = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_with(|| self.stored()).is_empty()
    }

    /// Remembers parts. The oldest are forgotten.
    pub(super) fn add(&self, keys: Vec<String>) {
        let mut known = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner);
        extend(known.get_or_insert_with(|| self.stored()), keys);
    }

    /// Writes the parts to the file, together with those of other processes. Blocks.
    pub(crate) fn save(&self) {
        let Some(file) = &self.0.file else { return };
        let mut all = self.stored();
        let own = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner).clone();
        extend(&mut all, own.unwrap_or_default());
        let text: String = all.iter().map(|key| format!("{key}\n")).collect();
        // Without the file, the next process asks the provider again.
        drop(replace(file, &text));
    }

    fn stored(&self) -> VecDeque<String> {
        let read = self.0.file.as_deref().map(|path| {
            let mut text = String::new();
            File::open(path)?.take(MOST_BYTES).read_to_string(&mut text).map(|_| text)
        });
        let text = read.and_then(Result::ok).unwrap_or_default();
        let is_key =
            |line: &&str| line.len() == KEY_CHARS && line.bytes().all(|byte| byte.is_ascii_hexdigit());
        text.lines().filter(is_key).map(str::to_owned).collect()
    }
}

fn extend(known: &mut VecDeque<String>, keys: impl IntoIterator<Item = String>) {
    for key in keys {
        if !known.contains(&key) {
            known.push_back(key);
        }
    }
    let excess = known.len().saturating_sub(REMEMBERED);
    known.drain(..excess);
}

/// Replaces a file at once, so that a reader never sees a part of it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let Some(directory) = path.parent() else { return Ok(()) };
    fs::create_dir_all(directory)?;
    let next = path.with_extension(format!("{}.new", std::process::id()));
    let written = File::create(&next).and_then(|mut file| file.write_all(text.as_bytes()));
    let renamed = written.and_then(|()| fs::rename(&next, path));
    if renamed.is_err() {
        drop(fs::remove_file(&next));
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> String {
        format!("{number:064x}")
    }

    #[test]
    fn another_process_knows_what_was_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache/refused");
        let (first, second) = (Refusals::in_file(path.clone()), Refusals::in_file(path.clone()));
        assert!(second.is_empty());
        first.add(vec![key(1)]);
        first.save();
        second.add(vec![key(2)]);
        second.save();
        let third = Refusals::in_file(path.clone());
        assert_eq!(third.known(&[key(1), key(2), key(3)]), [true, true, false]);
        third.add((10..10 + 2 * REMEMBERED).map(key).collect());
        third.save();
        assert!(fs::metadata(&path).unwrap().len() <= MOST_BYTES);
        assert_eq!(Refusals::in_file(path).known(&[key(1), key(9 + 2 * REMEMBERED)]), [false, true]);
        assert_eq!(fs::read_dir(folder.path().join("cache")).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_file_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("refused");
        fs::write(&path, b"no key\n\xff\xfe").unwrap();
        assert!(Refusals::in_file(path).is_empty());
        Refusals::in_file(folder.path().to_owned()).save();
    }
}
