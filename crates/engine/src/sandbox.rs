//! The sandbox of the model's commands.
//!
//! The mode comes from the user's configuration; an agent can only make it stricter. A command can write the
//! worktree and the session's private temporary directory. Control files, secrets and the sockets of services
//! are out of reach, except those that a granted permission names.

mod caches;
pub(crate) mod enforcement;
pub(crate) mod git;
pub(crate) mod hiding;
mod home;
pub(crate) mod homes;
pub(crate) mod installer;
pub(crate) mod masked;
mod named;
pub(crate) mod paths;
pub(crate) mod prepared;
pub(crate) mod report;
mod repositories;
pub(crate) mod server;
mod shared;
pub(crate) mod start;
pub(crate) mod variables;

use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codewright_config::{Dirs, Env, NetworkAccess, SandboxConfig, SandboxMode, env};
use codewright_proto::SessionId;
use codewright_tools::{Ask, Certainty, Implied, Lift, Permission, Policy, UNKNOWN};
use codewright_workspace::{
    Below, Confined, Error, Guarded, Mechanism, Network, Opened, Probe, Sandbox, TEMPORARY, folded_name,
    normalize, physical,
};

use crate::inner::Inner;
use crate::instance::Instance;
use crate::packages::PACKAGES;
use crate::permission::{control, decisive};
use enforcement::{Consent, Enforcement, Outer, has_outer, mode, strictest};
use hiding::{Hiding, ProcessKind};
use paths::VISIBLE;
use shared::Shared;

/// A sandbox, and the variables that a command needs in it.
#[derive(Debug, Clone)]
pub(crate) struct Restricted {
    pub(crate) confined: Arc<Confined>,
    pub(crate) variables: Vec<(String, String)>,
    /// What was refused while the sandbox was prepared, as sentences for the result of the command.
    pub(crate) notes: Vec<String>,
}

/// A sandbox before the mechanism is known.
struct Prepared {
    sandbox: Sandbox,
    /// See [`Restricted`].
    variables: Vec<(String, String)>,
    /// See [`Restricted`].
    notes: Vec<String>,
}

/// The command to restrict.
pub(crate) struct Subject<'a> {
    /// The mode of the command line or of the configuration.
    pub(crate) configured: SandboxMode,
    pub(crate) config: &'a SandboxConfig,
    /// The mode that the agent and its callers require.
    pub(crate) required: SandboxMode,
    pub(crate) session_id: &'a SessionId,
    /// The user of the server who owns the session. Outputs of other users are hidden.
    pub(crate) user: Option<&'a str>,
    pub(crate) directory: &'a Path,
    /// The repository's root, or `/`.
    pub(crate) worktree: &'a Path,
    pub(crate) dirs: &'a Dirs,
    /// The variables of the user.
    pub(crate) variables: &'a Env,
    /// The sockets that the user's environment names.
    pub(crate) sockets: Vec<PathBuf>,
    /// The directories of programs that the private directory would hide.
    pub(crate) programs: Vec<PathBuf>,
    /// The directories of skills, which contain scripts.
    pub(crate) skills: Vec<PathBuf>,
    /// Whether another sandbox contains this program.
    pub(crate) outer: Outer,
    /// The permissions that were granted to the command.
    pub(crate) granted: &'a [Ask],
    /// The files that rules deny to read, see [`masked`].
    pub(crate) masked: Vec<PathBuf>,
    pub(crate) kind: ProcessKind,
}

impl<'a> Subject<'a> {
    /// A command of a session in an instance, without requirements of an agent.
    pub(crate) fn new(
        inner: &'a Inner,
        instance: &'a Instance,
        session_id: &'a SessionId,
        granted: &'a [Ask],
    ) -> Self {
        let config = &instance.sandbox;
        Self {
            configured: mode(inner, instance, SandboxMode::Off),
            config,
            required: SandboxMode::Off,
            session_id,
            user: None,
            directory: &instance.directory,
            worktree: &instance.worktree.root,
            dirs: &inner.dirs,
            variables: &inner.env,
            sockets: sockets(&inner.env),
            programs: hidden_programs(&inner.env),
            skills: instance.skill_directories(),
            outer: has_outer(inner, instance),
            granted,
            masked: Vec::new(),
            kind: ProcessKind::Command,
        }
    }

    /// The mode that holds for the command.
    pub(crate) fn mode(&self) -> SandboxMode {
        strictest(self.configured, self.required)
    }

