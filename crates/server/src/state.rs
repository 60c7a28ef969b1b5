//! What the routes of one server share.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use codewright_engine::Engine;
use codewright_proto::{Clock, Ids, MessageId, SessionId};
use tokio::sync::{Mutex, MutexGuard};

use crate::directories::Directories;
use crate::extract::Here;
use crate::frame::Payloads;
use crate::trace::Names;
use crate::{Error, Options};

/// One server.
pub(crate) struct Server {
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    /// Ids of what the server itself says: greetings and heartbeats.
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
    pub(crate) directories: Directories,
    pub(crate) payloads: Payloads,
    /// Names of requests.
    pub(crate) names: Names,
    pub(crate) turns: Turns,
}

/// The state of every route.
pub(crate) type App = Arc<Server>;

/// Lets requests about one message go one after the other. Others rarely wait for each other, and never for
/// a message of their own.
#[derive(Default)]
pub(crate) struct Turns([Mutex<()>; 32]);

impl Turns {
    /// The turn of a request about a message, until this is dropped.
    pub(crate) async fn of(&self, message: &MessageId) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        self.0[hasher.finish() as usize % self.0.len()].lock().await
    }
}

impl Server {
    pub(crate) fn new(engine: Engine, options: Options) -> App {
        let clock = Clock::system();
        Arc::new(Self {
            engine,
            options,
            ids: Ids::new(clock.clone()),
            clock,
            directories: Directories::default(),
            payloads: Payloads::default(),
            names: Names::default(),
            turns: Turns::default(),
        })
    }
}

impl Server {
    /// Keeps what belongs to sessions of the directory of a request.
    pub(crate) async fn of_directory<T>(
        &self,
        here: &Here,
        all: impl IntoIterator<Item = T>,
        session: impl Fn(&T) -> &SessionId,
    ) -> Vec<T> {
        let directory = here.place.path().directory;
        let mut kept = Vec::new();
        for item in all {
            let home = self.directories.of(&self.engine, session(&item)).await;
            if home.is_some_and(|home| home.directory == directory) {
                kept.push(item);
            }
        }
        kept
    }

    /// Carries out what changes something to its end, even when the client that asked has gone:
    /// half a change is worse than one that nobody hears about.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, codewright_engine::Error>> + Send + 'static,
    ) -> Result<T, Error> {
        match self.options.tasks.spawn(codewright_engine::carry(work)).await {
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
        let turns = Turns::default();
        let id = |at: usize| MessageId::parse(&format!("msg_{at}")).unwrap();
        let first = turns.of(&id(0)).await;
        assert!(turns.of(&id(0)).now_or_never().is_none());
        let others = (1..100).filter(|at| turns.of(&id(*at)).now_or_never().is_some());
        assert!(others.count() > 80);
        drop(first);
        assert!(turns.of(&id(0)).now_or_never().is_some());
    }
}
