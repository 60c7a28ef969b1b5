//! The rules that exclude files of a tree from watching.
//!
//! They come from the caller, from `.gitignore` and `.ignore` files and from `.git/info/exclude`. Directories of version
//! control and `node_modules` are always excluded.

use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::git::{git_dirs, read_small};

/// The names of ignore files. A rule of the second has precedence over one of the first.
const FILES: [&str; 2] = [".gitignore", ".ignore"];
/// The names of directories that are always excluded.
const EXCLUDED: [&str; 5] = [".git", ".hg", ".svn", ".jj", "node_modules"];
/// The longest ignore file that is read.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// The total length of the ignore files of a tree. Further ones are not read.
const MAX_TOTAL_BYTES: usize = 1024 * 1024;

/// Reports whether an entry contains rules, so that a change there changes the tree.
pub(super) fn is_rules_file(name: &std::ffi::OsStr) -> bool {
    FILES.iter().any(|file| name == *file)
}

/// The rules of the caller for a whole tree.
pub(super) struct Filter(Gitignore);

impl Filter {
    /// Parses patterns with the syntax of `.gitignore`. Invalid ones are ignored.
    pub(super) fn new(root: &Path, patterns: &[String]) -> Self {
        Self(parse(root, patterns.iter().map(String::as_str)))
    }

    /// Reports whether an entry is excluded by the caller or always.
    pub(super) fn excludes(&self, path: &Path, is_directory: bool) -> bool {
        let name = path.file_name().unwrap_or_default();
        EXCLUDED.iter().any(|excluded| name == *excluded)
            || self.0.matched_path_or_any_parents(path, is_directory).is_ignore()
    }
}

/// The rules of the ignore files in a directory, and those of the directories above it.
pub(super) struct Rules {
    /// The rules of each file, the one with precedence last.
    files: Vec<Gitignore>,
    above: Option<Arc<Self>>,
}

impl Rules {
    /// Returns the rules for the root of a tree inside a worktree.
    pub(super) fn of_root(root: &Path, worktree: &Path, budget: &mut usize) -> Arc<Self> {
        let mut above: Vec<&Path> =
            root.ancestors().skip(1).take_while(|it| it.starts_with(worktree)).collect();
        above.reverse();
        let exclude = git_dirs(worktree).map(|dirs| dirs.common.join("info/exclude"));
        let files = exclude.and_then(|file| read(&file, worktree, budget)).into_iter().collect();
        let mut rules = Arc::new(Self { files, above: None });
        for directory in above {
            rules = Self::below(&rules, directory, budget);
        }
        Self::below(&rules, root, budget)
    }

    /// Returns the rules for the entries of a directory. Without ignore files they are those of the directory above.
    pub(super) fn below(above: &Arc<Self>, directory: &Path, budget: &mut usize) -> Arc<Self> {
        let files: Vec<_> =
            FILES.iter().filter_map(|name| read(&directory.join(name), directory, budget)).collect();
        if files.is_empty() {
            return Arc::clone(above);
        }
        Arc::new(Self { files, above: Some(Arc::clone(above)) })
    }

    /// Reports whether an entry of the directory is ignored. The nearest rule that matches decides.
    pub(super) fn ignore(&self, path: &Path, is_directory: bool) -> bool {
        let mut next = Some(self);
        while let Some(rules) = next {
            for file in rules.files.iter().rev() {
                let matched = file.matched(path, is_directory);
                if !matched.is_none() {
                    return matched.is_ignore();
                }
            }
            next = rules.above.as_deref();
        }
        false
    }
}

/// Reports whether git ignores a path of a worktree, or a directory above it. Only the files of git count.
pub(crate) fn is_ignored(worktree: &Path, path: &Path) -> bool {
    let Ok(rest) = path.strip_prefix(worktree) else { return false };
    let mut budget = budget();
    let exclude = git_dirs(worktree).map(|dirs| dirs.common.join("info/exclude"));
    let mut files: Vec<_> = exclude.and_then(|file| read(&file, worktree, &mut budget)).into_iter().collect();
    let mut at = worktree.to_owned();
    for name in rest.components() {
        files.extend(read(&at.join(FILES[0]), &at, &mut budget));
        at.push(name);
        let is_directory = at.is_dir();
        let matched = files.iter().rev().map(|file| file.matched(&at, is_directory));
        if matched.into_iter().find(|matched| !matched.is_none()).is_some_and(|matched| matched.is_ignore()) {
            return true;
        }
    }
    false
}

