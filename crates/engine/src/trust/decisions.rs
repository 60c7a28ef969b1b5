//! The file that stores trust decisions.
//!
//! A damaged file or one of a newer version counts as no decision. It is not overwritten: the first change renames it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use codewright_config::{is_ambiguous_key, path_key};
use codewright_proto::{TrustChoice, TrustRecord, TrustStatus};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The number of decisions that are kept. The oldest are removed first.
pub(super) const MAX_DECISIONS: usize = 2000;
/// The largest size of the file.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The version of the file's format.
const VERSION: u32 = 1;
const NAME: &str = "trust.json";
/// How long a change waits for a change by another process.
const LOCK_DEADLINE: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// One decision about a directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Decision {
    /// The key of the directory's real path.
    pub(super) path: String,
    /// Whether the keys of the files are exact. Those of older versions were names for display.
    #[serde(default)]
    pub(super) exact: bool,
    /// The user id of the directory's owner.
    pub(super) uid: Option<u32>,
    pub(super) decision: TrustChoice,
    /// Milliseconds since 1970.
    pub(super) time: u64,
    /// The digest of each control file, by its key.
    pub(super) files: BTreeMap<String, String>,
    /// The actions that were listed.
    pub(super) requests: Vec<String>,
}

impl Decision {
    /// Reports whether the decision was about all of these control files. A deleted file needs no new decision. A name of an
    /// older version that can belong to several files covers none of them.
    pub(super) fn covers(&self, files: &BTreeMap<String, String>) -> bool {
        let is_known = |key: &String| self.exact || !is_ambiguous_key(key);
        files.iter().all(|(key, digest)| is_known(key) && self.files.get(key) == Some(digest))
    }

