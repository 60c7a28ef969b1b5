//! The script that the process runs: part of this program, and written into the cache.
//!
//! The file has the digest of its content in its name. It is compared with the content before each start, so a file that
//! something else has changed is replaced.

use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use codewright_workspace::{make_private_directory, write_atomic};
use flate2::read::DeflateDecoder;
use ring::digest;

/// The compressed script.
const COMPRESSED: &[u8] = include_bytes!("../../../plugin-host/dist/host.mjs.deflate");
/// The largest script.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The directory of the script, below the cache.
pub const SCRIPTS: &str = "plugin-host";
/// The files of other versions that are kept.
const MAX_OTHERS: usize = 3;

/// Returns the path of the script below a cache directory, and writes it if necessary. Blocks.
///
/// # Errors
///
/// Fails with a sentence if it cannot be written.
pub(crate) fn prepare(cache: &Path) -> Result<PathBuf, String> {
    let content = unpack()?;
    let directory = cache.join(SCRIPTS);
    let path = directory.join(format!("{}.mjs", name(&content)));
    if is_same(&path, &content) {
        return Ok(path);
    }
    let cannot = |error: &dyn std::fmt::Display| format!("cannot write `{}`: {error}", path.display());
    make_private_directory(&directory).map_err(|error| cannot(&error))?;
    remove_others(&directory);
    // A link in its place would be refused. If it cannot be removed, the write fails.
    drop(std::fs::remove_file(&path));
    write_atomic(&path, &content).map_err(|error| cannot(&error))?;
    // A process of the same user can change it all the same, which the next start notices.
    let read_only = std::fs::Permissions::from_mode(0o400);
    std::fs::set_permissions(&path, read_only).map_err(|error| cannot(&error))?;
    Ok(path)
}

fn unpack() -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let mut reader = DeflateDecoder::new(COMPRESSED).take(MAX_BYTES + 1);
    let read = reader.read_to_end(&mut content);
    match read {
        Ok(count) if count as u64 <= MAX_BYTES => Ok(content),
        Ok(_) | Err(_) => Err("the program's copy of the plugin host is damaged".to_owned()),
    }
}

fn name(content: &[u8]) -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let digest = digest::digest(&digest::SHA256, content);
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

/// Whether a file of the user has this content.
fn is_same(path: &Path, content: &[u8]) -> bool {
    let Ok(about) = path.symlink_metadata() else { return false };
    let is_plain = about.is_file() && about.nlink() == 1 && about.len() == content.len() as u64;
    is_plain && std::fs::read(path).is_ok_and(|read| read == content)
}

/// Removes the scripts of older versions. One that is in use is already in memory.
fn remove_others(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut others: Vec<_> = entries.flatten().take(1000).map(|entry| entry.path()).collect();
    others.sort_by_key(|path| path.metadata().and_then(|about| about.modified()).ok());
    let surplus = others.len().saturating_sub(MAX_OTHERS);
    for path in &others[..surplus] {
        // One that cannot be removed is harmless.
        drop(std::fs::remove_file(path));
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
    }
}
