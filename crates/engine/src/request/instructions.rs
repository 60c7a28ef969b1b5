//! The instructions in every request: rule files of the project and the user, and the entries of
//! `instructions` in the configuration.
//!
//! One kind of rule file is used, the first that exists: `AGENTS.md`, `CLAUDE.md`, or the older
//! `CONTEXT.md`. Every file of that kind from the worktree's root down to the directory is included,
//! outermost first, so that nearer rules come later. The user's own file comes before them. The files of
//! `instructions` follow in their order, then its addresses ([`addresses`]). No file is sent twice. A file
//! that is not UTF-8 text or is larger than [`MAX_BYTES`] is left out with a warning. Links out of the
//! worktree are not followed.

pub(crate) mod addresses;
mod search;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codewright_config::{Config, Dirs, Env, InstructionRules, env};
use codewright_workspace::{Node, hold};

use search::Search;

/// The largest rule file, unless the configuration sets another size.
pub(crate) const MAX_BYTES: u64 = 256 * 1024;
/// The most directories that are searched between the worktree and the directory.
const MAX_DEPTH: usize = 64;
/// The most files that the configuration may add.
const MAX_LISTED: usize = 100;
/// The deadline for fetching an address.
pub(crate) const ADDRESS_DEADLINE: Duration = Duration::from_secs(5);

/// An instruction text and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instruction {
    /// The path or address.
    pub(crate) origin: String,
    pub(crate) text: String,
    /// Whether the file belongs to a repository. A stranger may have written it.
    pub(crate) is_of_repository: bool,
    /// Whether the user has not trusted that repository.
    pub(crate) is_untrusted: bool,
    /// The file that was read, without links in its path. `None` for an address.
    pub(crate) real: Option<PathBuf>,
}

/// The locations of instructions.
pub(crate) struct Sources {
    /// The user's files; the first that exists is used.
    global: Vec<PathBuf>,
    /// The names of a project's rule files; empty if project files are disabled.
    kinds: Vec<&'static str>,
    /// The memory file of another program, if the configuration enables it.
    memory: Option<&'static str>,
    listed: Vec<String>,
    pub(crate) rules: InstructionRules,
    home: PathBuf,
    /// The directory that replaces the project if project files are disabled.
    config_dir: Option<PathBuf>,
    leaves_projects_alone: bool,
    /// Whether an empty file is included, as in older versions.
    strict: bool,
    search: Search,
}

/// The instructions that were found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Rule files.
    pub(crate) rules: Vec<Instruction>,
    /// The entries of the configuration.
    pub(crate) listed: Vec<Instruction>,
    /// The files that were left out, with the reasons.
    pub(crate) warnings: Vec<String>,
    seen: HashSet<PathBuf>,
}

impl Found {
    /// Leaves out files of a repository that must not reach the model. A link can name any file of the worktree.
    pub(crate) fn leave_out(&mut self, is_kept_from_model: impl Fn(&Path) -> bool) {
        let is_kept = |instruction: &Instruction| {
            let real = instruction.real.as_deref().filter(|_| instruction.is_of_repository);
            real.is_some_and(&is_kept_from_model)
        };
        for list in [&mut self.rules, &mut self.listed] {
            let kept = list.extract_if(.., |instruction| is_kept(instruction));
            self.warnings.extend(kept.map(|instruction| {
                format!(
                    "`{}` was left out: the rules for `read` do not allow what it leads to",
                    instruction.origin
                )
            }));
        }
    }

    /// Marks the files of the repository as untrusted.
    pub(crate) fn mark_untrusted(&mut self) {
        for instruction in self.rules.iter_mut().chain(&mut self.listed) {
            instruction.is_untrusted = instruction.is_of_repository;
        }
    }
}

impl Sources {
    pub(crate) fn new(config: &Config, env: &Env, dirs: &Dirs) -> Self {
        let on = |name| env.is_on(name);
        let leaves_claude_alone = on(env::DISABLE_CLAUDE_CODE) || on(env::DISABLE_CLAUDE_CODE_PROMPT);
        let leaves_projects_alone = on(env::DISABLE_PROJECT_CONFIG);
        let config_dir = env.filled(env::CONFIG_DIR).map(|dir| match dir.strip_prefix("~/") {
            Some(below) => dirs.home.join(below),
            None => PathBuf::from(dir),
        });
        let mut global = vec![dirs.own_config.join("AGENTS.md"), dirs.config.join("AGENTS.md")];
        if !leaves_claude_alone {
            global.push(dirs.home.join(".claude/CLAUDE.md"));
        }
        global.extend(config_dir.as_ref().map(|dir| dir.join("AGENTS.md")));
        global.push(dirs.home.join(".opencode/AGENTS.md"));
        let kinds = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"].into_iter();
        let kinds =
            kinds.filter(|kind| !(leaves_projects_alone || leaves_claude_alone && *kind == "CLAUDE.md"));
        Self {
            global,
            kinds: kinds.collect(),
            memory: (config.prompt.claude && !leaves_projects_alone).then_some(".claude/CLAUDE.md"),
            listed: config.instructions.clone(),
            rules: config.prompt.instructions.clone(),
            home: dirs.home.clone(),
            config_dir,
            leaves_projects_alone,
            strict: config.prompt.strict,
            search: Search::default(),
        }
    }

