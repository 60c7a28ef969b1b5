//! Detects whether the owner of a session is alive, by a file lock that the system releases when a process ends.
//!
//! Each store that leases sessions has a small file in `locks/` next to the database. It is named after the process and
//! locked while the store is open. After a crash, even `kill -9`, the file is unlocked; another process then knows that
//! the owner is dead and removes the file. No clock is involved.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_proto::SessionId;
use tokio::sync::watch;

use crate::Error;
#[cfg(feature = "postgres")]
use crate::Member;

/// How often creating a lock file is repeated if another process removes the unfinished file.
const ATTEMPTS: u32 = 100;

/// How many files of dead processes are removed when a lock file is created.
const MAX_SWEPT: usize = 4096;

/// The extension of an unfinished lock file.
const UNFINISHED: &str = "new";

/// The owner of sessions in a store in memory, which no other process uses.
const IN_MEMORY: &str = "alone";

/// What shows other processes that an owner is alive.
enum Alive {
    /// The directory of the lock files.
    Files(PathBuf),
    /// Nothing here: the owner has this name, and is alone or has a row in the database.
    Named(String),
}

/// An open store as an owner of sessions.
pub(crate) struct Node {
    alive: Alive,
    state: Mutex<State>,
    /// Notified when the log may have grown, or the announcement has changed.
    #[cfg(feature = "postgres")]
    pub(crate) hint: Arc<tokio::sync::Notify>,
    /// Whether writes are not fenced, so that a test of a checker finds errors.
    #[cfg(feature = "postgres")]
    pub(crate) is_unfenced: bool,
}

#[derive(Default)]
struct State {
    /// This store's lock file, created when the first session is leased.
    locked: Option<Locked>,
    /// The sessions that this store leases.
    held: HashMap<SessionId, Held>,
    /// The sessions whose leases were dropped and whose rows still have this owner.
    dropped: Vec<(SessionId, u64)>,
    /// The sessions whose leases were requested from the database.
    #[cfg(feature = "postgres")]
    requested: Vec<SessionId>,
    /// What this process says about itself to other servers.
    #[cfg(feature = "postgres")]
    announced: Announced,
}

/// A request for leases. Ends when it is dropped.
#[cfg(feature = "postgres")]
pub(crate) struct Requested(Arc<Node>);

#[cfg(feature = "postgres")]
impl Drop for Requested {
    fn drop(&mut self) {
        self.0.lock().requested.clear();
    }
}

/// What a process says about itself to other servers.
#[cfg(feature = "postgres")]
#[derive(Default)]
struct Announced {
    member: Option<Member>,
    /// Whether it has changed since the last heartbeat.
    is_new: bool,
    /// Whether the leases were given up, so that nothing is written with them any more.
    is_sealed: bool,
}

struct Held {
    fence: u64,
    /// Sends stop requests of other processes.
    stop: watch::Sender<bool>,
}

struct Locked {
    name: String,
    path: PathBuf,
    /// Closing it releases the lock.
    _file: File,
}

impl Node {
    pub(crate) fn for_database(database: &Path) -> Self {
        Self::new(Alive::Files(database.with_file_name("locks")))
    }

    /// The error if the lock files cannot be used.
    pub(crate) fn unlockable(&self, source: io::Error) -> Error {
        let path = match &self.alive {
            Alive::Files(directory) => directory.clone(),
            Alive::Named(_) => PathBuf::new(),
        };
        Error::Unlockable { path, source: Arc::new(source) }
    }

    pub(crate) fn in_memory() -> Self {
        Self::new(Alive::Named(IN_MEMORY.to_owned()))
    }

    /// An owner whose row in a database shows that it is alive.
    #[cfg(feature = "postgres")]
    pub(crate) fn in_database(is_unfenced: bool) -> Self {
        Self { is_unfenced, ..Self::new(Alive::Named(own_name())) }
    }

    fn new(alive: Alive) -> Self {
        Self {
            alive,
            state: Mutex::default(),
            #[cfg(feature = "postgres")]
            hint: Arc::default(),
            #[cfg(feature = "postgres")]
            is_unfenced: false,
        }
    }

    /// Sets what this process says about itself, and has it published soon.
    #[cfg(feature = "postgres")]
    pub(crate) fn announce(&self, member: Member) {
        let mut state = self.lock();
        if state.announced.is_sealed || state.announced.member.as_ref() == Some(&member) {
            return;
        }
        state.announced.member = Some(member);
        state.announced.is_new = true;
        drop(state);
        self.hint.notify_one();
    }

