//! Finds the files that a command line names: those it reads and writes, and directories outside the
//! worktree.
//!
//! Only paths that can be read off the line are found. A path that the line computes counts as unknown. A
//! path that a program computes is covered by the permission for the command only.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use codewright_workspace::{Place, Workspace, normalize, physical};

use super::found::Found;
use super::git;
use super::irreversible::{removal, removed};
use super::limits::{Limit, Limits, Reason};
use super::line::Step;
use super::nested::Effects;
use super::options::values_of;
use super::touch::{FileUse, REPOSITORY_CONFIG, Touch, touched};
use super::word::{NUMBER, Origin, Word};
use crate::ToolError;
use crate::ask::file_patterns;
use crate::{Certainty, Implied, UNKNOWN};

/// Commands whose arguments are all files, whether they exist or not.
const FILE_COMMANDS: &[&str] = &[
    "cat", "cd", "chgrp", "chmod", "chown", "cp", "head", "install", "less", "ln", "ls", "mkdir", "more",
    "mv", "pushd", "rm", "rmdir", "source", "stat", "tail", "tee", "touch", "truncate", "unlink", ".",
];
/// Commands whose first argument is a pattern or a script.
const PATTERN_COMMANDS: &[&str] = &["awk", "egrep", "fgrep", "grep", "jq", "perl", "rg", "sed"];
/// Commands that open none of their arguments.
const TEXT_COMMANDS: &[&str] = &[
    ":", "cut", "echo", "export", "expr", "false", "kill", "let", "printf", "seq", "sleep", "tr", "true",
    "unset",
];
/// Commands that change to the directory in one of these options.
const ENTERING: &[(&[&str], &[&str])] = &[
    (&["git"], &["-C", "--git-dir", "--work-tree"]),
    (&["tar", "gtar", "bsdtar"], &["-C", "--directory"]),
    (&["make", "gmake"], &["-C", "-I", "--directory", "--include-dir"]),
    (&["env"], &["-C", "--chdir"]),
    (&["sudo"], &["-D", "-R", "--chdir", "--chroot"]),
    (&["ninja", "cargo", "go", "meson"], &["-C"]),
    (&["npm", "pnpm", "yarn", "bun"], &["-C", "--prefix", "--dir", "--cwd"]),
    (&["uv", "poetry"], &["--directory", "--project"]),
];
/// Commands with which git may create a repository in the sandbox.
const BESIDE_GIT: &[&str] =
    &["cat", "cd", "echo", "git", "head", "ls", "mkdir", "pwd", "rm", "tail", "test", "touch", "true"];
/// Commands with operands such as `if=file`.
const KEYED: &[&str] = &["dd", "gdd"];
/// Options of download programs whose values may be `@` and a file.
const UPLOADERS: &[&str] = &["curl", "http", "https", "xh", "wget"];
/// Paths that every program may use.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
    "/dev/urandom",
    "/dev/random",
];
/// The directory of the process that opens it.
const OWN_PROCESS: &str = "/proc/self";
/// Its content that describes the process. The other entries lead to files elsewhere.
const OWN_STATE: &[&str] = &[
    "",
    "/cgroup",
    "/cmdline",
    "/comm",
    "/fd",
    "/io",
    "/limits",
    "/maps",
    "/mountinfo",
    "/mounts",
    "/oom_score",
    "/sched",
    "/smaps",
    "/stat",
    "/statm",
    "/status",
];
/// The kernel rejects longer paths.
const MAX_PATH_BYTES: usize = 4096;
/// The longest file that names the directory of a repository.
const MAX_GITFILE_BYTES: u64 = 4096;
/// Directories below which everything is temporary.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp"];
/// Names of directories that programs create again.
pub(super) const REGENERATED: &[&str] = &[
    "node_modules",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".next",
    ".nuxt",
    ".turbo",
    ".parcel-cache",
    ".svelte-kit",
];
/// The limit of entries of directories that a `find` is compared with.
const MAX_FOUND: usize = 4096;
/// The limit of paths for one wildcard.
const MAX_MATCHES: usize = 2048;
/// The limit of directories that a line changes to. Later paths are resolved from each of them.
const MAX_BASES: usize = 16;

