//! The script that the process runs: part of this program, and written into the cache.
//!
//! The directory of its files has the digest of their content as its name. They are compared with the content before each
//! start, so a file that something else has changed is replaced.

use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use codewright_workspace::{make_private_directory, write_atomic};
use flate2::read::DeflateDecoder;
use ring::digest;

/// A file of the script: its name and its compressed content.
type File = (&'static str, &'static [u8]);

macro_rules! file {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../plugin-host/dist/", $name, ".deflate")))
    };
}

/// The files. The first one is run, and loads the others when it needs them.
const FILES: [File; 4] = [file!("host.mjs"), file!("zod.cjs"), file!("typescript.cjs"), file!("bun.cjs")];
/// The largest script.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The directory of the script, below the cache.
pub const SCRIPTS: &str = "plugin-host";
/// The files of other versions that are kept.
const MAX_OTHERS: usize = 3;

/// Returns the path of the script below a cache directory, and writes its files if necessary. Blocks.
///
/// # Errors
///
/// Fails with a sentence if they cannot be written.
pub(crate) fn prepare(cache: &Path) -> Result<PathBuf, String> {
    let contents: Vec<Vec<u8>> = FILES.iter().map(|(_, file)| unpack(file)).collect::<Result<_, _>>()?;
    let all = cache.join(SCRIPTS);
    let directory = all.join(name(&contents));
    let paths: Vec<PathBuf> = FILES.iter().map(|(name, _)| directory.join(name)).collect();
    for (path, content) in paths.iter().zip(&contents) {
        if is_same(path, content) {
            continue;
        }
        let cannot = |error: &dyn std::fmt::Display| format!("cannot write `{}`: {error}", path.display());
        make_private_directory(&all).map_err(|error| cannot(&error))?;
        if directory.symlink_metadata().is_err() {
            remove_others(&all);
        }
        make_private_directory(&directory).map_err(|error| cannot(&error))?;
        // A link in its place would be refused. If it cannot be removed, the write fails.
        drop(std::fs::remove_file(path));
        write_atomic(path, content).map_err(|error| cannot(&error))?;
        // A process of the same user can change it all the same, which the next start notices.
        let read_only = std::fs::Permissions::from_mode(0o400);
        std::fs::set_permissions(path, read_only).map_err(|error| cannot(&error))?;
    }
    paths.into_iter().next().ok_or_else(damaged)
}

fn unpack(file: &[u8]) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let mut reader = DeflateDecoder::new(file).take(MAX_BYTES + 1);
    let read = reader.read_to_end(&mut content);
    match read {
        Ok(count) if count as u64 <= MAX_BYTES => Ok(content),
        Ok(_) | Err(_) => Err(damaged()),
    }
}

fn damaged() -> String {
    "the program's copy of the plugin host is damaged".to_owned()
}

/// The digest of all contents.
fn name(contents: &[Vec<u8>]) -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let mut all = digest::Context::new(&digest::SHA256);
        for content in contents {
            all.update(digest::digest(&digest::SHA256, content).as_ref());
        }
        all.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

/// Whether a file of the user has this content.
fn is_same(path: &Path, content: &[u8]) -> bool {
    let Ok(about) = path.symlink_metadata() else { return false };
    let is_plain = about.is_file() && about.nlink() == 1 && about.len() == content.len() as u64;
    is_plain && std::fs::read(path).is_ok_and(|read| read == content)
}

/// Removes the scripts of older versions. A process that is running loads what it has not loaded yet from its directory,
/// so the newest ones stay.
fn remove_others(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut others: Vec<_> = entries.flatten().take(1000).map(|entry| entry.path()).collect();
    others.sort_by_key(|path| path.symlink_metadata().and_then(|about| about.modified()).ok());
    let surplus = others.len().saturating_sub(MAX_OTHERS);
    for path in &others[..surplus] {
        // One that cannot be removed is harmless. Older versions of the program wrote files.
        let is_directory = path.symlink_metadata().is_ok_and(|about| about.is_dir());
        drop(if is_directory { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_script_is_replaced() {
        let cache = tempfile::tempdir().unwrap();
        let path = prepare(cache.path()).unwrap();
        let content = std::fs::read(&path).unwrap();
        assert!(content.starts_with(b"// Generated from plugin-host/src"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "evil()").unwrap();
        assert_eq!(prepare(cache.path()).unwrap(), path);
        assert_eq!(std::fs::read(&path).unwrap(), content);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert_eq!(prepare(cache.path()).unwrap(), path);
        assert!(path.symlink_metadata().unwrap().is_file());
        assert_eq!(std::fs::read(&path).unwrap(), content);
        let part = path.with_file_name("zod.cjs");
        std::fs::remove_file(&part).unwrap();
        assert_eq!(prepare(cache.path()).unwrap(), path);
        assert!(std::fs::read(&part).unwrap().starts_with(b"// Generated from plugin-host/src"));
    }

    #[test]
    fn the_scripts_of_older_versions_are_removed() {
        let cache = tempfile::tempdir().unwrap();
        let all = cache.path().join(SCRIPTS);
        for number in 0..8 {
            std::fs::create_dir_all(all.join(format!("old{number}"))).unwrap();
            std::fs::write(all.join(format!("old{number}/host.mjs")), "").unwrap();
        }
        std::fs::write(all.join("older.mjs"), "").unwrap();
        let path = prepare(cache.path()).unwrap();
        assert!(path.is_file());
        assert_eq!(std::fs::read_dir(&all).unwrap().count(), MAX_OTHERS + 1);
    }
}
