//! Making sessions: new ones and forks.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use codewright_proto::{
    Event, Message, MessageId, MessageWithParts, Part, Session, SessionId, SessionInput, SessionTime,
    TokenUsage,
};

use crate::Error;
use crate::engine::{DEFAULT_TITLE, Inner};
use crate::place::Place;
use crate::request::system::civil;

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
/// Events of one transaction while a fork is written.
const FORK_BATCH: usize = 500;

/// Makes a session and stores it.
pub(crate) async fn create(inner: &Inner, place: &Arc<Place>, input: SessionInput) -> Result<Session, Error> {
    let now = inner.clock.now_ms();
    let session = Session {
        id: inner.ids.session(),
        slug: slug(inner.ids.random()),
        project_id: place.project.id.clone(),
        workspace_id: None,
        directory: place.directory_text(),
        path: Some(relative(&place.directory, &place.worktree.root)),
        parent_id: input.parent_id,
        summary: None,
        cost: 0.0,
        tokens: TokenUsage::default(),
        share: None,
        title: input.title.unwrap_or_else(|| format!("{DEFAULT_TITLE}{}", iso(now))),
        agent: input.agent,
        model: input.model,
        version: inner.version.to_owned(),
        metadata: input.metadata,
        permission: input.permission,
        revert: None,
        time: SessionTime { created: now, updated: now, ..SessionTime::default() },
    };
    let event = Event::SessionCreated { session_id: session.id.clone(), info: session.clone() };
    inner.store.append(vec![event]).await?;
    Ok(session)
}

/// Copies a session's messages, under new ids, into a new one.
pub(crate) async fn fork(
    inner: &Arc<Inner>,
    id: &SessionId,
    until: Option<&MessageId>,
) -> Result<Session, Error> {
    let source = inner.session(id).await?;
    let place = inner.place(Path::new(&source.directory)).await?;
    let transcript = inner.store.transcript(id).await?;
    if let Some(until) = until
        && !transcript.iter().any(|message| message.info.id() == until)
    {
        return Err(Error::not_found("Message", until));
    }
    let input = SessionInput {
        title: Some(fork_title(&source.title)),
        agent: source.agent,
        model: source.model,
        permission: source.permission,
        ..SessionInput::default()
    };
    let session = create(inner, &place, input).await?;
    let mut renamed = HashMap::new();
    let mut events = Vec::new();
    for message in transcript.into_iter().take_while(|message| Some(message.info.id()) != until) {
        copy(inner, &session.id, message, &mut renamed, &mut events);
        if events.len() >= FORK_BATCH {
            inner.store.append(std::mem::take(&mut events)).await?;
        }
    }
    if !events.is_empty() {
        inner.store.append(events).await?;
    }
    Ok(session)
}

fn copy(
    inner: &Inner,
    to: &SessionId,
    message: MessageWithParts,
    renamed: &mut HashMap<MessageId, MessageId>,
    events: &mut Vec<Event>,
) {
    let id = inner.ids.message();
    renamed.insert(message.info.id().clone(), id.clone());
    let info = match message.info {
        Message::User(info) => {
            Message::User(codewright_proto::UserMessage { id: id.clone(), session_id: to.clone(), ..info })
        }
        Message::Assistant(info) => {
            let parent_id = renamed.get(&info.parent_id).cloned().unwrap_or(info.parent_id);
            Message::Assistant(codewright_proto::AssistantMessage {
                id: id.clone(),
                session_id: to.clone(),
                parent_id,
                ..info
            })
        }
    };
    events.push(Event::MessageUpdated { session_id: to.clone(), info });
    for part in message.parts {
        let part =
            Part { id: inner.ids.part(), session_id: to.clone(), message_id: id.clone(), body: part.body };
        events.push(Event::PartUpdated { session_id: to.clone(), part, time: inner.clock.now_ms() });
    }
}

/// `Title (fork #1)`, counting on from a title that is a fork's already.
fn fork_title(title: &str) -> String {
    let numbered = title.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (fork #"));
    match numbered.and_then(|(base, number)| Some((base, number.parse::<u32>().ok()?))) {
        Some((base, number)) => format!("{base} (fork #{})", number.saturating_add(1)),
        None => format!("{title} (fork #1)"),
    }
}

fn slug(random: u64) -> String {
    let pick = |words: &[&'static str; 24], at: u64| words[(at % 24) as usize];
    format!("{}-{}", pick(&FIRST_WORDS, random), pick(&SECOND_WORDS, random >> 32))
}

/// The directory as seen from the worktree; empty at its root.
pub(crate) fn relative(directory: &Path, worktree: &Path) -> String {
    directory.strip_prefix(worktree).unwrap_or(directory).to_string_lossy().into_owned()
}

/// `2026-11-21T20:36:57.297Z`.
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

    #[test]
    fn forks_are_counted() {
        for (title, expected) in
            [("A", "A (fork #1)"), ("A (fork #1)", "A (fork #2)"), ("A (fork #x)", "A (fork #x) (fork #1)")]
        {
            assert_eq!(fork_title(title), expected);
        }
    }
}
