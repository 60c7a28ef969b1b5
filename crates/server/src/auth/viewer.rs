//! The sessions that a user may see. Lists check many sessions at once, and streams check the session of each event.
//!
//! The access of a session is that of the session at the root of its parents. A stream starts without knowledge and reads
//! sessions from the store when it needs them. It learns changes from the events that it sees itself, in the order of the
//! log, so it sends nothing after the event that ends a share. An event that is older than what was read changes nothing.

use std::collections::HashMap;

use codewright_engine::{Audience, Engine, Published};
use codewright_proto::{Event, Session, SessionAccess, SessionId, Signal};

use super::{Caller, Level, Role, Who};
use crate::state::App;

/// The maximum number of sessions that a stream or a request remembers. When it is reached, all are forgotten.
const MAX_SESSIONS: usize = 4096;
/// The longest chain of parents.
const MAX_DEPTH: usize = 64;

/// The view of the sender of a request.
pub(crate) struct Viewer {
    who: Who,
    known: HashMap<SessionId, Known>,
}

/// What is known of a session.
#[derive(Debug, Clone)]
struct Known {
    parent: Option<SessionId>,
    access: Option<SessionAccess>,
    /// The position of the log at which this was so.
    position: u64,
}

impl Known {
    fn new(session: &Session, position: u64) -> Self {
        Self { parent: session.parent_id.clone(), access: session.access.clone(), position }
    }
}

impl Viewer {
    pub(crate) fn new(who: Who) -> Self {
        Self { who, known: HashMap::new() }
    }

    /// Whether the view has no limits.
    pub(crate) fn sees_everything(&self) -> bool {
        match &self.who {
            Who::Local => true,
            Who::Ticket => false,
            Who::User(caller) => caller.role == Role::Admin,
        }
    }

    /// The audience of the configuration that the sender belongs to.
    pub(crate) fn audience(&self) -> Audience {
        if self.sees_everything() { Audience::Owner } else { Audience::Others }
    }

    /// Returns what the user may do with a session; `None` if the user may not see it or it does not exist.
    pub(crate) async fn level(&mut self, engine: &Engine, id: &SessionId) -> Option<Level> {
        if self.sees_everything() {
            return Some(Level::Full);
        }
        let caller = self.who.caller()?.clone();
        let mut at = id.clone();
        for _ in 0..MAX_DEPTH {
            let known = self.known(engine, &at).await?;
            match known.parent {
                Some(parent) => at = parent,
                None => return caller.level(known.access.as_ref()),
            }
        }
        None
    }

    /// Whether the user may see a session.
    pub(crate) async fn sees(&mut self, engine: &Engine, id: &SessionId) -> bool {
        self.level(engine, id).await.is_some()
    }

    /// Returns the items whose session the user may see.
    pub(crate) async fn filter<T>(
        &mut self,
        engine: &Engine,
        all: Vec<T>,
        session: impl Fn(&T) -> &SessionId,
    ) -> Vec<T> {
        if self.sees_everything() {
            return all;
        }
        let mut kept = Vec::new();
        for item in all {
            if self.sees(engine, session(&item)).await {
                kept.push(item);
            }
        }
        kept
    }

    /// Returns the sessions of a list that the user may see. Their rows were just read.
    pub(crate) async fn sessions(&mut self, engine: &Engine, all: Vec<Session>) -> Vec<Session> {
        let position = engine.events().last_position();
        if !self.sees_everything() {
            for session in all.iter().take(MAX_SESSIONS) {
                self.remember(&session.id, Known::new(session, position));
            }
        }
        self.filter(engine, all, |session| &session.id).await
    }

    /// Whether a stream of the user contains a notice.
    pub(crate) async fn sees_notice(&mut self, app: &App, published: &Published) -> bool {
        if self.sees_everything() {
            return true;
        }
        match published {
            Published::Event(envelope) => {
                self.learn(&envelope.event, envelope.position);
                self.sees(&app.engine, envelope.event.session_id()).await
            }
            Published::Signal { signal, .. } => {
                let Some(caller) = self.who.caller().cloned() else { return false };
                match scope(signal) {
                    Scope::Session(id) => self.sees(&app.engine, id).await,
                    Scope::Directory(directory) => {
                        super::directories::permits(app, &caller, directory.as_ref()).await
                    }
                    Scope::Everyone => true,
                    Scope::Admins => false,
                }
            }
        }
    }

