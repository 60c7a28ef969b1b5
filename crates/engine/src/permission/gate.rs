//! The gate in front of every tool call: decides, asks a user where the rules say so, and waits.
//!
//! A question is an event, and so is its answer; whichever client answers first
//! decides. A denial by rule holds whatever was approved before: an answer of
//! "always" only saves further questions, it never widens what the rules forbid.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use codewright_proto::{
    Action, Event, Ids, PermissionAnswer, PermissionId, PermissionReply, PermissionRequest, Rule, SessionId,
    ToolRef,
};
use codewright_store::{Published, Store};
use codewright_tools::{Ask, Implied};
use tokio_util::sync::CancellationToken;

use super::evaluate::{evaluate, is_named, strictest};
use super::law::Law;
use crate::Error;

/// A question that nobody answers is a refusal after this long.
const ASK_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
/// Approvals kept for the life of the process; the oldest go first.
const MAX_APPROVALS: usize = 1000;

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// It may run.
    Granted,
    /// A rule forbids it; these are the rules that speak of it.
    Denied(Vec<Rule>),
    /// A user refused, perhaps with a word to the model.
    Rejected(Option<String>),
    /// The turn ended while it waited.
    Cancelled,
}

/// Who asks.
#[derive(Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) session_id: &'a SessionId,
    /// What holds for it.
    pub(crate) law: &'a Law,
    pub(crate) tool: Option<ToolRef>,
    pub(crate) cancel: &'a CancellationToken,
}

pub(crate) struct Gate {
    store: Store,
    ids: Ids,
    waiting: Mutex<HashMap<PermissionId, PermissionRequest>>,
    approvals: Mutex<Vec<Rule>>,
}

impl Gate {
    pub(crate) fn new(store: Store, ids: Ids) -> Self {
        Self { store, ids, waiting: Mutex::default(), approvals: Mutex::default() }
    }

    /// Decides about one thing a call would do; waits for a user if it has to.
    pub(crate) async fn check(&self, ask: &Ask, asker: &Asker<'_>) -> Result<Verdict, Error> {
        let patterns: &[String] = &ask.patterns;
        let action =
            strictest(patterns.iter().map(|pattern| {
                self.decide(asker.law, (&ask.permission, pattern), needs_name(&ask.metadata))
            }));
        let mut open = Vec::new();
        for implied in &ask.implied {
            match asker.law.judge(implied) {
                Action::Deny if action != Action::Deny => {
                    return Ok(Verdict::Denied(asker.law.about(&implied.permission)));
                }
                Action::Ask if !self.is_remembered(implied) => open.push(implied),
                Action::Allow | Action::Ask | Action::Deny => {}
            }
        }
        match action {
            Action::Allow => self.ask_implied(ask, &open, asker).await,
            Action::Deny => Ok(Verdict::Denied(asker.law.about(&ask.permission))),
            // Who is shown the whole command answers for what comes with it, too.
            Action::Ask => self.ask(&with_implied(ask, &open), asker).await,
        }
    }

    /// Asks about what comes with something that is allowed, one question for each kind of leave.
    async fn ask_implied(&self, ask: &Ask, open: &[&Implied], asker: &Asker<'_>) -> Result<Verdict, Error> {
        let mut kinds: Vec<&str> = open.iter().map(|implied| implied.permission.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let mut question = Ask { metadata: ask.metadata.clone(), ..Ask::new(kind, Vec::new()) };
            question.always.clear();
            for implied in open.iter().filter(|implied| implied.permission == kind) {
                add_to(&mut question, implied);
            }
            match self.ask(&question, asker).await? {
                Verdict::Granted => {}
                other => return Ok(other),
            }
        }
        Ok(Verdict::Granted)
    }

    /// Whether a user has allowed for good what comes with a call.
    fn is_remembered(&self, implied: &Implied) -> bool {
        let allows =
            |pattern: &str| self.remembered((&implied.permission, pattern), Name::Optional) == Action::Allow;
        allows(&implied.pattern) || implied.spelled.as_deref().is_some_and(allows)
    }

    /// The questions that can be answered, oldest first: they are in the log, and their calls wait
    /// in this process or another one that lives.
    pub(crate) async fn listed(&self) -> Result<Vec<PermissionRequest>, Error> {
        let mut listed = Vec::new();
        for request in self.store.pending_permissions().await? {
            if self.is_waiting(&request.id) || self.is_elsewhere(&request.session_id).await? {
                listed.push(request);
            }
        }
        Ok(listed)
    }

    fn is_waiting(&self, id: &PermissionId) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    /// Whether another process that lives works in a session.
    async fn is_elsewhere(&self, session: &SessionId) -> Result<bool, Error> {
        Ok(self.store.holder(session).await?.is_some_and(|holder| !holder.is_ours))
    }

