//! The entries of a directory, and fuzzy search for names in it.

use std::collections::HashSet;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Stop, blocking, walk};
use crate::held::Beneath;
use crate::{Error, Held, plain};

/// The limit of names from one directory tree.
const MAX_NAMES: usize = 200_000;

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Whether it is a directory or a link to one.
    pub is_directory: bool,
    /// Whether an ignore file hides it.
    pub is_ignored: bool,
}

/// The entries of a directory: directories first, then files, both sorted by name.
pub async fn entries(directory: Held, cancel: &CancellationToken) -> Result<Vec<Entry>, Error> {
    blocking(cancel, move |_| {
        let shown: HashSet<_> = walk(&directory.place.real, None)
            .max_depth(Some(1))
            .build()
            .flatten()
            .map(|entry| entry.file_name().to_owned())
            .collect();
        let read = directory.entries(MAX_NAMES)?.into_iter();
        let mut entries: Vec<_> = read
            .map(|(name, is_directory)| Entry {
                name: name.to_string_lossy().into_owned(),
                is_directory,
                // The walk omits `.git` for another reason.
                is_ignored: !shown.contains(&name) && name != ".git",
            })
            .collect();
        entries
            .sort_by_cached_key(|entry| (!entry.is_directory, entry.name.to_lowercase(), entry.name.clone()));
        Ok(entries)
    })
    .await
}

/// The names in a directory and its subdirectories: relative paths, with `/` at the end of directories.
///
/// Ignored files and links to directories are omitted.
pub async fn names(root: Held, within: Duration, cancel: &CancellationToken) -> Result<Vec<String>, Error> {
    blocking(cancel, move |cancel| {
        let mut beneath = Beneath::new(&root);
        let root = root.place.real.as_path();
        let stop = Stop::new(cancel, within);
        let mut names = Vec::new();
        for entry in walk(root, None).build().flatten() {
            if stop.now() || names.len() >= MAX_NAMES {
                break;
            }
            let Some(kind) = entry.file_type().filter(|_| entry.depth() > 0) else { continue };
            let Ok(path) = entry.path().strip_prefix(root) else { continue };
            if beneath.kind(path).is_none() {
                continue;
            }
            let mut name = path.to_string_lossy().into_owned();
            if kind.is_dir() {
                name.push('/');
            }
            names.push(name);
        }
        Ok(names)
    })
    .await
}

/// The names that contain all letters of a query in order, the best first.
///
/// Without a query the shortest names are the best, because they are nearest to the root.
#[must_use]
pub fn closest<'a>(names: impl Iterator<Item = &'a str>, query: &str, limit: usize) -> Vec<&'a str> {
    let query: Vec<char> = plain(query).chars().filter(|char| !char.is_whitespace()).collect();
    let exact = query.iter().any(|char| char.is_uppercase());
    let query: Vec<char> =
        if exact { query } else { query.into_iter().flat_map(char::to_lowercase).collect() };
    let mut found: Vec<_> = names
        .filter_map(|name| {
            Some((std::cmp::Reverse(score(&plain(name), &query, exact)?), name.chars().count(), name))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().take(limit).map(|(.., name)| name).collect()
}

/// The score: points for each letter of the query, more if it follows the letter before, starts a word, or is
/// in the last component of the name.
fn score(name: &str, query: &[char], exact: bool) -> Option<i64> {
    // Matched from the end, so that each letter has its last position: file names matter more than their
    // directories.
    let chars: Vec<char> = name.trim_end_matches('/').chars().collect();
    let base = chars.iter().rposition(|char| *char == '/').map_or(0, |slash| slash + 1);
    let mut points = 0;
    let mut at = chars.len();
    let mut last = None;
    for wanted in query.iter().rev() {
        at = chars[..at]
            .iter()
            .rposition(|char| char == wanted || (!exact && char.to_lowercase().next() == Some(*wanted)))?;
        let begins = at == 0 || !chars[at - 1].is_alphanumeric();
        let continues = last == Some(at + 1);
        points += 1 + 6 * i64::from(continues) + 4 * i64::from(begins) + 3 * i64::from(at >= base);
        last = Some(at);
    }
    // A query without gaps matters more than single letters.
    let whole: String = query.iter().collect();
    let lowered = |chars: &[char]| {
        let text: String = chars.iter().collect();
        if exact { text } else { text.to_lowercase() }
    };
    let (base, all) = (lowered(&chars[base..]), lowered(&chars));
    if whole.is_empty() {
        return Some(0);
    }
    points += if base.starts_with(&whole) {
        60
    } else if base.contains(&whole) {
        45
    } else if all.contains(&whole) {
        30
    } else {
        0
    };
    Some(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], query: &str, expected: &[&str]) {
        assert_eq!(closest(names.iter().copied(), query, 3), expected, "{query}");
    }

    #[test]
    fn the_closest_names_come_first() {
        let names = ["src/", "src/util.py", "README.md", "docs/utility/list.txt", "u/t/i/l.rs", "Ünder.md"];
        check(&names, "util", &["src/util.py", "docs/utility/list.txt", "u/t/i/l.rs"]);
        check(&names, "sutil", &["src/util.py", "docs/utility/list.txt"]);
        check(&names, "readme", &["README.md"]);
        check(&names, "READ", &["README.md"]);
        check(&names, "Util", &[]);
        check(&names, "ünder", &["Ünder.md"]);
        check(&names, "zzz", &[]);
        check(&names, "", &["src/", "Ünder.md", "README.md"]);
        check(&names, "u\u{308}nder", &["Ünder.md"]);
        check(&["cafe\u{301}.md", "at 10\u{202f}AM.png"], "caf\u{e9}", &["cafe\u{301}.md"]);
    }
}
