//! Undoes and redoes the messages of a session together with the agent's file changes.
//!
//! Only the agent's changes are undone, file by file, from the current position of the session to the new one; files
//! that the user has changed since are kept and named. The session stores its position; its messages stay until the
//! next prompt. The files are changed before the session. Changing them is idempotent, so the same request finishes an
//! interrupted undo.

mod point;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codewright_proto::{
    Event, FileDiff, KeptFile, Message, MessageWithParts, PartBody, Revert, RevertInput, Session, SessionId,
    SessionSummary, Signal, UnrevertInput,
};
use codewright_snapshot::{Change, Content, Respect, Snapshots, StepChange, TreeId};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::interface::Sessions;
use point::{Point, Recorded, counting, point, recorded, steps_before, travelled};

/// The largest diff that is stored with a session, in bytes.
const MAX_DIFF_BYTES: usize = 1024 * 1024;

/// A session after a redo, and the files that were not restored.
#[derive(Debug, Clone, PartialEq)]
pub struct Restored {
    /// The current session.
    pub session: Session,
    /// The files that were not changed.
    pub kept: Vec<KeptFile>,
}

impl Sessions<'_> {
    /// Reverts a session to the state before a message or part. This may also redo messages.
    ///
    /// A missing message changes nothing. A running session is refused.
    pub async fn revert(self, id: &SessionId, input: RevertInput) -> Result<Session, Error> {
        self.take_back(id, input, Files::Reverted).await
    }

    /// Reverts only the messages. The files stay, or are restored, as the last turn left them.
    pub async fn revert_messages(self, id: &SessionId, input: RevertInput) -> Result<Session, Error> {
        self.take_back(id, input, Files::Unchanged).await
    }

    /// Permanently removes the reverted messages of a session, if there are any.
    pub async fn commit_revert(self, id: &SessionId) -> Result<(), Error> {
        clean_up(self.0, id).await
    }

    async fn take_back(self, id: &SessionId, input: RevertInput, files: Files) -> Result<Session, Error> {
        let inner = self.0;
        inner.session(id).await?;
        let _alone = inner.session_locks.exclusive(&inner.runs, &inner.store, id).await?;
        let session = inner.session(id).await?;
        let transcript = inner.store.transcript(id).await?;
        let Some(point) = point(&transcript, &input.message_id, input.part_id.as_ref()) else {
            return Ok(session);
        };
        let road = Road::new(inner, &session, &transcript).await?;
        let to = match files {
            Files::Reverted => steps_before(&transcript, &point),
            Files::Unchanged => road.steps.len(),
        };
        let before = match session.revert.as_ref().and_then(|revert| revert.snapshot.as_deref()) {
            Some(known) => TreeId::parse(known),
            None => road.tree().await,
        };
        let moved = road.travel(to, respect(input.force)).await?;
        let now = road.tree().await;
        let diffs = road.diffs(before, now, to).await;
        let diff = road.text(before, now).await;
        let (summary, kept) = (summary(&diffs), moved.kept_files());
        let updated = inner.clock.now_ms();
        inner.store.signal(Signal::SessionDiff { session_id: id.clone(), diff: diffs });
        let change = |session: &mut Session| {
            session.summary = Some(summary.clone());
            session.revert = Some(Revert {
                message_id: point.message.clone(),
                part_id: point.part.clone(),
                snapshot: before.map(|tree| tree.to_string()),
                diff: diff.clone(),
                kept: kept.clone(),
                messages_only: files == Files::Unchanged,
            });
            session.time.updated = updated;
        };
        inner.update_session(id, change).await
    }

    /// Redoes everything that was reverted.
    pub async fn unrevert(self, id: &SessionId, input: UnrevertInput) -> Result<Restored, Error> {
        let inner = self.0;
        inner.session(id).await?;
        let _alone = inner.session_locks.exclusive(&inner.runs, &inner.store, id).await?;
        let session = inner.session(id).await?;
        let Some(revert) = session.revert.clone() else {
            return Ok(Restored { session, kept: Vec::new() });
        };
        let transcript = inner.store.transcript(id).await?;
        let road = Road::new(inner, &session, &transcript).await?;
        let moved = road.travel(road.steps.len(), respect(input.force)).await?;
        if let Some(before) = revert.snapshot.as_deref().and_then(TreeId::parse) {
            road.give_back(before, &moved).await?;
        }
        let updated = inner.clock.now_ms();
        let change = |session: &mut Session| {
            session.revert = None;
            session.time.updated = updated;
        };
        let session = inner.update_session(id, change).await?;
        Ok(Restored { session, kept: moved.kept_files() })
    }

    /// Returns the currently reverted changes as patches.
    pub(super) async fn taken_back(self, session: &Session) -> Result<Vec<FileDiff>, Error> {
        let Some(revert) = &session.revert else { return Ok(Vec::new()) };
        let transcript = self.0.store.transcript(&session.id).await?;
        let road = Road::new(self.0, session, &transcript).await?;
        let now = road.tree().await;
        Ok(road.diffs(revert.snapshot.as_deref().and_then(TreeId::parse), now, road.at).await)
    }
}

