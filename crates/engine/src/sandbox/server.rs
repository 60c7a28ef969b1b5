//! The sandbox of MCP servers, language servers, plugins, hooks and other agents.
//!
//! A program of the user's configuration has the network and writes the home directory, except the names in `home`:
//! the user installed it and expects that it works. A program of a repository, and one that loads code of the worktree,
//! has the sandbox of a command, because a command can change what it loads.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use codewright_config::{SandboxMode, env};
use codewright_proto::SessionId;
use codewright_workspace::{Confined, Mechanism, Network, Opened, TEMPORARY, folded_name};

use super::enforcement::Consent;
use super::hiding::ProcessKind;
use super::masked::masked;
use super::named::arguments;
use super::{PACKAGES, Restricted, Subject, home};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::permission::control;
use crate::permission::rules::PermissionRules;

/// Directories of the home directory that many programs need, where they cannot create them.
const CREATED: &[&str] = &[".cache", ".local/share/uv", ".local/state", ".npm"];
/// The largest number of writable directories. The others are read-only.
const MAX_WRITABLE: usize = 1000;
/// Programs that start a server in a container, which is a sandbox already and needs a socket that ours hides.
const CONTAINERS: &[&str] = &["docker", "podman", "nerdctl"];
/// The beginning of the ids that name the private directories of servers.
const SANDBOX_ID: &str = "ses_mcp";
/// The length of the rest of such an id.
const ID_CHARS: usize = 23;
/// The largest number of links between the name of a program and its file.
const MAX_LINKS: usize = 40;

/// Whose rights a program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Those of a program that the user installed: the network and the home directory.
    User,
    /// Those of a command.
    Project,
    /// Those of a command, with the network. The user agreed to it in the trust question.
    ProjectWithNetwork,
}

/// The program of a server.
#[derive(Clone, Copy)]
pub(crate) struct ServerProgram<'a> {
    pub(crate) program: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) rights: Rights,
    /// More paths that it can write, also protected ones.
    pub(crate) write: &'a [PathBuf],
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
) -> Result<Option<Restricted>, String> {
    let program = Path::new(server.program).file_name().unwrap_or_default();
    let is_users = server.rights == Rights::User;
    if is_users && CONTAINERS.iter().any(|name| program == *name) {
        return Ok(None);
    }
    // A user consented by configuring the server. A repository cannot consent.
    let consent = if is_users { Consent::Given } else { Consent::Missing };
    let support = tokio::runtime::Handle::current().block_on(inner.sandbox_support());
    let id = private_id(server.rights, instance).map_err(|error| error.to_string())?;
    let kind = if is_users { ProcessKind::UserProgram } else { ProcessKind::Command };
    // The model may have written what it runs. A program of the user's may read what the user may.
    let masked = if is_users { Vec::new() } else { masked_by_default(inner, instance)? };
    let subject =
        Subject { required: server.required, kind, masked, ..Subject::new(inner, instance, &id, &[]) };
    let Some(restricted) = subject.confine(&support, consent)? else { return Ok(None) };
    let mut confined = Confined::clone(&restricted.confined);
    confined.sandbox.show.extend(behind_links(inner, server.program));
    let variables = match (server.rights, server.required) {
        (Rights::Project, _) => {
            confined.sandbox.below.rows.extend(control::steps());
            restricted.variables
        }
        (Rights::ProjectWithNetwork, _) => {
            confined.sandbox.below.rows.extend(control::steps());
            confined.sandbox.network = Network::Open;
            restricted.variables
        }
        // Its caller must change nothing, so neither does a program that works for it.
        (Rights::User, SandboxMode::ReadOnly) => {
            confined.sandbox.network = Network::Open;
            Vec::new()
        }
        (Rights::User, SandboxMode::Workspace | SandboxMode::Off) => {
            widen(&mut confined, inner, server, named(inner, instance, server.args));
            Vec::new()
        }
    };
    Ok(Some(Restricted { confined: Arc::new(confined), variables, notes: restricted.notes }))
}

