//! The names that a command cannot create, as the helper inside its sandbox checks them.
//!
//! A mount protects only what exists. [`Names`] decides about a path that a command is about to create or replace. The
//! decision is a pure function of the physical path, except for parts of repositories ([`Names::is_part`]), whose
//! meaning depends on the other entries of their directory.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::access::Directories;
use crate::guard::{Guarded, folded_name, is_match};
use crate::{Sandbox, TEMPORARY};

/// A component of a row that stands for any number of components, except those of [`REFERENCES`].
const ANY: &str = "**";
/// The last component of a row that matches the entry itself and nothing inside.
const ITSELF: &str = "$";
/// Directories of git whose entries are named like branches, which may have any name.
const REFERENCES: [&str; 3] = ["refs", "logs", "objects"];
/// The entries that make a directory a repository of git.
const REPOSITORY: [&str; 3] = ["head", "objects", "refs"];
/// The entries of such a directory that decide which programs git runs.
const PROGRAMS: [&str; 4] = ["config", "config.worktree", "hooks", COMMON];
/// The file that names the directory with the other parts.
const COMMON: &str = "commondir";
/// The largest number of paths in packages that a command can link to.
const MAX_LINKED: usize = 1000;
/// The largest number of links to nothing that are followed to a guarded directory.
const MAX_LINKS: usize = 16;

/// Names at any depth below directories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// The directories.
    pub directories: Vec<PathBuf>,
    /// Consecutive components, in the form of [`folded_name`], which may start or end with `*`. Everything inside a path
    /// that matches is guarded, too, unless the last component is `$`. The component `**` matches any number of directories.
    pub rows: Vec<Vec<String>>,
    /// Paths that are not guarded, with what is inside, and the directories above them.
    pub except: Vec<PathBuf>,
    /// Names that are not compared inside packages.
    pub outside_packages: OutsidePackages,
    /// Rows that only guard an entry if a link with another name leads to it.
    pub unless_linked: Vec<Vec<String>>,
}

/// Names at any depth below directories, except inside packages: package managers unpack what others published, and nobody
/// works there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsidePackages {
    /// The directories.
    pub directories: Vec<PathBuf>,
    /// The rows, in the form of [`Below::rows`].
    pub rows: Vec<Vec<String>>,
    /// Paths in packages to which links outside of packages lead. The names below them are compared all the same.
    pub linked: Vec<PathBuf>,
    /// The names of directories with packages. They are compared exactly: a name that only looks like one is an ordinary
    /// directory for those who work in it.
    pub packages: Vec<String>,
}

/// The names that a command cannot create.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Names {
    rows: Vec<Guarded>,
    below: Below,
    /// The links that a command cannot remove or replace.
    pub(crate) links: Vec<PathBuf>,
    /// Directories that contain no guarded name.
    pub(crate) free: Vec<PathBuf>,
    #[serde(skip)]
    index: Index,
}

/// What is created at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A new directory, which is empty.
    Directory,
    /// Anything else, also a directory that gets another name.
    Other,
}

/// Where a path is, seen from the paths that are not guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grant {
    Inside,
    Above,
    None,
}

/// The rows by their directory, and those below directories by their first component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Index {
    directories: HashMap<OsString, Vec<usize>>,
    below: Rows,
    outside_packages: Rows,
}

/// The numbers of rows by their first component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rows {
    exact: HashMap<String, Vec<usize>>,
    patterns: Vec<usize>,
}

impl Rows {
    fn new(rows: &[Vec<String>]) -> Self {
        let mut found = Self::default();
        for (number, row) in rows.iter().enumerate() {
            let Some(first) = row.first() else { continue };
            if first.contains('*') {
                found.patterns.push(number);
            } else {
                found.exact.entry(first.clone()).or_default().push(number);
            }
        }
        found
    }

    /// Whether the components contain one of the rows.
    fn are_in(&self, rows: &[Vec<String>], names: &[String]) -> bool {
        let found = (0..names.len()).flat_map(|at| {
            let exact = self.exact.get(&names[at]).into_iter().flatten();
            exact.chain(&self.patterns).map(move |row| (at, *row))
        });
        found
            .filter_map(|(at, row)| Some((at, rows.get(row)?)))
            .any(|(at, row)| has_beginning(row, &names[at..]))
    }
}

