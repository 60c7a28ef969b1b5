//! Linked worktrees: additional directories of a repository, each with its own branch.
//!
//! Git registers a linked worktree in `worktrees/<id>` of the common directory. The registration is written here,
//! because `git worktree` reads the repository's configuration. A symbolic link in place of one of the directories
//! is rejected, so that nothing is written outside the repository.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::locate::pointer;
use super::repository::MAX_INDEX_BYTES;
use super::{Call, GitDirs, Repository, git_dirs};
use crate::{Error, normalize};

/// The number of registrations that are read.
const MAX_LINKED: usize = 1000;
/// The number of ids that are tried for a registration.
const MAX_IDS: usize = 100;
/// The number of commits that are counted.
const MAX_COMMITS: &str = "--max-count=1000";
/// The number of directory entries that are searched for another repository.
const MAX_ENTRIES: usize = 2_000_000;
/// The lengths of a commit's name, in SHA-1 and in SHA-256.
const NAME_DIGITS: [usize; 2] = [40, 64];

/// The commit or branch that a worktree is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// A branch, without `refs/heads/`.
    Branch(String),
    /// The name of a commit.
    Detached(String),
}

/// A registered linked worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// The directory. It may be missing or belong to another repository by now.
    pub directory: PathBuf,
    /// The commit or branch; `None` if the registration is damaged.
    pub head: Option<Head>,
    /// Whether the user locked the worktree against removal.
    pub is_locked: bool,
    /// Whether a rebase, a merge or another operation is in progress.
    pub is_mid_operation: bool,
    registration: PathBuf,
}

/// A linked worktree to create.
#[derive(Debug, Clone, Copy)]
pub struct NewLinked<'a> {
    /// The directory, which must not exist. Its parent must exist.
    pub directory: &'a Path,
    /// The new branch; `None` for a detached head.
    pub branch: Option<&'a str>,
    /// The name of the commit.
    pub commit: &'a str,
    /// The time limit of each run of git.
    pub deadline: Duration,
}

impl GitDirs {
    /// Returns the registered linked worktrees, ordered by the names of their registrations.
    #[must_use]
    pub fn linked(&self) -> Vec<Linked> {
        let folder = self.common.join("worktrees");
        if !is_directory(&folder) {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(&folder) else { return Vec::new() };
        let mut found: Vec<_> = entries
            .take(MAX_LINKED)
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_directory(path))
            .filter_map(|registration| Linked::read(&registration))
            .collect();
        found.sort_by(|one, other| one.registration.cmp(&other.registration));
        found
    }

    /// Returns the main worktree if `worktree` is a linked one that the main repository has registered.
    #[must_use]
    pub fn main_worktree(&self, worktree: &Path) -> Option<PathBuf> {
        let is_registered =
            self.own != self.common && self.own.parent() == Some(self.common.join("worktrees").as_path());
        let points_back = || Linked::read(&self.own).is_some_and(|linked| same(&linked.directory, worktree));
        if !is_registered || self.common.file_name()? != ".git" || !points_back() {
            return None;
        }
        let main = self.common.parent()?.canonicalize().ok()?;
        is_directory(&main.join(".git")).then_some(main)
    }
}

impl Linked {
    fn read(registration: &Path) -> Option<Self> {
        let dot = normalize(&registration.join(pointer(&registration.join("gitdir"))?));
        let directory = (dot.file_name()? == ".git").then(|| dot.parent())??.to_owned();
        let head = pointer(&registration.join("HEAD")).and_then(|text| match text.strip_prefix("ref: ") {
            Some(name) => Some(Head::Branch(name.strip_prefix("refs/heads/")?.to_owned())),
            None => is_commit(&text).then_some(Head::Detached(text)),
        });
        let has = |name: &&str| registration.join(name).symlink_metadata().is_ok();
        let operations = ["rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"];
        Some(Self {
            directory,
            head,
            is_locked: has(&"locked"),
            is_mid_operation: operations.iter().any(has),
            registration: registration.to_owned(),
        })
    }