/// The files and directories of a line.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// The directories outside that need permission, without duplicates, in order.
    pub(super) outside: Vec<String>,
    /// The files that are read and written.
    pub(super) implied: Vec<Implied>,
}

/// The directories and limits of an analysis.
#[derive(Clone, Copy)]
pub(super) struct Start<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) workdir: &'a Place,
    pub(super) home: Option<&'a Path>,
    pub(super) limits: &'a Limits,
}

/// Finds the paths of a line. Commands in a loop or a function may run after later ones have changed the
/// directory.
pub(super) fn reached(start: Start, line: &Effects) -> Result<Reached, ToolError> {
    let mut search = Search {
        start,
        bases: vec![start.workdir.real.clone()],
        current: vec![start.workdir.real.clone()],
        earlier: Vec::new(),
        statement: None,
        found: Reached::default(),
        known: HashSet::new(),
        parents: HashMap::new(),
        is_lost: false,
        rest: Cell::new(MAX_FOUND),
        repeats: line.repeats,
        is_only_git: line.commands.iter().all(|words| BESIDE_GIT.contains(&name_of(words))),
    };
    if !start.workdir.inside {
        search.add(&start.workdir.real);
    }
    for word in line.directories.iter().take_while(|_| !start.limits.is_full()) {
        search.directory(word)?;
    }
    for _ in 0..if line.repeats { 2 } else { 1 } {
        let commands = line.commands.iter().zip(&line.steps);
        for (words, step) in commands.take_while(|_| !start.limits.is_full()) {
            search.begin(step);
            search.command(words, step.is_link && !line.repeats)?;
        }
    }
    // A redirection belongs to any command.
    search.current.clone_from(&search.bases);
    for redirect in line.redirects.iter().take_while(|_| !start.limits.is_full()) {
        search.arguments("cat", std::slice::from_ref(&redirect.path))?;
        let usage = if redirect.writes { FileUse::Writes } else { FileUse::Reads };
        for value in &redirect.path.values {
            search.touch(usage, Some(value))?;
        }
        if !redirect.path.is_closed {
            search.touch(usage, None)?;
        }
    }
    Ok(search.found)
}

/// A command's name without its directory.
fn name_of(words: &[Word]) -> &str {
    let name = words.first().and_then(|word| word.values.first());
    name.and_then(|name| name.rsplit('/').next()).unwrap_or_default()
}

/// The parts of an argument that may be paths. The first ones are as certain as the command makes them.
fn paths_in<'a>(name: &str, value: &'a str) -> Vec<&'a str> {
    if let Some((_, path)) = value.split_once("file://") {
        return vec![path.trim_start_matches("localhost")];
    }
    let behind = value.split_once('=').map(|(_, behind)| behind);
    if UPLOADERS.contains(&name)
        && let Some((_, path)) = value.split_once('@')
        && (path.starts_with(['/', '~', '.']) || value.starts_with('@') || behind.is_some())
    {
        return vec![path];
    }
    if !value.starts_with('-') {
        return if KEYED.contains(&name) { behind.into_iter().collect() } else { vec![value] };
    }
    // `--file=/etc/hosts` names a file too, and `-C/etc` a directory.
    let glued = value.get(2..).filter(|rest| rest.starts_with(['/', '~']) || rest.starts_with(".."));
    let glued = glued.filter(|rest| !value.starts_with("--") && rest.trim_matches('/').len() > 1);
    behind.into_iter().chain(glued).collect()
}

/// The words that name directories which a command changes to, for itself or for later commands.
fn entered(name: &str, words: &[Word]) -> Vec<Word> {
    let rest = words.get(1..).unwrap_or_default();
    if matches!(name, "cd" | "pushd") {
        return rest.iter().filter(|word| !word.is_option() && word.text() != "-").cloned().collect();
    }
    if let Some((_, options)) = ENTERING.iter().find(|(names, _)| names.contains(&name)) {
        return values_of(rest, options);
    }
    let at = words.iter().position(|word| matches!(word.text(), "-C" | "--directory" | "--chdir"));
    at.and_then(|at| words.get(at + 1)).cloned().into_iter().collect()
}

