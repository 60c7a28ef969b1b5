//! Sessions: creation and operations without a model.

mod change;
mod context;
pub(crate) mod fork;
pub(crate) mod locks;
pub(crate) mod relocate;
pub(crate) mod revert;
pub(crate) mod row_locks;
pub(crate) mod shell;
mod summarize;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use codewright_permission::{creator, marked};
use codewright_proto::{
    Event, INTERFACE_VERSION, Message, MessageWithParts, ModelRef, PromptModel, Session, SessionAccess,
    SessionId, SessionInput, SessionTime, TokenUsage,
};

use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::request::system::civil;
use crate::run::prompt::last_prompt;

const FIRST_WORDS: [&str; 24] = [
    "amber", "brave", "brisk", "calm", "clear", "clever", "eager", "early", "fair", "fresh", "gentle",
    "keen", "kind", "light", "lively", "lucky", "mellow", "nimble", "plain", "quick", "quiet", "steady",
    "sunny", "swift",
];
const SECOND_WORDS: [&str; 24] = [
    "badger", "beacon", "birch", "brook", "cedar", "comet", "delta", "falcon", "fern", "harbor", "heron",
    "island", "lantern", "maple", "meadow", "orchid", "otter", "pebble", "pine", "raven", "reef", "river",
    "sparrow", "willow",
];

/// The prefix of the title of a session without a title.
pub(crate) const DEFAULT_TITLE: &str = "New session - ";
/// The prefix of the title of a subagent's session without a title.
const DEFAULT_CHILD_TITLE: &str = "Child session - ";

/// Creates a session and stores it.
pub(crate) async fn create(
    inner: &Inner,
    instance: &Arc<Instance>,
    input: SessionInput,
) -> Result<Session, Error> {
    create_as(inner, instance, inner.ids.session(), input).await
}

/// Creates a session with an unused id.
pub(crate) async fn create_as(
    inner: &Inner,
    instance: &Arc<Instance>,
    id: SessionId,
    input: SessionInput,
) -> Result<Session, Error> {
    let by = creator(input.access.as_ref());
    let mut session = Session { id, ..new(inner, instance, input) };
    if let Some(parent) = &session.parent_id {
        // Usage of a subagent counts for the owner of the session that started it.
        let above = inner.store.session(parent).await?.and_then(|parent| parent.access);
        session.access = above.map(|access| SessionAccess { shared: BTreeMap::new(), ..access });
    }
    for rule in session.permission.iter_mut().flatten() {
        *rule = marked(rule.clone(), by, session.access.as_ref());
    }
    let event = Event::SessionCreated { session_id: session.id.clone(), info: session.clone() };
    inner.store.append(vec![event]).await?;
    Ok(session)
}

/// Returns a new session that is not stored yet.
fn new(inner: &Inner, instance: &Instance, input: SessionInput) -> Session {
    let now = inner.clock.now_ms();
    let untitled = if input.parent_id.is_some() { DEFAULT_CHILD_TITLE } else { DEFAULT_TITLE };
    Session {
        id: inner.ids.session(),
        slug: slug(inner.ids.random()),
        project_id: instance.project.id.clone(),
        workspace_id: None,
        directory: instance.directory_text(),
        path: Some(relative(&instance.directory, &instance.worktree.root)),
        parent_id: input.parent_id,
        summary: None,
        cost: 0.0,
        tokens: TokenUsage::default(),
        share: None,
        title: input.title.unwrap_or_else(|| format!("{untitled}{}", iso(now))),
        agent: input.agent,
        model: input.model,
        version: INTERFACE_VERSION.to_owned(),
        metadata: input.metadata,
        permission: input.permission,
        revert: None,
        access: input.access,
        time: SessionTime { created: now, updated: now, ..SessionTime::default() },
    }
}

/// Returns a session with the agent, model and usage that its next turn uses. A fork has these only from its first
/// prompt on; until then they come from the last prompt that it contains.
pub(crate) async fn in_use(inner: &Inner, id: &SessionId) -> Result<Session, Error> {
    let mut session = inner.session(id).await?;
    if session.agent.is_some() && session.model.is_some() {
        return Ok(session);
    }
    let transcript = inner.store.transcript(id).await?;
    let Some((last, _)) = last_prompt(&transcript) else { return Ok(session) };
    if (session.tokens, session.cost) == (TokenUsage::default(), 0.0) {
        (session.tokens, session.cost) = used(&transcript);
    }
    session.agent.get_or_insert_with(|| last.agent.clone());
    session.model.get_or_insert_with(|| {
        let PromptModel { provider_id, model_id, variant } = last.model.clone();
        ModelRef { id: model_id, provider_id, variant }
    });
    Ok(session)
}

/// Returns the usage of all answers of a transcript.
fn used(transcript: &[MessageWithParts]) -> (TokenUsage, f64) {
    let (mut tokens, mut cost) = (TokenUsage::default(), 0.0);
    for message in transcript {
        if let Message::Assistant(info) = &message.info {
            tokens.add(&info.tokens);
            cost += info.cost;
        }
    }
    (tokens, cost)
}

/// Returns two words, such as `calm-river`.
pub(crate) fn slug(random: u64) -> String {
    let pick = |words: &[&'static str; 24], at: u64| words[(at % 24) as usize];
    format!("{}-{}", pick(&FIRST_WORDS, random), pick(&SECOND_WORDS, random >> 32))
}

/// Returns the directory relative to the worktree; empty at its root.
pub(crate) fn relative(directory: &Path, worktree: &Path) -> String {
    directory.strip_prefix(worktree).unwrap_or(directory).to_string_lossy().into_owned()
}

/// Formats a time as `2026-11-21T20:36:57.297Z`.
fn iso(now_ms: u64) -> String {
    let (year, month, day) = civil(now_ms);
    let ms = now_ms % 86_400_000;
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_clients_write_it() {
        assert_eq!(iso(1_795_293_417_297), "2026-11-21T20:36:57.297Z");
    }
}
