//! The way to an engine: one of our own in this process, or a server's.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use codewright_client::Client;
use codewright_config::{Dirs, Env, Trust, env};
use codewright_engine::{Engine, Instance, Level, Options};
use codewright_proto::{Clock, TrustStatus};
use codewright_workspace::Confinement;

use crate::cli::Common;

/// The program version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a command talks to.
pub(crate) struct Connection {
    pub(crate) client: Client,
    engine: Option<Engine>,
    /// The directory of our own engine, and how many of its warnings have been shown.
    told: Option<(Arc<Instance>, usize)>,
}

/// Credentials for a server.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
}

impl Connection {
    /// An engine in this process, called without a socket.
    pub(crate) async fn local(env: Env, directory: &Path) -> anyhow::Result<Self> {
        let (connection, warnings) = Self::local_quietly(env, directory).await?;
        for warning in &warnings {
            crate::style::warning(warning);
        }
        Ok(connection)
    }

    /// The same for who tells the warnings in another place.
    pub(crate) async fn local_quietly(env: Env, directory: &Path) -> anyhow::Result<(Self, Vec<String>)> {
        let engine = open_engine(env, directory).await?;
        // The directory is opened at once: what is wrong with its configuration is said before anything else.
        let instance = match engine.instance(engine.default_directory()).await {
            Ok(instance) => instance,
            Err(error) => return Err(explained(error)),
        };
        note_from(&engine, instance.config_json()["logLevel"].as_str());
        let warnings = instance.warnings();
        let options = codewright_server::Options::default();
        let client = Client::in_process(codewright_server::router(engine.clone(), options));
        let connection = Self { client, engine: Some(engine), told: Some((instance, warnings.len())) };
        Ok((connection, warnings))
    }

    /// A server at an address.
    pub(crate) fn remote(
        env: &Env,
        url: &str,
        credentials: Credentials,
        directory: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let password = credentials.password.or_else(|| env.filled(env::SERVER_PASSWORD).map(str::to_owned));
        let username = credentials.username.or_else(|| env.filled(env::SERVER_USERNAME).map(str::to_owned));
        let auth = password.map(|password| (username.unwrap_or_else(|| "opencode".to_owned()), password));
        let name = directory.as_ref().map(|path| path.to_string_lossy().into_owned());
        Ok(Self { client: Client::http(url, auth, name).map_err(client_error)?, engine: None, told: None })
    }

    /// The engine of this process, if it is one.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    /// How much of the repository's configuration takes effect in this process; a server decides for itself.
    pub(crate) fn trust(&self) -> Trust {
        let status = self
            .engine
            .as_ref()
            .zip(self.told.as_ref())
            .map(|(engine, (instance, _))| engine.trust(instance).status);
        if status == Some(TrustStatus::Trusted) { Trust::Full } else { Trust::Inert }
    }

    /// Writes and shows log lines as the flags say; a server has its own log.
    pub(crate) fn keep_log(&self, common: &Common) {
        if let Some(engine) = &self.engine {
            keep_log(engine, common);
        }
    }

    /// Ends what runs in this process.
    pub(crate) async fn close(self) {
        let Some(engine) = self.engine else { return };
        if let Some((instance, told)) = self.told {
            for warning in instance.warnings().iter().skip(told) {
                crate::style::warning(warning);
            }
        }
        if let Err(error) = engine.close().await {
            crate::style::warning(&error.to_string());
        }
    }
}

/// Writes and shows log lines as the flags say.
pub(crate) fn keep_log(engine: &Engine, common: &Common) {
    note_from(engine, common.log_level.as_deref());
    if common.print_logs {
        engine.show_notes();
    }
}

/// Writes down what matters at least as much as a level's name says.
pub(crate) fn note_from(engine: &Engine, level: Option<&str>) {
    if let Some(level) = level.and_then(Level::parse) {
        engine.note_from(level);
    }
}

/// Opens the engine of this process.
pub(crate) async fn open_engine(env: Env, directory: &Path) -> anyhow::Result<Engine> {
    let dirs = Dirs::new(&env).map_err(|error| explained(error.into()))?;
    let directory =
        directory.canonicalize().with_context(|| format!("cannot work in `{}`", directory.display()))?;
    let confinement = Confinement::own();
    let options = Options { directory, env, dirs, version: VERSION, clock: Clock::system(), confinement };
    let engine = Engine::open(options).await.map_err(explained)?;
    if let Some(why) = engine.untold() {
        crate::style::warning(why);
    }
    if let Some(salvage) = engine.salvage() {
        crate::style::warning(&salvage.to_string());
    }
    Ok(engine)
}

/// The directory that a command works in.
pub(crate) fn working_directory(wanted: Option<&Path>) -> anyhow::Result<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks for the process's directory")]
    let current = std::env::current_dir().context("the current directory is gone")?;
    Ok(wanted.map_or_else(|| current.clone(), |wanted| current.join(wanted)))
}

/// An engine's error with what the user may try.
pub(crate) fn explained(error: codewright_engine::Error) -> anyhow::Error {
    let hint = error.hint();
    let error = anyhow::Error::from(error);
    with_hint(error, hint)
}

/// A client's error with what the user may try; the server's hints come with its answer.
pub(crate) fn client_error(error: codewright_client::Error) -> anyhow::Error {
    let hint = match &error {
        codewright_client::Error::Api { error, .. } => {
            error.data.get("hint").and_then(|hint| hint.as_str()).map(str::to_owned)
        }
        other => other.hint().map(str::to_owned),
    };
    with_hint(anyhow::Error::from(error), hint)
}

fn with_hint(error: anyhow::Error, hint: Option<String>) -> anyhow::Error {
    let Some(hint) = hint else { return error };
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    anyhow::anyhow!("{text}\n{hint}")
}

/// The exit code of a program that a signal ended.
pub(crate) fn interrupted(signal: u8) -> ExitCode {
    ExitCode::from(128 + signal)
}
