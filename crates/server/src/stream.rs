//! The event stream of one client.
//!
//! A stream has no task: the connection pulls the next frame when it can send one. So a slow client
//! occupies no memory here; events that the feed has dropped are read from the log. A client that
//! sends the id of the last event it received misses none.

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

use crate::auth::Viewer;
use crate::directories::Home;
use crate::frame;
use crate::metrics::OpenStream;
use crate::state::App;
use crate::v2::feed::Sessions;

/// The number of events per read of the log.
const PAGE_EVENTS: usize = 128;

/// The notices that a stream contains.
pub(crate) enum Scope {
    /// All notices, each with its directory.
    Global,
    /// Only the `sync` events of all directories.
    Sync,
    /// All notices in the format of the v2 API.
    V2,
    /// The notices of one directory, or of one session in it.
    Directory {
        /// The directory.
        directory: String,
        /// The session.
        session: Option<SessionId>,
    },
}

/// The names of events that a client requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum EventNames {
    /// The names of OpenCode 1.18.
    #[default]
    Current,
    /// The former names `part.updated` and `part.delta`.
    Legacy,
}

impl EventNames {
    /// Parses the value of a query. Unknown values count as absent.
    pub(crate) fn parse(name: Option<&str>) -> Self {
        if name == Some("legacy") { Self::Legacy } else { Self::Current }
    }
}

/// How a stream starts.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// The position of the last event that the client received.
    pub(crate) after: Option<u64>,
    pub(crate) names: EventNames,
}

/// The state of one stream.
struct Reader {
    app: App,
    scope: Scope,
    names: EventNames,
    subscription: Subscription,
    _following: Following,
    _open: OpenStream,
    /// While the log is being read: the position of the last event that was read or that the client sent.
    replay: Option<u64>,
    /// The position of the last event from the log or the feed. The position that the client sent does not count,
    /// because it may belong to a log that was deleted.
    seen: u64,
    page: VecDeque<Arc<Envelope>>,
    heartbeat: Interval,
    closing: CancellationToken,
    is_greeted: bool,
    /// Whether the client knows that the server stops.
    has_parted: bool,
    /// The state that v2 events are derived from.
    sessions: Sessions,
    viewer: Viewer,
}

/// Opens a stream. It contains all events after this call.
pub(crate) async fn open(
    app: App,
    viewer: Viewer,
    scope: Scope,
    start: Start,
    closing: CancellationToken,
) -> Response {
    let heartbeat = heartbeat_timer(&app);
    let reader = Reader {
        subscription: app.engine.events().subscribe(),
        _following: app.engine.events().follow().await,
        _open: OpenStream::new(&app),
        app,
        scope,
        names: start.names,
        replay: start.after,
        seen: 0,
        page: VecDeque::new(),
        heartbeat,
        closing,
        is_greeted: false,
        has_parted: false,
        sessions: Sessions::default(),
        viewer,
    };
    let frames = stream::unfold(reader, |mut reader| async move {
        let frame = reader.next().await?;
        Some((Ok::<_, Infallible>(frame), reader))
    });
    event_stream(Body::from_stream(frames))
}

/// Returns the timer of heartbeats.
pub(crate) fn heartbeat_timer(app: &App) -> Interval {
    let every = app.options.heartbeat;
    let mut heartbeat = interval_at(Instant::now() + every, every);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeat
}

