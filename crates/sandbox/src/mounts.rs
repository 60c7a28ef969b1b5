//! Makes the mounts of a sandbox from inside its namespaces.
//!
//! The helper starts with the whole file system of the machine, as root of a user namespace. It copies what stays
//! visible, makes everything read-only, puts the copies in place, and then enters a second user namespace with the user's
//! own id, in which it has no right to change a mount. No path is followed through a link: if one was exchanged since the
//! rules were resolved, the command is not started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, write};
use std::io::{Error as IoError, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat2, unlinkat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, mount_remount,
    move_mount, open_tree,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use serde::{Deserialize, Serialize};

use crate::opened::Identity;
use crate::steps::{KERNEL, Kind, PROXY, Step};
use crate::{Error, TEMPORARY};

/// The table of mounts of this process.
const TABLE: &str = "/proc/self/mountinfo";
/// The largest table that is read. Beyond it the command is not started.
const MAX_TABLE_BYTES: u64 = 16 * 1024 * 1024;
/// The field of a line of the table with the path of a mount.
const PATH_FIELD: usize = 4;
/// The devices that every program may use, in `/dev`.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// The links in `/dev`, and what they name.
const LINKS: &[(&str, &str)] = &[
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/core", "/proc/kcore"),
    ("/dev/ptmx", "pts/ptmx"),
];
/// The number of descriptors that may be open at once, because a copy of a tree is one.
const MAX_OPEN: u64 = 65_536;

/// The mounts of the machine.
type Points = BTreeMap<PathBuf, MountFlags>;

/// The parts of a sandbox that are not rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Frame {
    /// The directory that appears as [`TEMPORARY`]. `None` leaves it as it is, read-only.
    pub(crate) temporary: Option<PathBuf>,
    /// The object that has to be at that path.
    pub(crate) private: Option<Identity>,
    /// The file that takes the place of masked ones.
    pub(crate) blank: Option<PathBuf>,
    /// The socket that appears as [`PROXY`].
    pub(crate) proxy: Option<PathBuf>,
    /// The working directory.
    pub(crate) directory: PathBuf,
    /// The ids of the user and the group outside.
    pub(crate) user: u32,
    /// See `user`.
    pub(crate) group: u32,
    /// The number of steps.
    pub(crate) steps: usize,
}

impl Frame {
    /// The frame of a command of this user without a private directory and a proxy.
    pub(crate) fn new(directory: &Path, steps: usize) -> Self {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self {
            temporary: None,
            private: None,
            blank: None,
            proxy: None,
            directory: directory.to_owned(),
            user,
            group,
            steps,
        }
    }

    /// Makes the mounts and gives up the right to make others. The process must have one thread.
    ///
    /// # Errors
    ///
    /// Fails if a path has changed since the steps were computed, and if the kernel rejects a mount. The process must then
    /// not continue.
    pub(crate) fn build(&self, steps: &[Step]) -> Result<(), Error> {
        let limit = raised_limit();
        let devices: Vec<OwnedFd> =
            DEVICES.iter().map(|name| copy(&Path::new("/dev").join(name))).collect::<Result<_, _>>()?;
        // No later mount of the machine appears inside.
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).map_err(at(Path::new("/")))?;
        let points = points()?;
        tighten_all(&points, MountFlags::NODEV | MountFlags::NOSUID)?;
        let writable = copies(steps, Kind::Write)?;
        let temporary = self.temporary.as_deref().map(|path| copy_of(path, self.private)).transpose()?;
        let proxy = self.proxy.as_deref().map(copy).transpose()?;
        // Copies from before this stay writable.
        tighten_all(&points, MountFlags::RDONLY)?;
        let readable = copies(steps, Kind::Read)?;
        // Later its directory is hidden.
        let blank = self.blank.as_deref().map(|path| open(path).map_err(at(path))).transpose()?;
        own_processes()?;
        own_devices(&devices)?;
        if let Some(proxy) = proxy {
            attach(&proxy, Path::new(PROXY))?;
        }
        if let Some(temporary) = temporary {
            attach(&temporary, Path::new(TEMPORARY))?;
        }
        put(steps, Copies { writable, readable, blank })?;
        std::env::set_current_dir(&self.directory).map_err(|source| failed(&self.directory, source))?;
        self.enter_user()?;
        if let Some(limit) = limit {
            // It only gets lower.
            let _ = setrlimit(Resource::Nofile, limit);
        }
        Ok(())
    }

    /// Enters a user namespace in which the user has the same id as outside and no right to mount.
    fn enter_user(&self) -> Result<(), Error> {
        let kernel = |error: nix::Error| Error::Kernel(format!("user namespace: {error}"));
        unshare(CloneFlags::CLONE_NEWUSER).map_err(kernel)?;
        for (path, text) in [
            ("/proc/self/setgroups", "deny".to_owned()),
            ("/proc/self/uid_map", format!("{} 0 1", self.user)),
            ("/proc/self/gid_map", format!("{} 0 1", self.group)),
        ] {
            write(path, text).map_err(|source| failed(Path::new(path), source))?;
        }
        // A program that belongs to root gets no capabilities either.
        for capability in CapabilitySet::all().iter() {
            match remove_capability_from_bounding_set(capability) {
                // The kernel does not know it.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(error) => return Err(Error::Kernel(format!("capabilities: {error}"))),
            }
        }
        Ok(())
    }
}

