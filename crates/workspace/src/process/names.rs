//! Waits until an entry with a protected name may have appeared.
//!
//! One inotify instance and one thread serve all programs of this process, so that programs at rest cause no work. A
//! directory is reached through those above it, which are watched, too: a program can remove, move or create them.

use std::path::PathBuf;
use std::sync::Arc;

use codewright_sandbox::Place;
use tokio::sync::Notify;

/// The watched names of a program. The watches end when this is dropped.
#[derive(Debug)]
pub(super) struct Names {
    target: Target,
    changed: Arc<Notify>,
    system: system::Watches,
}

/// What is watched.
#[derive(Debug)]
struct Target {
    places: Vec<Place>,
    /// The directories in which the program can replace directories.
    writable: Vec<PathBuf>,
}

impl Names {
    /// Watches nothing yet. `writable` are the directories that the program can write.
    pub(super) fn new(places: Vec<Place>, writable: &[PathBuf]) -> Self {
        let writable = writable.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let target = Target { places, writable };
        Self { target, changed: Arc::default(), system: system::Watches::new() }
    }

    /// Watches the directories as they are now. Returns false if the system does not report every change, so that the
    /// caller must check regularly. Blocks.
    pub(super) fn watch(&self) -> bool {
        self.system.watch(&self.target, &self.changed)
    }

