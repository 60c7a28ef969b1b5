//! The sandbox of MCP servers, language servers and other agents.
//!
//! A server runs in the sandbox of the user's mode. A server of the user's configuration also has the network and writes
//! the directories of the home directory, because most are started by a package manager and work on the user's files. A server of a
//! repository has neither.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use codewright_config::SandboxMode;
use codewright_proto::SessionId;
use codewright_workspace::{Confined, Guarded, Network, folded_name};

use super::enforcement::Consent;
use super::{PACKAGES, Subject};
use crate::inner::Inner;
use crate::instance::Instance;

/// Files and directories below the home directory whose content runs later, outside of any sandbox.
const STARTED_LATER: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".config/fish",
    ".config/nushell",
    ".config/environment.d",
    ".pam_environment",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".config/autostart",
    ".config/systemd",
    ".ssh",
    ".config/git",
    ".gitconfig",
    ".exrc",
    ".vimrc",
    ".gvimrc",
    ".vim",
    ".config/nvim",
    ".emacs",
    ".emacs.d",
    ".config/emacs",
    ".tmux.conf",
    ".config/tmux",
    ".screenrc",
    ".gdbinit",
    ".psqlrc",
    ".curlrc",
    ".wgetrc",
    ".npmrc",
    ".opencode",
    ".codewright",
    ".zsh",
    ".oh-my-zsh",
    ".config/zsh",
    ".config/direnv",
    ".nvm",
    ".pyenv/bin",
    ".pyenv/shims",
    ".bun/bin",
    ".deno/bin",
    "go/bin",
    ".local/share/applications",
    ".local/share/systemd",
    ".local/share/dbus-1",
    ".local/bin",
    ".cargo/bin",
    ".cargo/config.toml",
    "bin",
    "Library/LaunchAgents",
];
/// Directories of the home directory that many programs need, and that they cannot create.
const CREATED: &[&str] = &[".cache", ".local/share/uv", ".local/state", ".npm"];
/// The largest number of writable directories. The others are read-only.
const MAX_WRITABLE: usize = 1000;
/// Programs that start a server in a container, which is a sandbox already and needs a socket that ours hides.
const CONTAINERS: &[&str] = &["docker", "podman", "nerdctl"];
/// The id that names the private directory of servers.
const SANDBOX_ID: &str = "ses_mcp00000000000000000000000";
/// The program of a server.
#[derive(Clone, Copy)]
pub(crate) struct ServerProgram<'a> {
    pub(crate) program: &'a str,
    pub(crate) args: &'a [String],
    /// Whether a repository's configuration starts it.
    pub(crate) of_repository: bool,
    /// The mode that its callers require.
    pub(crate) required: SandboxMode,
}

/// Returns the sandbox of a server. `None` if nothing restricts it. Blocks.
///
/// # Errors
///
/// Fails with a sentence if the machine cannot enforce the mode.
pub(crate) fn confine(
    inner: &Arc<Inner>,
    instance: &Arc<Instance>,
    server: ServerProgram<'_>,
) -> Result<Option<Arc<Confined>>, String> {
    let program = Path::new(server.program).file_name().unwrap_or_default();
    if !server.of_repository && CONTAINERS.iter().any(|name| program == *name) {
        return Ok(None);
    }
    // A user consented by configuring the server. A repository cannot consent.
    let consent = if server.of_repository { Consent::Missing } else { Consent::Given };
    let support = tokio::runtime::Handle::current().block_on(inner.sandbox_support());
    let id = SessionId::parse(SANDBOX_ID).map_err(|error| error.to_string())?;
    let subject = Subject { required: server.required, ..Subject::new(inner, instance, &id, &[]) };
    let restricted = subject.confine(&support, consent)?;
    let widen = |confined: Arc<Confined>| match server.required {
        _ if server.of_repository => confined,
        // Its caller must change nothing, so neither does a program that works for it.
        SandboxMode::ReadOnly => {
            let mut confined = Confined::clone(&confined);
            confined.sandbox.network = Network::Open;
            Arc::new(confined)
        }
        SandboxMode::Workspace | SandboxMode::Off => widened(&confined, inner, server.args),
    };
    Ok(restricted.map(|restricted| widen(restricted.confined)))
}

