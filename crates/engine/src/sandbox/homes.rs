//! The base directories of the user, and which control files of the home directory are in directories that a command can
//! write.

use std::path::{Path, PathBuf};

use codewright_config::Dirs;
use codewright_permission::control::{self, HomeBase};
use codewright_workspace::{Guarded, folded_name, physical};

use super::paths::SECRETS;

/// The base directories of the XDG specification, and the directory in the home that each replaces.
pub(super) fn bases(dirs: &Dirs) -> [(&'static str, Option<&Path>); 4] {
    [
        (".config", dirs.config.parent()),
        (".local/share", dirs.data.parent()),
        (".local/state", dirs.state.parent()),
        (".cache", dirs.cache.parent()),
    ]
}

/// The home directory and the directories that replace a part of it, with and without links in their paths.
pub(crate) fn home_bases(dirs: &Dirs) -> Vec<HomeBase> {
    let home = HomeBase { part: "", directory: dirs.home.clone() };
    let others = bases(dirs).into_iter().filter_map(|(part, base)| {
        let directory = base.filter(|base| **base != dirs.home.join(part))?.to_owned();
        Some(HomeBase { part, directory })
    });
    let mut found: Vec<HomeBase> = std::iter::once(home).chain(others).collect();
    let real = found.iter().filter_map(|base| {
        let directory = physical(&base.directory).ok().filter(|real| *real != base.directory)?;
        Some(HomeBase { part: base.part, directory })
    });
    found.extend(real.collect::<Vec<_>>());
    found
}

/// The names that stay as they are in directories that a command can write. In a project that is one of these names, or
/// inside of one, nothing else is kept.
pub(crate) fn kept_inside(dirs: &Dirs, directories: &[PathBuf]) -> Vec<Guarded> {
    let real = physical(&dirs.home).ok().filter(|real| *real != dirs.home);
    let homes = [Some(dirs.home.as_path()), real.as_deref()].into_iter().flatten().map(|home| ("", home));
    let replaced = bases(dirs).into_iter().filter_map(|(part, base)| Some((part, base?)));
    let rows = || control::home_paths().chain(control::common_paths()).chain(SECRETS.iter().copied());
    let mut paths = Vec::new();
    for (part, base) in homes.chain(replaced) {
        let is_above = directories.iter().any(|directory| base.starts_with(directory));
        let inside: Vec<PathBuf> = directories
            .iter()
            .filter_map(|directory| Some(Path::new(part).join(directory.strip_prefix(base).ok()?)))
            .collect();
        if !is_above && inside.is_empty() {
            continue;
        }
        let is_kept = |row: &&str| {
            let (row, part) = (Path::new(row), Path::new(part));
            row.starts_with(part)
                && row != part
                && (is_above || inside.iter().any(|inside| row.starts_with(inside) && row != inside))
        };
        let place = |row: &str| base.join(Path::new(row).strip_prefix(part).unwrap_or(Path::new(row)));
        paths.extend(rows().filter(is_kept).map(place));
    }
    by_directory(paths.iter(), &[])
}

/// The names of paths by the directory that contains them. `except` are paths that stay free.
pub(super) fn by_directory<'a>(paths: impl Iterator<Item = &'a PathBuf>, except: &[PathBuf]) -> Vec<Guarded> {
    let mut rows: std::collections::BTreeMap<PathBuf, Vec<String>> = std::collections::BTreeMap::new();
    for path in paths {
        if let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
            rows.entry(directory.to_owned()).or_default().push(folded_name(&name.to_string_lossy()));
        }
    }
    let row = |(directory, mut patterns): (PathBuf, Vec<String>)| {
        patterns.sort();
        patterns.dedup();
        let inside = except.iter().filter(|path| path.parent() == Some(&directory));
        let names = inside.filter_map(|path| Some(folded_name(&path.file_name()?.to_string_lossy())));
        let except = names.collect();
        Guarded { directory, patterns, except }
    };
    rows.into_iter().map(row).collect()
}