/// Returns a response with a stream of events.
pub(crate) fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Reader {
    /// Returns the next frame, or `None` at the end of the stream, after which clients reconnect.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.is_greeted, true) {
            return Some(self.own(Signal::ServerConnected {}));
        }
        loop {
            let published = match self.replay {
                Some(after) if !self.closing.is_cancelled() => match self.next_of_log(after).await? {
                    Some(envelope) => Published::Event(envelope),
                    None => {
                        self.replay = None;
                        continue;
                    }
                },
                _ => tokio::select! {
                    biased;
                    () = self.closing.cancelled() => return self.parting().await,
                    () = self.viewer.expired() => return None,
                    _ = self.heartbeat.tick() => return Some(self.heartbeat().await),
                    published = self.subscription.next() => published.ok()?,
                },
            };
            if let Some(position) = published.position() {
                // The feed started before the log was read, so it repeats events of the log.
                if position <= self.seen {
                    continue;
                }
                self.seen = position;
            }
            if !self.viewer.sees_notice(&self.app, &published).await {
                continue;
            }
            if let Some(frame) = self.frame(&published).await {
                return Some(frame);
            }
        }
    }

    /// Returns the frame that reports the end of the server, once.
    async fn parting(&mut self) -> Option<Bytes> {
        if std::mem::replace(&mut self.has_parted, true) {
            return None;
        }
        let payload = |directory| frame::own(&self.app.ids, Signal::InstanceDisposed { directory });
        match &self.scope {
            Scope::Global => {
                let mut directories = self.app.engine.instances().directories().await;
                if !self.viewer.sees_everything() {
                    directories.clear();
                }
                let frames = directories
                    .into_iter()
                    .map(|directory| frame::at(&payload(directory.clone()), &directory));
                let frames: Vec<_> = frames.collect();
                (!frames.is_empty()).then(|| frames.concat().into())
            }
            Scope::Directory { directory, session: None } => {
                Some(frame::local(&payload(directory.clone()), None))
            }
            Scope::Directory { session: Some(_), .. } | Scope::Sync | Scope::V2 => None,
        }
    }

    /// Returns the JSON of a notice, with the names that the client requested.
    fn payload(&self, published: &Published) -> Bytes {
        let payload = self.app.payloads.of(published);
        match self.names {
            EventNames::Current => payload,
            EventNames::Legacy => frame::with_legacy_name(&payload).unwrap_or(payload),
        }
    }

    /// Returns the next event of the log, `Some(None)` at its end, or `None` if it cannot be read.
    async fn next_of_log(&mut self, after: u64) -> Option<Option<Arc<Envelope>>> {
        if self.page.is_empty() {
            // A failure ends the stream: the client reconnects and resumes.
            let events = self.app.engine.events().after(after, PAGE_EVENTS).await.ok()?;
            self.page = events.into_iter().map(Arc::new).collect();
        }
        let next = self.page.pop_front();
        if let Some(envelope) = &next {
            self.replay = Some(envelope.position);
        }
        Some(next)
    }

    /// Returns the frame of a notice, if the stream contains it.
    async fn frame(&mut self, published: &Published) -> Option<Bytes> {
        let home = self.home(published).await;
        if matches!(self.scope, Scope::V2) {
            return self.v2(published, home.as_deref()).await;
        }
        match &self.scope {
            Scope::Global => {
                // The event of a deleted session has no directory and interests no client.
                if home.is_none() && published.position().is_some() {
                    return None;
                }
                let payload = self.payload(published);
                Some(match published {
                    Published::Event(envelope) => {
                        let plain = frame::global(&payload, home.as_deref());
                        match frame::sync_event(&payload, envelope, home.as_deref()) {
                            Some(copy) => [plain, copy].concat().into(),
                            None => plain,
                        }
                    }
                    Published::Signal { signal, .. } => match signal.directory() {
                        Some(directory) => frame::at(&payload, directory),
                        None => frame::global(&payload, home.as_deref()),
                    },
                })
            }
            Scope::Sync => match published {
                Published::Event(envelope) if home.is_some() => {
                    frame::sync_event(&self.app.payloads.of(published), envelope, home.as_deref())
                }
                Published::Event(_) | Published::Signal { .. } => None,
            },
            // Handled above, because a notice can have several frames.
            Scope::V2 => None,
            Scope::Directory { directory, session } => {
                let (about, here) = match published {
                    Published::Event(envelope) => (Some(envelope.event.session_id()), false),
                    Published::Signal { signal, .. } => (signal.session_id(), is_here(signal, directory)),
                };
                let here = here || home.is_some_and(|home| home.directory == *directory);
                let asked_for = session.as_ref().is_none_or(|session| about == Some(session));
                (here && asked_for).then(|| frame::local(&self.payload(published), published.position()))
            }
        }
    }

    /// Returns the frames of a notice in the v2 API: the events of its session, and the notice itself.
    async fn v2(&mut self, published: &Published, home: Option<&Home>) -> Option<Bytes> {
        let directory = match published {
            Published::Event(_) => None,
            Published::Signal { signal, .. } => signal.directory(),
        };
        let directory = directory.or(home.map(|home| home.directory.as_str()));
        let evicted = self.sessions.evict(published);
        let mut frames = self.session_frames(evicted).await;
        let events = self.sessions.events(&self.app.engine, published, self.app.clock.now_ms()).await;
        frames.extend(events.into_iter().map(|event| frame::v2_event(event, directory)));
        let is_in_v2 = !matches!(published, Published::Signal { signal, .. } if is_v1_only(signal));
        if is_in_v2 {
            frames.push(frame::v2(&self.app.payloads.of(published), published, directory));
        }
        (!frames.is_empty()).then(|| frames.concat().into())
    }

    /// Returns the frames of v2 events of various sessions.
    async fn session_frames(&mut self, events: Vec<(SessionId, Value)>) -> Vec<Bytes> {
        let mut frames = Vec::new();
        for (session, event) in events {
            if !self.viewer.sees(&self.app.engine, &session).await {
                continue;
            }
            let home = self.app.directories.of(&self.app.engine, &session).await;
            frames.push(frame::v2_event(event, home.as_ref().map(|home| home.directory.as_str())));
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

    /// Returns a heartbeat, and the v2 events of prompts that are complete by now.
    async fn heartbeat(&mut self) -> Bytes {
        match self.scope {
            Scope::V2 => {
                let events = self.sessions.finish_prompts(&self.app.engine).await;
                let mut frames = self.session_frames(events).await;
                frames.push(Bytes::from_static(b": heartbeat\n\n"));
                frames.concat().into()
            }
            Scope::Global | Scope::Sync | Scope::Directory { .. } => self.own(Signal::ServerHeartbeat {}),
        }
    }

    fn own(&self, signal: Signal) -> Bytes {
        let payload = frame::own(&self.app.ids, signal);
        match self.scope {
            Scope::V2 => frame::with_data(&payload, ""),
            Scope::Global | Scope::Sync => frame::global(&payload, None),
            Scope::Directory { .. } => frame::local(&payload, None),
        }
    }
}

/// Returns whether the v2 API does not have the event.
fn is_v1_only(signal: &Signal) -> bool {
    matches!(signal, Signal::InstanceDisposed { .. } | Signal::ServerHeartbeat {})
}

/// Returns whether a signal without a session belongs to a directory.
fn is_here(signal: &Signal, directory: &str) -> bool {
    match signal {
        Signal::InstanceDisposed { directory: at }
        | Signal::TuiPromptAppend { directory: at, .. }
        | Signal::TuiCommandExecute { directory: at, .. }
        | Signal::TuiToastShow { directory: at, .. }
        | Signal::FileEdited { directory: at, .. }
        | Signal::FileWatcherUpdated { directory: at, .. }
        | Signal::VcsBranchUpdated { directory: at, .. }
        | Signal::WorktreeReady { directory: at, .. }
        | Signal::WorktreeFailed { directory: at, .. }
        | Signal::LspUpdated { directory: at }
        | Signal::LspDiagnostics { directory: at, .. }
        | Signal::McpToolsChanged { directory: at, .. }
        | Signal::McpBrowserOpenFailed { directory: at, .. }
        | Signal::CatalogUpdated { directory: at }
        | Signal::IntegrationUpdated { directory: at }
        | Signal::IntegrationConnectionUpdated { directory: at, .. } => at == directory,
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
        | Signal::SessionMoved { .. }
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
