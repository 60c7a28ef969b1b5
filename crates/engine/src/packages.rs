//! The packages that the configuration key `plugin` names.
//!
//! An installed package is used at once. One that is missing is installed in the background, and ranges and tags are
//! looked up again once a day, so no turn waits long for a registry. Without entries nothing exists here.

pub(crate) mod denials;
pub(crate) mod install;
pub(crate) mod operations;
pub(crate) mod runner;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_config::{Config, Dirs, LoadInput, Origins, Parts};
use codewright_packages::{Packages, Source};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

/// The largest number of entries of a configuration. More are ignored with an error each.
const MAX_ENTRIES: usize = 100;
/// The directory of installed packages, in the cache.
pub(crate) const PACKAGES: &str = "packages";
/// The key of the configuration.
pub(crate) const KEY: &str = "plugin";
/// How long a failed installation is not tried again.
const RETRY_AFTER: Duration = Duration::from_secs(10 * 60);
/// The largest number of failures that are remembered.
const MAX_FAILURES: usize = 1000;

/// Packages that are not loaded, as in OpenCode, because their sign-ins are built in and would be replaced by older ones.
const BUILT_IN: [(&str, &str); 2] =
    [("opencode-openai-codex-auth", "openai"), ("opencode-copilot-auth", "github-copilot")];

/// Whose configuration contains an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    User,
    /// Only the repository, which the user trusts.
    Repository,
}

/// An entry of the key `plugin`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PluginEntry {
    /// The text of the entry.
    pub(crate) spec: String,
    /// The options of an entry with two items.
    pub(crate) options: Option<Value>,
    pub(crate) owner: Owner,
    /// Where it comes from, or why it cannot be used.
    pub(crate) source: Result<Source, String>,
}

/// An installation that is running.
struct Running {
    began: Instant,
    is_announced: bool,
}

/// The installations of this process.
pub(crate) struct PackageTable {
    pub(crate) cache: Packages,
    /// One installation at a time, so that the deadline of one does not include the others.
    pub(crate) turn: tokio::sync::Mutex<()>,
    running: Mutex<HashMap<String, Running>>,
    failed: Mutex<HashMap<String, (String, Instant)>>,
    /// Increases when a package has been installed or has failed.
    changed: watch::Sender<u64>,
}

impl PackageTable {
    pub(crate) fn new(dirs: &Dirs) -> Self {
        Self {
            cache: Packages { root: dirs.cache.join(PACKAGES), scratch: dirs.state.join(PACKAGES) },
            turn: tokio::sync::Mutex::default(),
            running: Mutex::default(),
            failed: Mutex::default(),
            changed: watch::Sender::default(),
        }
    }

    /// Increases when a package has been installed or has failed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Claims the installation of a package. `false` if it is running, or has failed recently.
    pub(crate) fn begin(&self, spec: &str) -> bool {
        if self.failure(spec).is_some() {
            return false;
        }
        let mut running = lock(&self.running);
        if running.contains_key(spec) {
            return false;
        }
        running.insert(spec.to_owned(), Running { began: Instant::now(), is_announced: false });
        true
    }

    /// When the installation of a package began, if it is running.
    pub(crate) fn began(&self, spec: &str) -> Option<Instant> {
        lock(&self.running).get(spec).map(|running| running.began)
    }

    /// Returns whether the user has to be told that a package is being installed. `true` once for each installation.
    pub(crate) fn announce(&self, spec: &str) -> bool {
        lock(&self.running)
            .get_mut(spec)
            .is_some_and(|running| !std::mem::replace(&mut running.is_announced, true))
    }

    pub(crate) fn end(&self, spec: &str, failure: Option<String>) {
        lock(&self.running).remove(spec);
        let mut failed = lock(&self.failed);
        failed.remove(spec);
        if let Some(failure) = failure {
            if failed.len() >= MAX_FAILURES {
                failed.clear();
            }
            failed.insert(spec.to_owned(), (failure, Instant::now()));
        }
        drop(failed);
        self.changed.send_modify(|count| *count += 1);
    }

