//! Creating, listing, reading, prompting and aborting sessions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codewright_proto::{
    Message, MessageId, MessageWithParts, PromptInput, Session, SessionId, SessionInput, SessionStatus,
};
use codewright_store::{Json, MessagesJson, Rest, SessionFilter};
use tokio::time::timeout;

use super::Sessions;
use crate::admit::{Admission, admit};
use crate::error::Resource;
use crate::instance::Instance;
use crate::run::status::signal_idle;
use crate::run::stop::stop;
use crate::{Error, extension, session};

/// How long the first session of a directory waits for its plugins.
const PLUGIN_WAIT: Duration = Duration::from_secs(5);

impl Sessions<'_> {
    /// Creates a session in a directory.
    pub async fn create(self, instance: &Arc<Instance>, input: SessionInput) -> Result<Session, Error> {
        match &input.parent_id {
            Some(parent) => drop(self.0.session(parent).await?),
            None => self.await_plugins(instance).await,
        }
        session::create(self.0, instance, input).await
    }

    /// Waits until the plugins of a directory receive events, because many begin their work with the first session. Not
    /// for long: a plugin that creates a session while it is loaded waits for this.
    async fn await_plugins(self, instance: &Arc<Instance>) {
        if instance.has_plugins() {
            // After that the session is created without them.
            drop(timeout(PLUGIN_WAIT, extension::open::ready(self.0, instance)).await);
        }
    }

    /// Creates a session with an id that the client chose. An existing session is returned unchanged.
    pub async fn create_as(
        self,
        instance: &Arc<Instance>,
        id: SessionId,
        input: SessionInput,
    ) -> Result<Session, Error> {
        let _lock = self.0.row_locks.lock(&id).await;
        if let Some(known) = self.0.store.session(&id).await? {
            return Ok(known);
        }
        // The events of a deleted session must not become part of a new one.
        if !self.0.store.events_of(&id, 0, 1).await?.is_empty() {
            return Err(Error::invalid(format!("`{id}` was the id of a session that has been deleted")));
        }
        session::create_as(self.0, instance, id, input).await
    }

    /// Returns one session.
    pub async fn get(self, id: &SessionId) -> Result<Session, Error> {
        self.0.session(id).await
    }

    /// Returns sessions, most recently changed first.
    pub async fn list(self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        Ok(self.0.store.sessions(filter).await?)
    }

    /// Returns those of the sessions whose directory exists and is in the worktree of an instance, most recently changed
    /// first. Worktrees that are nested in it do not belong to it.
    pub async fn in_worktree(
        self,
        instance: &Instance,
        filter: SessionFilter,
    ) -> Result<Vec<Session>, Error> {
        let mut found = self.0.store.sessions(filter).await?;
        found.retain(|session| {
            let directory = Path::new(&session.directory);
            directory.is_dir() && codewright_config::find_worktree(directory) == instance.worktree
        });
        Ok(found)
    }

    /// Returns [`Engine::sessions`] as JSON for clients.
    pub async fn list_json(self, filter: SessionFilter) -> Result<Json, Error> {
        Ok(self.0.store.sessions_json(filter).await?)
    }

    /// Returns the newest messages of a session, oldest first.
    pub async fn messages(
        self,
        id: &SessionId,
        limit: Option<usize>,
    ) -> Result<Vec<MessageWithParts>, Error> {
        self.0.session(id).await?;
        Ok(self.0.store.messages(id, limit).await?)
    }

    /// Returns the newest `limit` messages before one, or all, oldest first, as JSON for clients.
    pub async fn messages_json(
        self,
        id: &SessionId,
        limit: Option<usize>,
        before: Option<(u64, MessageId)>,
    ) -> Result<MessagesJson, Error> {
        let found = self.0.store.messages_json(id, limit, before).await?;
        found.ok_or_else(|| Error::not_found(Resource::Session, id))
    }

    /// Returns the next page of such a list and its cursor.
    pub async fn more_messages_json(self, rest: Rest) -> Result<(Json, Option<Rest>), Error> {
        Ok(self.0.store.more_messages_json(rest).await?)
    }

    /// Returns all messages of a session without their parts, oldest first.
    pub async fn infos(self, id: &SessionId) -> Result<Vec<Message>, Error> {
        self.0.session(id).await?;
        Ok(self.0.store.infos(id).await?)
    }

    /// Returns the newest `limit` messages before one, oldest first, and whether there are older ones.
    pub async fn messages_before(
        self,
        id: &SessionId,
        limit: usize,
        before: Option<(u64, MessageId)>,
    ) -> Result<(Vec<MessageWithParts>, bool), Error> {
        self.0.session(id).await?;
        Ok(self.0.store.messages_before(id, limit, before).await?)
    }

    /// Returns one message.
    pub async fn message(self, id: &SessionId, message: &MessageId) -> Result<MessageWithParts, Error> {
        let found = self.0.store.message(id, message).await?;
        found.ok_or_else(|| Error::not_found(Resource::Message, message))
    }

    /// Reports whether a session has a message.
    pub async fn has_message(self, id: &SessionId, message: &MessageId) -> Result<bool, Error> {
        Ok(self.0.store.message(id, message).await?.is_some())
    }

    /// Admits a prompt and waits for the end of the turn. Returns the last answer, or the prompt if no answer is
    /// wanted.
    pub async fn prompt(self, id: &SessionId, input: PromptInput) -> Result<MessageWithParts, Error> {
        let (message, turn) = admit(self.0, id, Admission::Prompt(Box::new(input))).await?;
        let Some(turn) = turn else { return self.message(id, &message).await };
        turn.ended().await;
        let transcript = self.0.store.transcript(id).await?;
        let answers = |message: &&MessageWithParts| matches!(message.info, Message::Assistant(_));
        let answer = transcript.iter().rev().find(answers);
        answer.cloned().ok_or_else(|| Error::not_found(Resource::Answer, &message))
    }

    /// Admits a prompt without waiting for the turn.
    pub async fn prompt_async(self, id: &SessionId, input: PromptInput) -> Result<(), Error> {
        self.submit(id, input).await.map(drop)
    }

    /// Does the same, and returns the message of the prompt.
    pub async fn submit(self, id: &SessionId, input: PromptInput) -> Result<MessageId, Error> {
        Ok(admit(self.0, id, Admission::Prompt(Box::new(input))).await?.0)
    }

    /// Aborts a session's turn in any process and waits for its end. An idle session is not an error.
    pub async fn abort(self, id: &SessionId) -> Result<bool, Error> {
        let was_at_work = stop(self.0, id).await?;
        if !was_at_work && self.0.store.session(id).await?.is_some() && !self.0.runs.is_running(id) {
            // Clients that wait for the end of a turn receive the idle status.
            signal_idle(self.0, id);
        }
        Ok(true)
    }

    /// Returns the status of all sessions that are not idle.
    #[must_use]
    pub fn statuses(self) -> BTreeMap<SessionId, SessionStatus> {
        self.0.runs.statuses().into_iter().collect()
    }
}
