//! Names that a command must not create or replace.
//!
//! What exists is protected by a mount. A name that is missing when a command starts is checked when the command
//! creates it, see `names`.

use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::access::Directories;
use crate::folder::{Folder, Reached};

/// The largest number of entries of a directory that are compared. Beyond it no command is started.
const MAX_ENTRIES: usize = 100_000;

/// The names in a directory that match one of several patterns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Guarded {
    /// The directory, which may be missing.
    pub directory: PathBuf,
    /// Names as [`folded_name`] returns them, which may start or end with `*`.
    pub patterns: Vec<String>,
    /// Names as [`folded_name`] returns them that are not guarded, although a pattern matches. A directory with such names
    /// cannot be exchanged.
    pub except: Vec<String>,
}

impl Guarded {
    /// The pattern that matches every name.
    pub const EVERYTHING: &'static str = "*";

    /// The paths that exist.
    ///
    /// # Errors
    ///
    /// Fails if the directory exists and cannot be read, or has too many entries.
    pub(crate) fn existing(&self, directories: &mut Directories) -> Result<Vec<PathBuf>, Error> {
        let failed = |source| Error::Path { path: self.directory.clone(), source };
        let directory = match directories.directory(&self.directory) {
            Ok(directory) => directory,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(failed(error)),
        };
        let reached = Folder::open(&directory).map_err(failed)?;
        self.inside(&reached, &self.directory).map_err(failed)
    }

    /// The paths below `directory`, which was reached.
    fn inside(&self, reached: &Reached, directory: &Path) -> Result<Vec<PathBuf>, IoError> {
        match reached {
            Reached::Folder(folder) => {
                let names = self.names_in(folder, MAX_ENTRIES)?;
                Ok(names.into_iter().map(|name| directory.join(name)).collect())
            }
            Reached::Missing | Reached::Link => Ok(Vec::new()),
        }
    }

    /// The names in the folder that match.
    fn names_in(&self, folder: &Folder, most: usize) -> Result<Vec<String>, IoError> {
        let mut names = Vec::new();
        for (index, name) in folder.names()?.enumerate() {
            if index == most {
                return Err(IoError::other(format!("it has more than {most} entries")));
            }
            let name = name?;
            if self.matches(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Whether a name is guarded.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.names(name) && !self.except.contains(&folded_name(name))
    }

    /// Whether a pattern matches a name, even if it is excepted.
    pub(crate) fn names(&self, name: &str) -> bool {
        let name = folded_name(name);
        self.patterns.iter().any(|pattern| is_match(pattern, &name))
    }
}

/// Whether a name in the form of [`folded_name`] matches a pattern, which may start or end with `*`.
pub(crate) fn is_match(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(_), Some(_)) => name.contains(pattern.trim_matches('*')),
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => match pattern.split_once('*') {
            Some((start, end)) => {
                name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
            }
            None => name == pattern,
        },
    }
}

/// Returns a name in the form in which lenient file systems compare it: without case, invisible characters, and
/// dots and spaces at its end.
#[must_use]
pub fn folded_name(name: &str) -> String {
    if name.is_ascii() {
        let bare = name.trim_end_matches(['.', ' ']);
        return if bare.is_empty() { name } else { bare }.to_ascii_lowercase();
    }
    // Converted to upper case first, because some letters have several lower-case forms.
    let seen = name.chars().filter(|c| !is_ignorable(*c));
    let folded: String = seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    let bare = folded.trim_end_matches(['.', ' ']);
    if bare.is_empty() { folded } else { bare.to_owned() }
}

/// Whether some file systems ignore a character when they compare names.
fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_names_in_every_form() {
        let guarded = Guarded {
            directory: "/work".into(),
            patterns: ["opencode.json*", ".claude", "*.code-workspace"].map(str::to_owned).into(),
            except: vec!["kept.code-workspace".to_owned()],
        };
        for (name, expected) in [
            (".CLAUDE", true),
            (".claude.", true),
            (".cl\u{200c}aude", true),
            ("opencode.jsonc", true),
            ("a.code-workspace", true),
            ("kept.code-workspace", false),
            ("opencode.js", false),
            ("claude", false),
        ] {
            assert_eq!(guarded.matches(name), expected, "{name}");
        }
    }
}
