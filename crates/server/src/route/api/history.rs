//! What happened in a session, read at once or as a stream.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::RangeInclusive;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};
use bytes::Bytes;
use codewright_engine::{Published, Subscription};
use codewright_proto::{Envelope, Event, MessageId, SessionId};
use futures_util::stream;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

use super::known;
use crate::Error;
use crate::extract::{One, Params};
use crate::route::event::last_event;
use crate::serve::Closing;
use crate::state::App;
use crate::stream::{beating, event_stream};
use crate::v2::event::{Fold, Told};
use crate::v2::{LOOK_BACK, PAGE_BYTES, PAGE_EVENTS, begin, learn};

/// How many events are told when the client does not say, and at most.
const DEFAULT_EVENTS: usize = 50;
const MAX_EVENTS: u64 = 100;
/// How many events are read at a time where a prompt stands: it has few.
const PROMPT_EVENTS: usize = 16;
/// The greatest number of an event: they are stored with a sign.
const MAX_SEQ: u64 = i64::MAX as u64;

/// A whole number of a query.
pub(super) fn number(
    key: &str,
    text: Option<&str>,
    range: RangeInclusive<u64>,
) -> Result<Option<u64>, Error> {
    let Some(text) = text else { return Ok(None) };
    let shown: String = text.chars().take(40).collect();
    let number = text.trim().parse::<u64>().ok().filter(|number| range.contains(number));
    number.map(Some).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        Error::query(format!("Expected a whole number from {least} to {most}, got {shown}\n  at [\"{key}\"]"))
    })
}

/// Reads the log of a session in order and tells it.
struct Reader {
    app: App,
    session: SessionId,
    fold: Fold,
    /// The next event of the log; before the first is read, it is not known how far back it is.
    next_seq: Option<u64>,
    /// The last event that the client knows of.
    after: Option<u64>,
    /// What was read and is not folded yet.
    page: VecDeque<Envelope>,
    told: VecDeque<Told>,
}

impl Reader {
    fn new(app: App, session: SessionId, after: Option<u64>) -> Self {
        let next_seq = after.is_none().then_some(0);
        let (page, told) = (VecDeque::new(), VecDeque::new());
        Self { app, session, fold: Fold::default(), next_seq, after, page, told }
    }

    /// Where the log is read on.
    async fn place(&self) -> Result<u64, Error> {
        let (known, after) = (self.next_seq, self.after.unwrap_or(0));
        match known {
            Some(seq) => Ok(seq),
            None => Ok(self.app.engine.seq_before(&self.session, after.saturating_add(1), LOOK_BACK).await?),
        }
    }

    /// The next thing to tell; none at the end of the log.
    async fn next(&mut self) -> Result<Option<Told>, Error> {
        loop {
            if let Some(told) = self.told.pop_front() {
                return Ok(Some(told));
            }
            // One event after the other, so that what waits to be told is what one event tells.
            let mut told = Vec::new();
            let next = self.read().await?;
            match &next {
                Some(envelope) => {
                    learn(&self.app.engine, &mut self.fold, envelope).await;
                    self.fold.push(envelope, &mut told);
                }
                None => self.fold.settle(self.session.as_str(), &mut told),
            }
            let is_end = next.is_none() && told.is_empty();
            let after = self.after;
            self.told.extend(told.into_iter().filter(|told| after.is_none_or(|after| told.seq > after)));
            if is_end {
                return Ok(None);
            }
        }
    }

    /// The next event of the log; none at its end.
    async fn read(&mut self) -> Result<Option<Envelope>, Error> {
        if self.page.is_empty() {
            let from_seq = self.place().await?;
            if self.next_seq.is_none() {
                begin(&self.app.engine, &mut self.fold, (&self.session, from_seq)).await;
            }
            self.next_seq = Some(from_seq);
            self.page = self.app.engine.events_of(&self.session, from_seq, PAGE_EVENTS).await?.into();
        }
        let next = self.page.pop_front();
        if let Some(envelope) = &next {
            self.next_seq = Some(envelope.seq + 1);
        }
        Ok(next)
    }
}

/// How a prompt was taken in, by what the log says of it where it was stored.
pub(super) async fn admission(app: &App, session: &SessionId, message: &MessageId) -> Result<Value, Error> {
    let missing = || Error::MissingMessage { session: session.clone(), message: message.clone() };
    let from_seq = app.engine.first_seq(session, message).await?.ok_or_else(missing)?;
    let mut told = prompt_at(app, session, (message, from_seq)).await?.into_iter();
    // The second is told right behind.
    let found = (told.next().filter(|told| told.admitted.as_ref() == Some(message)), told.next());
    let (Some(admitted), prompted) = found else { return Err(missing()) };
    let data = &admitted.value["data"];
    let mut shown = json!({
        "admittedSeq": admitted.seq,
        "id": message,
        "sessionID": session,
        "prompt": data["prompt"],
        "delivery": data["delivery"],
        "timeCreated": data["timestamp"],
    });
    if let Some(prompted) = prompted {
        shown["promotedSeq"] = json!(prompted.seq);
    }
    Ok(shown)
}

