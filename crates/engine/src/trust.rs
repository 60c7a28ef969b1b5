//! Workspace trust: whether a repository's configuration takes effect.
//!
//! A directory is untrusted until the user decides. A decision is about the real path of the worktree, its
//! owner and the digests of all control files, so a change of one of them needs a new one. Without a decision
//! only the inert parts of the configuration apply (see `codewright_config::Class`).

mod decisions;
pub(crate) mod operations;
pub(crate) mod question;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use codewright_config::{ControlFiles, Dirs, Env, Trust, WITH_NETWORK, env, key_display};
use codewright_proto::{TrustChange, TrustChangeKind, TrustReply, TrustRequest, TrustStatus};

use decisions::{Decision, Decisions, Stamp};

/// The error for a decision about control files that have changed since.
const STALE: &str =
    "the control files have changed since they were shown; look at them again and decide then";
/// The number of waiting parts that a warning names.
const MAX_NAMED: usize = 5;

/// The default for directories without a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The user decides.
    Ask,
    /// Every directory is trusted.
    All,
    /// No directory is trusted, and there are no questions.
    None,
}

/// The trust decisions of this process.
pub(crate) struct TrustState {
    mode: Mode,
    /// Why the variable that sets the mode is invalid.
    mode_warning: Option<String>,
    decisions: Decisions,
    seen: Mutex<Option<Stamp>>,
    /// Control files whose question was dismissed. This process does not repeat it.
    dismissed: Mutex<HashSet<(PathBuf, String)>>,
    asking: Mutex<HashMap<PathBuf, Arc<Asking>>>,
}

/// The question about one directory.
#[derive(Default)]
struct Asking {
    /// One question at a time.
    turn: tokio::sync::Mutex<()>,
    /// Notified when the user decides or dismisses in another way, so that the question is withdrawn.
    settled: tokio::sync::Notify,
}

/// The trust of one open directory.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) root: PathBuf,
    pub(crate) status: TrustStatus,
    /// Whether programs of the user that read the directory's files may start by themselves.
    pub(crate) can_start_programs: bool,
    /// Whether the user agreed that servers of the repository have the network.
    pub(crate) grants_network: bool,
    fingerprint: String,
    files: BTreeMap<String, String>,
    requests: Vec<TrustRequest>,
    changes: Vec<TrustChange>,
    limit: Option<String>,
    pub(crate) warning: Option<String>,
}

impl TrustState {
    pub(crate) fn new(env: &Env, dirs: &Dirs) -> Self {
        let (mode, mode_warning) = match env.filled(env::TRUST) {
            None | Some("ask") => (Mode::Ask, None),
            Some("all") => (Mode::All, None),
            Some("none") => (Mode::None, None),
            Some(_) => {
                let warning = "CODEWRIGHT_TRUST must be `all`, `ask` or `none`; no repository is trusted";
                (Mode::None, Some(warning.to_owned()))
            }
        };
        Self {
            mode,
            mode_warning,
            decisions: Decisions::new(&dirs.state),
            seen: Mutex::default(),
            dismissed: Mutex::default(),
            asking: Mutex::default(),
        }
    }

    /// Reports whether another process has changed the decisions since the last call. It costs at most two `stat`
    /// calls.
    pub(crate) fn has_changed(&self) -> bool {
        let stamp = self.decisions.stamp();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.replace(stamp).is_some_and(|before| before != stamp)
    }

    /// Returns how much of a directory's configuration takes effect.
    pub(crate) fn level(&self, root: &Path, control: &ControlFiles) -> Trust {
        match self.standing(root, control).status {
            TrustStatus::Trusted => Trust::Full,
            TrustStatus::Unneeded | TrustStatus::Undecided | TrustStatus::Restricted => Trust::Inert,
        }
    }