    /// The reason of the last installation, if it failed recently.
    pub(crate) fn failure(&self, spec: &str) -> Option<String> {
        let failed = lock(&self.failed);
        failed.get(spec).filter(|(_, at)| at.elapsed() < RETRY_AFTER).map(|(reason, _)| reason.clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the entries of a configuration.
///
/// Of several entries for a package the last one counts. A repository's entry never replaces one of the user's, because
/// it could name an older version.
pub(crate) fn entries(
    config: &Config,
    parts: Option<&Parts>,
    origins: &Origins,
    input: LoadInput<'_>,
) -> Arc<Vec<PluginEntry>> {
    let listed = |config: &Config| config.raw.get(KEY).and_then(Value::as_array).cloned().unwrap_or_default();
    let all = listed(config);
    if all.is_empty() {
        return Arc::default();
    }
    let users = parts.map(|parts| listed(&parts.user));
    let origins: BTreeMap<&str, &str> =
        origins.iter().filter_map(|(path, origin)| entry_origin(path, origin)).collect();
    let mut entries: Vec<PluginEntry> = Vec::new();
    for (at, item) in all.iter().enumerate() {
        let is_users = users.as_ref().is_none_or(|users| users.contains(item));
        let owner = if is_users { Owner::User } else { Owner::Repository };
        let origin = origins.get(item.to_string().as_str()).map(Path::new);
        let above = origin.filter(|origin| origin.is_absolute()).and_then(Path::parent);
        let mut entry = entry(item, owner, input, above.unwrap_or(input.directory));
        if at >= MAX_ENTRIES {
            entry.source = Err(format!("there are more than {MAX_ENTRIES} plugins"));
        }
        let same = entries.iter().position(|other| is_same_package(other, &entry));
        match same {
            Some(at) if entries[at].owner == Owner::Repository || entry.owner == Owner::User => {
                entries.remove(at);
                entries.push(entry);
            }
            Some(_) => {}
            None => entries.push(entry),
        }
    }
    Arc::new(entries)
}

/// Returns the files and directories that entries name.
pub(crate) fn local(entries: &[PluginEntry]) -> Vec<PathBuf> {
    let path = |entry: &PluginEntry| match &entry.source {
        Ok(Source::Path(path)) => Some(path.clone()),
        Ok(Source::Registry(_)) | Err(_) => None,
    };
    entries.iter().filter_map(path).collect()
}

/// The text of an entry and its source, in the paths of [`Origins`].
fn entry_origin<'a>(path: &'a str, origin: &'a str) -> Option<(&'a str, &'a str)> {
    let (_, item) = path.strip_prefix(KEY)?.strip_prefix('[')?.split_once("] ")?;
    Some((item, origin))
}

fn entry(item: &Value, owner: Owner, input: LoadInput<'_>, base: &Path) -> PluginEntry {
    let (spec, options) = match item {
        Value::String(spec) => (Some(spec.as_str()), None),
        Value::Array(items) => (items.first().and_then(Value::as_str), items.get(1)),
        _ => (None, None),
    };
    let Some(spec) = spec else {
        let source = Err("an entry of `plugin` is a text, or a list of a text and options".to_owned());
        return PluginEntry { spec: item.to_string(), options: None, owner, source };
    };
    // Outside of a repository the directory is all that belongs together.
    let root = if input.worktree.parent().is_none() { input.directory } else { input.worktree };
    let source = Source::parse(spec, base, &input.dirs.home).map_err(|error| error.to_string());
    let source = source.and_then(|source| match source {
        Source::Path(path) if owner == Owner::Repository && !is_inside(&path, root) => {
            Err(format!("`{spec}` leads out of the repository"))
        }
        Source::Registry(package) => match BUILT_IN.iter().find(|(name, _)| *name == package.name) {
            Some((name, provider)) => Err(format!(
                "`{name}` is not loaded because its sign-in is built in: run `codewright providers login {provider}`"
            )),
            None => Ok(Source::Registry(package)),
        },
        source @ Source::Path(_) => Ok(source),
    });
    PluginEntry { spec: spec.to_owned(), options: options.cloned(), owner, source }
}

/// Whether a path and its target are in a directory. A missing path is judged by its text.
fn is_inside(path: &Path, root: &Path) -> bool {
    let real = |path: &Path| -> PathBuf { path.canonicalize().unwrap_or_else(|_| path.to_owned()) };
    path.starts_with(root) && real(path).starts_with(real(root))
}

fn is_same_package(one: &PluginEntry, other: &PluginEntry) -> bool {
    match (&one.source, &other.source) {
        (Ok(Source::Registry(one)), Ok(Source::Registry(other))) => one.name == other.name,
        (Ok(Source::Path(one)), Ok(Source::Path(other))) => one == other,
        _ => one.spec == other.spec,
    }
}
