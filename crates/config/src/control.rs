//! The control files of a repository: the files that configure this program or git.
//!
//! They are read once. The program interprets the same bytes that the digests cover, so a file that
//! changes in between cannot slip past the user's decision. Only regular files that belong to the user
//! and lie inside the worktree are read. A limit that is reached makes the repository impossible to trust.

mod git;
mod tree;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use codewright_proto::Rule;
use ring::digest;

use crate::{
    Dirs, FileProblem, Map, beneath,
    document::{Origin, references, schema::Shape},
    file, load, markdown,
    request::{self, TrustRequest},
};

/// Control files of one repository.
const MAX_FILES: usize = 4000;
/// Bytes of all control files together.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Requests of one repository; a person would not read more.
const MAX_REQUESTS: usize = 1000;
/// Warnings about control files.
const MAX_WARNINGS: usize = 50;

/// The folders that hold this program's configuration.
const OWN_FOLDERS: [&str; 2] = [".opencode", ".codewright"];
/// The folders of other programs whose files are read.
const OTHER_FOLDERS: [&str; 3] = [".claude/skills", ".claude/commands", ".agents/skills"];

/// The files of the terminal client.
const TERMINAL_FILES: [&str; 2] = ["tui.json", "tui.jsonc"];

/// How much of a repository's configuration takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// All of it, but for what no repository may set.
    Full,
    /// Only the parts that cannot hurt.
    Inert,
}

/// Where a repository lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) worktree: &'a Path,
    pub(crate) dirs: &'a Dirs,
}

/// The control files of one directory, and what they ask for.
#[derive(Debug, Default)]
pub struct ControlFiles {
    root: PathBuf,
    levels: Vec<PathBuf>,
    texts: BTreeMap<PathBuf, Result<String, FileProblem>>,
    digests: BTreeMap<String, String>,
    requests: Vec<TrustRequest>,
    warnings: Vec<String>,
    left_bytes: u64,
    limit: Option<String>,
}

impl ControlFiles {
    /// Reads the control files that hold in a directory.
    pub(crate) fn read(ground: Ground<'_>) -> Self {
        let is_repository = ground.worktree.parent().is_some();
        let root = if is_repository { ground.worktree } else { ground.directory };
        let levels = load::levels(ground.worktree, ground.directory, &ground.dirs.home);
        let mut control = Self {
            root: root.to_owned(),
            levels: levels.into_iter().map(Path::to_owned).collect(),
            left_bytes: MAX_BYTES,
            ..Self::default()
        };
        for level in control.levels.clone() {
            control.level(&level, &ground.dirs.home);
        }
        control
    }

    /// Whether there is no control file.
    pub(crate) fn is_empty(&self) -> bool {
        self.digests.is_empty() && self.warnings.is_empty() && self.limit.is_none()
    }

    /// The directory that a trust decision is about.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The actions that wait for trust; empty when there is nothing to decide.
    #[must_use]
    pub fn requests(&self) -> &[TrustRequest] {
        &self.requests
    }

    /// The SHA-256 digest of each control file, by its path inside the root.
    #[must_use]
    pub fn digests(&self) -> &BTreeMap<String, String> {
        &self.digests
    }