    /// Returns the trust of a directory with these control files.
    pub(crate) fn standing(&self, root: &Path, control: &ControlFiles) -> Standing {
        let requests = control.requests().iter().map(|request| {
            let codewright_config::TrustRequest { source, key, text } = request.clone();
            TrustRequest { source, key, text }
        });
        let mut standing = Standing {
            root: root.to_owned(),
            status: TrustStatus::Unneeded,
            can_start_programs: false,
            grants_network: false,
            fingerprint: control.fingerprint(),
            files: control.digests().clone(),
            requests: requests.collect(),
            changes: Vec::new(),
            limit: control.limit().map(str::to_owned),
            warning: self.mode_warning.clone(),
        };
        let is_needed = !standing.requests.is_empty();
        standing.status = match (self.mode, &standing.limit) {
            (_, Some(_)) | (Mode::None, None) if is_needed => TrustStatus::Restricted,
            (_, Some(_)) | (Mode::None, None) => TrustStatus::Unneeded,
            (Mode::All, None) => {
                standing.grants_network = true;
                TrustStatus::Trusted
            }
            (Mode::Ask, None) => {
                let (decision, warning) = self.decisions.of(root, owner(root));
                standing.warning = standing.warning.or(warning);
                match decision {
                    Some(decision) if decision.covers(&standing.files) => {
                        standing.grants_network = agrees(&decision, &standing.requests);
                        decision.status()
                    }
                    decision if is_needed => {
                        let before = decision.map(|decision| decision.files).unwrap_or_default();
                        standing.changes = changes(&before, &standing.files);
                        TrustStatus::Undecided
                    }
                    _ => TrustStatus::Unneeded,
                }
            }
        };
        standing.can_start_programs = match standing.status {
            TrustStatus::Trusted => true,
            TrustStatus::Unneeded => self.mode != Mode::None && standing.limit.is_none(),
            TrustStatus::Undecided | TrustStatus::Restricted => false,
        };
        standing
    }

    fn is_dismissed(&self, standing: &Standing) -> bool {
        let dismissed = self.dismissed.lock().unwrap_or_else(PoisonError::into_inner);
        dismissed.contains(&(standing.root.clone(), standing.fingerprint.clone()))
    }

    fn dismiss(&self, standing: &Standing) {
        let mut dismissed = self.dismissed.lock().unwrap_or_else(PoisonError::into_inner);
        // Each entry is an open directory with these files, so only a hostile loop adds many.
        if dismissed.len() >= decisions::MAX_DECISIONS {
            dismissed.clear();
        }
        dismissed.insert((standing.root.clone(), standing.fingerprint.clone()));
    }

    fn asking(&self, root: &Path) -> Arc<Asking> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        asking.retain(|known, question| known == root || Arc::strong_count(question) > 1);
        asking.entry(root.to_owned()).or_default().clone()
    }

    /// Withdraws the waiting question about a directory.
    fn settle(&self, root: &Path) {
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(question) = asking.get(root) {
            question.settled.notify_waiters();
        }
    }
}

impl Standing {
    fn reply(&self) -> TrustReply {
        TrustReply {
            root: self.root.display().to_string(),
            status: self.status,
            fingerprint: self.fingerprint.clone(),
            requests: self.requests.clone(),
            changes: self.changes.clone(),
            limit: self.limit.clone(),
        }
    }

    /// Returns one sentence that names the parts that wait, for a log or a client without a dialog.
    pub(crate) fn notice(&self) -> Option<String> {
        let is_waiting = matches!(self.status, TrustStatus::Undecided | TrustStatus::Restricted);
        if !is_waiting || self.requests.is_empty() {
            return None;
        }
        let root = self.root.display();
        if let Some(limit) = &self.limit {
            return Some(format!("`{root}` cannot be trusted: {limit}"));
        }
        let named: Vec<_> =
            self.requests.iter().take(MAX_NAMED).map(|request| request.text.as_str()).collect();
        let more = self.requests.len().saturating_sub(MAX_NAMED);
        let more = if more == 0 { String::new() } else { format!(", and {more} more") };
        Some(format!("`{root}` is not trusted, so its configuration does not: {}{more}", named.join("; ")))
    }
}

/// Whether a decision lists every server that needs the network. An older one may be about the same files and not say so.
fn agrees(decision: &Decision, requests: &[TrustRequest]) -> bool {
    let mut needing = requests.iter().filter(|request| request.text.ends_with(WITH_NETWORK));
    needing.all(|request| decision.requests.contains(&request.text))
}

/// Returns the differences between the control files of a decision and the current ones.
fn changes(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<TrustChange> {
    if before.is_empty() {
        return Vec::new();
    }
    let change = |key: &String, kind| TrustChange { path: key_display(key), kind };
    let new = now.iter().filter_map(|(path, digest)| match before.get(path) {
        None => Some(change(path, TrustChangeKind::Added)),
        Some(known) if known != digest => Some(change(path, TrustChangeKind::Changed)),
        Some(_) => None,
    });
    let gone = before.keys().filter(|path| !now.contains_key(*path));
    new.chain(gone.map(|path| change(path, TrustChangeKind::Removed))).collect()
}

/// Returns the user id of a directory's owner; `None` if the directory is missing.
fn owner(root: &Path) -> Option<u32> {
    std::fs::metadata(root).ok().map(|found| found.uid())
}
