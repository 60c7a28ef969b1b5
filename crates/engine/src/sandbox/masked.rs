//! The files that rules deny to `read`, which commands of the sandbox must not see either.
//!
//! A program that walks directories itself, such as `grep -r`, names no file in its command line. So the files are searched
//! before the command starts, and an empty file without permissions takes the place of each one. The search is bounded. A
//! command whose files cannot be found within the bounds does not run.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use codewright_permission::{Permission, is_secret};
use codewright_proto::{Action, Rule};
use codewright_workspace::{normalize, relative, spellings};

use crate::inner::Inner;
use crate::instance::Instance;
use crate::permission::evaluate::{Naming, Subject, deciding, matches, naming};
use crate::permission::rules::PermissionRules;

/// The permission key of reads.
const READ: &str = "read";
/// The pattern of a rule about everything.
const EVERYTHING: &str = "*";
/// The largest number of entries that are compared with the rules.
const MAX_ENTRIES: usize = 1_000_000;
/// The longest search.
const MAX_TIME: Duration = Duration::from_secs(10);
/// The largest number of files that are masked, each of which is a mount.
const MAX_MASKED: usize = 2000;
/// The number of entries between two looks at the clock.
const CLOCK_EVERY: usize = 1024;
/// The content of a repository, whose names say nothing.
const OBJECTS: &str = ".git/objects";

/// Returns the files that the rules of a command deny to `read`, below the worktree and the directories that patterns name.
/// Without such a rule this costs a few comparisons.
///
/// # Errors
///
/// Fails with a text for the model if the files cannot be found within the bounds. The command must then not run.
pub(crate) async fn masked(
    rules: &PermissionRules,
    inner: &Inner,
    instance: &Instance,
) -> Result<Vec<PathBuf>, String> {
    let denials = Denials::of(rules, &inner.dirs.home);
    if denials.0.is_empty() {
        return Ok(Vec::new());
    }
    let (worktree, directory) = (instance.worktree.root.clone(), instance.directory.clone());
    let hidden = instance.sandbox.hide.clone();
    let search = move || {
        let root = if worktree.parent().is_none() { directory } else { worktree.clone() };
        let mut search = Search::new(&denials, &worktree, &hidden);
        denials.starts(&root, &worktree).iter().try_for_each(|start| search.walk(start))?;
        Ok(search.found)
    };
    tokio::task::spawn_blocking(search).await.map_err(|error| error.to_string())?
}

/// Whether a file that this program reads by itself, because a repository names it, must not reach the model: a rule denies
/// it to `read`, or it is a file of secrets and no rule allows it.
pub(crate) fn is_kept_from_model(
    inner: &Inner,
    instance: &Instance,
    rules: &PermissionRules,
    path: &Path,
) -> bool {
    let title = relative(&instance.worktree.root, path);
    let is_denied =
        || Denials::of(rules, &inner.dirs.home).deny([&title, &path.as_os_str().to_string_lossy()]);
    let subject = Subject { permission: &Permission::Read, pattern: &title };
    is_secret(subject) && rules.decide(&Permission::Read, &title) != Action::Allow || is_denied()
}

/// Whether rules deny files to `read`, or the configuration hides some.
pub(crate) fn keeps_any(inner: &Inner, instance: &Instance, rules: &PermissionRules) -> bool {
    !Denials::of(rules, &inner.dirs.home).0.is_empty() || !instance.sandbox.hide.is_empty()
}

/// The rules about `read` of each layer that denies files, the last rule first.
struct Denials(Vec<Vec<Rule>>);

