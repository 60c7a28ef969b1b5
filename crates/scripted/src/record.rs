//! The requests that a server received, and the position in its script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::http::Headers;
use crate::protocol::Protocol;
use crate::request::{Kind, Request};
use crate::script::{Script, Turn};

/// Limit of remembered requests. Older ones are dropped.
const REQUESTS_LIMIT: usize = 10_000;
/// Limit of the remembered requests' bodies. Older requests are dropped.
const BODIES_LIMIT_BYTES: usize = 256 << 20;
/// Limit of remembered problems. Older ones are dropped.
const PROBLEMS_LIMIT: usize = 1_000;

/// A received model request.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Its number among all model requests, from 1.
    pub number: u64,
    /// Its purpose.
    pub kind: Kind,
    /// Its number among requests of the same kind, from 1.
    pub ordinal: u64,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its path, without the query.
    pub path: String,
    /// Its headers.
    pub headers: Headers,
    /// Its body. Text that is not JSON is stored as a string.
    pub body: Arc<Value>,
    /// Its time of arrival since the start of the server.
    pub at: Duration,
    /// The marker of the session script that answered it.
    pub session: Option<String>,
    /// The index of the turn that answered it, from 0.
    pub turn: Option<usize>,
    /// The reasons why a provider would reject it.
    pub problems: Vec<String>,
    /// The outcome of the answer.
    pub outcome: Outcome,
}

/// The outcome of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The answer is being sent.
    Open,
    /// The answer was sent completely.
    Finished,
    /// An HTTP answer with this status was sent.
    Status(u16),
    /// The answer was cut off as scripted.
    Cut,
    /// The client disconnected before the end, or the server was stopped.
    Disconnected,
}

/// A request at its arrival.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) request: &'a Request,
    pub(crate) kind: Kind,
    pub(crate) at: Duration,
    pub(crate) size_bytes: usize,
    pub(crate) problems: Vec<String>,
}

/// The turn selected for a request.
#[derive(Debug)]
pub(crate) struct SelectedTurn {
    pub(crate) turn: Turn,
    /// The part of the answer's ids that makes them unique; the same in each run of the script.
    pub(crate) label: String,
    pub(crate) index: Option<usize>,
}

/// The requests and problems of one server.
pub(crate) struct Ledger {
    pages: Mutex<Pages>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Pages {
    requests: VecDeque<(Recorded, usize)>,
    bodies_bytes: usize,
    problems: VecDeque<String>,
    number: u64,
    /// The number of requests by kind: title, summary, main.
    kinds: [u64; 3],
    /// The number of used turns: of the script's own turns, then of each session script.
    used: Vec<usize>,
}

impl Ledger {
    pub(crate) fn new(script: &Script) -> Self {
        let pages = Pages { used: vec![0; script.sessions.len() + 1], ..Pages::default() };
        Self { pages: Mutex::new(pages), changes: watch::Sender::new(0) }
    }

    /// Records a request and returns its number.
    pub(crate) fn arrive(&self, arrival: Arrival<'_>) -> u64 {
        let Arrival { request, kind, at, size_bytes, problems } = arrival;
        let number = {
            let mut pages = self.lock();
            pages.number += 1;
            let number = pages.number;
            let of_kind = &mut pages.kinds[kind as usize];
            *of_kind += 1;
            let ordinal = *of_kind;
            for problem in &problems {
                pages.problem(format!("request {number}: {problem}"));
            }
            let recorded = Recorded {
                number,
                kind,
                ordinal,
                protocol: request.protocol,
                path: request.path.clone(),
                headers: request.headers.clone(),
                body: Arc::clone(&request.body),
                at,
                session: None,
                turn: None,
                problems,
                outcome: Outcome::Open,
            };
            pages.push(recorded, size_bytes);
            number
        };
        self.notify();
        number
    }