    /// Whether the directory still is this worktree: no link, and its `.git` names this registration.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        is_directory(&self.directory)
            && self.directory.join(".git").is_file()
            && git_dirs(&self.directory).is_some_and(|dirs| same(&dirs.own, &self.registration))
    }

    /// Removes the registration. The directory stays.
    ///
    /// # Errors
    ///
    /// Fails if a file of the registration cannot be removed.
    pub fn unregister(&self) -> Result<(), Error> {
        fs::remove_dir_all(&self.registration).map_err(|error| Error::at(&self.registration, error))
    }
}

impl Repository {
    /// Creates a linked worktree without files. Returns `false` if its directory or branch exists.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot register worktrees, or if git fails. Nothing is left behind then.
    pub async fn link(&self, new: NewLinked<'_>) -> Result<bool, Error> {
        self.check_layout(new.branch)?;
        if let Some(branch) = new.branch
            && self.commit_of(&format!("refs/heads/{branch}"), new.deadline).await.is_some()
        {
            return Ok(false);
        }
        match fs::create_dir(new.directory) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(Error::at(new.directory, error)),
        }
        let linked = self.link_empty(new).await;
        if linked.is_err() {
            // The directory is still empty, except for the pointer to the registration.
            drop(fs::remove_file(new.directory.join(".git")));
            drop(fs::remove_dir(new.directory));
        }
        linked.map(|()| true)
    }

    async fn link_empty(&self, new: NewLinked<'_>) -> Result<(), Error> {
        if let Some(branch) = new.branch {
            self.create_branch(branch, new.commit, new.deadline).await?;
        }
        let registered = self.register(new);
        if let (Err(_), Some(branch)) = (&registered, new.branch) {
            // The branch has no new commits yet.
            drop(self.delete_branch(branch, new.commit, new.deadline).await);
        }
        registered
    }

    fn register(&self, new: NewLinked<'_>) -> Result<(), Error> {
        let directory = text(new.directory)?;
        let folder = self.common.join("worktrees");
        fs::create_dir_all(&folder).map_err(|error| Error::at(&folder, error))?;
        let name = new.directory.file_name().and_then(|name| name.to_str()).unwrap_or("worktree");
        let mut created = None;
        for number in 0..MAX_IDS {
            let id = if number == 0 { name.to_owned() } else { format!("{name}{number}") };
            let registration = folder.join(id);
            match fs::create_dir(&registration) {
                Ok(()) => {
                    created = Some(registration);
                    break;
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::at(&registration, error)),
            }
        }
        let Some(registration) = created else {
            return Err(refused(format!("too many worktrees are registered under the name `{name}`")));
        };
        let head = match new.branch {
            Some(branch) => format!("ref: refs/heads/{branch}\n"),
            None => format!("{}\n", new.commit),
        };
        let written = text(&registration).and_then(|pointer| {
            write_new(&registration.join("commondir"), "../..\n")?;
            write_new(&registration.join("gitdir"), &format!("{directory}/.git\n"))?;
            write_new(&registration.join("HEAD"), &head)?;
            write_new(&new.directory.join(".git"), &format!("gitdir: {pointer}\n"))
        });
        if written.is_err() {
            drop(fs::remove_dir_all(&registration));
        }
        written
    }

    /// Rejects a repository in which a link leads elsewhere, or whose branches have another format.
    fn check_layout(&self, branch: Option<&str>) -> Result<(), Error> {
        if self.common.join("reftable").symlink_metadata().is_ok() {
            return Err(refused("worktrees of repositories in the reftable format are not supported".into()));
        }
        let mut folders = vec![self.common.join("worktrees"), self.common.join("refs")];
        let mut folder = self.common.join("refs/heads");
        folders.push(folder.clone());
        for name in branch.into_iter().flat_map(|branch| branch.split('/')) {
            folder.push(name);
            folders.push(folder.clone());
        }
        match folders.iter().find(|folder| folder.is_symlink()) {
            Some(link) => Err(refused(format!("`{}` is a symbolic link", link.display()))),
            None => Ok(()),
        }
    }

    /// Returns the name of the commit that a revision names.
    pub async fn commit_of(&self, revision: &str, deadline: Duration) -> Option<String> {
        let revision = format!("{revision}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &revision];
        self.line(Call { args: &args, input: None, deadline }).await.filter(|name| is_commit(name))
    }

    /// Creates a branch at a commit.
    ///
    /// # Errors
    ///
    /// Fails if the branch exists.
    pub async fn create_branch(&self, branch: &str, commit: &str, deadline: Duration) -> Result<(), Error> {
        let missing = "0".repeat(commit.len());
        let args = ["update-ref", &format!("refs/heads/{branch}"), commit, &missing];
        self.succeed(&args, deadline, || format!("git cannot create the branch `{branch}`")).await
    }

    /// Deletes a branch that is at a commit.
    ///
    /// # Errors
    ///
    /// Fails if the branch is at another commit.
    pub async fn delete_branch(&self, branch: &str, commit: &str, deadline: Duration) -> Result<(), Error> {
        let args = ["update-ref", "-d", &format!("refs/heads/{branch}"), commit];
        self.succeed(&args, deadline, || format!("git cannot delete the branch `{branch}`")).await
    }

    /// Creates the files of the current commit in a worktree that has none. Existing files are not overwritten.
    ///
    /// # Errors
    ///
    /// Fails if git cannot write a file, or takes too long.
    pub async fn check_out(&self, deadline: Duration) -> Result<(), Error> {
        self.succeed(&["read-tree", "-m", "-u", "HEAD"], deadline, || {
            "git cannot create the files of the worktree".to_owned()
        })
        .await?;
        self.store_index()
    }

    /// Moves the branch of a worktree without changes from one commit to another, with its files.
    ///
    /// # Errors
    ///
    /// Fails if a file would be overwritten, or if the branch is at another commit.
    pub async fn reset_branch(
        &self,
        branch: &str,
        [from, to]: [&str; 2],
        deadline: Duration,
    ) -> Result<(), Error> {
        self.copy_index()?;
        self.succeed(&["read-tree", "-m", "-u", from, to], deadline, || {
            "git cannot replace the files of the worktree".to_owned()
        })
        .await?;
        let args = ["update-ref", &format!("refs/heads/{branch}"), to, from];
        self.succeed(&args, deadline, || format!("git cannot move the branch `{branch}`")).await?;
        self.store_index()
    }

    /// Returns the files with content that is in no commit of the worktree: changed, staged and untracked ones.
    /// Ignored and deleted files are not listed.
    ///
    /// # Errors
    ///
    /// Fails if git fails. The files are unknown then.
    pub async fn unsaved_files(&self, deadline: Duration) -> Result<Vec<String>, Error> {
        let mut files = Vec::new();
        if self.own.join("index").symlink_metadata().is_ok() {
            self.copy_index()?;
            let args = [
                "diff",
                "--cached",
                "--name-only",
                "--diff-filter=d",
                "--no-renames",
                "--no-ext-diff",
                "--no-textconv",
                "--ignore-submodules=dirty",
                "-z",
                "HEAD",
            ];
            let staged = self.read(&args, deadline).await?;
            files.extend(staged.split('\0').filter(|file| !file.is_empty()).map(str::to_owned));
        }
        // In an index that was read from the commit, no flag hides a change.
        self.read(&["read-tree", "HEAD"], deadline).await?;
        let args = [
            "status",
            "--porcelain=v1",
            "-z",
            "--no-renames",
            "--untracked-files=normal",
            "--ignore-submodules=dirty",
        ];
        for entry in self.read(&args, deadline).await?.split('\0') {
            let Some((state, file)) = entry.split_at_checked(2) else { continue };
            if !state.ends_with('D') {
                files.push(file.trim_start().to_owned());
            }
        }
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Returns the number of commits, up to 1000, that no other branch, tag or remote branch contains.
    ///
    /// # Errors
    ///
    /// Fails if git fails. The number is unknown then.
    pub async fn own_commits(&self, head: &Head, deadline: Duration) -> Result<u64, Error> {
        let (tip, excluded) = match head {
            Head::Branch(branch) => (format!("refs/heads/{branch}"), format!("--exclude={branch}")),
            Head::Detached(commit) => (commit.clone(), "--exclude=".to_owned()),
        };
        if self.commit_of(&tip, deadline).await.is_none() {
            return Ok(0);
        }
        let mut args = vec!["rev-list", "--count", MAX_COMMITS, &tip, "--not"];
        if matches!(head, Head::Branch(_)) {
            args.push(&excluded);
        }
        args.extend(["--branches", "--tags", "--remotes"]);
        let count = self.read(&args, deadline).await?;
        count.trim().parse().map_err(|_| refused("git cannot count the commits".to_owned()))
    }

    /// Replaces the index of the repository by the copy.
    fn store_index(&self) -> Result<(), Error> {
        let (index, lock) = (self.own.join("index"), self.own.join("index.lock"));
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&lock)
            .map_err(|error| Error::at(&lock, error))?;
        let stored = fs::File::open(self.index()).and_then(|copy| {
            std::io::copy(&mut std::io::Read::take(copy, MAX_INDEX_BYTES), &mut file)?;
            file.sync_all()?;
            fs::rename(&lock, &index)
        });
        if stored.is_err() {
            drop(fs::remove_file(&lock));
        }
        stored.map_err(|error| Error::at(&index, error))
    }

    async fn succeed(
        &self,
        args: &[&str],
        deadline: Duration,
        failure: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        match self.output(Call { args, input: None, deadline }).await? {
            Some(_) => Ok(()),
            None => Err(refused(failure())),
        }
    }

    async fn read(&self, args: &[&str], deadline: Duration) -> Result<String, Error> {
        let output = self.output(Call { args, input: None, deadline }).await?;
        let failed = || refused(format!("`git {}` failed", args.first().unwrap_or(&"")));
        Ok(String::from_utf8_lossy(&output.ok_or_else(failed)?).into_owned())
    }
}

