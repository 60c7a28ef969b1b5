//! A server that is ready: its documents, and what it may and may not request.
//!
//! A server gets its configured settings and its root. It can neither change files nor show anything to the user.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use codewright_workspace::hold;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::connection::{Connection, Inbound};
use crate::diagnostic::{Published, Pulled, Store};
use crate::document::{Documents, MAX_DOCUMENT_BYTES, Sync};
use crate::error::{Failure, cut};
use crate::host::Host;
use crate::registered::{Registered, kind};
use crate::table::language;
use crate::uri;
use crate::watcher::Changes;

/// The time limit of a request for diagnostics.
const PULL_LIMIT: Duration = Duration::from_secs(60);
/// The events about diagnostics in a second.
const MAX_EVENTS: u32 = 50;
/// The lines of a server's messages that are logged.
const MAX_LOG_LINES: u32 = 200;
/// The files whose times are remembered.
const MAX_STAMPS: usize = 1000;
/// The related documents of an answer that are read.
const MAX_RELATED: usize = 200;

/// The time and size of a file.
type Stamp = (SystemTime, u64);
type Stamps = HashMap<PathBuf, Stamp>;

/// A ready server.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) capabilities: Value,
    documents: Mutex<Documents>,
    /// The time and size of open files when they were last read.
    stamps: Mutex<Stamps>,
    /// The files whose changes were reported, as they were then. Removed ones have no stamp.
    reported: Mutex<HashMap<PathBuf, Option<Stamp>>>,
    store: Arc<Store>,
    handler: Arc<Handler>,
}

/// The change of a file on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// It was created.
    Added,
    /// It has new content.
    Changed,
    /// It was removed.
    Removed,
}

impl Kind {
    /// The protocol's number.
    fn number(&self) -> u8 {
        match self {
            Self::Added => 1,
            Self::Changed => 2,
            Self::Removed => 3,
        }
    }
}

impl Session {
    pub(crate) fn new(connection: Connection, initialized: &RawValue, handler: Arc<Handler>) -> Self {
        let initialized: Value = serde_json::from_str(initialized.get()).unwrap_or_default();
        let capabilities = initialized["capabilities"].clone();
        let documents = Mutex::new(Documents::new(Sync::read(&capabilities)));
        let (stamps, reported) = (Mutex::default(), Mutex::default());
        let store = handler.store.clone();
        Self { connection, capabilities, documents, stamps, reported, store, handler }
    }

    /// The files that the server wants to hear about.
    pub(crate) fn registered(&self) -> &Registered {
        &self.handler.registered
    }

    pub(crate) fn documents(&self) -> MutexGuard<'_, Documents> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server has a capability, such as `hoverProvider`.
    pub(crate) fn can(&self, capability: &str) -> bool {
        !matches!(self.capabilities[capability], Value::Null | Value::Bool(false))
    }