    pub(super) fn status(&self) -> TrustStatus {
        match self.decision {
            TrustChoice::Trust => TrustStatus::Trusted,
            TrustChoice::Restrict => TrustStatus::Restricted,
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Document {
    version: u32,
    decisions: Vec<Decision>,
}

/// Identifies one state of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(Option<(u64, u64, i64, i64)>);

/// The decisions in the user's state directory.
pub(super) struct Decisions {
    path: PathBuf,
}

impl Decisions {
    pub(super) fn new(state: &Path) -> Self {
        Self { path: state.join(NAME) }
    }

    pub(super) fn stamp(&self) -> Stamp {
        let found = fs::symlink_metadata(&self.path).ok();
        Stamp(found.map(|found| (found.ino(), found.len(), found.mtime(), found.mtime_nsec())))
    }

    /// Returns the decision about a directory of this owner, and the problem with the file.
    pub(super) fn of(&self, root: &Path, uid: Option<u32>) -> (Option<Decision>, Option<String>) {
        match self.read() {
            Ok(document) => {
                let key = path_key(root);
                let is_exact = |decision: &Decision| decision.exact || !is_ambiguous_path(&decision.path);
                let is_it =
                    |decision: &Decision| decision.path == key && decision.uid == uid && is_exact(decision);
                (document.decisions.into_iter().find(is_it), None)
            }
            Err(problem) => (None, Some(self.ignored(&problem))),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<TrustRecord>, Error> {
        let document = self.read().map_err(|problem| Error::machine(self.ignored(&problem)))?;
        let mut records: Vec<_> = document.decisions.into_iter().map(record).collect();
        records.sort_by_key(|record| std::cmp::Reverse(record.time));
        Ok(records)
    }

    /// Adds a decision. It replaces an earlier one about the same directory.
    pub(super) async fn add(&self, decision: Decision) -> Result<(), Error> {
        self.change(move |decisions| {
            decisions.retain(|known| known.path != decision.path);
            decisions.push(decision);
            let excess = decisions.len().saturating_sub(MAX_DECISIONS);
            decisions.drain(..excess);
            true
        })
        .await
        .map(drop)
    }

    /// Removes the decision about a directory. Returns whether it existed.
    pub(super) async fn remove(&self, path: &str) -> Result<bool, Error> {
        let path = path.to_owned();
        self.change(move |decisions| {
            let before = decisions.len();
            decisions.retain(|known| known.path != path);
            decisions.len() < before
        })
        .await
    }

    /// Replaces the whole file while no other process can change it.
    async fn change(
        &self,
        change: impl FnOnce(&mut Vec<Decision>) -> bool + Send + 'static,
    ) -> Result<bool, Error> {
        let path = self.path.clone();
        let changed = tokio::task::spawn_blocking(move || {
            let decisions = Self { path };
            decisions.change_now(change).map_err(|error| {
                let path = decisions.path.display();
                Error::machine(format!("cannot store the decision in `{path}`: {error}"))
            })
        });
        // The thread pool drops a task only when the runtime ends.
        changed.await.unwrap_or_else(|_| Err(Error::aborted("the program is ending")))
    }

    fn change_now(&self, change: impl FnOnce(&mut Vec<Decision>) -> bool) -> io::Result<bool> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let _alone = lock(&self.path.with_extension("lock"))?;
        let mut document = match self.read() {
            Ok(document) => document,
            Err(_) => {
                fs::rename(&self.path, self.path.with_extension("unreadable.json"))?;
                Document::default()
            }
        };
        if !change(&mut document.decisions) {
            return Ok(false);
        }
        document.version = VERSION;
        let mut file = tempfile::Builder::new().prefix(".trust-").tempfile_in(folder)?;
        file.write_all(&serde_json::to_vec(&document)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(true)
    }

    /// Reads the file. A missing file contains no decision.
    fn read(&self) -> Result<Document, String> {
        let opened = OpenOptions::new().read(true).custom_flags(nofollow()).open(&self.path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Document::default()),
            Err(error) => return Err(error.to_string()),
        };
        let about = file.metadata().map_err(|error| error.to_string())?;
        if !about.is_file() || about.mode() & 0o022 != 0 {
            return Err("it is not a file that only its owner can write".to_owned());
        }
        let mut text = String::new();
        file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
        if text.len() as u64 > MAX_BYTES {
            return Err(format!("it is larger than {} MiB", MAX_BYTES >> 20));
        }
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let Version { version } = serde_json::from_str(&text).map_err(|_| "it is damaged".to_owned())?;
        if version > VERSION {
            return Err(format!("it has version {version}, and this program knows version {VERSION}"));
        }
        serde_json::from_str(&text).map_err(|_| "it is damaged".to_owned())
    }

    fn ignored(&self, problem: &str) -> String {
        let path = self.path.display();
        format!(
            "`{path}` is ignored, so no repository is trusted: {problem}; run `codewright trust add` again"
        )
    }
}

/// Whether the path of a decision from before paths were exact can belong to several directories.
fn is_ambiguous_path(path: &str) -> bool {
    path.contains('\u{fffd}')
}

fn record(decision: Decision) -> TrustRecord {
    let Decision { path, decision, time, requests, .. } = decision;
    TrustRecord { path, decision, time, requests }
}

/// Flags for opening the file: do not follow a link, and do not wait for a pipe.
fn nofollow() -> i32 {
    use rustix::fs::OFlags;
    i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default()
}

/// Locks a separate file until the returned value is dropped.
fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    let mut left = LOCK_DEADLINE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) if left > Duration::ZERO => {
                std::thread::sleep(LOCK_PAUSE);
                left = left.saturating_sub(LOCK_PAUSE);
            }
            Err(fs::TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the lock"));
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(path: &str, digest: &str) -> Decision {
        Decision {
            path: path.to_owned(),
            exact: true,
            uid: Some(7),
            decision: TrustChoice::Trust,
            time: 1,
            files: [("opencode.json".to_owned(), digest.to_owned())].into(),
            requests: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_decision_is_found_by_path_and_owner() {
        let folder = tempfile::tempdir().unwrap();
        let decisions = Decisions::new(&folder.path().join("state"));
        decisions.add(decision("/a", "1")).await.unwrap();
        decisions.add(decision("/a", "2")).await.unwrap();
        let found = |path: &str, uid| decisions.of(Path::new(path), uid).0;
        assert_eq!(found("/a", Some(7)).unwrap().files["opencode.json"], "2");
        assert_eq!((found("/a", Some(8)), found("/b", Some(7)), found("/a", None)), (None, None, None));
        assert!(decisions.remove("/a").await.unwrap() && !decisions.remove("/a").await.unwrap());
        assert_eq!(found("/a", Some(7)), None);
    }

    #[test]
    fn a_decision_covers_the_files_it_was_about_and_fewer() {
        let known = decision("/a", "1");
        let files = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(path, digest)| ((*path).to_owned(), (*digest).to_owned())).collect()
        };
        assert!(known.covers(&files(&[("opencode.json", "1")])) && known.covers(&files(&[])));
        assert!(!known.covers(&files(&[("opencode.json", "2")])));
        assert!(!known.covers(&files(&[("opencode.json", "1"), ("other", "1")])));
    }

    #[test]
    fn a_name_of_an_older_version_that_was_changed_for_display_covers_nothing() {
        for (key, is_covered) in
            [("a.md", true), ("it's.md", false), ("x\u{fffd}.md", false), ("x\u{2026}", false)]
        {
            let files: BTreeMap<String, String> = [(key.to_owned(), "1".to_owned())].into();
            let known = Decision { files: files.clone(), ..decision("/a", "1") };
            assert!(known.covers(&files), "{key}");
            assert_eq!(Decision { exact: false, ..known }.covers(&files), is_covered, "{key}");
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_used_is_no_decision() {
        let folder = tempfile::tempdir().unwrap();
        let decisions = Decisions::new(folder.path());
        let path = folder.path().join(NAME);
        for text in ["", "{", "[]", r#"{"version": 2, "decisions": []}"#, r#"{"version": 1}"#] {
            fs::write(&path, text).unwrap();
            let (found, warning) = decisions.of(Path::new("/a"), Some(7));
            assert!(found.is_none() && warning.unwrap().contains("is ignored"), "{text}");
            assert!(decisions.list().is_err());
        }
        decisions.add(decision("/a", "1")).await.unwrap();
        assert!(decisions.of(Path::new("/a"), Some(7)).0.is_some());
        assert_eq!(fs::read_to_string(path.with_extension("unreadable.json")).unwrap(), r#"{"version": 1}"#);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        assert!(decisions.of(Path::new("/a"), Some(7)).0.is_none(), "another user may have written it");
    }
}
