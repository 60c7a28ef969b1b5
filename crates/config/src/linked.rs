//! Permission rules that name files in another way than calls do.
//!
//! Calls are judged by real paths, and a person names a directory as he knows it: `~/notes` may be a symlink to another
//! disk, and `/tmp` is one on macOS. Each rule whose pattern begins with such a path gets a twin with the real path. So does a
//! rule about files that names a symlink of the worktree, unless it allows.
//!
//! File tools name a file by its path from the worktree, which is `/` outside of a repository. So a rule about files with an
//! absolute path gets a twin with the path from there, and so does one with a path from a directory outside of a repository.
//!
//! A rule that names a directory and does not allow holds for what is below it too: `secrets`, `secrets/` and `~` cover
//! `secrets/*` and `~/*`. `$TMPDIR` at the beginning of a pattern stands for the directory of temporary files.
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
/// The permission whose patterns are absolute paths.
const OUTSIDE: &str = "external_directory";
/// The spellings of the directory of temporary files.
const TMPDIR: [&str; 2] = ["$TMPDIR", "${TMPDIR}"];

/// The places that the paths of rules begin at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    /// The directory of the session.
    pub(crate) directory: &'a Path,
    /// The root of the repository; `/` without one.
    pub(crate) worktree: &'a Path,
    /// The directory of temporary files.
    pub(crate) tmpdir: &'a str,
}

impl<'a> Places<'a> {
    fn repository(self) -> Option<&'a Path> {
        Some(self.worktree).filter(|worktree| worktree.parent().is_some())
    }
}

/// Adds the twins.
pub(crate) fn add_twins(rules: &mut Vec<Rule>, places: Places<'_>) {
    // Their symlinks do not count for rules that allow.
    let project: Vec<&Path> = std::iter::once(places.directory).chain(places.repository()).collect();
    let written = std::mem::take(rules);
    let written = written.into_iter().flat_map(|rule| with_content(rule, places));
    for rule in written {
        let mut patterns = Vec::new();
        if rule.pattern.starts_with('/') {
            let real = real_pattern(&rule, &project);
            patterns.extend(real);
            if FILES.contains(&rule.permission.as_str()) {
                let all = std::iter::once(&rule.pattern).chain(&patterns);
                let from_worktree: Vec<_> =
                    all.flat_map(|pattern| from_worktree(pattern, rule.action, places.worktree)).collect();
                patterns.extend(from_worktree);
            }
        } else if FILES.contains(&rule.permission.as_str()) {
            match places.repository() {
                Some(worktree) => patterns.extend(pattern_in_worktree(&rule, worktree)),
                None => {
                    patterns.extend(pattern_in_directory(&rule.pattern, places.directory));
                    let real = pattern_in_worktree(&rule, places.directory);
                    let real = real.and_then(|real| pattern_in_directory(&real, places.directory));
                    patterns.extend(real);
                }
            }
        }
        let twins: Vec<_> = patterns.into_iter().map(|pattern| Rule { pattern, ..rule.clone() }).collect();
        for rule in std::iter::once(rule).chain(twins) {
            if rules.last() != Some(&rule) {
                rules.push(rule);
            }
        }
    }
}

/// A rule, and one for what is below the directory that it names.
fn with_content(mut rule: Rule, places: Places<'_>) -> Vec<Rule> {
    let is_about_files = rule.permission == OUTSIDE || FILES.contains(&rule.permission.as_str());
    let below = TMPDIR.into_iter().find_map(|name| rule.pattern.strip_prefix(name));
    if let Some(below) = below.filter(|below| is_about_files && (below.is_empty() || below.starts_with('/')))
    {
        rule.pattern = format!("{}{below}", places.tmpdir.trim_end_matches('/'));
    }
    if !is_about_files || rule.action == Action::Allow {
        return vec![rule];
    }
    let directory = rule.pattern.trim_end_matches('/');
    let name = directory.rsplit('/').next().unwrap_or_default();
    let is_named = directory.len() < rule.pattern.len();
    let base = places.repository().unwrap_or(places.directory);
    // A name with wildcards, such as `*.env`, is one of files.
    let is_directory = || !name.is_empty() && !name.contains(['*', '?']) && base.join(directory).is_dir();
    if !is_named && !is_directory() {
        return vec![rule];
    }
    let itself = is_named.then(|| Rule { pattern: directory.to_owned(), ..rule.clone() });
    let below = Rule { pattern: format!("{directory}/*"), ..rule.clone() };
    std::iter::once(rule).chain(itself.filter(|rule| !rule.pattern.is_empty())).chain([below]).collect()
}

