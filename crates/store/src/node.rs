//! Whether a process lives, told by a lock that the system takes away when it dies.
//!
//! Each store that leases sessions holds one small file in `locks/` beside the
//! database, named after its process and locked for as long as the store is open.
//! A lock outlives nothing: after `kill -9` the next one who looks finds the file
//! unlocked, knows its owner dead and removes the file. No clock is consulted.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_proto::SessionId;
use tokio::sync::watch;

use crate::Error;

/// How often a lock file is made anew when another process takes its half-made one for litter.
const ATTEMPTS: u32 = 100;

/// How many files of dead processes are removed when a lock file is made.
const MAX_SWEPT: usize = 4096;

/// The end of a lock file's name while it is being made.
const HALF_MADE: &str = "new";

/// The owner of sessions in a store that has no file, and so no other process.
const ALONE: &str = "alone";

/// One opened store as an owner of sessions.
pub(crate) struct Node {
    /// Where the lock files are; none for a store in memory.
    directory: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Our own lock file, made when the first session is leased.
    locked: Option<Locked>,
    /// The sessions that some value in this process holds.
    held: HashMap<SessionId, Held>,
    /// Those whose value is gone and whose rows still name us.
    dropped: Vec<(SessionId, u64)>,
}

struct Held {
    fence: u64,
    /// Says that another process wants the session's work stopped.
    stop: watch::Sender<bool>,
}

struct Locked {
    name: String,
    path: PathBuf,
    /// Closing it gives the lock back.
    _file: File,
}

impl Node {
    pub(crate) fn beside(database: &Path) -> Self {
        Self { directory: Some(database.with_file_name("locks")), state: Mutex::default() }
    }

    /// What it means for a caller that the lock files cannot be used.
    pub(crate) fn unlockable(&self, source: io::Error) -> Error {
        let path = self.directory.clone().unwrap_or_default();
        Error::Unlockable { path, source: Arc::new(source) }
    }

    pub(crate) fn alone() -> Self {
        Self { directory: None, state: Mutex::default() }
    }

    /// Our name as an owner; makes and locks our file when it is first asked for.
    pub(crate) fn name(&self) -> io::Result<String> {
        let Some(directory) = &self.directory else { return Ok(ALONE.to_owned()) };
        let mut state = self.lock();
        if let Some(locked) = &state.locked {
            return Ok(locked.name.clone());
        }
        let locked = make(directory)?;
        let name = locked.name.clone();
        state.locked = Some(locked);
        drop(state);
        sweep(directory, &name);
        Ok(name)
    }

    /// Our name, if we have ever leased anything.
    pub(crate) fn known_name(&self) -> Option<String> {
        match &self.directory {
            None => Some(ALONE.to_owned()),
            Some(_) => self.lock().locked.as_ref().map(|locked| locked.name.clone()),
        }
    }

    /// Whether an owner's process is alive. Removes the file of a dead one.
    pub(crate) fn is_alive(&self, owner: &str) -> io::Result<bool> {
        let Some(directory) = &self.directory else { return Ok(owner == ALONE) };
        if self.lock().locked.as_ref().is_some_and(|locked| locked.name == owner) {
            return Ok(true);
        }
        // The name comes from a file that anyone may have written.
        if owner.is_empty() || !owner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Ok(false);
        }
        is_locked(&directory.join(owner))
    }

    /// The fence under which this process holds a session, if it does.
    pub(crate) fn holds(&self, session: &SessionId) -> Option<u64> {
        self.lock().held.get(session).map(|held| held.fence)
    }

    /// Holds a session from now on; tells when another process wants it stopped.
    pub(crate) fn take(&self, session: &SessionId, fence: u64) -> watch::Receiver<bool> {
        let (stop, asked) = watch::channel(false);
        self.lock().held.insert(session.clone(), Held { fence, stop });
        asked
    }

    /// Whether this process holds any session.
    pub(crate) fn holds_any(&self) -> bool {
        !self.lock().held.is_empty()
    }

    /// Tells the one who holds the session under this fence that another process wants it stopped.
    pub(crate) fn stop(&self, session: &SessionId, fence: u64) {
        if let Some(held) = self.lock().held.get(session)
            && held.fence == fence
        {
            held.stop.send_replace(true);
        }
    }

    /// The session was let go in the database too.
    pub(crate) fn forget(&self, session: &SessionId, fence: u64) {
        let mut state = self.lock();
        if state.held.get(session).is_some_and(|held| held.fence == fence) {
            state.held.remove(session);
        }
    }

    /// Notes that nothing in this process holds the session any more, though its row still names us.
    pub(crate) fn abandon(&self, session: &SessionId, fence: u64) {
        let mut state = self.lock();
        if state.held.get(session).is_some_and(|held| held.fence == fence) {
            state.held.remove(session);
            state.dropped.push((session.clone(), fence));
        }
    }

    /// The sessions that were abandoned since it was last asked.
    pub(crate) fn take_abandoned(&self) -> Vec<(SessionId, u64)> {
        std::mem::take(&mut self.lock().dropped)
    }

    /// Those could not be let go; they are tried again.
    pub(crate) fn put_back(&self, abandoned: Vec<(SessionId, u64)>) {
        self.lock().dropped.extend(abandoned);
    }

    /// Owns nothing from now on: whatever rows still name us are anyone's.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.held.clear();
        state.dropped.clear();
        drop(state.locked.take());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is one insertion or removal, so a poisoned state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Litter at worst: the next owner to come removes it.
        drop(fs::remove_file(&self.path));
    }
}

