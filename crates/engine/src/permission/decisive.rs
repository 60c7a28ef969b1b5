//! Ordinary files that are control files because of other files: settings of git name them, a control file is a link to
//! them, or they make a directory a repository of git.
//!
//! The sandbox refuses them to commands ([`crate::sandbox::git`]). A tool that writes files, a redirection and the
//! argument `sandbox` of a command need the permission of a control file for them. The same holds for what the sandbox hides
//! in the directory of a session ([`crate::sandbox::hiding`]), also if a tool only reads it.

use std::fs::read_dir;
use std::path::{Component, Path, PathBuf};

use codewright_config::{Dirs, Env, SandboxConfig};
use codewright_permission::control::{self, HomeBase};
use codewright_tools::{Ask, Permission, UNKNOWN};
use codewright_workspace::{Guarded, folded_name, is_part_of_repository, normalize, physical};

use crate::sandbox::git;
use crate::sandbox::hiding::{Hiding, ProcessKind};
use crate::sandbox::homes::{home_bases, kept_inside};

/// The number of links among control files above which everything in their directory counts as what they lead to.
const MAX_LINKS: usize = 10_000;
/// The number of entries of control directories above which the same holds.
const MAX_ENTRIES: usize = 50_000;
/// The depth to which links are searched in directories of control files.
const MAX_DEPTH: usize = 8;
/// The largest number of links that are followed from one.
const MAX_HOPS: usize = 40;

/// The user whose settings and secrets count.
#[derive(Debug)]
pub(crate) struct Decisive {
    variables: Env,
    dirs: Dirs,
    /// The directory of saved outputs.
    tool_output: PathBuf,
}

/// The directories of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The root of patterns; `/` outside a repository.
    pub(crate) worktree: &'a Path,
    /// The repository, or the session's directory outside a repository.
    pub(crate) project: &'a Path,
    pub(crate) directory: &'a Path,
    pub(crate) sandbox: &'a SandboxConfig,
    /// Directories of skills, which can be in a hidden one.
    pub(crate) skills: &'a [PathBuf],
}

/// The paths of a request that need permission by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByName {
    /// Writes to files that other files make control files.
    pub(crate) decisive: Vec<PathBuf>,
    /// Reads and writes of what the sandbox hides.
    pub(crate) hidden: Vec<PathBuf>,
}

impl Decisive {
    pub(crate) fn new(variables: &Env, dirs: &Dirs) -> Self {
        Self { variables: variables.clone(), tool_output: dirs.tool_output(), dirs: dirs.clone() }
    }

    /// Returns the home directory, and the directories that replace a part of it.
    pub(crate) fn home(&self) -> Vec<HomeBase> {
        home_bases(&self.dirs)
    }

    /// Returns the paths of a request that need permission by name.
    pub(crate) fn of(&self, ask: &Ask, place: Place<'_>) -> ByName {
        let edits = paths(ask, &Permission::Edit, place.worktree);
        let touched: Vec<PathBuf> =
            paths(ask, &Permission::Read, place.worktree).chain(edits.clone()).collect();
        ByName {
            hidden: self.hidden_among(touched, place),
            decisive: self.among(edits.collect(), place.project),
        }
    }

    /// Returns what the sandbox hides in the directory of a session. Outside of it every file needs permission.
    pub(crate) fn hidden(&self, place: Place<'_>) -> Vec<PathBuf> {
        let Place { project: root, directory, sandbox: config, .. } = place;
        let (dirs, variables, kind) = (&self.dirs, &self.variables, ProcessKind::Command);
        let mut hidden = Hiding { dirs, config, variables, directory, root, kind }.paths();
        hidden.retain(|path| path.starts_with(root) && !config.read.contains(path));
        hidden
    }

    fn hidden_among(&self, mut paths: Vec<PathBuf>, place: Place<'_>) -> Vec<PathBuf> {
        if paths.is_empty() {
            return paths;
        }
        let hidden = self.hidden(place);
        paths.retain(|path| {
            let real = physical(path).unwrap_or_else(|_| path.clone());
            self.is_hidden(&real, &hidden, place) || self.is_hidden(path, &hidden, place)
        });
        paths
    }

    /// Whether a path is hidden and not one that a session needs.
    fn is_hidden(&self, path: &Path, hidden: &[PathBuf], place: Place<'_>) -> bool {
        hidden.iter().any(|hidden| path.starts_with(hidden))
            && !self.shown(place).any(|shown| path.starts_with(shown))
    }

    /// Returns what a session needs in hidden directories.
    pub(crate) fn shown<'a>(&'a self, place: Place<'a>) -> impl Iterator<Item = &'a PathBuf> {
        [&self.tool_output].into_iter().chain(place.skills).chain(&place.sandbox.read)
    }