fn respect(force: Option<bool>) -> Respect {
    if force == Some(true) { Respect::Nothing } else { Respect::Edits }
}

/// Permanently removes the reverted messages before a new message is added.
pub(crate) async fn clean_up(inner: &Inner, id: &SessionId) -> Result<(), Error> {
    if inner.session(id).await?.revert.is_none() {
        return Ok(());
    }
    let _alone = inner.session_locks.exclusive(&inner.runs, &inner.store, id).await?;
    // Another client may have removed them first.
    let session = inner.session(id).await?;
    let Some(revert) = &session.revert else { return Ok(()) };
    let transcript = inner.store.transcript(id).await?;
    remove_behind(inner, id, &transcript, &Point::of(revert)).await
}

async fn remove_behind(
    inner: &Inner,
    id: &SessionId,
    transcript: &[MessageWithParts],
    point: &Point,
) -> Result<(), Error> {
    let (whole, cut) = counting(transcript, point);
    let gone_from = if cut.is_some() { whole + 1 } else { whole };
    let gone: Vec<_> = transcript[gone_from..].iter().map(|message| message.info.clone()).collect();
    let lost = cut.map_or(&[][..], |cut| &transcript[whole].parts[cut..]);
    let parts = lost.iter().map(|part| Event::PartRemoved {
        session_id: id.clone(),
        message_id: part.message_id.clone(),
        part_id: part.id.clone(),
    });
    // The usage of a step is counted in its end.
    let is_uncounted = lost.iter().any(|part| matches!(part.body, PartBody::StepFinish(_)));
    let uncounted = is_uncounted.then(|| &transcript[whole].info);
    let change = |session: &mut Session| {
        if let Some(Message::Assistant(message)) = uncounted {
            super::change::take_off(session, message);
        }
        session.revert = None;
    };
    super::change::remove_messages(inner, id, &gone, parts.collect(), change).await?;
    Ok(())
}

/// Returns the messages of a transcript that are not reverted.
pub(crate) fn counted(session: &Session, mut transcript: Vec<MessageWithParts>) -> Vec<MessageWithParts> {
    let Some(revert) = &session.revert else { return transcript };
    let (whole, cut) = counting(&transcript, &Point::of(revert));
    transcript.truncate(if cut.is_some() { whole + 1 } else { whole });
    if let (Some(cut), Some(last)) = (cut, transcript.last_mut()) {
        last.parts.truncate(cut);
    }
    transcript
}

/// The steps of a session and its position among them.
struct Road {
    instance: Arc<Instance>,
    snapshots: Snapshots,
    steps: Vec<Recorded>,
    at: usize,
    cancel: CancellationToken,
}

/// The effect of reverting messages on the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    Reverted,
    Unchanged,
}

/// The result of changing the files.
#[derive(Default)]
struct FileReport {
    /// The files that were changed as requested.
    there: BTreeSet<PathBuf>,
    /// The files that were not changed, with the reasons.
    kept: BTreeMap<PathBuf, String>,
}

impl FileReport {
    fn kept_files(&self) -> Vec<KeptFile> {
        let file = |(file, reason): (&PathBuf, &String)| KeptFile {
            file: file.to_string_lossy().into_owned(),
            reason: reason.clone(),
        };
        self.kept.iter().map(file).collect()
    }
}

impl Road {
    async fn new(inner: &Inner, session: &Session, transcript: &[MessageWithParts]) -> Result<Self, Error> {
        let instance = inner.instance(Path::new(&session.directory)).await?;
        let snapshots = instance.snapshots.clone();
        let steps = recorded(transcript, snapshots.worktree());
        let moved = session.revert.as_ref().filter(|revert| !revert.messages_only);
        let at = moved.map(|revert| steps_before(transcript, &Point::of(revert)));
        let at = at.unwrap_or(steps.len());
        Ok(Self { instance, snapshots, steps, at, cancel: inner.cancel.child_token() })
    }