    /// Waits for a change after which the directories must be watched again and checked.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::collections::HashMap;
    use std::collections::hash_map::Entry;
    use std::ffi::{CStr, OsStr, OsString};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Component, Path, PathBuf};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

    use codewright_sandbox::Place;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::eventfd::{EfdFlags, EventFd};
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::fs::statfs;
    use rustix::io::Errno;
    use tokio::sync::Notify;

    use super::Target;

    /// The largest number of watched directories of this process. Programs beyond it are checked regularly.
    const MAX_FOLDERS: usize = 4096;
    /// The space for events that are read at once.
    const EVENT_BYTES: usize = 4096;
    /// The stack of the thread, which does little.
    const STACK_BYTES: usize = 64 * 1024;
    /// File systems that others can change without a report: FUSE, 9P, NFS, CIFS and SMB.
    const REMOTE: [u64; 5] = [0x6573_5546, 0x0102_1997, 0x6969, 0xff53_4d42, 0xfe53_4d42];

    /// The end of a directory, or of its place in the directory above.
    const MOVED: WatchFlags = WatchFlags::MOVE_SELF.union(WatchFlags::DELETE_SELF);
    const CREATED: WatchFlags = WatchFlags::CREATE.union(WatchFlags::MOVED_TO);
    const REMOVED: WatchFlags = WatchFlags::DELETE.union(WatchFlags::MOVED_FROM);
    /// Links are not followed, and the interests of several programs add up.
    const ALWAYS: WatchFlags = WatchFlags::ONLYDIR.union(WatchFlags::DONT_FOLLOW).union(WatchFlags::MASK_ADD);

    /// The instance of this process. It exists as long as a program needs it.
    static SHARED: Mutex<Weak<Shared>> = Mutex::new(Weak::new());

    /// The watches of one program.
    #[derive(Debug)]
    pub(super) struct Watches(Option<(Arc<Shared>, u64)>);

    /// Ends the thread when it is dropped.
    #[derive(Debug)]
    struct Shared(Arc<Core>);

    #[derive(Debug)]
    struct Core {
        events: OwnedFd,
        stop: EventFd,
        table: Mutex<Table>,
    }

    #[derive(Debug, Default)]
    struct Table {
        programs: u64,
        folders: HashMap<i32, Vec<Interest>>,
        /// Whether events can no longer be read.
        is_broken: bool,
    }

    /// The interest of a program in a directory.
    #[derive(Debug)]
    struct Interest {
        program: u64,
        entries: Entries,
        changed: Arc<Notify>,
    }

    /// The entries whose changes matter.
    #[derive(Debug)]
    enum Entries {
        /// Only the directory itself.
        None,
        One(OsString),
        Of(Place),
    }

    impl Entries {
        fn contains(&self, name: &OsStr) -> bool {
            match self {
                Self::None => false,
                Self::One(one) => one == name,
                Self::Of(place) => place.contains(name),
            }
        }
    }

    impl Watches {
        pub(super) fn new() -> Self {
            Self(Shared::get().map(|shared| {
                let number = {
                    let mut table = shared.0.lock();
                    table.programs += 1;
                    table.programs
                };
                (shared, number)
            }))
        }

        pub(super) fn watch(&self, target: &Target, changed: &Arc<Notify>) -> bool {
            let Some((shared, program)) = &self.0 else { return false };
            let mut table = shared.0.lock();
            let writable = &target.writable;
            let mut new = New { core: &shared.0, writable, folders: HashMap::new(), found: Vec::new() };
            let is_complete = target.places.iter().all(|place| new.place(place, table.folders.len()));
            let found = new.found;
            table.forget(*program, &shared.0, |folder| found.iter().any(|(found, _)| *found == folder));
            for (folder, entries) in found {
                let interest = Interest { program: *program, entries, changed: changed.clone() };
                table.folders.entry(folder).or_default().push(interest);
            }
            is_complete && !table.is_broken
        }
    }

    impl Drop for Watches {
        fn drop(&mut self) {
            if let Some((shared, program)) = &self.0 {
                shared.0.lock().forget(*program, &shared.0, |_| false);
            }
        }
    }

    impl Table {
        /// Removes the interests of a program, and the watches that nobody needs any more.
        fn forget(&mut self, program: u64, core: &Core, is_kept: impl Fn(i32) -> bool) {
            self.folders.retain(|folder, interests| {
                interests.retain(|interest| interest.program != program);
                let is_needed = !interests.is_empty() || is_kept(*folder);
                if !is_needed {
                    // It fails if the directory itself is gone.
                    let _ = inotify::remove_watch(&core.events, *folder);
                }
                is_needed
            });
        }
    }

    /// New watches of a program.
    struct New<'a> {
        core: &'a Core,
        writable: &'a [PathBuf],
        /// The directories that are watched already, with what is watched.
        folders: HashMap<PathBuf, (i32, WatchFlags)>,
        found: Vec<(i32, Entries)>,
    }

    impl New<'_> {
        /// Watches a directory and those above it, from the root, so that a directory that is replaced meanwhile is
        /// reported. Returns false if that is not possible.
        fn place(&mut self, place: &Place, before: usize) -> bool {
            let mut above = PathBuf::from("/");
            for component in place.directory.components() {
                let name = match component {
                    Component::Normal(name) => name,
                    Component::RootDir | Component::CurDir => continue,
                    Component::ParentDir | Component::Prefix(_) => return false,
                };
                let path = above.join(name);
                let entry = || Entries::One(name.to_owned());
                // The directory above comes first, so that what happens between the two is reported. An open
                // directory is only reported as removed when it is closed.
                let is_writable = self.writable.iter().any(|root| above.starts_with(root));
                if is_writable && self.add(&above, CREATED, entry()).is_err() {
                    return false;
                }
                let mut added = self.add(&path, MOVED, Entries::None);
                if !is_writable && matches!(added, Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) {
                    added = self.add(&above, CREATED, entry());
                    added = added.and_then(|()| self.add(&path, MOVED, Entries::None));
                }
                match added {
                    Ok(()) => above = path,
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return !is_remote(&above),
                    Err(_) => return false,
                }
            }
            let flags = if place.is_of_link() { CREATED.union(REMOVED) } else { CREATED };
            let is_within_limit = before + self.folders.len() <= MAX_FOLDERS;
            is_within_limit
                && self.add(&above, flags, Entries::Of(place.clone())).is_ok()
                && !is_remote(&above)
        }

        fn add(&mut self, path: &Path, flags: WatchFlags, entries: Entries) -> Result<(), Errno> {
            let folder = match self.folders.entry(path.to_owned()) {
                Entry::Occupied(mut known) => {
                    let (folder, watched) = *known.get();
                    if !watched.contains(flags) {
                        let again = inotify::add_watch(&self.core.events, path, flags.union(ALWAYS))?;
                        if again != folder {
                            // It was replaced meanwhile. Both are watched, and the first one reports it.
                            self.found.push((again, Entries::None));
                        }
                        known.insert((again, watched.union(flags)));
                        again
                    } else {
                        folder
                    }
                }
                Entry::Vacant(new) => {
                    let folder = inotify::add_watch(&self.core.events, path, flags.union(ALWAYS))?;
                    new.insert((folder, flags));
                    folder
                }
            };
            self.found.push((folder, entries));
            Ok(())
        }
    }

    fn is_remote(directory: &Path) -> bool {
        // The type is signed on some systems.
        let kind = statfs(directory).map(|data| data.f_type as u64 & 0xffff_ffff);
        kind.map_or(true, |kind| REMOTE.contains(&kind))
    }

    impl Shared {
        /// Returns the instance of this process. `None` if the system has none left.
        fn get() -> Option<Arc<Self>> {
            let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(shared) = shared.upgrade().filter(|shared| !shared.0.lock().is_broken) {
                return Some(shared);
            }
            let core = Arc::new(Core {
                events: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?,
                stop: EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).ok()?,
                table: Mutex::default(),
            });
            let reader = core.clone();
            let thread = std::thread::Builder::new().name("names".to_owned()).stack_size(STACK_BYTES);
            thread.spawn(move || reader.read()).ok()?;
            let new = Arc::new(Self(core));
            *shared = Arc::downgrade(&new);
            Some(new)
        }
    }

    impl Drop for Shared {
        fn drop(&mut self) {
            // It only fails after very many calls.
            let _: nix::Result<usize> = self.0.stop.write(1);
        }
    }

    impl Core {
        fn lock(&self) -> MutexGuard<'_, Table> {
            self.table.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Reads events until nobody needs them.
        fn read(&self) {
            let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
            loop {
                let mut both = [
                    PollFd::new(self.events.as_fd(), PollFlags::POLLIN),
                    PollFd::new(self.stop.as_fd(), PollFlags::POLLIN),
                ];
                match poll(&mut both, PollTimeout::NONE) {
                    Ok(_) | Err(nix::Error::EINTR) if both[1].any() == Some(true) => return,
                    Ok(_) | Err(nix::Error::EINTR) => {}
                    Err(_) => return self.fail(),
                }
                let mut reader = Reader::new(&self.events, &mut buffer);
                loop {
                    match reader.next() {
                        Ok(event) => self.report(event.wd(), event.events(), event.file_name()),
                        Err(Errno::WOULDBLOCK | Errno::INTR) => break,
                        Err(_) => return self.fail(),
                    }
                }
            }
        }

        fn report(&self, folder: i32, events: ReadFlags, name: Option<&CStr>) {
            let mut table = self.lock();
            if events.contains(ReadFlags::QUEUE_OVERFLOW) {
                return table.wake_all();
            }
            let is_over = events.contains(ReadFlags::IGNORED);
            let name = name.map(|name| OsStr::from_bytes(name.to_bytes()));
            for interest in table.folders.get(&folder).into_iter().flatten() {
                // An event without a name is about the directory itself.
                if name.is_none_or(|name| interest.entries.contains(name)) {
                    interest.changed.notify_one();
                }
            }
            if is_over {
                table.folders.remove(&folder);
            }
        }

        /// Makes all programs check regularly.
        fn fail(&self) {
            let mut table = self.lock();
            table.is_broken = true;
            table.wake_all();
        }
    }

    impl Table {
        fn wake_all(&self) {
            for interest in self.folders.values().flatten() {
                interest.changed.notify_one();
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::Target;

    /// This system has none.
    #[derive(Debug)]
    pub(super) struct Watches;

    impl Watches {
        pub(super) fn new() -> Self {
            Self
        }

        pub(super) fn watch(&self, _: &Target, _: &Arc<Notify>) -> bool {
            false
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use codewright_sandbox::{Guard, Guarded};
    use tokio::time::timeout;

    use super::*;

    fn names(root: &Path, directory: &str) -> Names {
        let guarded = Guarded {
            directory: root.join(directory),
            patterns: vec!["config*".to_owned()],
            except: Vec::new(),
        };
        let guard = Guard::new(vec![guarded]).expect("the directory is readable");
        let places = guard.places().expect("there is no link");
        Names::new(places, &[root.to_owned()])
    }

    async fn has_changed(names: &Names) -> bool {
        timeout(Duration::from_millis(150), names.changed()).await.is_ok()
    }

    #[tokio::test]
    async fn only_changes_of_the_names_and_their_directories_are_reported() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let [names, other] = ["a/b", "a/c"].map(|directory| names(&root, directory));
        assert!(names.watch() && other.watch());
        fs::write(root.join("config"), "").unwrap();
        assert!(!has_changed(&names).await);
        fs::create_dir(root.join("a")).unwrap();
        assert!(has_changed(&names).await && has_changed(&other).await && names.watch() && other.watch());
        fs::create_dir(root.join("a/b")).unwrap();
        assert!(has_changed(&names).await && !has_changed(&other).await && names.watch());
        fs::write(root.join("a/b/unrelated"), "").unwrap();
        assert!(!has_changed(&names).await);
        fs::write(root.join("a/b/config.toml"), "").unwrap();
        assert!(has_changed(&names).await);
        fs::rename(root.join("a"), root.join("moved")).unwrap();
        assert!(has_changed(&names).await && has_changed(&other).await);
    }

    #[tokio::test]
    async fn a_directory_that_is_replaced_while_it_is_open_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        let names = names(&root, "a/b");
        assert!(names.watch());
        let _open = fs::File::open(root.join("a/b")).unwrap();
        fs::remove_dir(root.join("a/b")).unwrap();
        fs::create_dir(root.join("a/b")).unwrap();
        assert!(has_changed(&names).await && names.watch());
        fs::write(root.join("a/b/config"), "").unwrap();
        assert!(has_changed(&names).await);
    }
}
