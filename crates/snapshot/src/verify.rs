//! Compares what git stored for files with the files of the worktree.
//!
//! Git opens files by name. If a directory is exchanged for a link at that moment, git stores a file from outside. So
//! every file that git has added is read once more without following links, and what that read finds is stored instead
//! of anything else.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::disk::{self, Read, Root};
use crate::id::{File, ObjectId};
use crate::track::MAX_TRACKED_FILES;
use crate::unchanged::entries;

/// The limit for the size of an index. Git lists the files of a larger one.
const MAX_INDEX_BYTES: u64 = 64 * 1024 * 1024;

/// What an index stores for each file.
pub(crate) type Stored = HashMap<PathBuf, ObjectId>;

/// Reads an index, or returns `None` if git must list its files.
pub(crate) fn stored(index: &Path) -> io::Result<Option<Stored>> {
    if fs::metadata(index)?.len() > MAX_INDEX_BYTES {
        return Ok(None);
    }
    Ok(entries(&fs::read(index)?, MAX_TRACKED_FILES).map(|entries| entries.into_iter().collect()))
}

/// Parses the output of `ls-files --stage -z`.
pub(crate) fn listed(printed: &[u8]) -> Stored {
    let records = printed.split(|byte| *byte == 0);
    let entry = |record: &[u8]| {
        // The mode, the id and a number precede the tab.
        let tab = record.iter().position(|byte| *byte == b'\t')?;
        let facts = std::str::from_utf8(&record[..tab]).ok()?;
        let id = ObjectId::parse(facts.split(' ').nth(1)?)?;
        Some((PathBuf::from(OsStr::from_bytes(&record[tab + 1..])), id))
    };
    records.filter_map(entry).collect()
}

/// The files whose stored content differs from the file, with the content of the file. It is `None` for files that were
/// deleted or are reached through a link.
pub(crate) fn strays(worktree: &Path, files: &[PathBuf], stored: &Stored) -> Vec<(PathBuf, Option<File>)> {
    let root = Root::open(worktree);
    let mut strays = Vec::new();
    for path in files {
        let Some(id) = stored.get(path) else { continue };
        let file = match disk::read(&root, path) {
            Ok(Read::File(file, _)) => Some(file),
            Ok(Read::Missing | Read::Directory | Read::Special | Read::TooLarge | Read::Detached)
            | Err(_) => None,
        };
        if file.as_ref().is_none_or(|file| file.content().id != *id) {
            strays.push((path.clone(), file));
        }
    }
    strays
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_differs_or_is_behind_a_link_is_a_stray() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for place in ["root/d", "outside"] {
            fs::create_dir_all(top.join(place)).unwrap();
            fs::write(top.join(place).join("f"), place).unwrap();
        }
        fs::write(top.join("root/g"), "g").unwrap();
        std::os::unix::fs::symlink("../outside", top.join("root/link")).unwrap();
        let id = |text: &str| File::plain(text).content().id;
        let ids = [("d/f", "outside"), ("g", "g"), ("link/f", "outside"), ("gone", "x")];
        let stored: Stored = ids.iter().map(|(path, text)| (PathBuf::from(path), id(text))).collect();
        let files: Vec<PathBuf> = ["d/f", "g", "link/f", "gone", "unknown"].map(PathBuf::from).into();
        let expected = [
            (PathBuf::from("d/f"), Some(File::plain("root/d"))),
            (PathBuf::from("link/f"), None),
            (PathBuf::from("gone"), None),
        ];
        assert_eq!(strays(&top.join("root"), &files, &stored), expected);
    }

    #[test]
    fn a_list_of_git_is_parsed() {
        let id = File::plain("").content().id;
        let printed = format!("100644 {id} 0\ta b\0100755 {id} 0\tc\td\0");
        let expected = [("a b", id), ("c\td", id)].map(|(path, id)| (PathBuf::from(path), id));
        assert_eq!(listed(printed.as_bytes()), expected.into_iter().collect());
    }
}
