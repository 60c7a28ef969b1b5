//! The arguments of bubblewrap for a sandbox.
//!
//! bubblewrap reads the table of all mounts again for each mount, which takes longer than everything else. So it creates
//! the namespaces, and the helper makes the mounts ([`crate::mounts`]). Where the helper gets no rights for that, such as
//! under a profile of AppArmor for bubblewrap, bubblewrap makes them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::steps::{KERNEL, Kind, PROXY, Step};
use crate::{Network, Sandbox, TEMPORARY};

/// The directories where the program is searched. Not `PATH`, which may contain a directory of the repository.
pub(crate) const DIRECTORIES: &[&str] =
    &["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin", "/run/wrappers/bin"];
/// The name of the program.
pub(crate) const NAME: &str = "bwrap";
/// The helper's path inside, if bubblewrap makes the mounts. Its own path may be hidden.
pub(crate) const HELPER: &str = "/dev/codewright";
/// The namespaces and rights of every command. A command may stop the supervisor inside, which would end it otherwise, so
/// it ends with its parent.
const NAMESPACES: &[&str] = &[
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--as-pid-1",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
];
/// The options with which the helper makes the mounts. It is root in a namespace of its own, may mount there, and may give
/// the user's own id to a second namespace inside, in which it has no right to mount.
const MOUNTING: &[&str] = &[
    "--uid",
    "0",
    "--gid",
    "0",
    "--cap-add",
    "CAP_SYS_ADMIN",
    "--cap-add",
    "CAP_SETFCAP",
    "--dev-bind",
    "/",
    "/",
    "--",
];

/// Options with which bubblewrap makes the mounts of every sandbox. It works if these do.
pub(crate) const EVERYTHING: &[&str] = &[
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-net",
    "--as-pid-1",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--",
];

/// Who makes the mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounter {
    /// The helper inside.
    Helper,
    /// bubblewrap, which takes longer.
    Bubblewrap,
}

/// The arguments with which the helper makes the mounts, up to and with `--`.
pub(crate) fn namespaces(network: &Network) -> Vec<OsString> {
    let mut args = Words::default();
    args.words(NAMESPACES);
    if *network != Network::Open {
        args.words(&["--unshare-net"]);
    }
    args.words(MOUNTING);
    args.0
}

/// The arguments and what they cover.
pub(crate) struct Arguments {
    pub(crate) words: Vec<OsString>,
    /// The covered sockets. If one of them disappears now, bubblewrap fails.
    pub(crate) covered: Vec<PathBuf>,
}

/// The arguments with which bubblewrap makes the mounts, up to and with `--`. `helper` is a program that appears inside
/// as [`HELPER`], and `directory` the working directory.
pub(crate) fn arguments(sandbox: &Sandbox, steps: Vec<Step>, helper: &Path, directory: &Path) -> Arguments {
    let mut args = Words::default();
    args.words(NAMESPACES);
    if sandbox.network != Network::Open {
        args.words(&["--unshare-net"]);
    }
    args.words(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    for name in KERNEL.iter().map(Path::new).filter(|path| path.exists()) {
        args.bind("--ro-bind", name, name);
    }
    args.bind("--bind", &sandbox.temporary, Path::new(TEMPORARY));
    let (mut hidden, mut covered) = (Vec::new(), Vec::new());
    for Step { kind, path, identity: _ } in steps {
        match kind {
            Kind::Write => args.bind("--bind", &path, &path),
            Kind::Read => args.bind("--ro-bind", &path, &path),
            Kind::HideDirectory => {
                args.words(&["--perms", "0555", "--tmpfs"]);
                args.path(&path);
                hidden.push(path);
            }
            Kind::HideFile => args.bind("--ro-bind", Path::new("/dev/null"), &path),
            // Without the empty file, an empty device hides the content as well.
            Kind::Mask => {
                args.bind("--ro-bind", sandbox.blank.as_deref().unwrap_or(Path::new("/dev/null")), &path);
            }
            Kind::Cover => {
                args.bind("--ro-bind", Path::new("/dev/null"), &path);
                covered.push(path);
            }
        }
    }
    // The paths inside were mounted after these directories, so they can become read-only only now.
    for path in &hidden {
        args.words(&["--remount-ro"]);
        args.path(path);
    }
    args.bind("--ro-bind", helper, Path::new(HELPER));
    if let Network::Proxy(socket) = &sandbox.network {
        args.bind("--ro-bind", socket, Path::new(PROXY));
    }
    args.words(&["--chdir"]);
    args.path(directory);
    args.words(&["--"]);
    Arguments { words: args.0, covered }
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn path(&mut self, path: &Path) {
        self.0.push(path.into());
    }

    fn bind(&mut self, option: &str, from: &Path, to: &Path) {
        self.words(&[option]);
        self.path(from);
        self.path(to);
    }
}
