//! Creating, listing, reading, prompting and aborting sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use codewright_proto::{
    Message, MessageId, MessageWithParts, PromptInput, Session, SessionId, SessionInput, SessionStatus,
};
use codewright_store::{Json, MessagesJson, Rest, SessionFilter};

use super::Sessions;
use crate::admit::admit;
use crate::error::Resource;
use crate::instance::Instance;
use crate::run::status::signal_idle;
use crate::run::stop::stop;
use crate::{Error, session};

impl Sessions<'_> {
    /// Makes a session in a directory.
    pub async fn create(self, instance: &Arc<Instance>, input: SessionInput) -> Result<Session, Error> {
        if let Some(parent) = &input.parent_id {
            self.0.session(parent).await?;
        }
        session::create(self.0, instance, input).await
    }

    /// Makes a session under an id that the client chose; one that is there already is left as it is.
    pub async fn create_as(
        self,
        instance: &Arc<Instance>,
        id: SessionId,
        input: SessionInput,
    ) -> Result<Session, Error> {
        let _turn = self.0.sessions.lock().await;
        if let Some(known) = self.0.store.session(&id).await? {
            return Ok(known);
        }
        // What happened in a session that is gone must not be that of another one.
        if !self.0.store.events_of(&id, 0, 1).await?.is_empty() {
            return Err(Error::invalid(format!("`{id}` was the id of a session that has been deleted")));
        }
        session::create_as(self.0, instance, (id, input)).await
    }

    /// One session.
    pub async fn get(self, id: &SessionId) -> Result<Session, Error> {
        self.0.session(id).await
    }

    /// Sessions, the most recently changed first.
    pub async fn list(self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        Ok(self.0.store.sessions(filter).await?)
    }

    /// [`Engine::sessions`] as clients receive them.
    pub async fn list_json(self, filter: SessionFilter) -> Result<Json, Error> {
        Ok(self.0.store.sessions_json(filter).await?)
    }

    /// The newest messages of a session, oldest first.
    pub async fn messages(
        self,
        id: &SessionId,
        limit: Option<usize>,
    ) -> Result<Vec<MessageWithParts>, Error> {
        self.0.session(id).await?;
        Ok(self.0.store.messages(id, limit).await?)
    }

    /// The newest `limit` messages before one, or all, oldest first, as clients receive them.
    pub async fn messages_json(
        self,
        id: &SessionId,
        limit: Option<usize>,
        before: Option<(u64, MessageId)>,
    ) -> Result<MessagesJson, Error> {
        let found = self.0.store.messages_json(id, limit, before).await?;
        found.ok_or_else(|| Error::not_found(Resource::Session, id))
    }

    /// The next piece of such a list, and where it goes on.
    pub async fn more_messages_json(self, rest: Rest) -> Result<(Json, Option<Rest>), Error> {
        Ok(self.0.store.more_messages_json(rest).await?)
    }

    /// All messages of a session without their parts, oldest first.
    pub async fn infos(self, id: &SessionId) -> Result<Vec<Message>, Error> {
        self.0.session(id).await?;
        Ok(self.0.store.infos(id).await?)
    }

    /// The newest `limit` messages before one, oldest first, and whether there are older ones.
    pub async fn messages_before(
        self,
        id: &SessionId,
        limit: usize,
        before: Option<(u64, MessageId)>,
    ) -> Result<(Vec<MessageWithParts>, bool), Error> {
        self.0.session(id).await?;
        Ok(self.0.store.messages_before(id, limit, before).await?)
    }

    /// One message.
    pub async fn message(self, id: &SessionId, message: &MessageId) -> Result<MessageWithParts, Error> {
        let found = self.0.store.message(id, message).await?;
        found.ok_or_else(|| Error::not_found(Resource::Message, message))
    }

    /// Whether a session has a message.
    pub async fn has_message(self, id: &SessionId, message: &MessageId) -> Result<bool, Error> {
        Ok(self.0.store.message(id, message).await?.is_some())
    }

    /// Admits a prompt and waits for the end of the turn; the last answer, or the prompt if none is wanted.
    pub async fn prompt(self, id: &SessionId, input: PromptInput) -> Result<MessageWithParts, Error> {
        let (message, turn) = admit(self.0, id, input).await?;
        let Some(turn) = turn else { return self.message(id, &message).await };
        turn.ended().await;
        let transcript = self.0.store.transcript(id).await?;
        let answers = |message: &&MessageWithParts| matches!(message.info, Message::Assistant(_));
        let answer = transcript.iter().rev().find(answers);
        answer.cloned().ok_or_else(|| Error::not_found(Resource::Answer, &message))
    }

    /// Admits a prompt; the turn goes on by itself.
    pub async fn prompt_async(self, id: &SessionId, input: PromptInput) -> Result<(), Error> {
        self.submit(id, input).await.map(drop)
    }

    /// The same; the message that the prompt became.
    pub async fn submit(self, id: &SessionId, input: PromptInput) -> Result<MessageId, Error> {
        Ok(admit(self.0, id, input).await?.0)
    }

    /// Stops a session's turn, in whatever process, and waits until it has ended; none is no error.
    pub async fn abort(self, id: &SessionId) -> Result<bool, Error> {
        let was_at_work = stop(self.0, id).await?;
        if !was_at_work && self.0.store.session(id).await?.is_some() && !self.0.runs.is_running(id) {
            // Whoever waits for the end of a turn hears that there is none.
            signal_idle(self.0, id);
        }
        Ok(true)
    }

    /// What sessions do that are not idle.
    #[must_use]
    pub fn statuses(self) -> BTreeMap<SessionId, SessionStatus> {
        self.0.runs.statuses().into_iter().collect()
    }
}