/// The sandbox of a server of the user's configuration: it has the network, and can write the directories of the home
/// directory and the paths among its arguments. Secrets stay hidden, and files that programs run later stay as they are.
fn widened(confined: &Confined, inner: &Inner, args: &[String]) -> Arc<Confined> {
    let mut confined = confined.clone();
    let home = &inner.dirs.home;
    let started_later = STARTED_LATER.iter().map(|name| home.join(name));
    let own = [inner.dirs.own_config.clone(), inner.dirs.config.clone()];
    let later: Vec<PathBuf> = started_later.chain(own).collect();
    // An installed language server is named by its script, which nobody changes.
    let installed = inner.dirs.cache.join(PACKAGES);
    let named = args.iter().map(PathBuf::from);
    let is_named = |path: &PathBuf| {
        path.is_absolute() && path.parent().is_some() && path.exists() && !path.starts_with(&installed)
    };
    let named: Vec<PathBuf> = named.filter(is_named).collect();
    for name in CREATED {
        // Without it, programs that need it fail with an error of their own.
        drop(std::fs::create_dir_all(home.join(name)));
    }
    let sandbox = &mut confined.sandbox;
    sandbox.network = Network::Open;
    writable(home, &later, &mut sandbox.write);
    // In a directory that can be written as a whole, missing names have to be watched.
    sandbox
        .guarded
        .extend(by_directory(later.iter().filter(|path| named.iter().any(|named| path.starts_with(named)))));
    sandbox.write.extend(named);
    sandbox.protect.extend(later);
    Arc::new(confined)
}

/// Adds the subdirectories that can be written: those that are not one of the protected paths and contain none of them.
/// Nothing can be created next to them, so a path that is missing stays missing.
fn writable(directory: &Path, paths: &[PathBuf], into: &mut Vec<PathBuf>) {
    // A directory that cannot be read cannot be written either.
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if into.len() >= MAX_WRITABLE {
            return;
        }
        // A link is judged by its target.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if !paths.iter().any(|other| is_within(other, &path)) {
            into.push(path);
        } else if !paths.iter().any(|other| is_within(&path, other)) {
            writable(&path, paths, into);
        }
    }
}

/// Whether a path is below a directory or is the directory, also on file systems that ignore case.
fn is_within(path: &Path, directory: &Path) -> bool {
    let mut names = path.components();
    let folded = |name: Component| folded_name(&name.as_os_str().to_string_lossy());
    directory.components().all(|name| names.next().is_some_and(|other| folded(other) == folded(name)))
}

/// Returns the names of paths by the directory that contains them.
fn by_directory<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Vec<Guarded> {
    let mut rows: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for path in paths {
        if let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
            rows.entry(directory.to_owned()).or_default().push(folded_name(&name.to_string_lossy()));
        }
    }
    let row = |(directory, patterns)| Guarded { directory, patterns, except: Vec::new() };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::*;

    #[test]
    fn names_are_guarded_in_their_directory() {
        let paths = [".zshrc", ".cargo/bin", ".cargo/config.toml", "Library/LaunchAgents"];
        let rows = by_directory(paths.map(|name| Path::new("/home/a").join(name)).iter());
        let rows: Vec<_> = rows.iter().map(|row| (row.directory.to_str(), row.patterns.join(" "))).collect();
        let expected = [
            (Some("/home/a"), ".zshrc".to_owned()),
            (Some("/home/a/.cargo"), "bin config.toml".to_owned()),
            (Some("/home/a/Library"), "launchagents".to_owned()),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn directories_without_a_start_up_file_are_writable() {
        let home = tempfile::tempdir().unwrap();
        for name in
            ["work", ".cargo/registry", ".cargo/BIN", ".config/tool", ".config/fish/functions", ".ssh"]
        {
            create_dir_all(home.path().join(name)).unwrap();
        }
        write(home.path().join(".zshrc"), "").unwrap();
        std::os::unix::fs::symlink("/", home.path().join("link")).unwrap();
        let later = STARTED_LATER.iter().map(|name| home.path().join(name)).collect::<Vec<_>>();
        let mut found = Vec::new();
        writable(home.path(), &later, &mut found);
        found.sort();
        assert_eq!(found, [".cargo/registry", ".config/tool", "work"].map(|name| home.path().join(name)));
    }
}
