//! The summary of the files that a turn changed, stored with its prompt and added up in the session.

use std::collections::BTreeMap;
use std::path::Path;

use codewright_proto::{
    Event, FileDiff, Message, MessageWithParts, PartBody, SessionSummary, Signal, UserMessage, UserSummary,
};
use codewright_snapshot::TreeId;

use super::compact::plan::marker;
use super::context::Context;
use super::structured::requested_schema;
use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::run::prompt::last_prompt;

/// The most files in the summary of one turn.
const MAX_FILES: usize = 1000;
/// The longest patch in a summary. A longer one is counted but not included.
const MAX_PATCH_BYTES: usize = 256 * 1024;

/// Updates the summary of the last prompt from its steps.
pub(crate) async fn keep(
    inner: &Inner,
    context: &Context,
    transcript: &[MessageWithParts],
) -> Result<(), Error> {
    let Some((prompt, message)) = last_prompt(transcript) else { return Ok(()) };
    // A message that only requests compaction changes no files.
    if marker(message).is_some() {
        return Ok(());
    }
    let changes = changes(transcript, prompt);
    if changes.is_empty() && prompt.summary.is_some() {
        return Ok(());
    }
    let Context { session, instance } = context;
    let diffs = diffs(instance, &changes).await;
    let known = prompt.summary.as_ref();
    if known.is_some_and(|known| known.diffs == diffs) {
        return Ok(());
    }
    let summary = UserSummary { diffs: diffs.clone(), ..known.cloned().unwrap_or_default() };
    let info = Message::User(UserMessage { summary: Some(summary), ..prompt.clone() });
    let event = Event::MessageUpdated { session_id: session.id.clone(), info };
    let total = total(transcript, prompt, &diffs);
    // A prompt with a structured answer and no changes gets no further update.
    let is_quiet = diffs.is_empty() && requested_schema(prompt).is_some();
    if is_quiet && session.summary.as_ref() == Some(&total) {
        return Ok(());
    }
    let events = if is_quiet { Vec::new() } else { vec![event] };
    inner.update_session_after(&session.id, events, |session| session.summary = Some(total.clone())).await?;
    inner.store.signal(Signal::SessionDiff { session_id: session.id.clone(), diff: diffs });
    Ok(())
}

/// Returns for each file the tree before the first step that changed it and the tree after the last.
fn changes<'a>(
    transcript: &'a [MessageWithParts],
    prompt: &UserMessage,
) -> BTreeMap<&'a str, (TreeId, TreeId)> {
    let mut changes = BTreeMap::new();
    for message in transcript {
        if !matches!(&message.info, Message::Assistant(info) if info.parent_id == prompt.id) {
            continue;
        }
        for part in &message.parts {
            let PartBody::Patch { hash, files, after: Some(after) } = &part.body else { continue };
            let (Some(before), Some(after)) = (TreeId::parse(hash), TreeId::parse(after)) else { continue };
            for file in files {
                changes.entry(file.as_str()).or_insert((before, after)).1 = after;
            }
        }
    }
    changes
}

async fn diffs(instance: &Instance, changes: &BTreeMap<&str, (TreeId, TreeId)>) -> Vec<FileDiff> {
    let root = instance.snapshots.worktree();
    let mut diffs = Vec::new();
    for (file, (before, after)) in changes.iter().take(MAX_FILES) {
        let path = Path::new(file);
        let path = path.strip_prefix(root).unwrap_or(path);
        let read =
            async |tree| instance.snapshots.read(tree, path).await.ok().flatten().map(|file| file.bytes);
        let (before, after) = (read(*before).await, read(*after).await);
        if before == after {
            continue;
        }
        let name = path.to_string_lossy().into_owned();
        diffs.push(diff(name, before.as_deref(), after.as_deref()));
    }
    diffs
}

fn diff(name: String, before: Option<&[u8]>, after: Option<&[u8]>) -> FileDiff {
    let status = match (before, after) {
        (None, _) => "added",
        (Some(_), None) => "deleted",
        (Some(_), Some(_)) => "modified",
    };
    let text = |bytes: Option<&[u8]>| std::str::from_utf8(bytes.unwrap_or_default()).ok().map(str::to_owned);
    let diff = text(before).zip(text(after));
    let diff = diff.map(|(before, after)| codewright_workspace::unified(&name, &before, &after));
    // OpenCode writes the separator of a date after each name, but no date.
    let (bare, dated) = (format!("--- {name}\n+++ {name}\n"), format!("--- {name}\t\n+++ {name}\t\n"));
    let patch = diff.as_ref().map(|diff| diff.patch.replacen(&bare, &dated, 1));
    let patch = patch.filter(|patch| patch.len() <= MAX_PATCH_BYTES);
    FileDiff {
        file: Some(name),
        patch: Some(patch.unwrap_or_default()),
        additions: diff.as_ref().map_or(0, |diff| diff.additions as u64),
        deletions: diff.as_ref().map_or(0, |diff| diff.deletions as u64),
        status: Some(status.to_owned()),
    }
}

/// Adds up the changes of all turns of the session, with the given ones for this turn.
fn total(transcript: &[MessageWithParts], prompt: &UserMessage, diffs: &[FileDiff]) -> SessionSummary {
    let others = transcript.iter().filter_map(|message| match &message.info {
        Message::User(other) if other.id != prompt.id => other.summary.as_ref(),
        Message::User(_) | Message::Assistant(_) => None,
    });
    let all: Vec<_> = others.flat_map(|summary| &summary.diffs).chain(diffs).collect();
    let files: std::collections::BTreeSet<_> = all.iter().filter_map(|diff| diff.file.as_deref()).collect();
    SessionSummary {
        additions: all.iter().map(|diff| diff.additions).sum(),
        deletions: all.iter().map(|diff| diff.deletions).sum(),
        files: files.len() as u64,
        diffs: None,
    }
}
