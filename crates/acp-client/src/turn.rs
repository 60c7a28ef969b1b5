//! A prompt that runs.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{PromptResponse, SessionUpdate};
use serde::Deserialize as _;
use serde_json::json;
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio::time::timeout;

use crate::agent::{Agent, Session};
use crate::error::Error;
use crate::peer::{Answer, Responder};
use crate::routes::Request;

/// The time in which an agent must end a cancelled prompt. Its process is ended after that.
const CANCEL_DEADLINE: Duration = Duration::from_secs(10);

/// What happens in a prompt.
#[derive(Debug)]
pub enum Event {
    /// News about the answer.
    Update(Box<SessionUpdate>),
    /// A request of the agent.
    Request(Request, Responder),
    /// The end of the answer, after which nothing follows.
    Ended(Result<PromptResponse, Error>),
}

/// The end of a prompt.
enum End {
    Answered(Answer),
    /// The connection ended.
    Lost,
}

/// A prompt that runs. If it is dropped before its end, the process of the agent is ended.
pub struct Turn {
    agent: Arc<Agent>,
    session: Arc<Session>,
    events: mpsc::Receiver<Event>,
    answer: oneshot::Receiver<Answer>,
    /// The answer, while updates before it are read.
    end: Option<End>,
    is_over: bool,
    /// An agent runs one prompt of a session at a time.
    _turn: OwnedMutexGuard<()>,
}

impl Turn {
    pub(crate) fn new(
        agent: Arc<Agent>,
        session: Arc<Session>,
        events: mpsc::Receiver<Event>,
        answer: oneshot::Receiver<Answer>,
        turn: OwnedMutexGuard<()>,
    ) -> Self {
        Self { agent, session, events, answer, end: None, is_over: false, _turn: turn }
    }

    /// Waits for the next event.
    pub async fn next(&mut self) -> Event {
        if self.end.is_none() {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return event,
                answer = &mut self.answer => {
                    self.end = Some(answer.map_or(End::Lost, End::Answered));
                }
            }
        }
        // Updates before the answer were queued before it.
        if let Ok(event) = self.events.try_recv() {
            return event;
        }
        let end = match self.end.as_ref() {
            Some(End::Answered(Ok(value))) => {
                PromptResponse::deserialize(value).map_err(|error| self.agent.misbehaved(&error))
            }
            Some(End::Answered(Err(error))) => Err(self.agent.refused("the prompt", error)),
            Some(End::Lost) | None => Err(self.agent.ended().await),
        };
        self.is_over = true;
        Event::Ended(end)
    }

    /// Cancels the prompt and waits until the agent has stopped. An agent that does not stop is ended.
    pub async fn stop(mut self) {
        let session = json!({ "sessionId": self.session.id() });
        let stopping = async {
            if self.agent.peer().notify("session/cancel", &session).await.is_err() {
                return;
            }
            while !matches!(self.next().await, Event::Ended(_)) {}
        };
        if timeout(CANCEL_DEADLINE, stopping).await.is_err() {
            self.agent.log("it is ended, because it did not stop after its prompt was cancelled");
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.agent.routes().close(self.session.id());
        if !self.is_over {
            self.agent.peer().closed.cancel();
        }
    }
}