/// The files and directories that are mounted over the paths of the steps.
struct Copies {
    writable: Vec<OwnedFd>,
    readable: Vec<OwnedFd>,
    /// The file for masked ones.
    blank: Option<OwnedFd>,
}

/// Puts the copies and covers in place, each directory before its content.
fn put(steps: &[Step], copies: Copies) -> Result<(), Error> {
    let (mut writable, mut readable) = (copies.writable.into_iter(), copies.readable.into_iter());
    let missing = || Error::Kernel("a copy of a directory is missing".to_owned());
    for Step { kind, path, identity: _ } in steps {
        match kind {
            Kind::Write => attach(&writable.next().ok_or_else(missing)?, path)?,
            Kind::Read => attach(&readable.next().ok_or_else(missing)?, path)?,
            Kind::HideDirectory => {
                attach(&new("tmpfs", &[("mode", "0755")], MountAttrFlags::empty())?, path)?;
            }
            Kind::HideFile => attach(&copy(Path::new("/dev/null"))?, path)?,
            Kind::Mask => {
                let blank = copies.blank.as_ref().ok_or_else(missing)?;
                attach(&cloned(blank).map_err(at(path))?, path)?;
            }
            Kind::Cover => match open(path) {
                // A service that opens its socket again now is not covered either.
                Err(Errno::NOENT) => {}
                // Something that is no socket has its name now, and is not covered.
                Err(Errno::LOOP | Errno::NOTDIR) => {}
                place => {
                    let cover = copy(Path::new("/dev/null"))?;
                    match attach_at(&cover, &place.map_err(at(path))?) {
                        // It disappeared after it was opened.
                        Ok(()) | Err(Errno::NOENT) => {}
                        Err(error) => return Err(at(path)(error)),
                    }
                }
            },
        }
    }
    // The paths inside are in place now.
    for step in steps.iter().filter(|step| step.kind == Kind::HideDirectory) {
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        tighten(&step.path, flags).map_err(at(&step.path))?;
    }
    Ok(())
}

/// Shows the processes of the sandbox alone, and no setting of the kernel that can be changed.
fn own_processes() -> Result<(), Error> {
    attach(&new("proc", &[], MountAttrFlags::MOUNT_ATTR_NOEXEC)?, Path::new("/proc"))?;
    for path in KERNEL.iter().map(Path::new).filter(|path| path.exists()) {
        attach(&copy(path)?, path)?;
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        tighten(path, flags).map_err(at(path))?;
    }
    Ok(())
}

