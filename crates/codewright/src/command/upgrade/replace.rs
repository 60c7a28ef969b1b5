//! Replaces the file of the program. At each moment the name leads to a whole program, the old or the new one.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tempfile::{NamedTempFile, TempPath};

use crate::clean::clean_line;

/// The largest program in an archive.
const PROGRAM_LIMIT_BYTES: u64 = 256 * 1024 * 1024;
/// The largest number of entries of an archive.
const ENTRIES_LIMIT: usize = 1000;
/// The deadline for the new program to print its version.
const VERSION_DEADLINE: Duration = Duration::from_secs(10);
const VERSION_LIMIT_BYTES: u64 = 1024;

/// Unpacks the program of an archive into a new file beside the old one.
pub(super) fn unpack(archive: &[u8], program: &Path) -> anyhow::Result<TempPath> {
    let directory = program.parent().context("the program has no directory")?;
    let name = program.file_name().context("the program has no name")?;
    let mut file = tempfile::Builder::new()
        .prefix(".codewright-")
        .tempfile_in(directory)
        .with_context(|| format!("cannot write in {}; nothing was changed", directory.display()))?;
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    for entry in archive.entries()?.take(ENTRIES_LIMIT) {
        let entry = entry.context("the archive is damaged")?;
        let is_program = entry.header().entry_type().is_file()
            && entry.path()?.file_name().is_some_and(|found| found == "codewright" || found == name);
        if !is_program {
            continue;
        }
        ensure!(entry.size() <= PROGRAM_LIMIT_BYTES, "the program has more than {PROGRAM_LIMIT_BYTES} bytes");
        let expected = entry.size();
        let written = std::io::copy(&mut entry.take(PROGRAM_LIMIT_BYTES), &mut file)
            .context("cannot unpack the program; nothing was changed")?;
        ensure!(written == expected, "the archive is damaged");
        make_executable(file.path())?;
        file.as_file().sync_all().context("cannot write the program; nothing was changed")?;
        // A file that is open for writing cannot be started.
        return Ok(file.into_temp_path());
    }
    bail!("the archive has no program; nothing was changed")
}

/// Runs the new program, so that one that cannot run here replaces nothing.
pub(super) fn check_version(program: &Path, expected: &str) -> anyhow::Result<()> {
    let version =
        version_of(program).context("the new program does not run on this machine; nothing was changed")?;
    ensure!(
        version == expected,
        "the archive has version {} instead of {expected}; nothing was changed",
        clean_line(&version)
    );
    Ok(())
}

/// Puts the new program in the place of the old one, which is kept beside it.
pub(super) fn replace(program: &Path, new: TempPath) -> anyhow::Result<()> {
    let previous = previous(program);
    let kept =
        NamedTempFile::new_in(program.parent().context("the program has no directory")?)?.into_temp_path();
    // A hard link keeps the old file whole; file systems without links get a copy.
    fs::remove_file(&kept)?;
    fs::hard_link(program, &kept)
        .or_else(|_| fs::copy(program, &kept).map(drop))
        .context("cannot keep the old program")?;
    kept.persist(&previous).context("cannot keep the old program")?;
    new.persist(program).with_context(|| format!("cannot replace {}", program.display()))?;
    Ok(())
}

/// Exchanges the program with the kept one, and returns its version.
pub(super) fn rollback(program: &Path) -> anyhow::Result<String> {
    let previous = previous(program);
    ensure!(previous.is_file(), "there is no older program: {} is missing", previous.display());
    let version = version_of(&previous).with_context(|| format!("{} does not run", previous.display()))?;
    let directory = program.parent().context("the program has no directory")?;
    let kept = NamedTempFile::new_in(directory)?.into_temp_path();
    fs::remove_file(&kept)?;
    fs::hard_link(program, &kept)
        .or_else(|_| fs::copy(program, &kept).map(drop))
        .context("cannot keep the program")?;
    fs::rename(&previous, program).with_context(|| format!("cannot replace {}", program.display()))?;
    kept.persist(&previous).context("cannot keep the newer program")?;
    Ok(version)
}

/// The name under which the replaced program is kept.
pub(super) fn previous(program: &Path) -> PathBuf {
    let mut name = program.file_name().unwrap_or_default().to_owned();
    name.push(".previous");
    program.with_file_name(name)
}

/// The version that a program prints.
fn version_of(program: &Path) -> anyhow::Result<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let end = Instant::now() + VERSION_DEADLINE;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            bail!("it prints no version within {} s", VERSION_DEADLINE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    ensure!(status.success(), "it ends with {status}");
    let mut text = String::new();
    let output = child.stdout.take().context("it has no output")?;
    output.take(VERSION_LIMIT_BYTES).read_to_string(&mut text)?;
    // `0.1.0 (interface of OpenCode 1.18.33)`.
    Ok(text.split_whitespace().next().unwrap_or_default().to_owned())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> anyhow::Result<()> {
    Ok(())
}