/// Returns the first repository inside a worktree, such as a submodule or a clone, ignored or not.
///
/// # Errors
///
/// Fails if a directory cannot be read, or if there are more than 2,000,000 entries.
pub fn nested_repository(worktree: &Path) -> Result<Option<PathBuf>, Error> {
    let (mut folders, mut count) = (vec![worktree.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| Error::at(&folder, error))? {
            let entry = entry.map_err(|error| Error::at(&folder, error))?;
            count += 1;
            if count > MAX_ENTRIES {
                return Err(refused(format!("`{}` has too many files to check", worktree.display())));
            }
            if entry.file_name() == ".git" && folder != worktree {
                return Ok(Some(folder));
            }
            // The type is the entry's own, so links are not followed.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git" {
                folders.push(entry.path());
            }
        }
    }
    Ok(None)
}

fn refused(message: String) -> Error {
    Error::Git { message }
}

fn is_commit(text: &str) -> bool {
    NAME_DIGITS.contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a path is a directory and not a link to one.
fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_dir())
}

/// Whether two paths name the same directory.
fn same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Returns a path for a file of git, which has one path on a line.
fn text(path: &Path) -> Result<&str, Error> {
    let plain = path.to_str().filter(|text| !text.contains(['\n', '\r']));
    plain.ok_or_else(|| refused(format!("git cannot store the path `{}`", path.display())))
}

fn write_new(path: &Path, content: &str) -> Result<(), Error> {
    let file = fs::OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(content.as_bytes())).map_err(|error| Error::at(path, error))
}