/// Shows a few devices alone.
fn own_devices(devices: &[OwnedFd]) -> Result<(), Error> {
    let root = Path::new("/dev");
    attach(&new("tmpfs", &[("mode", "0755")], MountAttrFlags::empty())?, root)?;
    for (name, device) in DEVICES.iter().zip(devices) {
        let path = root.join(name);
        attach(device, &path)?;
        // Data can be written to it all the same, but root could change its permissions.
        tighten(&path, MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NOEXEC).map_err(at(&path))?;
    }
    for (link, target) in LINKS {
        symlink(target, link).map_err(|source| failed(Path::new(link), source))?;
    }
    let shared = root.join("shm");
    std::fs::create_dir(&shared).map_err(|source| failed(&shared, source))?;
    let options = [("ptmxmode", "0666"), ("mode", "0620")];
    attach(&new("devpts", &options, MountAttrFlags::MOUNT_ATTR_NOEXEC)?, &root.join("pts"))
}

/// Copies of the trees at the paths of one kind.
fn copies(steps: &[Step], kind: Kind) -> Result<Vec<OwnedFd>, Error> {
    steps.iter().filter(|step| step.kind == kind).map(|step| copy_of(&step.path, step.identity)).collect()
}

/// A copy of the tree of mounts at a path, which is not visible yet.
fn copy(path: &Path) -> Result<OwnedFd, Error> {
    copy_of(path, None)
}

/// Does the same for an object that has to be at the path.
fn copy_of(path: &Path, identity: Option<Identity>) -> Result<OwnedFd, Error> {
    let place = match identity {
        Some(identity) => identity.open(path)?,
        None => open(path).map_err(at(path))?,
    };
    cloned(&place).map_err(at(path))
}

/// A copy of the tree of mounts at an open place.
fn cloned(place: &OwnedFd) -> Result<OwnedFd, Errno> {
    let whole = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE;
    let flags = whole | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(place, "", flags)
}

/// A new file system, which is not visible yet.
fn new(name: &str, options: &[(&str, &str)], flags: MountAttrFlags) -> Result<OwnedFd, Error> {
    let made = || {
        let context = fsopen(name, FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in options {
            fsconfig_set_string(context.as_fd(), *key, *value)?;
        }
        fsconfig_create(context.as_fd())?;
        // Terminals are devices.
        let devices =
            if name == "devpts" { MountAttrFlags::empty() } else { MountAttrFlags::MOUNT_ATTR_NODEV };
        fsmount(
            context.as_fd(),
            FsMountFlags::FSMOUNT_CLOEXEC,
            flags | devices | MountAttrFlags::MOUNT_ATTR_NOSUID,
        )
    };
    made().map_err(|error| Error::Kernel(format!("a file system `{name}`: {error}")))
}

/// Puts a tree in place. A place in a private directory is created.
fn attach(tree: &OwnedFd, path: &Path) -> Result<(), Error> {
    let place = match open(path) {
        // Earlier commands may have left something else in the private directory.
        Err(Errno::LOOP | Errno::NOTDIR) if path.starts_with(TEMPORARY) => {
            create(path, tree).and_then(|()| open(path))
        }
        Err(Errno::NOENT) => create(path, tree).and_then(|()| open(path)),
        opened => opened,
    };
    place.and_then(|place| attach_at(tree, &place)).map_err(at(path))
}

fn attach_at(tree: &OwnedFd, place: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", place, "", flags)
}

/// Creates a place for a tree, and the directories above it. A link or a file in the private directory makes way.
fn create(path: &Path, tree: &OwnedFd) -> Result<(), Errno> {
    let is_directory = FileType::from_raw_mode(fstat(tree)?.st_mode) == FileType::Directory;
    let mut above = open(Path::new("/"))?;
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        let Component::Normal(name) = component else { continue };
        let is_last = components.peek().is_none();
        if is_last && !is_directory {
            if path.starts_with(TEMPORARY) {
                // Only a link is in the way: anything else was found.
                let _ = unlinkat(&above, name, AtFlags::empty());
            }
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            return rustix::fs::openat(&above, name, flags, Mode::from_raw_mode(0o444)).map(drop);
        }
        match mkdirat(&above, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            // It exists in a directory that cannot be written. Otherwise it is not found below.
            Err(Errno::ROFS | Errno::ACCESS) => {}
            Err(error) => return Err(error),
        }
        above = match enter(&above, name) {
            Err(Errno::LOOP | Errno::NOTDIR) if path.starts_with(TEMPORARY) => {
                unlinkat(&above, name, AtFlags::empty())?;
                mkdirat(&above, name, Mode::from_raw_mode(0o755))?;
                enter(&above, name)?
            }
            entered => entered?,
        };
    }
    Ok(())
}