    /// What this process says about itself, and whether that has changed since the last call.
    #[cfg(feature = "postgres")]
    pub(crate) fn announced(&self) -> (Option<Member>, bool) {
        let mut state = self.lock();
        let is_new = std::mem::take(&mut state.announced.is_new);
        (state.announced.member.clone(), is_new)
    }

    /// The same as JSON.
    #[cfg(feature = "postgres")]
    pub(crate) fn announced_json(&self) -> Option<String> {
        let state = self.lock();
        state.announced.member.as_ref().and_then(|member| serde_json::to_string(member).ok())
    }

    /// The name that later processes of the same server have too.
    #[cfg(feature = "postgres")]
    pub(crate) fn server(&self) -> Option<String> {
        self.lock().announced.member.as_ref().map(|member| member.name.clone())
    }

    /// Gives up the right to write to leased sessions, for good.
    #[cfg(feature = "postgres")]
    pub(crate) fn seal(&self) {
        self.lock().announced.is_sealed = true;
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn is_sealed(&self) -> bool {
        self.lock().announced.is_sealed
    }

    /// This store's name as an owner. The first call creates and locks the file.
    pub(crate) fn name(&self) -> io::Result<String> {
        let directory = match &self.alive {
            Alive::Files(directory) => directory,
            Alive::Named(name) => return Ok(name.clone()),
        };
        let mut state = self.lock();
        if let Some(locked) = &state.locked {
            return Ok(locked.name.clone());
        }
        let locked = create_lock_file(directory)?;
        let name = locked.name.clone();
        state.locked = Some(locked);
        drop(state);
        sweep(directory, &name);
        Ok(name)
    }

    /// This store's name, if it has leased a session before.
    pub(crate) fn existing_name(&self) -> Option<String> {
        match &self.alive {
            Alive::Named(name) => Some(name.clone()),
            Alive::Files(_) => self.lock().locked.as_ref().map(|locked| locked.name.clone()),
        }
    }

    /// Whether an owner's process is alive. Removes the file of a dead one.
    pub(crate) fn is_alive(&self, owner: &str) -> io::Result<bool> {
        let directory = match &self.alive {
            Alive::Files(directory) => directory,
            Alive::Named(name) => return Ok(owner == name),
        };
        if self.lock().locked.as_ref().is_some_and(|locked| locked.name == owner) {
            return Ok(true);
        }
        // The name is from a file that any program may have written.
        if owner.is_empty() || !owner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Ok(false);
        }
        is_locked(&directory.join(owner))
    }

    /// The fence with which this store leases a session, if it does.
    pub(crate) fn holds(&self, session: &SessionId) -> Option<u64> {
        self.lock().held.get(session).map(|held| held.fence)
    }

    /// Records a lease. The receiver gets stop requests of other processes.
    pub(crate) fn take(&self, session: &SessionId, fence: u64) -> watch::Receiver<bool> {
        let (stop, is_requested) = watch::channel(false);
        self.lock().held.insert(session.clone(), Held { fence, stop });
        is_requested
    }

    /// The sessions that this store leases, with their fences.
    #[cfg(feature = "postgres")]
    pub(crate) fn held(&self) -> Vec<(SessionId, u64)> {
        self.lock().held.iter().map(|(session, held)| (session.clone(), held.fence)).collect()
    }

    /// Records that leases are requested. There is one request at a time.
    #[cfg(feature = "postgres")]
    pub(crate) fn request(self: &Arc<Self>, sessions: &[SessionId]) -> Requested {
        self.lock().requested = sessions.to_vec();
        Requested(Arc::clone(self))
    }

    /// The sessions that this store leases or has requested, or has leased and not released yet.
    #[cfg(feature = "postgres")]
    pub(crate) fn known(&self) -> Vec<SessionId> {
        let state = self.lock();
        let dropped = state.dropped.iter().map(|(session, _)| session);
        state.held.keys().chain(dropped).chain(&state.requested).cloned().collect()
    }

    /// Whether this store leases any session.
    pub(crate) fn holds_any(&self) -> bool {
        !self.lock().held.is_empty()
    }

    /// Delivers a stop request to the lease with this fence.
    pub(crate) fn stop(&self, session: &SessionId, fence: u64) {
        if let Some(held) = self.lock().held.get(session)
            && held.fence == fence
        {
            held.stop.send_replace(true);
        }
    }

    /// Removes a lease that was released in the database.
    pub(crate) fn forget(&self, session: &SessionId, fence: u64) {
        let mut state = self.lock();
        if state.held.get(session).is_some_and(|held| held.fence == fence) {
            state.held.remove(session);
        }
    }

