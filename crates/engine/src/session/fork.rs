//! Forks: sessions that start with a copy of another session's messages.
//!
//! Every copy gets a new id, and references to copied items are changed to the copies. The copy of an answer in progress
//! is ended, because no process continues it. A fork becomes visible as a
//! whole: it is written in one transaction, or, if it is too large, under a hidden project until it is complete.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use codewright_permission::{marked, principal_of};
use codewright_proto::{
    AssistantMessage, Event, Message, MessageId, MessageWithParts, Part, PartBody, Project, ProjectId,
    ProjectTime, Rule, Session, SessionAccess, SessionId, SessionInput, ToolState, UserMessage,
};
use codewright_store::SessionFilter;

use crate::batch::Batch;
use crate::error::Resource;
use crate::inner::Inner;
use crate::interface::Sessions;
use crate::run::recover::end_copy;
use crate::session::revert;
use crate::{Error, session};

/// The project of incomplete forks. No directory has it.
pub(crate) const UNFINISHED: &str = "unfinished";
/// An incomplete fork of this age belongs to a dead process.
const LEFT_BEHIND_MS: u64 = 24 * 60 * 60 * 1000;

impl Sessions<'_> {
    /// Creates a session with the messages of another one before `until`.
    ///
    /// The fork has the owner of the other session, and is shared with nobody.
    pub async fn fork(self, id: &SessionId, until: Option<MessageId>) -> Result<Session, Error> {
        self.fork_for(id, until, None).await
    }

    /// Does the same for a user, who becomes the owner.
    pub async fn fork_for(
        self,
        id: &SessionId,
        until: Option<MessageId>,
        access: Option<SessionAccess>,
    ) -> Result<Session, Error> {
        let inner = self.0;
        let source = inner.session(id).await?;
        let instance = inner.instance(Path::new(&source.directory)).await?;
        // Reverted messages are not copied.
        let transcript = revert::counted(&source, inner.store.transcript(id).await?);
        let end = match &until {
            None => transcript.len(),
            Some(until) => transcript
                .iter()
                .position(|message| message.info.id() == until)
                .ok_or_else(|| Error::not_found(Resource::Message, until))?,
        };
        let mark = |rule: Rule| {
            let by = principal_of(&rule, source.access.as_ref());
            marked(rule, by, access.as_ref().or(source.access.as_ref()))
        };
        let rules = source.permission.map(|rules| rules.into_iter().map(mark).collect());
        let input = SessionInput {
            title: Some(fork_title(&source.title)),
            metadata: source.metadata,
            // Restrictions of a session also apply to its forks. Who set a rule stays, whoever owns the fork.
            permission: rules,
            access: access
                .or(source.access.map(|access| SessionAccess { shared: BTreeMap::new(), ..access })),
            ..SessionInput::default()
        };
        let fork = session::new(inner, &instance, input);
        let messages = copies(inner, &fork, transcript.into_iter().take(end));
        let whole: Vec<_> = std::iter::once(created(&fork)).chain(messages.iter().cloned()).collect();
        match inner.store.append(whole).await {
            Ok(_) => Ok(fork),
            Err(codewright_store::Error::TooLarge { .. }) => write_hidden(inner, fork, messages).await,
            Err(error) => Err(error.into()),
        }
    }
}

fn created(session: &Session) -> Event {
    Event::SessionCreated { session_id: session.id.clone(), info: session.clone() }
}

/// Writes a large fork in pieces and makes it visible when it is complete.
async fn write_hidden(inner: &Inner, fork: Session, messages: Vec<Event>) -> Result<Session, Error> {
    clear_left_behind(inner).await?;
    let hidden = ProjectId(UNFINISHED.into());
    let now = inner.clock.now_ms();
    inner.store.save_project(unfinished(hidden.clone(), now)).await?;
    let info = Session { project_id: hidden, directory: String::new(), ..fork.clone() };
    let mut batch = Batch::new(inner);
    batch.push(created(&info)).await?;
    for event in messages {
        batch.push(event).await?;
    }
    batch.push(Event::SessionUpdated { session_id: fork.id.clone(), info: fork.clone() }).await?;
    batch.flush().await?;
    Ok(fork)
}

fn unfinished(id: ProjectId, now: u64) -> Project {
    Project {
        id,
        worktree: String::new(),
        vcs: None,
        name: None,
        icon: None,
        commands: None,
        time: ProjectTime { created: now, updated: now, initialized: None },
        sandboxes: Vec::new(),
    }
}