/// The process that an owner's name speaks of.
pub(crate) fn pid_of(owner: &str) -> Option<u32> {
    owner.split('-').next()?.parse().ok()
}

/// Makes a locked file. It gets its name only when it is locked, so that nobody
/// ever finds it unlocked while its owner lives.
fn make(directory: &Path) -> io::Result<Locked> {
    create_directory(directory)?;
    let mut attempt = 0;
    loop {
        let made = try_make(directory);
        attempt += 1;
        match made {
            // Another process swept the half-made file away, or is looking at it just now.
            Err(error)
                if attempt < ATTEMPTS
                    && matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::WouldBlock) =>
            {
                create_directory(directory)?;
            }
            made => return made,
        }
    }
}

fn try_make(directory: &Path) -> io::Result<Locked> {
    let random = RandomState::new().hash_one(std::process::id());
    let name = format!("{}-{random:016x}", std::process::id());
    let (path, half_made) = (directory.join(&name), directory.join(format!("{name}.{HALF_MADE}")));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&half_made)?;
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(error) => error,
    })?;
    // For people who look into the folder; nothing reads it.
    writeln!(file, "{}", std::process::id())?;
    fs::rename(&half_made, &path)?;
    Ok(Locked { name, path, _file: file })
}

fn create_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Whether somebody holds the lock on a file; removes it if nobody does.
fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // Shared, so that two who look at the same time do not take each other for the owner.
    match file.try_lock_shared() {
        Ok(()) => {
            // Another may have removed it first.
            drop(fs::remove_file(path));
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes the files of processes that are gone.
fn sweep(directory: &Path, own: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().take(MAX_SWEPT) {
        let name = entry.file_name();
        // Owners' names begin with the number of their process.
        let is_owner = name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        if is_owner && name != own {
            // What cannot be removed is litter, and looked at again by the next process.
            drop(is_locked(&entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_lives_until_its_store_ends() {
        let directory = tempfile::tempdir().expect("a directory");
        let database = directory.path().join("store.db");
        let (one, other) = (Node::beside(&database), Node::beside(&database));
        let name = one.name().expect("a lock file");
        assert_eq!(name, one.name().expect("the same"));
        assert_eq!(pid_of(&name), Some(std::process::id()));
        assert!(other.is_alive(&name).expect("looked"));
        one.end();
        assert!(!other.is_alive(&name).expect("looked"));
        assert_eq!(fs::read_dir(directory.path().join("locks")).expect("a directory").count(), 0);
    }

    #[test]
    fn names_that_no_owner_has_are_dead() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("precious"), "kept").expect("written");
        let node = Node::beside(&directory.path().join("store.db"));
        for name in ["", "..", "../precious", "/etc/passwd", "1-0"] {
            assert!(!node.is_alive(name).expect("looked"), "{name}");
        }
        assert!(directory.path().join("precious").exists());
    }

    #[test]
    fn litter_is_swept_and_the_living_are_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let locks = directory.path().join("locks");
        fs::create_dir(&locks).expect("created");
        for at in 0..50 {
            fs::write(locks.join(format!("{at}-dead")), "").expect("written");
        }
        let database = directory.path().join("store.db");
        let nodes: Vec<_> = (0..8).map(|_| Node::beside(&database)).collect();
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
