//! The servers of a directory: which ones a file has, their status, and the diagnostics after a change.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_workspace::{ProgramSearch, hold};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::TaskTracker;

use crate::client::{Around, Client, PATIENCE, State};
use crate::config::{Missing, Spec};
use crate::diagnostic::{Counts, Diagnostic};
use crate::document::MAX_DOCUMENT_BYTES;
use crate::host::Host;
use crate::report::{Files, Report, join, report, summary};
use crate::session::Kind;
use crate::watcher::Watcher;

/// The number of servers of a directory, each with its processes.
const MAX_CLIENTS: usize = 24;
/// The files of one change that are shown to servers.
const MAX_CHANGES: usize = 50;
/// The tasks that wait for servers.
const MAX_TASKS: usize = 500;
/// The longest time until a server is ready to open a file in the background.
const READY_LIMIT: Duration = Duration::from_secs(90);
/// The time in which all servers end.
const CLOSE_LIMIT: Duration = Duration::from_secs(6);

/// The servers of a directory.
#[derive(Clone)]
pub struct Servers(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    around: Around,
    specs: Vec<Spec>,
    clients: Mutex<Table>,
}

/// A server in a root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    id: String,
    root: PathBuf,
}

/// The servers by id and root.
#[derive(Default)]
struct Table {
    clients: HashMap<Key, Arc<Client>>,
    /// The servers that cannot be started, with the reason.
    missing: HashMap<Key, Missing>,
    is_closed: bool,
}

/// The status of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its id.
    pub id: String,
    /// Its root.
    pub root: PathBuf,
    /// The reason why it does not work.
    pub error: Option<String>,
    /// Whether it is being installed. Then the error says so.
    pub is_installing: bool,
    /// The last diagnostics of all files.
    pub counts: Counts,
}

/// A changed file.
#[derive(Debug, Clone)]
pub struct Change {
    /// The path without links.
    pub path: PathBuf,
    /// The new content, if it is a text.
    pub text: Option<String>,
    /// The kind of change.
    pub kind: Kind,
}

impl Servers {
    /// The servers of a directory. None is started yet.
    #[must_use]
    pub fn new(host: Arc<dyn Host>, search: ProgramSearch, specs: Vec<Spec>) -> Self {
        let tasks = TaskTracker::new();
        let watcher = Arc::new(Watcher::new(host.watched(), tasks.clone()));
        let around = Around { search, host, watcher, tasks };
        Self(Arc::new(Shared { around, specs, clients: Mutex::default() }))
    }

    /// The configuration of the servers.
    #[must_use]
    pub fn specs(&self) -> &[Spec] {
        &self.0.specs
    }

    /// Whether a server is configured for files of this name.
    #[must_use]
    pub fn suits(&self, path: &Path) -> bool {
        self.0.specs.iter().any(|spec| spec.suits(path))
    }

