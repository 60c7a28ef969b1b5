//! A stream of events, as one reader sees it.
//!
//! Nothing runs on a stream's behalf: the connection asks for the next frame
//! when it can send one. A reader that does not keep up therefore holds nothing
//! here; what the feed gave up on it is read from the log. A reader that names
//! the last event it has seen misses none.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use codewright_engine::{Following, Published, Subscription};
use codewright_proto::{Envelope, SessionId, Signal};
use futures_util::stream;
use http::{HeaderValue, header};
use serde_json::Value;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use crate::directories::Home;
use crate::frame;
use crate::state::App;
use crate::v2::feed::Sessions;

/// How many events are read from the log at a time.
const PAGE_EVENTS: usize = 128;

/// Which notices a reader wants.
pub(crate) enum Scope {
    /// All, each with its directory.
    Global,
    /// The same in the form of the newer routes.
    V2,
    /// Those of one directory, or of one session in it.
    Directory {
        /// The directory.
        directory: String,
        /// The session.
        session: Option<SessionId>,
    },
}

/// One reader's place.
struct Reader {
    app: App,
    scope: Scope,
    subscription: Subscription,
    _following: Following,
    /// While the log is being read: the last event that was read, or that the reader named.
    replay: Option<u64>,
    /// The last event from the log or the feed. What the reader named does not count: it may
    /// come from a log that is no more.
    seen: u64,
    page: VecDeque<Arc<Envelope>>,
    heartbeat: Interval,
    closing: CancellationToken,
    greeted: bool,
    /// What the newer events are made with.
    sessions: Sessions,
}

/// Opens a stream: after this, nothing that happens is missed.
pub(crate) async fn open(app: App, scope: Scope, after: Option<u64>, closing: CancellationToken) -> Response {
    let heartbeat = beating(&app);
    let reader = Reader {
        subscription: app.engine.subscribe(),
        _following: app.engine.follow().await,
        app,
        scope,
        replay: after,
        seen: 0,
        page: VecDeque::new(),
        heartbeat,
        closing,
        greeted: false,
        sessions: Sessions::default(),
    };
    let frames = stream::unfold(reader, |mut reader| async move {
        let frame = reader.next().await?;
        Some((Ok::<_, Infallible>(frame), reader))
    });
    event_stream(Body::from_stream(frames))
}

/// What says when a stream has to show that it lives.
pub(crate) fn beating(app: &App) -> Interval {
    let every = app.options.heartbeat;
    let mut heartbeat = interval_at(Instant::now() + every, every);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeat
}

/// A stream of events as an answer.
pub(crate) fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Reader {
    /// The next frame; `None` when the stream ends, which a reader takes as a call to come again.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.greeted, true) {
            return Some(self.own(Signal::ServerConnected {}));
        }
        loop {
            let published = match self.replay {
                Some(after) if !self.closing.is_cancelled() => match self.logged(after).await? {
                    Some(envelope) => Published::Event(envelope),
                    None => {
                        self.replay = None;
                        continue;
                    }
                },
                _ => tokio::select! {
                    biased;
                    () = self.closing.cancelled() => return None,
                    _ = self.heartbeat.tick() => return Some(self.beat().await),
                    published = self.subscription.next() => published.ok()?,
                },
            };
            if let Some(position) = published.position() {
                // What the log has told comes again from the feed, which began before it.
                if position <= self.seen {
                    continue;
                }
                self.seen = position;
            }
            if let Some(frame) = self.frame(&published).await {
                return Some(frame);
            }
        }
    }

    /// The next event of the log; `Some(None)` at its end, `None` when it cannot be read.
    async fn logged(&mut self, after: u64) -> Option<Option<Arc<Envelope>>> {
        if self.page.is_empty() {
            // Ends the stream: the reader comes back and continues.
            let events = self.app.engine.events_after(after, PAGE_EVENTS).await.ok()?;
            self.page = events.into_iter().map(Arc::new).collect();
        }
        let next = self.page.pop_front();
        if let Some(envelope) = &next {
            self.replay = Some(envelope.position);
        }
        Some(next)
    }

    /// The frame of a notice, if this reader wants it.
    async fn frame(&mut self, published: &Published) -> Option<Bytes> {
        let home = self.home(published).await;
        if matches!(self.scope, Scope::V2) {
            return self.v2(published, home.as_deref()).await;
        }
        match &self.scope {
            Scope::Global => {
                // An event whose session is gone has no directory, and nobody left to care.
                if home.is_none() && published.position().is_some() {
                    return None;
                }
                let payload = self.app.payloads.of(published);
                Some(match published {
                    Published::Event(envelope) => frame::twice(&payload, envelope, home.as_deref()),
                    Published::Signal { signal, .. } => match place(signal) {
                        Some(directory) => frame::at(&payload, directory),
                        None => frame::global(&payload, home.as_deref()),
                    },
                })
            }
            // It tells more of a notice than one thing.
            Scope::V2 => None,
            Scope::Directory { directory, session } => {
                let (about, here) = match published {
                    Published::Event(envelope) => (Some(envelope.event.session_id()), false),
                    Published::Signal { signal, .. } => (signal.session_id(), is_here(signal, directory)),
                };
                let here = here || home.is_some_and(|home| home.directory == *directory);
                let asked_for = session.as_ref().is_none_or(|session| about == Some(session));
                (here && asked_for)
                    .then(|| frame::local(&self.app.payloads.of(published), published.position()))
            }
        }
    }

    /// The frames of a notice as the newer routes tell it: the notice itself, and what it says of a session.
    async fn v2(&mut self, published: &Published, home: Option<&Home>) -> Option<Bytes> {
        let directory = match published {
            Published::Event(_) => None,
            Published::Signal { signal, .. } => place(signal),
        };
        let directory = directory.or(home.map(|home| home.directory.as_str()));
        let forgotten = self.sessions.make_room(published);
        let mut frames = self.of_others(forgotten).await;
        let told = self.sessions.hear(&self.app.engine, published, self.app.clock.now_ms()).await;
        frames.extend(told.into_iter().map(|told| frame::told(told, directory)));
        let is_shown = !matches!(published, Published::Signal { signal, .. } if is_older_only(signal));
        if is_shown {
            frames.push(frame::v2(&self.app.payloads.of(published), published, directory));
        }
        (!frames.is_empty()).then(|| frames.concat().into())
    }

    /// The frames of newer events, each about a session of its own.
    async fn of_others(&self, told: Vec<(SessionId, Value)>) -> Vec<Bytes> {
        let mut frames = Vec::new();
        for (session, told) in told {
            let home = self.app.directories.of(&self.app.engine, &session).await;
            frames.push(frame::told(told, home.as_ref().map(|home| home.directory.as_str())));
        }
        frames
    }

    async fn home(&self, published: &Published) -> Option<Arc<Home>> {
        let Self { app, .. } = self;
        match published {
            Published::Event(envelope) => app.directories.of_event(&app.engine, &envelope.event).await,
            Published::Signal { signal, .. } => app.directories.of(&app.engine, signal.session_id()?).await,
        }
    }

    /// What shows a reader that the stream lives.
    async fn beat(&mut self) -> Bytes {
        match self.scope {
            Scope::V2 => {
                let told = self.sessions.settle_all(&self.app.engine).await;
                let mut frames = self.of_others(told).await;
                frames.push(Bytes::from_static(b": heartbeat\n\n"));
                frames.concat().into()
            }
            Scope::Global | Scope::Directory { .. } => self.own(Signal::ServerHeartbeat {}),
        }
    }

    fn own(&self, signal: Signal) -> Bytes {
        let payload = frame::own(&self.app.ids, signal);
        match self.scope {
            Scope::V2 => frame::renamed(&payload, ""),
            Scope::Global => frame::global(&payload, None),
            Scope::Directory { .. } => frame::local(&payload, None),
        }
    }
}

