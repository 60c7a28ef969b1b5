//! Runs the `git` program so that a repository cannot make it run anything else.
//!
//! Every call of git in the program starts here. The child gets none of our variables, no terminal, no
//! network, no pager and no hook. With a [`Repository`], git does not read the configuration of the
//! repository either. It reads one that is created for the call and has only values that are known to be
//! harmless, see [`settings`]. Filters, drivers, aliases, remotes and helpers of the repository have no
//! effect.

mod linked;
mod locate;
mod process;
mod repository;
mod settings;

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use crate::Error;

pub use linked::{Head, Linked, NewLinked, nested_repository};
pub use locate::{GitDirs, git_dirs, read_small};
use process::Confined;
pub use process::{Ended, Group, MAX_OUTPUT_BYTES, spawn};
pub use repository::{Call, Repository};

/// The directories that are searched if the user's `PATH` is unknown.
const SEARCH: &str = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin";
/// The settings of every call. They also reach the processes that git starts for itself.
const OVERRIDES: [&str; 16] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "core.editor=false",
    "core.sshCommand=false",
    "core.gitProxy=false",
    "core.alternateRefsCommand=false",
    "sequence.editor=false",
    "credential.helper=",
    "gpg.program=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "uploadpack.packObjectsHook=false",
    "maintenance.auto=false",
    "gc.auto=0",
    "commit.gpgSign=false",
];

/// The git program, and the user whose settings it may read.
#[derive(Debug, Clone)]
pub struct Git {
    search: OsString,
    home: PathBuf,
    config_home: PathBuf,
}

/// The configuration that git reads besides the one of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settings {
    /// None.
    Nothing,
    /// The user's and the system's.
    User,
}

impl Git {
    /// Creates a value for the git program in `search`, a `PATH`, and for the user with this home and
    /// configuration directory.
    #[must_use]
    pub fn new(search: Option<&str>, home: &Path, config_home: &Path) -> Self {
        let search = search.unwrap_or(SEARCH).into();
        Self { search, home: home.to_owned(), config_home: config_home.to_owned() }
    }

    /// Creates a repository in a directory, with the user's templates and default branch.
    ///
    /// # Errors
    ///
    /// Fails if git is missing or fails.
    pub async fn init(&self, directory: &Path, deadline: Duration) -> Result<(), Error> {
        let mut command = self.start(directory, Settings::User)?;
        command.args(["init", "--quiet"]);
        process::succeed(Confined { command, write: vec![directory] }, "init", deadline).await
    }

    /// Runs git in a directory that the program created, without settings of the user.
    ///
    /// # Errors
    ///
    /// Fails if git is missing or fails.
    pub async fn run_in_own(&self, directory: &Path, args: &[&str], deadline: Duration) -> Result<(), Error> {
        let mut command = self.start(directory, Settings::Nothing)?;
        command.args(args);
        let name = args.first().unwrap_or(&"");
        process::succeed(Confined { command, write: vec![directory] }, name, deadline).await
    }

    fn start(&self, directory: &Path, settings: Settings) -> Result<Command, Error> {
        let mut command = command(Some(&self.search), directory)?;
        match settings {
            Settings::Nothing => without_settings(&mut command, &self.home),
            Settings::User => {
                command.env("HOME", &self.home).env("XDG_CONFIG_HOME", &self.config_home);
            }
        }
        Ok(command)
    }
}

/// Returns a call of git in a worktree, with an empty environment and without anything that runs other
/// programs.
///
/// The caller chooses the settings that git reads with the variables `HOME` and `GIT_CONFIG_…`. The process
/// has its own group and is killed when its handle is dropped.
///
/// # Errors
///
/// Fails if there is no git outside the worktree.
pub fn command(search: Option<&OsStr>, worktree: &Path) -> Result<Command, Error> {
    let search = search.unwrap_or(OsStr::new(SEARCH));
    let trusted = outside(search, worktree);
    let program = find(&trusted).ok_or(Error::NoGit)?;
    let mut command = Command::new(program);
    command.args(["--no-pager", "--literal-pathspecs"]);
    for value in OVERRIDES {
        command.args(["-c", value]);
    }
    command
        .current_dir(worktree)
        .env_clear()
        .env("PATH", std::env::join_paths(&trusted).unwrap_or_default())
        .env("LC_ALL", "C")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_PROTOCOL_FROM_USER", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "")
        .env("GIT_PAGER", "cat")
        .env("GIT_EDITOR", "false")
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

/// Prevents git from reading settings of the user or the system. `home` is a directory without any.
pub fn without_settings(command: &mut Command, home: &Path) {
    command
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
}

/// The directories of a `PATH` in which a worktree cannot place programs: absolute ones outside it.
fn outside(search: &OsStr, worktree: &Path) -> Vec<PathBuf> {
    let is_outside = |directory: &PathBuf| {
        let resolved = directory.canonicalize().unwrap_or_else(|_| directory.clone());
        // The worktree `/` contains all programs, including the system's.
        directory.is_absolute() && (worktree == Path::new("/") || !resolved.starts_with(worktree))
    };
    std::env::split_paths(search).filter(is_outside).collect()
}

fn find(directories: &[PathBuf]) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    directories.iter().map(|directory| directory.join("git")).find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_in_the_worktree_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for directory in ["worktree/bin", "system"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
            let program = root.join(directory).join("git");
            std::fs::write(&program, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("worktree/bin"), root.join("link")).unwrap();
        let worktree = root.join("worktree");
        let path = |names: &[&str]| {
            let names =
                names.iter().map(|name| if name.is_empty() { PathBuf::new() } else { root.join(name) });
            std::env::join_paths(names).unwrap()
        };
        let found = |search: &OsStr| find(&outside(search, &worktree));
        let expected = Some(root.join("system/git"));
        assert_eq!(found(&path(&["worktree/bin", "system"])), expected);
        assert_eq!(found(&path(&["link", "system"])), expected);
        assert_eq!(found(&path(&["", "system"])), expected);
        assert_eq!(found(OsStr::new("bin:.:worktree/bin")), None);
        assert_eq!(find(&outside(&path(&["worktree/bin"]), Path::new("/"))), Some(worktree.join("bin/git")));
    }
}