/// The files that the rules of the default agent deny to read. Blocks.
fn masked_by_default(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Result<Vec<PathBuf>, String> {
    let agent = instance
        .agent_name(None)
        .and_then(|name| instance.agent(&name).map(|agent| PermissionRules::of_agent(agent, &[])));
    let rules = agent.map_err(|error| error.to_string())?;
    tokio::runtime::Handle::current().block_on(masked(&rules, inner, instance))
}

/// The paths among the arguments of a server that it can write.
fn named(inner: &Inner, instance: &Instance, args: &[String]) -> Vec<Opened> {
    // An installed language server is named by its script, which nobody changes.
    let installed = inner.dirs.cache.join(PACKAGES);
    arguments(inner, instance, args, |path| !path.starts_with(&installed))
}

/// The id of the private directory. Programs with different rights never share one, because each could leave code there
/// that the other loads.
fn private_id(rights: Rights, instance: &Instance) -> Result<SessionId, codewright_proto::ParseIdError> {
    let digits = match rights {
        Rights::User => String::new(),
        Rights::Project | Rights::ProjectWithNetwork => {
            let mut hasher = DefaultHasher::new();
            instance.programs.root().hash(&mut hasher);
            let first = hasher.finish();
            first.hash(&mut hasher);
            format!("{first:016x}{:016x}", hasher.finish())
        }
    };
    let digits: String = digits.chars().take(ID_CHARS).collect();
    SessionId::parse(&format!("{SANDBOX_ID}{digits:0<ID_CHARS$}"))
}

/// The directories between the name of a program and its file that the private directory would hide. Directories of the
/// search path are visible anyway.
fn behind_links(inner: &Inner, program: &str) -> Vec<PathBuf> {
    let path = inner.env.filled(env::PATH).unwrap_or_default();
    let mut named = std::env::split_paths(path).map(|directory| directory.join(program));
    let first =
        if program.contains('/') { Some(PathBuf::from(program)) } else { named.find(|path| path.is_file()) };
    let mut shown = Vec::new();
    let mut next = first;
    for _ in 0..MAX_LINKS {
        let Some(path) = next else { break };
        if path.starts_with(TEMPORARY) {
            let directory = path.parent().filter(|directory| *directory != Path::new(TEMPORARY));
            shown.push(directory.map_or_else(|| path.clone(), Path::to_owned));
        }
        let target = std::fs::read_link(&path).ok();
        next = target.and_then(|target| Some(path.parent()?.join(target)));
    }
    // Directories on the way can be links, too.
    shown.extend(shown.clone().iter().filter_map(|path| path.canonicalize().ok()));
    shown.retain(|path| path.starts_with(TEMPORARY) && path != Path::new(TEMPORARY));
    shown
}

/// Gives a program the rights of the user's own: it has the network, and can write the home directory and the paths among
/// its arguments. Secrets stay hidden, and files that other programs run or obey stay as they are.
fn widen(confined: &mut Confined, inner: &Inner, server: ServerProgram<'_>, named: Vec<Opened>) {
    let dirs = &inner.dirs;
    let path = inner.env.filled(env::PATH).unwrap_or_default();
    let programs: Vec<PathBuf> = std::env::split_paths(path).collect();
    let kept = home::kept(dirs, &programs, server.write);
    let writable_directories = home::writable(dirs);
    for directory in writable_directories.iter().filter(|directory| !directory.starts_with(&dirs.home)) {
        // A program that needs it fails with an error of its own.
        drop(std::fs::create_dir_all(directory));
    }
    let sandbox = &mut confined.sandbox;
    sandbox.network = Network::Open;
    home::free_project_directory(&mut sandbox.guarded, &mut sandbox.below, server.write);
    let is_original = |path: &PathBuf| *path == dirs.opencode_data || *path == dirs.config;
    sandbox.hide.retain(|path| !is_original(path));
    sandbox.hide.extend(home::sign_ins(dirs));
    sandbox.protect.retain(|path| !is_original(path));
    if matches!(confined.mechanism, Mechanism::Bubblewrap(..)) {
        sandbox.write.extend(writable_directories);
        sandbox.guarded.extend(kept);
    } else {
        // Nothing protects a name in a directory that can be written, so only directories without such names can be.
        for name in CREATED {
            drop(std::fs::create_dir_all(dirs.home.join(name)));
        }
        let later = home::paths(&kept);
        writable(&dirs.home, &later, &mut sandbox.write);
        sandbox.protect.extend(later);
    }
    sandbox.write.extend(named.iter().map(|named| named.path().to_owned()));
    sandbox.opened.extend(named);
    sandbox.write.extend(server.write.iter().cloned());
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

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::*;

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
        let names = [".cargo/bin", ".config/fish", ".ssh", ".zshrc"];
        let later = names.map(|name| home.path().join(name));
        let mut found = Vec::new();
        writable(home.path(), &later, &mut found);
        found.sort();
        assert_eq!(found, [".cargo/registry", ".config/tool", "work"].map(|name| home.path().join(name)));
    }
}
