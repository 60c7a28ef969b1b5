//! A restricted view of a user's repository for git.
//!
//! Git reads `HEAD` from the repository's own directory. Everything else comes from a directory that is
//! created for this value: a configuration with known settings, links to the repository's branches, and
//! attributes without filters. Objects are read in place, and git gets a copy of the index. Only the operations
//! on linked worktrees (see `linked`) write to the repository.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;

use super::process::{Confined, Ended, MAX_OUTPUT_BYTES, stream};
use super::settings::Allowed;
use super::{Git, Settings, git_dirs, read_small, without_settings};
use crate::Error;

/// The time limit for printing the settings.
const SETTINGS_DEADLINE: Duration = Duration::from_secs(5);
/// The limit for the size of the settings.
const MAX_SETTINGS_BYTES: usize = 1024 * 1024;
/// The limit for the size of a copied list of attributes or ignored files.
const MAX_LIST_BYTES: u64 = 1024 * 1024;
/// The limit for the size of a copied index.
pub(super) const MAX_INDEX_BYTES: u64 = 256 * 1024 * 1024;
/// Attributes that override all others, so that no filter runs.
const ATTRIBUTES: &[u8] = b"\n* -filter\n";
/// The empty tree in each object format.
const EMPTY_TREES: [&str; 2] = [
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
];

/// A repository that git can read.
#[derive(Debug)]
pub struct Repository {
    git: Git,
    worktree: PathBuf,
    pub(super) own: PathBuf,
    pub(super) common: PathBuf,
    is_sha256: bool,
    /// The replacement for the repository's common directory.
    stand_in: TempDir,
}

/// A run of git in a repository.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The command and its arguments.
    pub args: &'a [&'a str],
    /// The input.
    pub input: Option<&'a [u8]>,
    /// The time limit.
    pub deadline: Duration,
}

impl Git {
    /// Opens the repository whose worktree starts here.
    ///
    /// # Errors
    ///
    /// Fails if git or the repository is missing, if another user owns it, or if its files are not as git
    /// creates them.
    pub async fn open(&self, worktree: &Path) -> Result<Repository, Error> {
        let refused = |message: String| Error::Git { message };
        let dirs = git_dirs(worktree)
            .ok_or_else(|| refused(format!("`{}` has no usable repository", worktree.display())))?;
        let foreign = dirs.foreign(worktree);
        let own = if foreign.is_some() { Path::new("/dev/null") } else { &dirs.own };
        let common = if foreign.is_some() { own } else { &dirs.common };
        let allowed = self.settings(worktree, own, common).await?;
        if let Some(foreign) = foreign
            && !allowed.is_safe(worktree)
        {
            let foreign = foreign.display();
            let hint = "`git config --global --add safe.directory` allows it";
            return Err(refused(format!("`{foreign}` belongs to another user; {hint}")));
        }
        check_files(&dirs.own, &dirs.common)?;
        let stand_in = stand_in(&dirs.common, &allowed).map_err(|error| Error::at(&dirs.common, error))?;
        Ok(Repository {
            git: self.clone(),
            worktree: worktree.to_owned(),
            own: dirs.own,
            common: dirs.common,
            is_sha256: allowed.is_sha256(),
            stand_in,
        })
    }

    /// The allowed settings of a repository and of the user.
    async fn settings(&self, worktree: &Path, own: &Path, common: &Path) -> Result<Allowed, Error> {
        let mut command = self.start(worktree, Settings::User)?;
        command.env("GIT_DIR", own).env("GIT_COMMON_DIR", common).env("GIT_WORK_TREE", worktree);
        command.args(["config", "--list", "--show-scope", "-z"]);
        let mut listed = Vec::new();
        let take = |piece: &[u8]| {
            listed.extend_from_slice(piece);
            listed.len() <= MAX_SETTINGS_BYTES
        };
        let ended =
            stream(Confined { command, write: Vec::new() }, "config", None, SETTINGS_DEADLINE, take).await?;
        if ended != Ended::Well {
            return Err(Error::Git { message: "git cannot read the settings of the repository".to_owned() });
        }
        let mut allowed = Allowed::read(&listed, &self.home);
        let usual = |name: &str| Some(self.config_home.join("git").join(name));
        allowed.attributes = allowed.attributes.or_else(|| usual("attributes"));
        allowed.excludes = allowed.excludes.or_else(|| usual("ignore"));
        for list in [&mut allowed.attributes, &mut allowed.excludes] {
            list.take_if(|path| !path.is_file());
        }
        Ok(allowed)
    }
}