    /// Returns the sandbox, or `None` if nothing restricts the command: the mode is `off`, or the machine enforces
    /// nothing and this is permitted.
    ///
    /// # Errors
    ///
    /// Fails if the machine does not enforce the mode and nobody consented, and if the private directory cannot be
    /// created. The command must then not run.
    pub(crate) fn confine(&self, support: &Probe, consent: Consent) -> Result<Option<Restricted>, String> {
        match Enforcement::of(self.mode(), support, self.outer) {
            Enforcement::Off => return Ok(None),
            Enforcement::Lacking(reason) if consent == Consent::Missing => {
                return Err(format!("The command was not run. {reason}"));
            }
            Enforcement::Lacking(_) | Enforcement::Outer | Enforcement::Whole => {}
        }
        let is_lifted = self.mode() != SandboxMode::ReadOnly
            && self.granted.iter().any(|ask| ask.policy == Policy::Reply(Lift::Sandbox));
        if support.mechanism == Mechanism::Nothing || is_lifted {
            return Ok(None);
        }
        let Prepared { sandbox, variables, notes } =
            self.sandbox().map_err(|error| format!("The sandbox could not be prepared: {error}"))?;
        let confined =
            Arc::new(Confined { sandbox, mechanism: support.mechanism.clone(), connections: None });
        Ok(Some(Restricted { confined, variables, notes }))
    }

