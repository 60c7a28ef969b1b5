//! What git says of a directory: its branch, and how the files differ.
//!
//! Files that git does not know yet are part of every difference. They are made known in an
//! index of our own, so that the user's is never written. A repository may hold hostile
//! settings; nothing here runs programs that it names.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use codewright_proto::{VcsFile, VcsReply, VcsStatus};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::patch::{self, Kept};
use crate::{Error, Place};

/// How long one call of git may take.
const GIT_DEADLINE: Duration = Duration::from_secs(20);
/// The most that is kept of what git prints.
const MAX_OUTPUT_BYTES: usize = 16 * 1024 * 1024;
/// The most of a difference that is read to find the files for which there is room.
const MAX_READ_BYTES: usize = 256 * 1024 * 1024;
/// How much of it is read at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// Differing files that are told.
const MAX_FILES: usize = 5000;
/// The tree without files, which a repository without commits is compared with.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
/// What keeps a repository's settings from running anything.
const SAFE: [&str; 8] = [
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "core.hooksPath=/dev/null",
    "--no-pager",
    "--literal-pathspecs",
];

/// What the files are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// The last commit.
    Commit,
    /// Where the branch left the one that others come from.
    Branch,
}

impl Place {
    /// The branches; both absent outside a repository.
    pub async fn vcs(&self) -> VcsReply {
        if !self.worktree.git {
            return VcsReply::default();
        }
        let branch = self.line(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await;
        VcsReply { default_branch: self.default_branch(branch.as_deref()).await, branch }
    }

    /// The files that differ from the last commit.
    pub async fn vcs_status(&self) -> Result<Vec<VcsFile>, Error> {
        self.differing(Against::Commit).await.map(|(files, ..)| files)
    }

    /// The files that differ, each with its difference and so many lines around it. The differences of all are
    /// bounded together: a file whose own is too large for what is left has none.
    pub async fn vcs_diff(&self, against: Against, context: Option<u32>) -> Result<Vec<VcsFile>, Error> {
        let (mut files, base, index) = self.differing(against).await?;
        if files.is_empty() {
            return Ok(files);
        }
        let text = self.patches(&base, context, index.as_ref()).await?;
        let patches = patch::files(&text).into_iter().map(|known| (known.file, known.patch));
        let mut patches: HashMap<_, _> = patches.collect();
        for file in &mut files {
            file.patch = patches.remove(&file.file).flatten();
        }
        Ok(files)
    }

    /// The difference from the last commit, as git prints it.
    pub async fn vcs_raw(&self) -> Result<String, Error> {
        let (files, base, index) = self.differing(Against::Commit).await?;
        if files.is_empty() {
            return Ok(String::new());
        }
        self.patch(&base, None, index.as_ref()).await
    }

    /// Changes the files as a patch says, all or none; false if it does not fit.
    pub async fn vcs_apply(&self, patch: &str) -> Result<bool, Error> {
        if !self.worktree.git {
            return Err(Error::invalid("patches can only be applied in a repository"));
        }
        for check in [&["apply", "--check", "-"][..], &["apply", "-"]] {
            if self.git(check, None, Some(patch.as_bytes())).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn default_branch(&self, branch: Option<&str>) -> Option<String> {
        let remote = self.line(&["symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"]).await;
        if let Some((_, name)) = remote.as_deref().and_then(|remote| remote.split_once('/')) {
            return Some(name.to_owned());
        }
        for name in ["main", "master"] {
            if self.line(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{name}")]).await.is_some()
            {
                return Some(name.to_owned());
            }
        }
        branch.map(str::to_owned)
    }

    /// The differing files, what they were compared with, and the index in which new files are known.
    async fn differing(&self, against: Against) -> Result<(Vec<VcsFile>, String, Option<Index>), Error> {
        if !self.worktree.git {
            return Ok((Vec::new(), String::new(), None));
        }
        let head = self.line(&["rev-parse", "--verify", "--quiet", "HEAD"]).await;
        let base = match (against, head) {
            (_, None) => EMPTY_TREE.to_owned(),
            (Against::Commit, Some(head)) => head,
            (Against::Branch, Some(head)) => {
                let other = self.default_branch(None).await;
                let met = match &other {
                    Some(other) => self.line(&["merge-base", "HEAD", other]).await,
                    None => None,
                };
                met.unwrap_or(head)
            }
        };
        let index = self.index().await;
        let args =
            ["diff", "--raw", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", &base];
        let listed = self.git(&args, index.as_ref(), None).await?;
        let listed = listed.ok_or_else(|| Error::invalid("git cannot compare the files"))?;
        Ok((files(&listed), base, index))
    }

    /// The whole difference, as git prints it.
    async fn patch(&self, base: &str, context: Option<u32>, index: Option<&Index>) -> Result<String, Error> {
        let text = self.git(&compared(base, &around(context)), index, None).await?;
        let text = text.ok_or_else(|| Error::invalid("git cannot compare the files"))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The differences of the files for which there is room.
    async fn patches(
        &self,
        base: &str,
        context: Option<u32>,
        index: Option<&Index>,
    ) -> Result<String, Error> {
        let (mut kept, mut read) = (Kept::new(MAX_OUTPUT_BYTES), 0);
        let take = |piece: &[u8]| {
            read += piece.len();
            kept.push(piece);
            read < MAX_READ_BYTES
        };
        let kept = match self.run((&compared(base, &around(context)), None), index, take).await? {
            Ended::Well => kept.whole(),
            Ended::Stopped => kept.cut(),
            Ended::Badly => return Err(Error::invalid("git cannot compare the files")),
        };
        Ok(String::from_utf8_lossy(&kept).into_owned())
    }

    /// A copy of the index in which files that git does not know are known, without their content.
    async fn index(&self) -> Option<Index> {
        let path = self.line(&["rev-parse", "--path-format=absolute", "--git-path", "index"]).await?;
        let own = Index(tempfile::Builder::new().prefix("codewright-index-").tempdir().ok()?);
        let copied = tokio::fs::copy(&path, own.0.path().join("index")).await;
        // A repository in which nothing was ever added has no index.
        if copied.is_err() && Path::new(&path).exists() {
            return None;
        }
        self.git(&["add", "--intent-to-add", "--", "."], Some(&own), None).await.ok()??;
        Some(own)
    }

    async fn line(&self, args: &[&str]) -> Option<String> {
        let output = self.git(args, None, None).await.ok()??;
        let line = String::from_utf8(output).ok()?.trim().to_owned();
        (!line.is_empty()).then_some(line)
    }

    /// What git prints; `None` if it fails. More than is read is an error.
    async fn git(
        &self,
        args: &[&str],
        index: Option<&Index>,
        input: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let mut output = Vec::new();
        let take = |piece: &[u8]| {
            output.extend_from_slice(piece);
            output.len() <= MAX_OUTPUT_BYTES
        };
        match self.run((args, input), index, take).await? {
            Ended::Well => Ok(Some(output)),
            Ended::Badly => Ok(None),
            Ended::Stopped => Err(Error::invalid(format!(
                "the changes are too large: git prints more than {} MiB of them; commit or ignore what is large",
                MAX_OUTPUT_BYTES / 1024 / 1024
            ))),
        }
    }

    /// Runs git; `take` is given what it prints, and says whether it wants more.
    async fn run(
        &self,
        (args, input): (&[&str], Option<&[u8]>),
        index: Option<&Index>,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<Ended, Error> {
        let mut command = Command::new("git");
        command.args(SAFE).args(args).current_dir(&self.worktree.root);
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        if let Some(Index(directory)) = index {
            command.env("GIT_INDEX_FILE", OsString::from(directory.path().join("index")));
        }
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let talk = async {
            let mut child = command.spawn()?;
            let stdin = child.stdin.take();
            let stdout = child.stdout.take();
            let write = async {
                if let (Some(mut stdin), Some(input)) = (stdin, input) {
                    // Whoever ends before it has read all says so by its status.
                    drop(stdin.write_all(input).await);
                }
            };
            let read = async {
                let Some(mut stdout) = stdout else { return Ok(true) };
                let mut piece = vec![0; PIECE_BYTES];
                loop {
                    let count = stdout.read(&mut piece).await?;
                    if count == 0 {
                        return Ok::<_, std::io::Error>(true);
                    }
                    if !take(&piece[..count]) {
                        return Ok(false);
                    }
                }
            };
            let ((), is_all) = tokio::join!(write, read);
            if !is_all? {
                child.start_kill()?;
                return Ok(Ended::Stopped);
            }
            let succeeded = child.wait().await?.success();
            Ok::<_, std::io::Error>(if succeeded { Ended::Well } else { Ended::Badly })
        };
        match tokio::time::timeout(GIT_DEADLINE, talk).await {
            Ok(Ok(ended)) => Ok(ended),
            Ok(Err(error)) => Err(Error::invalid(format!("cannot run git: {error}"))),
            Err(_) => Err(Error::invalid("git took too long")),
        }
    }
}

/// What came of one call of git.
enum Ended {
    Well,
    /// It was not let print all.
    Stopped,
    Badly,
}

/// How git is told how many lines are shown around a change.
fn around(context: Option<u32>) -> String {
    format!("-U{}", context.unwrap_or(3).min(100_000))
}

/// The arguments of a comparison with a tree.
fn compared<'a>(base: &'a str, around: &'a str) -> [&'a str; 7] {
    ["diff", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv", around, base]
}

/// An index of our own; gone when dropped.
struct Index(tempfile::TempDir);

/// Reads `git diff --raw --numstat -z`.
fn files(listed: &[u8]) -> Vec<VcsFile> {
    let listed = String::from_utf8_lossy(listed);
    let mut files: Vec<VcsFile> = Vec::new();
    let mut tokens = listed.split('\0');
    let mut counts = HashMap::new();
    while let Some(token) = tokens.next() {
        if let Some(raw) = token.strip_prefix(':') {
            let Some(file) = tokens.next() else { break };
            let status = match raw.rsplit(' ').next() {
                Some("A") => VcsStatus::Added,
                Some("D") => VcsStatus::Deleted,
                _ => VcsStatus::Modified,
            };
            files.push(VcsFile { file: file.to_owned(), patch: None, additions: 0, deletions: 0, status });
        } else if let [additions, deletions, file] = token.splitn(3, '\t').collect::<Vec<_>>()[..] {
            // Of what is no text git counts no lines.
            counts.insert(file, (additions.parse().unwrap_or(0), deletions.parse().unwrap_or(0)));
        }
    }
    for file in &mut files {
        (file.additions, file.deletions) = counts.get(file.file.as_str()).copied().unwrap_or_default();
    }
    files.truncate(MAX_FILES);
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_lists_is_read() {
        let listed = b":000000 100644 0000000 d97c5ea A\0a b.txt\0:100644 000000 d97c5ea 0000000 D\0gone\0\
            :100644 100644 4c2d043 624835c M\0src/util.py\x003\t0\ta b.txt\x000\t7\tgone\0-\t-\tsrc/util.py\0";
        let read = files(listed);
        let shown: Vec<_> = read
            .iter()
            .map(|file| (file.file.as_str(), file.status, file.additions, file.deletions))
            .collect();
        let expected = [
            ("a b.txt", VcsStatus::Added, 3, 0),
            ("gone", VcsStatus::Deleted, 0, 7),
            ("src/util.py", VcsStatus::Modified, 0, 0),
        ];
        assert_eq!(shown, expected);
        assert_eq!(files(b""), []);
        assert_eq!(files(b":junk"), []);
    }
}
