//! Reads a small text file of the user.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use crate::FileProblem;

/// The largest configuration file, or file that a configuration refers to.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Returns the text of a regular file.
pub(crate) fn read(path: &Path) -> Result<String, FileProblem> {
    // Checked before opening, because opening a pipe waits for a writer.
    let kind = fs::metadata(path).map_err(problem)?;
    if kind.is_dir() {
        return Err(FileProblem::Directory);
    }
    if !kind.is_file() {
        return Err(FileProblem::Special);
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(problem)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(problem)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(FileProblem::TooLarge { limit_bytes: MAX_FILE_BYTES });
    }
    String::from_utf8(bytes).map_err(|_| FileProblem::NotText)
}

fn problem(error: io::Error) -> FileProblem {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileProblem::Missing,
        io::ErrorKind::IsADirectory => FileProblem::Directory,
        _ => FileProblem::Unreadable(error),
    }
}