impl Names {
    /// The names of a sandbox whose writable directories are `writable`. `None` if the command can create nothing next to
    /// them.
    pub(crate) fn new(sandbox: &Sandbox, writable: &[PathBuf]) -> Option<Self> {
        let mut directories = Directories::default();
        let mut rows: Vec<Guarded> = Vec::new();
        let mut links = Vec::new();
        let mut seen: HashMap<PathBuf, bool> = HashMap::new();
        for row in &sandbox.guarded {
            let mut is_linked = false;
            for above in row.directory.ancestors() {
                // Most rows share their directories.
                let is_link = *seen.entry(above.to_owned()).or_insert_with(|| above.is_symlink());
                if is_link {
                    is_linked = true;
                    links.push(above.to_owned());
                }
            }
            // Errors were reported when the rules were resolved.
            let existing = row.existing(&mut directories).unwrap_or_default();
            links.extend(existing.into_iter().filter(|path| path.is_symlink()));
            let mut places = vec![row.directory.clone()];
            if is_linked {
                places.extend([directories.resolved(&row.directory), target(&row.directory)]);
            }
            places.dedup();
            rows.extend(places.into_iter().map(|directory| Guarded { directory, ..row.clone() }));
        }
        let mut physical = |link: PathBuf| {
            let (above, name) = (link.parent()?, link.file_name()?);
            Some(directories.resolved(above).join(name))
        };
        let mut links: Vec<PathBuf> = links.into_iter().filter_map(&mut physical).collect();
        // A command can remove nothing elsewhere.
        links.retain(|link| writable.iter().any(|path| link.starts_with(path) && link != path));
        links.sort();
        links.dedup();
        let mut below = sandbox.below.clone();
        let OutsidePackages { directories: outside, linked, .. } = &mut below.outside_packages;
        for path in below.directories.iter_mut().chain(&mut below.except).chain(outside).chain(linked) {
            *path = directories.resolved(path);
        }
        let mut places = rows.iter().map(|row| &row.directory).chain(&below.directories);
        let is_watched =
            |path: &PathBuf| places.clone().any(|place| place.starts_with(path) || path.starts_with(place));
        let (watched, free): (Vec<PathBuf>, Vec<PathBuf>) =
            writable.iter().cloned().partition(|path| is_watched(path));
        places.next()?;
        (!watched.is_empty()).then(|| Self { rows, below, links, free, index: Index::default() })
    }

    /// Prepares the rows for [`Names::are_in`].
    pub(crate) fn prepare(&mut self) {
        let mut index = Index::default();
        for (number, row) in self.rows.iter().enumerate() {
            index.directories.entry(row.directory.clone().into_os_string()).or_default().push(number);
        }
        index.below = Rows::new(&self.below.rows);
        index.outside_packages = Rows::new(&self.below.outside_packages.rows);
        self.index = index;
    }

    /// Whether nothing below a directory is guarded.
    pub(crate) fn is_free(&self, directory: &Path) -> bool {
        self.free.iter().any(|free| directory.starts_with(free))
    }

    /// Whether an entry at a path without links is guarded.
    pub(crate) fn are_in(&self, path: &Path, entry: Entry) -> bool {
        match (self.grant(path), entry) {
            (Grant::Inside, _) | (Grant::Above, Entry::Directory) => false,
            // A link in place of a directory would lead elsewhere.
            (Grant::Above, Entry::Other) => self.is_row(path, Guarded::names) || self.is_below(path),
            (Grant::None, _) => self.is_row(path, Guarded::matches) || self.is_below(path),
        }
    }

