//! The import of all sessions of another installation.
//!
//! The database is read from a copy. Each session is a separate import: if one fails, it is named and the
//! others continue. After an interruption the next import continues where this one ended.

use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use codewright_proto::{MessageWithParts, Project, ProjectId, ProjectTime, Session, SessionId, Todo};
use codewright_store::{Foreign, ForeignRow};
use serde::Deserialize as _;
use serde_json::Value;

pub use super::merge::Mode;

use super::Outcome;
use super::item::{Reader, Strictness, repair_session};
use super::merge::{self, Incoming, Messages};
use super::provenance::Rest;
use crate::Error;
use crate::inner::Inner;

/// The most skipped sessions that are named.
const MAX_NAMED: usize = 1_000;
/// The most notes that are kept.
const MAX_NOTES: usize = 1_000;
/// The size of messages and parts that are read at once. One message may be larger.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// The result of importing an installation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of created sessions.
    pub imported: usize,
    /// The number of sessions that got new items.
    pub updated: usize,
    /// The number of sessions without a change.
    pub unchanged: usize,
    /// The number of sessions that were kept unchanged or could not be read.
    pub skipped: usize,
    /// The named skipped sessions with their reasons.
    pub named: Vec<(String, String)>,
    /// Items that were kept unchanged or not read.
    pub notes: Vec<String>,
}

/// A shared database connection, used by one blocking task at a time.
#[derive(Clone)]
struct Shared(Arc<Mutex<Foreign>>);

impl Shared {
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Foreign) -> Result<T, codewright_store::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = Arc::clone(&self.0);
        let asking = tokio::task::spawn_blocking(move || {
            // The database is only read, so a panic leaves no unfinished change.
            ask(&shared.lock().unwrap_or_else(PoisonError::into_inner))
        });
        let answer = asking
            .await
            .map_err(|error| Error::invalid(format!("reading the installation failed: {error}")))?;
        Ok(answer?)
    }
}

pub(super) async fn import(
    inner: &Inner,
    database: &Path,
    mode: Mode,
    mut progress: impl FnMut(usize, usize),
) -> Result<Summary, Error> {
    let (path, scratch) = (database.to_owned(), inner.dirs.data.clone());
    let opening = tokio::task::spawn_blocking(move || Foreign::open(&path, &scratch));
    let foreign = opening
        .await
        .map_err(|error| Error::invalid(format!("reading `{}` failed: {error}", database.display())))??;
    let foreign = Shared(Arc::new(Mutex::new(foreign)));
    let mut summary = Summary { notes: foreign.ask(Foreign::oddities).await?, ..Summary::default() };
    let ids = foreign.ask(Foreign::sessions).await?;
    let mut projects = Projects::open(inner, &foreign).await?;
    let count = ids.len();
    for (n, id) in ids.into_iter().enumerate() {
        progress(n, count);
        let outcome = one(inner, &foreign, &mut projects, &id, mode).await;
        match outcome {
            Ok((outcome, notes)) => summary.add(&id, &outcome, notes),
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => summary.skip(&id, &with_causes(&error)),
        }
    }
    progress(count, count);
    Ok(summary)
}

/// Returns whether the next session would fail for the same reason.
fn is_fatal(error: &Error) -> bool {
    use codewright_store::Error as Store;
    matches!(
        error,
        Error::Store(
            Store::Closed
                | Store::Busy { .. }
                | Store::Unwritable { .. }
                | Store::Full { .. }
                | Store::Corrupt { .. }
        )
    )
}

impl Summary {
    fn add(&mut self, id: &str, outcome: &Outcome, notes: Vec<String>) {
        match outcome {
            Outcome::Imported => self.imported += 1,
            Outcome::Updated => self.updated += 1,
            Outcome::Unchanged => self.unchanged += 1,
            Outcome::Kept(reason) => self.skip(id, reason),
        }
        for note in notes {
            if self.notes.len() < MAX_NOTES {
                self.notes.push(format!("{id}: {note}"));
            }
        }
    }

    fn skip(&mut self, id: &str, reason: &str) {
        self.skipped += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push((id.to_owned(), reason.to_owned()));
        }
    }
}

async fn one(
    inner: &Inner,
    foreign: &Shared,
    projects: &mut Projects,
    id: &str,
    mode: Mode,
) -> Result<(Outcome, Vec<String>), Error> {
    let session = SessionId::parse(id).map_err(|error| Error::invalid(error.to_string()))?;
    let asked = id.to_owned();
    let (value, todos, fingerprint) = foreign
        .ask(move |foreign| {
            Ok((foreign.session(&asked)?, foreign.todos(&asked)?, foreign.fingerprint(&asked)?))
        })
        .await?;
    let mut value = value.ok_or_else(|| Error::invalid("the session no longer exists"))?;
    repair_session(&mut value);
    let mut reader = Reader::new(session.clone(), Strictness::Lenient);
    let info = reader.session(&value).map_err(|wrong| Error::invalid(wrong.reason))?;
    projects.know(inner, &info, mode).await?;
    let todos = todos.iter().filter_map(|todo| Todo::deserialize(todo).ok()).collect();
    let messages = Rows::new(foreign.clone(), session, value);
    let mut incoming = Incoming { info, todos: Some(todos), fingerprint, is_live: true, messages };
    let outcome = merge::merge(inner, &mut incoming, mode).await?;
    Ok((outcome, incoming.messages.notes))
}