    /// The status of the servers that were started or could not be.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        let table = self.0.lock();
        let started = table.clients.values().filter_map(|client| {
            let error = match client.state() {
                State::Idle | State::Starting => return None,
                State::Ready(_) => None,
                State::Restarting(reason) | State::Failed(reason) => Some(reason),
            };
            let (id, root) = (client.spec.id.clone(), client.root.clone());
            let counts = Counts::of(client.store.all().values().flat_map(|list| list.iter()));
            Some(Status { id, root, error, is_installing: false, counts })
        });
        let missing = table.missing.iter().filter_map(|(Key { id, root }, missing)| {
            let (text, is_installing) = match missing {
                Missing::Unneeded => return None,
                Missing::Installing(text) => (text, true),
                Missing::Problem(text) => (text, false),
            };
            let (id, root, error) = (id.clone(), root.clone(), Some(text.clone()));
            Some(Status { id, root, error, is_installing, counts: Counts::default() })
        });
        let mut statuses: Vec<_> = started.chain(missing).collect();
        statuses.sort_by(|a, b| (&a.id, &a.root).cmp(&(&b.id, &b.root)));
        statuses
    }

    /// Opens a file at its servers in the background, so that they are ready when it is changed.
    pub fn touch(&self, path: &Path) {
        if !self.suits(path) || self.0.around.tasks.len() >= MAX_TASKS {
            return;
        }
        let (servers, path) = (self.clone(), path.to_owned());
        self.0.around.tasks.spawn(async move {
            let Some((path, _)) = read(path).await else { return };
            for client in servers.clients(&path).await {
                let Ok(Ok(session)) = timeout(READY_LIMIT, client.session()).await else { continue };
                // An edit may have opened it meanwhile, with a newer text.
                if let Some((_, text)) = read(path.clone()).await
                    && session.documents().version(&path).is_none()
                {
                    session.put(&path, &text);
                }
            }
        });
    }

    /// Shows changed files to their servers and waits for the diagnostics, but not for long.
    pub async fn changed(&self, changes: Vec<Change>) -> Report {
        let changes = changes.into_iter().filter(|change| self.suits(&change.path)).take(MAX_CHANGES);
        let (removed, present): (Vec<_>, Vec<_>) = changes.partition(|change| change.kind == Kind::Removed);
        let known: Arc<[PathBuf]> = paths(removed.iter().chain(&present)).into();
        let before = self.diagnostics();
        let deadline = Instant::now() + PATIENCE;
        // A server that still knows removed files would report errors of them.
        self.show(&removed, &known, deadline).await;
        self.show(&present, &known, deadline).await;
        let mut after = self.diagnostics();
        for Change { path, .. } in &removed {
            after.remove(path);
        }
        report(&paths(&present), &before, &after)
    }

    /// Shows changed files to their servers and waits until the deadline. `known` are all files of the change.
    async fn show(&self, changes: &[Change], known: &Arc<[PathBuf]>, deadline: Instant) {
        let mut waiting = Vec::new();
        for change in changes {
            let clients = timeout_at(deadline, self.clients(&change.path)).await.unwrap_or_default();
            for client in clients {
                if self.0.around.tasks.len() >= MAX_TASKS {
                    continue;
                }
                let number = client.announce(&change.path);
                let checking = check(client.clone(), change.clone(), number, known.clone());
                waiting.push((client, self.0.around.tasks.spawn(checking)));
            }
        }
        for (client, checking) in waiting {
            wait(&client, checking, deadline).await;
        }
    }

    /// Finds the servers of a file, so that missing ones have a status or are installed.
    pub async fn prepare(&self, path: &Path) {
        if let Some((path, _)) = read(path.to_owned()).await {
            self.clients(&path).await;
        }
    }

    /// Starts the servers of a file and returns the diagnostics of all files that have some.
    pub async fn diagnostics_of(&self, path: &Path) -> BTreeMap<PathBuf, Vec<Diagnostic>> {
        let Some((path, text)) = read(path.to_owned()).await else { return BTreeMap::new() };
        for client in self.clients(&path).await {
            let number = client.announce(&path);
            drop(timeout(READY_LIMIT, client.diagnose(&path, &text, number)).await);
        }
        self.diagnostics().into_iter().filter(|(_, list)| !list.is_empty()).collect()
    }

    /// Starts the servers that could not be started before, if they can be now.
    pub async fn look_again(&self) {
        let servers = self.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let keys: Vec<Key> = servers.0.lock().missing.keys().cloned().collect();
            for key in keys {
                let spec = servers.0.specs.iter().find(|spec| spec.id == key.id);
                if let Some(client) = spec.and_then(|spec| servers.0.client(spec, &key)) {
                    client.wake();
                }
            }
        });
        drop(looking.await);
        self.0.around.host.updated();
    }

    /// The errors that servers reported last, as text for the model. `None` if no server has reported one.
    #[must_use]
    pub fn summary(&self) -> Option<String> {
        summary(&self.diagnostics())
    }

    /// The last diagnostics of all files.
    pub(crate) fn diagnostics(&self) -> Files {
        let clients: Vec<_> = self.0.lock().clients.values().cloned().collect();
        let mut files = Files::new();
        for client in clients {
            join(&mut files, client.store.all());
        }
        files
    }

    /// Ends all servers and waits until they are gone.
    pub async fn close(&self) {
        let clients = {
            let mut table = self.0.lock();
            table.is_closed = true;
            std::mem::take(&mut table.clients)
        };
        for client in clients.values() {
            client.stop();
        }
        self.0.around.tasks.close();
        drop(timeout(CLOSE_LIMIT, self.0.around.tasks.wait()).await);
    }

    /// The running servers.
    pub(crate) fn running(&self) -> Vec<Arc<Client>> {
        let mut clients: Vec<_> = self.0.lock().clients.values().cloned().collect();
        clients.retain(|client| {
            matches!(client.state(), State::Ready(_) | State::Starting | State::Restarting(_))
        });
        clients.sort_by(|a, b| (&a.spec.id, &a.root).cmp(&(&b.spec.id, &b.root)));
        clients
    }

    /// The directory that paths are shown relative to.
    pub(crate) fn root(&self) -> &Path {
        &self.0.around.search.directory
    }

    /// The servers of a file. They may not be started yet.
    pub(crate) async fn clients(&self, path: &Path) -> Vec<Arc<Client>> {
        let (servers, path) = (self.clone(), path.to_owned());
        let finding = tokio::task::spawn_blocking(move || servers.0.find(&path)).await;
        finding.unwrap_or_default()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds or creates the servers of a file. Reads directories.
    fn find(&self, path: &Path) -> Vec<Arc<Client>> {
        let mut found = Vec::new();
        for spec in self.specs.iter().filter(|spec| spec.suits(path)) {
            let Some(root) = spec.root(&self.around.search, path) else { continue };
            let key = Key { id: spec.id.clone(), root };
            let known = self.lock().clients.get(&key).cloned();
            if let Some(client) = known {
                found.push(client);
                continue;
            }
            found.extend(self.client(spec, &key));
        }
        found
    }

    /// Creates the client of a server, or records why it cannot be started. Reads directories.
    fn client(&self, spec: &Spec, key: &Key) -> Option<Arc<Client>> {
        let found = match spec.command(&self.around.search, &key.root, &*self.around.host) {
            Ok(_) => self.create(spec, key).map_err(Missing::Problem),
            Err(missing) => Err(missing),
        };
        found.map_err(|missing| self.report_missing(key, missing)).ok()
    }

    fn create(&self, spec: &Spec, key: &Key) -> Result<Arc<Client>, String> {
        let mut table = self.lock();
        table.missing.remove(key);
        if let Some(client) = table.clients.get(key) {
            return Ok(client.clone());
        }
        if table.is_closed {
            return Err("The directory was closed.".to_owned());
        }
        if table.clients.len() >= MAX_CLIENTS {
            // A server that is not running can be started again.
            let idle = table.clients.iter().find(|(_, client)| matches!(client.state(), State::Idle));
            let Some(idle) = idle.map(|(key, _)| key.clone()) else {
                return Err(format!("{MAX_CLIENTS} language servers run in this directory already."));
            };
            table.clients.remove(&idle);
        }
        let client = Client::new(spec.clone(), key.root.clone(), &self.around);
        let client = Arc::new(client);
        table.clients.insert(key.clone(), client.clone());
        Ok(client)
    }

    fn report_missing(&self, key: &Key, missing: Missing) {
        let is_new = {
            let mut table = self.lock();
            if missing == Missing::Unneeded {
                table.missing.remove(key);
                return;
            }
            let has_room = table.missing.len() < MAX_CLIENTS || table.missing.contains_key(key);
            has_room && table.missing.insert(key.clone(), missing.clone()).as_ref() != Some(&missing)
        };
        if let (true, Missing::Installing(text) | Missing::Problem(text)) = (is_new, &missing) {
            self.around.host.log(&key.id, text);
            self.around.host.updated();
        }
    }
}

