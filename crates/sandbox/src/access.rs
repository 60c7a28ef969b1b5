//! Resolves the paths of a sandbox into one ordered list of rules.

use std::collections::{BTreeMap, HashMap};
use std::fs::{canonicalize, symlink_metadata};
use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};

use crate::opened::{Identity, Opened};
use crate::{Error, Sandbox, TEMPORARY};

/// The access to a path. A later variant is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Write,
    /// The same, and the path cannot be renamed.
    Pin,
    Show,
    Protect,
    /// The content of a file is hidden, and programs get an error.
    Mask,
    Hide,
}

impl Access {
    /// Whether the content of a path can be written.
    pub(crate) fn is_writable(self) -> bool {
        matches!(self, Self::Write | Self::Pin)
    }

    /// Whether the content of a path cannot be read.
    pub(crate) fn is_hidden(self) -> bool {
        matches!(self, Self::Hide | Self::Mask)
    }
}

/// A path that exists, without links, and the access to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
    pub(crate) is_directory: bool,
    /// The object that has to be at the path.
    pub(crate) identity: Option<Identity>,
}

/// The rules of a sandbox, each directory before its content.
///
/// # Errors
///
/// Fails if a path exists but cannot be resolved. A rule that would be lost must not be ignored.
pub(crate) fn rules(sandbox: &Sandbox) -> Result<Vec<Rule>, Error> {
    let mut directories = Directories::default();
    let mut guarded: Vec<PathBuf> = Vec::new();
    for row in &sandbox.guarded {
        guarded.extend(row.existing(&mut directories)?);
    }
    let lists = [
        (&sandbox.write, Access::Write),
        (&sandbox.show, Access::Show),
        (&sandbox.protect, Access::Protect),
        (&guarded, Access::Protect),
        (&sandbox.mask, Access::Mask),
        (&sandbox.hide, Access::Hide),
    ];
    let mut rules: BTreeMap<PathBuf, Rule> = BTreeMap::new();
    for (paths, access) in lists {
        for path in paths {
            let opened = sandbox.opened_at(path).filter(|_| matches!(access, Access::Write | Access::Show));
            let found = match opened {
                Some(opened) => {
                    opened.check()?;
                    Some((path.clone(), opened.is_directory()))
                }
                None => directories.resolve(path, access)?,
            };
            let Some((path, is_directory)) = found else { continue };
            let new = Rule { path: path.clone(), access, is_directory, identity: None };
            let rule = rules.entry(path).or_insert(new);
            rule.access = rule.access.max(access);
            rule.identity = rule.identity.or(opened.map(Opened::identity));
        }
    }
    for row in sandbox.guarded.iter().filter(|row| !row.except.is_empty()) {
        let Some((path, true)) = directories.resolve(&row.directory, Access::Pin)? else { continue };
        let above = rules.range(..=path.clone()).rev().find(|(above, _)| path.starts_with(above));
        if above.is_some_and(|(_, rule)| rule.access.is_writable()) {
            let identity = rules.get(&path).and_then(|rule| rule.identity);
            rules.insert(path.clone(), Rule { path, access: Access::Pin, is_directory: true, identity });
        }
    }
    // The order of a map of paths compares components, so a directory precedes its content.
    Ok(rules.into_values().collect())
}

/// The directories that were resolved. Most paths share a few of them, and most of them are missing.
#[derive(Default)]
pub(crate) struct Directories(HashMap<PathBuf, Result<PathBuf, ErrorKind>>);

impl Directories {
    /// The path without links, and whether it is a directory. `None` if it does not exist.
    fn resolve(&mut self, path: &Path, access: Access) -> Result<Option<(PathBuf, bool)>, Error> {
        match self.find(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
                // The command runs as the same user, so it cannot reach the path either. A path that must not be
                // written is an error instead, because a command may change the permissions of a directory that it can
                // write.
                ErrorKind::PermissionDenied
                    if matches!(access, Access::Hide | Access::Mask | Access::Show) =>
                {
                    Ok(None)
                }
                _ => Err(Error::Path { path: path.to_owned(), source: error }),
            },
        }
    }

    fn find(&mut self, path: &Path) -> Result<(PathBuf, bool), IoError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return followed(path) };
        let resolved = self.directory(parent)?.join(name);
        let metadata = symlink_metadata(&resolved)?;
        if metadata.is_symlink() { followed(&resolved) } else { Ok((resolved, metadata.is_dir())) }
    }

    /// The directory without links in the part that exists.
    pub(crate) fn resolved(&mut self, path: &Path) -> PathBuf {
        let existing = path.ancestors().find_map(|above| Some((above, self.directory(above).ok()?)));
        let Some((above, resolved)) = existing else { return path.to_owned() };
        match path.strip_prefix(above) {
            Ok(rest) if rest.as_os_str().is_empty() => resolved,
            Ok(rest) => resolved.join(rest),
            Err(_) => path.to_owned(),
        }
    }

    /// The path without links.
    ///
    /// # Errors
    ///
    /// Fails if it does not exist or cannot be reached.
    pub(crate) fn directory(&mut self, path: &Path) -> Result<PathBuf, IoError> {
        if let Some(known) = self.0.get(path) {
            return known.clone().map_err(IoError::from);
        }
        let found = self.find(path).map(|(resolved, _)| resolved);
        let kept = found.as_ref().map(Clone::clone).map_err(IoError::kind);
        self.0.insert(path.to_owned(), kept);
        found
    }
}

/// The path without any link, and whether it is a directory.
fn followed(path: &Path) -> Result<(PathBuf, bool), IoError> {
    let resolved = canonicalize(path)?;
    let is_directory = symlink_metadata(&resolved)?.is_dir();
    Ok((resolved, is_directory))
}

/// Whether a rule for `path` decides about nothing, because the rule above it already has the same access.
pub(crate) fn is_covered(rules: &[Rule], rule: &Rule) -> bool {
    let above =
        rules.iter().rev().find(|other| other.path != rule.path && rule.path.starts_with(&other.path));
    match (above.map(|above| above.access), rule.access) {
        (Some(Access::Hide), Access::Hide | Access::Mask | Access::Protect) => true,
        // The root directory is visible and read-only.
        (None | Some(Access::Show | Access::Protect), Access::Show | Access::Protect) => true,
        _ => false,
    }
}

/// The rules without those for writable paths in writable directories. A mount on a file would keep programs from
/// replacing it.
pub(crate) fn without_repetitions(rules: Vec<Rule>) -> Vec<Rule> {
    // The private directory replaces what the rules above it decided about.
    let is_replaced = |path: &Path| path != Path::new(TEMPORARY) && path.starts_with(TEMPORARY);
    let is_repeated = |at: usize| {
        let rule = &rules[at];
        let above = rules[..at].iter().rev().find(|above| rule.path.starts_with(&above.path));
        above.is_some_and(|above| {
            above.access.is_writable()
                && rule.access == Access::Write
                && (is_replaced(&above.path) || !is_replaced(&rule.path))
        })
    };
    let kept: Vec<usize> = (0..rules.len()).filter(|at| !is_repeated(*at)).collect();
    kept.into_iter().map(|at| rules[at].clone()).collect()
}