    /// Returns those of some paths that other files make control files.
    pub(crate) fn among(&self, mut paths: Vec<PathBuf>, project: &Path) -> Vec<PathBuf> {
        if paths.is_empty() {
            return paths;
        }
        let git = git::directory(project);
        let mut rows = git::targets(project, git.as_deref(), &self.variables, &self.dirs.home);
        rows.extend(links(project));
        rows.extend(links_at_home(&self.dirs, project));
        let is_named = |path: &Path| {
            let real = physical(path).unwrap_or_else(|_| path.to_owned());
            [path, &real].into_iter().any(|path| {
                let ancestors = path.ancestors().take_while(|above| *above != project);
                ancestors.into_iter().any(|part| is_row(&rows, part) || is_part(part))
            })
        };
        paths.retain(|path| is_named(path));
        paths
    }
}

/// The paths of the effects of a kind that a request states or that are certain enough to have a name.
fn paths<'a>(
    ask: &'a Ask,
    permission: &'a Permission,
    worktree: &'a Path,
) -> impl Iterator<Item = PathBuf> + Clone + 'a {
    let whole = ask.patterns.iter().filter(move |_| ask.permission == *permission);
    let implied = ask.implied.iter().filter(move |implied| implied.permission == *permission);
    let patterns = whole.chain(implied.map(|implied| &implied.pattern));
    let patterns = patterns.filter(|pattern| !pattern.contains(UNKNOWN));
    patterns.map(move |pattern| normalize(&worktree.join(pattern)))
}

fn is_row(rows: &[Guarded], path: &Path) -> bool {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let name = folded_name(&name.to_string_lossy());
    let mut rows = rows.iter().filter(|row| row.directory == directory);
    rows.any(|row| row.patterns.iter().any(|pattern| control::matches_name(pattern, &name)))
}

/// Whether an entry is part of a repository of git, or completes one.
fn is_part(path: &Path) -> bool {
    // The directory `.git` has rows of its own.
    if path.components().any(|part| part.as_os_str() == ".git") {
        return false;
    }
    let Some(directory) = path.parent() else { return false };
    is_part_of_repository(path, |name| {
        let (directory, name) = match name.strip_prefix("../") {
            Some(name) => (directory.parent().unwrap_or(directory), name),
            None => (directory, name),
        };
        names(directory).any(|other| folded_name(&other) == name)
    })
}

/// What the links among the control files of a directory lead to, with the links on the way there. Links deeper inside
/// directories of control files count, too; in those of version control only hooks.
pub(crate) fn links(directory: &Path) -> Vec<Guarded> {
    let mut found = Links::below(directory);
    for row in control::guarded(directory) {
        for path in entries(&row) {
            found.add(&path, if control::is_version_control(&path) { 1 } else { MAX_DEPTH });
        }
    }
    found.add(&directory.join(".git/hooks"), MAX_DEPTH);
    if found.is_too_large() {
        let patterns = vec![Guarded::EVERYTHING.to_owned()];
        return vec![Guarded { directory: directory.to_owned(), patterns, except: Vec::new() }];
    }
    found.rows
}

/// What the links among the control files of the home directory lead to, if a directory contains the home.
fn links_at_home(dirs: &Dirs, directory: &Path) -> Vec<Guarded> {
    let mut found = Links::below(&dirs.home);
    if dirs.home.starts_with(directory) {
        for row in kept_inside(dirs, std::slice::from_ref(&dirs.home)) {
            entries(&row).for_each(|path| found.add(&path, 1));
        }
    }
    found.rows
}

/// The links among control files.
struct Links<'a> {
    /// No link is followed out of this directory.
    root: &'a Path,
    rows: Vec<Guarded>,
    /// The number of entries that were seen.
    entries: usize,
}

impl<'a> Links<'a> {
    fn below(root: &'a Path) -> Self {
        Self { root, rows: Vec::new(), entries: 0 }
    }

    fn is_too_large(&self) -> bool {
        self.rows.len() > MAX_LINKS || self.entries > MAX_ENTRIES
    }

    /// Adds the links at a path and inside of it, down to a depth.
    fn add(&mut self, path: &Path, depth: usize) {
        let mut waiting = vec![(path.to_owned(), depth)];
        while let Some((path, depth)) = waiting.pop() {
            if self.is_too_large() {
                return;
            }
            self.entries += 1;
            let Ok(about) = path.symlink_metadata() else { continue };
            let mut is_directory = about.is_dir() && !path.file_name().is_some_and(control::is_package);
            if about.is_symlink() {
                let places = places(&path);
                is_directory =
                    places.last().is_some_and(|place| place.starts_with(self.root) && place.is_dir());
                self.rows.extend(places.iter().filter_map(|place| row(place)));
            }
            if depth > 0 && is_directory {
                waiting.extend(names(&path).map(|name| (path.join(name), depth - 1)));
            }
        }
    }
}

/// The links on the way from a link, without itself, and what it leads to in the end.
fn places(link: &Path) -> Vec<PathBuf> {
    let Some((above, name)) = link.parent().zip(link.file_name()) else { return Vec::new() };
    let mut reached = physical(above).unwrap_or_else(|_| above.to_owned());
    let mut waiting = vec![name.to_owned()];
    let mut found = Vec::new();
    let mut followed = 0;
    while let Some(name) = waiting.pop() {
        let next = normalize(&reached.join(&name));
        match next.read_link() {
            Ok(target) if followed < MAX_HOPS => {
                if followed > 0 {
                    found.push(next);
                }
                followed += 1;
                let parts = target.components().rev().filter(|part| *part != Component::CurDir);
                // The root directory is a part of its own, and replaces what was reached.
                waiting.extend(parts.map(|part| part.as_os_str().to_owned()));
            }
            Ok(_) | Err(_) => reached = next,
        }
    }
    found.push(reached);
    found
}

