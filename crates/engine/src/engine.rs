//! The engine: its methods take requests, and it publishes events.
//!
//! It serves any number of directories, each opened as an [`Instance`] when it is first needed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use codewright_config::{Dirs, Env};
use codewright_proto::{Clock, Ids, MessageError, SessionId, Signal};
use codewright_store::{Claim, Salvage, SessionFilter};
use codewright_telemetry::{Context, Kind, Span};
use codewright_tools::{Environment, FileLocks, Jobs, SearchEngine};
use codewright_workspace::{Confinement, Documents};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::acp::AcpTable;
use crate::attempt::Attempts;
use crate::credential::{SignIns, sign_in};
use crate::database::Database;
use crate::documents::DocumentTable;
use crate::error::describe;
use crate::extension::ExtensionTable;
use crate::hosts::table::Hosts;
use crate::inner::Inner;
use crate::instance::{Instance, cache};
use crate::interface::{
    Events, Extensions, Instances, Log, Lsp, Mcp, Nodes, Packages, Permissions, Projects, Providers,
    Questions, Sandboxes, Sessions, Settings, Terminals, Transfer, Trust, Users, Worktrees,
};
use crate::journal::{Journal, Level};
use crate::known::SessionFiles;
use crate::lsp::LspTable;
use crate::mcp::McpTable;
use crate::mcp::tokens::Tokens;
use crate::mcp::vault::TokenFile;
use crate::mcp::web::SignInWeb;
use crate::models::source::Source;
use crate::nodes::NodeState;
use crate::outputs::Outputs;
use crate::packages::PackageTable;
use crate::permission::decisive::Decisive;
use crate::permission::gate::Gate;
use crate::plugins::PluginTable;
use crate::request::system::civil;
use crate::run::recover::Aftermath;
use crate::run::stop::ABORT_WAIT;
use crate::run::table::Runs;
use crate::run::{self, recover};
use crate::session::locks::SessionLocks;
use crate::session::row_locks::RowLocks;
use crate::subagent::table::Subagents;
use crate::toolbox::{self, Toolbox};
use crate::trust::TrustState;
use crate::users::QuotaState;
use crate::web::Network;
use crate::worktrees::WorktreeState;
use crate::zone::Zone;
use crate::{Error, plugins, pty, question, telemetry};

/// The file of the tokens of MCP servers.
const MCP_AUTH_FILE: &str = "mcp-auth.json";
/// The file with the hashes of what providers have refused, in the cache.
const REFUSED_FILE: &str = "refused-parts";
/// The longest time that background work, such as naming a session, may delay the end of the program.
const CLOSE_GRACE: Duration = Duration::from_secs(3);
/// The longest time that the ends of sessions are reported to extensions.
const END_GRACE: Duration = Duration::from_secs(6);
/// Sessions that are searched for interrupted work when a server starts.
const RECOVERED: usize = 200;
/// Their newest messages: an open message is followed at most by prompts that waited for it.
const RECOVERED_MESSAGES: usize = 8;

/// The configuration of an engine.
#[derive(Debug)]
pub struct Options {
    /// The directory of requests that do not name one.
    pub directory: PathBuf,
    /// The program's environment.
    pub env: Env,
    /// The directories of the program.
    pub dirs: Dirs,
    /// The program version, stored with every session.
    pub version: &'static str,
    /// The clock.
    pub clock: Clock,
    /// The supervisor of commands and their child processes.
    pub confinement: Confinement,
}

fn search_engine(env: &Env) -> SearchEngine {
    SearchEngine {
        url: env.filled(codewright_config::env::EXA_URL).map(str::to_owned),
        key: env.filled(codewright_config::env::EXA_API_KEY).map(str::to_owned),
    }
}

/// The engine. Clones share everything.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

