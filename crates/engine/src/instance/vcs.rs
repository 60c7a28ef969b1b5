//! The state of a directory in git: its branch and the file changes.
//!
//! New files are part of every diff. They are added to a copy of the index, so that the user's index is never written.
//! A repository may contain hostile settings; git never reads them, see [`codewright_workspace::git`].

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use codewright_proto::{VcsFile, VcsReply, VcsStatus};
use codewright_workspace::git::{Call, Ended, MAX_OUTPUT_BYTES, Repository};

use crate::patch::{self, Kept};
use crate::{Error, Instance};

/// The deadline of one git process.
const GIT_DEADLINE: Duration = Duration::from_secs(20);
/// The largest diff that is read to select files that fit.
const MAX_READ_BYTES: usize = 256 * 1024 * 1024;
/// The number of changed files that are reported.
const MAX_FILES: usize = 5000;
/// The object names of an empty file, one for each hash format.
const EMPTY_FILES: [&str; 2] = [
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
];
/// The options of every comparison. To see whether the files of a submodule changed, git would run in the submodule and
/// read its configuration there. So only another commit of a submodule counts as a change.
const COMPARISON: [&str; 5] =
    ["diff", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];

/// The tree that the files are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// The last commit.
    Commit,
    /// The merge base with the default branch.
    Branch,
}

impl Instance {
    /// Reports whether a name is a commit, branch or tag of the repository.
    pub async fn has_commit(&self, name: &str) -> bool {
        let Ok(Some(tree)) = self.tree().await else { return false };
        let commit = format!("{name}^{{commit}}");
        !name.starts_with('-')
            && !name.chars().any(|c| c.is_control() || c.is_whitespace() || "`$\"'\\;|&<>()".contains(c))
            && tree.line(&["rev-parse", "--verify", "--quiet", &commit]).await.is_some()
    }