/// The row of a path.
fn row(path: &Path) -> Option<Guarded> {
    let (directory, name) = (path.parent()?.to_owned(), path.file_name()?);
    Some(Guarded { directory, patterns: vec![folded_name(&name.to_string_lossy())], except: Vec::new() })
}

/// The entries that a row names.
fn entries(row: &Guarded) -> impl Iterator<Item = PathBuf> {
    let is_named = move |name: &String| {
        let folded = folded_name(name);
        row.patterns.iter().any(|pattern| control::matches_name(pattern, &folded))
    };
    names(&row.directory).filter(is_named).map(move |name| row.directory.join(name))
}

/// The names of the entries of a directory. All of them count: a command could create as many as it wants in front of one.
fn names(directory: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_decisive_because_of_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for directory in [
            ".git/hooks",
            "tools",
            "ai",
            "env",
            "scripts",
            "bare/objects",
            "bare/refs",
            "docs/objects",
            "half",
        ] {
            create_dir_all(root.join(directory)).unwrap();
        }
        create_dir_all(root.join("docs/refs")).unwrap();
        let settings = "[core]\nfsmonitor = tools/watch.sh\nhooksPath = ci\n[include]\npath = ../inc/cfg\n";
        write(root.join(".git/config"), settings).unwrap();
        for file in ["tools/watch.sh", "env/x", "bare/HEAD", "docs/config", "half/HEAD", "scripts/pre-push"] {
            write(root.join(file), "").unwrap();
        }
        symlink("env/x", root.join(".envrc")).unwrap();
        symlink("ai", root.join(".claude")).unwrap();
        symlink("../../scripts/pre-push", root.join(".git/hooks/pre-push")).unwrap();
        create_dir_all(root.join("shared/skill")).unwrap();
        create_dir_all(root.join(".agents/skills/deep")).unwrap();
        for (target, link) in [
            ("../../chain/first", ".git/hooks/pre-commit"),
            ("second", "chain/first"),
            ("../last/third", "chain/second"),
            ("real", "last"),
            ("../../../shared/skill", ".agents/skills/deep/skill"),
        ] {
            create_dir_all(root.join(link).parent().unwrap()).unwrap();
            symlink(target, root.join(link)).unwrap();
        }
        let variables = Env::from_pairs([("HOME", root.join("home").to_str().unwrap())]);
        let decisive = Decisive::new(&variables, &Dirs::new(&variables).unwrap());
        for (path, expected) in [
            ("tools/watch.sh", true),
            ("tools/Watch.sh", true),
            ("ci/pre-commit", true),
            ("inc/cfg", true),
            ("env/x", true),
            ("ai/settings.json", true),
            ("ai/new.json", true),
            ("scripts/pre-push", true),
            ("chain/first", true),
            ("chain/second", true),
            ("last", true),
            ("real/third", true),
            ("real/other", false),
            ("chain/other", false),
            ("shared/skill/SKILL.md", true),
            ("shared/other", false),
            ("bare/config", true),
            ("bare/hooks/post-update", true),
            ("bare/commondir", true),
            ("docs/HEAD", true),
            ("half/commondir", true),
            ("bare/HEAD", false),
            ("bare/description", false),
            ("half/config", false),
            ("tools/other.sh", false),
            ("src/config", false),
            ("config", false),
            ("HEAD", false),
        ] {
            let found = decisive.among(vec![root.join(path)], &root);
            assert_eq!(!found.is_empty(), expected, "{path}");
        }
    }

    #[test]
    fn many_entries_hide_neither_a_link_nor_a_repository() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for directory in ["home", "docs/objects", "docs/refs", "env"] {
            create_dir_all(root.join(directory)).unwrap();
        }
        write(root.join("docs/HEAD"), "").unwrap();
        symlink("env/x", root.join(".envrc")).unwrap();
        for number in 0..3000 {
            write(root.join(format!("{number}")), "").unwrap();
            write(root.join(format!("docs/{number}")), "").unwrap();
        }
        let variables = Env::from_pairs([("HOME", root.join("home").to_str().unwrap())]);
        let decisive = Decisive::new(&variables, &Dirs::new(&variables).unwrap());
        for path in ["env/x", "docs/config"] {
            assert!(!decisive.among(vec![root.join(path)], &root).is_empty(), "{path}");
        }
        create_dir_all(root.join(".claude")).unwrap();
        for number in 0..=MAX_LINKS {
            symlink("../env/y", root.join(format!(".claude/{number}"))).unwrap();
        }
        symlink("../env/z", root.join(".mcp.json")).unwrap();
        assert!(!decisive.among(vec![root.join("any/file")], &root).is_empty(), "it must fail closed");
    }
}
