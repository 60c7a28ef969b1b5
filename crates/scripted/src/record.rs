//! What a server remembers: every request it got, and which turn is next.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::http::Headers;
use crate::protocol::Protocol;
use crate::request::{Kind, Request};
use crate::script::{Script, Turn};

/// Older requests are forgotten beyond this many.
const REQUESTS_LIMIT: usize = 10_000;
/// Older requests are forgotten when their bodies exceed this together.
const BODIES_LIMIT_BYTES: usize = 256 << 20;
/// Older problems are forgotten beyond this many.
const PROBLEMS_LIMIT: usize = 1_000;

/// A model request the server got.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Which model request it was, from 1.
    pub number: u64,
    /// What it was for.
    pub kind: Kind,
    /// The how-manieth of its kind it was, from 1.
    pub ordinal: u64,
    /// The protocol it came by.
    pub protocol: Protocol,
    /// Where it was sent, without the query.
    pub path: String,
    /// Its headers.
    pub headers: Headers,
    /// Its body; text that is not JSON is kept as a string.
    pub body: Arc<Value>,
    /// When it came, from the server's start.
    pub at: Duration,
    /// The marker of the session script that answered it.
    pub session: Option<String>,
    /// Which turn of that script answered it, from 0.
    pub turn: Option<usize>,
    /// What a provider would have refused it for.
    pub problems: Vec<String>,
    /// What became of its answer.
    pub outcome: Outcome,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is being given.
    Open,
    /// It was given whole.
    Finished,
    /// It was an HTTP answer of this status.
    Status(u16),
    /// It was broken off as scripted.
    Cut,
    /// The peer left before its end, or the server was stopped.
    Left,
}

/// What is known of a request when it has come.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) request: &'a Request,
    pub(crate) kind: Kind,
    pub(crate) at: Duration,
    pub(crate) size_bytes: usize,
    pub(crate) problems: Vec<String>,
}

/// The turn chosen for a request.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) turn: Turn,
    /// Names the answer; the same in every run of the same script.
    pub(crate) label: String,
    pub(crate) index: Option<usize>,
}

/// The memory of one server.
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
    /// Requests so far, by kind: title, summary, main.
    kinds: [u64; 3],
    /// Turns used, for the unclaimed conversations and then each session script.
    used: Vec<usize>,
}

impl Ledger {
    pub(crate) fn new(script: &Script) -> Self {
        let pages = Pages { used: vec![0; script.sessions.len() + 1], ..Pages::default() };
        Self { pages: Mutex::new(pages), changes: watch::Sender::new(0) }
    }

    /// Writes down a request; returns its number.
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
            pages.keep(recorded, size_bytes);
            number
        };
        self.changed();
        number
    }

    /// Chooses what a request is answered with, and uses it up.
    pub(crate) fn choose(&self, script: &Script, request: &Request, kind: Kind, number: u64) -> Chosen {
        match (kind, &script.summary) {
            (Kind::Title, _) => {
                let turn = Turn::text(script.title.clone()).into();
                return Chosen { turn, label: "title".to_owned(), index: None };
            }
            (Kind::Summary, Some(turn)) => {
                return Chosen { turn: turn.clone(), label: "summary".to_owned(), index: None };
            }
            (Kind::Summary, None) | (Kind::Main, _) => {}
        }
        let said = request.users.join("\n");
        let session = script.sessions.iter().position(|session| said.contains(&session.marker));
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
        Chosen { turn, label, index: Some(index) }
    }

    /// Writes down what became of an answer.
    pub(crate) fn settle(&self, number: u64, outcome: Outcome) {
        if let Some(recorded) = self.lock().find(number) {
            recorded.outcome = outcome;
        }
        self.changed();
    }

    /// Writes down a problem that belongs to no model request.
    pub(crate) fn problem(&self, problem: String) {
        self.lock().problem(problem);
        self.changed();
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.lock().requests.iter().map(|(recorded, _)| recorded.clone()).collect()
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.lock().problems.iter().cloned().collect()
    }

    /// The first request that fits.
    pub(crate) fn first(&self, fits: impl Fn(&Recorded) -> bool) -> Option<Recorded> {
        self.lock().requests.iter().map(|(recorded, _)| recorded).find(|recorded| fits(recorded)).cloned()
    }

    /// Rises with every change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        // No code that can panic runs under the lock, so what it guards is whole.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn keep(&mut self, recorded: Recorded, size_bytes: usize) {
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
    fn the_oldest_requests_are_forgotten() {
        let ledger = Ledger::new(&Script::new());
        for _ in 0..REQUESTS_LIMIT + 5 {
            arrive(&ledger, 1);
        }
        let requests = ledger.requests();
        assert_eq!((requests.len(), requests[0].number), (REQUESTS_LIMIT, 6));
        assert_eq!(ledger.problems().len(), PROBLEMS_LIMIT);
    }

    #[test]
    fn large_bodies_are_forgotten_but_the_newest() {
        let ledger = Ledger::new(&Script::new());
        arrive(&ledger, BODIES_LIMIT_BYTES);
        let newest = arrive(&ledger, BODIES_LIMIT_BYTES);
        let numbers: Vec<_> = ledger.requests().iter().map(|recorded| recorded.number).collect();
        assert_eq!(numbers, [newest]);
    }
}
