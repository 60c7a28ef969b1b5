//! Control files: files that decide what the agent or another program does.
//!
//! A write to such a file can run code later, often without a permission request: a hook, a setting, a start-up script.
//! A rule that allows edits in general therefore does not allow these writes. They need a rule that names the file, or
//! a reply for this file.
//!
//! A [table](table::TABLE) lists the files. A row matches components of the path, so it matches at any depth and whether or not the
//! file exists. Paths are resolved before they are matched. Names are compared the way the most lenient file systems
//! compare them.

mod home;
mod table;

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

use codewright_proto::{Action, Rule};
use codewright_workspace::{Below, Guarded, OutsidePackages, folded_name, normalize};

use crate::ask::UNKNOWN;
use crate::evaluate::{Subject, matches};
use crate::kind::Permission;
pub use home::paths as home_paths;
use table::{DECISIVE, Depth, HIDDEN, OWN, SYSTEM, TABLE};

/// The row of the directories of this program: the number after the last row of the table.
const OWN_ROW: usize = TABLE.len();
/// The row of paths that other files make control files.
const DECISIVE_ROW: usize = OWN_ROW + 1;
/// The row of hidden paths.
const HIDDEN_ROW: usize = OWN_ROW + 2;
/// The row of the directories of the system.
const SYSTEM_ROW: usize = OWN_ROW + 3;
/// The first row of the table of the home directory.
const HOME_ROWS: usize = OWN_ROW + 4;
/// Directories with the home directories of users, and the one of root.
const HOMES: [&str; 2] = ["/home", "/Users"];
const ROOT_HOME: &str = "/root";

/// The directory of the worktrees that this program creates, in its data directory.
pub const WORKTREES: &str = "worktree";

/// The roots that the patterns of one session are relative to, and the directories of this program.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    /// The root of relative patterns; `/` outside a repository.
    pub worktree: PathBuf,
    /// The repository, or the session's directory outside a repository. Only components under it are matched.
    pub project: PathBuf,
    /// The directories of this program.
    pub own: Arc<[PathBuf]>,
    /// The user's home directory, and the directories that replace a part of it.
    pub home: Arc<[HomeBase]>,
    /// Paths of the request that other files make control files, with what is inside.
    pub decisive: Vec<PathBuf>,
    /// Paths of the request that the sandbox hides. Reading one needs the same permission as changing it.
    pub hidden: Vec<PathBuf>,
}

/// Returns the paths of the table of control files that mean the same below the home directory. Left out are directories of
/// which the table of the home directory names parts, and those of this program.
pub fn common_paths() -> impl Iterator<Item = &'static str> {
    static PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let paths = TABLE.iter().filter(|row| row.reason != table::AGENT).map(|row| row.names.join("/"));
        let is_whole = |path: &String| {
            let is_part =
                |part: &str| part.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'));
            !home_paths().any(is_part)
        };
        paths.filter(is_whole).collect()
    });
    PATHS.iter().map(String::as_str)
}

/// The home directory, or a directory that replaces a part of it, as `XDG_CONFIG_HOME` replaces `.config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeBase {
    /// The part that the directory replaces. Empty for the home directory itself.
    pub part: &'static str,
    /// The directory.
    pub directory: PathBuf,
}

/// Returns the names of control files in a directory and in the directories of the table below it.
pub fn guarded(directory: &Path) -> Vec<Guarded> {
    let mut guarded: Vec<Guarded> = Vec::new();
    for row in TABLE {
        let Some((name, above)) = row.names.split_last() else { continue };
        let directory = above.iter().fold(directory.to_owned(), |path, name| path.join(name));
        match guarded.iter_mut().find(|known| known.directory == directory) {
            Some(known) => known.patterns.push((*name).to_owned()),
            None => {
                guarded.push(Guarded { directory, patterns: vec![(*name).to_owned()], except: Vec::new() });
            }
        }
    }
    guarded
}

/// The last component of a row of [`Below`] that matches the entry itself and nothing inside.
const ITSELF: &str = "$";
/// The entries in `.git` that decide which programs git runs, at any depth of modules and worktrees.
const GIT: &[&[&str]] = &[
    &[".git", "config"],
    &[".git", "config.worktree"],
    &[".git", "hooks"],
    &[".git", "commondir"],
    &[".git", "modules", "**", "config"],
    &[".git", "modules", "**", "config.worktree"],
    &[".git", "modules", "**", "hooks"],
    &[".git", "modules", "**", "commondir"],
    &[".git", "worktrees", "*", "commondir"],
    &[".git", "worktrees", "*", "config.worktree"],
];