/// The patterns that match the paths from the worktree of the files that an absolute pattern matches.
fn from_worktree(pattern: &str, action: Action, worktree: &Path) -> Vec<String> {
    let mut roots = vec![worktree.to_owned()];
    roots.extend(worktree.canonicalize().ok().filter(|real| real != worktree));
    let mut found = Vec::new();
    for root in roots {
        let Some(base) = root.to_str().map(|root| root.trim_end_matches('/')) else { continue };
        found.extend(rests(pattern, &format!("{base}/")));
        let literal = pattern.split(['*', '?']).next().unwrap_or_default();
        let Some((directory, _)) = literal.rsplit_once('/') else { continue };
        let above = Path::new(if directory.is_empty() { "/" } else { directory });
        // A path from the worktree to a file above it does not say how far it is above, so only a stricter rule can name it.
        let is_exact = !root.starts_with(above);
        if !above.starts_with(&root) && (is_exact || action != Action::Allow) {
            let outside =
                relative(&root, above).to_str().map(|up| format!("{up}{}", &pattern[directory.len()..]));
            found.extend(outside);
        }
    }
    found.dedup();
    found
}

/// The patterns that match a text if `pattern` matches `base` with the text behind it.
fn rests(pattern: &str, base: &str) -> Vec<String> {
    let pattern: Vec<char> = pattern.chars().collect();
    let with_empty_stars = |mut states: Vec<usize>| {
        let mut next = 0;
        while let Some(&state) = states.get(next) {
            if pattern.get(state) == Some(&'*') && !states.contains(&(state + 1)) {
                states.push(state + 1);
            }
            next += 1;
        }
        states
    };
    let mut states = with_empty_stars(vec![0]);
    for char in base.chars() {
        let mut after: Vec<usize> = Vec::new();
        for state in states {
            let next = match pattern.get(state) {
                Some('*') => Some(state),
                Some('?') => Some(state + 1),
                Some(&own) if own == char => Some(state + 1),
                Some(_) | None => None,
            };
            after.extend(next.filter(|next| !after.contains(next)));
        }
        states = with_empty_stars(after);
    }
    // What follows a star is also matched with it.
    let is_covered = |state: usize| state > 0 && pattern[state - 1] == '*' && states.contains(&(state - 1));
    let rests = states.iter().filter(|state| **state < pattern.len() && !is_covered(**state));
    rests.map(|state| pattern[*state..].iter().collect()).collect()
}

/// The pattern of a rule outside of a repository from the root of the file system.
fn pattern_in_directory(pattern: &str, directory: &Path) -> Option<String> {
    // These match at any depth.
    if pattern.starts_with(['*', '?', '~', '$']) {
        return None;
    }
    let path = without_dots(&directory.join(pattern));
    Some(path.to_str()?.trim_start_matches('/').to_owned())
}

