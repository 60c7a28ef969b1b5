//! Finds, reads and merges the configuration of a directory.
//!
//! The sources, from the lowest to the highest precedence:
//!
//! 1. documents from the servers of organisations that the user is signed in to,
//! 2. OpenCode's global files, then Codewright's,
//! 3. the file in `OPENCODE_CONFIG`,
//! 4. project files, from the worktree's root down to the directory,
//! 5. the Markdown files of the global directories,
//! 6. `.opencode` and `.codewright` with their Markdown files, from the directory up to the root, then in the home,
//! 7. the directory in `OPENCODE_CONFIG_DIR`,
//! 8. the document in `OPENCODE_CONFIG_CONTENT`, and the rules in `OPENCODE_PERMISSION`.
//!
//! An outer `.opencode` wins over an inner one, as in OpenCode, because existing projects rely on it.
//!
//! Project files belong to the repository. They are read through [`ControlFiles`], and the user's trust determines how
//! much of them takes effect. All other sources are the user's own.

mod layers;
mod normalize;
mod untrusted;

use std::path::{Path, PathBuf};

use codewright_proto::{Action, Rule};
use serde_json::{Value, json};

use crate::{
    Config, ControlFiles, Dirs, Env, Error, Map, Trust,
    control::{self, RepositoryPaths},
    default_rules,
    document::{
        Node,
        schema::{self, CONFIG_KEYS},
    },
    env,
    origins::Origins,
    secrets::Secrets,
};
use layers::Layers;
pub(crate) use layers::is_mistake;
pub(crate) use normalize::normalize;

/// The address of the published schema, which editors read.
const SCHEMA: &str = "https://opencode.ai/config.json";

const GLOBAL_FILES: [&str; 3] = ["config.json", "opencode.json", "opencode.jsonc"];
const OWN_FILES: [&str; 2] = ["codewright.json", "codewright.jsonc"];
pub(crate) const PROJECT_FILES: [&str; 4] =
    ["opencode.json", "opencode.jsonc", "codewright.json", "codewright.jsonc"];
pub(crate) const DOT_FILES: [&str; 3] = ["config.json", "opencode.json", "opencode.jsonc"];
/// The inputs that determine the configuration.
#[derive(Debug, Clone, Copy)]
pub struct LoadInput<'a> {
    /// The absolute working directory.
    pub directory: &'a Path,
    /// The root of the repository that contains it.
    pub worktree: &'a Path,
    /// The environment variables.
    pub env: &'a Env,
    /// The user's directories.
    pub dirs: &'a Dirs,
}

/// A document from an organisation's server. It can configure providers and models, but nothing that runs.
#[derive(Clone)]
pub struct Remote {
    /// The source.
    pub url: String,
    /// The document.
    pub text: String,
    /// The variables that it can reference: its own token, not the user's.
    pub env: Env,
}

/// The configuration of a directory, with its sources.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    /// The merged configuration.
    pub config: Config,
    /// The sources that were read, lowest precedence first.
    pub sources: Vec<Source>,
    /// All files that were read or missing, lowest precedence first.
    pub looked_for: Vec<PathBuf>,
    /// Warnings about likely mistakes.
    pub warnings: Vec<String>,
    /// The source of each value.
    pub origins: Origins,
    /// The configuration directories, lowest precedence first. They may contain other files that are used.
    pub folders: Vec<PathBuf>,
    /// What the documents insert, and the variables that the user's documents use as secrets.
    pub secrets: Secrets,
    /// The user's and the repository's documents separately, if the repository has any.
    pub parts: Option<Box<Parts>>,
}

/// The configuration of the user and that of the repository, before they are merged.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The user's configuration.
    pub user: Config,
    /// The effective part of the repository's configuration.
    pub repository: Config,
    /// How much of the repository's configuration takes effect.
    pub trust: Trust,
}

/// The changes of the configuration that plugins make while they run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overlay {
    /// The changes of the user's plugins.
    pub user: Map,
    /// Those of the repository's plugins, which are restricted like its documents.
    pub repository: Map,
    /// The names of agents in the order that a plugin of the user chose. Empty for the usual order.
    pub agents: Vec<String>,
}

impl Overlay {
    /// Reports whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.user.is_empty() && self.repository.is_empty() && self.agents.is_empty()
    }
}

/// A source of configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// The text of a variable.
    Variable(String),
    /// A document from an organisation's server.
    Remote(String),
}

/// Reads, checks and merges the configuration of a trusted directory.
pub fn load(input: LoadInput<'_>) -> Result<LoadedConfig, Error> {
    load_over(input, &[])
}

/// Like [`load`], on top of documents from organisations.
pub fn load_over(input: LoadInput<'_>, remote: &[Remote]) -> Result<LoadedConfig, Error> {
    open(input, remote, &Overlay::default(), |_| Trust::Full).map(|(loaded, _)| loaded)
}

