//! The sockets of proxies.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use codewright_workspace::make_private_directory;

use crate::inner::Inner;

/// The directory of the sockets, in the directory of the state.
const DIRECTORY: &str = "proxy";
/// The number of sockets of dead processes that are removed at once.
const MAX_SWEPT: usize = 1000;

/// A path for the socket of a new proxy, in a directory that only the user can search.
pub(super) fn new_socket(inner: &Inner) -> std::io::Result<PathBuf> {
    /// Distinguishes the proxies of this process.
    static PROXIES: AtomicU64 = AtomicU64::new(0);
    let directory = inner.dirs.state.join(DIRECTORY);
    make_private_directory(&directory)?;
    let number = PROXIES.fetch_add(1, Ordering::Relaxed);
    if number == 0 {
        sweep(&directory);
    }
    let socket = directory.join(format!("{}-{number}", std::process::id()));
    // A dead process may have had the same id.
    match std::fs::remove_file(&socket) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(socket),
    }
}

/// Removes the sockets of processes that were killed.
fn sweep(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten().take(MAX_SWEPT) {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.split_once('-')).map(|(process, _)| process);
        if process.is_none_or(|process| !Path::new("/proc").join(process).exists()) {
            // It is tried again by the next process.
            drop(std::fs::remove_file(entry.path()));
        }
    }
}
