//! Moves the clock of a program, and makes its disk slow, with a library that the program loads.

use std::fs::{File, Permissions, set_permissions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// The source of the library.
const SOURCE: &str = include_str!("shim.c");
/// The place of the two numbers in the file that the library reads.
const CLOCK: u64 = 0;
/// See [`CLOCK`].
const DISK: u64 = 8;

/// The library, and the files that control the programs.
pub(super) struct Shims {
    directory: TempDir,
    library: PathBuf,
}

/// What controls one program.
pub(super) struct Shim {
    library: PathBuf,
    path: PathBuf,
    file: File,
}

impl Shims {
    /// Builds the library. Fails without a C compiler.
    pub(super) fn build() -> Result<Self> {
        // Programs of other users read it.
        let directory = tempfile::Builder::new().prefix("codewright-fleet.").tempdir_in("/var/tmp")?;
        set_permissions(directory.path(), Permissions::from_mode(0o755))?;
        let library = directory.path().join("shim.so");
        let mut compiler = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-x", "c", "-o"])
            .arg(&library)
            .args(["-", "-ldl"])
            .stdin(Stdio::piped())
            .spawn()
            .context("cannot start `cc`")?;
        compiler.stdin.take().context("no pipe")?.write_all(SOURCE.as_bytes())?;
        let status = compiler.wait()?;
        ensure!(status.success(), "`cc` failed: {status}");
        Ok(Self { directory, library })
    }

    /// The control of one program.
    pub(super) fn of(&self, name: &str) -> Result<Shim> {
        let path = self.directory.path().join(name);
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        file.write_all_at(&[0; 16], 0)?;
        set_permissions(&path, Permissions::from_mode(0o644))?;
        Ok(Shim { library: self.library.clone(), path, file })
    }
}

impl Shim {
    /// The library that the program loads.
    pub(super) fn library(&self) -> &Path {
        &self.library
    }

    /// The variable that the library reads.
    pub(super) fn variable(&self) -> (&'static str, &Path) {
        ("FLEET_CONTROL", &self.path)
    }

    /// Moves the clock by some seconds, compared with this machine.
    pub(super) fn move_clock(&self, seconds: i64) -> Result<()> {
        Ok(self.file.write_all_at(&seconds.saturating_mul(1_000_000_000).to_ne_bytes(), CLOCK)?)
    }

    /// Makes each write to the disk take longer.
    pub(super) fn slow_disk(&self, by: Duration) -> Result<()> {
        let micros = i64::try_from(by.as_micros())?;
        Ok(self.file.write_all_at(&micros.to_ne_bytes(), DISK)?)
    }
}