    fn sandbox(&self) -> Result<Prepared, Error> {
        let root = self.root();
        let granted = self.granted_writes();
        let Shared { temporary, caches, blank, mut notes } = Shared::open(&shared::Request {
            dirs: self.dirs,
            variables: self.variables,
            session: self.session_id.as_str(),
            mode: self.mode(),
            root,
            has_masks: !self.masked.is_empty(),
        })?;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Path { path, source }
        };
        // What a link leads to by now was not granted.
        let mut opened: Vec<Opened> = granted.iter().filter_map(|path| Opened::open(path).ok()).collect();
        let mut guarded = Vec::new();
        if self.mode() == SandboxMode::Workspace {
            if !self.contains_home() {
                opened.extend(self.opened_root()?);
            }
            opened.extend(self.config.write.iter().filter_map(|path| self.named(path)));
            let git = git::directory(root);
            // A link can name a directory of the worktree, which git uses like `.git`.
            for directory in git.iter().cloned().chain(root.join(".git").canonicalize()) {
                guarded.extend(git::administration(&directory));
            }
            guarded.extend(git::embedded(root));
            guarded.extend(git::targets(root, git.as_deref(), self.variables, &self.dirs.home));
            // Elsewhere a command writes nothing.
            let links = decisive::links(root).into_iter();
            guarded.extend(links.filter(|row| row.directory.starts_with(root)));
            opened.extend(git.and_then(|git| self.named(&git)));
        }
        let directory = temporary.opened().map_err(failed(temporary.path()))?;
        let mut write: Vec<PathBuf> = opened.iter().map(|opened| opened.path().to_owned()).collect();
        opened.push(directory);
        for directory in self.with_control_files(&write) {
            guarded.extend(control::guarded(&directory));
        }
        let mut of_home = homes::kept_inside(self.dirs, &write);
        // The user named these, and may name one inside of another.
        allow(&mut of_home, &self.config.write);
        guarded.extend(of_home);
        let (below, refusal) = self.below(&write, &granted);
        notes.extend(refusal);
        // Their content controls nothing outside of the sandbox.
        if let Some(caches) = &caches {
            let directory = caches.directory();
            write.push(directory.path().to_owned());
            opened.push(directory.opened().map_err(failed(directory.path()))?);
        }
        // Git writes into the directory `.git`. A file or link of this name leads elsewhere, so it stays as it is.
        if is_directory(&root.join(".git")) {
            for row in guarded.iter_mut().filter(|row| row.directory == root) {
                row.patterns.retain(|pattern| pattern != ".git");
            }
        }
        allow(&mut guarded, &granted);
        let shown = self.shown()?;
        let fixed = VISIBLE.iter().map(PathBuf::from).chain([self.dirs.tool_output_of(self.user)]);
        let show = fixed.chain(shown.iter().map(|opened| opened.path().to_owned())).collect();
        opened.extend(shown);
        let user = (self.variables, &self.dirs.home);
        let variables = caches.map(|caches| caches.variables(user.0, user.1)).unwrap_or_default();
        let sandbox = Sandbox {
            write,
            protect: self.own_directories(),
            guarded,
            below,
            hide: self.hidden(),
            mask: self.masked.clone(),
            blank,
            show,
            temporary: temporary.path().to_owned(),
            opened,
            // A proxy belongs to one command, see `hosts`.
            network: if self.has_whole_network() { Network::Open } else { Network::Off },
        };
        Ok(Prepared { sandbox, variables, notes })
    }

    /// The directory that the session works in, without a link in its path. `None` if it is missing.
    fn opened_root(&self) -> Result<Option<Opened>, Error> {
        let root = self.root();
        match Opened::open(root) {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if root.is_dir() => {
                let reason = format!("a symbolic link has taken its place since it was opened ({error})");
                Err(Error::Path { path: root.to_owned(), source: IoError::other(reason) })
            }
            Err(source) => Err(Error::Path { path: root.to_owned(), source }),
        }
    }

    /// A path that the user's configuration names. A link that a command can have created is not followed.
    fn named(&self, path: &Path) -> Option<Opened> {
        named::open(path, |directory| self.is_writable(directory))
    }

    /// Whether commands of this session, and of others with the same configuration, can write a directory.
    fn is_writable(&self, directory: &Path) -> bool {
        let root = Some(self.root()).filter(|_| !self.contains_home());
        let configured = self.config.write.iter().filter_map(|path| physical(path).ok());
        configured.chain(root.map(Path::to_owned)).any(|write| directory.starts_with(write))
    }

    /// The directories whose control files are protected by name: those that can be written, and the session's. The directory
    /// of a repository has names of its own.
    fn with_control_files(&self, write: &[PathBuf]) -> Vec<PathBuf> {
        let git = git::directory(self.root());
        let directories = write.iter().filter(|path| path.is_dir() && Some(*path) != git.as_ref()).cloned();
        let mut directories: Vec<PathBuf> = directories.chain([self.directory.to_owned()]).collect();
        directories.sort();
        directories.dedup();
        directories
    }

    /// The names that the command cannot create at any depth, and why a command of git that creates repositories cannot do so.
    fn below(&self, write: &[PathBuf], granted: &[PathBuf]) -> (Below, Option<String>) {
        let root = self.root();
        // The directory of a repository is known by its name.
        let named = |path: &PathBuf| match path.parent() {
            Some(above) if path.ends_with(".git") => above.to_owned(),
            Some(_) | None => path.clone(),
        };
        let directories = write.iter().filter(|path| path.is_dir()).map(named);
        let directories = directories.chain([self.directory.to_owned()]).collect();
        // A directory that was granted is not one of control files only because it can be written.
        let granted = granted.iter().filter(|path| control::is_control(path) || path.is_file());
        let locks = granted.clone().map(|path| {
            let mut lock = path.clone().into_os_string();
            lock.push(".lock");
            PathBuf::from(lock)
        });
        let configured = self.config.write.iter().filter(|path| path.starts_with(root) && *path != root);
        let granted = granted.cloned().chain(locks).chain(configured.cloned()).collect();
        let repository = git::directory(root);
        let mut refusal = None;
        let has_programs = || {
            let named = git::naming(root, repository.as_deref(), self.variables, &self.dirs.home);
            refusal = named.map(|named| {
                format!(
                    "Git cannot create a repository in the project with this command, because {named} in the project, \
                     which git would run."
                )
            });
            refusal.is_some()
        };
        let repositories = repositories::of(self.granted, repository.as_deref(), has_programs);
        let mut below = control::below(root, directories, granted, repositories);
        if write.iter().any(|path| path == root) {
            let packages = &mut below.outside_packages;
            match git::package_links(root) {
                Some(linked) => packages.linked = linked,
                // A link that is not known could lead into any package.
                None => packages.packages.clear(),
            }
        }
        (below, refusal)
    }

    /// Whether the command has the network of the machine, by the configuration or by a reply about this command.
    fn has_whole_network(&self) -> bool {
        let is_granted = || self.granted.iter().any(|ask| ask.policy == Policy::Reply(Lift::Network));
        self.config.network == NetworkAccess::Open || self.mode() != SandboxMode::ReadOnly && is_granted()
    }

    /// The directory that the session works in as a whole.
    fn root(&self) -> &Path {
        if self.worktree.parent().is_none() { self.directory } else { self.worktree }
    }

    /// Whether the session works in the home directory as a whole. Everything of the user would be writable.
    fn contains_home(&self) -> bool {
        physical(&self.dirs.home).is_ok_and(|home| home.starts_with(self.root()))
    }

    /// The configuration, the installed packages and the script that runs plugins, which commands can read and never write.
    fn own_directories(&self) -> Vec<PathBuf> {
        let cache = [PACKAGES, codewright_plugins::SCRIPTS].map(|name| self.dirs.cache.join(name));
        [self.dirs.own_config.clone(), self.dirs.config.clone()].into_iter().chain(cache).collect()
    }

    fn hidden(&self) -> Vec<PathBuf> {
        let hiding = Hiding {
            dirs: self.dirs,
            config: self.config,
            variables: self.variables,
            directory: self.directory,
            root: self.root(),
            kind: self.kind,
        };
        let mut hidden = hiding.paths();
        hidden.extend(self.sockets.iter().cloned());
        // The user named these, and may name a single file in a hidden directory.
        let granted = self.granted_reads();
        let is_granted = |path: &PathBuf| {
            // Resolving a hundred paths takes time, and mostly nothing is granted.
            !granted.is_empty() && physical(path).is_ok_and(|real| granted.contains(&real))
        };
        hidden.retain(|path| !self.config.read.contains(path) && !is_granted(path));
        hidden
    }

    /// The paths that can be read although a directory above is hidden or replaced.
    fn shown(&self) -> Result<Vec<Opened>, Error> {
        let mut shown = Vec::new();
        if self.mode() == SandboxMode::ReadOnly || self.contains_home() {
            // The directory may be in one that the private directory replaces.
            shown.extend(self.opened_root()?);
        }
        let programs: Vec<PathBuf> =
            paths::OWN.iter().map(|name| self.dirs.home.join(name).join(paths::PROGRAMS)).collect();
        let named = self.skills.iter().chain(&self.programs).chain(&programs).chain(&self.config.read);
        shown.extend(named.filter_map(|path| self.named(path)));
        // These were granted without a link in them.
        let granted = self.granted_directories().into_iter().chain(self.granted_reads());
        shown.extend(granted.filter_map(|path| Opened::open(&path).ok()));
        Ok(shown)
    }

    /// The files and directories that granted permissions name for writing.
    fn granted_writes(&self) -> Vec<PathBuf> {
        // A permission to edit is about the tools that edit. In this mode commands write nothing.
        if self.mode() == SandboxMode::ReadOnly {
            return Vec::new();
        }
        let directories = self.granted_paths(&Permission::ExternalDirectory);
        let git = git::directory(self.root());
        // General rules allow edits. Outside of the worktree the directory has to be granted as well. A link that was
        // exchanged since then leads to a place that was not.
        let is_granted = |path: &PathBuf| {
            path.starts_with(self.root())
                || git.as_ref().is_some_and(|git| path.starts_with(git))
                || directories.iter().any(|granted| path.starts_with(granted))
        };
        let real = |path: PathBuf| physical(&path).ok().filter(is_granted);
        let edits: Vec<PathBuf> =
            self.granted_paths(&Permission::Edit).into_iter().filter_map(real).collect();
        let mut granted = edits.clone();
        // A new file needs its directory.
        let is_used = |directory: &PathBuf| edits.iter().any(|edit| edit.starts_with(directory));
        granted.extend(directories.iter().filter(|directory| is_used(directory)).cloned());
        granted
    }

    /// The hidden paths that the user granted by name.
    fn granted_reads(&self) -> Vec<PathBuf> {
        let is_exact = |ask: &&Ask| ask.permission == Permission::Read && ask.policy == Policy::Exact;
        let patterns = self.granted.iter().filter(is_exact).flat_map(|ask| &ask.patterns);
        let paths = patterns.map(|pattern| normalize(&self.worktree.join(pattern)));
        // A link in its place would name another file.
        paths.filter(|path| physical(path).is_ok_and(|real| real == *path)).collect()
    }

    /// The directories outside that were granted and that the private directory would hide.
    fn granted_directories(&self) -> Vec<PathBuf> {
        let mut directories = self.granted_paths(&Permission::ExternalDirectory);
        directories.retain(|path| path.starts_with(TEMPORARY) && path != Path::new(TEMPORARY));
        directories
    }

    /// The paths that the granted permissions of a kind name.
    fn granted_paths(&self, permission: &Permission) -> Vec<PathBuf> {
        let whole = self.granted.iter().filter(|ask| ask.permission == *permission);
        let whole = whole.flat_map(|ask| ask.patterns.iter().map(String::as_str));
        let implied = self.granted.iter().flat_map(|ask| ask.implied.iter());
        // Rules and users decide about stated effects. Possible ones were not granted by anyone.
        let implied = implied.filter(|implied: &&Implied| {
            implied.permission == *permission && implied.certainty == Certainty::Stated
        });
        let patterns = whole.chain(implied.map(|implied| implied.pattern.as_str()));
        let patterns = patterns.filter(|pattern| !pattern.contains(UNKNOWN));
        let paths = patterns
            .map(|pattern| normalize(&self.worktree.join(pattern.strip_suffix("/*").unwrap_or(pattern))));
        paths.filter(|path| path.parent().is_some()).collect()
    }
}

