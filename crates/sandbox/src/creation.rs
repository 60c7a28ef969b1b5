//! Creates what a command wants to create, so that a guarded name never appears.
//!
//! A filter of system calls makes the calls of the command wait that create, rename or link an entry, or open a file for
//! writing ([`codewright_notify`]). A thread of the helper reads the path of each, resolves its directory, and decides
//! ([`Names`]). What is permitted it creates itself, because the command can change the path in its memory after it was
//! read. Landlock keeps the command from creating anything without this thread ([`crate::landlock`]), so a call that is left
//! to the kernel, such as one that opens a device, cannot create anything either.
//!
//! The thread answers one call at a time. So nothing of the command changes between a check and what follows it.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::ErrorKind;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use codewright_notify::{Call, Listener};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::SigSet;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, fstat, fstatfs, linkat, mkdirat,
    mknodat, openat, openat2, readlinkat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::Error;
use crate::guard::{folded_name, is_match};
use crate::names::{Entry, Names};
use crate::ports::{Connector, Ports};
use crate::privilege::Users;

/// The stack of the thread.
const STACK_BYTES: usize = 256 * 1024;
/// The largest number of links that are followed, as in the kernel.
const MAX_LINKS: usize = 40;
/// The largest number of entries of a directory that are compared before it gets another name. Beyond it the call fails.
const MAX_ENTRIES: usize = 100_000;
/// The bytes of refused paths that are reported. They fit into the socket, so that the thread never waits.
const MAX_REPORT_BYTES: usize = 16 * 1024;
/// The type of the file system with the processes. What it shows depends on who looks.
const PROCESSES: u64 = 0x9fa0;
/// Directories in which nothing is guarded and entries are not files.
const SPECIAL: [&str; 3] = ["/proc", "/dev", "/sys"];
/// The time for which a mask is known. Shorter than the id of a thread stays unused after its end.
const MASK_TIME: Duration = Duration::from_millis(50);
/// The file that programs open for writing most often.
const NULL: &[u8] = b"/dev/null";
/// The value of a directory argument that means the working directory.
const WORKING_DIRECTORY: u32 = libc::AT_FDCWD as u32;

/// The setting of the kernel that decides who may read the memory of a process, if the module Yama is in use.
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Whether the helper can read the memory of its descendants. It has the right to do so in a user namespace of its own.
pub(crate) fn is_supported(users: Users) -> bool {
    let scope = std::fs::read_to_string(YAMA).unwrap_or_default();
    match (scope.trim(), users) {
        ("3", _) | ("2", Users::Shared) => false,
        (_, Users::Own | Users::Shared) => true,
    }
}

/// Starts the thread, which waits for the filter. It must not be restricted like the command.
///
/// # Errors
///
/// Fails if no thread can be started.
pub(crate) fn start(mut names: Names, ports: Option<Ports>) -> Result<SyncSender<Listener>, Error> {
    let (sender, receiver) = sync_channel(1);
    names.prepare();
    let thread = std::thread::Builder::new().name("creation".to_owned()).stack_size(STACK_BYTES);
    let failed = |error: std::io::Error| Error::Kernel(format!("a thread for new files: {error}"));
    thread.spawn(move || serve(names, ports, &receiver)).map_err(failed)?;
    Ok(sender)
}

