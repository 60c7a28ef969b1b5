//! The v2 events of a session, as pages or as a stream.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::RangeInclusive;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use codewright_engine::{Published, Subscription};
use codewright_proto::{Envelope, Event, MessageId, SessionId};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

use super::find_session;
use crate::Error;
use crate::auth::Viewer;
use crate::extract::{One, Params};
use crate::metrics::OpenStream;
use crate::route::event::Listener;
use crate::state::App;
use crate::stream::{event_stream, heartbeat_timer};
use crate::v2::event::{Fold, NumberedEvent};
use crate::v2::{LOOK_BACK, PAGE_BYTES, PAGE_EVENTS, load_message, load_revert};

/// The default and the maximum size of a page of events.
const DEFAULT_EVENTS: usize = 50;
const MAX_EVENTS: u64 = 100;
/// The number of events per read of a prompt, which has few events.
const PROMPT_EVENTS: usize = 16;
/// The maximum sequence number of an event. Sequence numbers are stored as signed integers.
const MAX_SEQ: u64 = i64::MAX as u64;

/// Parses an integer in a query.
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

/// Reads the log of a session in order and converts it to v2 events.
struct Reader {
    app: App,
    session: SessionId,
    fold: Fold,
    /// The sequence number of the next event to read; `None` until the start is determined.
    next_seq: Option<u64>,
    /// The sequence number of the last event that the client has.
    after: Option<u64>,
    /// Log events that were read and not converted yet.
    page: VecDeque<Envelope>,
    events: VecDeque<NumberedEvent>,
}

impl Reader {
    fn new(app: App, session: SessionId, after: Option<u64>) -> Self {
        let next_seq = after.is_none().then_some(0);
        let (page, events) = (VecDeque::new(), VecDeque::new());
        Self { app, session, fold: Fold::default(), next_seq, after, page, events }
    }

    /// Returns the sequence number at which to continue reading the log.
    async fn start(&self) -> Result<u64, Error> {
        let after = self.after.unwrap_or(0);
        match self.next_seq {
            Some(seq) => Ok(seq),
            None => Ok(self
                .app
                .engine
                .events()
                .seq_before(&self.session, after.saturating_add(1), LOOK_BACK)
                .await?),
        }
    }

    /// Returns the next v2 event, or `None` at the end of the log.
    async fn next(&mut self) -> Result<Option<NumberedEvent>, Error> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            // One log event at a time, so that `events` only holds the v2 events of one log event.
            let mut events = Vec::new();
            let next = self.read().await?;
            match &next {
                Some(envelope) => {
                    load_message(&self.app.engine, &mut self.fold, envelope).await;
                    self.fold.push(envelope, &mut events);
                }
                None => self.fold.finish_prompt(self.session.as_str(), &mut events),
            }
            let is_end = next.is_none() && events.is_empty();
            let after = self.after;
            self.events
                .extend(events.into_iter().filter(|event| after.is_none_or(|after| event.seq > after)));
            if is_end {
                return Ok(None);
            }
        }
    }

    /// Returns the next event of the log, or `None` at its end.
    async fn read(&mut self) -> Result<Option<Envelope>, Error> {
        if self.page.is_empty() {
            let from_seq = self.start().await?;
            if self.next_seq.is_none() {
                load_revert(&self.app.engine, &mut self.fold, &self.session, from_seq).await;
            }
            self.next_seq = Some(from_seq);
            self.page =
                self.app.engine.events().of_session(&self.session, from_seq, PAGE_EVENTS).await?.into();
        }
        let next = self.page.pop_front();
        if let Some(envelope) = &next {
            self.next_seq = Some(envelope.seq + 1);
        }
        Ok(next)
    }
}

/// Returns the admission of a prompt, read from the log.
pub(super) async fn admission(app: &App, session: &SessionId, message: &MessageId) -> Result<Value, Error> {
    let missing = || Error::MissingMessage { session: session.clone(), message: message.clone() };
    let from_seq = app.engine.events().first_seq(session, message).await?.ok_or_else(missing)?;
    let mut events = prompt_at(app, session, message, from_seq).await?.into_iter();
    // The event `prompted` directly follows the admission.
    let found = (events.next().filter(|event| event.admitted.as_ref() == Some(message)), events.next());
    let (Some(admitted), prompted) = found else { return Err(missing()) };
    let data = &admitted.value["data"];
    let mut reply = json!({
        "admittedSeq": admitted.seq,
        "id": message,
        "sessionID": session,
        "prompt": data["prompt"],
        "delivery": data["delivery"],
        "timeCreated": data["timestamp"],
    });
    if let Some(prompted) = prompted {
        reply["promotedSeq"] = json!(prompted.seq);
    }
    Ok(reply)
}

