//! Which directory a session works in, remembered.
//!
//! Streams ask this for every event. What is remembered never changes for a
//! session, so forgetting it costs a look into the store and nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_engine::Engine;
use codewright_proto::{Event, ProjectId, Session, SessionId};

/// How many sessions are remembered; beyond, all are forgotten at once.
const MAX_SESSIONS: usize = 4096;

/// Where a session is at home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) directory: String,
    pub(crate) project: ProjectId,
}

/// The homes of recently heard sessions.
#[derive(Default)]
pub(crate) struct Directories(Mutex<HashMap<SessionId, Arc<Home>>>);

impl Directories {
    /// The home of an event's session; `None` when the session is gone.
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

    /// The home of a session; `None` when it is gone.
    pub(crate) async fn of(&self, engine: &Engine, id: &SessionId) -> Option<Arc<Home>> {
        if let Some(home) = self.lock().get(id) {
            return Some(Arc::clone(home));
        }
        let session = engine.sessions().get(id).await.ok()?;
        Some(self.learn(&session))
    }

    fn learn(&self, session: &Session) -> Arc<Home> {
        let mut known = self.lock();
        if let Some(home) = known.get(&session.id).filter(|home| home.directory == session.directory) {
            return Arc::clone(home);
        }
        if known.len() >= MAX_SESSIONS {
            known.clear();
        }
        let home = Home { directory: session.directory.clone(), project: session.project_id.clone() };
        let home = Arc::new(home);
        known.insert(session.id.clone(), Arc::clone(&home));
        home
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Home>>> {
        // Every change of the map is one call, so a poisoned map is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
