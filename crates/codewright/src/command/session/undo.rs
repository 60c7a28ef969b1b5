//! `session undo` and `session redo`: undo or redo one prompt.
//!
//! The session keeps undone prompts until its next prompt, so they can be redone. Files that were changed in the
//! meantime are listed and not overwritten.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codewright_engine::{Engine, SessionFilter};
use codewright_proto::{
    FileDiff, KeptFile, Message, MessageWithParts, PartBody, RevertInput, Session, SessionId, UnrevertInput,
};

use crate::clean::clean_line;
use crate::cli::UndoArgs;
use crate::connection::engine_error;
use crate::output::{Output, exit_code};

/// The longest excerpt of a prompt.
const PROMPT_CHARS: usize = 60;

/// Undoes the last prompt.
pub(super) async fn undo(engine: &Engine, args: &UndoArgs) -> anyhow::Result<ExitCode> {
    let session = find_session(engine, args).await?;
    let prompts = prompts(engine, &session).await?;
    let at = active_count(&session, &prompts);
    let Some(prompt) = at.checked_sub(1).map(|at| &prompts[at]) else {
        bail!("the session `{}` has nothing to undo", session.id);
    };
    let session = revert(engine, &session.id, prompt, args.force).await?;
    let kept = session.revert.map(|revert| revert.kept).unwrap_or_default();
    let diffs = engine.sessions().diff(&session.id, None).await.map_err(engine_error)?;
    let mut output = Output::new();
    let mut text = format!("Undone: {}\n", excerpt(prompt));
    text.push_str(&changes(&diffs));
    text.push_str(&kept_files(&kept, "undo", args.force));
    text.push_str("`codewright session redo` redoes it until the next prompt of the session.\n");
    exit_code(output.write(&text).and_then(|()| output.finish()))
}

/// Redoes the prompt that was undone last.
pub(super) async fn redo(engine: &Engine, args: &UndoArgs) -> anyhow::Result<ExitCode> {
    let session = find_session(engine, args).await?;
    if session.revert.is_none() {
        bail!("the session `{}` has nothing to redo", session.id);
    }
    let prompts = prompts(engine, &session).await?;
    let at = active_count(&session, &prompts);
    let kept = match prompts.get(at + 1) {
        Some(next) => {
            let session = revert(engine, &session.id, next, args.force).await?;
            session.revert.map(|revert| revert.kept).unwrap_or_default()
        }
        None => {
            let input = UnrevertInput { force: args.force.then_some(true) };
            engine.sessions().unrevert(&session.id, input).await.map_err(engine_error)?.kept
        }
    };
    let diffs = engine.sessions().diff(&session.id, None).await.map_err(engine_error)?;
    let mut text = format!("Redone: {}\n", prompts.get(at).map(excerpt).unwrap_or_default());
    text.push_str(&kept_files(&kept, "redo", args.force));
    if prompts.len() > at + 1 {
        text.push_str("Still undone:\n");
        text.push_str(&changes(&diffs));
    }
    let mut output = Output::new();
    exit_code(output.write(&text).and_then(|()| output.finish()))
}

/// The session of the arguments, or the last one of the directory.
async fn find_session(engine: &Engine, args: &UndoArgs) -> anyhow::Result<Session> {
    if let Some(id) = &args.session {
        return engine.sessions().get(&SessionId::parse(id)?).await.map_err(engine_error);
    }
    let directory = Some(engine.default_directory().to_string_lossy().into_owned());
    let filter = SessionFilter { directory, roots: true, limit: Some(1), ..SessionFilter::default() };
    let mut found = engine.sessions().list(filter).await.map_err(engine_error)?;
    found.pop().context("there is no session in this directory")
}

/// The user's prompts of a session, oldest first.
async fn prompts(engine: &Engine, session: &Session) -> anyhow::Result<Vec<MessageWithParts>> {
    let messages = engine.sessions().messages(&session.id, None).await.map_err(engine_error)?;
    let is_prompt = |message: &MessageWithParts| {
        let is_by_user = |body: &PartBody| match body {
            PartBody::Text(text) => text.synthetic != Some(true),
            PartBody::Compaction { .. } => false,
            _ => true,
        };
        matches!(message.info, Message::User(_)) && message.parts.iter().any(|part| is_by_user(&part.body))
    };
    Ok(messages.into_iter().filter(is_prompt).collect())
}

/// The number of prompts that are not undone.
fn active_count(session: &Session, prompts: &[MessageWithParts]) -> usize {
    let Some(revert) = &session.revert else { return prompts.len() };
    let is_undone = |message: &MessageWithParts| *message.info.id() >= revert.message_id;
    prompts.iter().position(is_undone).unwrap_or(prompts.len())
}

async fn revert(
    engine: &Engine,
    id: &SessionId,
    prompt: &MessageWithParts,
    force: bool,
) -> anyhow::Result<Session> {
    let message_id = prompt.info.id().clone();
    let input = RevertInput { message_id, part_id: None, force: force.then_some(true) };
    engine.sessions().revert(id, input).await.map_err(engine_error)
}

/// The start of a prompt.
fn excerpt(prompt: &MessageWithParts) -> String {
    let text = prompt.parts.iter().find_map(|part| match &part.body {
        PartBody::Text(text) if text.synthetic != Some(true) => Some(clean_line(&text.text)),
        _ => None,
    });
    let text = text.unwrap_or_else(|| prompt.info.id().to_string());
    if text.chars().count() <= PROMPT_CHARS {
        return text;
    }
    text.chars().take(PROMPT_CHARS - 1).chain(['\u{2026}']).collect()
}

/// A line per undone change of a file: an added file was removed, a deleted one restored.
fn changes(diffs: &[FileDiff]) -> String {
    let line = |diff: &FileDiff| {
        let file = clean_line(diff.file.as_deref().unwrap_or("?"));
        let verb = if diff.status.as_deref() == Some("added") { "removed" } else { "restored" };
        format!("  {verb:<8}  {file}\n")
    };
    diffs.iter().map(line).collect()
}

/// The files that were not changed, each with the reason.
fn kept_files(kept: &[KeptFile], command: &str, force: bool) -> String {
    let line = |kept: &KeptFile| {
        format!("  {:<8}  {}: {}\n", "kept", clean_line(&kept.file), clean_line(&kept.reason))
    };
    let mut text: String = kept.iter().map(line).collect();
    if !kept.is_empty() && !force {
        text.push_str(&format!(
            "`codewright session {command} --force` overwrites files that were changed in the meantime.\n"
        ));
    }
    text
}