impl Repository {
    /// The empty tree, with which a repository without commits is compared.
    #[must_use]
    pub fn empty_tree(&self) -> &'static str {
        EMPTY_TREES[usize::from(self.is_sha256)]
    }

    /// Whether object ids are SHA-256.
    #[must_use]
    pub fn is_sha256(&self) -> bool {
        self.is_sha256
    }

    /// Returns git's output, or `None` if git fails.
    ///
    /// # Errors
    ///
    /// Fails if git cannot run, takes too long or prints more than [`MAX_OUTPUT_BYTES`].
    pub async fn output(&self, call: Call<'_>) -> Result<Option<Vec<u8>>, Error> {
        let mut output = Vec::new();
        let take = |piece: &[u8]| {
            output.extend_from_slice(piece);
            output.len() <= MAX_OUTPUT_BYTES
        };
        match self.stream(call, take).await? {
            Ended::Well => Ok(Some(output)),
            Ended::Badly => Ok(None),
            Ended::Stopped => Err(Error::GitOutput { limit_bytes: MAX_OUTPUT_BYTES }),
        }
    }

    /// Returns the single line that git prints, or `None` if it fails or prints nothing.
    pub async fn line(&self, call: Call<'_>) -> Option<String> {
        let output = self.output(call).await.ok()??;
        let line = String::from_utf8(output).ok()?.trim().to_owned();
        (!line.is_empty()).then_some(line)
    }

    /// Runs git. `take` receives its output and returns whether it needs more.
    ///
    /// # Errors
    ///
    /// Fails if git cannot run or takes too long.
    pub async fn stream(&self, call: Call<'_>, take: impl FnMut(&[u8]) -> bool) -> Result<Ended, Error> {
        let mut command = self.command()?;
        command.args(call.args);
        let confined = Confined { command, write: self.written_by(call.args) };
        stream(confined, call.args.first().unwrap_or(&""), call.input, call.deadline, take).await
    }

    /// The directories that a command writes. Most write only the copy of the index.
    fn written_by(&self, args: &[&str]) -> Vec<&Path> {
        let stand_in = self.stand_in.path();
        match args {
            ["apply", ..] => vec![stand_in, &self.worktree],
            ["update-ref", ..] => vec![stand_in, &self.common, &self.own],
            ["read-tree", rest @ ..] if rest.contains(&"-u") => vec![stand_in, &self.worktree],
            _ => vec![stand_in],
        }
    }

    /// Copies the index for later calls. A repository without one gets an empty index.
    ///
    /// # Errors
    ///
    /// Fails if the index is not a regular file or larger than 256 MiB.
    pub fn copy_index(&self) -> Result<(), Error> {
        let path = self.own.join("index");
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        let unusable = |message: &str| Error::Git { message: format!("`{}` {message}", path.display()) };
        let mut options = fs::OpenOptions::new();
        options.read(true).custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
        let file = options.open(&path).map_err(|error| Error::at(&path, error))?;
        let data = file.metadata().map_err(|error| Error::at(&path, error))?;
        if !data.is_file() || data.len() > MAX_INDEX_BYTES {
            return Err(unusable("is not an index of at most 256 MiB"));
        }
        let copied = fs::File::create(self.index())
            .and_then(|mut copy| std::io::copy(&mut file.take(MAX_INDEX_BYTES), &mut copy));
        copied.map(drop).map_err(|error| Error::at(&path, error))
    }

    /// The copy of the index.
    pub(super) fn index(&self) -> PathBuf {
        self.stand_in.path().join("index")
    }

    fn command(&self) -> Result<Command, Error> {
        let mut command = super::command(Some(&self.git.search), &self.worktree)?;
        let stand_in = self.stand_in.path();
        without_settings(&mut command, stand_in);
        command
            .env("GIT_DIR", &self.own)
            .env("GIT_COMMON_DIR", stand_in)
            .env("GIT_WORK_TREE", &self.worktree)
            .env("GIT_OBJECT_DIRECTORY", self.common.join("objects"))
            .env("GIT_INDEX_FILE", self.index())
            .env("GIT_GRAFT_FILE", "/dev/null");
        Ok(command)
    }
}

/// Rejects a repository in which git would wait for a pipe or read without end.
fn check_files(own: &Path, common: &Path) -> Result<(), Error> {
    let files = [
        own.join("HEAD"),
        common.join("packed-refs"),
        common.join("shallow"),
        common.join("objects/info/alternates"),
        common.join("objects/info/commit-graph"),
    ];
    let is_odd = |path: &&PathBuf| path.metadata().is_ok_and(|data| !data.is_file());
    match files.iter().find(is_odd) {
        Some(odd) => Err(Error::Git { message: format!("`{}` is not a regular file", odd.display()) }),
        None => Ok(()),
    }
}

/// Creates the replacement for the repository's common directory.
fn stand_in(common: &Path, allowed: &Allowed) -> std::io::Result<TempDir> {
    let made = tempfile::Builder::new().prefix("codewright-git-").tempdir()?;
    let path = |name: &str| made.path().join(name);
    fs::create_dir(path("info"))?;
    fs::write(path("config"), allowed.text())?;
    let list = |name: &str| read_small(&common.join("info").join(name), MAX_LIST_BYTES).unwrap_or_default();
    fs::write(path("info/attributes"), [list("attributes"), ATTRIBUTES.to_vec()].concat())?;
    fs::write(path("info/exclude"), list("exclude"))?;
    for name in ["refs", "packed-refs", "reftable", "shallow"] {
        let target = common.join(name);
        if target.exists() {
            symlink(OsString::from(target), path(name))?;
        }
    }
    Ok(made)
}
