//! The search for files by pattern: `*`, `?`, `[…]` and `{…}` within a name, `**` for any depth.
//!
//! The result of a search through directories is cached for half a minute, so that a large tree is not
//! walked before every request.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use regex::Regex;

/// The most entries that one search visits.
const MAX_ENTRIES: usize = 50_000;
/// The most files that one search returns.
const MAX_FOUND: usize = 1000;
/// The deepest directory that is searched.
const MAX_DEPTH: usize = 32;
/// The lifetime of a cached search.
const FRESH: Duration = Duration::from_secs(30);
/// The most cached searches.
const MAX_KNOWN: usize = 256;
/// Directories with files from other tools.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];

/// The found files and the time, by directory and pattern.
type SearchCache = HashMap<(PathBuf, String), (Instant, Vec<PathBuf>)>;

/// The searches and their cache.
#[derive(Default)]
pub(super) struct Search {
    known: Mutex<SearchCache>,
}

impl Search {
    /// Returns the files below a directory that match a relative pattern, sorted.
    pub(super) fn below(&self, folder: &Path, pattern: &str) -> Vec<PathBuf> {
        let parts: Vec<_> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if !parts.contains(&"**") {
            return search(folder, &parts);
        }
        let key = (folder.to_owned(), pattern.to_owned());
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, found)) = known().get(&key).filter(|(at, _)| at.elapsed() < FRESH) {
            debug_assert!(at.elapsed() < FRESH);
            return found.clone();
        }
        let found = search(folder, &parts);
        let mut known = known();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(key, (Instant::now(), found.clone()));
        found
    }

    /// Returns the files that match a path whose last part is a pattern.
    pub(super) fn last_part(&self, path: &Path) -> Vec<PathBuf> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
        search(folder, &[&name.to_string_lossy()])
    }
}

fn search(folder: &Path, parts: &[&str]) -> Vec<PathBuf> {
    let mut walk = Walk { entries: 0, found: Vec::new() };
    walk.folder(folder, parts, 0);
    walk.found.sort();
    walk.found.dedup();
    walk.found
}

struct Walk {
    entries: usize,
    found: Vec<PathBuf>,
}

impl Walk {
    fn folder(&mut self, folder: &Path, parts: &[&str], depth: usize) {
        let Some((first, rest)) = parts.split_first() else { return };
        if depth > MAX_DEPTH {
            return;
        }
        if *first == "**" {
            self.folder(folder, rest, depth + 1);
            for (path, name, is_dir) in self.entries(folder) {
                if is_dir && !SKIPPED.contains(&name.as_str()) {
                    self.folder(&path, parts, depth + 1);
                }
            }
            return;
        }
        if !first.contains(['*', '?', '[', '{']) {
            self.one(folder.join(first), rest, depth);
            return;
        }
        let Some(wanted) = expression(first) else { return };
        for (path, name, _) in self.entries(folder) {
            if wanted.is_match(&name) && (first.starts_with('.') || !name.starts_with('.')) {
                self.one(path, rest, depth);
            }
        }
    }

    fn one(&mut self, path: PathBuf, rest: &[&str], depth: usize) {
        if !rest.is_empty() {
            self.folder(&path, rest, depth + 1);
        } else if self.found.len() < MAX_FOUND && path.symlink_metadata().is_ok() {
            self.found.push(path);
        }
    }

    /// Returns path, name and whether the entry is a directory. A link to a directory does not count as one, to
    /// avoid cycles.
    fn entries(&mut self, folder: &Path) -> Vec<(PathBuf, String, bool)> {
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let left = MAX_ENTRIES.saturating_sub(self.entries);
        let read = entries.flatten().take(left).map(|entry| {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            (entry.path(), entry.file_name().to_string_lossy().into_owned(), is_dir)
        });
        let read: Vec<_> = read.collect();
        self.entries += read.len();
        read
    }
}

/// Converts one part of a pattern to a regular expression; `None` if the part is invalid.
fn expression(part: &str) -> Option<Regex> {
    let mut text = String::from("^");
    let (mut chars, mut braces) = (part.chars().peekable(), 0);
    while let Some(char) = chars.next() {
        match char {
            '*' => text.push_str(".*"),
            '?' => text.push('.'),
            '{' => {
                braces += 1;
                text.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                text.push(')');
            }
            ',' if braces > 0 => text.push('|'),
            '[' => {
                text.push('[');
                if chars.peek() == Some(&'!') {
                    chars.next();
                    text.push('^');
                }
                for inner in chars.by_ref() {
                    if inner == ']' {
                        break;
                    }
                    if matches!(inner, '\\' | '[' | '&' | '~') {
                        text.push('\\');
                    }
                    text.push(inner);
                }
                text.push(']');
            }
            other => text.push_str(&regex::escape(&other.to_string())),
        }
    }
    text.push('$');
    Regex::new(&text).ok()
}
