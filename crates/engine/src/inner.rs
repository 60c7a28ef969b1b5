//! The state of an engine, shared by all operations.
//!
//! Each field is a table or a service that does not know this struct. Operations are functions that borrow it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use codewright_config::{Dirs, Env, SandboxMode, Worktree};
use codewright_llm::oauth::SignIn;
use codewright_proto::{
    Clock, Event, Ids, MessageId, MessageWithParts, Project, ProjectId, Session, SessionId, Signal,
};
use codewright_store::{Condition, SessionFilter, Store};
use codewright_telemetry::Tracer;
use codewright_tools::{Environment, FileLocks, Jobs, SearchEngine, Web};
use codewright_workspace::{Confinement, Probe};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Error;
use crate::acp::AcpTable;
use crate::attempt::Attempts;
use crate::credential::SignIns;
use crate::documents::DocumentTable;
use crate::error::Resource;
use crate::extension::ExtensionTable;
use crate::hosts::table::Hosts;
use crate::instance::cache::Instances;
use crate::instance::{self, Instance, Opening};
use crate::journal::Journal;
use crate::known::SessionFiles;
use crate::lsp::LspTable;
use crate::mcp::McpTable;
use crate::models::source::Source;
use crate::nodes::NodeState;
use crate::outputs::Outputs;
use crate::packages::PackageTable;
use crate::permission::gate::Gate;
use crate::plugins::PluginTable;
use crate::pty::Terminals;
use crate::question::Questions;
use crate::run::table::{Entry, Runs};
use crate::session::locks::SessionLocks;
use crate::session::row_locks::RowLocks;
use crate::subagent::table::Subagents;
use crate::toolbox::Toolbox;
use crate::trust::TrustState;
use crate::users::QuotaState;
use crate::worktrees::WorktreeState;
use crate::zone::Zone;

/// The number of attempts to change a session that other processes change too.
const UPDATE_ATTEMPTS: u32 = 100;

pub(crate) struct Inner {
    pub(crate) store: Store,
    /// Where the store is.
    pub(crate) database: crate::database::Database,
    pub(crate) llm: codewright_llm::Client,
    pub(crate) web: Arc<dyn Web>,
    pub(crate) sign_in: SignIn,
    pub(crate) sign_ins: SignIns,
    pub(crate) attempts: Attempts,
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
    pub(crate) zone: Zone,
    pub(crate) env: Env,
    pub(crate) dirs: Dirs,
    pub(crate) version: &'static str,
    pub(crate) runs: Runs,
    pub(crate) session_locks: SessionLocks,
    pub(crate) gate: Gate,
    pub(crate) questions: Questions,
    pub(crate) trust: TrustState,
    pub(crate) subagents: Subagents,
    pub(crate) toolbox: Toolbox,
    pub(crate) search: SearchEngine,
    pub(crate) locks: FileLocks,
    pub(crate) journal: Arc<Journal>,
    pub(crate) tracer: Tracer,
    /// Why telemetry is off although it was configured.
    pub(crate) disabled_telemetry: Option<String>,
    pub(crate) known: SessionFiles,
    pub(crate) jobs: Jobs,
    pub(crate) documents: DocumentTable,
    pub(crate) hosts: Hosts,
    pub(crate) mcp: McpTable,
    pub(crate) lsp: LspTable,
    pub(crate) acp: AcpTable,
    pub(crate) extensions: ExtensionTable,
    pub(crate) packages: PackageTable,
    pub(crate) plugins: PluginTable,
    pub(crate) catalog: Source,
    pub(crate) child_env: Environment,
    pub(crate) shell: PathBuf,
    pub(crate) confinement: Confinement,
    /// The mode of the sandbox that the command line names.
    pub(crate) sandbox_mode: OnceLock<SandboxMode>,
    /// What this machine can enforce. Empty until the first command.
    pub(crate) sandbox_probe: tokio::sync::OnceCell<Probe>,
    pub(crate) outputs: Outputs,
    pub(crate) terminals: Terminals,
    pub(crate) worktrees: WorktreeState,
    pub(crate) cancel: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) directory: PathBuf,
    pub(crate) instances: Instances,
    /// This process as one of several servers.
    pub(crate) nodes: NodeState,
    /// Orders the changes of a session row in this process.
    pub(crate) row_locks: RowLocks,
    pub(crate) quotas: QuotaState,
    /// Starts a run. A field because the calls of a run can start the runs of subagents.
    pub(crate) start_run: fn(&Arc<Self>, Entry),
}

/// A directory with its present project.
struct Home<'a> {
    directory: &'a Path,
    worktree: &'a Worktree,
    project: &'a ProjectId,
}

impl Inner {
    /// Returns the variables of the commands of a directory.
    pub(crate) fn child_environment(&self, instance: &Instance) -> Environment {
        let mut environment = self.child_env.clone();
        environment.remove.extend(instance.removed_variables.iter().cloned());
        environment
    }

    pub(crate) async fn session(&self, id: &SessionId) -> Result<Session, Error> {
        self.store.session(id).await?.ok_or_else(|| Error::not_found(Resource::Session, id))
    }

    /// Reads, changes and stores a session atomically across processes.
    pub(crate) async fn update_session(
        &self,
        id: &SessionId,
        change: impl Fn(&mut Session),
    ) -> Result<Session, Error> {
        let updated = self.update_session_around(id, [Vec::new(), Vec::new()], None, change).await?;
        updated.ok_or_else(|| Error::not_found(Resource::Session, id))
    }

