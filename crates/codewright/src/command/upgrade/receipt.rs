//! The file beside the program with which the install script tells how to upgrade it.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};

/// The name of the file.
const NAME: &str = "codewright.receipt.json";
/// The only way of installation that this program replaces.
const SCRIPT: &str = "script";
const LIMIT_BYTES: u64 = 16 * 1024;

/// How the program was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    /// `script`.
    pub(crate) method: String,
    pub(crate) version: String,
    /// The system of the archive, such as `x86_64-unknown-linux-musl`.
    pub(crate) target: String,
    /// The address below which releases are published.
    pub(crate) source: String,
    /// The public key of minisign.
    pub(crate) key: String,
}

/// The receipt of a program. `None` if another tool installed it.
///
/// # Errors
///
/// Fails if the file cannot be read, or is not a receipt: then nobody knows what would be replaced.
pub(crate) fn of_program(program: &Path) -> anyhow::Result<Option<Receipt>> {
    let path = path(program);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let mut text = String::new();
    file.take(LIMIT_BYTES)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let receipt: Receipt = serde_json::from_str(&text).with_context(|| {
        format!("{} is not a receipt of the install script; run the install script again", path.display())
    })?;
    ensure!(receipt.method == SCRIPT, "{} names the unknown method `{}`", path.display(), receipt.method);
    Ok(Some(receipt))
}

/// Replaces the receipt of a program.
pub(super) fn write(program: &Path, receipt: &Receipt) -> anyhow::Result<()> {
    let path = path(program);
    let directory = path.parent().context("the program has no directory")?;
    let mut file = tempfile::NamedTempFile::new_in(directory)
        .with_context(|| format!("cannot write in {}", directory.display()))?;
    serde_json::to_writer_pretty(&mut file, receipt)?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    file.persist(&path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

/// Keeps other upgrades of the same program away.
pub(super) fn lock(program: &Path) -> anyhow::Result<File> {
    let path = path(program);
    let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another upgrade of this program is running"),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// The path of the receipt of a program.
pub(super) fn path(program: &Path) -> PathBuf {
    program.with_file_name(NAME)
}