/// Reads, checks and merges the configuration of a directory. `decide` returns how much of the repository's
/// configuration takes effect; it is called at most once, with the repository's control files. The changes of plugins
/// win over all documents of their owner.
///
/// If the control files exceed a limit, only the inert part takes effect.
pub fn open(
    input: LoadInput<'_>,
    remote: &[Remote],
    overlay: &Overlay,
    decide: impl FnOnce(&ControlFiles) -> Trust,
) -> Result<(LoadedConfig, ControlFiles), Error> {
    let LoadInput { directory, worktree, env, dirs } = input;
    if env.is_on(env::DISABLE_PROJECT_CONFIG) {
        let control = ControlFiles::default();
        return Ok((Layers::new(input, &control, Trust::Inert).over(overlay).all(remote)?, control));
    }
    let mut control = ControlFiles::read(RepositoryPaths { directory, worktree, dirs });
    if control.is_empty() {
        return Ok((Layers::new(input, &control, Trust::Inert).over(overlay).all(remote)?, control));
    }
    let nothing = ControlFiles::default();
    let user = Layers::new(input, &nothing, Trust::Inert).over(overlay).all(remote)?;
    let (user, secrets) = (user.config, user.secrets);
    let rules = [default_rules(dirs), user.permission.clone()].concat();
    control.collect_requests(&|rule| is_looser(rule, &rules));
    let trust = if control.limit().is_some() { Trust::Inert } else { decide(&control) };
    let mut layers = Layers::new(input, &control, trust).over(overlay).without(&secrets);
    layers.warnings.extend(control.warnings().iter().cloned());
    let mut loaded = layers.all(remote)?;
    if let Some(parts) = &mut loaded.parts {
        parts.user = user;
    }
    Ok((loaded, control))
}

/// Whether a rule may allow a call that the user's rules do not allow.
fn is_looser(rule: &Rule, user: &[Rule]) -> bool {
    let is_about =
        |other: &Rule| other.permission.contains(['*', '?']) || other.permission == rule.permission;
    user.iter().any(|other| other.action != Action::Allow && is_about(other))
}

/// The address of the database of sessions that the user's configuration names. A repository's configuration is not
/// read, nor a document of an organisation.
pub fn store_address(input: LoadInput<'_>) -> Result<Option<String>, Error> {
    let nothing = ControlFiles::default();
    let loaded = Layers::new(input, &nothing, Trust::Inert).all(&[])?;
    Ok(loaded.config.raw["store"].as_str().filter(|url| !url.is_empty()).map(str::to_owned))
}

/// The key `node` of the user's configuration, as [`store_address`] reads it. `Null` if it is missing.
pub fn node(input: LoadInput<'_>) -> Result<Value, Error> {
    let nothing = ControlFiles::default();
    let loaded = Layers::new(input, &nothing, Trust::Inert).all(&[])?;
    Ok(loaded.config.raw["node"].clone())
}

/// The users of a server that the user's configuration names, in any of its files. A repository's configuration is not
/// read, nor a document of an organisation.
pub fn auth(input: LoadInput<'_>) -> Result<Option<Value>, Error> {
    let nothing = ControlFiles::default();
    let loaded = Layers::new(input, &nothing, Trust::Inert).all(&[])?;
    Ok(loaded.config.raw.get("auth").filter(|auth| !auth.is_null()).cloned())
}

/// The variables that the user's configuration uses as secrets. A repository's configuration is not read.
pub fn secret_variables(input: LoadInput<'_>) -> Result<Vec<String>, Error> {
    let nothing = ControlFiles::default();
    let loaded = Layers::new(input, &nothing, Trust::Inert).all(&[])?;
    Ok(loaded.secrets.variables().map(str::to_owned).collect())
}

/// The user's global configuration, without the project's.
pub fn global(input: LoadInput<'_>) -> Result<Value, Error> {
    global_with_secrets(input).map(|(global, _)| global)
}

/// Like [`global`], with what the documents insert.
pub fn global_with_secrets(input: LoadInput<'_>) -> Result<(Value, Secrets), Error> {
    let control = ControlFiles::default();
    let mut layers = Layers::new(input, &control, Trust::Inert);
    layers.files(&input.dirs.config, &GLOBAL_FILES)?;
    layers.files(&input.dirs.own_config, &OWN_FILES)?;
    let (mut raw, secrets) = (layers.merged, layers.secrets);
    raw.entry("$schema").or_insert_with(|| json!(SCHEMA));
    Ok((Value::Object(normalize::sorted(raw, CONFIG_KEYS)), secrets))
}

/// Returns the files of the user's own configuration, in the order in which they apply. Some may not exist.
#[must_use]
pub fn user_files(dirs: &Dirs) -> Vec<PathBuf> {
    let global = GLOBAL_FILES.iter().map(|name| dirs.config.join(name));
    global.chain(OWN_FILES.iter().map(|name| dirs.own_config.join(name))).collect()
}

/// Checks a client's change of the configuration, and removes unknown keys. `null` removes a key.
pub fn check_change(mut change: Map) -> Result<Map, Error> {
    let known = |key: &str| {
        let mut keys = CONFIG_KEYS.iter().chain(schema::OTHER_KEYS);
        keys.any(|(known, _)| *known == key)
    };
    change.retain(|key, _| known(key));
    let mut set = change.clone();
    without_nulls(&mut set);
    let node = Node::from(&Value::Object(set));
    schema::check(&node, &schema::CONFIG).map_err(|fault| {
        let schema::Fault { key, expected, found, .. } = fault;
        Error::Permission { key, expected, found }
    })?;
    Ok(change)
}

/// Removes the keys whose value is `null`, and the objects that consist of them.
fn without_nulls(entries: &mut Map) {
    entries.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(below) if !below.is_empty() => {
            without_nulls(below);
            !below.is_empty()
        }
        _ => true,
    });
}

/// The directories that are searched for project files, from the outermost to `directory`. The search continues up to
/// `top`, and ends below the home directory and at a mount point.
pub(crate) fn levels<'a>(top: &Path, directory: &'a Path, home: &Path) -> Vec<&'a Path> {
    let mut levels = vec![directory];
    let mut below = directory;
    while let Some(above) = below.parent() {
        let is_inside = above.starts_with(top) && above != home && below != home;
        if !is_inside || !control::is_same_mount(below, above) {
            break;
        }
        levels.push(above);
        below = above;
    }
    levels.reverse();
    levels
}