impl Engine {
    /// Opens the store. Directories are opened later.
    pub async fn open(options: Options) -> Result<Self, Error> {
        let Options { directory, env, mut dirs, version, clock, confinement } = options;
        // Permission rules are compared with resolved paths, so the program's directories must be resolved too.
        dirs.data = resolved(&dirs.data);
        dirs.tmp = resolved(&dirs.tmp);
        let database = Database::choose(&env, &dirs, &directory);
        // Tokens expire by the machine's clock; recorded times never decrease. Several servers all go by the clock of their
        // database, because messages are in the order of their times.
        let wall = clock;
        let clock = if database.is_shared() { wall.following().steady() } else { wall.steady() };
        let ids = Ids::new(clock.clone());
        let store = database.open(&env, ids.clone(), clock.clone()).await?;
        let child_env = child_environment(&env, &database);
        let shell =
            env.filled(codewright_config::env::SHELL).map_or_else(|| PathBuf::from("/bin/sh"), PathBuf::from);
        let outputs = Outputs::new(dirs.tool_output());
        let network = codewright_llm::Network { variables: env.of(codewright_config::env::NETWORK) };
        let search = search_engine(&env);
        let tasks = TaskTracker::new();
        let toolbox = Toolbox::builtin(&env, civil(clock.now_ms()).0);
        let llm = codewright_llm::Client::with_network(network, &format!("codewright/{version}"))?
            .with_refusals_in(dirs.cache.join(REFUSED_FILE));
        let (tracer, disabled_telemetry) = telemetry::open(&env, &dirs, &llm, version, &clock);
        let token_file =
            TokenFile::new(dirs.data.join(MCP_AUTH_FILE), dirs.opencode_data.join(MCP_AUTH_FILE));
        let sign_in_web = Arc::new(SignInWeb(llm.clone()));
        let tokens = Tokens::new(token_file, sign_in_web, wall.clone(), tasks.clone());
        Ok(Self(Arc::new(Inner {
            tracer,
            disabled_telemetry,
            gate: gate(&store, &ids, &clock, &dirs, &env),
            questions: question::Questions::new(store.clone(), ids.clone()),
            trust: TrustState::new(&env, &dirs),
            subagents: Subagents::default(),
            sign_in: sign_in(llm.clone(), &dirs, &env, &wall),
            sign_ins: SignIns::default(),
            attempts: Attempts::default(),
            packages: PackageTable::new(&dirs),
            web: Arc::new(Network(llm.clone())),
            llm,
            catalog: Source::new(&dirs),
            journal: Arc::new(Journal::new(&dirs.state, clock.clone())),
            store,
            database,
            ids,
            clock,
            zone: Zone::of_system(codewright_config::zone_file(&env).as_deref()),
            toolbox,
            env,
            dirs,
            version,
            runs: Runs::default(),
            session_locks: SessionLocks::default(),
            search,
            locks: FileLocks::default(),
            known: SessionFiles::default(),
            jobs: Jobs::default(),
            documents: DocumentTable::default(),
            hosts: Hosts::new(tasks.clone()),
            mcp: McpTable::new(tokens),
            lsp: LspTable::default(),
            acp: AcpTable::default(),
            extensions: ExtensionTable::default(),
            plugins: PluginTable::default(),
            child_env,
            shell,
            confinement,
            sandbox_mode: OnceLock::new(),
            sandbox_probe: tokio::sync::OnceCell::new(),
            outputs,
            terminals: pty::Terminals::default(),
            worktrees: WorktreeState::default(),
            cancel: CancellationToken::new(),
            tasks,
            directory,
            instances: cache::Instances::default(),
            row_locks: RowLocks::default(),
            nodes: NodeState::default(),
            quotas: QuotaState::default(),
            start_run: run::start,
        })))
    }

    /// Returns the directory of requests that do not name one.
    #[must_use]
    pub fn default_directory(&self) -> &Path {
        &self.0.directory
    }

    /// Returns the program version.
    #[must_use]
    pub fn version(&self) -> &str {
        self.0.version
    }

    /// Returns an open directory, and opens it first if necessary.
    pub async fn instance(&self, directory: &Path) -> Result<Arc<Instance>, Error> {
        let instance = self.0.instance(directory).await?;
        plugins::open::start_soon(&self.0, &instance);
        Ok(instance)
    }

    /// Returns a directory with the changes of its plugins. Plugins that are installed or starting are waited for, up to a
    /// limit. If they change the directory after it, `server.instance.disposed` is sent.
    pub async fn with_plugins(&self, instance: Arc<Instance>, limit: Option<Duration>) -> Arc<Instance> {
        plugins::current::loaded(&self.0, instance, limit).await
    }

    /// Returns whether the model may start subagents in the background.
    #[must_use]
    pub fn has_background_subagents(&self) -> bool {
        toolbox::has_background_tasks(&self.0.env)
    }