    /// Records that a lease was dropped, although the session's row still has this owner.
    pub(crate) fn abandon(&self, session: &SessionId, fence: u64) {
        let mut state = self.lock();
        if state.held.get(session).is_some_and(|held| held.fence == fence) {
            state.held.remove(session);
            state.dropped.push((session.clone(), fence));
        }
    }

    /// Returns and clears the abandoned sessions.
    pub(crate) fn take_abandoned(&self) -> Vec<(SessionId, u64)> {
        std::mem::take(&mut self.lock().dropped)
    }

    /// Puts abandoned sessions back that could not be released.
    pub(crate) fn put_back(&self, abandoned: Vec<(SessionId, u64)>) {
        self.lock().dropped.extend(abandoned);
    }

    /// Gives up all leases. Sessions whose rows still have this owner are free.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.held.clear();
        state.dropped.clear();
        drop(state.locked.take());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is one insertion or removal, so a poisoned state is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // If this fails, the next owner removes the file.
        drop(fs::remove_file(&self.path));
    }
}

/// The process id in an owner's name.
pub(crate) fn pid_of(owner: &str) -> Option<u32> {
    owner.split('-').next()?.parse().ok()
}

/// Creates a locked file. It gets its final name after it is locked, so that it is never seen unlocked while its owner
/// is alive.
fn create_lock_file(directory: &Path) -> io::Result<Locked> {
    create_directory(directory)?;
    let mut attempt = 0;
    loop {
        let created = try_create(directory);
        attempt += 1;
        match created {
            // Another process has removed the unfinished file, or is checking it.
            Err(error)
                if attempt < ATTEMPTS
                    && matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::WouldBlock) =>
            {
                create_directory(directory)?;
            }
            created => return created,
        }
    }
}

/// A name for this process that no other owner has.
fn own_name() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{}-{random:016x}", std::process::id())
}

fn try_create(directory: &Path) -> io::Result<Locked> {
    let name = own_name();
    let (path, unfinished) = (directory.join(&name), directory.join(format!("{name}.{UNFINISHED}")));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&unfinished)?;
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(error) => error,
    })?;
    // For users who inspect the directory; the program does not read it.
    writeln!(file, "{}", std::process::id())?;
    fs::rename(&unfinished, &path)?;
    Ok(Locked { name, path, _file: file })
}

/// Creates a directory and those above it, each private to the user.
pub(crate) fn create_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Whether a file is locked. Removes it if it is not.
fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // A shared lock, so that two simultaneous checks do not mistake each other for the owner.
    match file.try_lock_shared() {
        Ok(()) => {
            // Another process may have removed it first.
            drop(fs::remove_file(path));
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes the files of processes that have ended.
fn sweep(directory: &Path, own: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().take(MAX_SWEPT) {
        let name = entry.file_name();
        // The name of an owner starts with its process id.
        let is_owner = name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        if is_owner && name != own {
            // If this fails, the next process tries again.
            drop(is_locked(&entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_alive_until_its_store_ends() {
        let directory = tempfile::tempdir().expect("a directory");
        let database = directory.path().join("store.db");
        let (one, other) = (Node::for_database(&database), Node::for_database(&database));
        let name = one.name().expect("a lock file");
        assert_eq!(name, one.name().expect("the same"));
        assert_eq!(pid_of(&name), Some(std::process::id()));
        assert!(other.is_alive(&name).expect("looked"));
        one.end();
        assert!(!other.is_alive(&name).expect("looked"));
        assert_eq!(fs::read_dir(directory.path().join("locks")).expect("a directory").count(), 0);
    }

    #[test]
    fn invalid_owner_names_are_dead() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("precious"), "kept").expect("written");
        let node = Node::for_database(&directory.path().join("store.db"));
        for name in ["", "..", "../precious", "/etc/passwd", "1-0"] {
            assert!(!node.is_alive(name).expect("looked"), "{name}");
        }
        assert!(directory.path().join("precious").exists());
    }

    #[test]
    fn files_of_dead_processes_are_removed_and_others_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let locks = directory.path().join("locks");
        fs::create_dir(&locks).expect("created");
        for at in 0..50 {
            fs::write(locks.join(format!("{at}-dead")), "").expect("written");
        }
        let database = directory.path().join("store.db");
        let nodes: Vec<_> = (0..8).map(|_| Node::for_database(&database)).collect();
        std::thread::scope(|scope| {
            for node in &nodes {
                scope.spawn(|| node.name().expect("a lock file"));
            }
        });
        for node in &nodes {
            assert!(nodes[0].is_alive(&node.name().expect("known")).expect("looked"));
        }
        assert_eq!(fs::read_dir(&locks).expect("a directory").count(), nodes.len());
    }
}
