//! Whether a session is offered the tools of servers themselves, or one tool that searches and calls them.
//!
//! Schemas of many tools fill the context, so a session whose schemas exceed a budget gets the search tool. The decision
//! is kept, and so is everything about the servers that requests contain, because providers cache the beginning of a
//! request: a server that reconnects or changes its list must not change it. A session that began with the tools
//! themselves changes only when they need [`GROWTH`] times the budget, and never back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_proto::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::catalogue::Named;

/// The default budget in tokens, unless a share of the model's context is less.
const DEFAULT_TOKENS: u64 = 20_000;
/// The default budget as a part of the model's context.
const CONTEXT_PARTS: u64 = 10;
/// The usual size of a token in bytes. Schemas contain more signs than text does.
const TOKEN_BYTES: u64 = 3;
/// The multiple of the budget at which a session that began without the search tool gets it.
const GROWTH: u64 = 2;
/// The number of decisions that are kept.
const MAX_KEPT: usize = 256;

/// The configured budget for the schemas of servers' tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Budget {
    /// It depends on the model.
    #[default]
    Usual,
    Tokens(u64),
    Unlimited,
}

/// What requests of a session contain about the servers.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// All tools, also those that are hidden from the agent.
    pub(crate) tools: Vec<Named>,
    pub(crate) have_resources: bool,
    pub(crate) instructions: Option<String>,
}

/// The tools that a session is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Offer {
    /// The tools themselves.
    Direct,
    /// The search tool.
    Search(Arc<Snapshot>),
}

/// A request that needs a decision.
pub(crate) struct Question<'a> {
    pub(crate) session: &'a SessionId,
    /// Another model has another context and no cached request, so it gets a decision of its own.
    pub(crate) model: String,
    /// The limit in bytes, if there is one.
    pub(crate) limit: Option<u64>,
    /// The size of the visible tools in bytes.
    pub(crate) size: u64,
    /// Whether the session has used the search tool before.
    pub(crate) has_searched: bool,
}

/// The decisions of the sessions that were used last, the newest at the end.
#[derive(Default)]
pub(crate) struct Decisions(Mutex<VecDeque<Decision>>);

/// The decision for a session and a model.
struct Decision {
    session: SessionId,
    model: String,
    offer: Offer,
    /// Whether the list of a search is not stored yet.
    is_new: bool,
}

impl Budget {
    /// Reads the key of a configuration, which has been checked.
    pub(crate) fn read(configured: &Value) -> Self {
        match configured {
            Value::Bool(false) => Self::Unlimited,
            value => value.as_u64().map_or(Self::Usual, Self::Tokens),
        }
    }

    /// Returns the limit for schemas in bytes. `context` is the model's context in tokens, 0 if it is unknown.
    pub(crate) fn bytes(self, context: u64) -> Option<u64> {
        let tokens = match self {
            Self::Unlimited => return None,
            Self::Tokens(tokens) => tokens,
            Self::Usual if context == 0 => DEFAULT_TOKENS,
            Self::Usual => DEFAULT_TOKENS.min(context / CONTEXT_PARTS),
        };
        Some(tokens.saturating_mul(TOKEN_BYTES))
    }
}

impl Decisions {
    /// Decides for a request. `snapshot` is called if the session begins to use the search tool.
    pub(crate) fn decide(&self, question: Question<'_>, snapshot: impl FnOnce() -> Snapshot) -> Offer {
        let Question { session, model, limit, size, has_searched } = question;
        let Some(limit) = limit else { return Offer::Direct };
        let mut kept = self.lock();
        let at = kept.iter().position(|known| known.is_of(session, &model));
        let known = at.and_then(|at| kept.remove(at));
        let must_search = match known.as_ref().map(|known| &known.offer) {
            Some(Offer::Search(_)) => false,
            Some(Offer::Direct) => size > limit.saturating_mul(GROWTH),
            None => size > limit || has_searched,
        };
        let decision = |offer, is_new| Decision { session: session.clone(), model, offer, is_new };
        let decision = match known {
            _ if must_search && size > 0 => decision(Offer::Search(Arc::new(snapshot())), true),
            Some(known) => known,
            // Servers that are not connected yet decide nothing.
            None if size == 0 => return Offer::Direct,
            None => decision(Offer::Direct, false),
        };
        let offer = decision.offer.clone();
        push(&mut kept, decision);
        offer
    }

