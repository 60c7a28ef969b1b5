//! Archives with the same bytes for the same content.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;

/// A file in an archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The path, with `/` between its parts. That of a directory ends with one.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

impl Entry {
    /// A file that everybody reads.
    pub(crate) fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into(), mode: 0o644 }
    }

    /// A directory, for the few that are more than the way to a file.
    pub(crate) fn directory(path: &str, mode: u32) -> Self {
        Self { path: format!("{path}/"), bytes: Vec::new(), mode }
    }

    /// A program.
    pub(crate) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o755, ..Self::file(path, bytes) }
    }
}

/// A compressed archive of tar. `time` is the time of all entries.
pub(crate) fn tar_gz(entries: &[Entry], time: u64) -> Result<Vec<u8>> {
    gzip(&tar(entries, time)?)
}

/// Compresses bytes. The header of gzip has no time and no name.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// An archive of tar, in the order of the paths.
pub(crate) fn tar(entries: &[Entry], time: u64) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        if entry.path.ends_with('/') {
            header.set_entry_type(tar::EntryType::Directory);
        }
        header.set_size(entry.bytes.len() as u64);
        header.set_mode(entry.mode);
        header.set_mtime(time);
        header.set_uid(0);
        header.set_gid(0);
        tar.append_data(&mut header, &entry.path, entry.bytes.as_slice())?;
    }
    Ok(tar.into_inner()?)
}

/// Writes a zip archive with the library of Python, which a checkout needs anyway. Its entries have the earliest time that
/// the format knows.
const ZIP: &str = "
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for line in sys.stdin.read().splitlines():
        mode, source, name = line.split('\\t')
        entry = zipfile.ZipInfo(name)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | int(mode, 8)) << 16
        with open(source, 'rb') as file:
            archive.writestr(entry, file.read())
";

/// A zip archive, in the given order.
pub(crate) fn zip(entries: &[Entry]) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let mut list = String::new();
    for (at, entry) in entries.iter().enumerate() {
        let source = folder.path().join(at.to_string());
        fs::write(&source, &entry.bytes)?;
        list.push_str(&format!("{:o}\t{}\t{}\n", entry.mode, source.display(), entry.path));
    }
    let path = folder.path().join("zip");
    let mut python = Command::new("python3").args(["-c", ZIP]).arg(&path).stdin(Stdio::piped()).spawn()?;
    python.stdin.take().context("python has no input")?.write_all(list.as_bytes())?;
    ensure!(python.wait()?.success(), "python cannot write the archive");
    Ok(fs::read(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_entries_does_not_change_the_bytes() {
        let entries = [Entry::file("b", "2"), Entry::program("a/c", "1")];
        let other = [entries[1].clone(), entries[0].clone()];
        assert_eq!(tar_gz(&entries, 7).unwrap(), tar_gz(&other, 7).unwrap());
        assert_ne!(tar_gz(&entries, 7).unwrap(), tar_gz(&entries, 8).unwrap());
        assert_eq!(zip(&entries).unwrap(), zip(&entries).unwrap());
    }
}