    /// Returns a report about the repair of a damaged store, if there was one.
    #[must_use]
    pub fn salvage(&self) -> Option<&Salvage> {
        self.0.store.salvage()
    }

    /// Ends open messages of dead processes in recent sessions, in the background.
    ///
    /// Other sessions are repaired at their next prompt.
    pub fn recover(&self) {
        // Several servers continue sessions instead; see `nodes::takeover`.
        if self.0.nodes.get().is_some() {
            return;
        }
        let inner = self.0.clone();
        let work = async move {
            if let Some(Err(error)) = inner.cancel.run_until_cancelled(recover_sessions(&inner)).await {
                let message = format!("looking for interrupted sessions failed: {}", describe(&error));
                let error = MessageError::UnknownError { message, reference: None };
                inner.store.signal(Signal::SessionError { session_id: None, error });
            }
        };
        self.0.tasks.spawn(work);
    }

    /// Waits a short time for background work, aborts the rest and closes the store.
    pub async fn close(self) -> Result<(), Error> {
        // Each hook has a shorter deadline; what is left is abandoned.
        let _ = tokio::time::timeout(END_GRACE, self.0.extensions.end_all()).await;
        self.0.plugins.ending.cancel();
        self.0.plugins.close_all().await;
        self.0.mcp.close_all(&self.0.tasks);
        self.0.lsp.close_all(&self.0.tasks);
        self.0.acp.close_all(&self.0.tasks);
        self.0.tasks.close();
        self.0.jobs.close();
        // Titles may still arrive; the rest is cancelled.
        let _ = tokio::time::timeout(CLOSE_GRACE, self.0.tasks.wait()).await;
        self.0.cancel.cancel();
        // Work that does not end is abandoned; the store is closed in any case.
        let _ = tokio::time::timeout(ABORT_WAIT, self.0.tasks.wait()).await;
        self.close_telemetry().await;
        Ok(self.0.store.clone().close().await?)
    }

    /// Starts the span of a client's request. `parent` is its `traceparent` header.
    #[must_use]
    pub fn request_span(&self, method: &str, route: &str, parent: Option<&str>) -> Span {
        let tracer = &self.0.tracer;
        if !tracer.is_on() {
            return Span::default();
        }
        // A client can send any method; only known ones are exported.
        let method = telemetry::METHODS.into_iter().find(|known| *known == method).unwrap_or("_OTHER");
        let parent = parent.and_then(Context::parse).map(|parent| tracer.adopt(parent));
        let mut span = tracer.child_span(&format!("{method} {route}"), Kind::Server, parent);
        span.set("http.request.method", method);
        span.set("http.route", route);
        span
    }

    /// Returns the reason why telemetry is off although it was configured.
    #[must_use]
    pub fn disabled_telemetry(&self) -> Option<&str> {
        self.0.disabled_telemetry.as_deref()
    }

    /// Exports the spans that are left, and logs how many were lost.
    async fn close_telemetry(&self) {
        let counts = self.0.tracer.close().await;
        if counts.dropped + counts.lost > 0 {
            let about =
                json!({ "exported": counts.exported, "dropped": counts.dropped, "lost": counts.lost });
            self.0
                .journal
                .note(Level::Warn, "telemetry", "some spans could not be exported", Some(about))
                .await;
        }
    }

