//! Configuration changes by clients.
//!
//! Changes are written to `codewright.json` files, which override the `opencode.json` files next to them. Other content
//! of the files is kept, including comments.

use std::path::{Path, PathBuf};

use codewright_config::{Audience, LoadInput, Secrets};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::interface::{Instances, Settings};
use crate::redact::Redaction;
use crate::trust::operations::keep;
use crate::{Error, Instance};

/// The number of attempts to lock the directory of a file.
const LOCK_ATTEMPTS: u32 = 250;
/// The interval between two attempts.
const LOCK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);
/// The name of the file with changes.
pub(crate) const FILE: &str = "codewright.json";
/// The content of a new file.
const NEW: &str = "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n";
/// The largest change.
const MAX_CHANGE_BYTES: usize = 512 * 1024;

/// A configuration that a client has received, before hiding.
struct Current {
    config: Value,
    secrets: Secrets,
}

/// One change at a time, because a file is read, changed and written as a whole.
static CHANGING: Mutex<()> = Mutex::const_new(());

impl Settings<'_> {
    /// Merges a change into a directory's configuration. Returns the accepted part.
    pub async fn change(self, instance: &Instance, change: Value) -> Result<Value, Error> {
        let change = self.without_unknown_keys(change)?;
        let path = instance.directory.join(FILE);
        if !path.exists() {
            Instances(self.0).end_processes(&instance.directory).await;
        }
        let current = Current { config: instance.config_json(), secrets: instance.secrets.clone() };
        lay(path.clone(), &change, current).await?;
        Instances(self.0).dispose(instance).await;
        keep(self.0, instance, &path).await?;
        let mut taken = Value::Object(change);
        instance.redaction(Audience::Owner).hide(&mut taken);
        Ok(taken)
    }

    /// Returns the global configuration as an audience sees it.
    pub fn global(self, audience: Audience) -> Result<Value, Error> {
        let Current { mut config, secrets } = self.raw_global()?;
        Redaction { secrets: &secrets, audience }.hide(&mut config);
        Ok(config)
    }

    fn raw_global(self) -> Result<Current, Error> {
        let (dirs, nowhere) = (&self.0.dirs, Path::new("/"));
        let input = LoadInput { directory: nowhere, worktree: nowhere, env: &self.0.env, dirs };
        let (config, secrets) = codewright_config::global_with_secrets(input)?;
        Ok(Current { config, secrets })
    }

    /// Merges a change into the global configuration. Returns the whole configuration. `null` removes a key from every
    /// file of the user.
    pub async fn change_global(self, change: Value) -> Result<Value, Error> {
        let change = self.without_unknown_keys(change)?;
        let own = self.0.dirs.own_config.join(FILE);
        let others = codewright_config::user_files(&self.0.dirs).into_iter().filter(|path| *path != own);
        remove(others.collect(), &change).await?;
        lay(own, &change, self.raw_global()?).await?;
        Instances(self.0).dispose_all().await;
        self.global(Audience::Owner)
    }

    /// Returns a change without unknown keys.
    fn without_unknown_keys(self, change: Value) -> Result<Map<String, Value>, Error> {
        let Value::Object(change) = change else {
            return Err(Error::invalid("a change of the configuration is an object"));
        };
        if serde_json::to_vec(&change).map_or(0, |text| text.len()) > MAX_CHANGE_BYTES {
            return Err(Error::invalid("the change is too large"));
        }
        codewright_config::check_change(change).map_err(|error| Error::invalid(error.to_string()))
    }
}

/// Changes a list of a file, which is created if it is missing. Returns whether `edit` changed it.
pub(crate) async fn change_list(
    path: PathBuf,
    key: &'static str,
    edit: impl FnOnce(&mut Vec<Value>) + Send + 'static,
) -> Result<bool, Error> {
    let _alone = CHANGING.lock().await;
    let written = tokio::task::spawn_blocking(move || {
        let mut is_changed = false;
        rewrite(&path, |own| {
            let before = own.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
            let mut items = before.clone();
            edit(&mut items);
            is_changed = items != before;
            let change = is_changed.then(|| (key.to_owned(), Value::Array(items)));
            Ok(change.into_iter().collect())
        })?;
        Ok(is_changed)
    });
    // The thread pool drops a task only when the runtime ends.
    written.await.unwrap_or_else(|_| Err(Error::aborted("the program is ending")))
}

