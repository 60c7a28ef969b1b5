//! The server that the terminal client opens for other clients, next to its own connection.
//!
//! It serves the engine of the client's process, under the same conditions as `serve`: without a password
//! only on this machine and for programs of the same account.

use std::time::Duration;

use codewright_config::Env;
use codewright_engine::{Engine, Level};
use codewright_server::{Announcement, Options};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::settings::ServerSettings;
use super::{Endpoint, WITHOUT_PASSWORD, announce, listen_on, options};
use crate::cli::ListenArgs;

/// How long open connections have to end when the client quits.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);

/// An address that is listened on, but not served yet.
pub(crate) struct SideListener {
    endpoint: Endpoint,
    options: Options,
    domain: Option<String>,
}

/// A server that runs in the background.
pub(crate) struct SideServer {
    served: JoinSet<()>,
    cancel: CancellationToken,
    tasks: TaskTracker,
    announced: Option<Announcement>,
    /// The address and the warnings for the user.
    pub(crate) notes: Vec<String>,
}

impl SideListener {
    /// Listens if a flag requires it. The user's global configuration completes the flags, and opens no port alone.
    ///
    /// # Errors
    ///
    /// Fails if the address is invalid or in use, or if other machines could use the server without a password.
    pub(crate) async fn open(args: &ListenArgs, env: &Env) -> anyhow::Result<Option<Self>> {
        if args.port.is_none() && args.hostname.is_none() && !args.mdns {
            return Ok(None);
        }
        let settings = ServerSettings::new(args, env)?;
        let options = options(&settings, env)?;
        let endpoint = listen_on(&settings).await?;
        Ok(Some(Self { endpoint, options, domain: settings.domain }))
    }

    /// Starts to serve an engine.
    pub(crate) fn serve(self, engine: &Engine) -> SideServer {
        let Self { endpoint, options, domain } = self;
        endpoint.name_for_plugins(engine);
        let mut notes = vec![format!("listening on {}", endpoint.address)];
        if options.password.is_none() && options.auth.is_none() {
            notes.push(WITHOUT_PASSWORD.to_owned());
        }
        let announced = endpoint.socket.map_or(Ok(None), |socket| announce(socket, domain.as_deref()));
        let announced = announced.unwrap_or_else(|why| {
            notes.push(why);
            None
        });
        codewright_server::raise_file_limit();
        let (cancel, tasks) = (CancellationToken::new(), options.tasks.clone());
        let router = codewright_server::router(engine.clone(), options);
        let served = codewright_server::serve(endpoint.listener, router, cancel.clone());
        let engine = engine.clone();
        let mut running = JoinSet::new();
        running.spawn(async move {
            engine
                .log()
                .write(Level::Info, "server", &format!("listening on {}", endpoint.address), None)
                .await;
            if let Err(error) = served.await {
                engine.log().write(Level::Error, "server", &format!("ended: {error}"), None).await;
            }
        });
        SideServer { served: running, cancel, tasks, announced, notes }
    }
}

impl SideServer {
    /// Stops the server. Connections that do not end in time are dropped.
    pub(crate) async fn close(mut self) {
        if let Some(announced) = self.announced {
            announced.withdraw().await;
        }
        self.cancel.cancel();
        self.tasks.close();
        let ended = async {
            while self.served.join_next().await.is_some() {}
            self.tasks.wait().await;
        };
        // Dropping the server ends the connections that are still open.
        tokio::time::timeout(CLOSE_LIMIT, ended).await.ok();
    }
}
