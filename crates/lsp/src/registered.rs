//! The files that a server wants to hear about: its registrations for `workspace/didChangeWatchedFiles`.
//!
//! Patterns are hostile: their number and length are limited, they match in linear time, and they are compiled only when
//! a file changes. A registration beyond a limit is left out as a whole.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_workspace::TreeChange;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::Value;
use tokio::sync::Notify;

use crate::session::Kind;
use crate::uri;

/// The method of the registrations.
pub(crate) const METHOD: &str = "workspace/didChangeWatchedFiles";
/// The registrations of a server.
const MAX_REGISTRATIONS: usize = 100;
/// The patterns of a server.
const MAX_PATTERNS: usize = 500;
/// The longest pattern, with the directory that it is relative to.
const MAX_PATTERN_BYTES: usize = 1000;
/// The longest id of a registration.
const MAX_ID_BYTES: usize = 200;
/// The kinds of changes of a pattern without any.
const ALL_KINDS: u64 = 7;

/// The registrations of a server.
#[derive(Default)]
pub(crate) struct Registered {
    state: Mutex<State>,
    /// Notified at each change.
    has_changed: Notify,
}

#[derive(Default)]
struct State {
    registrations: Vec<Registration>,
    /// The compiled patterns: of created, changed and removed files.
    sets: Option<Arc<[GlobSet; 3]>>,
}

struct Registration {
    id: String,
    patterns: Vec<Pattern>,
}

/// A pattern for absolute paths.
struct Pattern {
    text: String,
    /// The protocol's sum of 1 for created, 2 for changed and 4 for removed files.
    kinds: u64,
}

impl Registered {
    /// Waits for a change of the registrations.
    pub(crate) async fn changed(&self) {
        self.has_changed.notified().await;
    }

    /// Adds the registrations of a request `client/registerCapability`. Returns a sentence if some were left out.
    pub(crate) fn add(&self, params: &Value, root: &Path) -> Option<String> {
        let mut state = self.lock();
        let mut problem = None;
        let list = params["registrations"].as_array().into_iter().flatten();
        for registration in list.filter(|registration| registration["method"] == METHOD) {
            let id = registration["id"].as_str().filter(|id| id.len() <= MAX_ID_BYTES);
            let known: usize = state.registrations.iter().map(|one| one.patterns.len()).sum();
            let watchers = registration["registerOptions"]["watchers"].as_array();
            let watchers = watchers.map(Vec::as_slice).unwrap_or_default();
            let is_limited =
                state.registrations.len() >= MAX_REGISTRATIONS || known + watchers.len() > MAX_PATTERNS;
            let Some(id) = id.filter(|_| !is_limited) else {
                problem = Some(format!("The server watches more than {MAX_PATTERNS} patterns of files."));
                continue;
            };
            let patterns: Vec<_> =
                watchers.iter().filter_map(|watcher| Pattern::parse(watcher, root)).collect();
            if patterns.len() < watchers.len() {
                problem = Some("The server watches files by patterns that are not valid.".to_owned());
            }
            state.registrations.push(Registration { id: id.to_owned(), patterns });
            state.sets = None;
        }
        drop(state);
        self.has_changed.notify_one();
        problem
    }

    /// Removes the registrations of a request `client/unregisterCapability`.
    pub(crate) fn remove(&self, params: &Value) {
        let mut state = self.lock();
        // The protocol's own name has this mistake.
        for one in params["unregisterations"].as_array().into_iter().flatten().take(MAX_REGISTRATIONS) {
            state.registrations.retain(|registration| one["id"] != registration.id.as_str());
        }
        state.sets = None;
        drop(state);
        self.has_changed.notify_one();
    }