    /// Whether a directory or link at this path would put other entries in a guarded place: the path is the beginning of
    /// one. Returns the rest of each such place.
    pub(crate) fn rests(&self, path: &Path) -> Vec<Vec<String>> {
        let mut rests = Vec::new();
        for row in &self.rows {
            if let Ok(rest) = row.directory.strip_prefix(path) {
                let above: Vec<String> = rest.components().filter_map(folded).collect();
                for pattern in &row.patterns {
                    rests.push(above.iter().chain([pattern]).cloned().collect());
                }
            }
        }
        let outside_packages =
            self.outside_packages(path).map(|names| (names, &self.below.outside_packages.rows));
        for (inside, rows) in
            [(inside(&self.below.directories, path), &self.below.rows)].into_iter().chain(outside_packages)
        {
            for row in rows {
                for length in 1..row.len() {
                    let (beginning, rest) = row.split_at(length);
                    let is_end = inside.len() >= length
                        && beginning
                            .iter()
                            .zip(&inside[inside.len() - length..])
                            .all(|(one, name)| is_match(one, name));
                    if is_end && rest != [ITSELF] {
                        rests.push(rest.to_vec());
                    }
                }
            }
        }
        rests
    }

    /// Whether an entry decides which programs git runs, given the other entries of its directory: the last one that makes
    /// it a repository, or a setting of one. `has` reports whether the directory has an entry, in any case.
    pub(crate) fn is_part(&self, path: &Path, has: impl Fn(&str) -> bool) -> bool {
        let is_inside = self.below.directories.iter().any(|directory| path.starts_with(directory));
        is_inside && self.grant(path) != Grant::Inside && is_part_of_repository(path, has)
    }

    /// Whether an entry is guarded because a link with another name led to it.
    pub(crate) fn are_linked(&self, path: &Path) -> bool {
        let names = inside(&self.below.directories, path);
        let rows = &self.below.unless_linked;
        rows.iter().any(|row| (0..names.len()).any(|at| has_beginning(row, &names[at..])))
    }

    /// Whether a link from a path to a place would give entries that nobody compares another name: the place is a
    /// directory of a cache, or one of packages and the link is outside of them.
    pub(crate) fn leads_out(&self, link: &Path, place: &Path) -> bool {
        // Other programs do not see the private directory.
        let is_seen = |path: &Path| path.starts_with(TEMPORARY) || !self.is_free(path);
        let is_inside = self.below.directories.iter().any(|directory| link.starts_with(directory));
        is_inside && (!is_seen(place) || self.leaves_packages(place, link))
    }

    /// Compares the names below a path in packages from now on, because a link outside leads to it. Returns whether this is
    /// possible.
    pub(crate) fn compare(&mut self, place: &Path) -> bool {
        let linked = &mut self.below.outside_packages.linked;
        let is_known = linked.iter().any(|linked| linked == place);
        if !is_known && linked.len() < MAX_LINKED {
            linked.push(place.to_owned());
        }
        is_known || linked.last().is_some_and(|last| last == place)
    }

    fn grant(&self, path: &Path) -> Grant {
        let mut grants = self.below.except.iter();
        if grants.clone().any(|granted| path.starts_with(granted)) {
            return Grant::Inside;
        }
        if grants.any(|granted| granted.starts_with(path)) { Grant::Above } else { Grant::None }
    }

    /// Whether the path, or one above it, is an entry that a row names.
    fn is_row(&self, path: &Path, is_named: fn(&Guarded, &str) -> bool) -> bool {
        let entries = path.ancestors().filter_map(|path| Some((path.parent()?, path.file_name()?)));
        entries.filter_map(|(above, name)| Some((self.index.directories.get(above.as_os_str())?, name))).any(
            |(rows, name)| {
                let name = name.to_string_lossy();
                rows.iter().filter_map(|row| self.rows.get(*row)).any(|row| is_named(row, &name))
            },
        )
    }

    fn is_below(&self, path: &Path) -> bool {
        self.index.below.are_in(&self.below.rows, &inside(&self.below.directories, path))
            || self.outside_packages(path).is_some_and(|names| {
                self.index.outside_packages.are_in(&self.below.outside_packages.rows, &names)
            })
    }

    /// Whether a directory that gets another name would take what is inside out of the packages, where fewer names are
    /// compared.
    pub(crate) fn leaves_packages(&self, from: &Path, to: &Path) -> bool {
        let is_above = |linked: &PathBuf| linked.starts_with(to);
        self.has_package(from)
            && (self.outside_packages(to).is_some()
                || self.below.outside_packages.linked.iter().any(is_above))
    }