/// Reads an ignore file. Pipes, devices and files beyond the budget are not read.
fn read(file: &Path, directory: &Path, budget: &mut usize) -> Option<Gitignore> {
    if *budget == 0 {
        return None;
    }
    let bytes = read_small(file, MAX_FILE_BYTES)?;
    *budget = budget.saturating_sub(bytes.len());
    let text = String::from_utf8_lossy(&bytes);
    Some(parse(directory, text.lines()))
}

/// Returns the initial budget for ignore files.
pub(super) fn budget() -> usize {
    MAX_TOTAL_BYTES
}

fn parse<'a>(root: &Path, lines: impl Iterator<Item = &'a str>) -> Gitignore {
    let mut builder = GitignoreBuilder::new(root);
    for line in lines {
        // Git ignores invalid patterns as well.
        drop(builder.add_line(None, line));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rule_decides() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at(".gitignore"), "*.log\n/out/\n").unwrap();
        std::fs::write(at("a/.gitignore"), "!keep.log\n").unwrap();
        std::fs::write(at("a/.ignore"), "private\n").unwrap();
        let mut budget = budget();
        let top = Rules::of_root(root.path(), root.path(), &mut budget);
        let below = Rules::below(&top, &at("a"), &mut budget);
        let deep = Rules::of_root(&at("a/b"), root.path(), &mut budget);
        for (rules, path, is_directory, expected) in [
            (&top, "x.log", false, true),
            (&top, "x.txt", false, false),
            (&top, "out", true, true),
            (&below, "a/x.log", false, true),
            (&below, "a/keep.log", false, false),
            (&below, "a/private", false, true),
            (&below, "a/out", true, false),
            (&deep, "a/b/x.log", false, true),
            (&deep, "a/b/keep.log", false, false),
        ] {
            assert_eq!(rules.ignore(&at(path), is_directory), expected, "{path}");
        }
    }

    #[test]
    fn only_files_of_git_make_a_path_ignored() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("out/deep")).unwrap();
        std::fs::create_dir_all(at("a/keep")).unwrap();
        std::fs::create_dir_all(at("a/gone")).unwrap();
        std::fs::write(at(".gitignore"), "out/\n/a/*\n").unwrap();
        std::fs::write(at("a/.gitignore"), "!keep\n").unwrap();
        std::fs::write(at(".ignore"), "private\n").unwrap();
        for (path, expected) in [
            ("out", true),
            ("out/deep", true),
            ("a", false),
            ("a/gone", true),
            ("a/keep", false),
            ("private", false),
            ("..", false),
        ] {
            assert_eq!(is_ignored(root.path(), &at(path)), expected, "{path}");
        }
    }

    #[test]
    fn the_filter_excludes_for_the_whole_tree() {
        let filter =
            Filter::new(Path::new("/p"), &["dist/**".to_owned(), "*.tmp".to_owned(), "[".to_owned()]);
        for (path, is_directory, expected) in [
            ("/p/dist/x", false, true),
            ("/p/a/x.tmp", false, true),
            ("/p/a/x", false, false),
            ("/p/a/node_modules", true, true),
            ("/p/.git", true, true),
            ("/p/a/.git", false, true),
        ] {
            assert_eq!(filter.excludes(Path::new(path), is_directory), expected, "{path}");
        }
    }

    #[test]
    fn pipes_are_not_read_as_rules() {
        let root = tempfile::tempdir().unwrap();
        let pipe = root.path().join(".gitignore");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let rules = Rules::of_root(root.path(), root.path(), &mut budget());
        assert!(!rules.ignore(&root.path().join("x"), false));
    }
}
