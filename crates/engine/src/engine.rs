//! The engine: one door in, one door out.
//!
//! Requests are its methods; facts come out of [`Engine::subscribe`]. It serves any
//! number of directories, each opened as a [`Instance`] when it is first needed.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codewright_config::{Dirs, Env};
use codewright_llm::oauth::SignIn;
use codewright_llm::vault::{Stamp, Stored};
use codewright_proto::{
    Clock, Envelope, Event, Ids, Message, MessageError, MessageId, MessageWithParts, PermissionAnswer,
    PermissionId, PermissionRequest, ProjectId, PromptInput, QuestionId, QuestionRequest, Session, SessionId,
    SessionInput, SessionStatus, Signal,
};
use codewright_store::{
    Claim, Condition, Incoming, Json, Logged, MessagesJson, PageLimit, Rest, Salvage, SavedPermission,
    SessionFilter, Store, Subscription,
};
use codewright_telemetry::Tracer;
use codewright_tools::{Environment, FileLocks, Jobs, SearchEngine, Web};
use codewright_workspace::Confinement;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::attempt::Attempts;
use crate::credential::{SignIns, sign_in};
use crate::error::Resource;
use crate::instance::Instance;
use crate::instance::head::{Following, Heads};
use crate::journal::Journal;
use crate::known::Known;
use crate::models::source::Source;
use crate::outputs::Outputs;
use crate::permission::gate::Gate;
use crate::pty::Terminals;
use crate::question::Questions;
use crate::request::system::civil;
use crate::run::{Runs, Turn, describe, recover, tell_idle};
use crate::session::doors::{Doors, Entered};
use crate::subagent::Subagents;
use crate::toolbox::Toolbox;
use crate::trust::TrustState;
use crate::web::Network;
use crate::{Error, admit, session, telemetry};

/// What a session is called until it has a title.
pub(crate) const DEFAULT_TITLE: &str = "New session - ";
/// Directories held open at once; the one used longest ago is put away for another.
const MAX_INSTANCES: usize = 64;
/// How long background work, such as naming a session, may hold up the end of the program.
const CLOSE_GRACE: Duration = Duration::from_secs(3);
/// How long a stopped turn may take to end before the caller is answered anyway.
const ABORT_WAIT: Duration = Duration::from_secs(10);

/// How often a change of a session is tried that other processes keep overtaking.
const UPDATE_ATTEMPTS: u32 = 100;

/// Sessions that are looked through for interrupted work when a server starts.
const RECOVERED: usize = 200;
/// Their newest messages: an open one is followed by prompts that waited for it at most.
const RECOVERED_MESSAGES: usize = 8;
/// How often a prompt that finds its session taken back again looks anew.
const LOOKS: usize = 8;

/// What an engine is made of.
#[derive(Debug)]
pub struct Options {
    /// The directory of requests that name none.
    pub directory: PathBuf,
    /// The program's environment.
    pub env: Env,
    /// Where things are.
    pub dirs: Dirs,
    /// The program version, stored with every session.
    pub version: &'static str,
    /// The time.
    pub clock: Clock,
    /// What holds commands together with all that they start.
    pub confinement: Confinement,
}

/// Sessions, and the loop that answers their prompts. Clones share everything.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

/// A directory that is open, or being opened.
type InstanceCell = Arc<tokio::sync::OnceCell<Arc<Instance>>>;

