//! Restricts what a process can read, write and connect to, enforced by the kernel.
//!
//! A [`Sandbox`] is a value that describes the access of one command. [`Launch::new`] turns it into a command
//! line for the strongest mechanism of this machine ([`Mechanism`]):
//!
//! - Linux with bubblewrap: separate user, mount, pid, ipc and network namespaces, with a read-only root
//!   directory. Inside, the program itself is started once more; it makes the mounts, restricts system calls
//!   ([`restrict`]) and starts the command. It creates the command's files, so that no guarded name appears.
//! - Linux without bubblewrap: Landlock and a system call filter. This is weaker, see [`Mechanism::gaps`].
//! - macOS: a profile for `sandbox-exec`.
//!
//! Anything else cannot enforce a sandbox. A command with a sandbox that cannot be enforced is not started.

mod access;
mod blocked;
mod bubblewrap;
mod folder;
mod forward;
mod guard;
mod launch;
mod light;
mod listeners;
mod mechanism;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only the helper on Linux uses it"))]
mod names;
mod opened;
mod seatbelt;
mod sockets;
mod steps;

#[cfg(target_os = "linux")]
mod creation;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod ports;
#[cfg(target_os = "linux")]
mod privilege;
#[cfg(target_os = "linux")]
mod seccomp;

use std::path::{Path, PathBuf};

pub use blocked::Blocked;
pub use bubblewrap::Mounter;
pub use guard::{Guarded, folded_name};
pub use launch::{CONFINE, Inner, Launch, plan, restrict};
pub use light::with_writes;
pub use listeners::listeners;
pub use mechanism::{Creation, Mechanism, Probe, Strongest, detect};
pub use names::{Below, OutsidePackages, is_part_of_repository};
pub use opened::Opened;

/// The private directory of a command appears under this path.
pub const TEMPORARY: &str = "/tmp";

/// The access of one command.
///
/// Everything that is not named can be read and not written. Of two paths the longer one decides; for the
/// same path the stricter access decides: hidden, then masked, then protected, then visible, then writable. Paths that do
/// not exist have no effect, except those of [`Sandbox::guarded`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Files and directories that can be written.
    pub write: Vec<PathBuf>,
    /// Files and directories that cannot be written although a directory above can.
    pub protect: Vec<PathBuf>,
    /// Names in directories that cannot be written, created or replaced.
    pub guarded: Vec<Guarded>,
    /// Names that cannot be created at any depth. Those that exist are not protected by a mount.
    pub below: Below,
    /// Files and directories whose content is not visible.
    pub hide: Vec<PathBuf>,
    /// Files whose content is not visible and that cannot be used at all. Programs get an error instead of an empty file.
    pub mask: Vec<PathBuf>,
    /// An empty file without permissions that takes the place of masked files. `None` if nothing is masked.
    pub blank: Option<PathBuf>,
    /// Files and directories that can be read although a directory above is hidden.
    pub show: Vec<PathBuf>,
    /// The private directory that the command sees as [`TEMPORARY`].
    pub temporary: PathBuf,
    /// The paths of `write`, `show` and `temporary` that were opened when they were judged. Links in them are not followed,
    /// and a sandbox in which something else is at such a path is not built.
    pub opened: Vec<Opened>,
    /// The access to the network.
    pub network: Network,
}

impl Sandbox {
    /// What was opened at a path when it was judged.
    fn opened_at(&self, path: &Path) -> Option<&Opened> {
        self.opened.iter().find(|opened| opened.path() == path)
    }
}

/// The access of a command to the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// No network besides a private loopback interface.
    Off,
    /// Only the proxy that listens on this unix socket.
    Proxy(PathBuf),
    /// The network of the machine.
    Open,
}

/// A sandbox cannot be enforced.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No mechanism is available. Holds the reasons.
    #[error("this machine cannot enforce a sandbox: {0}")]
    Unsupported(String),
    /// The running program was replaced or removed.
    #[error("the program at `{}` was replaced while it runs; restart it", .0.display())]
    Replaced(PathBuf),
    /// Another file, directory or link has taken the place of one that was judged.
    #[error("`{}` was replaced after it was checked, or is a symbolic link", .0.display())]
    Exchanged(PathBuf),
    /// A path of the sandbox cannot be used.
    #[error("cannot use `{}` in a sandbox: {source}", .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The kernel rejected a restriction.
    #[error("the kernel rejected a restriction: {0}")]
    Kernel(String),
}