    /// Returns the listed addresses in order.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &str> {
        self.listed.iter().map(String::as_str).filter(|entry| is_address(entry))
    }

    /// Returns the names of a project's rule files.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.iter().copied()
    }

    fn max_bytes(&self) -> u64 {
        self.rules.max_bytes.unwrap_or(MAX_BYTES)
    }

    /// Reads the files that apply to a directory.
    pub(crate) fn read(&self, worktree: &Path, directory: &Path) -> Found {
        let mut found = Found::default();
        for path in &self.global {
            if self.add(&mut found, path, None, false) {
                break;
            }
        }
        let levels = levels(worktree, directory);
        let root = Some(levels.first().map_or(directory, PathBuf::as_path));
        for kind in &self.kinds {
            let mut any = false;
            for level in &levels {
                any |= self.add(&mut found, &level.join(kind), root, false);
            }
            if any {
                break;
            }
        }
        if let (Some(memory), Some(root)) = (self.memory, root) {
            self.add(&mut found, &root.join(memory), Some(root), false);
        }
        for entry in self.listed.iter().filter(|entry| !is_address(entry)) {
            if found.listed.len() >= MAX_LISTED {
                let warning =
                    format!("`instructions` adds more than {MAX_LISTED} files; the rest is left out");
                found.warnings.push(warning);
                break;
            }
            self.listed(entry, &levels, &mut found);
        }
        found
    }

    /// Adds the files that match an entry of the configuration.
    fn listed(&self, entry: &str, levels: &[PathBuf], found: &mut Found) {
        let absolute = match entry.strip_prefix("~/") {
            Some(below) => Some(self.home.join(below)),
            None => Some(PathBuf::from(entry)).filter(|path| path.is_absolute()),
        };
        let (paths, root) = match absolute {
            // Only the last part of an absolute entry is a pattern; its directory is taken literally.
            Some(path) => (self.search.last_part(&path), None),
            None if self.leaves_projects_alone => {
                let Some(dir) = &self.config_dir else {
                    let reason =
                        "project files are disabled, and `OPENCODE_CONFIG_DIR` names no other directory";
                    found.warnings.push(format!("`instructions`: `{entry}` was left out: {reason}"));
                    return;
                };
                (self.search.below(dir, entry), Some(dir.as_path()))
            }
            None => {
                let all = levels.iter().flat_map(|level| self.search.below(level, entry));
                (all.collect(), levels.first().map(PathBuf::as_path))
            }
        };
        if paths.is_empty() {
            found.warnings.push(format!("`instructions`: there is no file `{entry}`"));
        }
        for path in paths {
            if found.listed.len() >= MAX_LISTED {
                return;
            }
            self.add(found, &path, root, true);
        }
    }

    /// Adds a file. Returns whether it exists, even if it is unusable.
    fn add(&self, found: &mut Found, path: &Path, root: Option<&Path>, is_listed: bool) -> bool {
        let is_of_repository = root.is_some();
        let root = root.filter(|_| !self.rules.follow_symlinks);
        match read(path, root, self.max_bytes()) {
            Ok(Some(text)) => {
                if text.trim().is_empty() && !self.strict {
                    return false;
                }
                let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                if found.seen.insert(real.clone()) {
                    let instruction = Instruction {
                        origin: path.display().to_string(),
                        text,
                        is_of_repository,
                        is_untrusted: false,
                        real: Some(real),
                    };
                    if is_listed { found.listed.push(instruction) } else { found.rules.push(instruction) }
                }
                true
            }
            Ok(None) => false,
            Err(reason) => {
                let key = if is_listed { "`instructions`: " } else { "" };
                found.warnings.push(format!("{key}`{}` was left out: {reason}", path.display()));
                true
            }
        }
    }
}

fn is_address(entry: &str) -> bool {
    entry.starts_with("https://") || entry.starts_with("http://")
}