fn paths<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Vec<PathBuf> {
    changes.into_iter().map(|change| change.path.clone()).collect()
}

/// Shows a changed file to a server and waits for its diagnostics.
async fn check(client: Arc<Client>, change: Change, number: u64, known: Arc<[PathBuf]>) {
    if let Ok(session) = client.session().await {
        session.refresh(&known).await;
        session.changed(&change.path, &change.kind);
    }
    if let (Some(text), Kind::Added | Kind::Changed) = (&change.text, &change.kind) {
        drop(client.diagnose(&change.path, text, number).await);
    }
}

/// Waits for a check. The check continues if it takes too long, so that the server gets the text.
async fn wait(client: &Arc<Client>, checking: JoinHandle<()>, deadline: Instant) {
    let deadline = deadline.min(Instant::now() + client.patience());
    match timeout_at(deadline, checking).await {
        Ok(_) => client.was_prompt(),
        Err(_) => client.was_late(),
    }
}

/// The real path and the text of a file, unless it is too large.
pub(crate) async fn read(path: PathBuf) -> Option<(PathBuf, String)> {
    let reading = tokio::task::spawn_blocking(move || {
        let held = hold(&path).ok()?;
        let content = held.read(MAX_DOCUMENT_BYTES as u64).ok()?;
        Some((held.place.real.clone(), String::from_utf8_lossy(&content).into_owned()))
    });
    reading.await.ok().flatten()
}
