//! Waits until the system says that a store's write-ahead log was written to.

use std::path::Path;
use std::time::Duration;

/// A watched write-ahead log, where the system offers such a thing.
pub(super) struct Watch(system::Watch);

impl Watch {
    /// Begins to watch the write-ahead log of a database; none if that cannot be done.
    pub(super) fn of(database: &Path) -> Option<Self> {
        system::Watch::of(database).map(Self)
    }

    /// Waits until it was written to, by whatever process; false when nothing was said in that time.
    pub(super) fn wait(&self, most: Duration) -> bool {
        self.0.wait(most)
    }

    /// Ends the waiting, now and from now on.
    pub(super) fn stop(&self) {
        self.0.stop();
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::OsString;
    use std::os::fd::AsFd as _;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::eventfd::{EfdFlags, EventFd};
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

    pub(super) struct Watch {
        told: Inotify,
        stopped: EventFd,
        /// The log's name: it may come and go, its directory does not.
        name: OsString,
    }

    impl Watch {
        pub(super) fn of(database: &Path) -> Option<Self> {
            // SQLite puts the log beside the file, not beside a link to it.
            let database = database.canonicalize().ok()?;
            let mut name = database.file_name()?.to_owned();
            name.push("-wal");
            let told = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).ok()?;
            told.add_watch(database.parent()?, AddWatchFlags::IN_MODIFY).ok()?;
            let stopped = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).ok()?;
            Some(Self { told, stopped, name })
        }

        pub(super) fn wait(&self, most: Duration) -> bool {
            let until = Instant::now() + most;
            loop {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return false;
                }
                let mut both = [
                    PollFd::new(self.told.as_fd(), PollFlags::POLLIN),
                    PollFd::new(self.stopped.as_fd(), PollFlags::POLLIN),
                ];
                let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
                match poll(&mut both, timeout) {
                    Ok(_) => {}
                    // A signal came in between.
                    Err(nix::Error::EINTR) => continue,
                    Err(_) => return false,
                }
                if both[1].any() == Some(true) || self.is_told() {
                    return true;
                }
            }
        }

        pub(super) fn stop(&self) {
            // It only fails once it has been said very often.
            let _: nix::Result<usize> = self.stopped.write(1);
        }

        /// Takes what the system has said; whether it was about the log.
        fn is_told(&self) -> bool {
            let mut is_told = false;
            // Ends with an error when nothing is left.
            while let Ok(events) = self.told.read_events() {
                // One without a name says that some were dropped.
                is_told |=
                    events.iter().any(|event| event.name.as_ref().is_none_or(|name| *name == self.name));
            }
            is_told
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;
    use std::time::Duration;

    /// There is none.
    pub(super) enum Watch {}

    impl Watch {
        pub(super) fn of(_: &Path) -> Option<Self> {
            None
        }

        pub(super) fn wait(&self, _: Duration) -> bool {
            match *self {}
        }

        pub(super) fn stop(&self) {
            match *self {}
        }
    }
}