/// What the log tells of a prompt at its place; nothing behind it is read.
async fn prompt_at(
    app: &App,
    session: &SessionId,
    (message, from_seq): (&MessageId, u64),
) -> Result<Vec<Told>, Error> {
    let (mut fold, mut told, mut next_seq) = (Fold::default(), Vec::new(), from_seq);
    loop {
        let page = app.engine.events_of(session, next_seq, PROMPT_EVENTS).await?;
        for envelope in &page {
            fold.push(envelope, &mut told);
            if fold.unsettled().is_none_or(|(unsettled, _)| unsettled != message) {
                return Ok(told);
            }
        }
        let Some(last) = page.last() else { break };
        next_seq = last.seq + 1;
    }
    fold.settle(session.as_str(), &mut told);
    Ok(told)
}

#[derive(Deserialize)]
pub(in crate::route) struct Page {
    limit: Option<String>,
    after: Option<String>,
}

/// What happened behind an event, oldest first.
pub(in crate::route) async fn read(
    State(app): State<App>,
    One(id): One<SessionId>,
    Params(page): Params<Page>,
) -> Result<Json<History>, Error> {
    known(&app, &id).await?;
    let limit = number("limit", page.limit.as_deref(), 1..=MAX_EVENTS)?;
    let limit = limit.map_or(DEFAULT_EVENTS, |limit| limit as usize);
    let after = number("after", page.after.as_deref(), 0..=MAX_SEQ)?;
    let mut reader = Reader::new(app, id, after);
    let mut page = Texts::default();
    while !page.is_full(limit) {
        let Some(told) = reader.next().await? else { break };
        page.push(&told.value)?;
    }
    let has_more = page.is_full(limit) && reader.next().await?.is_some();
    Ok(Json(History { data: page.0, has_more }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::route) struct History {
    data: Vec<Box<RawValue>>,
    has_more: bool,
}

/// The values of a page as they are sent, and how many bytes they have.
#[derive(Default)]
pub(super) struct Texts(pub(super) Vec<Box<RawValue>>, usize);

impl Texts {
    pub(super) fn push(&mut self, value: &Value) -> Result<(), Error> {
        let text = to_raw_value(value).map_err(|_| Error::Panic)?;
        self.1 += text.get().len();
        self.0.push(text);
        Ok(())
    }

    pub(super) fn is_full(&self, limit: usize) -> bool {
        self.0.len() >= limit || self.1 >= PAGE_BYTES
    }
}

#[derive(Deserialize)]
pub(in crate::route) struct Behind {
    after: Option<String>,
}

/// What happened and what happens, without an end.
pub(in crate::route) async fn follow(
    State(app): State<App>,
    One(id): One<SessionId>,
    Params(behind): Params<Behind>,
    closing: Option<Extension<Closing>>,
    headers: HeaderMap,
) -> Result<Response, Error> {
    known(&app, &id).await?;
    let named = number("after", behind.after.as_deref(), 0..=MAX_SEQ)?;
    // Whoever comes back says what it has seen last, whatever it asked for at first.
    let after = last_event(&headers)?.or(named);
    let follower = Follower {
        subscription: app.engine.subscribe(),
        heartbeat: beating(&app),
        reader: Reader::new(app, id, after),
        closing: Closing::token(closing),
    };
    let frames = stream::unfold(follower, |mut follower| async move {
        let frame = follower.next().await?;
        Some((Ok::<_, Infallible>(frame), follower))
    });
    Ok(event_stream(Body::from_stream(frames)))
}

/// One connection that hears of a session. The feed only says that there is something new: what it
/// is is read from the log, which holds what belongs together all or not at all.
struct Follower {
    reader: Reader,
    subscription: Subscription,
    heartbeat: Interval,
    closing: CancellationToken,
}

impl Follower {
    /// The next frame; `None` when the stream ends, which a reader takes as a call to come again.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.closing.is_cancelled() {
                return None;
            }
            if let Some(Told { seq, value, .. }) = self.reader.next().await.ok()? {
                return Some(Bytes::from(format!("id: {seq}\ndata: {value}\n\n")));
            }
            tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                _ = self.heartbeat.tick() => return Some(Bytes::from_static(b": heartbeat\n\n")),
                is_there = news(&mut self.subscription, &self.reader) => is_there?,
            }
        }
    }
}

/// Waits until the log of a session has more than was read; `None` when the feed ends or the session is gone.
async fn news(subscription: &mut Subscription, reader: &Reader) -> Option<()> {
    loop {
        let Published::Event(envelope) = subscription.next().await.ok()? else { continue };
        if *envelope.event.session_id() != reader.session
            || reader.next_seq.is_some_and(|next_seq| envelope.seq < next_seq)
        {
            continue;
        }
        return (!matches!(envelope.event, Event::SessionDeleted { .. })).then_some(());
    }
}
