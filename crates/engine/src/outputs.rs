//! Stores the full text of outputs that were truncated, and removes old ones.
//!
//! A file is removed a week after its last use, or earlier if the files together are too large, least recently used
//! first. A step sets the modification time of the files that its session names, which all processes that share the
//! directory see. This work runs in the background.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use codewright_proto::{MessageWithParts, PartBody, ToolState};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use serde_json::Value;
use tokio_util::task::TaskTracker;

/// How long an unused file is kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The largest total size of all files.
const MAX_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// How long a file counts as in use. No step lasts longer.
const IN_USE: Duration = Duration::from_secs(2 * 60 * 60);
/// The time between two cleanups.
const SWEEP_EVERY: Duration = Duration::from_secs(60 * 60);
/// The prefix of the file names.
const PREFIX: &str = "tool_";
/// The prefix of the directories of users, on a server with users.
const OF_USER: &str = "user-";

/// The directory of truncated outputs.
pub(crate) struct Outputs {
    directory: PathBuf,
    /// The time of the last cleanup; 0 before the first.
    swept_ms: AtomicU64,
}

/// A file of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    path: PathBuf,
    used_ms: u64,
    bytes: u64,
}

impl Outputs {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, swept_ms: AtomicU64::new(0) }
    }

    /// Removes old files in the background if the last cleanup is long ago.
    pub(crate) fn sweep_now_and_then(&self, tasks: &TaskTracker, now_ms: u64) {
        let swept = self.swept_ms.load(Ordering::Relaxed);
        let is_due = swept == 0 || now_ms.saturating_sub(swept) >= SWEEP_EVERY.as_millis() as u64;
        let won =
            || self.swept_ms.compare_exchange(swept, now_ms.max(1), Ordering::Relaxed, Ordering::Relaxed);
        if is_due && won().is_ok() {
            let directory = self.directory.clone();
            tasks.spawn_blocking(move || sweep(&directory, now_ms));
        }
    }

    /// Marks the files that a running session names as in use.
    pub(crate) fn in_use(&self, tasks: &TaskTracker, transcript: &[MessageWithParts], now_ms: u64) {
        let named: BTreeSet<PathBuf> =
            transcript.iter().flat_map(named).filter(|path| is_output(&self.directory, path)).collect();
        if named.is_empty() {
            return;
        }
        tasks.spawn_blocking(move || {
            let now = Timespec {
                tv_sec: (now_ms / 1000).cast_signed(),
                tv_nsec: ((now_ms % 1000) * 1_000_000).cast_signed(),
            };
            let times = Timestamps { last_access: now, last_modification: now };
            for path in named {
                // Nothing is opened, because a pipe could block. A missing file stays as it is.
                utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap_or_default();
            }
        });
    }
}

fn named(message: &MessageWithParts) -> impl Iterator<Item = PathBuf> + '_ {
    message.parts.iter().filter_map(|part| match &part.body {
        PartBody::Tool(call) => match &call.state {
            ToolState::Completed { metadata, .. } => {
                metadata.get("outputPath").and_then(Value::as_str).map(PathBuf::from)
            }
            ToolState::Pending { .. } | ToolState::Running { .. } | ToolState::Error { .. } => None,
        },
        _ => None,
    })
}

/// Reports whether a path is that of an output: in the directory, or in the one of a user inside.
fn is_output(directory: &Path, path: &Path) -> bool {
    let of_user = |parent: &Path| parent.parent() == Some(directory) && is_named(parent, OF_USER);
    path.parent().is_some_and(|parent| parent == directory || of_user(parent))
}

fn is_named(path: &Path, prefix: &str) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(prefix))
}

/// Returns the outputs in a directory, and the directories of users inside.
fn kept_in(directory: &Path) -> (Vec<Kept>, Vec<PathBuf>) {
    let (mut kept, mut of_users) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        // A link is not followed.
        let Ok(about) = entry.metadata() else { continue };
        let path = entry.path();
        if about.is_dir() && is_named(&path, OF_USER) {
            of_users.push(path);
        } else if about.is_file() && is_named(&path, PREFIX) {
            let used = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let used_ms = used.unwrap_or_default().as_millis() as u64;
            kept.push(Kept { path, used_ms, bytes: about.len() });
        }
    }
    (kept, of_users)
}

fn sweep(directory: &Path, now_ms: u64) {
    let (mut kept, of_users) = kept_in(directory);
    kept.extend(of_users.iter().flat_map(|directory| kept_in(directory).0));
    for path in unneeded(kept, now_ms, MAX_BYTES) {
        // Another process may have removed it.
        drop(std::fs::remove_file(path));
    }
}

/// Returns the files to remove.
fn unneeded(mut kept: Vec<Kept>, now_ms: u64, max_bytes: u64) -> Vec<PathBuf> {
    kept.sort_by_key(|file| file.used_ms);
    let mut bytes: u64 = kept.iter().map(|file| file.bytes).sum();
    let mut gone = Vec::new();
    for file in kept {
        let unused = Duration::from_millis(now_ms.saturating_sub(file.used_ms));
        if unused >= KEPT || (bytes > max_bytes && unused >= IN_USE) {
            bytes -= file.bytes;
            gone.push(file.path);
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 60 * 60 * 1000;
    const NOW_MS: u64 = 1000 * HOUR_MS;

    #[track_caller]
    fn check(files: &[(&str, u64, u64)], max_bytes: u64, expected: &[&str]) {
        let kept = files.iter().map(|(name, hours, bytes)| Kept {
            path: name.into(),
            used_ms: NOW_MS - hours * HOUR_MS,
            bytes: *bytes,
        });
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(unneeded(kept.collect(), NOW_MS, max_bytes), expected);
    }

    #[test]
    fn a_file_goes_after_a_week() {
        check(&[("old", 168, 1), ("young", 167, 1)], 10, &["old"]);
    }

    #[test]
    fn files_over_the_size_limit_are_removed_except_those_in_use() {
        check(&[("a", 3, 4), ("b", 30, 4), ("c", 20, 4), ("d", 0, 4)], 8, &["b", "c"]);
        check(&[("a", 1, 40), ("b", 0, 40)], 8, &[]);
    }

    #[test]
    fn a_clock_that_was_set_back_removes_nothing() {
        let future = Kept { path: "future".into(), used_ms: NOW_MS * 2, bytes: 100 };
        assert_eq!(unneeded(vec![future], NOW_MS, 8), Vec::<PathBuf>::new());
    }

    #[test]
    fn only_files_of_this_program_are_removed() {
        let directory = tempfile::TempDir::new().unwrap();
        let make = |name: &str| {
            let path = directory.path().join(name);
            std::fs::File::create(&path).unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(5)).unwrap();
            path
        };
        let (ours, other) = (make("tool_x"), make("notes.txt"));
        std::fs::create_dir(directory.path().join("tool_directory")).unwrap();
        std::os::unix::fs::symlink(&other, directory.path().join("tool_link")).unwrap();
        sweep(directory.path(), NOW_MS * 100_000);
        assert!(!ours.exists() && other.exists() && directory.path().join("tool_directory").exists());
    }
}