/// Whether the path is a directory and not a link to one.
fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// The directories of the search path that a private temporary directory would hide.
fn hidden_programs(variables: &Env) -> Vec<PathBuf> {
    let directories = variables.get(env::PATH).unwrap_or_default().split(':').map(PathBuf::from);
    let is_hidden = |path: &PathBuf| path.starts_with(TEMPORARY) && *path != Path::new(TEMPORARY);
    directories.filter(is_hidden).collect()
}

/// The sockets of agents and services that the environment names.
fn sockets(variables: &Env) -> Vec<PathBuf> {
    let address = |name| variables.filled(name).map(|value| value.trim_start_matches("unix:").to_owned());
    let addresses =
        [env::SSH_AUTH_SOCK, env::DBUS_SESSION_BUS_ADDRESS, env::DOCKER_HOST, env::XDG_RUNTIME_DIR];
    let paths = addresses.into_iter().filter_map(address).map(|address| {
        let path = address.trim_start_matches("path=");
        // A list of key and value pairs follows the path of a bus.
        PathBuf::from(path.split(',').next().unwrap_or(path))
    });
    paths.filter(|path| path.is_absolute()).map(|path| normalize(&path)).collect()
}

/// Opens the guarded names of granted paths, and nothing else in the guarded directories that contain one.
fn allow(guarded: &mut Vec<Guarded>, granted: &[PathBuf]) {
    for path in granted {
        let mut is_inside = false;
        let parts: Vec<&Path> = path.ancestors().collect();
        // From the outermost directory to the path itself.
        for part in parts.into_iter().rev() {
            let (Some(directory), Some(name)) = (part.parent(), part.file_name()) else { continue };
            let is_everything =
                |row: &Guarded| row.directory == directory && row.patterns == [Guarded::EVERYTHING];
            if is_inside && !guarded.iter().any(is_everything) {
                let (directory, patterns) = (directory.to_owned(), vec![Guarded::EVERYTHING.to_owned()]);
                guarded.push(Guarded { directory, patterns, except: Vec::new() });
            }
            let (name, is_whole) = (name.to_string_lossy(), granted.iter().any(|other| other == part));
            let folded = folded_name(&name);
            let matches = |pattern: &String| control::matches_name(pattern, &folded);
            let rows = guarded.iter_mut().filter(|row| row.directory == directory);
            for row in rows.filter(|row| row.patterns.iter().any(matches)) {
                is_inside = true;
                row.except.extend(names(&name, is_whole));
            }
            if is_inside && is_whole {
                break;
            }
        }
    }
}