    /// Stored events and the subscription to new ones.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        Events(&self.0)
    }

    /// Sessions, their messages and prompts.
    #[must_use]
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions(&self.0)
    }

    /// The sandbox of the model's commands.
    #[must_use]
    pub fn sandboxes(&self) -> Sandboxes<'_> {
        Sandboxes(&self.0)
    }

    /// Permission requests and saved approvals.
    #[must_use]
    pub fn permissions(&self) -> Permissions<'_> {
        Permissions(&self.0)
    }

    /// Questions of tools to the user.
    #[must_use]
    pub fn questions(&self) -> Questions<'_> {
        Questions(&self.0)
    }

    /// The model catalog, credentials and sign-ins.
    #[must_use]
    pub fn providers(&self) -> Providers<'_> {
        Providers(&self.0)
    }

    /// The MCP servers of directories.
    #[must_use]
    pub fn mcp(&self) -> Mcp<'_> {
        Mcp(&self.0)
    }

    /// The packages that the key `plugin` names.
    #[must_use]
    pub fn packages(&self) -> Packages<'_> {
        Packages(&self.0)
    }

    /// The plugins and tool files of directories.
    #[must_use]
    pub fn extensions(&self) -> Extensions<'_> {
        Extensions(&self.0)
    }

    /// Returns the language servers of directories.
    #[must_use]
    pub fn lsp(&self) -> Lsp<'_> {
        Lsp(&self.0)
    }

    /// Open directories and their agents.
    #[must_use]
    pub fn instances(&self) -> Instances<'_> {
        Instances(&self.0)
    }

    /// Projects.
    #[must_use]
    pub fn projects(&self) -> Projects<'_> {
        Projects(&self.0)
    }

    /// The worktrees of projects.
    #[must_use]
    pub fn worktrees(&self) -> Worktrees<'_> {
        Worktrees(&self.0)
    }

    /// Pseudo-terminals.
    #[must_use]
    pub fn terminals(&self) -> Terminals<'_> {
        Terminals(&self.0)
    }

    /// Which directories the user trusts.
    #[must_use]
    pub fn trust(&self) -> Trust<'_> {
        Trust(&self.0)
    }

    /// Changes of the configuration.
    #[must_use]
    pub fn settings(&self) -> Settings<'_> {
        Settings(&self.0)
    }

    /// Import and export of sessions.
    #[must_use]
    pub fn transfer(&self) -> Transfer<'_> {
        Transfer(&self.0)
    }

    /// Reads and writes the files of a session through the documents of the user's editor, or no longer.
    pub fn set_documents(&self, session: &SessionId, documents: Option<Arc<dyn Documents>>) {
        self.0.documents.set(session, documents);
    }

    /// This server among others that share its store.
    #[must_use]
    pub fn nodes(&self) -> Nodes<'_> {
        Nodes(&self.0)
    }

    /// Usage, quotas and the audit log of a server with several users.
    #[must_use]
    pub fn users(&self) -> Users<'_> {
        Users(&self.0)
    }

    /// The log file.
    #[must_use]
    pub fn log(&self) -> Log<'_> {
        Log(&self.0)
    }
}

async fn recover_sessions(inner: &Inner) -> Result<(), Error> {
    let filter = SessionFilter { limit: Some(RECOVERED), ..SessionFilter::default() };
    for session in inner.store.sessions(filter).await? {
        let newest = inner.store.messages(&session.id, Some(RECOVERED_MESSAGES)).await?;
        if !newest.iter().any(recover::is_open) {
            continue;
        }
        // The owner of that session repairs it.
        if let Claim::Held(mut lease) = inner.store.lease(&session.id).await? {
            recover::recover(inner, &lease, Aftermath::Ends).await?;
            lease.release(u64::MAX).await?;
        }
    }
    Ok(())
}

/// Returns the check of permissions.
fn gate(store: &codewright_store::Store, ids: &Ids, clock: &Clock, dirs: &Dirs, env: &Env) -> Gate {
    let own = own_directories(dirs, env);
    Gate::new(store.clone(), ids.clone(), clock.clone(), own, Decisive::new(env, dirs))
}

/// Returns the directories of the program, whose files decide its behaviour.
fn own_directories(dirs: &Dirs, env: &Env) -> Vec<PathBuf> {
    let own = [&dirs.config, &dirs.own_config, &dirs.data, &dirs.state, &dirs.cache, &dirs.opencode_data];
    let named = env.filled(codewright_config::env::CONFIG_DIR).map(PathBuf::from);
    own.into_iter().cloned().chain(named.filter(|path| path.is_absolute())).collect()
}

/// Returns the variables that are set for the commands of every directory and those that are removed.
fn child_environment(env: &Env, database: &Database) -> Environment {
    let set = [("AGENT", "1"), ("OPENCODE", "1"), ("CODEWRIGHT", "1")];
    Environment {
        set: set.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        // A server that was started by a command of another server must not pass on that server's process id.
        remove: env
            .child_removals()
            .into_iter()
            .chain(["OPENCODE_PID"])
            .chain(database.secret_variables().iter().copied())
            .map(str::to_owned)
            .collect(),
    }
}

/// Returns a path with the links of its existing part resolved.
fn resolved(path: &Path) -> PathBuf {
    let mut existing = path.ancestors().filter_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = existing.next() else { return path.to_owned() };
    match path.strip_prefix(above) {
        Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
        _ => real,
    }
}