    /// Learns from an event of the log.
    ///
    /// A session that is not known is read from the store, because the event may be an old one that is read again. A
    /// deleted session is no longer there, and its event has its last state.
    fn learn(&mut self, event: &Event, position: u64) {
        let known = |info: &Session| self.known.get(&info.id).map(|known| known.position);
        let newer = match event {
            Event::SessionCreated { info, .. } | Event::SessionUpdated { info, .. } => {
                known(info).is_some_and(|known| position > known).then_some(info)
            }
            Event::SessionDeleted { info, .. } => {
                known(info).is_none_or(|known| position > known).then_some(info)
            }
            Event::MessageUpdated { .. }
            | Event::MessageRemoved { .. }
            | Event::PartUpdated { .. }
            | Event::PartRemoved { .. }
            | Event::TodoUpdated { .. }
            | Event::PermissionAsked(_)
            | Event::PermissionReplied { .. } => None,
        };
        if let Some(info) = newer {
            self.remember(&info.id, Known::new(info, position));
        }
    }

    fn remember(&mut self, id: &SessionId, known: Known) {
        if self.known.len() >= MAX_SESSIONS {
            self.known.clear();
        }
        self.known.insert(id.clone(), known);
    }

    async fn known(&mut self, engine: &Engine, id: &SessionId) -> Option<Known> {
        if let Some(known) = self.known.get(id) {
            return Some(known.clone());
        }
        // Read before the session, so that events between the two reads are not taken for older ones.
        let position = engine.events().last_position();
        let session = engine.sessions().get(id).await.ok()?;
        let known = Known::new(&session, position);
        self.remember(id, known.clone());
        Some(known)
    }
}

/// Those who may see a signal.
enum Scope<'a> {
    Session(&'a SessionId),
    Directory(&'a str),
    Everyone,
    Admins,
}

fn scope(signal: &Signal) -> Scope<'_> {
    match signal {
        Signal::ServerConnected {}
        | Signal::ServerHeartbeat {}
        | Signal::GlobalDisposed {}
        | Signal::ProjectUpdated(_) => Scope::Everyone,
        Signal::SessionError { session_id: None, .. }
        | Signal::PtyCreated { .. }
        | Signal::PtyUpdated { .. }
        | Signal::PtyExited { .. }
        | Signal::PtyDeleted { .. }
        | Signal::TuiPromptAppend { .. }
        | Signal::TuiCommandExecute { .. }
        | Signal::TuiToastShow { .. }
        | Signal::TuiSessionSelect { .. } => Scope::Admins,
        Signal::InstanceDisposed { directory }
        | Signal::FileEdited { directory, .. }
        | Signal::FileWatcherUpdated { directory, .. }
        | Signal::VcsBranchUpdated { directory, .. }
        | Signal::WorktreeReady { directory, .. }
        | Signal::WorktreeFailed { directory, .. }
        | Signal::LspUpdated { directory }
        | Signal::LspDiagnostics { directory, .. }
        | Signal::McpToolsChanged { directory, .. }
        | Signal::McpBrowserOpenFailed { directory, .. }
        | Signal::CatalogUpdated { directory }
        | Signal::IntegrationUpdated { directory }
        | Signal::IntegrationConnectionUpdated { directory, .. } => Scope::Directory(directory),
        Signal::SessionError { session_id: Some(_), .. }
        | Signal::PartDelta { .. }
        | Signal::SessionStatus { .. }
        | Signal::SessionIdle { .. }
        | Signal::SessionCompacted { .. }
        | Signal::SessionMoved { .. }
        | Signal::CommandExecuted { .. }
        | Signal::SessionDiff { .. }
        | Signal::QuestionAsked(_)
        | Signal::QuestionReplied { .. }
        | Signal::QuestionRejected { .. } => signal.session_id().map_or(Scope::Admins, Scope::Session),
    }
}

impl axum::extract::FromRequestParts<App> for Viewer {
    type Rejection = crate::Error;

    async fn from_request_parts(parts: &mut http::request::Parts, app: &App) -> Result<Self, crate::Error> {
        Who::of(&parts.extensions, app).map(Self::new)
    }
}

impl Viewer {
    /// The sender of the request.
    pub(crate) fn who(&self) -> &Who {
        &self.who
    }

    /// Waits for the end of the sign-in, which may never come.
    pub(crate) async fn expired(&self) {
        match self.who.caller().and_then(|caller| caller.until) {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    /// The user, if the user is not an administrator.
    pub(crate) fn limited(&self) -> Option<&Caller> {
        self.who.limited()
    }
}