/// Opens a directory in another one.
fn enter(above: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(above, name, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Opens a path that contains no link.
fn open(path: &Path) -> Result<OwnedFd, Errno> {
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Adds flags to all mounts that can be reached.
fn tighten_all(points: &Points, flags: MountFlags) -> Result<(), Error> {
    for (point, present) in points {
        match tighten(point, *present | flags) {
            // Another mount covers it, or the user cannot reach it.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
            Err(error) => return Err(at(point)(error)),
        }
    }
    Ok(())
}

/// Sets the flags of the mount at a path, which must include those that it has. Nothing asks the file system, which may
/// not reply.
fn tighten(point: &Path, flags: MountFlags) -> Result<(), Errno> {
    mount_remount(point, MountFlags::BIND | flags, "")
}

/// The paths of all mounts and the flags that those at this path have together.
fn points() -> Result<Points, Error> {
    let mut table = Vec::new();
    let file = File::open(TABLE).map_err(|source| failed(Path::new(TABLE), source))?;
    file.take(MAX_TABLE_BYTES + 1)
        .read_to_end(&mut table)
        .map_err(|source| failed(Path::new(TABLE), source))?;
    if table.len() as u64 > MAX_TABLE_BYTES {
        return Err(failed(Path::new(TABLE), IoError::other("too many mounts")));
    }
    let mut points = Points::new();
    for line in table.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b' ').skip(PATH_FIELD);
        let (Some(path), Some(options)) = (fields.next(), fields.next()) else { continue };
        let flags = options.split(|byte| *byte == b',').filter_map(flag);
        let flags = flags.fold(MountFlags::empty(), |all, flag| all | flag);
        *points.entry(unescaped(path)).or_insert(MountFlags::empty()) |= flags;
    }
    Ok(points)
}

/// The flag of an option in the table. Others are kept by the kernel.
fn flag(option: &[u8]) -> Option<MountFlags> {
    match option {
        b"ro" => Some(MountFlags::RDONLY),
        b"nosuid" => Some(MountFlags::NOSUID),
        b"nodev" => Some(MountFlags::NODEV),
        b"noexec" => Some(MountFlags::NOEXEC),
        b"nosymfollow" => Some(MountFlags::NOSYMFOLLOW),
        _ => None,
    }
}

/// A path of the table, in which blanks and backslashes are octal numbers.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after
            .get(..3)
            .filter(|digits| byte == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        let number = digits
            .map(|digits| digits.iter().fold(0_u32, |number, digit| number * 8 + u32::from(digit - b'0')));
        match number.and_then(|number| u8::try_from(number).ok()) {
            Some(byte) => {
                path.push(byte);
                rest = &after[3..];
            }
            None => {
                path.push(byte);
                rest = after;
            }
        }
    }
    OsString::from_vec(path).into()
}

/// Raises the number of open descriptors. Returns the limit before.
fn raised_limit() -> Option<Rlimit> {
    let before = getrlimit(Resource::Nofile);
    let most = before.maximum.map_or(MAX_OPEN, |maximum| maximum.min(MAX_OPEN));
    let is_lower = before.current.is_some_and(|current| current < most);
    // Without more descriptors a sandbox with many paths fails.
    (is_lower && setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..before }).is_ok())
        .then_some(before)
}

/// The error for a path.
fn at(path: &Path) -> impl Fn(Errno) -> Error + '_ {
    move |error| failed(path, error.into())
}

fn failed(path: &Path, source: IoError) -> Error {
    Error::Path { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_mount_may_contain_anything() {
        for (text, path) in [
            ("/a", "/a"),
            ("/a\\040b", "/a b"),
            ("/a\\134040", "/a\\040"),
            ("/a\\9", "/a\\9"),
            ("/a\\", "/a\\"),
        ] {
            assert_eq!(unescaped(text.as_bytes()), Path::new(path), "{text}");
        }
    }
}
