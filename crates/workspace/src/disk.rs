//! The space of a file system.

use std::io;
use std::path::Path;

/// Returns the bytes that a user without special rights can still write to the file system of `path`.
///
/// # Errors
///
/// Fails if the path does not exist.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}