/// The names that belong to a granted path, or to a directory above it. Git writes a file by renaming another one.
fn names(name: &str, is_whole: bool) -> Vec<String> {
    let lock = is_whole.then(|| format!("{name}.lock"));
    [name.to_owned()].into_iter().chain(lock).map(|name| folded_name(&name)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// The sandbox of a command in the worktree `work` of a folder.
    fn sandbox(folder: &Path, granted: &[Ask]) -> Sandbox {
        let home = folder.join("home");
        let dirs = Dirs {
            config: home.join("config"),
            own_config: home.join("own"),
            data: home.join("data"),
            state: home.join("state"),
            cache: home.join("cache"),
            opencode_data: home.join("opencode"),
            tmp: home.join("tmp"),
            home,
        };
        let session_id = SessionId::parse("ses_test").unwrap();
        let work = folder.join("work");
        let subject = Subject {
            configured: SandboxMode::Workspace,
            config: &SandboxConfig::default(),
            required: SandboxMode::Off,
            session_id: &session_id,
            user: None,
            directory: &work,
            worktree: &work,
            dirs: &dirs,
            variables: &Env::default(),
            sockets: Vec::new(),
            programs: Vec::new(),
            skills: Vec::new(),
            outer: Outer::Unknown,
            granted,
            masked: Vec::new(),
            kind: ProcessKind::Command,
        };
        subject.sandbox().unwrap().sandbox
    }

    fn is_guarded(sandbox: &Sandbox, path: &Path) -> bool {
        let name = path.file_name().unwrap().to_string_lossy();
        let rows = sandbox.guarded.iter().filter(|row| row.directory == path.parent().unwrap());
        rows.filter(|row| !row.except.contains(&folded_name(&name)))
            .flat_map(|row| &row.patterns)
            .any(|pattern| control::matches_name(pattern, &name))
    }

    #[test]
    fn only_a_stated_effect_opens_a_control_file() {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        create_dir_all(root.join("work/.git")).unwrap();
        let config = root.join("work/.git/config");
        write(&config, "").unwrap();
        let ask = |certainty| {
            let mut ask = Ask::new("bash", vec!["git remote add a b".to_owned()]);
            ask.implied.push(Implied { certainty, ..Implied::new("edit", ".git/config") });
            ask
        };
        for certainty in [Certainty::Possible, Certainty::Unknown] {
            let sandbox = sandbox(&root, &[ask(certainty)]);
            assert!(is_guarded(&sandbox, &config) && !sandbox.write.contains(&config), "{certainty:?}");
        }
        let sandbox = sandbox(&root, &[ask(Certainty::Stated)]);
        assert!(!is_guarded(&sandbox, &config) && sandbox.write.contains(&config));
        assert!(is_guarded(&sandbox, &root.join("work/.git/hooks")));
    }

    #[test]
    fn a_granted_file_opens_no_other_file_of_its_directory() {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        create_dir_all(root.join("work/.git/hooks")).unwrap();
        for directory in [".git/hooks", ".claude/commands/deep"] {
            let file = format!("{directory}/one");
            let sandbox = sandbox(&root, &[Ask::new("edit", vec![file.clone()])]);
            let at = |name: &str| root.join("work").join(name);
            for open in [&file, directory, &format!("{file}.lock")] {
                assert!(!is_guarded(&sandbox, &at(open)), "{open}");
            }
            for closed in ["two", "one.x", "one.lock.x"] {
                assert!(is_guarded(&sandbox, &at(directory).join(closed)), "{directory}/{closed}");
            }
        }
        let sandbox = sandbox(&root, &[Ask::new("edit", vec![".claude/commands/one".to_owned()])]);
        assert!(is_guarded(&sandbox, &root.join("work/.claude/settings.json")));
    }

    #[test]
    fn settings_of_worktrees_and_submodules_are_guarded() {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let git = root.join("work/.git");
        create_dir_all(git.join("worktrees/one")).unwrap();
        create_dir_all(git.join("modules/lib")).unwrap();
        write(git.join("modules/lib/HEAD"), "ref: refs/heads/main\n").unwrap();
        let sandbox = sandbox(&root, &[]);
        for name in
            ["commondir", "worktrees/one/commondir", "worktrees/one/config.worktree", "modules/lib/config"]
        {
            assert!(is_guarded(&sandbox, &git.join(name)), "{name}");
        }
    }

    #[test]
    fn a_file_or_link_named_git_cannot_be_replaced() {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        create_dir_all(root.join("work")).unwrap();
        let own = root.join("work/.git");
        assert!(is_guarded(&sandbox(&root, &[]), &own), "a new repository");
        write(&own, "gitdir: ../elsewhere\n").unwrap();
        create_dir_all(root.join("elsewhere")).unwrap();
        let found = sandbox(&root, &[]);
        assert!(is_guarded(&found, &own) && !found.write.contains(&root.join("elsewhere")));
        std::fs::remove_file(&own).unwrap();
        create_dir_all(root.join("work/real")).unwrap();
        symlink("real", &own).unwrap();
        let found = sandbox(&root, &[]);
        assert!(is_guarded(&found, &own) && is_guarded(&found, &root.join("work/real/hooks")));
        std::fs::remove_file(&own).unwrap();
        create_dir_all(&own).unwrap();
        let found = sandbox(&root, &[]);
        assert!(!is_guarded(&found, &own) && is_guarded(&found, &own.join("hooks")));
    }
}