/// Whether the newer routes have no such event.
fn is_older_only(signal: &Signal) -> bool {
    matches!(signal, Signal::InstanceDisposed { .. } | Signal::ServerHeartbeat {})
}

/// The directory that a signal was meant for, if it names one.
fn place(signal: &Signal) -> Option<&str> {
    match signal {
        Signal::InstanceDisposed { directory }
        | Signal::TuiPromptAppend { directory, .. }
        | Signal::TuiCommandExecute { directory, .. }
        | Signal::TuiToastShow { directory, .. }
        | Signal::FileEdited { directory, .. }
        | Signal::FileWatcherUpdated { directory, .. }
        | Signal::VcsBranchUpdated { directory, .. }
        | Signal::LspUpdated { directory }
        | Signal::McpToolsChanged { directory, .. } => Some(directory),
        Signal::PartDelta { .. }
        | Signal::SessionStatus { .. }
        | Signal::SessionIdle { .. }
        | Signal::SessionError { .. }
        | Signal::SessionDiff { .. }
        | Signal::SessionCompacted { .. }
        | Signal::ProjectUpdated(_)
        | Signal::GlobalDisposed {}
        | Signal::PtyCreated { .. }
        | Signal::PtyUpdated { .. }
        | Signal::PtyExited { .. }
        | Signal::PtyDeleted { .. }
        | Signal::TuiSessionSelect { .. }
        | Signal::CommandExecuted { .. }
        | Signal::QuestionAsked(_)
        | Signal::QuestionReplied { .. }
        | Signal::QuestionRejected { .. }
        | Signal::ServerConnected {}
        | Signal::ServerHeartbeat {} => None,
    }
}

/// Whether a signal that speaks of no session concerns a directory.
fn is_here(signal: &Signal, directory: &str) -> bool {
    match signal {
        Signal::InstanceDisposed { directory: at }
        | Signal::TuiPromptAppend { directory: at, .. }
        | Signal::TuiCommandExecute { directory: at, .. }
        | Signal::TuiToastShow { directory: at, .. }
        | Signal::FileEdited { directory: at, .. }
        | Signal::FileWatcherUpdated { directory: at, .. }
        | Signal::VcsBranchUpdated { directory: at, .. }
        | Signal::LspUpdated { directory: at }
        | Signal::McpToolsChanged { directory: at, .. } => at == directory,
        Signal::SessionError { session_id: None, .. }
        | Signal::GlobalDisposed {}
        | Signal::PtyCreated { .. }
        | Signal::PtyUpdated { .. }
        | Signal::PtyExited { .. }
        | Signal::PtyDeleted { .. } => true,
        Signal::SessionError { .. }
        | Signal::PartDelta { .. }
        | Signal::SessionStatus { .. }
        | Signal::SessionIdle { .. }
        | Signal::SessionCompacted { .. }
        | Signal::CommandExecuted { .. }
        | Signal::SessionDiff { .. }
        | Signal::TuiSessionSelect { .. }
        | Signal::QuestionAsked(_)
        | Signal::QuestionReplied { .. }
        | Signal::QuestionRejected { .. }
        | Signal::ProjectUpdated(_)
        | Signal::ServerConnected {}
        | Signal::ServerHeartbeat {} => false,
    }
}