    fn waiting(&self) -> Vec<PermissionRequest> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut requests: Vec<_> = waiting.values().cloned().collect();
        requests.sort_by(|a, b| a.id.cmp(&b.id));
        requests
    }

    /// Records a user's answer; the call that waits hears of it through the log.
    pub(crate) async fn answer(&self, id: &PermissionId, answer: PermissionAnswer) -> Result<(), Error> {
        let request = {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever knows the id heard it from the log.
            waiting.get(id).cloned()
        };
        let request = match request {
            Some(request) => request,
            None => return self.answer_elsewhere(id, answer).await,
        };
        if answer.reply == PermissionReply::Always {
            self.approve(&request);
        }
        let also = self.also_answered(&request, answer.reply);
        let mut events = vec![replied(request, answer.reply, answer.message)];
        events.extend(also.into_iter().map(|other| replied(other, answer.reply, None)));
        self.reply(id, events).await
    }

    /// Answers a question of another process, which does what else follows from the answer.
    async fn answer_elsewhere(&self, id: &PermissionId, answer: PermissionAnswer) -> Result<(), Error> {
        let pending = self.store.pending_permissions().await?;
        match pending.into_iter().find(|request| request.id == *id) {
            Some(request) if self.is_elsewhere(&request.session_id).await? => {
                self.reply(id, vec![replied(request, answer.reply, answer.message)]).await
            }
            _ => Err(Error::not_found("Permission request", id)),
        }
    }

    /// The other questions that wait here and that an answer decides as well.
    fn also_answered(&self, request: &PermissionRequest, reply: PermissionReply) -> Vec<PermissionRequest> {
        let others = self.waiting().into_iter().filter(|other| other.id != request.id);
        let decides = |other: &PermissionRequest| match reply {
            PermissionReply::Once => false,
            PermissionReply::Always => self.approved(other),
            // One refusal ends the turn, so its other questions are moot.
            PermissionReply::Reject => other.session_id == request.session_id,
        };
        others.filter(decides).collect()
    }

    /// Does what follows from an answer that another process may have given.
    async fn follow(&self, request: &PermissionRequest, reply: PermissionReply) -> Result<(), Error> {
        if reply == PermissionReply::Always {
            self.approve(request);
        }
        for other in self.also_answered(request, reply) {
            match self.store.append(vec![replied(other, reply, None)]).await {
                // Most often it was given with the answer.
                Ok(_) | Err(codewright_store::Error::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn reply(&self, id: &PermissionId, events: Vec<Event>) -> Result<(), Error> {
        match self.store.append(events).await {
            // Somebody else was faster, or the turn was stopped.
            Err(codewright_store::Error::Unknown { .. }) => Err(Error::not_found("Permission request", id)),
            other => other.map(|_| ()).map_err(Error::from),
        }
    }

    fn decide(&self, law: &Law, (permission, pattern): (&str, &str), by_name: Name) -> Action {
        let decided = match by_name {
            Name::Optional => law.decide(permission, pattern),
            Name::Required => law.decide_by_name(permission, pattern),
        };
        match decided {
            Action::Ask => self.remembered((permission, pattern), by_name),
            Action::Allow | Action::Deny => decided,
        }
    }

    /// What a user has allowed for good.
    fn remembered(&self, (permission, pattern): (&str, &str), by_name: Name) -> Action {
        let approvals = self.approvals.lock().unwrap_or_else(PoisonError::into_inner);
        let speaks = approvals.iter().filter(|rule| by_name == Name::Optional || is_named(rule));
        evaluate(speaks, permission, pattern).map_or(Action::Ask, |rule| rule.action)
    }

    fn approve(&self, request: &PermissionRequest) {
        let mut approvals = self.approvals.lock().unwrap_or_else(PoisonError::into_inner);
        for pattern in &request.always {
            let rule = Rule::new(&request.permission, pattern, Action::Allow);
            if !approvals.contains(&rule) {
                approvals.push(rule);
            }
        }
        let excess = approvals.len().saturating_sub(MAX_APPROVALS);
        approvals.drain(..excess);
    }

    fn approved(&self, request: &PermissionRequest) -> bool {
        let by_name = needs_name(&request.metadata);
        let allowed =
            |pattern: &String| self.remembered((&request.permission, pattern), by_name) == Action::Allow;
        request.patterns.iter().all(allowed)
    }

    async fn ask(&self, ask: &Ask, asker: &Asker<'_>) -> Result<Verdict, Error> {
        let request = PermissionRequest {
            id: self.ids.permission(),
            session_id: asker.session_id.clone(),
            permission: ask.permission.clone(),
            patterns: ask.patterns.clone(),
            metadata: ask.metadata.clone(),
            always: ask.always.clone(),
            tool: asker.tool.clone(),
        };
        self.put(request, asker.cancel, || {}).await
    }

    /// Puts a question and waits for its answer; `stored` is called once clients can see it.
    pub(super) async fn put(
        &self,
        request: PermissionRequest,
        cancel: &CancellationToken,
        stored: impl FnOnce(),
    ) -> Result<Verdict, Error> {
        let (id, session_id) = (request.id.clone(), request.session_id.clone());
        let place = Waiting::enter(self, request.clone());
        // Subscribed before the question is put, so that no answer can be missed.
        let mut feed = self.store.subscribe();
        self.store.append(vec![Event::PermissionAsked(request.clone())]).await?;
        stored();
        let answer = async {
            while let Ok(published) = feed.next().await {
                let Published::Event(envelope) = &published else { continue };
                match &envelope.event {
                    Event::PermissionReplied { request_id, reply, message, .. } if *request_id == id => {
                        return Some((*reply, message.clone()));
                    }
                    Event::SessionDeleted { session_id: gone, .. } if *gone == session_id => return None,
                    Event::PermissionReplied { .. }
                    | Event::SessionDeleted { .. }
                    | Event::SessionCreated { .. }
                    | Event::SessionUpdated { .. }
                    | Event::MessageUpdated { .. }
                    | Event::MessageRemoved { .. }
                    | Event::PartUpdated { .. }
                    | Event::PartRemoved { .. }
                    | Event::TodoUpdated { .. }
                    | Event::PermissionAsked(_) => {}
                }
            }
            None
        };
        let answer = cancel.run_until_cancelled(tokio::time::timeout(ASK_DEADLINE, answer)).await;
        drop(place);
        if let Some(Ok(Some((reply, _)))) = &answer {
            self.follow(&request, *reply).await?;
        }
        match answer {
            Some(Ok(Some((PermissionReply::Reject, message)))) => Ok(Verdict::Rejected(message)),
            Some(Ok(Some((PermissionReply::Once | PermissionReply::Always, _)))) => Ok(Verdict::Granted),
            Some(Ok(None)) | Some(Err(_)) | None => {
                let reply = PermissionReply::Reject;
                let withdrawn = Event::PermissionReplied { session_id, request_id: id, reply, message: None };
                match self.store.append(vec![withdrawn]).await {
                    // It was answered in the same moment, or its session is gone, which no longer matters.
                    Ok(_) | Err(codewright_store::Error::Unknown { .. }) => Ok(Verdict::Cancelled),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// The question that waits here under an id, and how many wait in all.
    pub(super) fn at(&self, id: &PermissionId) -> (Option<PermissionRequest>, usize) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        (waiting.get(id).cloned(), waiting.len())
    }

    /// Decides about something that a client would do.
    pub(super) fn judge(&self, law: &Law, permission: &str, patterns: &[String]) -> Action {
        strictest(patterns.iter().map(|pattern| self.decide(law, (permission, pattern), Name::Optional)))
    }
}

/// The question about a call and the other commands that come with it.
fn with_implied(ask: &Ask, open: &[&Implied]) -> Ask {
    let mut question = ask.clone();
    for implied in open.iter().filter(|implied| implied.permission == ask.permission) {
        add_to(&mut question, implied);
    }
    question
}

fn add_to(question: &mut Ask, implied: &Implied) {
    let shown = implied.shown();
    if !question.patterns.contains(&shown) {
        question.patterns.push(shown);
    }
    if let Some(always) = implied.always.as_ref().filter(|always| !question.always.contains(always)) {
        question.always.push(always.clone());
    }
}

fn replied(request: PermissionRequest, reply: PermissionReply, message: Option<String>) -> Event {
    Event::PermissionReplied { session_id: request.session_id, request_id: request.id, reply, message }
}

/// Whether a rule has to name what it allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Required,
    Optional,
}

fn needs_name(metadata: &codewright_proto::Map) -> Name {
    let is_required = metadata.get(Ask::NAMED).is_some_and(|named| named == true);
    if is_required { Name::Required } else { Name::Optional }
}

/// A question stands in the list exactly as long as its call waits.
struct Waiting<'a> {
    gate: &'a Gate,
    id: PermissionId,
}

impl<'a> Waiting<'a> {
    fn enter(gate: &'a Gate, request: PermissionRequest) -> Self {
        let id = request.id.clone();
        gate.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), request);
        Self { gate, id }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.gate.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