    /// Selects the turn that answers a request, and advances the script.
    pub(crate) fn select(&self, script: &Script, request: &Request, kind: Kind, number: u64) -> SelectedTurn {
        match (kind, &script.summary) {
            (Kind::Title, _) => {
                let turn = Turn::text(script.title.clone()).into();
                return SelectedTurn { turn, label: "title".to_owned(), index: None };
            }
            (Kind::Summary, Some(turn)) => {
                return SelectedTurn { turn: turn.clone(), label: "summary".to_owned(), index: None };
            }
            (Kind::Summary, None) | (Kind::Main, _) => {}
        }
        let text = request.users.join("\n");
        let session = script.sessions.iter().position(|session| text.contains(&session.marker));
        let (turns, repeat) = match session {
            Some(at) => (&script.sessions[at].turns, script.sessions[at].repeat),
            None => (&script.turns, script.repeat),
        };
        let index = {
            let mut pages = self.lock();
            let used = &mut pages.used[session.map_or(0, |at| at + 1)];
            *used += 1;
            let index = *used - 1;
            if let Some(recorded) = pages.find(number) {
                recorded.session = session.map(|at| script.sessions[at].marker.clone());
                recorded.turn = Some(index);
            }
            index
        };
        let turn =
            if repeat && !turns.is_empty() { turns.get(index % turns.len()) } else { turns.get(index) };
        let turn = turn.or(script.default.as_ref()).cloned().unwrap_or_else(|| Turn::text("Done.").into());
        let label = match session {
            Some(at) => format!("s{}_{}", at + 1, index + 1),
            None => (index + 1).to_string(),
        };
        SelectedTurn { turn, label, index: Some(index) }
    }

    /// Records the outcome of an answer.
    pub(crate) fn settle(&self, number: u64, outcome: Outcome) {
        if let Some(recorded) = self.lock().find(number) {
            recorded.outcome = outcome;
        }
        self.notify();
    }

    /// Records a problem that belongs to no model request.
    pub(crate) fn problem(&self, problem: String) {
        self.lock().problem(problem);
        self.notify();
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.lock().requests.iter().map(|(recorded, _)| recorded.clone()).collect()
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.lock().problems.iter().cloned().collect()
    }

    /// Returns the first request that matches.
    pub(crate) fn first(&self, matches: impl Fn(&Recorded) -> bool) -> Option<Recorded> {
        self.lock().requests.iter().map(|(recorded, _)| recorded).find(|recorded| matches(recorded)).cloned()
    }

    /// Returns a counter that rises with each change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn notify(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        // No code under the lock can panic, so the data is consistent.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn push(&mut self, recorded: Recorded, size_bytes: usize) {
        self.bodies_bytes += size_bytes;
        self.requests.push_back((recorded, size_bytes));
        let is_full = |pages: &Self| {
            pages.requests.len() > REQUESTS_LIMIT
                || (pages.bodies_bytes > BODIES_LIMIT_BYTES && pages.requests.len() > 1)
        };
        while is_full(self) {
            if let Some((_, size_bytes)) = self.requests.pop_front() {
                self.bodies_bytes -= size_bytes;
            }
        }
    }

    fn problem(&mut self, problem: String) {
        self.problems.push_back(problem);
        if self.problems.len() > PROBLEMS_LIMIT {
            self.problems.pop_front();
        }
    }

    fn find(&mut self, number: u64) -> Option<&mut Recorded> {
        let recorded = self.requests.iter_mut().map(|(recorded, _)| recorded);
        recorded.rev().find(|recorded| recorded.number == number)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arrive(ledger: &Ledger, size_bytes: usize) -> u64 {
        let path = "/v1/chat/completions";
        let request = Request::read(Protocol::Chat, path, Headers::default(), Arc::new(json!({})));
        let problems = vec!["bad".to_owned()];
        ledger.arrive(Arrival {
            request: &request,
            kind: Kind::Main,
            at: Duration::ZERO,
            size_bytes,
            problems,
        })
    }

    #[test]
    fn the_oldest_requests_are_dropped() {
        let ledger = Ledger::new(&Script::new());
        for _ in 0..REQUESTS_LIMIT + 5 {
            arrive(&ledger, 1);
        }
        let requests = ledger.requests();
        assert_eq!((requests.len(), requests[0].number), (REQUESTS_LIMIT, 6));
        assert_eq!(ledger.problems().len(), PROBLEMS_LIMIT);
    }

    #[test]
    fn large_bodies_except_the_newest_are_dropped() {
        let ledger = Ledger::new(&Script::new());
        arrive(&ledger, BODIES_LIMIT_BYTES);
        let newest = arrive(&ledger, BODIES_LIMIT_BYTES);
        let numbers: Vec<_> = ledger.requests().iter().map(|recorded| recorded.number).collect();
        assert_eq!(numbers, [newest]);
    }
}