struct Search<'a> {
    start: Start<'a>,
    /// The directories that a relative path may start from, because a line may change the directory.
    bases: Vec<PathBuf>,
    /// Those in which the line is at the current command.
    current: Vec<PathBuf>,
    /// Those in which the current statement may have ended before the current command.
    earlier: Vec<PathBuf>,
    /// The current statement of the line.
    statement: Option<usize>,
    found: Reached,
    /// The effects that were found already.
    known: HashSet<(&'static str, String)>,
    /// Directories of files that wildcards matched.
    parents: HashMap<PathBuf, Place>,
    /// Whether the line changes to an unknown directory.
    is_lost: bool,
    /// Whether the line has loops or functions.
    repeats: bool,
    /// Whether it has only commands of git and those that write no settings.
    is_only_git: bool,
    /// The number of entries with which results of `find` can still be compared.
    rest: Cell<usize>,
}

impl Search<'_> {
    /// Begins a command. The statement before may have ended at each of its commands.
    fn begin(&mut self, step: &Step) {
        if step.statement.is_some() && step.statement != self.statement {
            self.statement = step.statement;
            let earlier = std::mem::take(&mut self.earlier);
            add_new(&mut self.current, earlier);
        }
    }

    /// Finds the paths of a command. The rest of a statement runs only after a link of it succeeded.
    fn command(&mut self, words: &[Word], is_link: bool) -> Result<(), ToolError> {
        let name = name_of(words);
        self.remove(words);
        self.arguments(name, words.get(1..).unwrap_or_default())?;
        let is_move = matches!(name, "cd" | "pushd");
        let targets = entered(name, words);
        if is_link
            && is_move
            && let [target] = &targets[..]
            && words.len() == 2
            && is_plain(target)
        {
            return self.move_to(target.text());
        }
        if name == "popd" || (is_move && targets.is_empty()) {
            self.current.clone_from(&self.bases);
        }
        if name == "cd" && targets.is_empty() && !words.iter().any(|word| word.text() == "-") {
            let home = self.start.home.map(|home| Word::fixed(&home.to_string_lossy()));
            home.iter().try_for_each(|home| self.directory(home))?;
        }
        for target in targets {
            self.is_lost |= !target.is_closed;
            for value in &target.values {
                // Other options name a directory only if it exists.
                self.visit(value, is_move)?;
                self.enter(value)?;
            }
        }
        for Touch { usage, path } in touched(name, words) {
            // The sandbox decides about a repository that git alone creates, as about a clone.
            let is_created = usage == FileUse::Writes && self.is_only_git && git::creates_plainly(words);
            let usage = if is_created { FileUse::MayFill } else { usage };
            // A path inside an argument was not visited together with it.
            let writes = !matches!(usage, FileUse::MayRead | FileUse::Reads | FileUse::MayFill);
            if let Some(path) = path.as_deref().filter(|_| usage != FileUse::MayRead) {
                self.visit(path, writes)?;
            }
            self.touch(usage, path.as_deref())?;
        }
        Ok(())
    }

    /// Records that a command deletes directories which nothing creates again.
    fn remove(&mut self, words: &[Word]) {
        let Some(operands) = removed(words) else { return };
        let is_known = |word: &&Word| match &word.origin {
            // A function could have the name of the program.
            Some(Origin::Temporary) => !self.repeats && word.values.is_empty(),
            Some(Origin::Found { find, is_split }) => self.finds_disposable(find, *is_split),
            None => word.is_closed && word.values.iter().all(|path| self.is_disposable(path)),
        };
        let effect = removal(words);
        if !operands.iter().all(is_known) && !self.found.implied.contains(&effect) {
            self.found.implied.push(effect);
        }
    }

    /// Whether every directory that a `find` can find now is one that nothing misses.
    fn finds_disposable(&self, find: &[Word], is_split: bool) -> bool {
        let Some(Found { roots, names }) = Found::of(find) else { return false };
        !self.is_lost
            && self.bases.iter().all(|base| {
                roots.iter().all(|root| {
                    names.all_below(&base.join(root), &self.rest, &|path| {
                        let shown = path.strip_prefix(base).unwrap_or(path).to_string_lossy();
                        let is_word =
                            !shown.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\'));
                        (is_word || !is_split) && self.is_disposable_at(path)
                    })
                })
            })
    }

    /// Whether everything that a path names is temporary, ignored by git, or no directory with content.
    fn is_disposable(&self, path: &str) -> bool {
        if path.len() > MAX_PATH_BYTES || (self.is_lost && !path.starts_with('/')) {
            return false;
        }
        let limits = self.start.limits;
        self.bases.iter().all(|base| {
            let paths = if path.contains(['*', '?', '[']) {
                expanded(base, path, limits).into_iter().map(|matched| matched.path).collect()
            } else {
                vec![path.to_owned()]
            };
            paths.iter().all(|path| limits.take(Limit::Paths, 1) && self.is_disposable_at(&base.join(path)))
        })
    }

    fn is_disposable_at(&self, path: &Path) -> bool {
        let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        // An unreadable directory may have content.
        let is_empty = || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        if !is_directory || is_empty() {
            return true;
        }
        let Ok(real) = physical(path) else { return false };
        let is_below = |above: &&str| real.starts_with(above) && real != Path::new(above);
        let workspace = self.start.workspace;
        let is_temporary = !workspace.contains(&real) && TEMPORARY.iter().any(is_below);
        let is_regenerated = real.iter().any(|name| REGENERATED.iter().any(|known| name == *known));
        is_temporary || is_regenerated || workspace.is_ignored(&real)
    }

    /// Checks the arguments of a command for paths.
    fn arguments(&mut self, name: &str, words: &[Word]) -> Result<(), ToolError> {
        if TEXT_COMMANDS.contains(&name) {
            return Ok(());
        }
        let is_file = FILE_COMMANDS.contains(&name);
        // A pattern is rarely the path of a file. The exception is a single slash.
        let mut skips = PATTERN_COMMANDS.contains(&name);
        for word in words {
            if is_file && !word.is_closed {
                self.imply("external_directory", UNKNOWN.to_string(), Certainty::Possible);
            }
            for value in &word.values {
                let is_pattern = skips && !value.starts_with('-');
                skips &= !is_pattern;
                if is_pattern && value == "/" {
                    continue;
                }
                for path in paths_in(name, value) {
                    let is_plain =
                        path.len() == value.len() || KEYED.contains(&name) || value.contains("://");
                    self.visit(path, is_file || (is_plain && value.len() != path.len()))?;
                }
            }
        }
        Ok(())
    }

    /// Adds a directory that a variable names, or that a command without arguments changes to.
    fn directory(&mut self, word: &Word) -> Result<(), ToolError> {
        self.is_lost |= !word.is_closed;
        for value in &word.values {
            self.visit(value, true)?;
            self.enter(value)?;
        }
        Ok(())
    }

    /// Adds a path. A path that does not exist is added only if it certainly is one.
    fn visit(&mut self, path: &str, surely: bool) -> Result<(), ToolError> {
        let path = without_glob(path);
        if !is_path(path) {
            return Ok(());
        }
        if self.start.limits.is_full() || !self.start.limits.take(Limit::Paths, self.bases.len()) {
            return Ok(());
        }
        for real in self.places(path)? {
            if !self.start.workspace.contains(&real) && (surely || real.exists()) {
                self.add(&real);
            }
        }
        Ok(())
    }

    /// Records the effect on a file. `None` is an unknown file.
    fn touch(&mut self, usage: FileUse, path: Option<&str>) -> Result<(), ToolError> {
        let Some(path) = path else {
            self.unknown_file(usage);
            return Ok(());
        };
        if !is_path(path) {
            return Ok(());
        }
        if self.is_lost && !path.starts_with('/') {
            self.unknown_file(usage);
        }
        for base in self.bases.clone() {
            if self.start.limits.is_full() || !self.start.limits.take(Limit::Paths, 1) {
                return Ok(());
            }
            let repository = (path == REPOSITORY_CONFIG).then(|| repository_config(&base)).flatten();
            let path = repository.as_deref().unwrap_or(path);
            let place = self.start.workspace.resolve_from(&base, Path::new(path))?;
            let kernel = physical(&base.join(path))?;
            self.touch_at(usage, &place, &kernel);
            if path.contains(['*', '?', '[']) {
                for matched in expanded(&base, path, self.start.limits) {
                    self.touch_match(usage, &base, &matched)?;
                }
            }
        }
        Ok(())
    }

    /// Records the effect on a file that a wildcard matches. Its directory is resolved once for all files.
    fn touch_match(&mut self, usage: FileUse, base: &Path, matched: &Match) -> Result<(), ToolError> {
        let full = base.join(&matched.path);
        let (Some(parent), Some(name), false) = (full.parent(), full.file_name(), matched.is_link) else {
            let place = self.start.workspace.resolve_from(base, Path::new(&matched.path))?;
            self.touch_at(usage, &place, &physical(&full)?);
            return Ok(());
        };
        if !self.parents.contains_key(parent) {
            let place = self.start.workspace.resolve_from(base, parent)?;
            self.parents.insert(parent.to_owned(), place);
        }
        let parent = &self.parents[parent];
        let place =
            Place { path: parent.path.join(name), real: parent.real.join(name), inside: parent.inside };
        let kernel = place.real.clone();
        self.touch_at(usage, &place, &kernel);
        Ok(())
    }

    fn touch_at(&mut self, usage: FileUse, place: &Place, kernel: &Path) {
        let workspace = self.start.workspace;
        let mut patterns = file_patterns(workspace, place);
        let kernel = workspace.real_title(kernel);
        if !patterns.contains(&kernel) {
            patterns.push(kernel);
        }
        let (permission, certainty) = match usage {
            FileUse::MayRead if !place.real.is_file() => return,
            FileUse::Reads | FileUse::Puts if place.real.is_dir() => return,
            FileUse::MayRead | FileUse::Reads => ("read", Certainty::Stated),
            FileUse::Writes | FileUse::Puts | FileUse::Removes | FileUse::Fills => {
                ("edit", Certainty::Stated)
            }
            FileUse::MayFill => ("edit", Certainty::Possible),
        };
        let is_below = matches!(usage, FileUse::Fills | FileUse::MayFill)
            || (usage == FileUse::Removes && place.real.is_dir());
        if is_below {
            // An effect on a directory is an effect on its content.
            let inside = patterns.iter().map(|pattern| match pattern.as_str() {
                "" => UNKNOWN.to_string(),
                pattern => format!("{pattern}/{UNKNOWN}"),
            });
            let inside: Vec<String> = inside.collect();
            if usage == FileUse::Removes {
                patterns.extend(inside);
            } else {
                patterns = inside;
            }
        }
        for pattern in patterns.into_iter().filter(|pattern| !pattern.is_empty()) {
            // The names that a wildcard for new files matches are unknown.
            let is_new = permission == "edit" && pattern.contains(['*', '?', '[']) && !place.real.exists();
            let pattern = if is_new { without_wildcards(&pattern) } else { pattern };
            self.imply(permission, pattern, certainty);
        }
    }

    /// Records the effect on a file whose name is only known when the line runs.
    fn unknown_file(&mut self, usage: FileUse) {
        let unknown = UNKNOWN.to_string();
        self.imply("external_directory", unknown.clone(), Certainty::Possible);
        match usage {
            FileUse::MayRead | FileUse::Reads => self.imply("read", unknown, Certainty::Possible),
            FileUse::Writes | FileUse::Puts | FileUse::Removes | FileUse::Fills => {
                self.imply("edit", unknown, Certainty::Stated);
            }
            FileUse::MayFill => self.imply("edit", unknown, Certainty::Possible),
        }
    }

    fn imply(&mut self, permission: &'static str, pattern: String, certainty: Certainty) {
        let key = (permission, format!("{certainty:?}{pattern}"));
        if self.known.contains(&key) || !self.start.limits.take(Limit::Files, 1) {
            return;
        }
        self.known.insert(key);
        let always = (!pattern.contains(UNKNOWN)).then(|| pattern.clone());
        self.found.implied.push(Implied { always, certainty, ..Implied::new(permission, &pattern) });
    }

    /// The possible targets of a path: as the kernel resolves `..` after a link, and as shells do.
    fn places(&self, path: &str) -> Result<Vec<PathBuf>, ToolError> {
        self.places_from(&self.current, path)
    }

    fn places_from(&self, bases: &[PathBuf], path: &str) -> Result<Vec<PathBuf>, ToolError> {
        let mut places = Vec::new();
        for base in bases {
            let kernel = physical(&base.join(path))?;
            let shell = self.start.workspace.resolve_from(base, Path::new(path))?.real;
            for real in [kernel, shell] {
                if !places.contains(&real) {
                    places.push(real);
                }
            }
        }
        Ok(places)
    }

    /// Records that the line is in another directory from here on, and nowhere else.
    fn move_to(&mut self, target: &str) -> Result<(), ToolError> {
        let before = self.current.clone();
        self.enter(target)?;
        let mut places = Vec::new();
        for base in &before {
            let plain = normalize(&base.join(target));
            // A link leads elsewhere, and the shell may return from it to where it was.
            if self.places_from(std::slice::from_ref(base), target)? != [plain.clone()] {
                return Ok(());
            }
            add_new(&mut places, [plain]);
        }
        self.current = places;
        add_new(&mut self.earlier, before);
        Ok(())
    }

    fn enter(&mut self, target: &str) -> Result<(), ToolError> {
        if target.len() > MAX_PATH_BYTES {
            self.start.limits.give_up(Reason::Length);
            return Ok(());
        }
        let mut targets = vec![target.to_owned()];
        if target.contains(['*', '?', '[']) {
            let bases = self.current.clone();
            let matches = bases.iter().flat_map(|base| expanded(base, target, self.start.limits));
            targets.extend(matches.map(|matched| matched.path));
        }
        for target in targets {
            if !self.start.limits.take(Limit::Paths, self.bases.len()) {
                return Ok(());
            }
            for real in self.places(&target)? {
                add_new(&mut self.current, [real.clone()]);
                if self.bases.contains(&real) {
                    continue;
                }
                if self.bases.len() >= MAX_BASES {
                    self.start.limits.give_up(Reason::Directories);
                    return Ok(());
                }
                self.bases.push(real);
            }
        }
        Ok(())
    }

    fn add(&mut self, real: &Path) {
        let directory = if real.is_dir() { real } else { real.parent().unwrap_or(real) };
        let directory = directory.to_string_lossy().into_owned();
        if !self.found.outside.contains(&directory) && self.start.limits.take(Limit::Files, 1) {
            self.found.outside.push(directory);
        }
    }
}

