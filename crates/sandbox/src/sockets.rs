//! The unix sockets of services that a command could see.
//!
//! A read-only mount does not prevent a connection to a socket, and namespaces do not separate sockets that have
//! a path. The sockets that are open when a command starts are therefore covered one by one. Sockets of other
//! commands are not listed, because they belong to other network namespaces.

use std::collections::BTreeSet;
use std::fs::{canonicalize, symlink_metadata};
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::access::Rule;
use crate::{Error, TEMPORARY};

/// The list of the kernel.
const LIST: &str = "/proc/net/unix";
/// The largest list that is read. Beyond it the command is not started.
const MAX_LIST_BYTES: u64 = 16 * 1024 * 1024;
/// The largest number of visible sockets. Beyond it the command is not started.
const MAX_VISIBLE: usize = 1000;
/// The number of words before the path in a line of the list.
const WORDS_BEFORE: usize = 7;

/// The sockets that no rule hides.
///
/// # Errors
///
/// Fails if the list cannot be read or is too long.
pub(crate) fn visible(rules: &[Rule]) -> Result<BTreeSet<PathBuf>, Error> {
    let failed = |source| Error::Path { path: LIST.into(), source };
    let mut list = Vec::new();
    let file = std::fs::File::open(LIST).map_err(failed)?;
    file.take(MAX_LIST_BYTES + 1).read_to_end(&mut list).map_err(failed)?;
    if list.len() as u64 > MAX_LIST_BYTES {
        return Err(failed(std::io::Error::other("too many sockets are open")));
    }
    let text = String::from_utf8_lossy(&list);
    let found: BTreeSet<PathBuf> =
        text.lines().filter_map(path).filter_map(|path| seen(path, rules)).collect();
    if found.len() > MAX_VISIBLE {
        return Err(failed(std::io::Error::other(format!("more than {MAX_VISIBLE} sockets are visible"))));
    }
    Ok(found)
}

/// The absolute path in a line of the list.
fn path(line: &str) -> Option<&Path> {
    let mut rest = line;
    for _ in 0..WORDS_BEFORE {
        rest = rest.trim_start().split_once(' ')?.1;
    }
    rest.starts_with('/').then(|| Path::new(rest))
}

/// The path without links, if it still is a socket and a command could see it.
fn seen(path: &Path, rules: &[Rule]) -> Option<PathBuf> {
    let path = canonicalize(path.parent()?).ok()?.join(path.file_name()?);
    let above = rules.iter().rev().find(|rule| path.starts_with(&rule.path));
    let is_hidden = match above {
        Some(rule) => rule.access.is_hidden(),
        None => path.starts_with(TEMPORARY),
    };
    let is_socket = || symlink_metadata(&path).is_ok_and(|metadata| metadata.file_type().is_socket());
    (!is_hidden && is_socket()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_line_may_contain_spaces() {
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 16163 /a b/c";
        assert_eq!(path(line), Some(Path::new("/a b/c")));
        for line in [
            "Num       RefCount Protocol Flags    Type St Inode Path",
            "0: 2 0 1 0001 01 1",
            "0: 2 0 1 0001 01 1 @/a",
            "0: 2 0 1 0001 01 1 a/b",
        ] {
            assert_eq!(path(line), None, "{line}");
        }
    }
}