    /// Reports whether a session has a decision.
    pub(crate) fn has(&self, session: &SessionId, model: &str) -> bool {
        self.lock().iter().any(|known| known.is_of(session, model))
    }

    /// Decides as an earlier process did.
    pub(crate) fn restore(&self, session: &SessionId, model: &str, snapshot: Arc<Snapshot>) {
        let mut kept = self.lock();
        if !kept.iter().any(|known| known.is_of(session, model)) {
            let (session, model) = (session.clone(), model.to_owned());
            push(&mut kept, Decision { session, model, offer: Offer::Search(snapshot), is_new: false });
        }
    }

    /// Returns the list of a session once, if it is not stored yet.
    pub(crate) fn take_new(&self, session: &SessionId, model: &str) -> Option<Arc<Snapshot>> {
        let mut kept = self.lock();
        let known = kept.iter_mut().find(|known| known.is_of(session, model) && known.is_new)?;
        known.is_new = false;
        match &known.offer {
            Offer::Search(snapshot) => Some(snapshot.clone()),
            Offer::Direct => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Decision>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name under which the decision for a model is kept.
pub(crate) fn model_name(provider: &str, model: &str) -> String {
    format!("{provider}/{model}")
}

impl Decision {
    fn is_of(&self, session: &SessionId, model: &str) -> bool {
        self.session == *session && self.model == model
    }
}

/// Adds the newest decision, and forgets the oldest one if there are too many.
fn push(kept: &mut VecDeque<Decision>, decision: Decision) {
    if kept.len() >= MAX_KEPT {
        kept.pop_front();
    }
    kept.push_back(decision);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_default_is_a_tenth_of_a_small_context() {
        for (configured, context, expected) in [
            (json!(null), 200_000, Some(60_000)),
            (json!(null), 1_000_000, Some(60_000)),
            (json!(null), 32_000, Some(9_600)),
            (json!(null), 0, Some(60_000)),
            (json!(50_000), 32_000, Some(150_000)),
            (json!(0), 32_000, Some(0)),
            (json!(false), 32_000, None),
        ] {
            assert_eq!(Budget::read(&configured).bytes(context), expected, "{configured}");
        }
    }

    /// Decides for requests of one session with these sizes and a limit of 100, and returns which of them search.
    fn decided(sizes: &[u64], has_searched: bool) -> Vec<bool> {
        let decisions = Decisions::default();
        let session = SessionId::parse("ses_000000000000aaaaaaaaaaaaaa").unwrap();
        let decide = |size: &u64| {
            let model = "m".to_owned();
            let question = Question { session: &session, model, limit: Some(100), size: *size, has_searched };
            decisions.decide(question, Snapshot::default) != Offer::Direct
        };
        sizes.iter().map(decide).collect()
    }

    #[test]
    fn a_decision_stays() {
        assert_eq!(decided(&[101, 0, 50, 101], false), [true; 4]);
        assert_eq!(decided(&[100, 150, 0, 200], false), [false; 4]);
        assert_eq!(decided(&[100, 201, 100], false), [false, true, true]);
        assert_eq!(decided(&[0, 150], false), [false, true]);
        assert_eq!(decided(&[10, 0], true), [true, true]);
    }

    #[test]
    fn the_catalogue_of_a_session_is_taken_once() {
        let decisions = Decisions::default();
        let sessions: Vec<_> = (0..300)
            .map(|n| SessionId::parse(&format!("ses_000000000{n:03}aaaaaaaaaaaaaa")).unwrap())
            .collect();
        let decide = |session: &SessionId, text: &str, model: &str| {
            let question =
                Question { session, model: model.to_owned(), limit: Some(0), size: 1, has_searched: false };
            let snapshot = || Snapshot { instructions: Some(text.to_owned()), ..Snapshot::default() };
            match decisions.decide(question, snapshot) {
                Offer::Search(snapshot) => snapshot.instructions.clone().unwrap(),
                Offer::Direct => panic!("no search"),
            }
        };
        assert_eq!(decide(&sessions[0], "first", "m"), "first");
        assert_eq!(decide(&sessions[0], "second", "m"), "first");
        assert_eq!(decide(&sessions[0], "other", "n"), "other");
        for session in &sessions[1..] {
            decide(session, "x", "m");
        }
        assert_eq!(decide(&sessions[0], "again", "m"), "again");
        assert_eq!(decisions.0.lock().unwrap().len(), MAX_KEPT);
    }
}
