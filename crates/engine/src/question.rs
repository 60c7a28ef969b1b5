//! Questions that models put to the user, for as long as they wait.
//!
//! A question stands until somebody answers or refuses it, its turn ends, or nobody cared for a
//! day. It does not depend on any client: one that comes later finds it in the list. It is live
//! and not stored; what came of it is kept with the call that asked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use codewright_proto::{Ids, Question, QuestionId, QuestionRequest, SessionId, Signal, ToolRef};
use codewright_store::Store;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::error::Resource;

/// Questions that wait at once; a call beyond is refused.
const MAX_WAITING: usize = 1000;
/// Bytes of one answer.
const MAX_ANSWER_BYTES: usize = 256 * 1024;

/// What was chosen or written, a list for each question in order.
pub(crate) type Answers = Vec<Vec<String>>;

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Answered(Answers),
    /// The user would not answer.
    Dismissed,
    /// The turn ended while it waited.
    Cancelled,
    /// Too many others wait.
    Crowded,
}

pub(crate) struct Questions {
    store: Store,
    ids: Ids,
    waiting: Mutex<HashMap<QuestionId, Waiting>>,
}

struct Waiting {
    request: QuestionRequest,
    /// Takes the answer; `None` is a refusal.
    answer: oneshot::Sender<Option<Answers>>,
}

impl Questions {
    pub(crate) fn new(store: Store, ids: Ids) -> Self {
        Self { store, ids, waiting: Mutex::default() }
    }

    /// Puts questions to whoever listens, and waits; the caller sets the deadline.
    pub(crate) async fn ask(
        &self,
        session_id: &SessionId,
        questions: Vec<Question>,
        tool: Option<ToolRef>,
        cancel: &CancellationToken,
    ) -> Reply {
        let id = self.ids.question();
        let request = QuestionRequest { id: id.clone(), session_id: session_id.clone(), questions, tool };
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.lock();
            if waiting.len() >= MAX_WAITING {
                return Reply::Crowded;
            }
            waiting.insert(id.clone(), Waiting { request: request.clone(), answer });
        }
        // Whoever gives up waiting, by whatever way, takes the question back.
        let _standing = Standing { questions: self, session_id, id };
        self.store.signal(Signal::QuestionAsked(request));
        match cancel.run_until_cancelled(answered).await {
            Some(Ok(Some(answers))) => Reply::Answered(answers),
            Some(Ok(None)) => Reply::Dismissed,
            Some(Err(_)) | None => Reply::Cancelled,
        }
    }

    /// The questions that wait, oldest first.
    pub(crate) fn listed(&self) -> Vec<QuestionRequest> {
        let mut requests: Vec<_> = self.lock().values().map(|waiting| waiting.request.clone()).collect();
        requests.sort_by(|a, b| a.id.cmp(&b.id));
        requests
    }

    /// Answers a question.
    pub(crate) fn answer(&self, id: &QuestionId, answers: Answers) -> Result<(), Error> {
        let mut waiting = self.lock();
        let Some(found) = waiting.get(id) else { return Err(not_found(id)) };
        let asked = found.request.questions.len();
        if answers.len() > asked {
            return Err(Error::invalid(format!("there are {} answers to {asked} questions", answers.len())));
        }
        let bytes: usize = answers.iter().flatten().map(String::len).sum();
        if bytes > MAX_ANSWER_BYTES {
            let limit = MAX_ANSWER_BYTES / 1024;
            return Err(Error::invalid(format!("the answers are longer than {limit} KiB")));
        }
        let Some(found) = waiting.remove(id) else { return Err(not_found(id)) };
        let session_id = found.request.session_id;
        // Said before the call can go on, so that clients hear of both in their order.
        let request_id = id.clone();
        self.store.signal(Signal::QuestionReplied { session_id, request_id, answers: answers.clone() });
        // A call that is being stopped does not listen any more.
        drop(found.answer.send(Some(answers)));
        Ok(())
    }

    /// Refuses a question.
    pub(crate) fn reject(&self, id: &QuestionId) -> Result<(), Error> {
        let found = self.lock().remove(id).ok_or_else(|| not_found(id))?;
        let session_id = found.request.session_id;
        self.store.signal(Signal::QuestionRejected { session_id, request_id: id.clone() });
        drop(found.answer.send(None));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QuestionId, Waiting>> {
        // Every change under the lock is one insertion or removal: a poisoned table is whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(id: &QuestionId) -> Error {
    Error::not_found(Resource::Question, id)
}

/// A question stands in the list exactly as long as its call waits.
struct Standing<'a> {
    questions: &'a Questions,
    session_id: &'a SessionId,
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
