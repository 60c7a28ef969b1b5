//! The directories that a command shares with this program: its private temporary directory and the caches.
//!
//! A directory in whose place something else is, such as a link or a directory of another user, is never used. The command
//! gets a new one instead, and its result says so.

use std::ffi::OsStr;
use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};

use codewright_config::{Dirs, Env, SandboxMode};
use codewright_workspace::{Directory, Error, make_private_directory};

use super::caches::{ALL, Caches, Owner};
use super::masked;

/// The directory of the private directories of sessions, in the state directory.
const SESSIONS: &str = "sandbox";
/// The age at which the temporary directory of a session is removed.
const TEMPORARY_DAYS: u64 = 7;
/// The largest number of temporary directories that are checked at once.
const MAX_SWEPT: usize = 1000;

/// The command that needs directories.
pub(super) struct Request<'a> {
    pub(super) dirs: &'a Dirs,
    pub(super) variables: &'a Env,
    pub(super) session: &'a str,
    pub(super) mode: SandboxMode,
    /// The project, which has its own caches.
    pub(super) root: &'a Path,
    /// Whether files are masked.
    pub(super) has_masks: bool,
}

/// The open directories of a command.
pub(super) struct Shared {
    pub(super) temporary: Directory,
    /// The caches of build tools. `None` if there is no space for them.
    pub(super) caches: Option<Caches>,
    /// The file that takes the place of masked ones, if there are any.
    pub(super) blank: Option<PathBuf>,
    /// What the model and the user have to know, as sentences.
    pub(super) notes: Vec<String>,
}

impl Shared {
    /// Opens the directories of a command. Creates what is missing.
    ///
    /// # Errors
    ///
    /// Fails if no private directory can be created. The command must then not run.
    pub(super) fn open(request: &Request<'_>) -> Result<Self, Error> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Path { path, source }
        };
        let state = &request.dirs.state;
        let top = open_or_create(state).map_err(at(state))?;
        let sessions = top.private_child(OsStr::new(SESSIONS)).map_err(at(&state.join(SESSIONS)))?;
        let mut notes = Vec::new();
        let temporary = temporary(&sessions, request.session, &mut notes);
        let temporary = temporary.map_err(at(&sessions.path().join(request.session)))?;
        let caches = caches(&top, &sessions, request, &mut notes);
        let blank = request.has_masks.then(|| sessions.blank_file(masked::blank()));
        let blank = blank.transpose().map_err(at(&sessions.path().join(masked::blank())))?;
        Ok(Self { temporary, caches, blank, notes })
    }
}

fn open_or_create(path: &Path) -> Result<Directory, IoError> {
    match Directory::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make_private_directory(path)?;
            Directory::open(path)
        }
        opened => opened,
    }
}

/// The private directory of a session.
fn temporary(sessions: &Directory, session: &str, notes: &mut Vec<String>) -> Result<Directory, IoError> {
    let name = OsStr::new(session);
    if matches!(sessions.status(name), Ok(None)) {
        sweep(sessions);
    }
    match sessions.private_child(name) {
        Ok(directory) => {
            // The age of the directory is that of its last use. Without it the directory is only removed earlier.
            directory.touch().unwrap_or_default();
            Ok(directory)
        }
        Err(error) => {
            let fresh = sessions.fresh_child(session);
            let fresh = fresh.map_err(|_| IoError::new(error.kind(), error.to_string()))?;
            notes.push(format!(
                "The private temporary directory of this session was not used: {}. The command had an empty one.",
                reason(&sessions.path().join(name), &error)
            ));
            Ok(fresh)
        }
    }
}

/// The caches of the project, or some that end with the session if the command must not write.
fn caches(
    top: &Directory,
    sessions: &Directory,
    request: &Request<'_>,
    notes: &mut Vec<String>,
) -> Option<Caches> {
    let (user, home, session) = (request.variables, &request.dirs.home, request.session);
    let opened = match request.mode {
        SandboxMode::ReadOnly => Caches::open(sessions, &Owner::Session(session), user, home),
        SandboxMode::Workspace | SandboxMode::Off => top
            .private_child(OsStr::new(ALL))
            .and_then(|all| Caches::open(&all, &Owner::Project(request.root), user, home)),
    };
    let error = match opened {
        Ok(caches) => return Some(caches),
        Err(error) => error,
    };
    let reason = match request.mode {
        SandboxMode::ReadOnly => reason(sessions.path(), &error),
        SandboxMode::Workspace | SandboxMode::Off => reason(&top.path().join(ALL), &error),
    };
    match Caches::fresh(sessions, session, user, home) {
        Ok(caches) => {
            notes.push(format!(
                "The caches of the sandbox were not used: {reason}. The command had empty ones."
            ));
            Some(caches)
        }
        Err(_) => {
            notes.push(format!("The command had no caches: {reason}."));
            None
        }
    }
}

/// The reason why a directory was not used, and what to do.
fn reason(path: &Path, error: &IoError) -> String {
    let path = path.display();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => format!("the disk of `{path}` is full"),
        ErrorKind::NotADirectory => {
            format!("something else has taken the place of a directory in `{path}`; remove it")
        }
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            format!("a symbolic link has taken the place of a directory in `{path}`; remove it")
        }
        _ => format!("`{path}` cannot be used ({error}); remove it"),
    }
}

/// Removes the directories of sessions that ran no command for a week.
fn sweep(sessions: &Directory) {
    for name in sessions.names(MAX_SWEPT).unwrap_or_default() {
        let modified = sessions.status(&name).ok().flatten().and_then(|status| status.modified);
        let age = modified.and_then(|modified| modified.elapsed().ok());
        if age.is_some_and(|age| age.as_secs() > TEMPORARY_DAYS * 24 * 60 * 60) {
            // What cannot be removed now is tried again later.
            drop(sessions.remove(&name));
        }
    }
}