/// The pattern of a rule about files of the worktree with the real path of its first names.
fn pattern_in_worktree(rule: &Rule, worktree: &Path) -> Option<String> {
    if rule.action == Action::Allow {
        return None;
    }
    // What matches at any depth also names a symlink at the top.
    let below = ["**/", "*/"].into_iter().find_map(|any| rule.pattern.strip_prefix(any));
    let written = below.unwrap_or(&rule.pattern);
    let absolute = Rule { pattern: worktree.join(written).to_str()?.to_owned(), ..rule.clone() };
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
            let project = path("work/project");
            add_twins(
                &mut rules,
                Places { directory: Path::new(&project), worktree: Path::new("/"), tmpdir: "/tmp" },
            );
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
            add_twins(&mut rules, Places { directory: &worktree, worktree: &worktree, tmpdir: "/tmp" });
            assert_eq!(rules.get(1).map(|rule| rule.pattern.as_str()), expected, "{permission} {pattern}");
        }
    }

    #[test]
    fn a_rule_that_names_a_directory_holds_for_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let project = root.join("project");
        std::fs::create_dir_all(project.join("secrets/deep")).unwrap();
        std::fs::create_dir_all(project.join("x.env")).unwrap();
        std::fs::write(project.join("plain"), "").unwrap();
        symlink("secrets", project.join("link")).unwrap();
        symlink("secrets/key", project.join("file")).unwrap();
        let top = project.strip_prefix("/").unwrap().to_str().unwrap().to_owned();
        let outside = root.to_str().unwrap().to_owned();
        // The patterns that the others are made of: in a repository, and without one.
        for (permission, pattern, action, own, twins) in [
            ("read", "secrets", Action::Deny, vec!["secrets", "secrets/*"], vec!["secrets", "secrets/*"]),
            (
                "read",
                "secrets/",
                Action::Ask,
                vec!["secrets/", "secrets", "secrets/*"],
                vec!["secrets", "secrets/*"],
            ),
            ("read", "new/", Action::Deny, vec!["new/", "new", "new/*"], vec!["new", "new/*"]),
            (
                "*",
                "link",
                Action::Deny,
                vec!["link", "link/*", "secrets", "secrets/*"],
                vec!["secrets", "secrets/*"],
            ),
            ("read", "link/**", Action::Deny, vec!["link/**", "secrets/**"], vec!["link/**", "secrets/**"]),
            ("edit", "file", Action::Deny, vec!["file", "secrets/key"], vec!["file", "secrets/key"]),
            ("read", "**/link/**", Action::Deny, vec!["**/link/**", "secrets/**"], vec!["secrets/**"]),
            ("read", "plain", Action::Deny, vec!["plain"], vec!["plain"]),
            ("read", "*.env", Action::Deny, vec!["*.env"], vec![]),
            ("read", "secrets", Action::Allow, vec!["secrets"], vec!["secrets"]),
            ("read", "link/**", Action::Allow, vec!["link/**"], vec!["link/**"]),
            ("bash", "secrets", Action::Deny, vec!["secrets"], vec![]),
        ] {
            for (worktree, expected) in [(project.as_path(), &own), (Path::new("/"), &twins)] {
                let mut rules = vec![Rule::new(permission, pattern, action)];
                add_twins(&mut rules, Places { directory: &project, worktree, tmpdir: "/tmp" });
                for expected in expected {
                    let is_root = worktree.parent().is_none();
                    let expected = if is_root { format!("{top}/{expected}") } else { (*expected).to_owned() };
                    let has = rules.iter().any(|rule| rule.pattern == expected && rule.action == action);
                    assert!(has, "{permission} {pattern}: {expected} in {rules:?}");
                }
                if action == Action::Allow {
                    assert!(rules.iter().all(|rule| rule.pattern.ends_with(pattern)), "{rules:?}");
                }
                if worktree == project {
                    assert_eq!(rules.len(), own.len(), "{rules:?}");
                }
            }
        }
        let outside_rules = |pattern: &str, action| -> Vec<String> {
            let mut rules = vec![Rule::new("external_directory", pattern, action)];
            add_twins(&mut rules, Places { directory: &project, worktree: &project, tmpdir: &outside });
            rules.into_iter().map(|rule| rule.pattern).collect()
        };
        assert_eq!(outside_rules(&outside, Action::Deny), [outside.clone(), format!("{outside}/*")]);
        assert_eq!(outside_rules("$TMPDIR", Action::Deny), [outside.clone(), format!("{outside}/*")]);
        assert_eq!(outside_rules("$TMPDIR/x/**", Action::Allow), [format!("{outside}/x/**")]);
        assert_eq!(outside_rules("$TMPDIRS/x", Action::Deny), ["$TMPDIRS/x"]);
        assert_eq!(outside_rules(&outside, Action::Allow).len(), 1);
    }

    #[test]
    fn a_rule_about_files_names_them_from_the_worktree_too() {
        let of = |permission: &str, pattern: &str, action, worktree: &str| -> Vec<String> {
            let mut rules = vec![Rule::new(permission, pattern, action)];
            let places = Places {
                directory: Path::new("/no/such/project"),
                worktree: Path::new(worktree),
                tmpdir: "/tmp",
            };
            add_twins(&mut rules, places);
            rules.into_iter().skip(1).map(|rule| rule.pattern).collect()
        };
        let (deny, allow) = (Action::Deny, Action::Allow);
        let project = "/no/such/project";
        for (pattern, action, worktree, expected) in [
            ("/no/such/project/s.txt", deny, project, vec!["s.txt"]),
            ("/no/such/project/src/*", allow, project, vec!["src/*"]),
            ("/no/such/project/*", deny, project, vec!["*"]),
            ("/no/such/disk/*", allow, project, vec!["../disk/*"]),
            ("/no/such/*/secret/*", deny, project, vec!["*/secret/*", "secret/*", "../*/secret/*"]),
            ("/no/such/*", deny, project, vec!["*", "../*"]),
            // Files above the worktree are not allowed by it.
            ("/no/such/*", allow, project, vec!["*"]),
            ("/no/such/project/s.txt", deny, "/", vec!["no/such/project/s.txt"]),
            ("/no/*.key", allow, "/", vec!["no/*.key"]),
            ("s.txt", deny, "/", vec!["no/such/project/s.txt"]),
            ("app/[id]/*", allow, "/", vec!["no/such/project/app/[id]/*"]),
            ("../disk/*", deny, "/", vec!["no/such/disk/*"]),
            ("*.env", deny, "/", vec![]),
            ("s.txt", deny, project, vec![]),
            ("*", deny, project, vec![]),
        ] {
            assert_eq!(of("read", pattern, action, worktree), expected, "{pattern} {worktree}");
            let others = of("bash", pattern, action, worktree);
            assert!(others.is_empty(), "{pattern}: {others:?}");
        }
    }

    proptest::proptest! {
        /// The rests match exactly the texts that the pattern matches behind the base.
        #[test]
        fn rests_match_what_the_pattern_matches(
            pattern in "/[ab*?/]{0,8}",
            base in "/[ab/]{0,4}/",
            text in "[ab/]{1,5}",
        ) {
            let matched = rests(&pattern, &base).iter().any(|rest| is_match(rest, &text));
            proptest::prop_assert_eq!(matched, is_match(&pattern, &format!("{base}{text}")));
        }
    }

    /// A matcher of wildcards that is easy to check.
    fn is_match(pattern: &str, text: &str) -> bool {
        match pattern.chars().next() {
            None => text.is_empty(),
            Some('*') => is_match(&pattern[1..], text) || (!text.is_empty() && is_match(pattern, &text[1..])),
            Some(own) => {
                text.chars().next().is_some_and(|char| own == '?' || own == char)
                    && is_match(&pattern[own.len_utf8()..], &text[1..])
            }
        }
    }
}