    /// Opens a document, or sends its new text. Returns the version that the server has.
    pub(crate) fn put(&self, path: &Path, text: &str) -> Option<i64> {
        if text.len() > MAX_DOCUMENT_BYTES {
            return None;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // The lock is held while sending, so that the server gets the changes in their order.
        let mut documents = self.documents();
        for (method, params) in documents.put(path, text, language(&name)) {
            self.connection.notify(method, &params);
        }
        documents.version(path)
    }

    /// Reports a change on the disk.
    pub(crate) fn changed(&self, path: &Path, kind: &Kind) {
        if *kind == Kind::Removed {
            let closed = self.documents().close(path);
            if let Some((method, params)) = closed {
                self.connection.notify(method, &params);
            }
            self.store.put(path.to_owned(), Vec::new(), None);
        }
        self.remember(path);
        let changes = json!([{"uri": uri::of(path), "type": kind.number()}]);
        self.connection.notify("workspace/didChangeWatchedFiles", &json!({ "changes": changes }));
    }

    /// Reports changes on the disk that the server has registered for, and sends the new texts of open documents.
    pub(crate) async fn report(self: &Arc<Self>, changes: Changes) {
        let session = self.clone();
        let reporting = tokio::task::spawn_blocking(move || {
            let mut list = Vec::new();
            for (path, change) in changes.iter() {
                let kind = kind(*change);
                if session.documents().version(path).is_some() {
                    session.read_again(path);
                } else if session.registered().wants(path, &kind) && session.remember(path) {
                    list.push(json!({"uri": uri::of(path), "type": kind.number()}));
                }
            }
            if !list.is_empty() {
                session.connection.notify("workspace/didChangeWatchedFiles", &json!({ "changes": list }));
            }
        });
        drop(reporting.await);
    }

    /// Remembers the present state of a file. Returns `false` if it was reported already.
    fn remember(&self, path: &Path) -> bool {
        let now = stamp(path);
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() >= MAX_STAMPS {
            reported.clear();
        }
        reported.insert(path.to_owned(), now) != Some(now)
    }

    /// Sends the new texts of open documents that other programs changed, except `changed`, whose texts are known.
    pub(crate) async fn refresh(self: &Arc<Self>, changed: &[PathBuf]) {
        let mut paths = self.documents().paths();
        paths.retain(|path| !changed.contains(path));
        if paths.is_empty() {
            return;
        }
        let session = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            for path in paths {
                session.read_again(&path);
            }
        });
        drop(reading.await);
    }

    fn read_again(&self, path: &Path) {
        let Some(stamp) = stamp(path) else { return self.changed(path, &Kind::Removed) };
        {
            let mut stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
            if stamps.len() >= MAX_STAMPS {
                stamps.clear();
            }
            if stamps.insert(path.to_owned(), stamp) == Some(stamp) {
                return;
            }
        }
        let content = hold(path).and_then(|held| held.read(MAX_DOCUMENT_BYTES as u64));
        let Some(text) = content.ok().and_then(|content| String::from_utf8(content).ok()) else { return };
        let known = self.documents().version(path);
        if self.put(path, &text) != known {
            self.changed(path, &Kind::Changed);
        }
    }

    /// Requests the diagnostics of a document and stores them.
    pub(crate) async fn pull(&self, path: &Path) -> Result<(), Failure> {
        let params = json!({"textDocument": {"uri": uri::of(path)}});
        let answer = self.connection.request("textDocument/diagnostic", &params, PULL_LIMIT).await?;
        let pulled: Pulled = serde_json::from_str(answer.get()).map_err(|error| {
            Failure::Failed(cut(&format!("The server's diagnostics are damaged: {error}.")))
        })?;
        self.keep(path.to_owned(), pulled);
        Ok(())
    }

    fn keep(&self, path: PathBuf, pulled: Pulled) {
        let related = pulled.related.into_iter().take(MAX_RELATED);
        let related: Vec<_> =
            related.filter_map(|(uri, of)| Some((self.handler.own_path(&uri)?, of))).collect();
        for (path, of) in
            std::iter::once((path, Pulled { related: Default::default(), ..pulled })).chain(related)
        {
            if of.kind.as_deref() == Some("unchanged") {
                continue;
            }
            if self.store.put(path.clone(), of.items.0, None) {
                self.handler.report(&path);
            }
        }
    }
}

/// The time and size of a file, if it exists.
fn stamp(path: &Path) -> Option<Stamp> {
    path.symlink_metadata().ok().and_then(|file| Some((file.modified().ok()?, file.len())))
}

/// Answers the server.
pub(crate) struct Handler {
    pub(crate) server: String,
    pub(crate) root: PathBuf,
    /// The root of the project. Diagnostics of other files are ignored.
    pub(crate) project: PathBuf,
    pub(crate) settings: Option<Value>,
    pub(crate) store: Arc<Store>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) registered: Registered,
    pub(crate) rate: Mutex<Rate>,
}