/// Returns the directories of a repository in which git keeps steps that it continues later, and commands among them. Programs
/// that work for long do not write them.
pub fn steps() -> impl Iterator<Item = Vec<String>> {
    let above = [&[".git"][..], &[".git", "worktrees", "*"], &[".git", "modules", "**"]];
    let names = ["rebase-apply", "rebase-merge", "sequencer"];
    above.into_iter().flat_map(move |above| {
        names.map(|name| above.iter().copied().chain([name]).map(str::to_owned).collect())
    })
}

/// Whether a command may create repositories below its directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repositories {
    /// It only clones or creates repositories with git, so nothing of the model writes their settings.
    Created,
    /// It only creates worktrees of the repository with git. They have no settings of their own.
    Worktrees,
    /// It may not.
    Refused,
}

/// The directories in which package managers unpack what others published. Packages contain control files, and nobody works
/// in them.
const PACKAGES: &[&str] = &[
    ".pnpm-store",
    ".tox",
    ".venv",
    ".yarn",
    "Pods",
    "_deps",
    "bower_components",
    "dist-packages",
    "node_modules",
    "site-packages",
    "target",
    "vendor",
    "venv",
];

/// Reports whether a directory with this name contains packages.
pub fn is_package(name: &OsStr) -> bool {
    PACKAGES.iter().any(|package| name == *package)
}

/// Returns the names of control files at any depth below directories. `root` is the directory that the session works in as a
/// whole; the other directories are those of caches and build tools. `granted` are paths that the user granted.
pub fn below(
    root: &Path,
    directories: Vec<PathBuf>,
    granted: Vec<PathBuf>,
    repositories: Repositories,
) -> Below {
    if repositories == Repositories::Created {
        return Below { except: granted, ..Below::default() };
    }
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<String>>();
    // Programs of version control write in its directory.
    let anywhere = TABLE.iter().filter(|row| row.depth == Depth::Any);
    let anywhere = anywhere.map(|row| owned(row.names).into_iter().chain([ITSELF.to_owned()]).collect());
    let rows: Vec<Vec<String>> = anywhere.chain(GIT.iter().map(|row| owned(row))).collect();
    let is_of_worktree = |row: &Vec<String>| {
        let row: Vec<&str> = row.iter().map(String::as_str).collect();
        repositories == Repositories::Worktrees
            && matches!(row[..], [".git", ITSELF] | [".git", "worktrees", ..])
    };
    let (unless_linked, rows) = rows.into_iter().partition(is_of_worktree);
    let outside_packages = OutsidePackages {
        directories: vec![root.to_owned()],
        rows: TABLE.iter().filter(|row| row.depth == Depth::Here).map(|row| owned(row.names)).collect(),
        packages: PACKAGES.iter().map(|&name| name.to_owned()).collect(),
        linked: Vec::new(),
    };
    Below { directories, rows, except: granted, outside_packages, unless_linked }
}

/// Reports whether a path below a directory is a control file or inside one.
pub fn is_control(path: &Path) -> bool {
    let names: Vec<String> = path.components().filter_map(name).collect();
    TABLE.iter().any(|row| names.windows(row.names.len()).any(|names| is_row(row.names, names)))
}

/// Reports whether a path is the directory of a program of version control, which may have many entries.
pub fn is_version_control(path: &Path) -> bool {
    let name = path.components().next_back().and_then(name).unwrap_or_default();
    TABLE.iter().any(|row| row.depth == Depth::Any && is_row(row.names, std::slice::from_ref(&name)))
}

/// Reports whether a name in lower case matches a component of a row.
pub fn matches_name(pattern: &str, name: &str) -> bool {
    is_row(&[pattern], &[name.to_owned()])
}

