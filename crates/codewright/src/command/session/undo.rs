//! `session undo` and `session redo`: a prompt back, a prompt forth.
//!
//! What is taken back stays with the session until its next prompt, so that everything can be
//! taken forth again. Files that were changed since are named and left alone.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codewright_engine::{Engine, SessionFilter};
use codewright_proto::{
    FileDiff, KeptFile, Message, MessageWithParts, PartBody, RevertInput, Session, SessionId, UnrevertInput,
};

use crate::clean::clean_line;
use crate::cli::UndoArgs;
use crate::connection::explained;
use crate::output::{Output, ended};

/// How much of a prompt is shown.
const PROMPT_CHARS: usize = 60;

/// Takes the last prompt back.
pub(super) async fn undo(engine: &Engine, args: &UndoArgs) -> anyhow::Result<ExitCode> {
    let session = wanted(engine, args).await?;
    let prompts = prompts(engine, &session).await?;
    let at = position(&session, &prompts);
    let Some(prompt) = at.checked_sub(1).map(|at| &prompts[at]) else {
        bail!("there is nothing to take back in the session `{}`", session.id);
    };
    let session = revert(engine, &session.id, prompt, args.force).await?;
    let kept = session.revert.map(|revert| revert.kept).unwrap_or_default();
    let diffs = engine.diff(&session.id, None).await.map_err(explained)?;
    let mut output = Output::new();
    let mut said = format!("Took back: {}\n", shown(prompt));
    said.push_str(&changes(&diffs, "brought back", "removed"));
    said.push_str(&left(&kept, "undo", args.force));
    said.push_str(
        "The next prompt makes it final; until then `codewright session redo` takes it forth again.\n",
    );
    ended(output.write(&said).and_then(|()| output.finish()))
}

/// Takes one prompt forth again.
pub(super) async fn redo(engine: &Engine, args: &UndoArgs) -> anyhow::Result<ExitCode> {
    let session = wanted(engine, args).await?;
    if session.revert.is_none() {
        bail!("nothing is taken back in the session `{}`", session.id);
    }
    let prompts = prompts(engine, &session).await?;
    let at = position(&session, &prompts);
    let kept = match prompts.get(at + 1) {
        Some(next) => {
            let session = revert(engine, &session.id, next, args.force).await?;
            session.revert.map(|revert| revert.kept).unwrap_or_default()
        }
        None => {
            let input = UnrevertInput { force: args.force.then_some(true) };
            engine.unrevert(&session.id, input).await.map_err(explained)?.kept
        }
    };
    let diffs = engine.diff(&session.id, None).await.map_err(explained)?;
    let mut said = format!("Took forth: {}\n", prompts.get(at).map(shown).unwrap_or_default());
    said.push_str(&left(&kept, "redo", args.force));
    if prompts.len() > at + 1 {
        said.push_str("Still taken back:\n");
        said.push_str(&changes(&diffs, "brought back", "removed"));
    }
    let mut output = Output::new();
    ended(output.write(&said).and_then(|()| output.finish()))
}

/// The session that is named, else the last one of the directory.
async fn wanted(engine: &Engine, args: &UndoArgs) -> anyhow::Result<Session> {
    if let Some(id) = &args.session {
        return engine.session(&SessionId::parse(id)?).await.map_err(explained);
    }
    let directory = Some(engine.default_directory().to_string_lossy().into_owned());
    let filter = SessionFilter { directory, roots: true, limit: Some(1), ..SessionFilter::default() };
    let mut found = engine.sessions(filter).await.map_err(explained)?;
    found.pop().context("there is no session in this directory")
}

/// What a person asked for in a session, oldest first.
async fn prompts(engine: &Engine, session: &Session) -> anyhow::Result<Vec<MessageWithParts>> {
    let messages = engine.messages(&session.id, None).await.map_err(explained)?;
    let asks = |message: &MessageWithParts| {
        let by_person = |body: &PartBody| match body {
            PartBody::Text(text) => text.synthetic != Some(true),
            PartBody::Compaction { .. } => false,
            _ => true,
        };
        matches!(message.info, Message::User(_)) && message.parts.iter().any(|part| by_person(&part.body))
    };
    Ok(messages.into_iter().filter(asks).collect())
}

/// How many of the prompts count at this moment.
fn position(session: &Session, prompts: &[MessageWithParts]) -> usize {
    let Some(revert) = &session.revert else { return prompts.len() };
    let behind = |message: &MessageWithParts| *message.info.id() >= revert.message_id;
    prompts.iter().position(behind).unwrap_or(prompts.len())
}

async fn revert(
    engine: &Engine,
    id: &SessionId,
    prompt: &MessageWithParts,
    force: bool,
) -> anyhow::Result<Session> {
    let message_id = prompt.info.id().clone();
    let input = RevertInput { message_id, part_id: None, force: force.then_some(true) };
    engine.revert(id, input).await.map_err(explained)
}

fn shown(prompt: &MessageWithParts) -> String {
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

/// A line a file; what was added is gone now, and the other way round.
fn changes(diffs: &[FileDiff], deleted: &str, added: &str) -> String {
    let line = |diff: &FileDiff| {
        let file = clean_line(diff.file.as_deref().unwrap_or("?"));
        let what = match diff.status.as_deref() {
            Some("added") => added,
            Some("deleted") => deleted,
            _ => "restored",
        };
        format!("  {what:<12}  {file}\n")
    };
    diffs.iter().map(line).collect()
}

fn left(kept: &[KeptFile], command: &str, force: bool) -> String {
    let line = |kept: &KeptFile| {
        format!("  {:<12}  {}: {}\n", "left alone", clean_line(&kept.file), clean_line(&kept.reason))
    };
    let mut text: String = kept.iter().map(line).collect();
    if !kept.is_empty() && !force {
        text.push_str(&format!(
            "`codewright session {command} --force` changes files even if they were changed since.\n"
        ));
    }
    text
}