/// Returns the v2 events of the prompt whose log events start at `from_seq`. Later events are not read.
async fn prompt_at(
    app: &App,
    session: &SessionId,
    message: &MessageId,
    from_seq: u64,
) -> Result<Vec<NumberedEvent>, Error> {
    let (mut fold, mut events, mut next_seq) = (Fold::default(), Vec::new(), from_seq);
    loop {
        let page = app.engine.events().of_session(session, next_seq, PROMPT_EVENTS).await?;
        for envelope in &page {
            fold.push(envelope, &mut events);
            if fold.pending_prompt().is_none_or(|(pending, _)| pending != message) {
                return Ok(events);
            }
        }
        let Some(last) = page.last() else { break };
        next_seq = last.seq + 1;
    }
    fold.finish_prompt(session.as_str(), &mut events);
    Ok(events)
}

#[derive(Deserialize)]
pub(in crate::route) struct Page {
    limit: Option<String>,
    after: Option<String>,
}

/// Returns the events after a given one, oldest first.
pub(in crate::route) async fn read(
    State(app): State<App>,
    One(id): One<SessionId>,
    Params(page): Params<Page>,
) -> Result<Json<History>, Error> {
    find_session(&app, &id).await?;
    let limit = number("limit", page.limit.as_deref(), 1..=MAX_EVENTS)?;
    let limit = limit.map_or(DEFAULT_EVENTS, |limit| limit as usize);
    let after = number("after", page.after.as_deref(), 0..=MAX_SEQ)?;
    let mut reader = Reader::new(app, id, after);
    let mut page = Texts::default();
    while !page.is_full(limit) {
        let Some(event) = reader.next().await? else { break };
        page.push(&event.value)?;
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

/// The items of a page as JSON, and their size in bytes.
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
pub(in crate::route) struct FollowQuery {
    after: Option<String>,
}

/// Streams the events after a given one, and then new events as they happen.
pub(in crate::route) async fn follow(
    State(app): State<App>,
    One(id): One<SessionId>,
    Params(query): Params<FollowQuery>,
    listener: Listener,
) -> Result<Response, Error> {
    find_session(&app, &id).await?;
    let initial = number("after", query.after.as_deref(), 0..=MAX_SEQ)?;
    // A client that reconnects sends the last event it received, which takes precedence over the initial query.
    let Listener { viewer, closing, after } = listener;
    let after = after.or(initial);
    let follower = Follower {
        _open: OpenStream::new(&app),
        viewer,
        subscription: app.engine.events().subscribe(),
        heartbeat: heartbeat_timer(&app),
        reader: Reader::new(app, id, after),
        closing,
    };
    let frames = stream::unfold(follower, |mut follower| async move {
        let frame = follower.next().await?;
        Some((Ok::<_, Infallible>(frame), follower))
    });
    Ok(event_stream(Body::from_stream(frames)))
}

/// The stream of one session. The feed only signals that there are new events. They are read from the log, because it
/// contains related events either completely or not at all.
struct Follower {
    reader: Reader,
    subscription: Subscription,
    heartbeat: Interval,
    closing: CancellationToken,
    _open: OpenStream,
    viewer: Viewer,
}

impl Follower {
    /// Whether the user may still read the session. It is read again each time, because a share can end.
    async fn may_read(&self) -> bool {
        let Reader { app, session, .. } = &self.reader;
        Viewer::new(self.viewer.who().clone()).sees(&app.engine, session).await
    }

    /// Returns the next frame, or `None` at the end of the stream, after which clients reconnect.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.closing.is_cancelled() || !self.may_read().await {
                return None;
            }
            if let Some(NumberedEvent { seq, value, .. }) = self.reader.next().await.ok()? {
                return Some(Bytes::from(format!("id: {seq}\ndata: {value}\n\n")));
            }
            tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                () = self.viewer.expired() => return None,
                _ = self.heartbeat.tick() => return Some(Bytes::from_static(b": heartbeat\n\n")),
                news = wait_for_events(&mut self.subscription, &self.reader) => news?,
            }
        }
    }
}

/// Waits until the log has unread events. Returns `None` if the feed ends or the session is deleted.
async fn wait_for_events(subscription: &mut Subscription, reader: &Reader) -> Option<()> {
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
