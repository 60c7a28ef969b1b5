//! The state that all routes of a server share.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use codewright_engine::{Engine, Level};
use codewright_proto::{Clock, Ids, MessageId, SessionId};
use tokio::sync::{Mutex, MutexGuard};

use crate::attempts::Attempts;
use crate::auth::{Refusals, Viewer};
use crate::directories::Directories;
use crate::extract::Location;
use crate::frame::Payloads;
use crate::metrics::Metrics;
use crate::nodes::Nodes;
use crate::ready::Readiness;
use crate::sign_ins::SignIns;
use crate::trace::RequestIds;
use crate::{Error, Options};

/// The state of a server.
pub(crate) struct Server {
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    /// The generator of ids for signals of the server itself: greetings and heartbeats.
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
    pub(crate) directories: Directories,
    pub(crate) payloads: Payloads,
    /// The generator of request ids.
    pub(crate) request_ids: RequestIds,
    pub(crate) message_locks: MessageLocks,
    /// The connections to other servers that share the store.
    pub(crate) nodes: Option<Nodes>,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    pub(crate) refusals: Refusals,
    pub(crate) sign_ins: SignIns,
    pub(crate) attempts: Attempts,
}

/// The state that routes extract.
pub(crate) type App = Arc<Server>;

/// Locks that serialize requests about the same message. Requests about different messages rarely share a lock.
#[derive(Default)]
pub(crate) struct MessageLocks([Mutex<()>; 32]);

impl MessageLocks {
    /// Locks a message until the guard is dropped.
    pub(crate) async fn lock(&self, message: &MessageId) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        self.0[hasher.finish() as usize % self.0.len()].lock().await
    }
}

impl Server {
    pub(crate) fn new(engine: Engine, options: Options) -> App {
        let clock = Clock::system();
        Arc::new(Self {
            nodes: Nodes::new(&engine),
            sign_ins: SignIns::open(options.sign_ins.clone()),
            engine,
            options,
            ids: Ids::new(clock.clone()),
            clock,
            directories: Directories::default(),
            payloads: Payloads::default(),
            request_ids: RequestIds::default(),
            message_locks: MessageLocks::default(),
            metrics: Metrics::default(),
            readiness: Readiness::default(),
            refusals: Refusals::default(),
            attempts: Attempts::default(),
        })
    }
}

impl Server {
    /// Returns the items whose session is in the directory of the request, and that its sender may see.
    pub(crate) async fn in_directory<T>(
        &self,
        viewer: &mut Viewer,
        location: &Location,
        all: impl IntoIterator<Item = T>,
        session: impl Fn(&T) -> &SessionId,
    ) -> Vec<T> {
        let directory = location.instance.path().directory;
        let mut kept = Vec::new();
        for item in all {
            let home = self.directories.of(&self.engine, session(&item)).await;
            if home.is_some_and(|home| home.directory == directory)
                && viewer.sees(&self.engine, session(&item)).await
            {
                kept.push(item);
            }
        }
        kept
    }

    /// Writes the file of the browsers' sign-ins in the background. If that fails, they end with the server.
    pub(crate) fn save_sign_ins(app: &App) {
        let owned = Arc::clone(app);
        app.options.tasks.spawn(async move {
            let saved = Arc::clone(&owned);
            let written =
                tokio::task::spawn_blocking(move || saved.sign_ins.save(saved.clock.now_ms())).await;
            if !matches!(written, Ok(Ok(()))) {
                let text = "the sign-ins of browsers cannot be stored, so they end with the server";
                owned.engine.log().write(Level::Warn, "server", text, None).await;
            }
        });
    }

    /// Runs a change to completion, even if its client disconnects, because a partial change is worse than one without a
    /// reply.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, codewright_engine::Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let work = codewright_engine::carry_request(codewright_engine::carry(work));
        match self.options.tasks.spawn(work).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(Error::Panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn only_requests_about_one_message_wait_for_each_other() {
        let locks = MessageLocks::default();
        let id = |at: usize| MessageId::parse(&format!("msg_{at}")).unwrap();
        let first = locks.lock(&id(0)).await;
        assert!(locks.lock(&id(0)).now_or_never().is_none());
        let others = (1..100).filter(|at| locks.lock(&id(*at)).now_or_never().is_some());
        assert!(others.count() > 80);
        drop(first);
        assert!(locks.lock(&id(0)).now_or_never().is_some());
    }
}
