//! Checks of an installed directory.

use std::path::{Component, Path};

use codewright_workspace::normalize;
use serde_json::Value;

/// The largest `package.json`.
const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;

/// The size of a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    pub(crate) files: usize,
}

/// Returns the size of directories. Links are not followed. The search ends soon after the limit. Blocks.
pub(crate) fn size(directories: &[&Path], limit: Size) -> Size {
    let mut size = Size::default();
    let mut waiting: Vec<_> = directories.iter().map(|path| path.to_path_buf()).collect();
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            size.bytes = size.bytes.saturating_add(metadata.len());
            size.files += 1;
            if size.bytes > limit.bytes || size.files > limit.files {
                return size;
            }
            if metadata.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    size
}

/// Checks that a directory contains only files, directories, and links that stay inside. Blocks.
pub(crate) fn content(root: &Path) -> Result<(), String> {
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        let entries =
            std::fs::read_dir(&directory).map_err(|error| format!("cannot read the package: {error}"))?;
        for entry in entries {
            let entry = entry.map_err(|error| format!("cannot read the package: {error}"))?;
            let (path, kind) = (entry.path(), entry.file_type());
            let kind = kind.map_err(|error| format!("cannot read the package: {error}"))?;
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_symlink() {
                let target =
                    std::fs::read_link(&path).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
                // Every link is checked, so a chain of links cannot leave the directory.
                let is_inside = is_plain(&target) && normalize(&directory.join(&target)).starts_with(root);
                if !is_inside {
                    return Err(format!("`{shown}` is a link that leads out of the package"));
                }
            } else if !kind.is_file() {
                return Err(format!("`{shown}` is neither a file nor a directory"));
            }
        }
    }
    Ok(())
}

/// Whether a path first goes up and then down. One that goes up after a link would not lead where its text says.
fn is_plain(target: &Path) -> bool {
    let mut parts = target.components().skip_while(|part| *part == Component::ParentDir);
    parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Checks that a package is there, with the version of the lockfile. Blocks.
pub(crate) fn manifest(directory: &Path, version: &str) -> Result<(), String> {
    let path = directory.join("package.json");
    let metadata = path.symlink_metadata().map_err(|_| "it contains no `package.json`".to_owned())?;
    if !metadata.is_file() || metadata.len() > MAX_MANIFEST_BYTES {
        return Err("its `package.json` is not a file of at most 1 MiB".to_owned());
    }
    let text = std::fs::read(&path).map_err(|error| format!("its `package.json` cannot be read: {error}"))?;
    let manifest: Value =
        serde_json::from_slice(&text).map_err(|error| format!("its `package.json` is invalid: {error}"))?;
    match manifest["version"].as_str() {
        Some(found) if found != version => {
            Err(format!("its `package.json` states the version `{found}`, and the registry `{version}`"))
        }
        _ if manifest.is_object() => Ok(()),
        _ => Err("its `package.json` is not an object".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_stay_inside() {
        for (target, expected) in [
            ("../a/x.js", true),
            ("missing", true),
            ("../../outside", false),
            ("/etc/passwd", false),
            ("../../package/a/x.js", true),
            ("../a/../a/x.js", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("package");
            create_dir_all(root.join("a")).unwrap();
            create_dir_all(root.join("bin")).unwrap();
            write(root.join("a/x.js"), "").unwrap();
            symlink(target, root.join("bin/x")).unwrap();
            assert_eq!(content(&root).is_ok(), expected, "{target}");
        }
    }

    #[test]
    fn the_size_has_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path().join("a"), [0; 100]).unwrap();
        write(folder.path().join("b"), [0; 100]).unwrap();
        let whole = size(&[folder.path()], Size { bytes: 1000, files: 10 });
        assert_eq!(whole, Size { bytes: 200, files: 2 });
        assert_eq!(size(&[folder.path()], Size { bytes: 1000, files: 0 }).files, 1);
    }
}
