//! Permission rules that name a symlink.
//!
//! Calls are judged by real paths, and a person names a directory as he knows it: `~/notes` may be a symlink to another
//! disk, and `/tmp` is one on macOS. Each rule whose pattern begins with such a path gets a twin with the real path. So does a
//! rule about files that names a symlink of the worktree, unless it allows.
//!
//! A symlink that a command of the model or another user could have made never widens a rule that allows: those in the
//! project and those in directories that others can write are not followed.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use codewright_proto::{Action, Rule};

/// The number of symlinks that one rule leads through.
const MAX_LINKS: usize = 8;
/// The permission bits that let others than the owner write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The permissions whose patterns are paths in the worktree.
const FILES: [&str; 4] = ["*", "edit", "list", "read"];

/// Adds the twins. `project` are directories whose symlinks do not count for rules that allow, and `worktree` is the root
/// of a repository.
pub(crate) fn add_real_paths(rules: &mut Vec<Rule>, project: &[&Path], worktree: Option<&Path>) {
    let written = std::mem::take(rules);
    for rule in written {
        let twin = if rule.pattern.starts_with('/') {
            real_pattern(&rule, project)
        } else {
            worktree.and_then(|worktree| pattern_in_worktree(&rule, worktree))
        };
        let twin = twin.map(|pattern| Rule { pattern, ..rule.clone() });
        rules.push(rule);
        rules.extend(twin);
    }
}

/// The pattern of a rule about files of the worktree with the real path of its first names.
fn pattern_in_worktree(rule: &Rule, worktree: &Path) -> Option<String> {
    if rule.action == Action::Allow || !FILES.contains(&rule.permission.as_str()) {
        return None;
    }
    let absolute = Rule { pattern: worktree.join(&rule.pattern).to_str()?.to_owned(), ..rule.clone() };
    let real = real_pattern(&absolute, &[])?;
    Some(relative(worktree, Path::new(&real)).to_str()?.to_owned())
}

/// A path relative to a directory, with `..` if it is outside.
fn relative(base: &Path, path: &Path) -> PathBuf {
    let shared = base.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    let up = base.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(path.components().skip(shared)).collect()
}

/// The pattern with the real path of its first names, if that is another one.
fn real_pattern(rule: &Rule, project: &[&Path]) -> Option<String> {
    let literal = rule.pattern.split(['*', '?']).next().filter(|literal| literal.starts_with('/'))?;
    // A wildcard may begin in the middle of a name.
    let literal = if literal.len() < rule.pattern.len() { literal.rsplit_once('/')?.0 } else { literal };
    let rest = &rule.pattern[literal.len()..];
    let real = follow(Path::new(literal), |link| rule.action != Action::Allow || is_trusted(link, project))?;
    let real = real.to_str()?;
    (real != literal.trim_end_matches('/')).then(|| format!("{}{rest}", real.trim_end_matches('/')))
}

/// Follows the symlinks in a path as far as it exists. `None` if one may not be followed, or if there are too many.
fn follow(path: &Path, may_follow: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..=MAX_LINKS {
        let Some((link, rest)) = first_link(&path) else { return Some(path) };
        if !may_follow(&link) {
            return None;
        }
        let target = std::fs::read_link(&link).ok()?;
        path = without_dots(&link.parent()?.join(target).join(rest));
    }
    None
}

/// The first symlink in an absolute path, and what follows it.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut names = path.components();
    let mut at = PathBuf::new();
    while let Some(name) = names.next() {
        at.push(name);
        if at.is_symlink() {
            return Some((at, names.as_path().to_owned()));
        }
    }
    None
}

/// The path without `.` and `..`. Nothing before a `..` is a symlink, because the first one is always followed first.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for name in path.components() {
        match name {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            name => plain.push(name),
        }
    }
    plain
}

/// Whether only the user or root can have made a symlink.
fn is_trusted(link: &Path, project: &[&Path]) -> bool {
    let Some(directory) = link.parent() else { return false };
    if project.iter().any(|project| directory.starts_with(project)) {
        return false;
    }
    let Ok(found) = directory.metadata() else { return false };
    found.mode() & WRITABLE_BY_OTHERS == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_rule_that_names_a_symlink_also_names_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let path = |name: &str| home.join(name).to_str().unwrap().to_owned();
        for name in ["disk/deep", "work/project", "open"] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        symlink(path("disk"), path("notes")).unwrap();
        symlink("notes/../disk/deep", path("twice")).unwrap();
        symlink(path("loop"), path("loop")).unwrap();
        symlink(path("disk"), path("work/project/out")).unwrap();
        symlink(path("disk"), path("open/out")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path("open"), mode).unwrap();
        let check = |pattern: &str, action, expected: Option<&str>| {
            let mut rules = vec![Rule::new("external_directory", &path(pattern), action)];
            add_real_paths(&mut rules, &[Path::new(&path("work/project"))], None);
            assert_eq!(rules.get(1).map(|rule| rule.pattern.clone()), expected.map(path), "{pattern}");
        };
        check("notes/**", Action::Allow, Some("disk/**"));
        check("notes", Action::Deny, Some("disk"));
        check("notes/a*", Action::Allow, Some("disk/a*"));
        check("notes/missing/x", Action::Allow, Some("disk/missing/x"));
        check("twice/*", Action::Allow, Some("disk/deep/*"));
        check("note*", Action::Allow, None);
        check("disk/**", Action::Allow, None);
        check("loop/*", Action::Allow, None);
        for directory in ["work/project/out/**", "open/out/**"] {
            check(directory, Action::Allow, None);
            check(directory, Action::Deny, Some("disk/**"));
            check(directory, Action::Ask, Some("disk/**"));
        }
    }

    #[test]
    fn a_rule_that_names_a_symlink_of_the_worktree_also_names_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let worktree = root.join("project");
        std::fs::create_dir_all(worktree.join("real/deep")).unwrap();
        std::fs::create_dir_all(root.join("outside")).unwrap();
        symlink("real", worktree.join("via")).unwrap();
        symlink(root.join("outside"), worktree.join("out")).unwrap();
        for (permission, pattern, action, expected) in [
            ("read", "via/*", Action::Deny, Some("real/*")),
            ("edit", "via/deep/x", Action::Ask, Some("real/deep/x")),
            ("*", "via", Action::Deny, Some("real")),
            ("read", "out/**", Action::Deny, Some("../outside/**")),
            ("read", "via/*", Action::Allow, None),
            ("read", "real/*", Action::Deny, None),
            ("read", "*.env", Action::Deny, None),
            ("bash", "via/*", Action::Deny, None),
        ] {
            let mut rules = vec![Rule::new(permission, pattern, action)];
            add_real_paths(&mut rules, &[&worktree], Some(&worktree));
            assert_eq!(rules.get(1).map(|rule| rule.pattern.as_str()), expected, "{permission} {pattern}");
        }
    }
}