impl Denials {
    fn of(rules: &PermissionRules, home: &Path) -> Self {
        let home = home.to_string_lossy();
        let layers = rules.layers_with_repositories().filter_map(|rules| {
            let about = rules.iter().rev().filter(|rule| matches(&rule.permission, READ));
            // The rules before one about everything have no effect.
            let mut is_done = false;
            let about = about.take_while(|rule| !std::mem::replace(&mut is_done, rule.pattern == EVERYTHING));
            let about: Vec<Rule> = about
                .map(|rule| match rule.pattern.strip_prefix("~/") {
                    Some(below) => Rule { pattern: format!("{home}/{below}"), ..rule.clone() },
                    None => rule.clone(),
                })
                .collect();
            // Such a rule alone switches the tool off.
            let is_off = about.first().is_some_and(|rule| rule.pattern == EVERYTHING);
            (!is_off && about.iter().any(|rule| rule.action == Action::Deny)).then_some(about)
        });
        Self(layers.collect())
    }

    /// Whether a layer denies one of the names of a file.
    fn deny(&self, names: [&str; 2]) -> bool {
        self.0.iter().any(|layer| {
            // A rule can name a file in either way, and the last one that does decides.
            let names_it = |rule: &Rule| {
                let namings = names.map(|name| naming(rule, READ, name));
                let has = |naming| namings.contains(&naming);
                [Naming::Same, Naming::Alike].into_iter().find(|one| has(*one)).unwrap_or(Naming::Other)
            };
            deciding(layer.iter(), names_it).is_some_and(|rule| rule.action == Action::Deny)
        })
    }

    /// Whether a pattern that names a directory can match below a path. Patterns that begin with a wildcard match by the
    /// real paths of files as well.
    fn can_deny_below(&self, worktree: &Path, path: &Path) -> bool {
        let names = [relative(worktree, path), path.to_string_lossy().into_owned()].map(|name| name + "/");
        self.0.iter().flatten().filter(|rule| rule.action == Action::Deny).any(|rule| {
            let literal = rule.pattern.split(['*', '?']).next().unwrap_or_default();
            // The other name of the path is compared with patterns of the other kind.
            let name = &names[usize::from(literal.starts_with('/'))];
            !literal.is_empty() && (literal.starts_with(name.as_str()) || name.starts_with(literal))
        })
    }

    /// The directories that the patterns of rules that deny can match in. `root` is searched as a whole if a pattern begins
    /// with a wildcard, and directories that contain it are not searched.
    fn starts(&self, root: &Path, worktree: &Path) -> Vec<PathBuf> {
        let denied = self.0.iter().flatten().filter(|rule| rule.action == Action::Deny);
        let mut starts: Vec<PathBuf> = denied
            .flat_map(|rule| {
                let literal = rule.pattern.split(['*', '?']).next().unwrap_or_default();
                let named = literal.rsplit_once('/').map_or("", |(directory, _)| directory);
                let base = if literal.starts_with('/') { Path::new("/") } else { worktree };
                if named.is_empty() {
                    return vec![root.to_owned()];
                }
                let start = normalize(&base.join(named));
                let below = start.strip_prefix(base).unwrap_or(&start);
                let all = std::iter::once(start.clone()).chain(spellings(base, below));
                all.map(|start| if root.starts_with(&start) { root.to_owned() } else { start }).collect()
            })
            .collect();
        starts.sort();
        starts.dedup();
        let all = starts.clone();
        starts.retain(|start| !all.iter().any(|other| start != other && start.starts_with(other)));
        starts
    }
}

/// A search for denied files.
struct Search<'a> {
    denials: &'a Denials,
    worktree: &'a Path,
    /// Directories that are hidden as a whole.
    hidden: &'a [PathBuf],
    found: Vec<PathBuf>,
    /// The real paths of directories that were searched through a symlink, each of them once.
    linked: HashSet<PathBuf>,
    seen: usize,
    deadline: Instant,
}

/// A directory to search.
struct Left {
    path: PathBuf,
    /// The real path, if a symlink that the search found leads here.
    real: Option<PathBuf>,
}

