//! Rule files of the project and the user: `AGENTS.md`, or `CLAUDE.md` where there is none.
//!
//! One kind is used, the first that exists; of that kind every file from the
//! worktree's root down to the directory, outermost first, so that nearer rules come
//! later. A file that is no plain UTF-8 text, or is larger than [`MAX_BYTES`], is left
//! out and named in a warning; symbolic links are not followed out of the worktree.

use std::io::Read;
use std::path::{Path, PathBuf};

/// The most that one rule file may add to every request.
pub(crate) const MAX_BYTES: u64 = 256 * 1024;
/// Folders looked at between the worktree and the directory.
const MAX_DEPTH: usize = 64;
const KINDS: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// A rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instruction {
    /// Its path.
    pub(crate) origin: String,
    pub(crate) text: String,
}

/// Reads the rule files that hold for a directory, and says what was left out.
pub(crate) fn instructions(
    global: &[PathBuf],
    worktree: &Path,
    directory: &Path,
) -> (Vec<Instruction>, Vec<String>) {
    let mut found = Vec::new();
    let mut warnings = Vec::new();
    let mut add = |path: &Path, root: Option<&Path>| match read(path, root) {
        Ok(Some(text)) => {
            found.push(Instruction { origin: path.display().to_string(), text });
            true
        }
        Ok(None) => false,
        Err(reason) => {
            warnings.push(format!("`{}` was left out: {reason}", path.display()));
            true
        }
    };
    for path in global {
        if add(path, None) {
            break;
        }
    }
    let folders = folders(worktree, directory);
    for kind in KINDS {
        let mut any = false;
        for folder in &folders {
            any |= add(&folder.join(kind), Some(worktree));
        }
        if any {
            break;
        }
    }
    (found, warnings)
}

/// The folders from the worktree down to the directory; only the directory outside a worktree.
fn folders(worktree: &Path, directory: &Path) -> Vec<PathBuf> {
    if worktree.parent().is_none() {
        return vec![directory.to_owned()];
    }
    let mut folders: Vec<_> = directory
        .ancestors()
        .take(MAX_DEPTH)
        .take_while(|f| f.starts_with(worktree))
        .map(Path::to_owned)
        .collect();
    folders.reverse();
    folders
}

/// The text of a rule file; `None` where there is no file or nothing in it.
fn read(path: &Path, root: Option<&Path>) -> Result<Option<String>, String> {
    let Ok(real) = path.canonicalize() else { return Ok(None) };
    let outside = root.is_some_and(|root| {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        root.parent().is_some() && !real.starts_with(root)
    });
    if outside {
        return Err("it is a link to a file outside the worktree".to_owned());
    }
    let metadata = real.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if metadata.len() > MAX_BYTES {
        return Err(format!("it is larger than {} KiB", MAX_BYTES / 1024));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&real).map_err(|error| error.to_string())?;
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    Ok((!text.trim().is_empty()).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    #[track_caller]
    fn check(files: &[(&str, &str)], directory: &str, expected: &[&str]) {
        let dir = tree(files);
        let (found, warnings) = instructions(&[], dir.path(), &dir.path().join(directory));
        let texts: Vec<_> = found.iter().map(|file| file.text.as_str()).collect();
        assert_eq!(texts, expected);
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn the_first_kind_is_used_from_the_root_down() {
        check(
            &[("AGENTS.md", "root"), ("a/b/AGENTS.md", "near"), ("CLAUDE.md", "other")],
            "a/b",
            &["root", "near"],
        );
        check(&[("CLAUDE.md", "other"), ("a/x", "")], "a", &["other"]);
        check(&[("AGENTS.md", " \n"), ("CLAUDE.md", "other")], "", &["other"]);
        check(&[("b/AGENTS.md", "beside"), ("a/x", "")], "a", &[]);
    }

    #[test]
    fn a_file_that_is_too_large_or_no_text_is_named() {
        let dir = tree(&[("x", "")]);
        std::fs::write(dir.path().join("AGENTS.md"), vec![b'a'; MAX_BYTES as usize + 1]).unwrap();
        let (found, warnings) = instructions(&[], dir.path(), dir.path());
        assert!(found.is_empty());
        assert!(warnings[0].contains("larger than 256 KiB"), "{warnings:?}");
        std::fs::write(dir.path().join("AGENTS.md"), [0xff, 0xfe, 0]).unwrap();
        let (_, warnings) = instructions(&[], dir.path(), dir.path());
        assert!(warnings[0].contains("not UTF-8"), "{warnings:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_worktree_is_not_followed() {
        let outside = tree(&[("secret.md", "secret")]);
        let dir = tree(&[("x", "")]);
        std::os::unix::fs::symlink(outside.path().join("secret.md"), dir.path().join("AGENTS.md")).unwrap();
        let (found, warnings) = instructions(&[], dir.path(), dir.path());
        assert!(found.is_empty());
        assert!(warnings[0].contains("outside the worktree"), "{warnings:?}");
    }
}