    /// Changes the files from the session's position to another one.
    async fn travel(&self, to: usize, respect: Respect) -> Result<FileReport, Error> {
        let (range, known) = (self.at.min(to)..self.at.max(to), self.stored_changes().await?);
        let (changes, left) = travelled(&self.steps, range, |at| known[at].is_some());
        let outcome = self.snapshots.travel(&changes, self.at, to, respect).await?;
        let mut moved = FileReport::default();
        moved.there.extend(outcome.written.into_iter().chain(outcome.removed).chain(outcome.reached));
        moved.kept.extend(left.into_iter().map(|(file, why)| (file, why.text().to_owned())));
        moved.kept.extend(outcome.kept.into_iter().map(|(file, why)| (file, why.to_string())));
        let failed = outcome.failed.into_iter();
        moved.kept.extend(failed.map(|(file, why)| (file, format!("it could not be changed: {why}"))));
        Ok(moved)
    }

    /// Returns the changes of each step whose contents are stored.
    async fn stored_changes(&self) -> Result<Vec<Option<Vec<Change>>>, Error> {
        let mut known = Vec::new();
        for step in &self.steps {
            let Some((before, after)) = step.trees else {
                known.push(None);
                continue;
            };
            let files = step.files.iter().cloned().collect();
            let step = StepChange { before, after, files, left_out: Vec::new() };
            known.push(match self.snapshots.changes(&step).await {
                Ok(changes) => Some(changes),
                Err(codewright_snapshot::Error::Gone { .. }) => None,
                Err(error) => return Err(error.into()),
            });
        }
        Ok(known)
    }

    /// Restores the user's versions of files that were reverted with force.
    async fn give_back(&self, before: TreeId, moved: &FileReport) -> Result<(), Error> {
        let mut ours: BTreeSet<(PathBuf, Option<Content>)> = BTreeSet::new();
        for change in self.stored_changes().await?.into_iter().flatten().flatten() {
            ours.insert((change.path.clone(), change.before));
            ours.insert((change.path, change.after));
        }
        let mut files = Vec::new();
        for file in &moved.there {
            // A file that is missing in the tree may be ignored or too large, so its state is unknown.
            let held = match self.snapshots.read(before, file).await {
                Ok(held) => held.map(|held| held.content()),
                Err(codewright_snapshot::Error::Gone { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            if held.is_some() && !ours.contains(&(file.clone(), held)) {
                files.push(file.clone());
            }
        }
        let Some(now) = self.tree().await.filter(|_| !files.is_empty()) else { return Ok(()) };
        let step = StepChange { before: now, after: before, files, left_out: Vec::new() };
        self.snapshots.travel(&[step], 0, 1, Respect::Edits).await?;
        Ok(())
    }

    /// Returns a tree of the current files if snapshots work.
    async fn tree(&self) -> Option<TreeId> {
        match self.snapshots.track(&self.cancel).await {
            Ok(snapshot) => Some(snapshot.tree),
            // The revert works without a snapshot; only the diffs are missing.
            Err(error) => {
                self.instance.warn(&format!("no snapshot was made: {error}"));
                None
            }
        }
    }

    /// Returns the reverted changes as patches. Without snapshots they come from the steps.
    async fn diffs(&self, before: Option<TreeId>, now: Option<TreeId>, to: usize) -> Vec<FileDiff> {
        if let Some((before, now)) = before.zip(now)
            && let Ok(diffs) = self.snapshots.diff_full(now, before).await
        {
            return diffs;
        }
        let mut diffs = Vec::new();
        for step in self.steps.iter().skip(to) {
            let Some((before, after)) = step.trees else { continue };
            diffs.extend(self.snapshots.diff_full(before, after).await.unwrap_or_default());
        }
        diffs
    }

    /// Returns the reverted changes as one diff in git's format.
    async fn text(&self, before: Option<TreeId>, now: Option<TreeId>) -> Option<String> {
        let (before, now) = before.zip(now)?;
        let text = self.snapshots.diff_text(before, now, &self.cancel).await.ok()?;
        let text = text.trim_end();
        let mut end = text.len().min(MAX_DIFF_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Some(text[..end].to_owned())
    }
}

fn summary(diffs: &[FileDiff]) -> SessionSummary {
    SessionSummary {
        additions: diffs.iter().map(|diff| diff.additions).sum(),
        deletions: diffs.iter().map(|diff| diff.deletions).sum(),
        files: diffs.len() as u64,
        diffs: None,
    }
}