impl<'a> Search<'a> {
    fn new(denials: &'a Denials, worktree: &'a Path, hidden: &'a [PathBuf]) -> Self {
        let deadline = Instant::now() + MAX_TIME;
        Self { denials, worktree, hidden, found: Vec::new(), linked: HashSet::new(), seen: 0, deadline }
    }

    fn walk(&mut self, start: &Path) -> Result<(), String> {
        // The shortest path through symlinks comes first.
        let mut left = VecDeque::from([Left { path: start.to_owned(), real: None }]);
        while let Some(Left { path: directory, real }) = left.pop_front() {
            let is_hidden = |path: &PathBuf| self.hidden.contains(path) || path.ends_with(OBJECTS);
            if is_hidden(&directory) || real.as_ref().is_some_and(is_hidden) {
                continue;
            }
            let entries = match std::fs::read_dir(&directory) {
                Ok(entries) => entries,
                // A command can give itself the permissions for a directory of the user.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    self.mask(directory)?;
                    continue;
                }
                Err(_) => continue,
            };
            for entry in entries.flatten() {
                self.count()?;
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => {
                        let real = real.as_ref().map(|real| real.join(entry.file_name()));
                        if real.as_ref().is_none_or(|real| self.linked.insert(real.clone())) {
                            left.push_back(Left { path, real });
                        }
                    }
                    Ok(_) | Err(_) if self.is_denied(&path) => self.mask(path)?,
                    Ok(kind) if kind.is_symlink() => left.extend(self.behind(path)),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The directory that a symlink leads to, if a rule can name files in it by the path of the symlink.
    fn behind(&mut self, path: PathBuf) -> Option<Left> {
        if !self.denials.can_deny_below(self.worktree, &path) {
            return None;
        }
        let real = path.canonicalize().ok().filter(|real| real.is_dir())?;
        self.linked.insert(real.clone()).then_some(Left { path, real: Some(real) })
    }

    fn is_denied(&self, path: &Path) -> bool {
        let title = relative(self.worktree, path);
        self.denials.deny([&title, &path.as_os_str().to_string_lossy()])
    }

    fn mask(&mut self, path: PathBuf) -> Result<(), String> {
        if self.found.len() >= MAX_MASKED {
            return Err(refusal(&format!("more than {MAX_MASKED} files are denied")));
        }
        self.found.push(path);
        Ok(())
    }

    fn count(&mut self) -> Result<(), String> {
        self.seen += 1;
        if self.seen > MAX_ENTRIES {
            return Err(refusal(&format!("there are more than {MAX_ENTRIES} files")));
        }
        if self.seen.is_multiple_of(CLOCK_EVERY) && Instant::now() > self.deadline {
            return Err(refusal(&format!("the search took longer than {} s", MAX_TIME.as_secs())));
        }
        Ok(())
    }
}

/// The reason why a command does not run, and what to do.
fn refusal(reason: &str) -> String {
    format!(
        "The command was not run. Rules deny reading some files, and these cannot be hidden from a command: {reason}. \
         Begin the patterns of these rules with a directory (`secrets/*`), or hide a directory as a whole with \
         `sandbox.hide`."
    )
}

/// The name of the file that takes the place of masked ones.
pub(super) fn blank() -> &'static OsStr {
    OsStr::new("blank~file")
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::*;

    fn rules(text: &[&str]) -> PermissionRules {
        let rule = |text: &&str| {
            let words: Vec<&str> = text.split(' ').collect();
            let action = match words[2] {
                "allow" => Action::Allow,
                "ask" => Action::Ask,
                _ => Action::Deny,
            };
            Rule::new(words[0], words[1], action)
        };
        PermissionRules::of(text.iter().map(rule).collect())
    }

    #[test]
    fn files_are_found_at_any_depth_by_every_form_of_pattern() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let root = home.join("work");
        for name in ["a/.env", ".env", "a/b/key.pem", "secrets/deep/x", "a/open", "a/.env.example"] {
            create_dir_all(root.join(name).parent().unwrap()).unwrap();
            write(root.join(name), "").unwrap();
        }
        create_dir_all(home.join("private")).unwrap();
        write(home.join("private/note"), "").unwrap();
        // Links that lead out and in circles.
        create_dir_all(home.join("private/in")).unwrap();
        create_dir_all(home.join("disk")).unwrap();
        create_dir_all(root.join("to")).unwrap();
        write(home.join("private/in/note"), "").unwrap();
        for (target, link) in [
            ("../private", "disk/via"),
            ("../disk", "disk/here"),
            ("..", "private/up"),
            ("../../private", "work/to/private"),
        ] {
            std::os::unix::fs::symlink(target, home.join(link)).unwrap();
        }
        std::os::unix::fs::symlink("open", root.join("a/link.pem")).unwrap();
        let absolute = format!("read {}/a/* deny", root.display());
        for (text, expected) in [
            (&["* * allow"][..], &[][..]),
            (&["* * allow", "read *.env ask"], &[]),
            (&["* * allow", "read *.env deny"], &[".env", "a/.env"]),
            (&["read *.env deny", "* * allow"], &[]),
            (&["* * allow", "read *.env* deny", "read *.env.example allow"], &[".env", "a/.env"]),
            (&["* * allow", "read secrets/** deny"], &["secrets/deep/x"]),
            (&["* * allow", "read **/*.pem deny"], &["a/b/key.pem", "a/link.pem"]),
            (
                &["* * allow", "read ~/private/* deny"],
                &["../private/in/note", "../private/note", "../private/up"],
            ),
            (
                &["* * allow", "read ../private/* deny"],
                &["../private/in/note", "../private/note", "../private/up"],
            ),
            (&["* * allow", &absolute], &["a/.env", "a/.env.example", "a/b/key.pem", "a/link.pem", "a/open"]),
            (&["* * allow", "read ~/disk/*/note deny"], &["../private/in/note", "../private/note"]),
            (&["* * allow", "read ~/disk/v*/note deny"], &["../private/in/note", "../private/note"]),
            (&["* * allow", "read to/*/note deny"], &["../private/in/note", "../private/note"]),
            (&["* * allow", "read *note deny"], &[]),
            (&["read * deny"], &[]),
            (&["* * deny", "read * allow"], &[]),
            (&["* * deny", "read a/* allow"], &[".env", "secrets/deep/x", "to/private"]),
        ] {
            let denials = Denials::of(&rules(text), &home);
            let mut search = Search::new(&denials, &root, &[]);
            denials.starts(&root, &root).iter().try_for_each(|start| search.walk(start)).unwrap();
            // Directories by their real names.
            let place = |path: &PathBuf| {
                let directory = path.parent().unwrap().canonicalize().unwrap();
                relative(&root, &directory.join(path.file_name().unwrap()))
            };
            let mut found: Vec<String> = search.found.iter().map(place).collect();
            found.sort();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn every_layer_counts_and_the_bounds_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let caller = rules(&["* * allow", "read *.env deny"]);
        let child = rules(&["* * allow"]).under([&caller]);
        let denials = Denials::of(&child, &root);
        for number in 0..=MAX_MASKED {
            write(root.join(format!("{number}.env")), "").unwrap();
        }
        let mut search = Search::new(&denials, &root, &[]);
        let refused = search.walk(&root).unwrap_err();
        assert!(refused.contains("more than 2000 files are denied") && refused.contains("sandbox.hide"));
        let hidden = [root.clone()];
        assert!(Search::new(&denials, &root, &hidden).walk(&root).is_ok());
        let mut late = Search { deadline: Instant::now(), ..Search::new(&denials, &root, &[]) };
        late.seen = CLOCK_EVERY - 1;
        assert!(late.count().is_err());
        late.seen = MAX_ENTRIES;
        assert!(late.count().is_err());
    }
}
