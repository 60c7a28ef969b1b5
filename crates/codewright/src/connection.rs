//! The connection of a command to an engine: in this process, or on a server.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use codewright_client::Client;
use codewright_config::{Dirs, Env, Trust, env};
use codewright_engine::{Engine, Instance, Level, Options, SandboxMode};
use codewright_proto::{Clock, INTERFACE_VERSION, TrustStatus};
use codewright_workspace::Confinement;

use crate::cli::Common;

/// The program version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version for `--version`. Programs that start `opencode` compare its number with those of OpenCode.
pub(crate) fn shown_version() -> String {
    match crate::command::serve::program_name() {
        "opencode" => INTERFACE_VERSION.to_owned(),
        _ => format!("{VERSION} (interface of OpenCode {INTERFACE_VERSION})"),
    }
}

/// An API client, and the engine if it runs in this process.
pub(crate) struct Connection {
    pub(crate) client: Client,
    engine: Option<Engine>,
    /// The directory of the engine in this process, and how many warnings were shown.
    warned: Option<(Arc<Instance>, usize)>,
}

/// Credentials for a server.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
}

impl Connection {
    /// Opens an engine in this process and prints the directory's warnings.
    pub(crate) async fn local(env: Env, directory: &Path) -> anyhow::Result<Self> {
        let (connection, warnings) = Self::local_with_warnings(env, directory).await?;
        for warning in &warnings {
            crate::style::warning(warning);
        }
        Ok(connection)
    }

    /// Opens an engine in this process and returns the directory's warnings.
    pub(crate) async fn local_with_warnings(
        env: Env,
        directory: &Path,
    ) -> anyhow::Result<(Self, Vec<String>)> {
        let engine = open_engine(env.clone(), directory).await?;
        // The directory is opened immediately, so that configuration errors are reported first.
        let instance = match engine.instance(engine.default_directory()).await {
            Ok(instance) => instance,
            Err(error) => return Err(engine_error(error)),
        };
        set_log_level(&engine, instance.config_json()["logLevel"].as_str());
        let warnings = instance.warnings();
        let report = Some(crate::command::bug::reporter(env));
        let options = codewright_server::Options { report, ..codewright_server::Options::default() };
        let client = Client::in_process(codewright_server::router(engine.clone(), options));
        let connection = Self { client, engine: Some(engine), warned: Some((instance, warnings.len())) };
        Ok((connection, warnings))
    }

    /// Connects to a server.
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
        Ok(Self { client: Client::http(url, auth, name).map_err(client_error)?, engine: None, warned: None })
    }

    /// The engine in this process, if there is one.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    /// How much of the repository's configuration takes effect in this process. A server decides this itself.
    pub(crate) fn trust(&self) -> Trust {
        let status = self
            .engine
            .as_ref()
            .zip(self.warned.as_ref())
            .map(|(engine, (instance, _))| engine.trust().of(instance).status);
        if status == Some(TrustStatus::Trusted) { Trust::Full } else { Trust::Inert }
    }

    /// Applies the log flags to the engine in this process. A server has its own log.
    pub(crate) fn configure(&self, common: &Common) {
        if let Some(engine) = &self.engine {
            configure(engine, common);
        }
    }

    /// Prints new warnings and closes the engine in this process.
    pub(crate) async fn close(self) {
        let Some(engine) = self.engine else { return };
        if let Some((instance, shown)) = self.warned {
            for warning in instance.warnings().iter().skip(shown) {
                crate::style::warning(warning);
            }
        }
        if let Err(error) = engine.close().await {
            crate::style::warning(&error.to_string());
        }
    }
}

/// Applies the flags for the log and the sandbox to an engine.
pub(crate) fn configure(engine: &Engine, common: &Common) {
    set_sandbox(engine, common);
    set_log_level(engine, common.log_level.as_deref());
    if common.print_logs {
        engine.log().show();
    }
}

/// Sets the mode of the sandbox that the command line names, and whether plugins run.
pub(crate) fn set_sandbox(engine: &Engine, common: &Common) {
    if common.pure {
        engine.extensions().disable();
    }
    if let Some(mode) = common.sandbox.as_deref().and_then(SandboxMode::parse) {
        engine.sandboxes().set_mode(mode);
    }
}

/// Sets the least severe level that is logged, by name. Unknown names are ignored.
pub(crate) fn set_log_level(engine: &Engine, level: Option<&str>) {
    if let Some(level) = level.and_then(Level::parse) {
        engine.log().set_level(level);
    }
}

/// The address of the store that the command line names.
static STORE: OnceLock<String> = OnceLock::new();

/// Sets the address of the store for the engines of this process. The first call counts.
pub(crate) fn set_store(url: String) {
    if has_password(&url) {
        crate::style::warning(
            "the password in `--store` can be read by other programs of this machine: use CODEWRIGHT_STORE, the key \
             `store` or a password file",
        );
    }
    STORE.get_or_init(|| url);
}

/// Whether an address has a password, wherever it is.
fn has_password(url: &str) -> bool {
    let user = url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    user.is_some_and(|(user, _)| user.contains(':')) || url.contains("password=")
}

/// Opens the engine of this process.
pub(crate) async fn open_engine(env: Env, directory: &Path) -> anyhow::Result<Engine> {
    let env = match STORE.get() {
        Some(url) => env.with_store(url),
        None => env,
    };
    let dirs = Dirs::new(&env).map_err(|error| engine_error(error.into()))?;
    let directory =
        directory.canonicalize().with_context(|| format!("cannot work in `{}`", directory.display()))?;
    let confinement = Confinement::own();
    let options = Options { directory, env, dirs, version: VERSION, clock: Clock::system(), confinement };
    let engine = Engine::open(options).await.map_err(engine_error)?;
    engine.mcp().set_browser(crate::browser::open);
    if let Some(why) = engine.disabled_telemetry() {
        crate::style::warning(why);
    }
    if let Some(salvage) = engine.salvage() {
        crate::style::warning(&salvage.to_string());
    }
    Ok(engine)
}

/// The absolute path of a directory argument, or the current directory.
pub(crate) fn working_directory(directory: Option<&Path>) -> anyhow::Result<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the only use of the process's directory")]
    let current = std::env::current_dir().context("the current directory does not exist")?;
    Ok(directory.map_or_else(|| current.clone(), |directory| current.join(directory)))
}

/// An engine's error with its hint.
pub(crate) fn engine_error(error: codewright_engine::Error) -> anyhow::Error {
    let hint = error.hint();
    let error = anyhow::Error::from(error);
    with_hint(error, hint)
}

/// A client's error with its hint, which a server sends with its response.
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

/// The exit code of a program that was ended by a signal.
pub(crate) fn interrupted(signal: u8) -> ExitCode {
    ExitCode::from(128 + signal)
}