/// Adds the paths that are not in a list.
fn add_new(list: &mut Vec<PathBuf>, paths: impl IntoIterator<Item = PathBuf>) {
    for path in paths {
        if !list.contains(&path) {
            list.push(path);
        }
    }
}

/// Whether a word is one path and no option or wildcard.
fn is_plain(word: &Word) -> bool {
    word.is_closed
        && word.values.len() == 1
        && !word.text().starts_with(['-', '+'])
        && !word.text().contains(['*', '?', '['])
}

/// Whether a text can be a path, and is not one that every program may use.
fn is_path(path: &str) -> bool {
    let is_openable = !path.is_empty() && path.len() <= MAX_PATH_BYTES && !path.contains('\0');
    is_openable && !is_device(&normal(path)) && !is_own_state(path)
}

/// The configuration of the repository around a directory. In a linked worktree it is in the main repository.
fn repository_config(base: &Path) -> Option<String> {
    let read = |path: PathBuf| {
        let is_small =
            path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() <= MAX_GITFILE_BYTES);
        is_small.then(|| std::fs::read_to_string(path).ok()).flatten()
    };
    let own = base.ancestors().map(|above| above.join(".git")).find(|own| own.symlink_metadata().is_ok())?;
    let mut directory = own.clone();
    if let Some(text) = read(own.clone()) {
        let administration = text.trim().strip_prefix("gitdir:")?.trim();
        directory = normalize(&own.parent()?.join(administration));
        if let Some(common) = read(directory.join("commondir")) {
            directory = normalize(&directory.join(common.trim()));
        }
    }
    Some(directory.join("config").to_string_lossy().into_owned())
}

