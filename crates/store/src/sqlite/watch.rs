//! Waits until the system reports a write to a store's write-ahead log.

use std::path::Path;
use std::time::Duration;

/// A watched write-ahead log, if the system supports it.
pub(super) struct Watch(system::Watch);

impl Watch {
    /// Watches the write-ahead log of a database. `None` if that is not supported.
    pub(super) fn of(database: &Path) -> Option<Self> {
        system::Watch::of(database).map(Self)
    }

    /// Waits for a write by any process. Returns false if none was reported in time.
    pub(super) fn wait(&self, most: Duration) -> bool {
        self.0.wait(most)
    }

    /// Ends this and all later waits.
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
        events: Inotify,
        stopped: EventFd,
        /// The log's name. The directory is watched, because the log may be deleted and created.
        name: OsString,
    }

    impl Watch {
        pub(super) fn of(database: &Path) -> Option<Self> {
            // SQLite puts the log next to the file, not next to a link to it.
            let database = database.canonicalize().ok()?;
            let mut name = database.file_name()?.to_owned();
            name.push("-wal");
            let events = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).ok()?;
            events.add_watch(database.parent()?, AddWatchFlags::IN_MODIFY).ok()?;
            let stopped = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).ok()?;
            Some(Self { events, stopped, name })
        }

        pub(super) fn wait(&self, most: Duration) -> bool {
            let until = Instant::now() + most;
            loop {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return false;
                }
                let mut both = [
                    PollFd::new(self.events.as_fd(), PollFlags::POLLIN),
                    PollFd::new(self.stopped.as_fd(), PollFlags::POLLIN),
                ];
                let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
                match poll(&mut both, timeout) {
                    Ok(_) => {}
                    // Interrupted by a signal.
                    Err(nix::Error::EINTR) => continue,
                    Err(_) => return false,
                }
                if both[1].any() == Some(true) || self.has_event() {
                    return true;
                }
            }
        }

        pub(super) fn stop(&self) {
            // It only fails after very many calls.
            let _: nix::Result<usize> = self.stopped.write(1);
        }

        /// Reads the reported events. Returns whether one was about the log.
        fn has_event(&self) -> bool {
            let mut has_event = false;
            // Returns an error when there are no more events.
            while let Ok(events) = self.events.read_events() {
                // An event without a name means that others were lost.
                has_event |=
                    events.iter().any(|event| event.name.as_ref().is_none_or(|name| *name == self.name));
            }
            has_event
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;
    use std::time::Duration;

    /// Not supported on this system.
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