impl Roots {
    /// Decides about a write, or a read of what is hidden. A general permission does not cover a control file.
    ///
    /// `decided` is the decision of the rules, and `layers` are these rules. The result is never less strict than
    /// `decided`.
    pub fn decide<'a>(
        &self,
        decided: Action,
        subject: Subject<'_>,
        layers: impl IntoIterator<Item = &'a [Rule]>,
    ) -> Action {
        if decided != Action::Allow {
            return decided;
        }
        let rows = self.rows_for(subject);
        let is_named = |rules: &[Rule]| self.names(rules, subject, &rows);
        if rows.is_empty() || layers.into_iter().all(is_named) { Action::Allow } else { Action::Ask }
    }

    /// Returns why a write needs its own permission; `None` for an ordinary file.
    pub fn reason(&self, subject: Subject<'_>) -> Option<&'static str> {
        let row = *self.rows_for(subject).first()?;
        match row {
            OWN_ROW => Some(OWN),
            DECISIVE_ROW => Some(DECISIVE),
            HIDDEN_ROW => Some(HIDDEN),
            SYSTEM_ROW => Some(SYSTEM),
            row if row < OWN_ROW => TABLE.get(row).map(|row| row.reason),
            row => home::HOME.get(row - HOME_ROWS).map(|row| row.reason),
        }
    }

    /// Returns the rows that count for a kind of permission. A control file may be read, but not what is hidden.
    fn rows_for(&self, subject: Subject<'_>) -> Vec<usize> {
        let mut rows = match subject.permission {
            kind if Permission::Edit == *kind || Permission::Read == *kind => self.rows(subject.pattern),
            _ => Vec::new(),
        };
        if Permission::Edit != *subject.permission {
            rows.retain(|row| *row == HIDDEN_ROW);
        }
        rows
    }

    /// Reports whether the rules that decide about a path include one that names its control files.
    ///
    /// A later rule that allows the path as well does not change the result.
    fn names(&self, rules: &[Rule], subject: Subject<'_>, rows: &[usize]) -> bool {
        let about = rules.iter().rev().filter(|rule| matches(&rule.permission, subject.permission));
        let about = about.filter(|rule| matches(&rule.pattern, subject.pattern));
        let mut allowing = about.take_while(|rule| rule.action == Action::Allow);
        allowing.any(|rule| {
            let named = self.rows(&rule.pattern);
            rows.iter().all(|row| named.contains(row))
        })
    }

    /// Returns the rows of the tables that match a path, and of those that are not in a table.
    fn rows(&self, pattern: &str) -> Vec<usize> {
        let path = normalize(&self.worktree.join(pattern));
        let below =
            if self.project.parent().is_none() { None } else { path.strip_prefix(&self.project).ok() };
        let names: Vec<String> = below.unwrap_or(&path).components().filter_map(name).collect();
        let mut rows: Vec<usize> = TABLE
            .iter()
            .enumerate()
            .filter(|(_, row)| names.windows(row.names.len()).any(|names| is_row(row.names, names)))
            .map(|(number, _)| number)
            .collect();
        if self.own.iter().any(|own| path.starts_with(own) && !self.is_worktree_of(own, &path)) {
            rows.push(OWN_ROW);
        }
        if self.decisive.iter().any(|decisive| path.starts_with(decisive)) {
            rows.push(DECISIVE_ROW);
        }
        if self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            rows.push(HIDDEN_ROW);
        }
        if self.project.parent().is_none()
            && table::SYSTEM_DIRECTORIES.iter().any(|row| path.starts_with(row))
        {
            rows.push(SYSTEM_ROW);
        }
        // A rule that names a row of the first table has the name that counts.
        if rows.first().is_none_or(|row| *row >= OWN_ROW) {
            rows.extend(self.home_rows(&path));
        }
        rows
    }

    /// Returns the rows of the home directory that match a path. In a project that is inside a path of a row, such as one with
    /// the settings of an editor, only the other table counts.
    fn home_rows(&self, path: &Path) -> Vec<usize> {
        let own = self.home.iter().filter_map(|base| {
            Some((base.part, base.directory.as_path(), path.strip_prefix(&base.directory).ok()?))
        });
        let other = other_home(path).filter(|home| self.project != *home);
        let other = other.and_then(|home| Some(("", home, path.strip_prefix(home).ok()?)));
        let mut rows = Vec::new();
        for (part, directory, rest) in own.chain(other) {
            let names: Vec<String> =
                Path::new(part).components().chain(rest.components()).filter_map(name).collect();
            let replaced = Path::new(part).components().count();
            let is_matched = |row: &str| {
                let length = row.split('/').count();
                if length <= replaced || names.len() < length || !is_path(row, &names) {
                    return false;
                }
                let entry: PathBuf =
                    directory.components().chain(rest.components().take(length - replaced)).collect();
                !(self.project.starts_with(&entry) && path.starts_with(&self.project))
            };
            let found = home::HOME.iter().enumerate().filter(|(_, row)| row.paths().any(is_matched));
            rows.extend(found.map(|(number, _)| HOME_ROWS + number));
        }
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Reports whether a path is inside the session's own worktree, which this program created in its directory.
    fn is_worktree_of(&self, own: &Path, path: &Path) -> bool {
        let folder = own.join(WORKTREES);
        // A worktree is at `<project>/<name>`.
        let depth = self.project.strip_prefix(folder).map(|inner| inner.components().count());
        depth == Ok(2) && path.starts_with(&self.project)
    }
}