/// A path without `.` and `..`.
pub(super) fn normal(path: &str) -> String {
    normalize(Path::new(path)).to_string_lossy().into_owned()
}

fn is_device(path: &str) -> bool {
    let descriptor = path.strip_prefix("/dev/fd/");
    DEVICES.contains(&path) || descriptor.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
}

/// Whether a path names state of the process that opens it. A `..` could come after a link.
fn is_own_state(path: &str) -> bool {
    let Some(rest) = path.strip_prefix(OWN_PROCESS) else { return false };
    let descriptor = rest.strip_prefix("/fd/");
    OWN_STATE.contains(&rest.trim_end_matches('/'))
        || descriptor.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
}

/// A path that a wildcard matches.
struct Match {
    path: String,
    is_link: bool,
}

/// The existing paths in a directory that a path with wildcards matches.
fn expanded(base: &Path, path: &str, limits: &Limits) -> Vec<Match> {
    let root = String::from(if path.starts_with('/') { "/" } else { "" });
    let mut paths = vec![Match { path: root, is_link: true }];
    for component in path.split('/').filter(|component| !component.is_empty()) {
        let mut next = Vec::new();
        for Match { path, .. } in &paths {
            if !component.contains(['*', '?', '[']) {
                next.push(Match { path: format!("{path}{component}/"), is_link: true });
                continue;
            }
            // The shell finds no matches in an unreadable directory, either.
            let Ok(entries) = std::fs::read_dir(base.join(path)) else { continue };
            for entry in entries.flatten() {
                if !limits.take(Limit::Entries, 1) || next.len() > MAX_MATCHES {
                    limits.give_up(Reason::Entries);
                    return Vec::new();
                }
                let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
                if fits(component, &name) {
                    let is_link = !entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir());
                    next.push(Match { path: format!("{path}{name}/"), is_link });
                }
            }
        }
        paths = next;
    }
    paths.iter_mut().for_each(|matched| {
        let end = matched.path.trim_end_matches('/').len();
        matched.path.truncate(end);
    });
    paths
}