    /// Whether a path is one of packages or inside of them.
    fn has_package(&self, path: &Path) -> bool {
        let OutsidePackages { directories, packages, linked, .. } = &self.below.outside_packages;
        if linked.iter().any(|linked| path.starts_with(linked)) {
            return false;
        }
        let mut names = below(directories, path).into_iter().flat_map(Path::components);
        names.any(|name| packages.iter().any(|package| name.as_os_str() == package.as_str()))
    }

    /// The components below the outermost directory whose packages are known. `None` inside of packages and elsewhere.
    fn outside_packages(&self, path: &Path) -> Option<Vec<String>> {
        let names = inside(&self.below.outside_packages.directories, path);
        (!names.is_empty() && !self.has_package(path)).then_some(names)
    }
}

/// Whether an entry decides which programs git runs in its directory, or in the directory above one of hooks: the last entry
/// that makes the directory a repository with settings, or a setting of one. `has` reports whether the directory of the
/// entry has another one, in any case; a name that begins with `../` is one of the directory above.
#[must_use]
pub fn is_part_of_repository(path: &Path, has: impl Fn(&str) -> bool) -> bool {
    let mut names = path.components().rev().filter_map(folded);
    let (Some(name), above) = (names.next(), names.next()) else { return false };
    if above.as_deref() == Some("hooks") && REPOSITORY.iter().all(|part| has(&format!("../{part}"))) {
        return true;
    }
    // With this file the other parts are elsewhere. Git writes it for worktrees in its own directory, where rows guard it.
    let is_of_git = above.as_deref() == Some(".git") || names.any(|name| name == ".git");
    let is_linked = |one: &str, other: &str| name == one && has(other);
    if !is_of_git && (is_linked(COMMON, "head") || !has("head") && is_linked("head", COMMON)) {
        return true;
    }
    let has_all_but = |name: &str| REPOSITORY.iter().all(|part| *part == name || has(part));
    if PROGRAMS.contains(&name.as_str()) {
        return has_all_but("");
    }
    // An entry that exists is only replaced, as git does with each commit.
    REPOSITORY.contains(&name.as_str())
        && !has(&name)
        && PROGRAMS.iter().any(|part| has(part))
        && has_all_but(&name)
}

/// The rest of a path below the outermost of the directories.
fn below<'a>(directories: &[PathBuf], path: &'a Path) -> Option<&'a Path> {
    let rests = directories.iter().filter_map(|directory| path.strip_prefix(directory).ok());
    rests.max_by_key(|rest| rest.as_os_str().len())
}

/// The components below the outermost of the directories.
fn inside(directories: &[PathBuf], path: &Path) -> Vec<String> {
    below(directories, path).into_iter().flat_map(Path::components).filter_map(folded).collect()
}

/// Whether the components begin with a row.
fn has_beginning(row: &[String], names: &[String]) -> bool {
    let Some((first, rest)) = row.split_first() else { return true };
    match first.as_str() {
        ITSELF => names.is_empty(),
        ANY => {
            let most = names.iter().position(|name| REFERENCES.contains(&name.as_str()));
            (0..=most.unwrap_or(names.len())).any(|skipped| has_beginning(rest, &names[skipped..]))
        }
        pattern => names
            .split_first()
            .is_some_and(|(name, names)| is_match(pattern, name) && has_beginning(rest, names)),
    }
}

fn folded(component: Component<'_>) -> Option<String> {
    let Component::Normal(name) = component else { return None };
    Some(folded_name(&name.to_string_lossy()))
}