fn is_row(row: &[&str], names: &[String]) -> bool {
    row.iter().zip(names).all(|(wanted, name)| is_name(wanted, name))
}

fn is_name(wanted: &str, name: &str) -> bool {
    match wanted.split_once('*') {
        Some((head, tail)) => {
            name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
        }
        None => wanted == name,
    }
}

/// Whether names begin with a path of the home directory's table.
fn is_path(row: &str, names: &[String]) -> bool {
    row.split('/').zip(names).all(|(wanted, name)| is_name(&folded_name(wanted), name))
}

/// Returns the home directory that a path is in, if it is where home directories usually are.
fn other_home(path: &Path) -> Option<&Path> {
    let is_home = |above: &&Path| {
        *above == Path::new(ROOT_HOME)
            || above.parent().is_some_and(|homes| HOMES.iter().any(|name| homes == Path::new(name)))
    };
    path.ancestors().find(is_home)
}

/// Returns the name of a component in the form in which lenient file systems compare it: without case, invisible
/// characters, and dots and spaces at its end.
fn name(component: Component<'_>) -> Option<String> {
    let Component::Normal(name) = component else { return None };
    Some(folded_name(&name.to_string_lossy().replace(UNKNOWN, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots() -> Roots {
        Roots {
            worktree: "/work/app".into(),
            project: "/work/app".into(),
            own: ["/home/ann/.local/share/codewright".into()].into(),
            ..Roots::default()
        }
    }

    fn rules(text: &str) -> Vec<Rule> {
        text.split("; ")
            .map(|rule| {
                let (pattern, action) = rule.rsplit_once(' ').unwrap();
                let action = match action {
                    "allow" => Action::Allow,
                    "ask" => Action::Ask,
                    _ => Action::Deny,
                };
                Rule::new("edit", pattern, action)
            })
            .collect()
    }

    #[track_caller]
    fn check(written: &str, pattern: &str, expected: Action) {
        let rules = rules(written);
        let found = roots().decide(Action::Allow, Subject::new("edit", pattern), [&rules[..]]);
        assert_eq!(found, expected, "{pattern} under {written}");
    }

    #[test]
    fn a_worktree_in_the_directory_of_this_program_is_an_ordinary_project() {
        let own: Arc<[PathBuf]> = ["/data".into()].into();
        let roots = |project: &str| Roots {
            worktree: project.into(),
            project: project.into(),
            own: own.clone(),
            ..Roots::default()
        };
        let is_ordinary = |project: &str, path: &str| roots(project).rows(path).is_empty();
        let worktree = "/data/worktree/p/one";
        assert!(is_ordinary(worktree, "src/lib.rs"));
        for path in ["/data/worktree/p/two/src/lib.rs", "../../../auth.json", ".git"] {
            assert!(!is_ordinary(worktree, path), "{path}");
        }
        for project in
            ["/data", "/data/worktree", "/data/worktree/p", "/data/worktree/p/one/sub", "/", "/work"]
        {
            assert!(!is_ordinary(project, "/data/worktree/p/one/sub/x"), "{project}");
        }
    }

    #[test]
    fn a_general_rule_does_not_allow_a_control_file() {
        for pattern in [
            "opencode.json",
            "opencode.jsonc",
            "sub/codewright.json",
            ".OpenCode/command/x.md",
            ".opencode",
            ".claude/settings.json",
            ".git/hooks/pre-commit",
            ".git",
            ".GIT/config",
            ".g\u{200c}it/config",
            "GIT~1/config",
            ".git./config",
            ".git /hooks/x",
            "vendor/lib/.git/config",
            "a/../.opencode/x",
            ".\u{17f}\u{17f}h/config",
            ".bashrc",
            "../../home/ann/.bash_aliases",
            "../../home/ann/.SSH/authorized_keys",
            "../../home/ann/.config/fish/config.fish",
            "../../home/ann/.local/share/codewright/auth.json",
            ".vscode/tasks.json",
            "x.code-workspace",
            ".cargo/config.toml",
            ".envrc",
            ".husky/pre-commit",
            ".git/\0",
        ] {
            check("* allow", pattern, Action::Ask);
            check("** allow", pattern, Action::Ask);
            check("*.json* allow; .* allow; * allow", pattern, Action::Ask);
            assert!(roots().reason(Subject::new("edit", pattern)).is_some(), "{pattern}");
            assert!(roots().reason(Subject::new("read", pattern)).is_none(), "{pattern}");
        }
    }

    #[test]
    fn the_rules_decide_about_ordinary_files() {
        for pattern in [
            "src/main.rs",
            ".github/workflows/ci.yml",
            ".gitignore",
            "AGENTS.md",
            "docs/opencode.md",
            "git/config",
            ".vscode/extensions.json",
            ".cargo/audit.toml",
            "package.json",
            "...",
            "\0",
            "src/\0",
        ] {
            check("* allow", pattern, Action::Allow);
            assert_eq!(roots().reason(Subject::new("edit", pattern)), None, "{pattern}");
        }
    }

    #[test]
    fn a_rule_that_names_the_file_allows_it() {
        check(".opencode/** allow", ".opencode/command/x.md", Action::Allow);
        check("* allow; .opencode/plans/*.md allow", ".opencode/plans/a.md", Action::Allow);
        check(".opencode/plans/*.md allow; * allow", ".opencode/plans/a.md", Action::Allow);
        check("opencode.json* allow", "opencode.json", Action::Allow);
        check("*/.git/hooks/* allow", "sub/.git/hooks/x", Action::Allow);
        // The rule names the file but does not allow it.
        check(".opencode/** allow; * ask; * allow", ".opencode/x", Action::Ask);
        // The rule names another file.
        check(".opencode/** allow", ".opencode/node_modules/p/.git/hooks/x", Action::Ask);
        check(".open* allow; *opencode.json allow", "opencode.json", Action::Ask);
        let own = "../../home/ann/.local/share/codewright/plans/*.md";
        check(&format!("{own} allow"), "../../home/ann/.local/share/codewright/plans/a.md", Action::Allow);
    }

    #[test]
    fn a_decisive_file_needs_a_rule_that_names_it() {
        let roots = Roots { decisive: vec!["/work/app/tools/watch.sh".into()], ..roots() };
        let decide = |written: &str, pattern: &str| {
            let rules = rules(written);
            roots.decide(Action::Allow, Subject::new("edit", pattern), [&rules[..]])
        };
        for written in ["* allow", "tools/* allow", "*.sh allow"] {
            assert_eq!(decide(written, "tools/watch.sh"), Action::Ask, "{written}");
        }
        assert_eq!(decide("tools/watch.sh allow", "tools/watch.sh"), Action::Allow);
        assert_eq!(decide("* allow", "tools/other.sh"), Action::Allow);
        assert_eq!(roots.reason(Subject::new("edit", "tools/watch.sh")), Some(DECISIVE));
        assert_eq!(roots.reason(Subject::new("read", "tools/watch.sh")), None);
    }

    #[test]
    fn what_is_hidden_needs_a_rule_that_names_it() {
        let roots = Roots { hidden: vec!["/work/app/keys/own".into()], ..roots() };
        for permission in ["read", "edit"] {
            let decide = |pattern: &str, path: &str| {
                let rules = [Rule::new(permission, pattern, Action::Allow)];
                roots.decide(Action::Allow, Subject::new(permission, path), [&rules[..]])
            };
            assert_eq!(decide("*", "keys/own"), Action::Ask, "{permission}");
            assert_eq!(decide("keys/*", "keys/own"), Action::Ask, "{permission}");
            assert_eq!(decide("keys/own", "keys/own"), Action::Allow, "{permission}");
            assert_eq!(decide("*", "keys/other"), Action::Allow, "{permission}");
        }
    }

    #[test]
    fn every_layer_has_to_name_the_file() {
        let (named, general) = (rules(".opencode/** allow"), rules("* allow"));
        let subject = Subject::new("edit", ".opencode/x");
        assert_eq!(roots().decide(Action::Allow, subject, [&named[..], &named]), Action::Allow);
        assert_eq!(roots().decide(Action::Allow, subject, [&named[..], &general]), Action::Ask);
        assert_eq!(roots().decide(Action::Deny, subject, [&named[..]]), Action::Deny);
    }

    #[test]
    fn every_row_needs_permission_at_any_depth_and_is_refused_to_commands() {
        let rows = guarded(Path::new("/work/app"));
        for row in TABLE {
            let names: Vec<String> = row.names.iter().map(|name| name.replace('*', "x")).collect();
            let path = names.join("/");
            for pattern in [path.clone(), format!("deep/er/{path}"), format!("{path}/inside")] {
                check("* allow", &pattern, Action::Ask);
            }
            let directory = Path::new("/work/app").join(&path);
            let name = &names[names.len() - 1];
            let is_named = |one: &&Guarded| one.directory == directory.parent().unwrap();
            let mut patterns = rows.iter().filter(is_named).flat_map(|one| &one.patterns);
            assert!(patterns.any(|pattern| matches_name(pattern, name)), "{path}");
        }
    }

    #[test]
    fn every_row_of_the_home_needs_permission_there_and_nowhere_else() {
        let home =
            ["", ".config"].map(|part| HomeBase { part, directory: Path::new("/home/ann").join(part) });
        let elsewhere = HomeBase { part: ".config", directory: "/settings".into() };
        let roots = |project: &str| Roots {
            worktree: "/".into(),
            project: project.into(),
            home: home.iter().cloned().chain([elsewhere.clone()]).collect(),
            ..Roots::default()
        };
        let asks = |project: &str, path: &str| {
            let rules = rules("* allow");
            let subject = Subject::new("edit", path.trim_start_matches('/'));
            let roots = roots(project);
            assert_eq!(roots.reason(subject).is_some(), !roots.rows(subject.pattern).is_empty(), "{path}");
            roots.decide(Action::Allow, subject, [&rules[..]]) == Action::Ask
        };
        for path in home_paths().map(|path| path.replace('*', "x")) {
            for project in ["/", "/home", "/home/ann", "/home/ann/work/app"] {
                assert!(asks(project, &format!("/home/ann/{path}")), "{path} in {project}");
                assert!(asks(project, &format!("/home/ann/{}/inside", path.to_uppercase())), "{path}");
            }
            assert!(asks("/work", &format!("/root/{path}")) && asks("/home", &format!("/home/bob/{path}")));
            if let Some(rest) = path.strip_prefix(".config/") {
                assert!(asks("/home/ann", &format!("/settings/{rest}")), "{path}");
            }
            let is_everywhere = is_control(Path::new(&path));
            assert_eq!(asks("/work/app", &format!("/work/app/{path}")), is_everywhere, "{path}");
            assert_eq!(asks("/home/ann", &format!("/home/ann/work/{path}")), is_everywhere, "{path}");
            let project = format!("/home/ann/{path}");
            assert!(!asks(&project, &format!("{project}/src/lib.rs")), "{path} is the project");
        }
        for path in
            ["notes.md", "work/app/bin/x", ".config/app/settings.json", ".local/share/app/x", "src/R/x"]
        {
            assert!(!asks("/home/ann", &format!("/home/ann/{path}")), "{path}");
        }
        assert!(!asks("/home/ann/bin", "/home/ann/bin/tool") && asks("/home/ann/bin/a", "/home/ann/bin/b"));
    }

    #[test]
    fn the_system_counts_in_the_root_directory_alone() {
        let asks = |project: &str, path: &str| {
            let roots = Roots { worktree: "/".into(), project: project.into(), ..Roots::default() };
            roots.reason(Subject::new("edit", path)).is_some()
        };
        for path in ["etc/ld.so.preload", "usr/bin/git", "lib/x.so", "var/spool/cron/x"] {
            assert!(asks("/", path), "{path}");
        }
        assert!(!asks("/", "srv/app/x") && !asks("/", "app/etc/x") && !asks("/usr/src/app", "usr/src/app/x"));
    }

    #[test]
    fn the_path_above_the_project_does_not_count() {
        let inside =
            Roots { worktree: "/".into(), project: "/home/ann/.config/nvim".into(), ..Roots::default() };
        assert!(inside.rows("home/ann/.config/nvim/init.lua").is_empty());
        assert!(!inside.rows("home/ann/.config/nvim/.git/config").is_empty());
        assert!(!inside.rows("home/ann/.config/fish/config.fish").is_empty());
    }
}