/// Deletes incomplete forks of dead processes.
async fn clear_left_behind(inner: &Inner) -> Result<(), Error> {
    let project = Some(ProjectId(UNFINISHED.into()));
    let before = inner.clock.now_ms().saturating_sub(LEFT_BEHIND_MS);
    let found = inner.store.sessions(SessionFilter { project, ..SessionFilter::default() }).await?;
    let old = found.into_iter().filter(|session| session.time.created < before);
    let events: Vec<_> =
        old.map(|info| Event::SessionDeleted { session_id: info.id.clone(), info }).collect();
    if !events.is_empty() {
        inner.store.append(events).await?;
    }
    Ok(())
}

/// Returns the events that create the messages of a fork.
fn copies(inner: &Inner, fork: &Session, messages: impl Iterator<Item = MessageWithParts>) -> Vec<Event> {
    let messages: Vec<_> = messages.collect();
    let renamed: HashMap<_, _> =
        messages.iter().map(|message| (message.info.id().clone(), inner.ids.message())).collect();
    let copy = Copy { to: fork.id.clone(), renamed };
    let mut events = Vec::new();
    for mut message in messages {
        end_copy(&mut message, inner.clock.now_ms());
        let MessageWithParts { info, parts } = message;
        let info = copy.message(info);
        let message_id = info.id().clone();
        events.push(Event::MessageUpdated { session_id: fork.id.clone(), info });
        for part in parts {
            let part = Part {
                id: inner.ids.part(),
                session_id: fork.id.clone(),
                message_id: message_id.clone(),
                body: copy.body(part.body, &message_id, inner),
            };
            let time = inner.clock.now_ms();
            events.push(Event::PartUpdated { session_id: fork.id.clone(), part, time });
        }
    }
    events
}

/// The target session and the new ids of messages.
struct Copy {
    to: SessionId,
    renamed: HashMap<MessageId, MessageId>,
}

impl Copy {
    fn message(&self, info: Message) -> Message {
        let session_id = self.to.clone();
        let id = self.name(info.id());
        match info {
            Message::User(info) => Message::User(UserMessage { id, session_id, ..info }),
            Message::Assistant(info) => {
                let parent_id = self.name(&info.parent_id);
                Message::Assistant(AssistantMessage { id, session_id, parent_id, ..info })
            }
        }
    }

    fn body(&self, mut body: PartBody, message: &MessageId, inner: &Inner) -> PartBody {
        match &mut body {
            PartBody::Compaction { tail_start_id, .. } => {
                *tail_start_id = tail_start_id.take().and_then(|id| self.renamed.get(&id).cloned());
            }
            PartBody::Tool(call) => {
                if let ToolState::Completed { attachments: Some(attachments), .. } = &mut call.state {
                    for attachment in attachments {
                        attachment.id = inner.ids.part();
                        attachment.session_id = self.to.clone();
                        attachment.message_id = message.clone();
                    }
                }
            }
            PartBody::Text(_)
            | PartBody::Reasoning { .. }
            | PartBody::File { .. }
            | PartBody::StepStart { .. }
            | PartBody::StepFinish(_)
            | PartBody::Snapshot { .. }
            | PartBody::Patch { .. }
            | PartBody::Agent { .. }
            | PartBody::Subtask { .. }
            | PartBody::Retry { .. } => {}
        }
        body
    }

    /// Returns the id of a copy. A message that was not copied keeps its id.
    fn name(&self, id: &MessageId) -> MessageId {
        self.renamed.get(id).unwrap_or(id).clone()
    }
}

/// Returns `Title (fork #1)`, or the next number if the title is that of a fork.
fn fork_title(title: &str) -> String {
    let numbered = title.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (fork #"));
    match numbered.and_then(|(base, number)| Some((base, number.parse::<u32>().ok()?))) {
        Some((base, number)) => format!("{base} (fork #{})", number.saturating_add(1)),
        None => format!("{title} (fork #1)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_are_counted() {
        for (title, expected) in
            [("A", "A (fork #1)"), ("A (fork #1)", "A (fork #2)"), ("A (fork #x)", "A (fork #x) (fork #1)")]
        {
            assert_eq!(fork_title(title), expected);
        }
    }
}