/// How much a server has sent.
pub(crate) struct Rate {
    since: Instant,
    events: u32,
    lines: u32,
}

impl Default for Rate {
    fn default() -> Self {
        Self { since: Instant::now(), events: 0, lines: 0 }
    }
}

impl Handler {
    /// The path of an address, if it is in the project.
    pub(crate) fn own_path(&self, uri: &str) -> Option<PathBuf> {
        uri::path(uri).filter(|path| path.starts_with(&self.project) || path.starts_with(&self.root))
    }

    /// Logs a line of the server.
    pub(crate) fn log(&self, line: &str) {
        let lines = {
            let mut rate = self.rate();
            rate.lines = rate.lines.saturating_add(1);
            rate.lines
        };
        match lines.cmp(&MAX_LOG_LINES) {
            std::cmp::Ordering::Less => self.host.log(&self.server, &cut(line)),
            std::cmp::Ordering::Equal => {
                self.host.log(&self.server, "further messages of the server are not logged");
            }
            std::cmp::Ordering::Greater => {}
        }
    }

    /// Publishes that the diagnostics of a file changed, unless there are too many such events.
    fn report(&self, path: &Path) {
        let is_limited = {
            let mut rate = self.rate();
            if rate.since.elapsed() > Duration::from_secs(1) {
                *rate = Rate { lines: rate.lines, ..Rate::default() };
            }
            rate.events += 1;
            rate.events > MAX_EVENTS
        };
        if !is_limited {
            self.host.diagnosed(&self.server, path);
        }
    }

    fn rate(&self) -> MutexGuard<'_, Rate> {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The configured settings of a section, such as `python.analysis`. All settings of a program are an object, because
    /// some servers do not expect that there are none.
    fn section(&self, item: &Value) -> Value {
        let section = item["section"].as_str().unwrap_or_default();
        let settings = self.settings.as_ref().unwrap_or(&Value::Null);
        let parts = section.split('.').filter(|part| !part.is_empty());
        match parts.fold(settings, |settings, part| &settings[part]) {
            Value::Null if !section.contains('.') => json!({}),
            found => found.clone(),
        }
    }
}

impl Inbound for Handler {
    fn notified(&self, method: &str, params: &str) {
        match method {
            "textDocument/publishDiagnostics" => {
                let Ok(published) = serde_json::from_str::<Published>(params) else { return };
                let Some(path) = self.own_path(&published.uri) else { return };
                if self.store.put(path.clone(), published.diagnostics.0, published.version) {
                    self.report(&path);
                }
            }
            "window/logMessage" | "window/showMessage" => {
                #[derive(Deserialize)]
                struct Shown {
                    message: String,
                }
                if let Ok(shown) = serde_json::from_str::<Shown>(params) {
                    self.log(&shown.message);
                }
            }
            _ => {}
        }
    }

    fn requested(&self, method: &str, params: &str) -> Option<Value> {
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        Some(match method {
            "workspace/configuration" => {
                let items = params["items"].as_array().into_iter().flatten();
                items.map(|item| self.section(item)).collect()
            }
            "workspace/workspaceFolders" => folders(&self.root),
            "workspace/applyEdit" => {
                json!({"applied": false, "failureReason": "this client does not let servers change files"})
            }
            "window/showDocument" => json!({"success": false}),
            "client/registerCapability" => {
                if let Some(problem) = self.registered.add(&params, &self.root) {
                    self.log(&problem);
                }
                Value::Null
            }
            "client/unregisterCapability" => {
                self.registered.remove(&params);
                Value::Null
            }
            "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/diagnostic/refresh"
            | "workspace/semanticTokens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/codeLens/refresh" => Value::Null,
            _ => return None,
        })
    }
}

/// The list of workspace folders: the root.
pub(crate) fn folders(root: &Path) -> Value {
    json!([{"name": root.file_name().unwrap_or_default().to_string_lossy(), "uri": uri::of(root)}])
}