/// The directory that a path leads to, also if a link in it names nothing yet.
fn target(directory: &Path) -> PathBuf {
    let mut path = directory.to_owned();
    for _ in 0..MAX_LINKS {
        let above: Vec<&Path> = path.ancestors().collect();
        let link = above.into_iter().rev().find_map(|above| Some((above, std::fs::read_link(above).ok()?)));
        let Some((link, target)) = link else { break };
        let rest = path.strip_prefix(link).unwrap_or(Path::new("")).to_owned();
        let written = link.parent().unwrap_or(link).join(target).join(rest);
        path = PathBuf::new();
        for part in written.components() {
            match part {
                Component::ParentDir => drop(path.pop()),
                Component::CurDir => {}
                part => path.push(part),
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(rows: &[&str], except: &[&str]) -> Names {
        let row = |row: &&str| row.split('/').map(str::to_owned).collect();
        let below = Below {
            directories: vec!["/work".into()],
            rows: rows.iter().map(row).collect(),
            except: except.iter().map(PathBuf::from).collect(),
            outside_packages: OutsidePackages {
                directories: vec!["/work".into()],
                rows: ["cargo.json", ".idea/workspace.xml"].iter().map(row).collect(),
                packages: vec!["node_modules".to_owned()],
                linked: Vec::new(),
            },
            unless_linked: vec![vec![".git".to_owned(), ITSELF.to_owned()]],
        };
        let rows = vec![Guarded {
            directory: "/work".into(),
            patterns: vec!["mise.toml".to_owned()],
            except: Vec::new(),
        }];
        let mut names = Names { rows, below, ..Names::default() };
        names.prepare();
        names
    }

    #[test]
    fn a_row_matches_at_any_depth_and_what_is_inside() {
        let names =
            names(&[".envrc", ".vscode/tasks.json", ".git/$", ".git/modules/**/config", "*.pth"], &[]);
        for (path, expected) in [
            ("/work/mise.toml", true),
            ("/work/sub/mise.toml", false),
            ("/work/a/b/.envrc", true),
            ("/work/a/.ENVRC ", true),
            ("/work/a/.envrc/x", true),
            ("/work/a/.envrc2", false),
            ("/work/.vscode", false),
            ("/work/x/.vscode/tasks.json", true),
            ("/work/x/.vscode/extensions.json", false),
            ("/work/x/.git", true),
            ("/work/x/.git/index.lock", false),
            ("/work/.git/modules/a/b/config", true),
            ("/work/.git/modules/a/refs/heads/config", false),
            ("/work/lib/a.pth", true),
            ("/elsewhere/.envrc", false),
            ("/work/a/b/Cargo.json", true),
            ("/work/a/.IDEA/workspace.xml", true),
            ("/work/a/.idea/other.xml", false),
            ("/work/a/node_modules/b/cargo.json", false),
            ("/work/a/node_modules/b/.envrc", true),
            ("/work/node_modules2/cargo.json", true),
            ("/work/Node_Modules/cargo.json", true),
            ("/work/node_modules./cargo.json", true),
            ("/work/node_modules\u{200c}/cargo.json", true),
            ("/elsewhere/cargo.json", false),
        ] {
            assert_eq!(names.are_in(Path::new(path), Entry::Directory), expected, "{path}");
        }
    }

    #[test]
    fn a_granted_path_is_open_with_the_directories_above_it() {
        let names = names(&[".claude", ".git/$"], &["/work/.claude/commands/x.md", "/work/target"]);
        for (path, expected) in [
            ("/work/.claude", false),
            ("/work/.claude/commands", false),
            ("/work/.claude/commands/x.md", false),
            ("/work/.claude/commands/y.md", true),
            ("/work/.claude/settings.json", true),
            ("/work/target/tmp/.git", false),
            ("/work/other/.git", true),
        ] {
            assert_eq!(names.are_in(Path::new(path), Entry::Directory), expected, "{path}");
        }
        assert!(names.are_in(Path::new("/work/.claude"), Entry::Other));
        assert!(!names.are_in(Path::new("/work/.claude/commands/x.md"), Entry::Other));
    }

    #[test]
    fn the_beginning_of_a_guarded_place_has_a_rest() {
        let names = names(&[".vscode/tasks.json", ".git/$"], &[]);
        assert_eq!(names.rests(Path::new("/work/x/.vscode")), [["tasks.json"]]);
        assert_eq!(names.rests(Path::new("/work/x/.git")), [[""; 0]; 0]);
        assert_eq!(names.rests(Path::new("/work/x")), [[""; 0]; 0]);
        assert_eq!(names.rests(Path::new("/work/x/.idea")), [["workspace.xml"]]);
        assert_eq!(names.rests(Path::new("/work/node_modules/x/.idea")), [[""; 0]; 0]);
    }

    #[test]
    fn the_last_part_of_a_repository_is_refused() {
        let names = names(&[], &[]);
        for (path, present, expected) in [
            ("/work/a.git/config", &["head", "objects", "refs"][..], true),
            ("/work/a.git/hooks", &["head", "objects", "refs"], true),
            ("/work/a.git/config", &["head", "refs"], false),
            ("/work/a.git/HEAD", &["config", "objects", "refs"], true),
            ("/work/a.git/HEAD", &["objects", "refs"], false),
            ("/work/a.git/HEAD", &["config", "head", "objects", "refs"], false),
            ("/work/src/config", &["objects"], false),
            ("/elsewhere/a.git/config", &["head", "objects", "refs"], false),
            ("/work/a/commondir", &["head"], true),
            ("/work/a/commondir", &[], false),
            ("/work/a/HEAD", &["commondir"], true),
            ("/work/a/HEAD", &["commondir", "head"], false),
            ("/work/.git/worktrees/a/commondir", &["head"], false),
            ("/work/a.git/hooks/post-update", &["../head", "../objects", "../refs"], true),
            ("/work/src/hooks/post-update", &["../objects"], false),
        ] {
            assert_eq!(names.is_part(Path::new(path), |part| present.contains(&part)), expected, "{path}");
        }
    }

    #[test]
    fn a_link_leads_to_no_directory_in_which_nothing_is_compared() {
        let names = Names { free: vec!["/cache".into(), "/tmp".into()], ..names(&[], &[]) };
        for (link, place, expected) in [
            ("/work/src", "/cache/src", true),
            ("/work/src", "/work/other", false),
            ("/work/src", "/usr/lib", false),
            ("/work/src", "/tmp/src", false),
            ("/work/node_modules/a", "/cache/a", true),
            ("/work/src", "/work/node_modules/a", true),
            ("/work/src", "/work/other/node_modules", true),
            ("/work/node_modules/a", "/work/node_modules/.pnpm/a", false),
            ("/work/node_modules/a", "/work/packages/a", false),
            ("/cache/a", "/cache/b", false),
        ] {
            assert_eq!(names.leads_out(Path::new(link), Path::new(place)), expected, "{link} {place}");
        }
    }

    #[test]
    fn names_behind_a_link_into_packages_are_compared() {
        let mut names = names(&[], &[]);
        let path = Path::new("/work/node_modules/a/.idea/workspace.xml");
        assert!(!names.are_in(path, Entry::Other));
        assert!(names.compare(Path::new("/work/node_modules/a")));
        assert!(names.are_in(path, Entry::Other));
        assert!(!names.are_in(Path::new("/work/node_modules/b/.idea/workspace.xml"), Entry::Other));
        for (from, to, expected) in [
            ("/work/node_modules/b", "/work/node_modules/a", true),
            ("/work/x/node_modules", "/work/node_modules", true),
            ("/work/node_modules/b", "/work/node_modules/c", false),
        ] {
            assert_eq!(names.leaves_packages(Path::new(from), Path::new(to)), expected, "{from} {to}");
        }
        for number in 0..MAX_LINKED {
            names.compare(&path.join(number.to_string()));
        }
        assert!(!names.compare(path) && names.compare(Path::new("/work/node_modules/a")), "there is a limit");
    }

    #[test]
    fn an_entry_that_may_appear_is_guarded_behind_a_link() {
        let names = names(&[], &[]);
        for (path, expected) in
            [("/work/a/.git", true), ("/work/a/.git/index", false), ("/elsewhere/.git", false)]
        {
            assert_eq!(names.are_linked(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn packages_are_left_by_what_is_in_them_and_by_themselves() {
        let names = names(&[], &[]);
        for (from, to, expected) in [
            ("/work/node_modules/a", "/work/a", true),
            ("/work/x/node_modules", "/work/x/b", true),
            ("/work/node_modules/a", "/work/x/node_modules/a", false),
            ("/work/a", "/work/node_modules/a", false),
            ("/work/a", "/work/b", false),
            ("/tmp/node_modules/a", "/work/b", false),
            ("/work/node_modules/a", "/tmp/b", false),
        ] {
            assert_eq!(names.leaves_packages(Path::new(from), Path::new(to)), expected, "{from} {to}");
        }
    }
}
