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
use codewright_tools::Ask;
use tokio_util::sync::CancellationToken;

use super::evaluate::{evaluate, matches, strictest};
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
    /// The agent's rules, then the session's.
    pub(crate) rules: &'a [Rule],
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
            strictest(patterns.iter().map(|pattern| self.decide(asker.rules, &ask.permission, pattern)));
        match action {
            Action::Allow => Ok(Verdict::Granted),
            Action::Deny => {
                let speaks = |rule: &&Rule| matches(&rule.permission, &ask.permission);
                Ok(Verdict::Denied(asker.rules.iter().filter(speaks).cloned().collect()))
            }
            Action::Ask => self.ask(ask, asker).await,
        }
    }

    /// The questions that can be answered here, oldest first: they are in the log, and their calls wait in this process.
    pub(crate) async fn listed(&self) -> Result<Vec<PermissionRequest>, Error> {
        let mut waiting = self.waiting();
        if !waiting.is_empty() {
            // One that is about to be stored is nobody's business yet.
            let stored = self.store.pending_permissions().await?;
            waiting.retain(|request| stored.iter().any(|stored| stored.id == request.id));
        }
        Ok(waiting)
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
        let request = request.ok_or_else(|| Error::not_found("Permission request", id))?;
        if answer.reply == PermissionReply::Always {
            self.approve(&request);
        }
        let mut answered = vec![(request.clone(), answer.reply, answer.message)];
        for other in self.waiting().into_iter().filter(|other| other.id != *id) {
            let same_session = other.session_id == request.session_id;
            match answer.reply {
                // One refusal ends the turn, so its other questions are moot.
                PermissionReply::Reject if same_session => {
                    answered.push((other, PermissionReply::Reject, None));
                }
                PermissionReply::Always if self.approved(&other) => {
                    answered.push((other, PermissionReply::Always, None));
                }
                PermissionReply::Once | PermissionReply::Always | PermissionReply::Reject => {}
            }
        }
        let events = answered.into_iter().map(|(request, reply, message)| Event::PermissionReplied {
            session_id: request.session_id,
            request_id: request.id,
            reply,
            message,
        });
        match self.store.append(events.collect()).await {
            // Somebody else was faster, or the turn was stopped.
            Err(codewright_store::Error::Unknown { .. }) => Err(Error::not_found("Permission request", id)),
            other => other.map(|_| ()).map_err(Error::from),
        }
    }

    fn decide(&self, rules: &[Rule], permission: &str, pattern: &str) -> Action {
        let action = evaluate(rules.iter(), permission, pattern).map_or(Action::Ask, |rule| rule.action);
        if action != Action::Ask {
            return action;
        }
        let approvals = self.approvals.lock().unwrap_or_else(PoisonError::into_inner);
        evaluate(approvals.iter(), permission, pattern).map_or(Action::Ask, |rule| rule.action)
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
        request.patterns.iter().all(|pattern| self.decide(&[], &request.permission, pattern) == Action::Allow)
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
        let id = request.id.clone();
        let place = Waiting::enter(self, request.clone());
        // Subscribed before the question is put, so that no answer can be missed.
        let mut feed = self.store.subscribe();
        self.store.append(vec![Event::PermissionAsked(request)]).await?;
        let answer = async {
            while let Ok(published) = feed.next().await {
                if let Published::Event(envelope) = &published
                    && let Event::PermissionReplied { request_id, reply, message, .. } = &envelope.event
                    && *request_id == id
                {
                    return Some((*reply, message.clone()));
                }
            }
            None
        };
        let answer = asker.cancel.run_until_cancelled(tokio::time::timeout(ASK_DEADLINE, answer)).await;
        drop(place);
        match answer {
            Some(Ok(Some((PermissionReply::Reject, message)))) => Ok(Verdict::Rejected(message)),
            Some(Ok(Some((PermissionReply::Once | PermissionReply::Always, _)))) => Ok(Verdict::Granted),
            Some(Ok(None)) | Some(Err(_)) | None => {
                let session_id = asker.session_id.clone();
                let reply = PermissionReply::Reject;
                let withdrawn = Event::PermissionReplied { session_id, request_id: id, reply, message: None };
                match self.store.append(vec![withdrawn]).await {
                    // It was answered in the same moment, which no longer matters.
                    Ok(_) | Err(codewright_store::Error::Unknown { .. }) => Ok(Verdict::Cancelled),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }
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
