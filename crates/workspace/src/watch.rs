//! Folders of which the system says what happens to the names in them.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How often one has to look where the system does not say so.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// What happened to a name in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is there now; what it will hold may still have to be written.
    Made,
    /// It was put there whole, in place of another one or not.
    Placed,
    /// Somebody has written to it.
    Written,
    /// It is gone.
    Gone,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// In which folder.
    pub folder: Folder,
    /// Of which name.
    pub name: OsString,
    /// How.
    pub change: Change,
}

/// A folder that is watched. Watched twice, it is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Folder(system::Folder);

/// Watched folders. Nothing runs for them until something is waited for.
pub struct Watch {
    system: Option<system::Watch>,
    /// Somebody has to look, because the system does not say everything.
    is_blind: CancellationToken,
}

impl Watch {
    /// Watches nothing yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it opens something")]
    pub fn new() -> Self {
        Self { system: system::Watch::new(), is_blind: CancellationToken::new() }
    }

    /// Watches a folder from now on; none if the system cannot, and one has to look.
    pub fn add(&self, folder: &Path) -> Option<Folder> {
        let folder = self.system.as_ref().and_then(|system| system.add(folder)).map(Folder);
        if folder.is_none() {
            self.is_blind.cancel();
        }
        folder
    }

    /// Watches a folder no longer.
    pub fn remove(&self, folder: Folder) {
        if let Some(system) = &self.system {
            system.remove(folder.0);
        }
    }

    /// Waits until something changed; none when one has to look at everything.
    pub async fn next(&self) -> Option<Vec<Changed>> {
        let told = async {
            let told = match &self.system {
                Some(system) => system.next().await,
                None => std::future::pending().await,
            };
            if told.is_none() {
                // Whatever is the matter, it must not keep anybody busy.
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
            told
        };
        let looked = async {
            self.is_blind.cancelled().await;
            tokio::time::sleep(LOOK_INTERVAL).await;
        };
        tokio::select! {
            told = told => told,
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

    pub(super) struct Watch(AsyncFd<Told>);

    struct Told(Inotify);

    impl AsRawFd for Told {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_fd().as_raw_fd()
        }
    }

    impl Watch {
        #[expect(
            deprecated,
            reason = "the newer name is unsafe; what it wants promised holds: `Told` owns its descriptor"
        )]
        pub(super) fn new() -> Option<Self> {
            let told = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).ok()?;
            AsyncFd::new(Told(told)).ok().map(Self)
        }

        pub(super) fn add(&self, folder: &Path) -> Option<Folder> {
            let changes = AddWatchFlags::IN_CREATE
                | AddWatchFlags::IN_MOVED_TO
                | AddWatchFlags::IN_CLOSE_WRITE
                | AddWatchFlags::IN_DELETE
                | AddWatchFlags::IN_MOVED_FROM;
            self.0.get_ref().0.add_watch(folder, changes | AddWatchFlags::IN_ONLYDIR).ok()
        }

        pub(super) fn remove(&self, folder: Folder) {
            // It fails when the folder itself is gone.
            let _: nix::Result<()> = self.0.get_ref().0.rm_watch(folder);
        }

        /// None when some was lost.
        pub(super) async fn next(&self) -> Option<Vec<Changed>> {
            loop {
                let mut ready = self.0.readable().await.ok()?;
                match ready.try_io(|told| told.get_ref().0.read_events().map_err(io::Error::from)) {
                    Ok(Ok(events)) => {
                        let is_whole =
                            |event: &InotifyEvent| !event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW);
                        let are_all = events.iter().all(is_whole);
                        if !are_all {
                            return None;
                        }
                        let told: Vec<_> = events.into_iter().filter_map(changed).collect();
                        // That a folder is watched no longer is said too.
                        if !told.is_empty() {
                            return Some(told);
                        }
                    }
                    Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(Err(_)) => return None,
                    // Another one was woken by mistake.
                    Err(_) => {}
                }
            }
        }
    }

    /// What an event says of a name, if it speaks of one.
    fn changed(event: InotifyEvent) -> Option<Changed> {
        let kinds = [
            (AddWatchFlags::IN_MOVED_TO, Change::Placed),
            (AddWatchFlags::IN_CREATE, Change::Made),
            (AddWatchFlags::IN_CLOSE_WRITE, Change::Written),
            (AddWatchFlags::IN_DELETE, Change::Gone),
            (AddWatchFlags::IN_MOVED_FROM, Change::Gone),
        ];
        let (_, change) = kinds.into_iter().find(|(kind, _)| event.mask.contains(*kind))?;
        Some(Changed { folder: super::Folder(event.wd), name: event.name?, change })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;

    use super::Changed;

    /// There is none.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Folder {}

    /// There is none.
    pub(super) enum Watch {}

    impl Watch {
        pub(super) fn new() -> Option<Self> {
            None
        }

        pub(super) fn add(&self, _: &Path) -> Option<Folder> {
            match *self {}
        }

        pub(super) fn remove(&self, _: Folder) {
            match *self {}
        }

        pub(super) async fn next(&self) -> Option<Vec<Changed>> {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_happens_in_a_folder_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("old"), "1").unwrap();
        let watch = Watch::new();
        let watched = watch.add(folder.path()).unwrap();
        assert_eq!(watch.add(folder.path()), Some(watched));
        std::fs::write(at("new"), "1").unwrap();
        std::fs::rename(at("new"), at("old")).unwrap();
        std::fs::remove_file(at("old")).unwrap();
        let told = watch.next().await.unwrap();
        let told: Vec<_> = told.iter().map(|it| (it.name.to_str().unwrap(), it.change)).collect();
        let expected = [
            ("new", Change::Made),
            ("new", Change::Written),
            ("new", Change::Gone),
            ("old", Change::Placed),
            ("old", Change::Gone),
        ];
        assert_eq!(told, expected);
        watch.remove(watched);
        std::fs::write(at("later"), "1").unwrap();
        let later = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
        assert!(later.is_err(), "{later:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_looks_now_and_then_at_what_cannot_be_watched() {
        let watch = Watch::new();
        assert_eq!(watch.add(Path::new("/nowhere/at/all")), None);
        let begun = tokio::time::Instant::now();
        assert_eq!(watch.next().await, None);
        assert!(begun.elapsed() >= LOOK_INTERVAL);
    }
}
