//! The arguments of bubblewrap for a sandbox.

use std::ffi::OsString;
use std::path::Path;

use crate::access::{Access, is_covered, rules};
use crate::{Error, Network, Sandbox, TEMPORARY};

/// The directories where the program is searched. Not `PATH`, which may contain a directory of the repository.
pub(crate) const DIRECTORIES: &[&str] =
    &["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin", "/run/wrappers/bin"];
/// The name of the program.
pub(crate) const NAME: &str = "bwrap";
/// The helper's path inside. Its own path may be hidden.
pub(crate) const HELPER: &str = "/dev/codewright";
/// The path of the proxy's socket inside.
pub(crate) const PROXY: &str = "/dev/codewright-proxy";

/// The arguments up to and with `--`. `helper` is a program that appears inside as [`HELPER`], and `directory`
/// the working directory.
///
/// # Errors
///
/// Fails if a path of the sandbox cannot be resolved.
pub(crate) fn arguments(sandbox: &Sandbox, helper: &Path, directory: &Path) -> Result<Vec<OsString>, Error> {
    let mut args = Arguments::default();
    args.words(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--as-pid-1", "--cap-drop", "ALL"]);
    if sandbox.network != Network::Open {
        args.words(&["--unshare-net"]);
    }
    args.words(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    args.bind("--bind", &sandbox.temporary, Path::new(TEMPORARY));
    let rules = rules(sandbox)?;
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
    args.bind("--ro-bind", helper, Path::new(HELPER));
    if let Network::Proxy(socket) = &sandbox.network {
        args.bind("--ro-bind", socket, Path::new(PROXY));
    }
    args.words(&["--chdir"]);
    args.path(directory);
    args.words(&["--"]);
    Ok(args.0)
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
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