/// Returns the directories from the worktree down to the directory. Outside a worktree it returns only the directory.
fn levels(worktree: &Path, directory: &Path) -> Vec<PathBuf> {
    if worktree.parent().is_none() || !directory.starts_with(worktree) {
        return vec![directory.to_owned()];
    }
    let above = directory.ancestors().take(MAX_DEPTH).take_while(|folder| folder.starts_with(worktree));
    let mut levels: Vec<_> = above.map(Path::to_owned).collect();
    levels.reverse();
    levels
}

/// Returns the text of a file; `None` if it does not exist.
fn read(path: &Path, root: Option<&Path>, max_bytes: u64) -> Result<Option<String>, String> {
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    // Checked and read is the same file, also if a link is exchanged meanwhile.
    let held = hold(path).map_err(|error| format!("it cannot be followed ({error})"))?;
    if root.is_some_and(|root| root.parent().is_some() && !held.place.real.starts_with(root)) {
        let how = "set `prompt.instructions.follow_symlinks` to follow it";
        return Err(format!("it is a link to a file outside the worktree; {how}"));
    }
    let status = held.status().map_err(|error| error.to_string())?;
    let status = status.ok_or("it cannot be followed (its target is missing)")?;
    match status.node {
        Node::File => {}
        Node::Directory => return Err("it is a directory".to_owned()),
        Node::Special => return Err("it is not a regular file".to_owned()),
    }
    if root.is_some() && status.owner != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user".to_owned());
    }
    let bytes = held.read(max_bytes).map_err(|error| match error {
        codewright_workspace::Error::TooLarge { .. } => too_large(max_bytes),
        codewright_workspace::Error::Path { source, .. } => source.to_string(),
        error => error.to_string(),
    })?;
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8 text".to_owned())
}