/// Locks the directory of a file, which is created if it is missing, so that another process changes the file before or after
/// this one. The lock ends with the returned value.
fn alone(path: &Path) -> std::io::Result<Option<std::fs::File>> {
    let Some(directory) = path.parent() else { return Ok(None) };
    std::fs::create_dir_all(directory)?;
    let directory = std::fs::File::open(directory)?;
    for _ in 0..LOCK_ATTEMPTS {
        match directory.try_lock() {
            Ok(()) => return Ok(Some(directory)),
            Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_INTERVAL),
            // A file system without locks. Simultaneous changes are still noticed when the file is replaced.
            Err(std::fs::TryLockError::Error(_)) => return Ok(None),
        }
    }
    Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "another process is changing it"))
}

/// Merges what `change` returns for the content of a file into the file. Blocks.
fn rewrite(
    path: &Path,
    change: impl FnOnce(&Value) -> Result<Map<String, Value>, Error>,
) -> Result<(), Error> {
    let cannot =
        |what: &dyn std::fmt::Display| Error::machine(format!("cannot change `{}`: {what}", path.display()));
    let _alone = alone(path).map_err(|error| cannot(&error))?;
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => NEW.to_owned(),
        Err(error) => return Err(cannot(&error)),
    };
    let name = path.display().to_string();
    let own = codewright_config::parse_document(&name, &text).map_err(|error| cannot(&error))?;
    let change = change(&own)?;
    if change.is_empty() {
        return Ok(());
    }
    // Only changed values are written; the rest of the file is kept, including comments.
    let text = codewright_config::edit_document(&name, &text, &change).map_err(|error| cannot(&error))?;
    codewright_workspace::write_atomic(path, text.as_bytes()).map_err(|error| cannot(&error))
}

/// Removes the keys that are `null` in a change from files. Those that do not exist, or do not have the keys, stay.
async fn remove(paths: Vec<PathBuf>, change: &Map<String, Value>) -> Result<(), Error> {
    let removals = removals(change);
    if removals.is_empty() {
        return Ok(());
    }
    let _alone = CHANGING.lock().await;
    let written = tokio::task::spawn_blocking(move || {
        let mut existing = paths.iter().filter(|path| path.exists());
        existing.try_for_each(|path| rewrite(path, |own| Ok(present(&removals, own))))
    });
    // The thread pool drops a task only when the runtime ends.
    written.await.unwrap_or_else(|_| Err(Error::aborted("the program is ending")))
}

/// Returns the part of a change that removes keys.
fn removals(change: &Map<String, Value>) -> Map<String, Value> {
    let entries = change.iter().filter_map(|(key, value)| match value {
        Value::Null => Some((key.clone(), Value::Null)),
        Value::Object(below) => {
            let below = removals(below);
            (!below.is_empty()).then(|| (key.clone(), Value::Object(below)))
        }
        _ => None,
    });
    entries.collect()
}

/// Returns the part of a change whose removals find their keys in a content.
fn present(change: &Map<String, Value>, own: &Value) -> Map<String, Value> {
    let entries = change.iter().filter_map(|(key, value)| match value {
        Value::Null => own.get(key).map(|_| (key.clone(), Value::Null)),
        Value::Object(below) if !below.is_empty() => {
            let below = present(below, own.get(key).unwrap_or(&Value::Null));
            (!below.is_empty()).then(|| (key.clone(), Value::Object(below)))
        }
        value => Some((key.clone(), value.clone())),
    });
    entries.collect()
}

/// Merges a change into a file, which is created if it is missing. Hidden values of `current` that the client sends
/// back stay unchanged.
async fn lay(path: PathBuf, change: &Map<String, Value>, current: Current) -> Result<(), Error> {
    if change.is_empty() {
        return Ok(());
    }
    let _alone = CHANGING.lock().await;
    let mut change = change.clone();
    let written = tokio::task::spawn_blocking(move || {
        rewrite(&path, |own| {
            let redaction = Redaction { secrets: &current.secrets, audience: Audience::Owner };
            redaction.unchanged(&mut change, &current.config, own)?;
            Ok(present(&change, own))
        })
    });
    // The thread pool drops a task only when the runtime ends.
    written.await.unwrap_or_else(|_| Err(Error::aborted("the program is ending")))
}
