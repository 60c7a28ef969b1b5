//! The arguments of bubblewrap for a sandbox.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::access::{Access, Rule, is_covered, rules, without_repetitions};
use crate::{Error, Network, Sandbox, TEMPORARY, sockets};

/// The directories where the program is searched. Not `PATH`, which may contain a directory of the repository.
pub(crate) const DIRECTORIES: &[&str] =
    &["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin", "/run/wrappers/bin"];
/// The name of the program.
pub(crate) const NAME: &str = "bwrap";
/// The helper's path inside. Its own path may be hidden.
pub(crate) const HELPER: &str = "/dev/codewright";
/// Settings of the kernel. They belong to root by name, not by capability, so root could change them inside. Some
/// versions of bubblewrap leave them writable.
const KERNEL: &[&str] =
    &["/proc/acpi", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/scsi", "/proc/sys", "/proc/sysrq-trigger"];
/// The path of the proxy's socket inside.
pub(crate) const PROXY: &str = "/dev/codewright-proxy";

/// The arguments and what they cover.
pub(crate) struct Arguments {
    pub(crate) words: Vec<OsString>,
    /// The covered sockets. If one of them disappears now, bubblewrap fails.
    pub(crate) covered: Vec<PathBuf>,
}

/// The arguments up to and with `--`. `helper` is a program that appears inside as [`HELPER`], and `directory`
/// the working directory.
///
/// # Errors
///
/// Fails if a path of the sandbox cannot be resolved.
pub(crate) fn arguments(sandbox: &Sandbox, helper: &Path, directory: &Path) -> Result<Arguments, Error> {
    let mut args = Words::default();
    args.words(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--as-pid-1", "--cap-drop", "ALL"]);
    // A command may have stopped the supervisor inside, which would end it otherwise.
    args.words(&["--die-with-parent"]);
    if sandbox.network != Network::Open {
        args.words(&["--unshare-net"]);
    }
    args.words(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    for name in KERNEL.iter().map(Path::new).filter(|path| path.exists()) {
        args.bind("--ro-bind", name, name);
    }
    args.bind("--bind", &sandbox.temporary, Path::new(TEMPORARY));
    let rules = with_pinned(without_repetitions(rules(sandbox)?));
    let mut hidden = Vec::new();
    for rule in &rules {
        if rule.path == Path::new(TEMPORARY) || is_covered(&rules, rule) && !rule.path.starts_with(TEMPORARY)
        {
            continue;
        }
        match rule.access {
            Access::Write => args.bind("--bind", &rule.path, &rule.path),
            Access::Show | Access::Protect => args.bind("--ro-bind", &rule.path, &rule.path),
            Access::Hide if rule.is_directory => {
                args.words(&["--perms", "0555", "--tmpfs"]);
                args.path(&rule.path);
                hidden.push(&rule.path);
            }
            Access::Hide => args.bind("--ro-bind", Path::new("/dev/null"), &rule.path),
        }
    }
    // The paths inside were mounted after these directories, so they can become read-only only now.
    for path in hidden {
        args.words(&["--remount-ro"]);
        args.path(path);
    }
    let covered: Vec<PathBuf> = sockets::visible(&rules)?.into_iter().collect();
    for socket in &covered {
        args.bind("--ro-bind", Path::new("/dev/null"), socket);
    }
    args.bind("--ro-bind", helper, Path::new(HELPER));
    if let Network::Proxy(socket) = &sandbox.network {
        args.bind("--ro-bind", socket, Path::new(PROXY));
    }
    args.words(&["--chdir"]);
    args.path(directory);
    args.words(&["--"]);
    Ok(Arguments { words: args.0, covered })
}

/// Adds the directories between a writable directory and a restricted path inside it.
///
/// They become mount points too, which cannot be renamed. Otherwise a command could move the directory of a
/// restricted path away and create another one in its place.
fn with_pinned(rules: Vec<Rule>) -> Vec<Rule> {
    let mut pinned: Vec<PathBuf> = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let above = rules[..at].iter().rev().find(|above| rule.path.starts_with(&above.path));
        let Some(above) = above.filter(|above| above.access == Access::Write) else { continue };
        let between = rule.path.ancestors().skip(1).take_while(|path| *path != above.path);
        pinned.extend(between.map(Path::to_owned));
    }
    pinned.sort();
    pinned.dedup();
    let pinned = pinned.into_iter().map(|path| Rule { path, access: Access::Write, is_directory: true });
    let mut all: Vec<Rule> = rules.into_iter().chain(pinned).collect();
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all
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