/// Credentials as they were when somebody last looked.
#[derive(Default)]
struct Seen {
    stamp: Option<Stamp>,
    stored: Stored,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) llm: codewright_llm::Client,
    pub(crate) web: Arc<dyn Web>,
    pub(crate) sign_in: SignIn,
    pub(crate) sign_ins: SignIns,
    pub(crate) attempts: Attempts,
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
    pub(crate) env: Env,
    pub(crate) dirs: Dirs,
    pub(crate) version: &'static str,
    pub(crate) runs: Runs,
    pub(crate) doors: Doors,
    pub(crate) gate: Gate,
    pub(crate) questions: Questions,
    pub(crate) trust: TrustState,
    pub(crate) subagents: Subagents,
    pub(crate) toolbox: Toolbox,
    pub(crate) search: SearchEngine,
    pub(crate) locks: FileLocks,
    pub(crate) journal: Arc<Journal>,
    pub(crate) tracer: Tracer,
    /// Why nothing is told although it was wanted.
    pub(crate) untold: Option<String>,
    pub(crate) known: Known,
    pub(crate) jobs: Jobs,
    pub(crate) catalog: Source,
    pub(crate) child_env: Environment,
    pub(crate) shell: PathBuf,
    pub(crate) confinement: Confinement,
    pub(crate) outputs: Outputs,
    pub(crate) terminals: Terminals,
    pub(crate) cancel: CancellationToken,
    pub(crate) tasks: TaskTracker,
    directory: PathBuf,
    heads: Arc<Heads>,
    instances: tokio::sync::Mutex<HashMap<PathBuf, (u64, InstanceCell)>>,
    /// The credentials that the instances were opened with.
    seen: Mutex<Seen>,
    /// Session rows are read, changed and written whole; one change at a time.
    pub(crate) sessions: tokio::sync::Mutex<()>,
}

impl Engine {
    /// Opens the store and makes everything ready; no directory is looked at yet.
    pub async fn open(options: Options) -> Result<Self, Error> {
        let Options { directory, env, mut dirs, version, clock, confinement } = options;
        // Rules are held against resolved paths, so those that name our own folders must be resolved too.
        dirs.data = resolved(&dirs.data);
        dirs.tmp = resolved(&dirs.tmp);
        // Tokens end by the machine's clock; what is recorded never goes back.
        let wall = clock;
        let clock = wall.steady();
        let ids = Ids::new(clock.clone());
        let store = Store::open(&dirs.data.join("codewright.db"), ids.clone(), clock.clone()).await?;
        let set = [("AGENT", "1".to_owned()), ("OPENCODE", "1".to_owned()), ("CODEWRIGHT", "1".to_owned())];
        let child_env = Environment {
            set: set.map(|(name, value)| (name.to_owned(), value)).into(),
            // A server that was started by another's command does not pass on the number of that one.
            remove: env.child_removals().into_iter().chain(["OPENCODE_PID"]).map(str::to_owned).collect(),
        };
        let shell =
            env.filled(codewright_config::env::SHELL).map_or_else(|| PathBuf::from("/bin/sh"), PathBuf::from);
        let outputs = Outputs::new(dirs.tool_output());
        let network = codewright_llm::Network { variables: env.of(codewright_config::env::NETWORK) };
        let search = SearchEngine {
            url: env.filled(codewright_config::env::EXA_URL).map(str::to_owned),
            key: env.filled(codewright_config::env::EXA_API_KEY).map(str::to_owned),
        };
        let toolbox = Toolbox::builtin(&env, civil(clock.now_ms()).0);
        let llm = codewright_llm::Client::with_network(network, &format!("codewright/{version}"))?;
        let (tracer, untold) = telemetry::open((&env, &dirs), &llm, (version, &clock));
        Ok(Self(Arc::new(Inner {
            tracer,
            untold,
            gate: Gate::new(store.clone(), (ids.clone(), clock.clone()), own_directories(&dirs, &env)),
            questions: Questions::new(store.clone(), ids.clone()),
            trust: TrustState::new(&env, &dirs),
            subagents: Subagents::default(),
            sign_in: sign_in(llm.clone(), &dirs, &env, &wall),
            sign_ins: SignIns::default(),
            attempts: Attempts::default(),
            web: Arc::new(Network(llm.clone())),
            llm,
            catalog: Source::new(&dirs),
            journal: Arc::new(Journal::new(&dirs.state)),
            store,
            ids,
            clock,
            toolbox,
            env,
            dirs,
            version,
            runs: Runs::default(),
            doors: Doors::default(),
            search,
            locks: FileLocks::default(),
            known: Known::default(),
            jobs: Jobs::default(),
            child_env,
            shell,
            confinement,
            outputs,
            terminals: Terminals::default(),
            cancel: CancellationToken::new(),
            tasks: TaskTracker::new(),
            directory,
            heads: Arc::default(),
            instances: tokio::sync::Mutex::default(),
            seen: Mutex::default(),
            sessions: tokio::sync::Mutex::default(),
        })))
    }