/// The messages of one session of an installation.
struct Rows {
    foreign: Shared,
    session: SessionId,
    info: Value,
    page: VecDeque<(ForeignRow, Vec<ForeignRow>)>,
    last: Option<(u64, String)>,
    is_over: bool,
    reader: Reader,
    notes: Vec<String>,
}

impl Rows {
    fn new(foreign: Shared, session: SessionId, info: Value) -> Self {
        let reader = Reader::new(session.clone(), Strictness::Lenient);
        let mut rows = Self {
            foreign,
            session,
            info,
            page: VecDeque::new(),
            last: None,
            is_over: false,
            reader,
            notes: Vec::new(),
        };
        rows.rewind();
        rows
    }

    async fn fetch(&mut self) -> Result<(), Error> {
        let (session, last) = (self.session.to_string(), self.last.clone());
        let page = self
            .foreign
            .ask(move |foreign| {
                let last = last.as_ref().map(|(time, id)| (*time, id.as_str()));
                let mut page = VecDeque::new();
                let mut bytes = 0;
                for message in foreign.messages(&session, last)? {
                    if bytes > PAGE_BYTES {
                        break;
                    }
                    let parts = foreign.parts(&session, &message.id)?;
                    bytes += message.bytes + parts.iter().map(|part| part.bytes).sum::<usize>();
                    page.push_back((message, parts));
                }
                Ok(page)
            })
            .await?;
        self.last = page.back().map(|(message, _)| (message.time_created, message.id.clone()));
        self.is_over = page.is_empty();
        self.page = page;
        Ok(())
    }
}

impl Messages for Rows {
    fn rewind(&mut self) {
        self.page.clear();
        self.last = None;
        self.is_over = false;
        self.reader = Reader::new(self.session.clone(), Strictness::Lenient);
        // It was read without an error before.
        drop(self.reader.session(&self.info));
    }

    async fn next(&mut self) -> Result<Option<MessageWithParts>, Error> {
        loop {
            let Some((mut row, parts)) = self.page.pop_front() else {
                if self.is_over {
                    return Ok(None);
                }
                self.fetch().await?;
                continue;
            };
            if let Some(fields) = row.value.as_object_mut() {
                fields.entry("time").or_insert_with(|| serde_json::json!({ "created": row.time_created }));
            }
            let parts = parts.into_iter().map(|part| part.value).collect();
            match self.reader.message(row.value, parts, &row.id) {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
                Err(wrong) => return Err(Error::invalid(format!("`{}`: {}", wrong.at, wrong.reason))),
            }
        }
    }

    fn take_rest(&mut self) -> Rest {
        let reader = Reader::new(self.session.clone(), Strictness::Lenient);
        let (rest, notes) = std::mem::replace(&mut self.reader, reader).into_rest();
        self.notes = notes;
        rest
    }
}

/// The stored projects, and those of the installation.
struct Projects {
    known: HashSet<ProjectId>,
    theirs: Vec<Value>,
}

impl Projects {
    async fn open(inner: &Inner, foreign: &Shared) -> Result<Self, Error> {
        let known = inner.store.projects().await?.into_iter().map(|project| project.id).collect();
        Ok(Self { known, theirs: foreign.ask(Foreign::projects).await? })
    }

    /// Stores a session's project if it is not stored yet.
    async fn know(&mut self, inner: &Inner, session: &Session, mode: Mode) -> Result<(), Error> {
        let id = &session.project_id;
        if mode == Mode::DryRun || self.known.contains(id) {
            return Ok(());
        }
        let theirs = self.theirs.iter().find(|project| project["id"] == id.as_str());
        let mut project = Project {
            id: id.clone(),
            worktree: session.directory.clone(),
            vcs: None,
            name: None,
            icon: None,
            commands: None,
            time: ProjectTime {
                created: session.time.created,
                updated: session.time.updated,
                initialized: None,
            },
            sandboxes: Vec::new(),
        };
        if let Some(theirs) = theirs {
            let text = |key: &str| theirs[key].as_str().map(str::to_owned);
            project.worktree = text("worktree").unwrap_or(project.worktree);
            project.vcs = text("vcs");
            project.name = text("name");
            project.icon = theirs["icon"].as_object().cloned();
            project.commands = theirs["commands"].as_object().cloned();
            project.time = ProjectTime::deserialize(&theirs["time"]).unwrap_or(project.time);
            project.sandboxes = Vec::deserialize(&theirs["sandboxes"]).unwrap_or_default();
        }
        inner.store.save_project(project).await?;
        self.known.insert(id.clone());
        Ok(())
    }
}

/// Returns the error with its causes, in one line.
fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
