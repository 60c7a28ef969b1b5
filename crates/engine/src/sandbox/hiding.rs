//! The files and directories that commands do not see: keys, sign-ins, services, the configuration, and what the user
//! hides.
//!
//! The sandbox hides them from programs. The tools that read, search and write files need a reply for them
//! ([`crate::permission::decisive`]).

use std::path::{Path, PathBuf};

use codewright_config::{Dirs, Env, SandboxConfig, env};
use codewright_workspace::physical;

use super::paths::{OWN, SECRETS, SERVICES, SETTINGS};

/// Who wrote the program that runs in a sandbox. It decides whether the directories of configuration are visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessKind {
    /// The model, a repository, or a program that loads their code. It sees no configuration of this program.
    Command,
    /// A server, a plugin or a hook of the user's configuration. It sees the files in the directories of configuration
    /// next to the settings, because plugins and their data are there.
    UserProgram,
}

/// A process from which files are hidden.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hiding<'a> {
    pub(crate) dirs: &'a Dirs,
    pub(crate) config: &'a SandboxConfig,
    /// The variables of the user.
    pub(crate) variables: &'a Env,
    pub(crate) directory: &'a Path,
    /// The directory that the session works in as a whole.
    pub(crate) root: &'a Path,
    pub(crate) kind: ProcessKind,
}

impl Hiding<'_> {
    /// Returns what is hidden. Some of the paths do not exist.
    pub(crate) fn paths(self) -> Vec<PathBuf> {
        let below_home = SECRETS.iter().map(|name| self.dirs.home.join(name));
        let own = [&self.dirs.data, &self.dirs.state, &self.dirs.opencode_data].map(Clone::clone);
        let services = SERVICES.iter().map(PathBuf::from);
        let configured = self.config.hide.iter().chain(&self.config.private).cloned();
        // A file of the repository is no secret of the user.
        let is_outside = |path: &PathBuf| !path.starts_with(self.root);
        let named = self.variables.secret_paths().map(PathBuf::from).filter(is_outside);
        below_home.chain(own).chain(self.settings()).chain(services).chain(configured).chain(named).collect()
    }

    /// Whether the session works in the home directory as a whole. Everything of the user would be writable.
    pub(crate) fn contains_home(self) -> bool {
        physical(&self.dirs.home).is_ok_and(|home| home.starts_with(self.root))
    }
    /// The directories of the user's configuration.
    fn configuration(self) -> Vec<PathBuf> {
        let dirs = self.dirs;
        let mut directories = vec![dirs.own_config.clone(), dirs.config.clone()];
        directories.extend(OWN.iter().map(|name| dirs.home.join(name)));
        // The other spelling of the variable has no effect, but its directory may have secrets all the same.
        let named = self.variables.spellings(env::CONFIG_DIR);
        directories.extend(named.map(|named| match named.strip_prefix("~/") {
            Some(below) => dirs.home.join(below),
            None => self.directory.join(named),
        }));
        directories
    }

    /// The configuration that is hidden: the directories as a whole, or at least the files with settings.
    fn settings(self) -> Vec<PathBuf> {
        let directories = self.configuration();
        let files = directories.iter();
        let mut hidden: Vec<PathBuf> =
            files.flat_map(|directory| SETTINGS.iter().map(|name| directory.join(name))).collect();
        hidden.extend(self.variables.spellings(env::CONFIG).map(|named| self.directory.join(named)));
        match self.kind {
            ProcessKind::UserProgram => {}
            ProcessKind::Command => {
                // A session can work on the configuration itself, or on a repository that contains it.
                let is_separate = |directory: &PathBuf| {
                    let Ok(real) = physical(directory) else { return true };
                    let is_inside = real.starts_with(self.root) && !self.contains_home();
                    !is_inside && !self.root.starts_with(&real)
                };
                hidden.extend(directories.into_iter().filter(is_separate));
            }
        }
        hidden
    }
}