    /// The directory of requests that name none.
    #[must_use]
    pub fn default_directory(&self) -> &Path {
        &self.0.directory
    }

    /// The program version.
    #[must_use]
    pub fn version(&self) -> &str {
        self.0.version
    }

    /// A directory with its configuration, opened if it is not yet.
    pub async fn instance(&self, directory: &Path) -> Result<Arc<Instance>, Error> {
        self.0.instance(directory).await
    }

    /// Everything that happens from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.0.store.subscribe()
    }

    /// Has what only a follower of events is told watched, until the returned value is dropped.
    pub async fn follow(&self) -> Following {
        self.0.heads.follow(&self.0.store).await
    }

    /// Stored events after a position, oldest first.
    pub async fn events_after(&self, position: u64, limit: usize) -> Result<Vec<Envelope>, Error> {
        Ok(self.0.store.events(position, limit).await?)
    }

    /// Stored events of one session from a `seq` on, oldest first; fewer than `limit` where they are large,
    /// none only at the end.
    pub async fn events_of(
        &self,
        id: &SessionId,
        from_seq: u64,
        limit: usize,
    ) -> Result<Vec<Envelope>, Error> {
        Ok(self.0.store.events_of(id, from_seq, limit).await?)
    }

    /// The `seq` of the first of the last events of a session before `until_seq` that fit into `limit`.
    pub async fn seq_before(&self, id: &SessionId, until_seq: u64, limit: PageLimit) -> Result<u64, Error> {
        Ok(self.0.store.seq_before(id, until_seq, limit).await?)
    }

    /// The `seq` of the event by which a message came to be; none if it does not exist.
    pub async fn first_seq(&self, id: &SessionId, message: &MessageId) -> Result<Option<u64>, Error> {
        Ok(self.0.store.first_seq(id, message).await?)
    }

    /// A session as it was before an event of its log.
    pub async fn session_before(&self, id: &SessionId, until_seq: u64) -> Result<Option<Session>, Error> {
        Ok(self.0.store.session_before(id, until_seq).await?)
    }

    /// Makes a session in a directory.
    pub async fn create_session(
        &self,
        instance: &Arc<Instance>,
        input: SessionInput,
    ) -> Result<Session, Error> {
        if let Some(parent) = &input.parent_id {
            self.0.session(parent).await?;
        }
        session::create(&self.0, instance, input).await
    }

    /// Makes a session under an id that the client chose; one that is there already is left as it is.
    pub async fn create_session_as(
        &self,
        instance: &Arc<Instance>,
        id: SessionId,
        input: SessionInput,
    ) -> Result<Session, Error> {
        let _turn = self.0.sessions.lock().await;
        if let Some(known) = self.0.store.session(&id).await? {
            return Ok(known);
        }
        // What happened in a session that is gone must not be that of another one.
        if !self.0.store.events_of(&id, 0, 1).await?.is_empty() {
            return Err(Error::invalid(format!("`{id}` was the id of a session that has been deleted")));
        }
        session::create_as(&self.0, instance, (id, input)).await
    }

    /// One session.
    pub async fn session(&self, id: &SessionId) -> Result<Session, Error> {
        self.0.session(id).await
    }

    /// Sessions, the most recently changed first.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        Ok(self.0.store.sessions(filter).await?)
    }

    /// [`Engine::sessions`] as clients receive them.
    pub async fn sessions_json(&self, filter: SessionFilter) -> Result<Json, Error> {
        Ok(self.0.store.sessions_json(filter).await?)
    }

    /// The newest messages of a session, oldest first.
    pub async fn messages(
        &self,
        id: &SessionId,
        limit: Option<usize>,
    ) -> Result<Vec<MessageWithParts>, Error> {
        self.0.session(id).await?;
        Ok(self.0.store.messages(id, limit).await?)
    }

    /// The newest `limit` messages before one, or all, oldest first, as clients receive them.
    pub async fn messages_json(
        &self,
        id: &SessionId,
        limit: Option<usize>,
        before: Option<(u64, MessageId)>,
    ) -> Result<MessagesJson, Error> {
        let found = self.0.store.messages_json(id, limit, before).await?;
        found.ok_or_else(|| Error::not_found(Resource::Session, id))
    }

    /// The next piece of such a list, and where it goes on.
    pub async fn more_messages_json(&self, rest: Rest) -> Result<(Json, Option<Rest>), Error> {
        Ok(self.0.store.more_messages_json(rest).await?)
    }

    /// All messages of a session without their parts, oldest first.
    pub async fn infos(&self, id: &SessionId) -> Result<Vec<Message>, Error> {
        self.0.session(id).await?;
        Ok(self.0.store.infos(id).await?)
    }

    /// The newest `limit` messages before one, oldest first, and whether there are older ones.
    pub async fn messages_before(
        &self,
        id: &SessionId,
        limit: usize,
        before: Option<(u64, MessageId)>,
    ) -> Result<(Vec<MessageWithParts>, bool), Error> {
        self.0.session(id).await?;
        Ok(self.0.store.messages_before(id, limit, before).await?)
    }

    /// Takes over events of another store, in order; what is known is skipped.
    pub async fn replay_foreign(&self, events: Vec<Incoming>) -> Result<(), Error> {
        use codewright_store::Error as Refused;
        match self.0.store.replay_foreign(events).await {
            Ok(_) => Ok(()),
            Err(
                error @ (Refused::Gap { .. }
                | Refused::Invalid { .. }
                | Refused::Taken { .. }
                | Refused::Unknown { .. }
                | Refused::TooLarge { .. }
                | Refused::Unreadable { .. }),
            ) => Err(Error::invalid(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// The stored events behind those that are known, in order, a piece at a time.
    pub async fn history(&self, known: HashMap<String, u64>) -> Result<Vec<Logged>, Error> {
        Ok(self.0.store.history(known).await?)
    }

    /// Tells every reader what is true only now.
    pub fn signal(&self, signal: Signal) {
        self.0.store.signal(signal);
    }

    /// The names of the built-in tools, and for a model what it is told of each of those it is shown.
    #[must_use]
    pub fn tools(&self, model: Option<&str>) -> Vec<(String, String, serde_json::Value)> {
        self.0.toolbox.described(model)
    }

    /// What was saved of a damaged store when it was opened.
    #[must_use]
    pub fn salvage(&self) -> Option<&Salvage> {
        self.0.store.salvage()
    }

    /// One message.
    pub async fn message(&self, id: &SessionId, message: &MessageId) -> Result<MessageWithParts, Error> {
        let found = self.0.store.message(id, message).await?;
        found.ok_or_else(|| Error::not_found(Resource::Message, message))
    }

    /// Whether a session has a message.
    pub async fn has_message(&self, id: &SessionId, message: &MessageId) -> Result<bool, Error> {
        Ok(self.0.store.message(id, message).await?.is_some())
    }

    /// Admits a prompt and waits for the end of the turn; the last answer, or the prompt if none is wanted.
    pub async fn prompt(&self, id: &SessionId, input: PromptInput) -> Result<MessageWithParts, Error> {
        let (message, turn) = self.admit(id, input).await?;
        let Some(turn) = turn else { return self.message(id, &message).await };
        turn.ended().await;
        let transcript = self.0.store.transcript(id).await?;
        let answers = |message: &&MessageWithParts| matches!(message.info, Message::Assistant(_));
        let answer = transcript.iter().rev().find(answers);
        answer.cloned().ok_or_else(|| Error::not_found(Resource::Answer, &message))
    }

    /// Admits a prompt; the turn goes on by itself.
    pub async fn prompt_async(&self, id: &SessionId, input: PromptInput) -> Result<(), Error> {
        self.submit(id, input).await.map(drop)
    }

    /// The same; the message that the prompt became.
    pub async fn submit(&self, id: &SessionId, input: PromptInput) -> Result<MessageId, Error> {
        Ok(self.admit(id, input).await?.0)
    }

    /// Stops a session's turn, in whatever process, and waits until it has ended; none is no error.
    pub async fn abort(&self, id: &SessionId) -> Result<bool, Error> {
        let was_at_work = self.stop(id).await?;
        if !was_at_work && self.0.store.session(id).await?.is_some() && !self.0.runs.is_running(id) {
            // Whoever waits for the end of a turn hears that there is none.
            tell_idle(&self.0, id);
        }
        Ok(true)
    }

    /// What sessions do that are not idle.
    #[must_use]
    pub fn statuses(&self) -> BTreeMap<SessionId, SessionStatus> {
        self.0.runs.statuses().into_iter().collect()
    }

    /// The permission requests that wait for a user.
    pub async fn permissions(&self) -> Result<Vec<PermissionRequest>, Error> {
        self.0.gate.listed().await
    }

    /// Answers a permission request.
    pub async fn answer_permission(&self, id: &PermissionId, answer: PermissionAnswer) -> Result<(), Error> {
        self.0.gate.answer(id, answer).await
    }

    /// The approvals that users gave with "always", oldest first: those of a project, or all.
    pub async fn saved_permissions(&self, project: Option<ProjectId>) -> Result<Vec<SavedPermission>, Error> {
        self.0.gate.saved(project).await
    }

    /// Revokes a saved approval, for every process that works on the store; returns whether there was one.
    pub async fn revoke_permission(&self, id: &str) -> Result<bool, Error> {
        self.0.gate.revoke(id).await
    }

    /// The questions that wait for a user, oldest first.
    #[must_use]
    pub fn questions(&self) -> Vec<QuestionRequest> {
        self.0.questions.listed()
    }

    /// Answers a question: a list for each of its parts, in order.
    pub fn answer_question(&self, id: &QuestionId, answers: Vec<Vec<String>>) -> Result<(), Error> {
        self.0.questions.answer(id, answers)
    }

    /// Refuses a question; the turn that asked ends.
    pub fn reject_question(&self, id: &QuestionId) -> Result<(), Error> {
        self.0.questions.reject(id)
    }

    /// Fetches the newest model catalog; directories opened from now on see it.
    pub async fn refresh_models(&self) -> Result<(), Error> {
        self.0.catalog.refresh(&self.0).await
    }

    /// Fetches the model catalog once a day for as long as it is waited for; a failure changes nothing.
    pub async fn keep_models_fresh(&self) -> std::convert::Infallible {
        self.0.catalog.keep_fresh(&self.0).await
    }

    /// Ends, in the background, what processes that died left open in the sessions used last.
    ///
    /// Other sessions are looked at when they are next prompted.
    pub fn recover(&self) {
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

    /// Lets background work end for a moment, stops what is left and closes the store.
    pub async fn close(self) -> Result<(), Error> {
        self.0.tasks.close();
        self.0.jobs.close();
        // Titles may still arrive; whoever does not make it in time is cancelled.
        let _ = tokio::time::timeout(CLOSE_GRACE, self.0.tasks.wait()).await;
        self.0.cancel.cancel();
        // What does not end even now is left behind; the store is closed all the same.
        let _ = tokio::time::timeout(ABORT_WAIT, self.0.tasks.wait()).await;
        self.0.tell_the_rest().await;
        Ok(self.0.store.clone().close().await?)
    }

    pub(crate) async fn admit(
        &self,
        id: &SessionId,
        input: PromptInput,
    ) -> Result<(MessageId, Option<Turn>), Error> {
        let _entered = self.enter(id).await?;
        let session = self.0.session_in_use(id).await?;
        let wants_answer = input.no_reply != Some(true);
        let message = admit::admit(&self.0, &session, input).await?;
        Ok((message, wants_answer.then(|| self.0.runs.wake(&self.0, id))))
    }

    /// Goes into a session to add to it; what it was taken back by is gone then.
    pub(crate) async fn enter(&self, id: &SessionId) -> Result<Entered, Error> {
        for _ in 0..LOOKS {
            session::revert::clean_up(&self.0, id).await?;
            let entered = self.0.doors.enter(id).await?;
            // Between the two somebody may have taken it back again.
            if self.0.session(id).await?.revert.is_none() {
                return Ok(entered);
            }
        }
        Err(Error::busy(id))
    }

    /// Stops what a session does; whether it did anything.
    pub(crate) async fn stop(&self, id: &SessionId) -> Result<bool, Error> {
        // Downwards only: what works for a session ends with it, and never the other way.
        for child in self.0.subagents.silence(id) {
            Box::pin(self.stop(&child)).await?;
        }
        let turn = self.0.runs.cancel(id);
        let asked = self.0.store.ask_to_stop(id).await;
        let was_running = turn.is_some();
        // The turn was told to end; if it cannot, the caller need not wait for it.
        if let Some(turn) = turn {
            let _ = tokio::time::timeout(ABORT_WAIT, turn.ended()).await;
        }
        let asked = asked?;
        if asked {
            let free = tokio::time::timeout(ABORT_WAIT, self.0.store.wait_until_free(id)).await;
            free.unwrap_or(Ok(()))?;
        }
        Ok(asked || was_running)
    }
}

async fn recover_sessions(inner: &Inner) -> Result<(), Error> {
    let filter = SessionFilter { limit: Some(RECOVERED), ..SessionFilter::default() };
    for session in inner.store.sessions(filter).await? {
        let newest = inner.store.messages(&session.id, Some(RECOVERED_MESSAGES)).await?;
        if !newest.iter().any(recover::is_open) {
            continue;
        }
        // Whoever has the session sees to it.
        if let Claim::Held(mut lease) = inner.store.lease(&session.id).await? {
            recover::recover(inner, &lease).await?;
            lease.release(u64::MAX).await?;
        }
    }
    Ok(())
}

/// The directories of the program: what lies in them decides what it does next time.
fn own_directories(dirs: &Dirs, env: &Env) -> Vec<PathBuf> {
    let own = [&dirs.config, &dirs.own_config, &dirs.data, &dirs.state, &dirs.cache, &dirs.opencode_data];
    let named = env.filled(codewright_config::env::CONFIG_DIR).map(PathBuf::from);
    own.into_iter().cloned().chain(named.filter(|path| path.is_absolute())).collect()
}

/// The path with the links of its existing part followed.
fn resolved(path: &Path) -> PathBuf {
    let mut existing = path.ancestors().filter_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = existing.next() else { return path.to_owned() };
    match path.strip_prefix(above) {
        Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
        _ => real,
    }
}

impl Inner {
    pub(crate) async fn session(&self, id: &SessionId) -> Result<Session, Error> {
        self.store.session(id).await?.ok_or_else(|| Error::not_found(Resource::Session, id))
    }

    /// Reads, changes and stores a session, undisturbed by other changes in any process.
    pub(crate) async fn update_session(
        &self,
        id: &SessionId,
        change: impl Fn(&mut Session),
    ) -> Result<Session, Error> {
        self.update_session_after(id, Vec::new(), change).await
    }

    /// Stores other events and a changed session as one.
    pub(crate) async fn update_session_after(
        &self,
        id: &SessionId,
        events: Vec<Event>,
        change: impl Fn(&mut Session),
    ) -> Result<Session, Error> {
        let _turn = self.sessions.lock().await;
        let mut attempt = 1;
        loop {
            let found = self.store.session_at(id).await?;
            let (seq, mut info) = found.ok_or_else(|| Error::not_found(Resource::Session, id))?;
            change(&mut info);
            let mut events = events.clone();
            events.push(Event::SessionUpdated { session_id: id.clone(), info: info.clone() });
            let unchanged = Condition::RowUntouched { session: id.clone(), seq };
            match self.store.append_if(unchanged, events).await {
                Ok(_) => return Ok(info),
                // Another process was faster; what it stored is read and changed instead.
                Err(codewright_store::Error::Moved { .. }) if attempt < UPDATE_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Opened by the first who needs it; others wait for that directory only.
    pub(crate) async fn instance(&self, directory: &Path) -> Result<Arc<Instance>, Error> {
        self.notice_credentials().await;
        if self.trust.has_changed() {
            self.forget_instances().await;
        }
        let cell = self.instance_cell(directory).await;
        let open = async {
            // Rare and large: it must not take room in the future of everything that needs a directory.
            let instance = Box::pin(Instance::open(self, directory)).await?;
            self.heads.open(&instance).await;
            Ok(Arc::new(instance))
        };
        cell.get_or_try_init(|| open).await.cloned()
    }

    /// Opens directories anew when another process has signed in or out; two looks at files decide.
    async fn notice_credentials(&self) {
        let vault = self.sign_in.vault();
        let stamp = vault.stamp();
        if self.seen.lock().unwrap_or_else(PoisonError::into_inner).stamp == Some(stamp) {
            return;
        }
        // Whoever opens a directory says what is wrong with a file.
        let Ok(stored) = vault.read() else { return };
        let changed = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let is_first = seen.stamp.replace(stamp).is_none();
            let changed = !is_first && !seen.stored.is_like(&stored);
            seen.stored = stored;
            changed
        };
        if changed {
            self.forget_instances().await;
        }
    }

    /// Whether a client reads events, so that it can show a question.
    pub(crate) fn has_followers(&self) -> bool {
        self.heads.has_followers()
    }

    /// Opens directories anew from now on; whoever holds one keeps it as it was.
    pub(crate) async fn forget_instances(&self) {
        let mut instances = self.instances.lock().await;
        instances.clear();
        self.heads.put_all_away();
    }

    /// Opens one directory anew from now on.
    pub(crate) async fn forget_instance(&self, directory: &Path) {
        let mut instances = self.instances.lock().await;
        // It may have been named by other paths too.
        instances.retain(|named, cell| {
            let (_, cell) = cell;
            named != directory && cell.get().is_none_or(|instance| instance.directory != directory)
        });
        self.heads.put_away(&directory.to_string_lossy());
    }

    async fn instance_cell(&self, directory: &Path) -> InstanceCell {
        let mut instances = self.instances.lock().await;
        let now = self.clock.now_ms();
        if let Some((used, cell)) = instances.get_mut(directory) {
            *used = now;
            return cell.clone();
        }
        if instances.len() >= MAX_INSTANCES
            && let Some(oldest) =
                instances.iter().min_by_key(|(_, (used, _))| *used).map(|(path, _)| path.clone())
        {
            let put_away = instances.remove(&oldest);
            if let Some(instance) = put_away.as_ref().and_then(|(_, cell)| cell.get()) {
                self.heads.put_away(&instance.path().directory);
            }
        }
        let cell = InstanceCell::default();
        instances.insert(directory.to_owned(), (now, cell.clone()));
        cell
    }
}
