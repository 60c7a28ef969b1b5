//! Watches directories for changes of their entries.

#[cfg(any(test, not(target_os = "linux")))]
mod poll;
mod rules;
mod tree;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub(crate) use rules::is_ignored;

pub use tree::{Limit, Tree, TreeChange, TreeChanges, TreeOptions};

/// The interval for checking directories that cannot be watched.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// The change of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was created; its content may still be written.
    Made,
    /// It was moved here complete, perhaps replacing another one.
    Placed,
    /// It was written.
    Written,
    /// It was removed.
    Gone,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The directory.
    pub folder: Folder,
    /// The name of the entry.
    pub name: OsString,
    /// The kind of change.
    pub change: Change,
    /// Whether the entry is a directory. A link is not one.
    pub is_directory: bool,
}

/// A watched directory. Watching it twice gives the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Folder(system::Folder);

/// Watched directories. Nothing runs until [`Watch::next`] is called.
pub struct Watch {
    system: Option<system::Watch>,
    /// Cancelled if the system does not report all changes, so that the caller must check the directories.
    is_blind: CancellationToken,
}

impl Watch {
    /// Starts without directories.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it opens a descriptor")]
    pub fn new() -> Self {
        Self { system: system::Watch::new(), is_blind: CancellationToken::new() }
    }

    /// Watches a directory. Returns `None` if the system cannot, so that the caller must check it.
    pub fn add(&self, folder: &Path) -> Option<Folder> {
        let folder = self.system.as_ref().and_then(|system| system.add(folder)).map(Folder);
        if folder.is_none() {
            self.is_blind.cancel();
        }
        folder
    }

    /// Watches a directory that is not a link. Returns `None` if the system cannot; the caller need not check it.
    pub(crate) fn add_below(&self, folder: &Path) -> Option<Folder> {
        self.system.as_ref().and_then(|system| system.add_below(folder)).map(Folder)
    }

    /// Returns whether the system reports changes.
    pub(crate) fn is_supported(&self) -> bool {
        self.system.is_some()
    }

    /// Stops watching a directory.
    pub fn remove(&self, folder: Folder) {
        if let Some(system) = &self.system {
            system.remove(folder.0);
        }
    }

    /// Waits for changes. Returns `None` if the caller must check all directories.
    pub async fn next(&self) -> Option<Vec<Changed>> {
        let changes = async {
            let changes = match &self.system {
                Some(system) => system.next().await,
                None => std::future::pending().await,
            };
            if changes.is_none() {
                // Without reports the loop must not run continuously.
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
            changes
        };
        let looked = async {
            self.is_blind.cancelled().await;
            tokio::time::sleep(LOOK_INTERVAL).await;
        };
        tokio::select! {
            changes = changes => changes,
            () = looked => None,
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::os::fd::{AsFd as _, AsRawFd, RawFd};
    use std::path::Path;

    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
    use tokio::io::unix::AsyncFd;

    use super::{Change, Changed};

    pub(super) type Folder = WatchDescriptor;

    pub(super) struct Watch(AsyncFd<Events>);

    struct Events(Inotify);

    impl AsRawFd for Events {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_fd().as_raw_fd()
        }
    }

    impl Watch {
        #[expect(
            deprecated,
            reason = "the newer name is unsafe; its condition holds: `Events` owns its descriptor"
        )]
        pub(super) fn new() -> Option<Self> {
            let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).ok()?;
            AsyncFd::new(Events(inotify)).ok().map(Self)
        }

        pub(super) fn add(&self, folder: &Path) -> Option<Folder> {
            self.watch(folder, AddWatchFlags::IN_ONLYDIR)
        }

        pub(super) fn add_below(&self, folder: &Path) -> Option<Folder> {
            self.watch(folder, AddWatchFlags::IN_ONLYDIR | AddWatchFlags::IN_DONT_FOLLOW)
        }

        fn watch(&self, folder: &Path, flags: AddWatchFlags) -> Option<Folder> {
            let changes = AddWatchFlags::IN_CREATE
                | AddWatchFlags::IN_MOVED_TO
                | AddWatchFlags::IN_CLOSE_WRITE
                | AddWatchFlags::IN_DELETE
                | AddWatchFlags::IN_MOVED_FROM;
            self.0.get_ref().0.add_watch(folder, changes | flags).ok()
        }

