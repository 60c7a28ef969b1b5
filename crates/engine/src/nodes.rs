//! This process as one of several servers that share a database.
//!
//! The state exists only in a server whose sessions are in PostgreSQL. Everything else asks for it first and does nothing
//! without it. `settings` reads the user's settings, `admission` reserves sessions for prompts, and `takeover` follows the
//! other servers and continues the sessions of dead ones.

pub(crate) mod admission;
pub(crate) mod settings;
pub(crate) mod takeover;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use codewright_proto::SessionId;
use codewright_store::{Lease, Member, Members};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use settings::NodeSettings;

/// How long a look at a directory may take. A network file system can hang.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// The age after which what is known of the other servers no longer counts.
const VIEW_LIMIT: Duration = Duration::from_secs(5);

/// The server among others, if it is one.
#[derive(Default)]
pub(crate) struct NodeState(OnceLock<Cluster>);

/// A server among others.
pub(crate) struct Cluster {
    pub(crate) settings: NodeSettings,
    view: Mutex<View>,
    /// The leases of sessions whose runs have not begun yet.
    ready: Mutex<HashMap<SessionId, Lease>>,
    /// One permit for each session that runs. The order of waiting runs is that of their arrival.
    slots: Arc<Semaphore>,
    is_draining: AtomicBool,
}

/// The other servers, and when they were read.
struct View {
    members: Arc<Members>,
    read: Option<Instant>,
}

/// The living servers, as this process knows them.
#[derive(Debug, Clone)]
pub struct NodeView {
    /// The servers and this process's id.
    pub members: Arc<Members>,
    /// The time of the database's clock, in milliseconds since 1970.
    pub now_ms: u64,
}

impl NodeView {
    /// This server.
    #[must_use]
    pub fn own(&self) -> Option<&Member> {
        self.members.all.iter().find(|member| member.id == self.members.own)
    }
}

impl NodeState {
    /// Makes this process a server among others. The first call counts.
    pub(crate) fn join(&self, settings: NodeSettings) {
        let slots = Arc::new(Semaphore::new(settings.sessions));
        let view = Mutex::new(View { members: Arc::default(), read: None });
        let is_draining = AtomicBool::new(false);
        self.0.get_or_init(|| Cluster { settings, view, ready: Mutex::default(), slots, is_draining });
    }

    /// The server among others, if this process is one.
    pub(crate) fn get(&self) -> Option<&Cluster> {
        self.0.get()
    }

    /// Takes the lease that was reserved for the run of a session.
    pub(crate) fn take_ready(&self, id: &SessionId) -> Option<Lease> {
        self.get()?.ready().remove(id)
    }
}

impl Cluster {
    /// The living servers; `None` if the database could not be read lately.
    pub(crate) fn view(&self) -> Option<NodeView> {
        let view = self.lock_view();
        let age = view.read?.elapsed();
        let now_ms = view.members.now_ms.saturating_add(age.as_millis() as u64);
        (age <= VIEW_LIMIT).then(|| NodeView { members: Arc::clone(&view.members), now_ms })
    }

    pub(crate) fn set_view(&self, members: Members) {
        *self.lock_view() = View { members: Arc::new(members), read: Some(Instant::now()) };
    }

    /// Keeps a lease for the run that is about to begin.
    pub(crate) fn keep_ready(&self, id: &SessionId, lease: Lease) {
        // A lease that was kept before is of the same session and lost its fence, so it is dropped.
        drop(self.ready().insert(id.clone(), lease));
    }

    /// Waits until fewer sessions than the limit run.
    pub(crate) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    pub(crate) fn start_draining(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    /// Whether this server can work in a directory.
    pub(crate) async fn can_work(&self, directory: &Path) -> bool {
        if !self.settings.may_work(directory) {
            return false;
        }
        let found = timeout(LOOK_TIMEOUT, tokio::fs::metadata(directory)).await;
        matches!(found, Ok(Ok(metadata)) if metadata.is_dir())
    }

    fn ready(&self) -> MutexGuard<'_, HashMap<SessionId, Lease>> {
        // Each change is one insertion or removal, so a poisoned map is consistent.
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_view(&self) -> MutexGuard<'_, View> {
        // The view is replaced as a whole.
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
