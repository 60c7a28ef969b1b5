//! What a step does to files.
//!
//! Tools that know what they write say so, to the byte. Around tools that do not, such as
//! commands, the directory is looked at before and after. Nothing else counts as the
//! agent's doing: what a user changes while the model thinks is the user's.
//!
//! Looking is done beside the model's answer, and what fails is told once and left out:
//! a turn never depends on it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codewright_proto::{Message, MessageWithParts, PartBody};
use codewright_snapshot::{Effect, Error, File, Kind, Snapshot, Step, StepChange, TreeId};
use codewright_tools::{Effects, FileEffect};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::instance::Instance;

/// How long one look at the directory may take before the turn goes on without it.
const LOOK: Duration = Duration::from_secs(20);
/// How long a tool waits for the look at the beginning, so that the tree is that of before it; what the
/// tool changes is known to the byte in any case.
const FIRST_LOOK: Duration = Duration::from_millis(500);
/// How old the tree at the end of the step before may be to stand for the one at the beginning of this one,
/// in milliseconds.
const FRESH_MS: u64 = 100;

/// The files of one step.
pub(crate) struct Files {
    instance: Arc<Instance>,
    cancel: CancellationToken,
    /// What tools said and nobody has stored yet.
    said: Mutex<Vec<FileEffect>>,
    /// The tree at the beginning; absent while it is looked for.
    first: watch::Receiver<Option<First>>,
    state: tokio::sync::Mutex<State>,
}

/// The tree at the beginning, if there is one.
type First = Option<TreeId>;

#[derive(Default)]
struct State {
    step: Step,
    /// What was there before the commands that run now, if that is known.
    before: Option<Snapshot>,
    /// How many commands run now.
    running: usize,
    /// The last look, if nothing was done since.
    last: Option<TreeId>,
    is_touched: bool,
}

/// What a step did to files, as it is recorded.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The tree at the end.
    pub(crate) tree: Option<String>,
    /// The files that are different, as a part.
    pub(crate) patch: Option<PartBody>,
}

impl Files {
    /// Begins a step; the directory is looked at meanwhile, unless the tree is known.
    pub(crate) fn begin(
        instance: &Arc<Instance>,
        tasks: &TaskTracker,
        cancel: CancellationToken,
        known: Option<TreeId>,
    ) -> Arc<Self> {
        let (found, first) = watch::channel(None);
        if instance.keeps_files && known.is_some() {
            found.send_replace(Some(known));
        } else if instance.keeps_files {
            let (instance, cancel) = (instance.clone(), cancel.clone());
            tasks.spawn(async move {
                let tree = look(&instance, &cancel).await.map(|snapshot| snapshot.tree);
                // The step may be over already.
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
            state: tokio::sync::Mutex::default(),
        })
    }

    /// The tree at the beginning, if it is known by now.
    pub(crate) fn first(&self) -> Option<String> {
        (*self.first.borrow()).flatten().map(|tree| tree.to_string())
    }

    /// Waits until the files were looked at for the first time, but not longer than this.
    pub(crate) async fn looked(&self, limit: Duration) {
        if self.instance.keeps_files {
            let mut first = self.first.clone();
            // What is not known by then is named later.
            drop(tokio::time::timeout(limit, first.wait_for(Option::is_some)).await);
        }
    }

    /// Takes what tools say they did.
    pub(crate) fn effects(self: &Arc<Self>) -> Effects {
        if !self.instance.keeps_files {
            return Effects::none();
        }
        let files = self.clone();
        Effects::new(move |effect| {
            files.said.lock().unwrap_or_else(PoisonError::into_inner).push(effect);
        })
    }

    /// Waits a moment for the tree at the beginning, before a tool changes what it holds.
    pub(crate) async fn before_change(&self) {
        if self.instance.keeps_files {
            // Without the tree the record is less exact, and nothing else.
            drop(tokio::time::timeout(FIRST_LOOK, self.first_tree()).await);
        }
    }

    /// Looks at the directory before a command.
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
    }

    /// Looks at it again after the command.
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
        // What was done is wanted also when the turn was stopped.
        let cancel = CancellationToken::new();
        let mut state = self.state.lock().await;
        self.compare(&mut state, &cancel).await;
        self.keep_said(&mut state).await;
        let step = std::mem::take(&mut state.step);
        let change = match self.instance.snapshots.close(step).await {
            Ok(change) => change,
            Err(error) => {
                self.warn(&error);
                None
            }
        };
        let tree = if !state.is_touched {
            self.first_tree().await
        } else if state.last.is_some() {
            state.last
        } else if self.instance.keeps_files {
            look(&self.instance, &self.cancel).await.map(|snapshot| snapshot.tree)
        } else {
            None
        };
        Done { tree: tree.map(|tree| tree.to_string()), patch: change.map(|change| self.patch(change)) }
    }

    async fn first_tree(&self) -> Option<TreeId> {
        let mut first = self.first.clone();
        let found = self.cancel.run_until_cancelled(first.wait_for(Option::is_some)).await;
        // Whoever looked is gone, or the turn was stopped.
        found?.ok().and_then(|first| (*first).flatten())
    }

    /// Adds what commands did since the directory was looked at before them.
    async fn compare(&self, state: &mut State, cancel: &CancellationToken) {
        let Some(before) = state.before.take() else { return };
        let Some(after) = look(&self.instance, cancel).await else { return };
        state.is_touched |= before.tree != after.tree;
        if let Err(error) = self.instance.snapshots.report_difference(&mut state.step, &before, &after).await
        {
            self.warn(&error);
        }
        state.last = Some(after.tree);
    }

    /// Stores what tools said they did.
    async fn keep_said(&self, state: &mut State) {
        let said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        for FileEffect { path, before, after, made } in said {
            let kind = kind(&path);
            let file = |bytes| File { kind, bytes };
            let effect = Effect { path, before: before.map(file), after: after.map(file), made };
            state.is_touched = true;
            state.last = None;
            if let Err(error) = self.instance.snapshots.report(&mut state.step, effect).await {
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

/// The tree that the step before left a moment ago.
pub(crate) fn left_by_last(transcript: &[MessageWithParts], now: u64) -> Option<TreeId> {
    let last = transcript.last()?;
    let Message::Assistant(info) = &last.info else { return None };
    let ended = info.time.completed?;
    let tree = last.parts.iter().rev().find_map(|part| match &part.body {
        PartBody::StepFinish(finish) => finish.snapshot.as_deref(),
        _ => None,
    });
    tree.filter(|_| now.abs_diff(ended) <= FRESH_MS).and_then(TreeId::parse)
}

/// Looks at the directory; a failure is told once.
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

/// What a file is, as far as its owner may run it.
fn kind(path: &Path) -> Kind {
    use std::os::unix::fs::PermissionsExt as _;
    let is_executable = |metadata: std::fs::Metadata| metadata.permissions().mode() & 0o100 != 0;
    if std::fs::metadata(path).is_ok_and(is_executable) { Kind::Executable } else { Kind::File }
}