/// Answers calls until the process ends.
fn serve(names: Names, ports: Option<Ports>, receiver: &Receiver<Listener>) {
    // The supervisor handles signals.
    let _ = SigSet::all().thread_block();
    // It sees every process of the sandbox, also one that does not want to be seen. Other rights it does not need, and
    // outside of an own user namespace it has none.
    let own = CapabilitySet::SYS_PTRACE;
    let own = CapabilitySets { effective: own, permitted: own, inheritable: CapabilitySet::empty() };
    let none = CapabilitySets { effective: CapabilitySet::empty(), permitted: CapabilitySet::empty(), ..own };
    if set_capabilities(None, own).is_err() && set_capabilities(None, none).is_err() {
        return;
    }
    // A mask of its own: each caller has another one.
    if unshare(CloneFlags::CLONE_FS).is_err() {
        return;
    }
    let mask = rustix::process::umask(Mode::empty());
    let Ok(listener) = receiver.recv() else { return };
    let listener = Arc::new(listener);
    let mut maker = Maker {
        names,
        ports: ports.map(|ports| Connector::new(ports, &listener)),
        listener,
        mask: Some(mask),
        read: None,
        masked: Instant::now(),
        reported: 0,
        refused: Vec::new(),
    };
    loop {
        match maker.listener.receive() {
            Ok(call) => maker.handle(&call),
            // The caller has ended.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Interrupted) => {}
            Err(_) => return,
        }
    }
}

/// The directories in which git keeps the steps of a rebase, or of other work that it continues later. What a command leaves
/// there is looked at when it has ended, so it must be neither a link nor a file with another name.
const STEPS: [&str; 3] = ["rebase-apply", "rebase-merge", "sequencer"];

/// Whether a path is such a directory of a repository, or inside.
fn is_list_of_steps(path: &Path) -> bool {
    let mut names = path.components().map(|name| folded_name(&name.as_os_str().to_string_lossy()));
    names.any(|name| name == ".git") && names.any(|name| STEPS.contains(&name.as_str()))
}

/// Decides about calls.
struct Maker {
    names: Names,
    /// Decides about connections, if they are watched.
    ports: Option<Connector>,
    listener: Arc<Listener>,
    /// The mask of all processes. `None` after one of them has changed its own.
    mask: Option<Mode>,
    /// The last mask that was read, of which thread and when.
    read: Option<(u32, Instant, Mode)>,
    /// The last call that may change a mask.
    masked: Instant,
    reported: usize,
    refused: Vec<PathBuf>,
}

/// The result of a call.
enum Outcome {
    /// The kernel makes the call, which can create nothing.
    Pass,
    Done,
    File(OwnedFd, OFlags),
}

/// Why a call is not made.
enum Failure {
    /// The error of the call.
    Error(Errno),
    /// The name is guarded.
    Guarded(PathBuf),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::Error(error)
    }
}

/// A place for an entry: an open directory without links above it, its path, and a name.
struct Place {
    directory: OwnedFd,
    above: PathBuf,
    name: CString,
}

impl Place {
    fn path(&self) -> PathBuf {
        self.above.join(OsStr::from_bytes(self.name.to_bytes()))
    }