/// Whether a wildcard may match a name. Brackets are only known to match one character.
fn fits(wildcard: &str, name: &str) -> bool {
    if let Some((before, after)) = wildcard.split_once(NUMBER)
        && !before.contains(['*', '?', '['])
        && !after.contains(['*', '?', '['])
    {
        let number = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        return number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()));
    }
    if name.starts_with('.') && !wildcard.starts_with('.') {
        return false;
    }
    let mut plain = String::new();
    let mut chars = wildcard.chars();
    while let Some(c) = chars.next() {
        if c == '[' && chars.as_str().get(1..).is_some_and(|rest| rest.contains(']')) {
            plain.push('?');
            chars.next();
            chars.by_ref().find(|c| *c == ']');
        } else {
            plain.push(c);
        }
    }
    glob(&plain.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
}

/// A pattern whose part from the first to the last wildcard is unknown.
fn without_wildcards(pattern: &str) -> String {
    let wild = ['*', '?', '[', ']'];
    match (pattern.find(wild), pattern.rfind(wild)) {
        (Some(first), Some(last)) => format!("{}{UNKNOWN}{}", &pattern[..first], &pattern[last + 1..]),
        _ => pattern.to_owned(),
    }
}

pub(super) fn glob(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The path of the directory above the first wildcard.
fn without_glob(path: &str) -> &str {
    match path.find(['*', '?', '[']) {
        Some(wild) => path[..wild].rfind('/').map_or("", |slash| &path[..=slash]),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::is_path;

    #[test]
    fn the_state_of_the_process_itself_is_no_file_elsewhere() {
        for path in ["/proc/self", "/proc/self/mounts", "/proc/self/fd", "/proc/self/fd/3", "/dev/fd/0"] {
            assert!(!is_path(path), "{path}");
        }
        for path in [
            "/proc/self/root",
            "/proc/self/cwd/x",
            "/proc/self/fd/3/x",
            "/proc/1/mounts",
            "/proc/self/mem",
            "/proc/self/cwd/../mounts",
        ] {
            assert!(is_path(path), "{path}");
        }
    }
}
