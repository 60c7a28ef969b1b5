//! The v2 events of the feed: derives them from all sessions at once, for `GET /api/event`.

use std::collections::HashMap;

use codewright_engine::{Engine, Published};
use codewright_proto::{Envelope, Event, EventId, MessageId, SessionId, Signal};
use serde_json::{Value, json};

use super::event::{Fold, NumberedEvent};
use super::message::merge;
use super::{LOOK_BACK, PAGE_EVENTS, load_message, load_revert, pending};

/// The maximum number of tracked sessions. When it is reached, the least recently used one is evicted.
const MAX_SESSIONS: usize = 128;
/// The maximum size of the state of all sessions except the current one: incomplete prompts and summaries. When it is
/// reached, the least recently used sessions are evicted.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The state of the sessions on one stream, with the position of the last event of each.
#[derive(Default)]
pub(crate) struct Sessions(HashMap<SessionId, (Fold, u64)>);

impl Sessions {
    /// Evicts the least recently used sessions until there is room for the session of `published`. Returns their pending
    /// events.
    pub(crate) fn evict(&mut self, published: &Published) -> Vec<(SessionId, Value)> {
        let mut all = Vec::new();
        let Published::Event(envelope) = published else { return all };
        loop {
            let others = || self.0.iter().filter(|(id, _)| *id != envelope.event.session_id());
            let bytes: usize = others().map(|(_, (fold, _))| fold.bytes()).sum();
            if others().count() < MAX_SESSIONS && bytes <= MAX_BYTES {
                return all;
            }
            let oldest = others().min_by_key(|(_, (_, position))| *position).map(|(id, _)| id.clone());
            let Some((oldest, (mut fold, _))) = oldest.and_then(|id| self.0.remove_entry(&id)) else {
                return all;
            };
            // The events of a prompt are stored and published together, so an event of another session means that the
            // prompt is complete.
            let mut events = Vec::new();
            fold.finish_prompt(oldest.as_str(), &mut events);
            all.extend(values(events).into_iter().map(|event| (oldest.clone(), event)));
        }
    }

    /// Returns the v2 events of a notice; `now_ms` is the current time.
    pub(crate) async fn events(&mut self, engine: &Engine, published: &Published, now_ms: u64) -> Vec<Value> {
        match published {
            Published::Event(envelope) => {
                let mut events = self.of_event(engine, envelope).await;
                let request = pending::of_event(&envelope.event);
                events.extend(request.map(|(kind, data)| unnumbered(&envelope.id, kind, data)));
                events
            }
            Published::Signal { id, signal, .. } => {
                let mut events = match signal.session_id() {
                    Some(session) if self.0.contains_key(session) => {
                        let mut events = self.finish_prompt_of(engine, session).await;
                        events.extend(self.delta(id, signal, now_ms));
                        events
                    }
                    Some(_) | None => Vec::new(),
                };
                events.extend(pending::of_signal(signal).map(|(kind, data)| unnumbered(id, kind, data)));
                events
            }
        }
    }

    async fn of_event(&mut self, engine: &Engine, envelope: &Envelope) -> Vec<Value> {
        let session = envelope.event.session_id();
        let mut events = Vec::new();
        if matches!(envelope.event, Event::SessionDeleted { .. }) {
            self.0.remove(session);
            return Vec::new();
        }
        if !self.0.contains_key(session) {
            self.0.insert(session.clone(), (fold_log(engine, envelope).await, envelope.position));
        }
        if let Some((fold, position)) = self.0.get_mut(session) {
            *position = envelope.position;
            load_message(engine, fold, envelope).await;
            fold.push(envelope, &mut events);
        }
        values(events)
    }

    fn delta(&self, id: &EventId, signal: &Signal, now_ms: u64) -> Option<Value> {
        let Signal::PartDelta { session_id, message_id, part_id, delta, .. } = signal else { return None };
        let (kind, more) = self.0.get(session_id)?.0.delta(message_id, part_id, delta)?;
        let mut data = json!({"timestamp": now_ms, "sessionID": session_id});
        merge(&mut data, more);
        Some(json!({"id": id, "type": format!("session.next.{kind}"), "data": data}))
    }

    /// Returns the events of a session's last prompt, if the prompt is complete.
    async fn finish_prompt_of(&mut self, engine: &Engine, session: &SessionId) -> Vec<Value> {
        let Some((fold, _)) = self.0.get_mut(session) else { return Vec::new() };
        let Some((message, last)) = fold.pending_prompt() else { return Vec::new() };
        // The feed may not have delivered all events of the prompt yet; the log has all of them.
        let Ok(next) = engine.events().of_session(session, last + 1, 1).await else { return Vec::new() };
        if next.first().is_some_and(|next| is_part_of(next, message)) {
            return Vec::new();
        }
        let mut events = Vec::new();
        fold.finish_prompt(session.as_str(), &mut events);
        values(events)
    }

    /// Returns the events of all complete prompts.
    pub(crate) async fn finish_prompts(&mut self, engine: &Engine) -> Vec<(SessionId, Value)> {
        let pending = self.0.iter().filter(|(_, (fold, _))| fold.pending_prompt().is_some());
        let pending: Vec<_> = pending.map(|(session, _)| session.clone()).collect();
        let mut all = Vec::new();
        for session in pending {
            let events = self.finish_prompt_of(engine, &session).await;
            all.extend(events.into_iter().map(|event| (session.clone(), event)));
        }
        all
    }
}

/// Returns an event without a sequence number.
fn unnumbered(id: &EventId, kind: &str, data: Value) -> Value {
    json!({"id": id, "type": kind, "data": data})
}

fn values(events: Vec<NumberedEvent>) -> Vec<Value> {
    events.into_iter().map(|event| event.value).collect()
}

/// Returns whether an event is a part of a prompt.
fn is_part_of(envelope: &Envelope, prompt: &MessageId) -> bool {
    matches!(&envelope.event, Event::PartUpdated { part, .. } if part.message_id == *prompt)
}

/// Folds the log of a session up to an event, starting as far back as necessary. Events that cannot be read are skipped.
async fn fold_log(engine: &Engine, next: &Envelope) -> Fold {
    let (session, until) = (next.event.session_id(), next.seq);
    let (mut fold, mut events) = (Fold::default(), Vec::new());
    let mut at = engine.events().seq_before(session, until, LOOK_BACK).await.unwrap_or(until);
    load_revert(engine, &mut fold, session, at).await;
    while at < until {
        let limit = PAGE_EVENTS.min((until - at) as usize);
        let Ok(page) = engine.events().of_session(session, at, limit).await else { break };
        let Some(last) = page.last() else { break };
        at = last.seq + 1;
        for envelope in page.iter().take_while(|envelope| envelope.seq < until) {
            load_message(engine, &mut fold, envelope).await;
            fold.push(envelope, &mut events);
            events.clear();
        }
    }
    // A complete prompt was published before this stream tracked the session.
    if fold.pending_prompt().is_some_and(|(message, _)| !is_part_of(next, message)) {
        fold.finish_prompt(session.as_str(), &mut events);
    }
    fold
}