    /// Whether there are registrations.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().registrations.is_empty()
    }

    /// Whether the server wants to hear about a change.
    pub(crate) fn wants(&self, path: &Path, kind: &Kind) -> bool {
        let sets = {
            let mut state = self.lock();
            let State { registrations, sets } = &mut *state;
            sets.get_or_insert_with(|| Arc::new(compile(registrations))).clone()
        };
        let index = match kind {
            Kind::Added => 0,
            Kind::Changed => 1,
            Kind::Removed => 2,
        };
        sets[index].is_match(path)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pattern {
    /// Reads a `FileSystemWatcher`. A pattern without a directory is relative to the root of the server.
    fn parse(watcher: &Value, root: &Path) -> Option<Self> {
        let glob = &watcher["globPattern"];
        let (base, text) = match glob.as_str() {
            Some(text) if text.starts_with('/') => (None, text),
            Some(text) => (Some(root.to_owned()), text),
            None => {
                // The directory is an address or a workspace folder.
                let base = glob["baseUri"].as_str().or_else(|| glob["baseUri"]["uri"].as_str())?;
                (Some(uri::path(base)?), glob["pattern"].as_str()?)
            }
        };
        let text = match base {
            Some(base) => {
                let base = globset::escape(base.to_str()?);
                format!("{}/{}", base.trim_end_matches('/'), text.trim_start_matches('/'))
            }
            None => text.to_owned(),
        };
        let is_usable = text.len() <= MAX_PATTERN_BYTES && glob_of(&text).is_some();
        is_usable.then(|| Self { text, kinds: watcher["kind"].as_u64().unwrap_or(ALL_KINDS) })
    }
}

fn glob_of(text: &str) -> Option<globset::Glob> {
    GlobBuilder::new(text).literal_separator(true).build().ok()
}

/// The patterns of each kind. A set that is too large matches nothing.
fn compile(registrations: &[Registration]) -> [GlobSet; 3] {
    [1, 2, 4].map(|kind| {
        let mut set = GlobSetBuilder::new();
        let patterns = registrations.iter().flat_map(|registration| &registration.patterns);
        for pattern in patterns.filter(|pattern| pattern.kinds & kind != 0) {
            if let Some(glob) = glob_of(&pattern.text) {
                set.add(glob);
            }
        }
        set.build().unwrap_or_else(|_| GlobSet::empty())
    })
}

/// The kind of a change of a watched directory.
pub(crate) fn kind(change: TreeChange) -> Kind {
    match change {
        TreeChange::Added => Kind::Added,
        TreeChange::Changed => Kind::Changed,
        TreeChange::Removed => Kind::Removed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn registered(watchers: &Value) -> Registered {
        let registered = Registered::default();
        let one = json!({"id": "w", "method": METHOD, "registerOptions": {"watchers": watchers}});
        registered.add(&json!({"registrations": [one]}), Path::new("/p/[x]"));
        registered
    }

    #[track_caller]
    fn check(pattern: Value, path: &str, expected: bool) {
        let registered = registered(&json!([{ "globPattern": pattern }]));
        assert_eq!(registered.wants(Path::new(path), &Kind::Changed), expected, "{pattern} {path}");
    }

    #[test]
    fn patterns_are_relative_to_the_root_or_to_a_directory() {
        check(json!("**/*.rs"), "/p/[x]/a/b.rs", true);
        check(json!("**/*.rs"), "/p/[x]/b.rs", true);
        check(json!("**/*.rs"), "/p/x/b.rs", false);
        check(json!("*.rs"), "/p/[x]/a/b.rs", false);
        check(json!("**/{Cargo.toml,*.lock}"), "/p/[x]/a/Cargo.toml", true);
        check(json!("**/[!ab].c"), "/p/[x]/c.c", true);
        check(json!("**/[!ab].c"), "/p/[x]/a.c", false);
        check(json!("/q/**/*.rs"), "/q/a/b.rs", true);
        check(json!({"baseUri": "file:///q/r", "pattern": "**/*.py"}), "/q/r/s/a.py", true);
        check(json!({"baseUri": "file:///q/r", "pattern": "*.py"}), "/q/a.py", false);
        check(json!({"baseUri": {"uri": "file:///q/", "name": "q"}, "pattern": "?.py"}), "/q/a.py", true);
        for bad in [
            json!(7),
            json!({"baseUri": "http://q", "pattern": "*"}),
            json!("{a"),
            json!({}),
            json!("x".repeat(2000)),
        ] {
            check(bad, "/p/[x]/a", false);
        }
    }

    #[test]
    fn a_pattern_may_be_for_some_kinds_of_changes() {
        let registered = registered(&json!([{"globPattern": "**/*", "kind": 5}]));
        let wants = |kind: Kind| registered.wants(Path::new("/p/[x]/a"), &kind);
        assert!(wants(Kind::Added) && !wants(Kind::Changed) && wants(Kind::Removed));
        registered.remove(&json!({"unregisterations": [{"id": "w", "method": METHOD}]}));
        assert!(registered.is_empty() && !registered.wants(Path::new("/p/[x]/a"), &Kind::Added));
    }

    #[test]
    fn registrations_are_limited() {
        let registered = Registered::default();
        let many = vec![json!({"globPattern": "**/*.x"}); MAX_PATTERNS + 1];
        let of = |watchers: &[Value]| {
            let one = json!({"id": "w", "method": METHOD, "registerOptions": {"watchers": watchers}});
            json!({"registrations": [one, {"id": "other", "method": "textDocument/hover"}]})
        };
        assert!(registered.add(&of(&many), Path::new("/p")).is_some());
        assert!(registered.is_empty());
        for _ in 0..2 * MAX_REGISTRATIONS {
            registered.add(&of(&many[..1]), Path::new("/p"));
        }
        assert_eq!(registered.lock().registrations.len(), MAX_REGISTRATIONS);
    }
}