    /// Stores other events and then a changed session in one append.
    pub(crate) async fn update_session_after(
        &self,
        id: &SessionId,
        events: Vec<Event>,
        change: impl Fn(&mut Session),
    ) -> Result<Session, Error> {
        let updated = self.update_session_around(id, [events, Vec::new()], None, change).await?;
        updated.ok_or_else(|| Error::not_found(Resource::Session, id))
    }

    /// Stores a changed session and then other events in one append, unless it has the message `new` already. Returns
    /// whether they were stored. Only an id that a client has chosen can exist already.
    pub(crate) async fn update_session_before(
        &self,
        id: &SessionId,
        events: Vec<Event>,
        new: Option<&MessageId>,
        change: impl Fn(&mut Session),
    ) -> Result<bool, Error> {
        let updated = self.update_session_around(id, [Vec::new(), events], new, change).await?;
        Ok(updated.is_some())
    }

    /// Lets the clock go on after a message of a transcript, whose time may be that of a clock that was ahead. Messages are in
    /// the order of their times.
    pub(crate) fn continue_after(&self, newest: Option<&MessageWithParts>) {
        if let Some(newest) = newest {
            self.clock.raise(newest.info.created().saturating_add(1));
        }
    }

    /// Returns `None` if the session has the message `new`.
    async fn update_session_around(
        &self,
        id: &SessionId,
        [before, after]: [Vec<Event>; 2],
        new: Option<&MessageId>,
        change: impl Fn(&mut Session),
    ) -> Result<Option<Session>, Error> {
        let _lock = self.row_locks.lock(id).await;
        let mut attempt = 1;
        loop {
            let found = self.store.session_at(id).await?;
            let (seq, mut info) = found.ok_or_else(|| Error::not_found(Resource::Session, id))?;
            // Who stores a prompt changes the session too, so the condition below covers what is read here.
            if let Some(new) = new
                && self.store.message(id, new).await?.is_some()
            {
                return Ok(None);
            }
            change(&mut info);
            let mut events = before.clone();
            events.push(Event::SessionUpdated { session_id: id.clone(), info: info.clone() });
            events.extend(after.iter().cloned());
            let unchanged = Condition::RowUntouched { session: id.clone(), seq };
            match self.store.append_if(unchanged, events).await {
                Ok(_) => return Ok(Some(info)),
                // Another process was faster, so its version is read and changed.
                Err(codewright_store::Error::Conflict { .. }) if attempt < UPDATE_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the instance of a directory. The first caller opens it, and other callers for the same directory wait.
    pub(crate) async fn instance(&self, directory: &Path) -> Result<Arc<Instance>, Error> {
        let instance = self.instances.get(&self.opening(), directory).await?;
        if !instance.has_adopted.initialized() {
            let (directory, worktree) = (instance.directory.as_path(), &instance.worktree);
            let home = Home { directory, worktree, project: &instance.project.id };
            let adopt = || Box::pin(self.adopt(home));
            if let Err(error) = instance.has_adopted.get_or_try_init(adopt).await {
                instance.warn(&format!("the earlier sessions of this directory cannot be listed: {error}"));
            }
        }
        Ok(instance)
    }

    /// Returns the project of a directory, which is not opened.
    pub(crate) async fn project_of(&self, directory: &Path) -> Result<Project, Error> {
        let worktree = codewright_config::find_worktree(directory);
        let project = instance::project(&self.opening(), &worktree).await?;
        let home = Home { directory, worktree: &worktree, project: &project.id };
        Box::pin(self.adopt(home)).await?;
        Ok(project)
    }

    /// Adopts the sessions of a directory tree that have another project: the id of a project is the first commit of its
    /// repository, so it changes with that commit, with a rewritten history, and when `.git` appears or disappears. Sessions
    /// belong to a directory and follow it.
    ///
    /// In a repository these are the sessions of its worktree, without those of nested repositories. Outside of one they are
    /// the sessions of exactly this directory.
    async fn adopt(&self, home: Home<'_>) -> Result<(), Error> {
        let mut filter = SessionFilter { outside: Some(home.project.clone()), ..SessionFilter::default() };
        if home.worktree.git {
            filter.below = Some(home.worktree.root.to_string_lossy().into_owned());
        } else {
            filter.directory = Some(home.directory.to_string_lossy().into_owned());
        }
        for session in self.store.sessions(filter).await? {
            // A nested repository has its own project.
            if codewright_config::find_worktree(Path::new(&session.directory)) == *home.worktree {
                self.update_session(&session.id, |session| session.project_id = home.project.clone()).await?;
            }
        }
        Ok(())
    }

    /// Returns the services for opening a directory.
    pub(crate) fn opening(&self) -> Opening<'_> {
        Opening {
            store: &self.store,
            llm: &self.llm,
            clock: &self.clock,
            env: &self.env,
            dirs: &self.dirs,
            sign_in: &self.sign_in,
            trust: &self.trust,
            catalog: &self.catalog,
            plugins: &self.plugins,
            tasks: &self.tasks,
        }
    }

    /// Opens directories again when they are next needed; callers that hold an instance keep it.
    pub(crate) async fn forget_instances(&self) {
        self.instances.forget_all().await;
    }

    /// Opens directories again after a credential was stored, changed or removed, and reports this to their clients.
    pub(crate) async fn credential_changed(&self, provider: &str) {
        let directories = self.instances.directories().await;
        self.forget_instances().await;
        for directory in directories {
            let integration_id = provider.to_owned();
            self.store.signal(Signal::IntegrationConnectionUpdated {
                directory: directory.clone(),
                integration_id,
            });
            self.store.signal(Signal::IntegrationUpdated { directory });
        }
    }

    /// Opens one directory again when it is next needed.
    pub(crate) async fn forget_instance(&self, directory: &Path) {
        self.instances.forget(directory).await;
    }
}
