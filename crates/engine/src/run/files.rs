//! Records the file changes of a step.
//!
//! Tools that know their writes report them exactly. For other tools, such as commands, the directory is compared
//! before and after. Nothing else is attributed to the agent: a change by the user while the model answers is the
//! user's.
//!
//! The first snapshot is taken when the answer starts, or when a tool or the end of the step needs it, so that it does
//! not delay the request. The comparison runs in parallel with the model's answer. A failure is reported once and never
//! affects the turn.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codewright_proto::{Message, MessageWithParts, PartBody};
use codewright_snapshot::{Effect, Error, File, Kind, Snapshot, Step, StepChange, TreeId};
use codewright_tools::{Effects, FileEffect};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::instance::Instance;

/// The time from the start of a request to the first snapshot, unless the answer begins earlier. By then the request is
/// usually on its way, and models take longer to answer.
const FIRST_LOOK_AFTER: Duration = Duration::from_millis(100);
/// The deadline of one snapshot of the directory.
const LOOK: Duration = Duration::from_secs(20);
/// How long a tool waits for the first snapshot, so that it shows the state before the tool. The changes of the tool
/// are known exactly in any case.
const FIRST_LOOK: Duration = Duration::from_millis(500);
/// The age in milliseconds up to which the tree at the end of the previous step of the turn is reused as the first tree
/// of this one. Changes by others in the meantime appear in the next snapshot; commands are compared with a new one.
const FRESH_MS: u64 = 10_000;

/// The files of one step.
pub(crate) struct Files {
    instance: Arc<Instance>,
    cancel: CancellationToken,
    /// Changes that tools reported and that are not stored yet.
    said: Mutex<Vec<FileEffect>>,
    /// The tree at the start; absent while it is computed.
    first: watch::Receiver<Option<First>>,
    /// Starts the first snapshot.
    needed: Arc<Notify>,
    state: tokio::sync::Mutex<State>,
}

/// The tree at the start, if snapshots work.
type First = Option<TreeId>;

#[derive(Default)]
struct State {
    step: Step,
    /// The snapshot before the running commands, if there is one.
    before: Option<Snapshot>,
    /// The number of running commands.
    running: usize,
    /// Whether `step` may lack changes, because a command has run or a change could not be stored.
    may_lack_changes: bool,
    /// The last tree, if nothing has changed since.
    last: Option<TreeId>,
    is_touched: bool,
}

/// The recorded file changes of a step.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The tree at the end.
    pub(crate) tree: Option<String>,
    /// The changed files as a part.
    pub(crate) patch: Option<PartBody>,
}

