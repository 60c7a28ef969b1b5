//! What the feed tells of sessions, as newer events.

use std::collections::HashMap;

use codewright_engine::{Engine, Published};
use codewright_proto::{Envelope, Event, EventId, MessageId, PartId, SessionId, Signal};
use serde_json::{Value, json};

use super::event::{Fold, Told};
use super::message::merge;
use super::{LOOK_BACK, PAGE_EVENTS, begin, learn, waiting};

/// Sessions whose logs are folded at once; beyond, the one that was heard of longest ago is forgotten.
const MAX_SESSIONS: usize = 128;
/// How large what is known of them is together, beside the session that was heard of last: prompts that are not told
/// yet and summaries that are being written. Beyond, those heard of longest ago are told of and forgotten.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// What one reader of the feed knows of the sessions that it hears of, and the position of the last event of each.
#[derive(Default)]
pub(crate) struct Sessions(HashMap<SessionId, (Fold, u64)>);

impl Sessions {
    /// Forgets the sessions heard of longest ago until there is room for one that is heard of now; what was not
    /// told of them yet.
    pub(crate) fn make_room(&mut self, published: &Published) -> Vec<(SessionId, Value)> {
        let mut all = Vec::new();
        let Published::Event(envelope) = published else { return all };
        loop {
            let others = || self.0.iter().filter(|(known, _)| *known != envelope.event.session_id());
            let bytes: usize = others().map(|(_, (fold, _))| fold.bytes()).sum();
            if others().count() < MAX_SESSIONS && bytes <= MAX_BYTES {
                return all;
            }
            let oldest = others().min_by_key(|(_, (_, heard))| *heard).map(|(id, _)| id.clone());
            let Some((oldest, (mut fold, _))) = oldest.and_then(|id| self.0.remove_entry(&id)) else {
                return all;
            };
            // What is stored as one is told as one, so what comes of another session ends this one's prompt.
            let mut told = Vec::new();
            fold.settle(oldest.as_str(), &mut told);
            all.extend(values(told).into_iter().map(|told| (oldest.clone(), told)));
        }
    }

    /// What a notice tells; `now_ms` is the time.
    pub(crate) async fn hear(&mut self, engine: &Engine, published: &Published, now_ms: u64) -> Vec<Value> {
        match published {
            Published::Event(envelope) => {
                let mut told = self.event(engine, envelope).await;
                told.extend(waiting::of_event(&envelope.event).map(|what| plain(&envelope.id, what)));
                told
            }
            Published::Signal { id, signal } => {
                let mut told = self.signal(engine, (id, signal, now_ms)).await;
                told.extend(waiting::of_signal(signal).map(|what| plain(id, what)));
                told
            }
        }
    }

    async fn event(&mut self, engine: &Engine, envelope: &Envelope) -> Vec<Value> {
        let session = envelope.event.session_id();
        let mut told = Vec::new();
        if matches!(envelope.event, Event::SessionDeleted { .. }) {
            self.0.remove(session);
            return Vec::new();
        }
        if !self.0.contains_key(session) {
            self.0.insert(session.clone(), (read_to(engine, envelope).await, envelope.position));
        }
        if let Some((fold, heard)) = self.0.get_mut(session) {
            *heard = envelope.position;
            learn(engine, fold, envelope).await;
            fold.push(envelope, &mut told);
        }
        values(told)
    }

    async fn signal(
        &mut self,
        engine: &Engine,
        (id, signal, now_ms): (&EventId, &Signal, u64),
    ) -> Vec<Value> {
        let Some(session) = signal.session_id().filter(|session| self.0.contains_key(session)).cloned()
        else {
            return Vec::new();
        };
        let mut values = self.settle(engine, &session).await;
        if let Signal::PartDelta { message_id, part_id, delta, .. } = signal {
            values.extend(self.delta((&session, message_id, part_id), delta, (id, now_ms)));
        }
        values
    }

    fn delta(
        &self,
        (session, message, part): (&SessionId, &MessageId, &PartId),
        text: &str,
        (id, now_ms): (&EventId, u64),
    ) -> Option<Value> {
        let (kind, more) = self.0.get(session)?.0.delta(message, part, text)?;
        let mut data = json!({"timestamp": now_ms, "sessionID": session});
        merge(&mut data, more);
        Some(json!({"id": id, "type": format!("session.next.{kind}"), "data": data}))
    }

    /// Tells of a session's last prompt, if all of it has been heard.
    async fn settle(&mut self, engine: &Engine, session: &SessionId) -> Vec<Value> {
        let Some((fold, _)) = self.0.get_mut(session) else { return Vec::new() };
        let Some((message, last)) = fold.unsettled() else { return Vec::new() };
        // The feed may be in the middle of what was stored as one; the log is not.
        let Ok(next) = engine.events_of(session, last + 1, 1).await else { return Vec::new() };
        if next.first().is_some_and(|next| goes_on(next, message)) {
            return Vec::new();
        }
        let mut told = Vec::new();
        fold.settle(session.as_str(), &mut told);
        values(told)
    }

    /// The same for all sessions.
    pub(crate) async fn settle_all(&mut self, engine: &Engine) -> Vec<(SessionId, Value)> {
        let unsettled = self.0.iter().filter(|(_, (fold, _))| fold.unsettled().is_some());
        let unsettled: Vec<_> = unsettled.map(|(session, _)| session.clone()).collect();
        let mut all = Vec::new();
        for session in unsettled {
            all.extend(self.settle(engine, &session).await.into_iter().map(|told| (session.clone(), told)));
        }
        all
    }
}

/// An event that is not numbered.
fn plain(id: &EventId, (kind, data): (&str, Value)) -> Value {
    json!({"id": id, "type": kind, "data": data})
}

fn values(told: Vec<Told>) -> Vec<Value> {
    told.into_iter().map(|told| told.value).collect()
}

/// Whether an event belongs to the prompt of a message.
fn goes_on(envelope: &Envelope, prompt: &MessageId) -> bool {
    matches!(&envelope.event, Event::PartUpdated { part, .. } if part.message_id == *prompt)
}

/// A session's log up to an event, as far back as it matters. What cannot be read is not known.
async fn read_to(engine: &Engine, news: &Envelope) -> Fold {
    let (session, until) = (news.event.session_id(), news.seq);
    let (mut fold, mut told) = (Fold::default(), Vec::new());
    let mut at = engine.seq_before(session, until, LOOK_BACK).await.unwrap_or(until);
    begin(engine, &mut fold, (session, at)).await;
    while at < until {
        let limit = PAGE_EVENTS.min((until - at) as usize);
        let Ok(page) = engine.events_of(session, at, limit).await else { break };
        let Some(last) = page.last() else { break };
        at = last.seq + 1;
        for envelope in page.iter().take_while(|envelope| envelope.seq < until) {
            learn(engine, &mut fold, envelope).await;
            fold.push(envelope, &mut told);
            told.clear();
        }
    }
    // What is complete was told to whoever listened then.
    if fold.unsettled().is_some_and(|(message, _)| !goes_on(news, message)) {
        fold.settle(session.as_str(), &mut told);
    }
    fold
}
