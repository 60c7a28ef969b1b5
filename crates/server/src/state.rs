//! What the routes of one server share.

use std::sync::Arc;

use codewright_engine::Engine;
use codewright_proto::{Clock, Ids};

use crate::directories::Directories;
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
    /// Prompts whose ids clients chose are taken in one after the other.
    pub(crate) prompts: tokio::sync::Mutex<()>,
}

/// The state of every route.
pub(crate) type App = Arc<Server>;

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
            prompts: tokio::sync::Mutex::default(),
        })
    }
}

impl Server {
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