    /// The type of the entry. `None` if nothing exists at the path.
    fn kind(&self) -> Result<Option<FileType>, Errno> {
        match statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(data) => Ok(Some(FileType::from_raw_mode(data.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the directory has an entry of this name in any case.
    fn has(&self, name: &str) -> bool {
        [name.to_owned(), name.to_uppercase()]
            .iter()
            .any(|name| statat(&self.directory, name.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }
}

impl Maker {
    fn handle(&mut self, call: &Call) {
        if let (libc::SYS_connect, Some(ports)) = (call.number, &self.ports) {
            return ports.handle(call);
        }
        let outcome = match self.decide(call) {
            Ok(outcome) => outcome,
            Err(Failure::Error(error)) => return self.answer(call, Err(error.raw_os_error())),
            Err(Failure::Guarded(path)) => {
                self.report(path);
                return self.answer(call, Err(libc::EACCES));
            }
        };
        match outcome {
            // It fails if the caller has ended.
            Outcome::Pass => drop(self.listener.pass(call)),
            Outcome::Done => self.answer(call, Ok(())),
            Outcome::File(file, flags) => {
                let flags = (flags & OFlags::CLOEXEC).bits();
                if let Err(error) = self.listener.give(call, file.as_fd(), flags) {
                    self.answer(call, Err(error.raw_os_error().unwrap_or(libc::EMFILE)));
                }
            }
        }
    }

    fn answer(&self, call: &Call, result: Result<(), i32>) {
        // It fails if the caller has ended.
        drop(self.listener.answer(call, result));
    }

    /// Reports a refused path once to the program outside.
    fn report(&mut self, path: PathBuf) {
        let bytes = path.as_os_str().len() + 1;
        if self.refused.contains(&path) || self.reported + bytes > MAX_REPORT_BYTES {
            return;
        }
        self.reported += bytes;
        let line = [path.as_os_str().as_bytes(), &[0]].concat();
        // Without a reader the error of the call is all that is known.
        let _ = rustix::net::send(std::io::stdin(), &line, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        self.refused.push(path);
    }

    fn decide(&mut self, call: &Call) -> Result<Outcome, Failure> {
        let flags = |at: usize| OFlags::from_bits_retain(call.args[at] as u32);
        let mode = |at: usize| Mode::from_raw_mode(call.args[at] as u32);
        match call.number {
            libc::SYS_openat => self.open_checked(call, (Some(0), 1), flags(2), mode(3)),
            libc::SYS_truncate => self.open_checked(call, (None, 0), OFlags::WRONLY, Mode::empty()),
            libc::SYS_mkdirat => self.make_directory(call, (Some(0), 1), mode(2)),
            libc::SYS_mknodat => self.make_node(call, (Some(0), 1), call.args[2] as u32, call.args[3]),
            libc::SYS_symlinkat => self.make_link(call, 0, (Some(1), 2)),
            libc::SYS_linkat => {
                let follow = AtFlags::from_bits_retain(call.args[4] as u32);
                self.link(call, [(Some(0), 1), (Some(2), 3)], follow)
            }
            libc::SYS_renameat2 => {
                let flags = RenameFlags::from_bits_retain(call.args[4] as u32);
                self.rename(call, [(Some(0), 1), (Some(2), 3)], flags)
            }
            libc::SYS_unlinkat => {
                self.remove(call, (Some(0), 1), AtFlags::from_bits_retain(call.args[2] as u32))
            }
            libc::SYS_umask => {
                let mask = Mode::from_raw_mode(call.args[0] as u32 & 0o777);
                self.mask = self.mask.filter(|own| *own == mask);
                (self.read, self.masked) = (None, Instant::now());
                Ok(Outcome::Pass)
            }
            number => self.decide_older(call, number),
        }
    }

    /// Decides about calls that only some processors have.
    #[cfg(target_arch = "x86_64")]
    fn decide_older(&mut self, call: &Call, number: i64) -> Result<Outcome, Failure> {
        let mode = |at: usize| Mode::from_raw_mode(call.args[at] as u32);
        match number {
            libc::SYS_open => {
                let flags = OFlags::from_bits_retain(call.args[1] as u32);
                self.open_checked(call, (None, 0), flags, mode(2))
            }
            libc::SYS_creat => {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
                self.open_checked(call, (None, 0), flags, mode(1))
            }
            libc::SYS_mkdir => self.make_directory(call, (None, 0), mode(1)),
            libc::SYS_mknod => self.make_node(call, (None, 0), call.args[1] as u32, call.args[2]),
            libc::SYS_symlink => self.make_link(call, 0, (None, 1)),
            libc::SYS_link => self.link(call, [(None, 0), (None, 1)], AtFlags::empty()),
            libc::SYS_rename => self.rename(call, [(None, 0), (None, 1)], RenameFlags::empty()),
            libc::SYS_renameat => self.rename(call, [(Some(0), 1), (Some(2), 3)], RenameFlags::empty()),
            libc::SYS_unlink => self.remove(call, (None, 0), AtFlags::empty()),
            _ => Ok(Outcome::Pass),
        }
    }

    /// Other processors have only the calls with directories, and one more.
    #[cfg(not(target_arch = "x86_64"))]
    fn decide_older(&mut self, call: &Call, number: i64) -> Result<Outcome, Failure> {
        match number {
            libc::SYS_renameat => self.rename(call, [(Some(0), 1), (Some(2), 3)], RenameFlags::empty()),
            _ => Ok(Outcome::Pass),
        }
    }

    /// Opens a file. A file that the kernel opens for writing is compared, too, if its path leads through a link that
    /// depends on who follows it, such as `/proc/self/cwd`.
    fn open_checked(
        &mut self,
        call: &Call,
        at: Argument,
        flags: OFlags,
        mode: Mode,
    ) -> Result<Outcome, Failure> {
        let outcome = self.open(call, at, flags, mode)?;
        let is_path = flags.intersects(OFlags::PATH) || flags.contains(OFlags::TMPFILE);
        let writes = !is_path && flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
        if let (Outcome::Pass, true) = (&outcome, writes)
            && let Ok(path) = call.text(at.1)
            && path.to_bytes() != NULL
            && let Some(follower) = Follower::new(call, at, &path)
            // Another path is the same for this thread.
            && (is_special(&path)
                || openat2(&follower.reached, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), RESOLVE).is_err())
            && let Some(file) = follower.follow()
            && FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile
        {
            let path = path_of(&file)?;
            let (above, name) =
                (path.parent(), path.file_name().and_then(|name| CString::new(name.as_bytes()).ok()));
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            // A file without a name is nothing that others open.
            if let (Some(above), Some(name)) = (above, name)
                && let Ok(directory) = openat(CWD, above, flags, Mode::empty())
                && !self.names.is_free(above)
            {
                let place = Place { directory, above: above.to_owned(), name };
                self.check(&place, Entry::Other)?;
            }
        }
        Ok(outcome)
    }

    fn open(&mut self, call: &Call, at: Argument, flags: OFlags, mode: Mode) -> Result<Outcome, Failure> {
        if flags.intersects(OFlags::PATH) || flags.contains(OFlags::TMPFILE) {
            return Ok(Outcome::Pass);
        }
        let creates = flags.contains(OFlags::CREATE);
        let Some((mut directory, mut path)) = self.argument(call, at)? else { return Ok(Outcome::Pass) };
        for followed in 0..MAX_LINKS {
            if path.to_bytes().ends_with(b"/") {
                return Ok(Outcome::Pass);
            }
            let Some(place) = self.place(&directory, &path)? else { return Ok(Outcome::Pass) };
            let kind = place.kind()?;
            match kind {
                Some(FileType::Symlink) => {
                    let is_exact =
                        flags.contains(OFlags::NOFOLLOW) || flags.contains(OFlags::EXCL | OFlags::CREATE);
                    if is_exact {
                        return Ok(Outcome::Pass);
                    }
                    path = readlinkat(&place.directory, &place.name, Vec::new())?;
                    directory = if path.to_bytes().starts_with(b"/") { root()? } else { place.directory };
                    if is_special(&path) {
                        return Ok(Outcome::Pass);
                    }
                    continue;
                }
                None if !creates => return Ok(Outcome::Pass),
                Some(FileType::RegularFile) | None => {}
                // Nothing is created.
                Some(_) => return Ok(Outcome::Pass),
            }
            let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
            if kind.is_none() || writes {
                self.check(&place, Entry::Other)?;
                if followed > 0 && self.names.are_linked(&place.path()) {
                    return Err(Failure::Guarded(place.path()));
                }
            }
            if !creates {
                return Ok(Outcome::Pass);
            }
            let mode = mode & !self.mask(call)?;
            let exact = flags | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
            let file = match openat(&place.directory, &place.name, exact, mode) {
                // It was replaced by a program outside.
                Err(Errno::LOOP) => continue,
                opened => opened?,
            };
            // Others depend on who opens them.
            let is_file = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile;
            return Ok(if is_file { Outcome::File(file, flags) } else { Outcome::Pass });
        }
        Err(Errno::LOOP.into())
    }

    fn make_directory(&mut self, call: &Call, at: Argument, mode: Mode) -> Result<Outcome, Failure> {
        let Some(place) = self.entry(call, at)? else { return Ok(Outcome::Pass) };
        if place.kind()?.is_some() {
            return Err(Errno::EXIST.into());
        }
        self.check(&place, Entry::Directory)?;
        mkdirat(&place.directory, &place.name, mode & !self.mask(call)?)?;
        Ok(Outcome::Done)
    }

    fn make_node(&mut self, call: &Call, at: Argument, mode: u32, device: u64) -> Result<Outcome, Failure> {
        let Some(place) = self.entry(call, at)? else { return Ok(Outcome::Pass) };
        self.check(&place, Entry::Other)?;
        // Without a type it is a file.
        let kind = if mode & libc::S_IFMT == 0 { libc::S_IFREG } else { mode };
        let permissions = Mode::from_raw_mode(mode) & !self.mask(call)?;
        mknodat(&place.directory, &place.name, FileType::from_raw_mode(kind), permissions, device)?;
        Ok(Outcome::Done)
    }

    fn make_link(&mut self, call: &Call, target: usize, at: Argument) -> Result<Outcome, Failure> {
        let Some(place) = self.entry(call, at)? else { return Ok(Outcome::Pass) };
        self.check(&place, Entry::Other)?;
        if !self.names.rests(&place.path()).is_empty() && place.kind()?.is_none() {
            return Err(Failure::Guarded(place.path()));
        }
        let Ok(target) = call.text(target) else { return Ok(Outcome::Pass) };
        self.check_target(&place, &place, &target)?;
        symlinkat(&target, &place.directory, &place.name)?;
        Ok(Outcome::Done)
    }

    fn link(&mut self, call: &Call, [from, to]: [Argument; 2], flags: AtFlags) -> Result<Outcome, Failure> {
        let Some(place) = self.entry(call, to)? else { return Ok(Outcome::Pass) };
        self.check(&place, Entry::Other)?;
        let descriptor = call.text(from.1).ok().and_then(|path| own_descriptor(call, &path));
        let source = match descriptor.filter(|_| flags.contains(AtFlags::SYMLINK_FOLLOW)) {
            Some(descriptor) => descriptor?,
            None => {
                let Some((directory, path)) = self.argument(call, from)? else { return Ok(Outcome::Pass) };
                if path.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
                    directory
                } else if flags.contains(AtFlags::SYMLINK_FOLLOW) {
                    openat2(&directory, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), RESOLVE)?
                } else {
                    let Some(source) = self.place(&directory, &path)? else { return Ok(Outcome::Pass) };
                    self.check(&source, Entry::Other)?;
                    // With another name it could be changed unseen.
                    let mut lists =
                        [source.path(), place.path()].into_iter().filter(|path| is_list_of_steps(path));
                    if let Some(list) = lists.next() {
                        return Err(Failure::Guarded(list));
                    }
                    self.check_moved(&source, &place)?;
                    let none = AtFlags::empty();
                    linkat(&source.directory, &source.name, &place.directory, &place.name, none)?;
                    return Ok(Outcome::Done);
                }
            }
        };
        let path = path_of(&source)?;
        let is_list = is_list_of_steps(&path) || is_list_of_steps(&place.path());
        if is_list || self.names.are_in(&path, Entry::Other) {
            return Err(Failure::Guarded(path));
        }
        let source = format!("/proc/self/fd/{}", source.as_raw_fd());
        linkat(CWD, source.as_str(), &place.directory, &place.name, AtFlags::SYMLINK_FOLLOW)?;
        Ok(Outcome::Done)
    }

    fn rename(
        &mut self,
        call: &Call,
        [from, to]: [Argument; 2],
        flags: RenameFlags,
    ) -> Result<Outcome, Failure> {
        let (Some(from), Some(to)) = (self.entry(call, from)?, self.entry(call, to)?) else {
            return Ok(Outcome::Pass);
        };
        self.check_renamed(&from, &to)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            self.check_renamed(&to, &from)?;
        }
        if self.names.links.iter().any(|link| [from.path(), to.path()].contains(link)) {
            return Err(Failure::Guarded(from.path()));
        }
        renameat_with(&from.directory, &from.name, &to.directory, &to.name, flags)?;
        Ok(Outcome::Done)
    }

    fn remove(&mut self, call: &Call, at: Argument, flags: AtFlags) -> Result<Outcome, Failure> {
        let Some(place) = self.entry(call, at)? else { return Ok(Outcome::Pass) };
        let path = place.path();
        if self.names.links.contains(&path) {
            return Err(Failure::Guarded(path));
        }
        unlinkat(&place.directory, &place.name, flags)?;
        Ok(Outcome::Done)
    }

    /// Checks an entry that gets another name, with what is inside.
    fn check_renamed(&mut self, from: &Place, to: &Place) -> Result<(), Failure> {
        let kind = from.kind()?;
        self.check(to, Entry::Other)?;
        let rests = self.names.rests(&to.path());
        let is_guarded = match kind {
            // Programs copy it instead, and each name is checked.
            Some(FileType::Directory) if self.names.leaves_packages(&from.path(), &to.path()) => {
                return Err(Errno::XDEV.into());
            }
            Some(FileType::Directory) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                !rests.is_empty() && {
                    let directory = openat(&from.directory, &from.name, flags, Mode::empty())?;
                    contains(&directory, &rests)?
                }
            }
            Some(FileType::Symlink) => {
                self.check_moved(from, to)?;
                !rests.is_empty()
            }
            Some(_) | None => false,
        };
        if is_guarded { Err(Failure::Guarded(to.path())) } else { Ok(()) }
    }

    /// Checks an entry that gets another name in another directory: a link there can lead elsewhere.
    fn check_moved(&mut self, from: &Place, to: &Place) -> Result<(), Failure> {
        match readlinkat(&from.directory, &from.name, Vec::new()) {
            Ok(target) => self.check_target(to, from, &target),
            // It is no link.
            Err(_) => Ok(()),
        }
    }

    /// Checks where a link at a place leads. A relative target begins at the directory of the place, and for a link that is
    /// moved perhaps at that of `from`.
    fn check_target(&mut self, place: &Place, from: &Place, target: &CStr) -> Result<(), Failure> {
        if is_list_of_steps(&place.path()) {
            return Err(Failure::Guarded(place.path()));
        }
        let target = Path::new(OsStr::from_bytes(target.to_bytes()));
        for from in [place, from] {
            let path = normalized(&from.above.join(target));
            // Such as `/dev/stdout`, which is another file for each process.
            if path.parent() == Some(Path::new("/dev")) && !path.is_dir() {
                continue;
            }
            // What does not exist yet can be created later.
            let existing = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
            let Some((above, real)) = existing else { continue };
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            let is_file = rest.as_os_str().is_empty() && real.is_file();
            // A link on the way can lead elsewhere later.
            for reached in [real.join(rest), path.clone()] {
                if !self.names.leads_out(&place.path(), &reached) {
                    continue;
                }
                // A file of a package can make way for a directory.
                let is_known = is_file && (self.names.is_free(&reached) || self.names.compare(&reached));
                if !is_known {
                    return Err(Failure::Guarded(place.path()));
                }
            }
        }
        Ok(())
    }

    /// Checks the name of a place.
    fn check(&self, place: &Place, entry: Entry) -> Result<(), Failure> {
        let path = place.path();
        let is_guarded = self.names.are_in(&path, entry) || self.names.is_part(&path, |name| place.has(name));
        if is_guarded { Err(Failure::Guarded(path)) } else { Ok(()) }
    }

    /// The place of an entry that an argument names, which is not followed if it is a link. `None` if the kernel can make
    /// the call.
    fn entry(&self, call: &Call, at: Argument) -> Result<Option<Place>, Failure> {
        let Some((directory, path)) = self.argument(call, at)? else { return Ok(None) };
        let bare = path.to_bytes().iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let Ok(bare) = CString::new(&path.to_bytes()[..bare]) else { return Ok(None) };
        self.place(&directory, &bare)
    }

    /// The directory and the path of an argument. `None` if the path needs no decision or cannot be read.
    fn argument(
        &self,
        call: &Call,
        (directory, path): Argument,
    ) -> Result<Option<(OwnedFd, CString)>, Failure> {
        let Ok(path) = call.text(path) else { return Ok(None) };
        if is_special(&path) {
            return Ok(None);
        }
        let number = directory.map_or(WORKING_DIRECTORY, |at| call.args[at] as u32);
        let opened = if path.to_bytes().starts_with(b"/") {
            root()
        } else {
            let name = match number {
                WORKING_DIRECTORY => format!("/proc/{}/cwd", call.thread),
                number => format!("/proc/{}/fd/{number}", call.thread),
            };
            openat(CWD, name.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        };
        // The thread that was seen may have ended, and another one may have its id.
        match opened {
            Ok(opened) if self.listener.is_waiting(call) => Ok(Some((opened, path))),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// The directory and the name of a path. `None` if the kernel can make the call, because it fails or nothing is guarded
    /// there.
    fn place(&self, directory: &OwnedFd, path: &CStr) -> Result<Option<Place>, Failure> {
        let bytes = path.to_bytes();
        let (above, name) = match bytes.iter().rposition(|byte| *byte == b'/') {
            Some(0) => (&b"/"[..], &bytes[1..]),
            Some(at) => (&bytes[..at], &bytes[at + 1..]),
            None => (&b"."[..], bytes),
        };
        if matches!(name, b"" | b"." | b"..") {
            return Ok(None);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = openat2(directory, above, flags, Mode::empty(), RESOLVE) else { return Ok(None) };
        let above = path_of(&directory)?;
        let is_special = SPECIAL.iter().any(|special| above.starts_with(special));
        if is_special || self.names.is_free(&above) || fstatfs(&directory)?.f_type as u64 == PROCESSES {
            return Ok(None);
        }
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        Ok(Some(Place { directory, above, name }))
    }

    /// The mask of permissions of a caller.
    fn mask(&mut self, call: &Call) -> Result<Mode, Failure> {
        if let Some(mask) = self.mask {
            return Ok(mask);
        }
        if let Some((thread, read, mask)) = self.read
            && thread == call.thread
            && read.elapsed() < MASK_TIME
        {
            return Ok(mask);
        }
        let text =
            std::fs::read_to_string(format!("/proc/{}/status", call.thread)).map_err(|_| Errno::SRCH)?;
        let line = text.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).ok_or(Errno::SRCH)?;
        let mask = Mode::from_raw_mode(mask);
        // The kernel makes the last call that changes a mask after it was seen here.
        self.read = (self.masked.elapsed() > MASK_TIME).then(|| (call.thread, Instant::now(), mask));
        Ok(mask)
    }
}

/// Follows a path as the caller of a call does, with links that depend on who follows them.
struct Follower<'a> {
    call: &'a Call,
    /// The place that was reached.
    reached: OwnedFd,
    /// The components that remain, the next one last.
    rest: Vec<Vec<u8>>,
}

impl<'a> Follower<'a> {
    fn new(call: &'a Call, (directory, _): Argument, path: &CStr) -> Option<Self> {
        let number = directory.map_or(WORKING_DIRECTORY, |at| call.args[at] as u32);
        let name = match number {
            WORKING_DIRECTORY => format!("/proc/{}/cwd", call.thread),
            number => format!("/proc/{}/fd/{number}", call.thread),
        };
        let bytes = path.to_bytes();
        let reached = if bytes.starts_with(b"/") {
            root()
        } else {
            openat(CWD, name.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        };
        Some(Self { call, reached: reached.ok()?, rest: components(bytes) })
    }

    /// Returns the file at the end of the path. `None` if it does not exist.
    fn follow(mut self) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let mut links = 0;
        while let Some(name) = self.rest.pop() {
            let next =
                openat(&self.reached, name.as_slice(), flags | OFlags::NOFOLLOW, Mode::empty()).ok()?;
            if FileType::from_raw_mode(fstat(&next).ok()?.st_mode) != FileType::Symlink {
                self.reached = next;
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return None;
            }
            let target = readlinkat(&next, c"", Vec::new()).ok()?;
            let is_process = fstatfs(&next).ok()?.f_type as u64 == PROCESSES;
            let thread = self.call.thread;
            let target = match name.as_slice() {
                b"self" if is_process => format!("/proc/{thread}").into_bytes(),
                b"thread-self" if is_process => format!("/proc/{thread}/task/{thread}").into_bytes(),
                _ if is_process && is_magic(&name, target.to_bytes()) => {
                    self.reached = openat(&self.reached, name.as_slice(), flags, Mode::empty()).ok()?;
                    continue;
                }
                _ => target.into_bytes(),
            };
            if target.starts_with(b"/") {
                self.reached = root().ok()?;
            }
            self.rest.extend(components(&target));
        }
        Some(self.reached)
    }
}

/// Whether a link of the file system with the processes is one that leads to an open file or directory instead of a path.
fn is_magic(name: &[u8], target: &[u8]) -> bool {
    let is_number = !name.is_empty() && name.iter().all(u8::is_ascii_digit);
    matches!(name, b"cwd" | b"root" | b"exe") || is_number || !target.starts_with(b"/")
}

/// The components of a path, the first one last.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    parts.rev().map(<[u8]>::to_vec).collect()
}

/// A path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// The numbers of the arguments with a directory and with a path. Without the first the path begins at the working
/// directory.
type Argument = (Option<usize>, usize);

/// Links that depend on who follows them are not followed.
const RESOLVE: ResolveFlags = ResolveFlags::NO_MAGICLINKS;

fn root() -> Result<OwnedFd, Errno> {
    openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Whether a path begins with a directory of [`SPECIAL`].
fn is_special(path: &CStr) -> bool {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    SPECIAL.iter().any(|special| path.starts_with(special))
}

/// The path of an open directory or file.
fn path_of(opened: &OwnedFd) -> Result<PathBuf, Errno> {
    let path = readlinkat(CWD, format!("/proc/self/fd/{}", opened.as_raw_fd()).as_str(), Vec::new())?;
    Ok(OsString::from_vec(path.into_bytes()).into())
}

/// The file of a path that names a descriptor of the caller, with which programs give a name to an unnamed file. `None` for
/// other paths.
fn own_descriptor(call: &Call, path: &CStr) -> Option<Result<OwnedFd, Errno>> {
    let path = path.to_str().ok()?;
    let rest = path.strip_prefix("/proc/self/fd/").or_else(|| path.strip_prefix("/proc/thread-self/fd/"));
    let number: u32 = rest.or_else(|| path.strip_prefix("/dev/fd/"))?.parse().ok()?;
    let name = format!("/proc/{}/fd/{number}", call.thread);
    Some(openat(CWD, name.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()))
}

/// Whether a directory contains one of the rests of guarded places.
fn contains(directory: &OwnedFd, rests: &[Vec<String>]) -> Result<bool, Failure> {
    let mut count = 0;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        count += 1;
        if count > MAX_ENTRIES {
            return Err(Errno::NFILE.into());
        }
        let name = folded_name(&entry.file_name().to_string_lossy());
        if matches!(name.as_str(), "." | "..") {
            continue;
        }
        let is_named = |rest: &&Vec<String>| rest.first().is_some_and(|first| is_match(first, &name));
        for rest in rests.iter().filter(is_named) {
            if rest.len() == 1 {
                return Ok(true);
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(directory, entry.file_name(), flags, Mode::empty()) {
                Ok(inside) if contains(&inside, &[rest[1..].to_vec()])? => return Ok(true),
                // A link could lead to such a place.
                Err(Errno::LOOP) => return Ok(true),
                Ok(_) | Err(_) => {}
            }
        }
    }
    Ok(false)
}
