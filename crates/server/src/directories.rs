//! A cache of the directory and project of each session.
//!
//! Event streams need them for every event. The event of a moved session updates its entry. Without an event
//! stream, the route that moves a session removes the entry. A cache miss only costs a query of the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_engine::Engine;
use codewright_proto::{Event, ProjectId, Session, SessionId};

/// The maximum number of cached sessions. When it is reached, the cache is cleared.
const MAX_SESSIONS: usize = 4096;

/// The directory and project of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) directory: String,
    pub(crate) project: ProjectId,
}

/// The homes of recent sessions.
#[derive(Default)]
pub(crate) struct Directories(Mutex<HashMap<SessionId, Arc<Home>>>);

impl Directories {
    /// Returns the home of an event's session, or `None` if the session was deleted.
    pub(crate) async fn of_event(&self, engine: &Engine, event: &Event) -> Option<Arc<Home>> {
        match event {
            Event::SessionCreated { info, .. }
            | Event::SessionUpdated { info, .. }
            | Event::SessionDeleted { info, .. } => Some(self.learn(info)),
            Event::MessageUpdated { .. }
            | Event::MessageRemoved { .. }
            | Event::PartUpdated { .. }
            | Event::PartRemoved { .. }
            | Event::TodoUpdated { .. }
            | Event::PermissionAsked(_)
            | Event::PermissionReplied { .. } => self.of(engine, event.session_id()).await,
        }
    }

    /// Returns the home of a session, or `None` if it was deleted.
    pub(crate) async fn of(&self, engine: &Engine, id: &SessionId) -> Option<Arc<Home>> {
        if let Some(home) = self.lock().get(id) {
            return Some(Arc::clone(home));
        }
        let session = engine.sessions().get(id).await.ok()?;
        Some(self.learn(&session))
    }

    /// Removes a session that was moved.
    pub(crate) fn forget(&self, id: &SessionId) {
        self.lock().remove(id);
    }

    fn learn(&self, session: &Session) -> Arc<Home> {
        let mut homes = self.lock();
        if let Some(home) = homes.get(&session.id).filter(|home| home.directory == session.directory) {
            return Arc::clone(home);
        }
        if homes.len() >= MAX_SESSIONS {
            homes.clear();
        }
        let home = Home { directory: session.directory.clone(), project: session.project_id.clone() };
        let home = Arc::new(home);
        homes.insert(session.id.clone(), Arc::clone(&home));
        home
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Home>>> {
        // Each change of the map is a single call, so a poisoned map is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
