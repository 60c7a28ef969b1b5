//! A release of a built program on a server of this machine, for those who play its installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::rehearse::place::Place;
use super::{Release, recipes, target};

/// The published release.
pub(crate) struct Published {
    pub(crate) version: String,
    /// The system of the archive.
    pub(crate) triple: &'static str,
    /// The install script.
    pub(crate) script: PathBuf,
    archive: PathBuf,
}

impl Published {
    /// Publishes a program. Everything is below a directory; the server ends with the process.
    pub(crate) fn start(root: &Path, program: &Path, folder: &Path) -> Result<Self> {
        let place = Place::start(folder.join("published"))?;
        let (version, triple) = (super::version(root)?, target::of_this_machine()?.triple);
        let release = Release {
            root: root.to_owned(),
            out: folder.join("release"),
            version: version.clone(),
            source: place.address(),
            commit: String::new(),
            time: 0,
            date: String::new(),
            key: String::new(),
        };
        let name = format!("codewright-{version}-{triple}");
        fs::create_dir_all(release.out.join(&name))?;
        fs::copy(program, release.out.join(&name).join("codewright"))?;
        let archive = format!("{name}.tar.gz");
        // A program for debugging is large, so it is compressed quickly.
        let mut tar = Command::new("tar");
        tar.args(["--use-compress-program=gzip -1", "-cf", &archive, &name]).current_dir(&release.out);
        ensure!(tar.status().context("cannot start tar")?.success(), "tar failed");
        fs::remove_dir_all(release.out.join(&name))?;
        recipes::write(&release, &std::collections::BTreeMap::new(), None)?;
        super::digests(&release)?;
        place.publish(&release.out, &version)?;
        let script = release.out.join("install.sh");
        Ok(Self { archive: place.file(&version, &archive), version, triple, script })
    }

    /// Changes the published archive, but not its digest.
    pub(crate) fn damage(&self) -> Result<()> {
        let mut bytes = fs::read(&self.archive)?;
        bytes.truncate(bytes.len() / 2);
        Ok(fs::write(&self.archive, bytes)?)
    }
}
