//! Tracks the processes that commands of the model started, and finds out whether a socket belongs to them.
//!
//! The supervisors of such commands are recorded here. A server checks whether the peer of a connection belongs
//! to one of their descendants, because such a client must not control the server that runs it. Terminals and
//! commands of the user are not recorded.
//!
//! The search reads `/proc`. A descendant can hide a socket from it (a descriptor that is in flight between
//! two processes, or registered with `io_uring`), or pass it to a process that is not a descendant. Only a
//! sandbox prevents that.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The author of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Author {
    /// The model, or a template that becomes part of a prompt.
    #[default]
    Model,
    /// The user, who may do anything with the server.
    User,
}

/// Whether a client was started by a command of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// It was not.
    Elsewhere,
    /// It was.
    Command,
    /// Commands run, and the owner of the socket is unknown.
    Unknown,
}

/// The process ids of the supervisors of commands that may still run.
static SUPERVISORS: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

/// Starts a supervisor and records it before any of its processes can be checked.
pub(super) fn spawn<T>(
    author: Author,
    start: impl FnOnce() -> std::io::Result<T>,
    id: impl FnOnce(&T) -> Option<u32>,
) -> std::io::Result<T> {
    let mut known = SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    known.retain(|id| imp::is_child(*id));
    let started = start()?;
    if let Some(id) = id(&started) {
        match author {
            Author::Model => known.insert(id),
            // The id may have belonged to another command before.
            Author::User => known.remove(&id),
        };
    }
    Ok(started)
}

/// The supervisors of running commands of the model.
fn supervisors() -> HashSet<u32> {
    let mut known = SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(known) = known.as_mut() else { return HashSet::new() };
    known.retain(|id| imp::is_child(*id));
    known.clone()
}

/// Whether a command of the model is running.
#[must_use]
pub fn has_commands() -> bool {
    !supervisors().is_empty()
}

/// Whether the socket with this inode belongs to a command of the model. Reads `/proc` and blocks.
#[must_use]
pub fn socket_descent(inode: u64) -> Descent {
    imp::socket_descent(&supervisors(), inode)
}

/// Whether a process belongs to a command of the model. Reads `/proc` and blocks.
#[must_use]
pub fn process_descent(id: u32) -> Descent {
    imp::process_descent(&supervisors(), id)
}

#[cfg(target_os = "linux")]
mod imp {
    use std::collections::{HashMap, HashSet};
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::MetadataExt as _;

    use super::Descent;

    /// The limit of processes that are checked. If there are more, the result is [`Descent::Unknown`].
    const MAX_PROCESSES: usize = 65_536;
    /// The limit of descriptors of one process that are checked.
    const MAX_DESCRIPTORS: usize = 65_536;
    /// The limit of passes over the descendants, until no process appears or ends during one.
    const PASSES: usize = 4;
    /// The limit for the length of a chain of parents.
    const MAX_DEPTH: usize = 4096;

    /// The number of fields of `/proc/PID/stat` between the parent and the number of threads.
    const THREADS: usize = 15;

    /// A process according to `/proc/PID/stat`.
    struct Process {
        parent: u32,
        /// It has ended, so it holds no descriptors.
        is_over: bool,
    }

    impl Process {
        fn read(id: u32) -> Option<Self> {
            Self::parse(&fs::read(format!("/proc/{id}/stat")).ok()?)
        }

        fn parse(stat: &[u8]) -> Option<Self> {
            // The name is in parentheses and may contain anything, including parentheses.
            let end = stat.iter().rposition(|byte| *byte == b')')?;
            let mut fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?.split_ascii_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            // The first thread of a process can end before the others.
            let threads: u32 = fields.nth(THREADS)?.parse().ok()?;
            Some(Self { parent, is_over: matches!(state, "Z" | "X") && threads <= 1 })
        }
    }

    /// The relation of a process to a socket.
    #[derive(PartialEq, Eq)]
    enum Holds {
        Yes,
        No,
        /// The process ended during the check.
        Ended,
        /// Its descriptors cannot be read, or are too many.
        Hidden,
    }

    pub(super) fn is_child(id: u32) -> bool {
        Process::read(id).is_some_and(|process| process.parent == std::process::id() && !process.is_over)
    }