fn too_large(max_bytes: u64) -> String {
    format!("it is larger than {} KiB (`prompt.instructions.max_bytes`)", max_bytes / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A home, a project, the variables and the configuration.
    struct Tree {
        dir: tempfile::TempDir,
        variables: Vec<(String, String)>,
        config: Value,
    }

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let tree = Self { variables: Vec::new(), config: json!({}), dir };
            std::fs::create_dir_all(tree.path("home")).unwrap();
            std::fs::create_dir_all(tree.path("p/a/b")).unwrap();
            files.iter().for_each(|(path, text)| tree.write(path, text.as_bytes()));
            tree
        }

        fn path(&self, below: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(below)
        }

        fn write(&self, path: &str, bytes: &[u8]) {
            let path = self.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }

        fn config(mut self, config: Value) -> Self {
            self.config = config;
            self
        }

        fn set(mut self, name: &str, value: &str) -> Self {
            let value = value.replace("ROOT/", &self.path("").display().to_string());
            self.variables.push((name.to_owned(), value));
            self
        }

        fn found_in(&self, worktree: &str, directory: &str) -> Found {
            let text = self.config.to_string().replace("ROOT/", &self.path("").display().to_string());
            let mut variables = self.variables.clone();
            variables.push(("HOME".to_owned(), self.path("home").display().to_string()));
            variables.push(("OPENCODE_CONFIG_CONTENT".to_owned(), text));
            let env = Env::from_pairs(variables);
            let dirs = Dirs::new(&env).unwrap();
            let (worktree, directory) = (self.path(worktree), self.path(directory));
            let input = codewright_config::LoadInput {
                directory: &directory,
                worktree: &worktree,
                env: &env,
                dirs: &dirs,
            };
            let config = codewright_config::load(input).unwrap().config;
            Sources::new(&config, &env, &dirs).read(&worktree, &directory)
        }

        /// The texts of rules, a bar, and those of listed files.
        #[track_caller]
        fn check(&self, directory: &str, expected: &str) {
            let found = self.found_in("p", directory);
            assert_eq!(texts(&found), expected, "{:?}", found.warnings);
            assert_eq!(found.warnings, Vec::<String>::new());
        }

        #[track_caller]
        fn warns(&self, expected: &[&str]) {
            let found = self.found_in("p", "p/a/b");
            assert_eq!(found.warnings.len(), expected.len(), "{:?}", found.warnings);
            for (warning, expected) in found.warnings.iter().zip(expected) {
                assert!(warning.contains(expected), "{expected} in {warning}");
            }
        }
    }

    fn texts(found: &Found) -> String {
        let texts = |list: &[Instruction]| {
            list.iter().map(|one| one.text.trim().to_owned()).collect::<Vec<_>>().join(" ")
        };
        format!("{}|{}", texts(&found.rules), texts(&found.listed))
    }

    #[test]
    fn the_first_kind_is_used_from_the_root_down() {
        let nested = [("p/AGENTS.md", "root"), ("p/a/b/AGENTS.md", "near"), ("p/CLAUDE.md", "other")];
        Tree::new(&nested).check("p/a/b", "root near|");
        Tree::new(&[("p/CLAUDE.md", "claude"), ("p/CONTEXT.md", "context")]).check("p/a", "claude|");
        Tree::new(&[("p/CONTEXT.md", "context")]).check("p/a", "context|");
        Tree::new(&[("p/a/CLAUDE.md", "near"), ("p/AGENTS.md", "root")]).check("p/a", "root|");
        Tree::new(&[("p/AGENTS.md", " \n"), ("p/CLAUDE.md", "other")]).check("p", "other|");
        Tree::new(&[("p/b/AGENTS.md", "beside"), ("AGENTS.md", "above")]).check("p/a", "|");
    }

    #[test]
    fn outside_a_repository_only_the_directory_counts() {
        let tree = Tree::new(&[("p/AGENTS.md", "above"), ("p/a/AGENTS.md", "here"), ("p/x.md", "x")]);
        let tree = tree.config(json!({"instructions": ["x.md"]}));
        let found = tree.found_in("/", "p/a");
        assert_eq!(texts(&found), "here|");
        assert!(found.warnings[0].contains("there is no file `x.md`"), "{:?}", found.warnings);
    }

    #[test]
    fn the_first_of_the_users_own_files_comes_first() {
        let files = [
            ("home/.config/codewright/AGENTS.md", "ours"),
            ("home/.config/opencode/AGENTS.md", "global"),
            ("home/.claude/CLAUDE.md", "claude"),
            ("dir/AGENTS.md", "dir"),
            ("home/.opencode/AGENTS.md", "dot"),
        ];
        for first in 0..files.len() {
            let tree = Tree::new(&files[first..]).set("OPENCODE_CONFIG_DIR", "ROOT/dir");
            tree.write("p/AGENTS.md", b"project");
            tree.check("p", &format!("{} project|", files[first].1));
        }
        Tree::new(&files[3..]).check("p", "dot|");
    }

    #[test]
    fn the_files_of_another_program_can_be_disabled() {
        for name in ["OPENCODE_DISABLE_CLAUDE_CODE_PROMPT", "CODEWRIGHT_DISABLE_CLAUDE_CODE"] {
            let files = [
                ("home/.claude/CLAUDE.md", "claude"),
                ("p/CLAUDE.md", "project"),
                ("p/CONTEXT.md", "context"),
            ];
            Tree::new(&files).check("p", "claude project|");
            Tree::new(&files).set(name, "1").check("p", "context|");
        }
    }

    #[test]
    fn project_files_can_be_disabled() {
        let files = [("p/AGENTS.md", "project"), ("dir/more.md", "more"), ("p/more.md", "no")];
        let alone = || Tree::new(&files).set("OPENCODE_DISABLE_PROJECT_CONFIG", "1");
        alone().check("p", "|");
        let listed = json!({"instructions": ["more.md"]});
        alone().config(listed.clone()).set("OPENCODE_CONFIG_DIR", "ROOT/dir").check("p", "|more");
        alone().config(listed).warns(&["`instructions`: `more.md` was left out: project files are disabled"]);
    }

    #[test]
    fn listed_files_are_looked_for_upwards_in_their_order() {
        let files = [
            ("p/x.md", "top"),
            ("p/a/x.md", "mid"),
            ("p/docs/1.md", "one"),
            ("p/docs/2.md", "two"),
            ("p/docs/deep/3.md", "three"),
            ("p/docs/4.txt", "no"),
        ];
        let list = |entries: &[&str], expected: &str| {
            Tree::new(&files).config(json!({"instructions": entries})).check("p/a/b", expected);
        };
        list(&["x.md"], "|top mid");
        list(&["docs/*.md", "x.md"], "|one two top mid");
        list(&["docs/**/*.md"], "|one two three");
        list(&["docs/?.md", "docs/1.md"], "|one two");
        list(&["docs/{2,4}.*"], "|two no");
        list(&["docs/[12].md"], "|one two");
    }

    #[test]
    fn of_an_absolute_entry_only_the_last_part_is_a_pattern() {
        let files = [("home/r/1.md", "one"), ("home/r/2.md", "two"), ("home/s/1.md", "other")];
        let tree = |entry: &str| Tree::new(&files).config(json!({"instructions": [entry]}));
        tree("~/r/*.md").check("p", "|one two");
        tree("ROOT/home/r/2.md").check("p", "|two");
        tree("ROOT/home/s/*.md").check("p", "|other");
        tree("ROOT/home/*/1.md").warns(&["there is no file"]);
    }

    #[test]
    fn no_file_is_included_twice() {
        let tree = Tree::new(&[("p/AGENTS.md", "root")])
            .config(json!({"instructions": ["AGENTS.md", "*.md", "ROOT/p/AGENTS.md"]}));
        tree.check("p", "root|");
    }

    #[test]
    fn the_order_does_not_depend_on_the_disk() {
        let names: Vec<String> = (0..40).map(|n| format!("p/d/{:02}.md", (n * 17) % 40)).collect();
        let files: Vec<_> = names.iter().map(|name| (name.as_str(), &name[4..6])).collect();
        let expected: Vec<_> = (0..40).map(|n| format!("{n:02}")).collect();
        let tree = Tree::new(&files).config(json!({"instructions": ["d/*.md"]}));
        tree.check("p", &format!("|{}", expected.join(" ")));
    }

    #[test]
    fn another_programs_memory_is_used_only_if_enabled() {
        let files = [("p/.claude/CLAUDE.md", "memory"), ("p/AGENTS.md", "rules")];
        Tree::new(&files).check("p", "rules|");
        Tree::new(&files).config(json!({"prompt": {"claude": true}})).check("p", "rules memory|");
    }

    #[test]
    fn an_empty_file_is_included_in_strict_mode_only() {
        let files = [("p/AGENTS.md", "\n"), ("p/CLAUDE.md", "claude")];
        Tree::new(&files).check("p", "claude|");
        let strict = Tree::new(&files).config(json!({"prompt": {"strict": true}}));
        let found = strict.found_in("p", "p");
        assert_eq!((texts(&found).as_str(), found.rules.len()), ("|", 1));
    }

    #[test]
    fn an_unreadable_file_is_named_and_the_others_are_included() {
        let tree = Tree::new(&[("p/a/AGENTS.md", "good")])
            .config(json!({"instructions": ["dir", "bin.md", "missing.md"]}));
        // A sparse file of a gigabyte.
        let file = std::fs::File::create(tree.path("p/AGENTS.md")).unwrap();
        file.set_len(1024 * 1024 * 1024).unwrap();
        std::fs::create_dir(tree.path("p/dir")).unwrap();
        tree.write("p/bin.md", &[0xff, 0xfe, 0]);
        assert_eq!(texts(&tree.found_in("p", "p/a/b")), "good|");
        tree.warns(&[
            "p/AGENTS.md` was left out: it is larger than 256 KiB",
            "`instructions`: `",
            "bin.md` was left out: it is not UTF-8 text",
            "`instructions`: there is no file `missing.md`",
        ]);
    }

    #[test]
    fn the_largest_file_can_be_configured() {
        let tree = Tree::new(&[("p/AGENTS.md", &"x".repeat(2000))]);
        let tree = tree.config(json!({"prompt": {"instructions": {"max_bytes": 1024}}}));
        tree.warns(&["it is larger than 1 KiB"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_worktree_is_followed_only_if_enabled() {
        use std::os::unix::fs::symlink;
        let tree = Tree::new(&[("secret.md", "secret"), ("p/in.md", "inside")]);
        symlink(tree.path("secret.md"), tree.path("p/AGENTS.md")).unwrap();
        symlink(tree.path("p/in.md"), tree.path("p/a/AGENTS.md")).unwrap();
        tree.warns(&["outside the worktree"]);
        assert_eq!(texts(&tree.found_in("p", "p/a")), "inside|");
        let tree = tree.config(json!({"prompt": {"instructions": {"follow_symlinks": true}}}));
        tree.check("p/a", "secret inside|");
    }

    #[cfg(unix)]
    #[test]
    fn a_circular_link_and_an_unreadable_file_are_named() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let tree = Tree::new(&[("p/a/AGENTS.md", "closed")]);
        symlink(tree.path("p/AGENTS.md"), tree.path("p/x.md")).unwrap();
        symlink(tree.path("p/x.md"), tree.path("p/AGENTS.md")).unwrap();
        std::fs::set_permissions(tree.path("p/a/AGENTS.md"), PermissionsExt::from_mode(0o000)).unwrap();
        let found = tree.found_in("p", "p/a");
        assert!(
            found.warnings[0].contains("p/AGENTS.md` was left out: it cannot be followed"),
            "{:?}",
            found.warnings
        );
        // Root may read every file.
        let is_closed = std::fs::read(tree.path("p/a/AGENTS.md")).is_err();
        assert_eq!(found.rules.is_empty(), is_closed);
    }
}