impl Files {
    /// Starts a step. The first tree is computed in the background once it is needed, unless it is known.
    pub(crate) fn begin(
        instance: &Arc<Instance>,
        tasks: &TaskTracker,
        cancel: CancellationToken,
        known: Option<TreeId>,
    ) -> Arc<Self> {
        let (found, first) = watch::channel(None);
        let needed = Arc::new(Notify::new());
        if instance.keeps_files && known.is_some() {
            found.send_replace(Some(known));
        } else if instance.keeps_files {
            let (instance, cancel, needed) = (instance.clone(), cancel.clone(), needed.clone());
            tasks.spawn(async move {
                // A cancelled step needs no snapshot, which `look` notices.
                cancel.run_until_cancelled(needed.notified()).await.unwrap_or_default();
                let tree = look(&instance, &cancel).await.map(|snapshot| snapshot.tree);
                // The step may have ended already.
                found.send_replace(Some(tree));
            });
        } else {
            found.send_replace(Some(None));
        }
        let said = Mutex::default();
        Arc::new(Self {
            instance: instance.clone(),
            cancel,
            said,
            first,
            needed,
            state: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the tree at the start, if it is known.
    pub(crate) fn first(&self) -> Option<String> {
        (*self.first.borrow()).flatten().map(|tree| tree.to_string())
    }

    /// Waits for a request to the model, and starts the first snapshot if the answer does not begin soon.
    pub(crate) async fn along<T>(&self, mut request: impl Future<Output = T> + Unpin) -> T {
        match tokio::time::timeout(FIRST_LOOK_AFTER, &mut request).await {
            Ok(answer) => answer,
            Err(_) => {
                self.needed.notify_one();
                request.await
            }
        }
    }

    /// Waits for the first snapshot until a deadline.
    pub(crate) async fn looked(&self, limit: Duration) {
        if self.instance.keeps_files {
            self.needed.notify_one();
            let mut first = self.first.clone();
            // A tree that comes later is recorded later.
            drop(tokio::time::timeout(limit, first.wait_for(Option::is_some)).await);
        }
    }

    /// Returns the receiver of the changes that tools report.
    pub(crate) fn effects(self: &Arc<Self>) -> Effects {
        if !self.instance.keeps_files {
            return Effects::none();
        }
        let files = self.clone();
        Effects::new(move |effect| {
            files.said.lock().unwrap_or_else(PoisonError::into_inner).push(effect);
        })
    }

    /// Waits a short time for the first tree before a tool changes files.
    pub(crate) async fn before_change(&self) {
        if self.instance.keeps_files {
            // Without the tree the record is only less exact.
            drop(tokio::time::timeout(FIRST_LOOK, self.first_tree()).await);
        }
    }

    /// Takes a snapshot before a command.
    pub(crate) async fn before_command(&self) {
        if !self.instance.keeps_files {
            return;
        }
        let mut state = self.state.lock().await;
        if state.running == 0 {
            self.keep_said(&mut state).await;
            state.before = look(&self.instance, &self.cancel).await;
        }
        state.running += 1;
        state.may_lack_changes = true;
    }

    /// Takes a snapshot after the command.
    pub(crate) async fn after_command(&self) {
        if !self.instance.keeps_files {
            return;
        }
        let mut state = self.state.lock().await;
        state.running = state.running.saturating_sub(1);
        if state.running == 0 {
            self.compare(&mut state, &self.cancel).await;
        }
    }

    /// Ends the step.
    pub(crate) async fn close(&self) -> Done {
        // The changes are needed also if the turn was aborted.
        let cancel = CancellationToken::new();
        let mut state = self.state.lock().await;
        self.compare(&mut state, &cancel).await;
        self.keep_said(&mut state).await;
        let step = std::mem::take(&mut state.step);
        let tree = self.last_tree(&state, &step).await;
        let change = match self.instance.snapshots.close(step).await {
            Ok(change) => change,
            Err(error) => {
                self.warn(&error);
                None
            }
        };
        Done { tree: tree.map(|tree| tree.to_string()), patch: change.map(|change| self.patch(change)) }
    }

    /// Returns the tree at the end of a step.
    async fn last_tree(&self, state: &State, step: &Step) -> Option<TreeId> {
        if !state.is_touched {
            return self.first_tree().await;
        }
        if state.last.is_some() || !self.instance.keeps_files {
            return state.last;
        }
        if !state.may_lack_changes
            && let Some(first) = self.first_tree().await
            && let Ok(Some(tree)) = self.instance.snapshots.derive(first, step).await
        {
            return Some(tree);
        }
        look(&self.instance, &self.cancel).await.map(|snapshot| snapshot.tree)
    }

    async fn first_tree(&self) -> Option<TreeId> {
        self.needed.notify_one();
        let mut first = self.first.clone();
        let found = self.cancel.run_until_cancelled(first.wait_for(Option::is_some)).await;
        // The task is gone, or the turn was aborted.
        found?.ok().and_then(|first| (*first).flatten())
    }

    /// Adds the changes of commands since the snapshot before them.
    async fn compare(&self, state: &mut State, cancel: &CancellationToken) {
        let Some(before) = state.before.take() else { return };
        // Reported changes precede the comparison, because the command may have changed the same files after them.
        self.keep_said(state).await;
        let Some(after) = look(&self.instance, cancel).await else { return };
        state.is_touched |= before.tree != after.tree;
        if let Err(error) = self.instance.snapshots.report_difference(&mut state.step, &before, &after).await
        {
            self.warn(&error);
        }
        state.last = Some(after.tree);
    }

    /// Stores the changes that tools reported.
    async fn keep_said(&self, state: &mut State) {
        let said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        for FileEffect { path, before, after, made } in said {
            let kind = kind(&path);
            let file = |bytes| File { kind, bytes };
            let effect = Effect { path, before: before.map(file), after: after.map(file), made };
            state.is_touched = true;
            state.last = None;
            if let Err(error) = self.instance.snapshots.report(&mut state.step, effect).await {
                state.may_lack_changes = true;
                self.warn(&error);
            }
        }
    }

    fn patch(&self, change: StepChange) -> PartBody {
        let root = self.instance.snapshots.worktree();
        let absolute = |path: PathBuf| root.join(path).to_string_lossy().into_owned();
        PartBody::Patch {
            hash: change.before.to_string(),
            files: change.files.into_iter().map(absolute).collect(),
            after: Some(change.after.to_string()),
        }
    }

    fn warn(&self, error: &Error) {
        self.instance.warn(&format!("what this turn does to files cannot be undone: {error}"));
    }
}

/// Returns the tree that the previous step recorded a moment ago.
pub(crate) fn tree_of_last_step(transcript: &[MessageWithParts], now: u64) -> Option<TreeId> {
    let last = transcript.last()?;
    let Message::Assistant(info) = &last.info else { return None };
    let ended = info.time.completed?;
    let tree = last.parts.iter().rev().find_map(|part| match &part.body {
        PartBody::StepFinish(finish) => finish.snapshot.as_deref(),
        _ => None,
    });
    tree.filter(|_| now.abs_diff(ended) <= FRESH_MS).and_then(TreeId::parse)
}

/// Takes a snapshot of the directory. A failure is reported once.
async fn look(instance: &Instance, cancel: &CancellationToken) -> Option<Snapshot> {
    let looked = tokio::time::timeout(LOOK, instance.snapshots.track(cancel)).await;
    match looked {
        Ok(Ok(snapshot)) => Some(snapshot),
        Ok(Err(Error::Cancelled)) => None,
        Ok(Err(error)) => {
            instance.warn(&format!("no snapshot of `{}` was made: {error}", instance.directory.display()));
            None
        }
        Err(_) => {
            let seconds = LOOK.as_secs();
            instance.warn(&format!(
                "a snapshot of `{}` took more than {seconds} s",
                instance.directory.display()
            ));
            None
        }
    }
}

/// Returns the kind of a file; the executable bit is that of its owner.
fn kind(path: &Path) -> Kind {
    use std::os::unix::fs::PermissionsExt as _;
    let is_executable = |metadata: std::fs::Metadata| metadata.permissions().mode() & 0o100 != 0;
    if std::fs::metadata(path).is_ok_and(is_executable) { Kind::Executable } else { Kind::File }
}