        pub(super) fn remove(&self, folder: Folder) {
            // It fails if the directory itself is gone.
            let _: nix::Result<()> = self.0.get_ref().0.rm_watch(folder);
        }

        /// Returns `None` if events were lost.
        pub(super) async fn next(&self) -> Option<Vec<Changed>> {
            loop {
                let mut ready = self.0.readable().await.ok()?;
                match ready.try_io(|events| events.get_ref().0.read_events().map_err(io::Error::from)) {
                    Ok(Ok(events)) => {
                        let is_whole =
                            |event: &InotifyEvent| !event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW);
                        let are_all = events.iter().all(is_whole);
                        if !are_all {
                            return None;
                        }
                        let changes: Vec<_> = events.into_iter().filter_map(changed).collect();
                        // The end of a watch is reported as an event, too.
                        if !changes.is_empty() {
                            return Some(changes);
                        }
                    }
                    Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(Err(_)) => return None,
                    // A spurious wakeup.
                    Err(_) => {}
                }
            }
        }
    }

    /// The change of an entry that an event reports.
    fn changed(event: InotifyEvent) -> Option<Changed> {
        let kinds = [
            (AddWatchFlags::IN_MOVED_TO, Change::Placed),
            (AddWatchFlags::IN_CREATE, Change::Made),
            (AddWatchFlags::IN_CLOSE_WRITE, Change::Written),
            (AddWatchFlags::IN_DELETE, Change::Gone),
            (AddWatchFlags::IN_MOVED_FROM, Change::Gone),
        ];
        let (_, change) = kinds.into_iter().find(|(kind, _)| event.mask.contains(*kind))?;
        let is_directory = event.mask.contains(AddWatchFlags::IN_ISDIR);
        Some(Changed { folder: super::Folder(event.wd), name: event.name?, change, is_directory })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;

    use super::poll::Poll;
    use super::{Changed, LOOK_INTERVAL};

    pub(super) type Folder = u64;

    pub(super) struct Watch(Poll);

    impl Watch {
        pub(super) fn new() -> Option<Self> {
            Some(Self(Poll::new(LOOK_INTERVAL)))
        }

        pub(super) fn add(&self, folder: &Path) -> Option<Folder> {
            self.0.add(&folder.canonicalize().ok()?)
        }

        pub(super) fn add_below(&self, folder: &Path) -> Option<Folder> {
            self.0.add(folder)
        }

        pub(super) fn remove(&self, folder: Folder) {
            self.0.remove(folder);
        }

        /// Returns `None` if changes were lost.
        pub(super) async fn next(&self) -> Option<Vec<Changed>> {
            let found = self.0.next().await?.into_iter();
            let changed = found.map(|(folder, name, change, is_directory)| Changed {
                folder: super::Folder(folder),
                name,
                change,
                is_directory,
            });
            Some(changed.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn changes_in_a_directory_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("old"), "1").unwrap();
        let watch = Watch::new();
        let watched = watch.add(folder.path()).unwrap();
        assert_eq!(watch.add(folder.path()), Some(watched));
        std::fs::write(at("new"), "1").unwrap();
        std::fs::rename(at("new"), at("old")).unwrap();
        std::fs::remove_file(at("old")).unwrap();
        let changes = watch.next().await.unwrap();
        let changes: Vec<_> = changes.iter().map(|it| (it.name.to_str().unwrap(), it.change)).collect();
        let expected = [
            ("new", Change::Made),
            ("new", Change::Written),
            ("new", Change::Gone),
            ("old", Change::Placed),
            ("old", Change::Gone),
        ];
        assert_eq!(changes, expected);
        watch.remove(watched);
        std::fs::write(at("later"), "1").unwrap();
        let later = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
        assert!(later.is_err(), "{later:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn directories_that_cannot_be_watched_are_checked_regularly() {
        let watch = Watch::new();
        assert_eq!(watch.add(Path::new("/nowhere/at/all")), None);
        let begun = tokio::time::Instant::now();
        assert_eq!(watch.next().await, None);
        assert!(begun.elapsed() >= LOOK_INTERVAL);
    }
}