    /// Returns the current and the default branch; both are `None` outside a repository.
    pub async fn vcs(&self) -> VcsReply {
        let Ok(Some(tree)) = self.tree().await else { return VcsReply::default() };
        let branch = tree.line(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await;
        VcsReply { default_branch: tree.default_branch(branch.as_deref()).await, branch }
    }

    /// Returns the files that differ from the last commit.
    pub async fn vcs_status(&self) -> Result<Vec<VcsFile>, Error> {
        let Some(tree) = self.tree().await? else { return Ok(Vec::new()) };
        tree.differing(Against::Commit).await.map(|(files, _)| files)
    }

    /// Returns the changed files, each with its diff and this many context lines. The diffs have a common size limit: a
    /// file whose diff does not fit into the rest has none.
    pub async fn vcs_diff(&self, against: Against, context: Option<u32>) -> Result<Vec<VcsFile>, Error> {
        let Some(tree) = self.tree().await? else { return Ok(Vec::new()) };
        let (mut files, base) = tree.differing(against).await?;
        if files.is_empty() {
            return Ok(files);
        }
        let text = tree.patches(&base, context).await?;
        let patches = patch::files(&text).into_iter().map(|known| (known.file, known.patch));
        let mut patches: HashMap<_, _> = patches.collect();
        for file in &mut files {
            file.patch = patches.remove(&file.file).flatten();
        }
        Ok(files)
    }

    /// Returns the diff against the last commit in git's format.
    pub async fn vcs_raw(&self) -> Result<String, Error> {
        let Some(tree) = self.tree().await? else { return Ok(String::new()) };
        let (files, base) = tree.differing(Against::Commit).await?;
        if files.is_empty() {
            return Ok(String::new());
        }
        tree.patch(&base, None).await
    }

    /// Applies a patch as a whole. Returns `false` if it does not apply.
    pub async fn vcs_apply(&self, patch: &str) -> Result<bool, Error> {
        self.apply(patch, &[]).await
    }

    /// Returns the paths that a patch changes, as it names them; none if it is not a patch.
    pub(crate) async fn patched_paths(&self, patch: &str) -> Result<Vec<PathBuf>, Error> {
        let Some(tree) = self.tree().await? else { return Ok(Vec::new()) };
        let listed = tree.git(&["apply", "--numstat", "-z", "-"], Some(patch.as_bytes())).await?;
        let listed = listed.unwrap_or_default();
        let rows = listed.split(|byte| *byte == 0);
        let names = rows.filter_map(|row| row.splitn(3, |byte| *byte == b'\t').nth(2));
        Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }

    /// Removes the changes of a patch as a whole. Returns `false` if they are not there.
    pub(crate) async fn vcs_unapply(&self, patch: &str) -> Result<bool, Error> {
        self.apply(patch, &["--reverse"]).await
    }

    async fn apply(&self, patch: &str, options: &[&str]) -> Result<bool, Error> {
        let Some(tree) = self.tree().await? else {
            return Err(Error::invalid("patches can only be applied in a repository"));
        };
        for check in [&["--check", "-"][..], &["-"]] {
            let args = [&["apply"], options, check].concat();
            if tree.git(&args, Some(patch.as_bytes())).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the repository of the directory, if there is one.
    async fn tree(&self) -> Result<Option<Tree>, Error> {
        if !self.worktree.git {
            return Ok(None);
        }
        let repository = self.git.open(&self.worktree.root).await;
        repository.map(|repository| Some(Tree(repository))).map_err(unusable)
    }
}

/// A repository whose files git compares.
struct Tree(Repository);

impl Tree {
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

    /// Returns the changed files and the tree they were compared with. Afterwards the copy of the index contains new
    /// files too.
    async fn differing(&self, against: Against) -> Result<(Vec<VcsFile>, String), Error> {
        let head = self.line(&["rev-parse", "--verify", "--quiet", "HEAD"]).await;
        let base = match (against, head) {
            (_, None) => self.0.empty_tree().to_owned(),
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
        self.0.copy_index().map_err(unusable)?;
        // A comparison without the new files is still useful.
        self.add_new_files().await.unwrap_or_default();
        let args: Vec<_> = COMPARISON.into_iter().chain(["--raw", "--numstat", "-z", &base]).collect();
        let listed = self.git(&args, None).await?;
        let listed = listed.ok_or_else(|| Error::machine("git cannot compare the files"))?;
        Ok((files(&listed), base))
    }

    /// Returns the whole diff in git's format.
    async fn patch(&self, base: &str, context: Option<u32>) -> Result<String, Error> {
        let text = self.git(&compared(base, &around(context)), None).await?;
        let text = text.ok_or_else(|| Error::machine("git cannot compare the files"))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the diffs of the files that fit.
    async fn patches(&self, base: &str, context: Option<u32>) -> Result<String, Error> {
        let (mut kept, mut read) = (Kept::new(MAX_OUTPUT_BYTES), 0);
        let take = |piece: &[u8]| {
            read += piece.len();
            kept.push(piece);
            read < MAX_READ_BYTES
        };
        let around = around(context);
        let kept = match self.0.stream(call(&compared(base, &around), None), take).await.map_err(unusable)? {
            Ended::Well => kept.whole(),
            Ended::Stopped => kept.cut(),
            Ended::Badly => return Err(Error::machine("git cannot compare the files")),
        };
        Ok(String::from_utf8_lossy(&kept).into_owned())
    }

    /// Adds untracked files to the copy of the index, without their content.
    ///
    /// `git add` would do this, but it runs git in every submodule, with the submodule's own configuration.
    async fn add_new_files(&self) -> Result<(), Error> {
        let listed = self.git(&["ls-files", "--others", "--exclude-standard", "-z"], None).await?;
        let empty = EMPTY_FILES[usize::from(self.0.is_sha256())];
        let mut entries = Vec::new();
        for path in listed.unwrap_or_default().split(|byte| *byte == 0) {
            // A trailing slash marks another repository.
            if !path.is_empty() && !path.ends_with(b"/") {
                entries.extend_from_slice(format!("100644 {empty}\t").as_bytes());
                entries.extend_from_slice(path);
                entries.push(0);
            }
        }
        if !entries.is_empty() {
            self.git(&["update-index", "-z", "--index-info"], Some(&entries)).await?;
        }
        Ok(())
    }

    async fn line(&self, args: &[&str]) -> Option<String> {
        self.0.line(call(args, None)).await
    }

    /// Returns the output of git; `None` if it fails. Output over the limit is an error.
    async fn git(&self, args: &[&str], input: Option<&[u8]>) -> Result<Option<Vec<u8>>, Error> {
        self.0.output(call(args, input)).await.map_err(unusable)
    }
}

fn call<'a>(args: &'a [&'a str], input: Option<&'a [u8]>) -> Call<'a> {
    Call { args, input, deadline: GIT_DEADLINE }
}

fn unusable(error: codewright_workspace::Error) -> Error {
    Error::machine(match error {
        codewright_workspace::Error::GitOutput { limit_bytes } => format!(
            "the changes are too large: git prints more than {} MiB of them; commit or ignore what is large",
            limit_bytes / 1024 / 1024
        ),
        other => format!("cannot compare the files: {other}"),
    })
}

/// Returns the option for the number of context lines.
fn around(context: Option<u32>) -> String {
    format!("-U{}", context.unwrap_or(3).min(100_000))
}

/// Returns the arguments of a comparison with a tree.
fn compared<'a>(base: &'a str, around: &'a str) -> [&'a str; 8] {
    let [diff, renames, external, textconv, submodules] = COMPARISON;
    [diff, "--no-color", renames, external, textconv, submodules, around, base]
}

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
            // Git counts no lines of binary files.
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
    fn the_list_of_changed_files_is_parsed() {
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
