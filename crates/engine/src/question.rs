//! The questions of models to the user that wait for an answer.
//!
//! A question waits until a client answers or rejects it, its turn ends, or a day has passed. It does not depend on a
//! client: one that connects later finds it in the list. Questions are not stored; the result is stored with the tool
//! call.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use codewright_permission::Power;
use codewright_proto::{Ids, Question, QuestionId, QuestionRequest, SessionId, Signal, ToolRef};
use codewright_store::Store;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::error::Resource;

/// The number of waiting questions. Further calls fail.
const MAX_WAITING: usize = 1000;
/// The largest answer in bytes.
const MAX_ANSWER_BYTES: usize = 256 * 1024;

/// The selected or written answers, one list for each question.
pub(crate) type Answers = Vec<Vec<String>>;

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Answered(Answers),
    /// The user rejected the question.
    Dismissed,
    /// The turn ended before an answer.
    Cancelled,
    /// Too many questions wait.
    Crowded,
}

pub(crate) struct Questions {
    store: Store,
    ids: Ids,
    waiting: Mutex<HashMap<QuestionId, Waiting>>,
}

struct Waiting {
    request: QuestionRequest,
    /// The power that an answer needs.
    needed: Power,
    /// Receives the answer; `None` is a rejection.
    answer: oneshot::Sender<Option<Answers>>,
}

impl Questions {
    pub(crate) fn new(store: Store, ids: Ids) -> Self {
        Self { store, ids, waiting: Mutex::default() }
    }

    /// Publishes questions and waits for the answers. The caller sets the deadline.
    pub(crate) async fn ask(
        &self,
        session_id: &SessionId,
        questions: Vec<Question>,
        tool: Option<ToolRef>,
        cancel: &CancellationToken,
    ) -> Reply {
        let request =
            QuestionRequest { id: self.ids.question(), session_id: session_id.clone(), questions, tool };
        self.put(request, Power::Answer, cancel).await
    }

    /// Does the same for a question that only an administrator may answer on a server with users.
    pub(crate) async fn ask_administrator(
        &self,
        session_id: &SessionId,
        question: Question,
        cancel: &CancellationToken,
    ) -> Reply {
        let (id, session_id) = (self.ids.question(), session_id.clone());
        let request = QuestionRequest { id, session_id, questions: vec![question], tool: None };
        self.put(request, Power::Trust, cancel).await
    }

    async fn put(&self, request: QuestionRequest, needed: Power, cancel: &CancellationToken) -> Reply {
        let (id, session_id) = (request.id.clone(), request.session_id.clone());
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.lock();
            if waiting.len() >= MAX_WAITING {
                return Reply::Crowded;
            }
            waiting.insert(id.clone(), Waiting { request: request.clone(), needed, answer });
        }
        // Withdraws the question if the caller stops waiting for any reason.
        let _standing = Standing { questions: self, session_id, id };
        self.store.signal(Signal::QuestionAsked(request));
        match cancel.run_until_cancelled(answered).await {
            Some(Ok(Some(answers))) => Reply::Answered(answers),
            Some(Ok(None)) => Reply::Dismissed,
            Some(Err(_)) | None => Reply::Cancelled,
        }
    }

    /// Returns the waiting questions, oldest first.
    pub(crate) fn listed(&self) -> Vec<QuestionRequest> {
        let mut requests: Vec<_> = self.lock().values().map(|waiting| waiting.request.clone()).collect();
        requests.sort_by(|a, b| a.id.cmp(&b.id));
        requests
    }

    /// Returns the power that an answer to a waiting question needs.
    pub(crate) fn needed(&self, id: &QuestionId) -> Power {
        self.lock().get(id).map_or(Power::Answer, |waiting| waiting.needed)
    }

    /// Answers a question.
    pub(crate) fn answer(&self, id: &QuestionId, answers: Answers) -> Result<(), Error> {
        let mut waiting = self.lock();
        let Some(found) = waiting.get(id) else { return Err(not_found(id)) };
        let questions = found.request.questions.len();
        if answers.len() > questions {
            return Err(Error::invalid(format!(
                "there are {} answers to {questions} questions",
                answers.len()
            )));
        }
        let bytes: usize = answers.iter().flatten().map(String::len).sum();
        if bytes > MAX_ANSWER_BYTES {
            let limit = MAX_ANSWER_BYTES / 1024;
            return Err(Error::invalid(format!("the answers are longer than {limit} KiB")));
        }
        let Some(found) = waiting.remove(id) else { return Err(not_found(id)) };
        let session_id = found.request.session_id;
        // Published before the call continues, so that clients receive the events in order.
        let request_id = id.clone();
        self.store.signal(Signal::QuestionReplied { session_id, request_id, answers: answers.clone() });
        // The receiver is gone if the call is being aborted.
        drop(found.answer.send(Some(answers)));
        Ok(())
    }

    /// Rejects a question.
    pub(crate) fn reject(&self, id: &QuestionId) -> Result<(), Error> {
        let found = self.lock().remove(id).ok_or_else(|| not_found(id))?;
        let session_id = found.request.session_id;
        self.store.signal(Signal::QuestionRejected { session_id, request_id: id.clone() });
        drop(found.answer.send(None));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QuestionId, Waiting>> {
        // Each change under the lock is one insertion or removal, so a poisoned table is consistent.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(id: &QuestionId) -> Error {
    Error::not_found(Resource::Question, id)
}

/// Keeps a question in the list until it is dropped.
struct Standing<'a> {
    questions: &'a Questions,
    session_id: SessionId,
    id: QuestionId,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        if self.questions.lock().remove(&self.id).is_some() {
            let (session_id, request_id) = (self.session_id.clone(), self.id.clone());
            self.questions.store.signal(Signal::QuestionRejected { session_id, request_id });
        }
    }
}
