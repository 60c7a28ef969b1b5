//! Changes to a session, its messages and parts, and deletion.

use std::collections::HashSet;
use std::path::Path;

use codewright_permission::marked;
use codewright_proto::{
    AssistantMessage, Event, FileDiff, Message, MessageId, ModelRef, Part, PartId, Session, SessionId,
    SessionPatch, Todo,
};
use codewright_store::SessionFilter;

use crate::Error;
use crate::error::Resource;
use crate::inner::Inner;
use crate::interface::Sessions;
use crate::run::stop::stop;

impl Sessions<'_> {
    /// Returns the child sessions of a session, most recently changed first.
    pub async fn children(self, id: &SessionId) -> Result<Vec<Session>, Error> {
        self.0.session(id).await?;
        children(self.0, id).await
    }

    /// Returns a session's todo list.
    pub async fn todos(self, id: &SessionId) -> Result<Vec<Todo>, Error> {
        self.0.session(id).await?;
        Ok(self.0.store.todos(id).await?)
    }

    /// Returns the changes by a prompt; without one, the currently reverted changes.
    pub async fn diff(self, id: &SessionId, message: Option<&MessageId>) -> Result<Vec<FileDiff>, Error> {
        let Some(message) = message else {
            return match self.0.store.session(id).await? {
                Some(session) => self.taken_back(&session).await,
                None => Ok(Vec::new()),
            };
        };
        let found = self.0.store.message(id, message).await?;
        Ok(match found.map(|found| found.info) {
            Some(Message::User(info)) => info.summary.map(|summary| summary.diffs).unwrap_or_default(),
            Some(Message::Assistant(_)) | None => Vec::new(),
        })
    }

    /// Sets the agent and model of a session's next prompt.
    pub async fn choose(
        self,
        id: &SessionId,
        agent: Option<String>,
        model: Option<ModelRef>,
    ) -> Result<(), Error> {
        let session = self.0.session(id).await?;
        let instance = self.0.instance(Path::new(&session.directory)).await?;
        let agent = agent.map(|agent| instance.agent_name(Some(&agent))).transpose()?;
        if let Some(model) = &model {
            instance.models.find(&model.provider_id, &model.id)?;
        }
        let change = |session: &mut Session| {
            session.agent = agent.clone().or_else(|| session.agent.take());
            session.model = model.clone().or_else(|| session.model.take());
        };
        self.0.update_session(id, change).await?;
        Ok(())
    }

    /// Changes the fields of a session that clients may change.
    pub async fn update(self, id: &SessionId, patch: SessionPatch) -> Result<Session, Error> {
        let SessionPatch { title, metadata, permission, time, by } = patch;
        let archived = time.and_then(|time| time.archived).map(archived).transpose()?;
        // A new title or archive time does not make a session recent.
        let touches = metadata.is_some() || permission.is_some();
        if title.is_none() && archived.is_none() && !touches {
            return self.0.session(id).await;
        }
        let now = self.0.clock.now_ms();
        let change = |session: &mut Session| {
            if let Some(title) = &title {
                session.title.clone_from(title);
            }
            if let Some(metadata) = &metadata {
                session.metadata = Some(metadata.clone());
            }
            if let Some(rules) = &permission {
                let rules = rules.iter().map(|rule| marked(rule.clone(), by, session.access.as_ref()));
                session.permission.get_or_insert_default().extend(rules);
            }
            if let Some(archived) = archived {
                session.time.archived = archived;
            }
            if touches {
                session.time.updated = now;
            }
        };
        self.0.update_session(id, change).await
    }

    /// Aborts a session and its children, and deletes them with all their messages.
    pub async fn delete(self, id: &SessionId) -> Result<bool, Error> {
        let mut family = vec![self.0.session(id).await?];
        let mut known = HashSet::from([id.clone()]);
        let mut at = 0;
        while let Some(parent) = family.get(at).map(|session| session.id.clone()) {
            stop(self.0, &parent).await?;
            let young = children(self.0, &parent).await?;
            family.extend(young.into_iter().filter(|child| known.insert(child.id.clone())));
            at += 1;
        }
        // Children are deleted first, so that no child exists without its parent.
        let gone = family.into_iter().rev();
        let events = gone.map(|info| Event::SessionDeleted { session_id: info.id.clone(), info }).collect();
        self.0.store.append(events).await?;
        for id in &known {
            self.0.jobs.end(id.as_str());
            crate::transfer::forget(self.0, id).await;
            crate::mcp::kept::forget(self.0, id).await;
            crate::acp::kept::forget(self.0, id).await;
        }
        Ok(true)
    }

    /// Makes a session private. Sessions are never public in this program.
    pub async fn unshare(self, id: &SessionId) -> Result<Session, Error> {
        let now = self.0.clock.now_ms();
        let change = |session: &mut Session| {
            session.share = None;
            session.time.updated = now;
        };
        self.0.update_session(id, change).await
    }

    /// Removes a message and its parts. Files are not changed. While a turn runs, only a prompt can be removed that the
    /// model has not read.
    pub async fn remove_message(self, id: &SessionId, message: &MessageId) -> Result<bool, Error> {
        self.0.session(id).await?;
        match self.0.session_locks.exclusive(&self.0.runs, &self.0.store, id).await {
            Ok(_alone) => self.remove_found(id, message).await,
            Err(busy) => {
                let _entered = self.0.session_locks.shared(id).await?;
                if !self.waits(id, message).await? {
                    return Err(busy);
                }
                self.remove_found(id, message).await
            }
        }
    }

    async fn remove_found(self, id: &SessionId, message: &MessageId) -> Result<bool, Error> {
        let Some(found) = self.0.store.message(id, message).await? else { return Ok(true) };
        remove_messages(self.0, id, &[found.info], Vec::new(), |_| {}).await?;
        Ok(true)
    }

    /// Reports whether a message is a prompt that waits while the model answers an earlier one.
    async fn waits(self, id: &SessionId, message: &MessageId) -> Result<bool, Error> {
        let transcript = self.0.store.transcript(id).await?;
        let Some(at) = transcript.iter().position(|known| known.info.id() == message) else {
            return Ok(false);
        };
        let answer = transcript.iter().rposition(|known| matches!(known.info, Message::Assistant(_)));
        let is_prompt = matches!(transcript[at].info, Message::User(_));
        let Some(answer) = answer.filter(|answer| is_prompt && *answer < at) else { return Ok(false) };
        Ok(match &transcript[answer].info {
            // After an answer with tool calls the same turn continues.
            Message::Assistant(answer) => {
                let is_open =
                    answer.time.completed.is_none() || answer.finish.as_deref() == Some("tool-calls");
                is_open && answer.error.is_none()
            }
            Message::User(_) => false,
        })
    }

    /// Removes a part of a message.
    pub async fn remove_part(
        self,
        id: &SessionId,
        message: &MessageId,
        part: &PartId,
    ) -> Result<bool, Error> {
        self.0.session(id).await?;
        let _entered = self.0.session_locks.shared(id).await?;
        let Some(found) = self.0.store.message(id, message).await? else { return Ok(true) };
        if found.parts.iter().any(|known| known.id == *part) {
            let event = Event::PartRemoved {
                session_id: id.clone(),
                message_id: message.clone(),
                part_id: part.clone(),
            };
            self.0.store.append(vec![event]).await?;
        }
        Ok(true)
    }

    /// Replaces a part of a message, or adds a new one.
    pub async fn update_part(self, part: Part) -> Result<Part, Error> {
        let (id, message) = (&part.session_id, &part.message_id);
        self.0.session(id).await?;
        let _entered = self.0.session_locks.shared(id).await?;
        if self.0.store.message(id, message).await?.is_none() {
            return Err(Error::not_found(Resource::Message, message));
        }
        let time = self.0.clock.now_ms();
        let event = Event::PartUpdated { session_id: id.clone(), part: part.clone(), time };
        match self.0.store.append(vec![event]).await {
            Ok(_) => Ok(part),
            Err(error @ codewright_store::Error::IdInUse { .. }) => Err(Error::invalid(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }
}

async fn children(inner: &Inner, id: &SessionId) -> Result<Vec<Session>, Error> {
    let filter = SessionFilter { parent: Some(id.clone()), ..SessionFilter::default() };
    Ok(inner.store.sessions(filter).await?)
}

/// The latest time of a JavaScript date, in milliseconds since 1970.
const MAX_TIME_MS: f64 = 8.64e15;

/// Parses an archive time; 0 unarchives the session.
fn archived(time: f64) -> Result<Option<u64>, Error> {
    if !(0.0..=MAX_TIME_MS).contains(&time) {
        return Err(Error::invalid(format!("`time.archived` is no time: {time}")));
    }
    // Fractions of a millisecond are dropped.
    Ok(Some(time as u64).filter(|time| *time > 0))
}

/// Removes messages in one transaction, subtracts their usage from the session, and applies another change to it.
pub(super) async fn remove_messages(
    inner: &Inner,
    id: &SessionId,
    messages: &[Message],
    more: Vec<Event>,
    change: impl Fn(&mut Session),
) -> Result<Session, Error> {
    let gone = messages
        .iter()
        .map(|message| Event::MessageRemoved { session_id: id.clone(), message_id: message.id().clone() });
    let change = |session: &mut Session| {
        for message in messages {
            if let Message::Assistant(message) = message {
                take_off(session, message);
            }
        }
        change(session);
    };
    inner.update_session_after(id, gone.chain(more).collect(), change).await
}

pub(super) fn take_off(session: &mut Session, message: &AssistantMessage) {
    let (all, less) = (&mut session.tokens, &message.tokens);
    all.total = None;
    all.input = all.input.saturating_sub(less.input);
    all.output = all.output.saturating_sub(less.output);
    all.reasoning = all.reasoning.saturating_sub(less.reasoning);
    all.cache.read = all.cache.read.saturating_sub(less.cache.read);
    all.cache.write = all.cache.write.saturating_sub(less.cache.write);
    session.cost = (session.cost - message.cost).max(0.0);
}