    /// One digest of all control files, which names what a user has decided about.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut all = digest::Context::new(&digest::SHA256);
        for (path, digest) in &self.digests {
            all.update(path.as_bytes());
            all.update(&[0]);
            all.update(digest.as_bytes());
            all.update(&[0]);
        }
        hex(all.finish().as_ref())
    }

    /// Why the repository cannot be trusted whatever the user says, if a limit was reached.
    #[must_use]
    pub fn limit(&self) -> Option<&str> {
        self.limit.as_deref()
    }

    /// Files that were left out, and why.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The text of a control file; `None` if it was not read.
    pub(crate) fn text(&self, path: &Path) -> Option<Result<&str, FileProblem>> {
        self.texts.get(path).map(|text| text.as_deref().map_err(FileProblem::copy))
    }

    /// The files below a folder whose names end in `suffix`, in order.
    pub(crate) fn below<'a>(&'a self, folder: &'a Path, suffix: &'a str) -> impl Iterator<Item = &'a Path> {
        let from = self.texts.range(folder.to_owned()..);
        let below = from.map(|(path, _)| path.as_path()).take_while(move |path| path.starts_with(folder));
        below.filter(move |path| path.to_string_lossy().ends_with(suffix))
    }

    /// Reads the files of one level.
    fn level(&mut self, level: &Path, home: &Path) {
        for name in load::PROJECT_FILES.into_iter().chain(TERMINAL_FILES) {
            self.file(level.join(name));
        }
        for name in OWN_FOLDERS {
            // The folder in the home directory is the user's own.
            if level != home {
                self.tree(&level.join(name));
            }
        }
        for name in OTHER_FOLDERS {
            if level != home {
                self.tree(&level.join(name));
            }
        }
    }

    /// Reads one file, keeps its text if it is one that is interpreted, and notes its digest.
    fn file(&mut self, path: PathBuf) {
        let boundary = self.boundary(&path);
        let relative = path.strip_prefix(&boundary).unwrap_or(&path).to_owned();
        let limit_bytes = if is_interpreted(&path) { file::MAX_FILE_BYTES } else { self.left_bytes };
        match beneath::read(&boundary, &relative, limit_bytes) {
            Ok(bytes) => self.keep(path, bytes),
            Err(FileProblem::Missing) => {}
            Err(problem @ FileProblem::TooLarge { .. }) if !is_interpreted(&path) => {
                let shown = self.shown(&path);
                self.reach(format!("`{shown}` {problem}"));
            }
            Err(problem) if is_interpreted(&path) => {
                self.digests.insert(self.shown(&path), format!("unread: {problem}"));
                self.texts.insert(path, Err(problem));
            }
            Err(problem) => {
                self.digests.insert(self.shown(&path), format!("unread: {problem}"));
            }
        }
    }

    fn keep(&mut self, path: PathBuf, bytes: Vec<u8>) {
        let Some(left) = self.left_bytes.checked_sub(bytes.len() as u64) else {
            return self.reach(format!("the control files have more than {} MiB", MAX_BYTES >> 20));
        };
        self.left_bytes = left;
        if self.digests.len() >= MAX_FILES {
            return self.reach(format!("there are more than {MAX_FILES} control files"));
        }
        self.digests.insert(self.shown(&path), hash(&bytes));
        if is_interpreted(&path) {
            self.texts.insert(path, String::from_utf8(bytes).map_err(|_| FileProblem::NotText));
        }
    }

    /// Notes that a limit was reached: what lies beyond it was not looked at.
    fn reach(&mut self, limit: String) {
        self.limit.get_or_insert(limit);
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        }
    }

    /// The directory that a file must not lead out of: the worktree, or outside of one its own level.
    fn boundary(&self, path: &Path) -> PathBuf {
        if path.starts_with(&self.root) {
            return self.root.clone();
        }
        let level = self.levels.iter().rev().find(|level| path.starts_with(level));
        level.unwrap_or(&self.root).clone()
    }

    /// How a file is called in lists: its path inside the root.
    fn shown(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        request::plain(&inside.to_string_lossy())
    }

    /// Lists what the files ask for, and reads the files that the documents insert. `looser` tells
    /// whether a permission rule would loosen the user's own.
    pub(crate) fn collect_requests(&mut self, looser: &dyn Fn(&Rule) -> bool) {
        let mut requests = Vec::new();
        let paths: Vec<_> = self.texts.keys().cloned().collect();
        for path in paths {
            let shown = self.shown(&path);
            if is_terminal(&path) {
                let keys = self.document(&path).and_then(|document| document.get("keybinds").cloned());
                requests.extend(keys.map(|keys| request::of_keys(&shown, &keys)));
            } else if is_document(&path) {
                let Some(document) = self.document(&path) else { continue };
                for inserted in references(&document) {
                    self.inserted(&path, &inserted);
                }
                for folder in request::skill_folders(&document) {
                    self.skill_folder(&path, &folder);
                }
                requests.extend(request::of_document(&document, &shown, looser));
            }
        }
        for (folder, key) in self.markdown_folders() {
            let found = markdown::entries_of(self, &folder, key);
            for (key, name, entry, path) in found.entries {
                let document =
                    load::normal(Map::from_iter([(key.to_owned(), serde_json::json!({ name: entry }))]));
                requests.extend(request::of_document(&document, &self.shown(&path), looser));
            }
        }
        let code = self.digests.keys().filter_map(|path| request::of_code(path));
        requests.extend(code);
        let skills: Vec<_> = self.texts.keys().filter(|path| path.ends_with("SKILL.md")).collect();
        requests.extend(skills.into_iter().map(|path| request::of_skill(&self.shown(path))));
        if requests.len() > MAX_REQUESTS {
            self.reach(format!("the repository asks for more than {MAX_REQUESTS} permissions"));
            requests.truncate(MAX_REQUESTS);
        }
        self.requests = requests;
        if !self.requests.is_empty() {
            self.git();
        }
    }

    /// The folders that may hold agents, modes and commands as Markdown files.
    fn markdown_folders(&self) -> Vec<(PathBuf, &'static str)> {
        let folders = self.levels.iter().flat_map(|level| OWN_FOLDERS.map(|name| level.join(name)));
        folders.flat_map(|folder| markdown::FOLDERS.map(|(name, key)| (folder.join(name), key))).collect()
    }

    /// A document as it is written: nothing is inserted, and values of any type are accepted.
    fn document(&self, path: &Path) -> Option<Map> {
        let text = self.text(path)?.ok()?;
        let node = Origin::new(self.shown(path), text).read(&Shape::Any, None).ok()?;
        Some(load::normal(node.into_map()))
    }

    /// Reads a file that a document inserts, so that its content counts as the document's.
    fn inserted(&mut self, document: &Path, written: &str) {
        let Some(path) = self.inserted_path(document, written) else { return };
        if self.texts.contains_key(&path) {
            return;
        }
        let relative = path.strip_prefix(self.boundary(&path)).unwrap_or(&path).to_owned();
        match beneath::read(&self.boundary(&path), &relative, file::MAX_FILE_BYTES) {
            Ok(bytes) => {
                self.digests.insert(self.shown(&path), hash(&bytes));
                self.texts.insert(path, String::from_utf8(bytes).map_err(|_| FileProblem::NotText));
            }
            Err(problem) => {
                self.digests.insert(self.shown(&path), format!("unread: {problem}"));
                self.texts.insert(path, Err(problem));
            }
        }
    }

    /// The file that `{file:written}` in a document means; `None` outside the worktree.
    pub(crate) fn inserted_path(&self, document: &Path, written: &str) -> Option<PathBuf> {
        let written = written.trim();
        if written.starts_with('~') || written.contains("{env:") {
            return None;
        }
        let base = document.parent().unwrap_or(&self.root);
        let path = lexical(&base.join(written))?;
        (path.starts_with(&self.root) || path.starts_with(self.boundary(document))).then_some(path)
    }

    fn skill_folder(&mut self, document: &Path, written: &str) {
        let directory = self.levels.last().cloned().unwrap_or_default();
        if written.starts_with('~') {
            return;
        }
        let Some(folder) = lexical(&directory.join(written)) else { return };
        if folder.starts_with(self.boundary(document)) {
            self.tree(&folder);
        }
    }
}

/// Whether the text of a file is interpreted, and not only its digest taken.
fn is_interpreted(path: &Path) -> bool {
    is_document(path) || is_terminal(path) || path.extension().is_some_and(|extension| extension == "md")
}

/// Whether a file configures the terminal client.
fn is_terminal(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| TERMINAL_FILES.contains(&name))
}

/// Whether a file is a configuration document.
fn is_document(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let above = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    load::PROJECT_FILES.contains(&name) || (above == ".opencode" && load::DOT_FILES.contains(&name))
}

/// A path without `.` and `..`; `None` if it leaves the file system's root.
fn lexical(path: &Path) -> Option<PathBuf> {
    use std::path::Component;
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !clean.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            part => clean.push(part),
        }
    }
    Some(clean)
}

/// Whether a configuration search may go from a directory to the one above it: a mount point ends it.
pub(crate) fn is_same_mount(below: &Path, above: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    device(below) == device(above)
}

fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