    pub(super) fn socket_descent(supervisors: &HashSet<u32>, inode: u64) -> Descent {
        if supervisors.is_empty() {
            return Descent::Elsewhere;
        }
        let link = format!("socket:[{inode}]");
        'passes: for _ in 0..PASSES {
            let before = created();
            let Some(List { processes, is_complete }) = processes() else { return Descent::Unknown };
            let mut has_ended = false;
            for id in descendants(&processes, supervisors) {
                match holds(id, &link) {
                    Holds::Yes => return Descent::Command,
                    Holds::No => {}
                    Holds::Ended => has_ended = true,
                    Holds::Hidden => break 'passes,
                }
            }
            // Without a new process every descendant was listed and checked. A process that ended before its entry
            // was read may have been the only link between a supervisor and a listed process.
            if is_complete && !has_ended && before.is_some() && created() == before {
                return Descent::Elsewhere;
            }
        }
        // Processes start and end all the time, or cannot be read. A socket that is found elsewhere is not theirs.
        match is_elsewhere(supervisors, &link) {
            true => Descent::Elsewhere,
            false => Descent::Unknown,
        }
    }

    fn is_elsewhere(supervisors: &HashSet<u32>, link: &str) -> bool {
        let Some(List { processes, .. }) = processes() else { return false };
        let below = descendants(&processes, supervisors);
        let others = processes.keys().filter(|id| !below.contains(id) && !supervisors.contains(id));
        let own = nix::unistd::geteuid().as_raw();
        let mut others = others.filter(|id| {
            fs::metadata(format!("/proc/{id}")).is_ok_and(|process| own == 0 || process.uid() == own)
        });
        // The parents are read again, because the list may lack a parent that has just ended.
        others.any(|id| {
            holds(*id, link) == Holds::Yes && process_descent(supervisors, *id) == Descent::Elsewhere
        })
    }

    pub(super) fn process_descent(supervisors: &HashSet<u32>, id: u32) -> Descent {
        if supervisors.is_empty() {
            return Descent::Elsewhere;
        }
        let mut at = id;
        for _ in 0..MAX_DEPTH {
            if supervisors.contains(&at) {
                return Descent::Command;
            }
            match Process::read(at) {
                Some(process) if process.parent > 0 => at = process.parent,
                // The first process, and processes whose parents are outside the container.
                Some(_) => return Descent::Elsewhere,
                None => return Descent::Unknown,
            }
        }
        Descent::Unknown
    }

    /// The processes at one time.
    struct List {
        processes: HashMap<u32, Process>,
        /// Whether each listed process could be read.
        is_complete: bool,
    }

    /// All processes by id, or `None` if there are too many or they cannot be listed.
    fn processes() -> Option<List> {
        let (mut processes, mut is_complete) = (HashMap::new(), true);
        for entry in fs::read_dir("/proc").ok()? {
            let entry = entry.ok()?;
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if processes.len() >= MAX_PROCESSES {
                return None;
            }
            match Process::read(id) {
                Some(process) => drop(processes.insert(id, process)),
                None => is_complete = false,
            }
        }
        Some(List { processes, is_complete })
    }

    /// The number of processes and threads that the system has ever created.
    fn created() -> Option<u64> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        stat.lines().find_map(|line| line.strip_prefix("processes "))?.trim().parse().ok()
    }

    /// The living descendants of the supervisors, without the supervisors.
    fn descendants(processes: &HashMap<u32, Process>, supervisors: &HashSet<u32>) -> HashSet<u32> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for (id, process) in processes {
            children.entry(process.parent).or_default().push(*id);
        }
        let mut found = HashSet::new();
        let mut waiting: Vec<u32> = supervisors.iter().copied().collect();
        while let Some(id) = waiting.pop() {
            for child in children.get(&id).into_iter().flatten() {
                if found.insert(*child) {
                    waiting.push(*child);
                }
            }
        }
        found.retain(|id| processes.get(id).is_some_and(|process| !process.is_over));
        found
    }

    /// Whether a thread of a process holds the target of a link. Threads can have their own descriptor
    /// tables.
    fn holds(id: u32, link: &str) -> Holds {
        let tasks = match fs::read_dir(format!("/proc/{id}/task")) {
            Ok(tasks) => tasks,
            Err(error) => return unreadable(id, error.kind()),
        };
        let mut left = MAX_DESCRIPTORS;
        for task in tasks.flatten() {
            let descriptors = match fs::read_dir(task.path().join("fd")) {
                Ok(descriptors) => descriptors,
                Err(error) if error.kind() == ErrorKind::NotFound || is_dead(&task.path()) => continue,
                Err(error) => return unreadable(id, error.kind()),
            };
            for descriptor in descriptors.flatten() {
                if left == 0 {
                    return Holds::Hidden;
                }
                left -= 1;
                if fs::read_link(descriptor.path()).is_ok_and(|target| target.as_os_str() == link) {
                    return Holds::Yes;
                }
            }
        }
        Holds::No
    }

    /// Whether a thread has ended.
    fn is_dead(task: &std::path::Path) -> bool {
        let stat = fs::read(task.join("stat")).unwrap_or_default();
        let end = stat.iter().rposition(|byte| *byte == b')').unwrap_or_default();
        stat.get(end + 2).is_none_or(|state| matches!(state, b'Z' | b'X'))
    }

    fn unreadable(id: u32, kind: ErrorKind) -> Holds {
        let has_ended =
            kind == ErrorKind::NotFound || Process::read(id).is_none_or(|process| process.is_over);
        if has_ended { Holds::Ended } else { Holds::Hidden }
    }

    #[cfg(test)]
    mod tests {
        use std::net::{TcpListener, TcpStream};
        use std::os::fd::AsRawFd as _;
        use std::process::{Command, Stdio};

        use super::*;

        #[test]
        fn a_process_is_over_if_no_thread_is_left() {
            let stat = |state, threads| {
                let stat = format!("7 (a) b) {state} 3 7 7 0 -1 1 2 3 4 5 6 7 8 9 20 0 {threads} 0 100");
                Process::parse(stat.as_bytes()).map(|process| (process.parent, process.is_over))
            };
            assert_eq!(stat("S", "1"), Some((3, false)));
            assert_eq!(stat("Z", "1"), Some((3, true)));
            assert_eq!(stat("Z", "2"), Some((3, false)));
            assert_eq!(stat("Z", "x"), None);
            assert!(Process::parse(b"7 (a").is_none());
        }

        fn inode(socket: &TcpStream) -> u64 {
            let link = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
            let link = link.to_str().unwrap();
            link.strip_prefix("socket:[").unwrap().strip_suffix(']').unwrap().parse().unwrap()
        }

        #[test]
        fn a_socket_belongs_to_a_command_if_a_descendant_holds_it() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let own = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (inode, own_inode) = (inode(&socket), inode(&own));
            // A grandchild holds it, the child does not. Shells pass the input to background jobs.
            let mut child = Command::new("sh")
                .args(["-c", "exec 3<&0; sleep 60 & exec <&- 3<&-; echo; wait"])
                .stdin(Stdio::from(std::os::fd::OwnedFd::from(socket.try_clone().unwrap())))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = [0];
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
            let supervisors = HashSet::from([child.id()]);
            let found = socket_descent(&supervisors, inode);
            let other = socket_descent(&supervisors, own_inode);
            let of_none = socket_descent(&HashSet::new(), inode);
            let grandchildren = descendants(&processes().unwrap().processes, &supervisors);
            for id in &grandchildren {
                assert_eq!(process_descent(&supervisors, *id), Descent::Command);
                Command::new("kill").arg(id.to_string()).status().unwrap();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!((found, other, of_none), (Descent::Command, Descent::Elsewhere, Descent::Elsewhere));
            assert!(!grandchildren.is_empty());
            assert_eq!(process_descent(&supervisors, std::process::id()), Descent::Elsewhere);
            assert_eq!(process_descent(&supervisors, u32::MAX), Descent::Unknown);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::collections::HashSet;

    use super::Descent;

    pub(super) fn is_child(_id: u32) -> bool {
        true
    }

    pub(super) fn socket_descent(supervisors: &HashSet<u32>, _inode: u64) -> Descent {
        if supervisors.is_empty() { Descent::Elsewhere } else { Descent::Unknown }
    }

    pub(super) fn process_descent(supervisors: &HashSet<u32>, id: u32) -> Descent {
        socket_descent(supervisors, u64::from(id))
    }
}
