//! The files that the sandbox keeps from plugins, although they tried to use them.
//!
//! A plugin that the user installed can write the user's files, except those that other programs obey. An error that such
//! a file causes is reported once, with the line of the configuration that permits it. The list is stored, so that
//! `codewright plugin list` shows it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use codewright_config::Dirs;
use codewright_workspace::{Confined, write_atomic};

/// The file of the list, in the state directory.
const FILE: &str = "plugin-denials.json";
/// The largest number of plugins and of files of each that are stored.
const MAX_STORED: usize = 50;
/// The largest list that is read.
const MAX_BYTES: u64 = 1024 * 1024;
/// The words with which runtimes report that a file must not be used.
const CODES: &[&str] =
    &["EROFS", "EACCES", "EPERM", "read-only file system", "permission denied", "operation not permitted"];

/// What the sandbox of one process denied.
#[derive(Debug)]
pub(crate) struct Denials {
    file: PathBuf,
    home: PathBuf,
    sandbox: Mutex<Option<Arc<Confined>>>,
    reported: Mutex<BTreeMap<String, Vec<PathBuf>>>,
}

/// A file that the sandbox keeps from a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) path: PathBuf,
    /// Whether it was not reported before.
    pub(crate) is_new: bool,
}

impl Denials {
    pub(crate) fn new(dirs: &Dirs) -> Self {
        Self {
            file: dirs.state.join(FILE),
            home: dirs.home.clone(),
            sandbox: Mutex::default(),
            reported: Mutex::default(),
        }
    }

    /// Sets the sandbox that the process has now.
    pub(crate) fn set_sandbox(&self, sandbox: Option<Arc<Confined>>) {
        *self.sandbox.lock().unwrap_or_else(PoisonError::into_inner) = sandbox;
    }

    /// Returns the denied file that an error of a plugin is about, and stores it. Reads directories.
    pub(crate) fn find(&self, plugin: &str, message: &str) -> Option<Denial> {
        let lower = message.to_lowercase();
        if !CODES.iter().any(|code| lower.contains(&code.to_lowercase())) {
            return None;
        }
        let sandbox = self.sandbox.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let is_blocked = |path: &PathBuf| {
            // A file that cannot be judged is not excused.
            sandbox.sandbox.blocked(path, &sandbox.mechanism).is_ok_and(|blocked| blocked.is_some())
        };
        let path = quoted(message).into_iter().find(is_blocked)?;
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if !reported.contains_key(plugin) && reported.len() >= MAX_STORED {
            return Some(Denial { path, is_new: false });
        }
        let known = reported.entry(plugin.to_owned()).or_default();
        let is_new = !known.contains(&path) && known.len() < MAX_STORED;
        if is_new {
            known.push(path.clone());
            self.store(plugin, &path);
        }
        Some(Denial { path, is_new })
    }

    /// The path as users write it in the configuration.
    pub(crate) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }

    /// Adds a file to the stored list. A list that cannot be written is only shown less completely.
    fn store(&self, plugin: &str, path: &Path) {
        let mut all = read(&self.file);
        let shown = self.shown(path);
        if all.len() >= MAX_STORED && !all.contains_key(plugin) {
            return;
        }
        let list = all.entry(plugin.to_owned()).or_default();
        if list.contains(&shown) || list.len() >= MAX_STORED {
            return;
        }
        list.push(shown);
        if let Ok(text) = serde_json::to_vec(&all) {
            drop(write_atomic(&self.file, &text));
        }
    }
}

/// The stored denials of a plugin.
pub(crate) fn stored(dirs: &Dirs, plugin: &str) -> Vec<String> {
    read(&dirs.state.join(FILE)).remove(plugin).unwrap_or_default()
}

fn read(file: &Path) -> BTreeMap<String, Vec<String>> {
    let is_small = file.metadata().is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
    let text = is_small.then(|| std::fs::read_to_string(file).ok()).flatten();
    // A damaged list starts again.
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// The absolute paths in quotes.
fn quoted(message: &str) -> Vec<PathBuf> {
    let parts = message.split(['\'', '"', '`']);
    parts.filter(|part| part.starts_with('/') && !part.contains('\n')).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_an_error_are_those_in_quotes() {
        for (message, expected) in [
            ("EROFS: read-only file system, mkdir '/root/.claude'", &["/root/.claude"][..]),
            ("EACCES: permission denied, rename '/a b' -> '/c'", &["/a b", "/c"]),
            ("cannot open \"/etc/x\" (in /home/p.js:3)", &["/etc/x"]),
            ("no path", &[]),
        ] {
            assert_eq!(quoted(message), expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{message}");
        }
    }
}
