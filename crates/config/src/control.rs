//! The control files of a repository: the files that configure this program or git.
//!
//! They are read once. The program interprets the same bytes that the digests cover, so a file that changes in between
//! cannot bypass the user's decision. Only regular files inside the worktree that belong to the user are read. A
//! repository that exceeds a limit cannot be trusted.

mod git;
mod tree;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt::Write as _,
    fs,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
};

use codewright_proto::Rule;
use ring::digest;

use crate::{
    Dirs, FileProblem, Map, confined,
    document::{Origin, references, schema::Shape},
    file, load, markdown,
    request::{self, TrustRequest},
    skills,
};

/// The maximum number of control files.
const MAX_FILES: usize = 4000;
/// The maximum size of all control files together.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// The maximum number of requests; a user would not read more.
const MAX_REQUESTS: usize = 1000;
/// The maximum number of warnings.
const MAX_WARNINGS: usize = 50;

/// The directories of this program's configuration.
const OWN_FOLDERS: [&str; 2] = [".opencode", ".codewright"];
/// The directories of other programs that are read.
const OTHER_FOLDERS: [&str; 3] = [".claude/skills", ".claude/commands", ".agents/skills"];

/// The files of Claude Code that contain hooks.
const HOOK_FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];
/// The configuration files of the terminal client.
const TERMINAL_FILES: [&str; 2] = ["tui.json", "tui.jsonc"];

/// How much of a repository's configuration takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Everything except the keys that only the user can set.
    Full,
    /// Only the harmless parts.
    Inert,
}

/// The directories of a repository.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RepositoryPaths<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) worktree: &'a Path,
    pub(crate) dirs: &'a Dirs,
}

/// The control files of a directory, and the actions that they request.
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
    /// Reads the control files that apply to a directory.
    pub(crate) fn read(paths: RepositoryPaths<'_>) -> Self {
        let is_repository = paths.worktree.parent().is_some();
        let root = if is_repository { paths.worktree } else { paths.directory };
        let levels = load::levels(paths.worktree, paths.directory, &paths.dirs.home);
        let mut control = Self {
            root: root.to_owned(),
            levels: levels.into_iter().map(Path::to_owned).collect(),
            left_bytes: MAX_BYTES,
            ..Self::default()
        };
        for level in control.levels.clone() {
            control.level(&level, &paths.dirs.home);
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

    /// The actions that need trust; empty if there is nothing to decide.
    #[must_use]
    pub fn requests(&self) -> &[TrustRequest] {
        &self.requests
    }

    /// The SHA-256 digest of each control file, by the [key](path_key) of its path inside the root.
    #[must_use]
    pub fn digests(&self) -> &BTreeMap<String, String> {
        &self.digests
    }

    /// A digest of all control files, which identifies the content that a trust decision covers.
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

    /// The exceeded limit because of which the repository cannot be trusted.
    #[must_use]
    pub fn limit(&self) -> Option<&str> {
        self.limit.as_deref()
    }

    /// The files that were skipped, with the reasons.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The text of a control file; `None` if it was not read.
    pub(crate) fn text(&self, path: &Path) -> Option<Result<&str, FileProblem>> {
        self.texts.get(path).map(|text| text.as_deref().map_err(FileProblem::copy))
    }

    /// The files of Claude Code with hooks that were read, and their texts.
    pub fn hook_files(&self) -> impl Iterator<Item = (&Path, Result<&str, FileProblem>)> {
        let texts = self.texts.iter().filter(|(path, _)| is_hooks(path));
        texts.map(|(path, text)| (path.as_path(), text.as_deref().map_err(FileProblem::copy)))
    }

    /// The files in a directory, sorted.
    pub(crate) fn below<'a>(&'a self, folder: &'a Path) -> impl Iterator<Item = &'a Path> {
        let from = self.texts.range(folder.to_owned()..);
        from.map(|(path, _)| path.as_path()).take_while(move |path| path.starts_with(folder))
    }

    /// Reads the files of one directory level.
    fn level(&mut self, level: &Path, home: &Path) {
        for name in load::PROJECT_FILES.into_iter().chain(TERMINAL_FILES) {
            self.file(level.join(name));
        }
        for name in HOOK_FILES {
            // The directory in the home is the user's own.
            if level != home {
                self.file(level.join(name));
            }
        }
        for name in OWN_FOLDERS {
            // The directory in the home is the user's own.
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

    /// Reads a file, stores its digest, and keeps its text if it is interpreted.
    fn file(&mut self, path: PathBuf) {
        let boundary = self.boundary(&path);
        let relative = path.strip_prefix(&boundary).unwrap_or(&path).to_owned();
        let limit_bytes = if is_interpreted(&path) { file::MAX_FILE_BYTES } else { self.left_bytes };
        match confined::read(&boundary, &relative, limit_bytes) {
            Ok(bytes) => self.keep(path, bytes),
            Err(FileProblem::Missing) => {}
            Err(problem @ FileProblem::TooLarge { .. }) if !is_interpreted(&path) => {
                let name = self.display_name(&path);
                self.set_limit(format!("`{name}` {problem}"));
            }
            Err(problem) if is_interpreted(&path) => {
                self.digests.insert(self.key(&path), format!("unread: {problem}"));
                self.texts.insert(path, Err(problem));
            }
            Err(problem) => {
                self.digests.insert(self.key(&path), format!("unread: {problem}"));
            }
        }
    }

    fn keep(&mut self, path: PathBuf, bytes: Vec<u8>) {
        let Some(left) = self.left_bytes.checked_sub(bytes.len() as u64) else {
            return self.set_limit(format!("the control files are larger than {} MiB", MAX_BYTES >> 20));
        };
        self.left_bytes = left;
        if self.digests.len() >= MAX_FILES {
            return self.set_limit(format!("there are more than {MAX_FILES} control files"));
        }
        self.digests.insert(self.key(&path), hash(&bytes));
        if is_interpreted(&path) {
            self.texts.insert(path, String::from_utf8(bytes).map_err(|_| FileProblem::NotText));
        }
    }

    /// Records that a limit was exceeded. The rest was not read.
    fn set_limit(&mut self, limit: String) {
        self.limit.get_or_insert(limit);
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        }
    }

    /// The directory that a file must not lead out of: the worktree, or the file's level without a worktree.
    fn boundary(&self, path: &Path) -> PathBuf {
        if path.starts_with(&self.root) {
            return self.root.clone();
        }
        let level = self.levels.iter().rev().find(|level| path.starts_with(level));
        level.unwrap_or(&self.root).clone()
    }

    /// The identity of a file: its exact path relative to the root.
    fn key(&self, path: &Path) -> String {
        path_key(path.strip_prefix(&self.root).unwrap_or(path))
    }

    /// The name of a file in lists: its path relative to the root.
    fn display_name(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        request::plain(&inside.to_string_lossy())
    }

    /// Collects the requests of the files, and reads the files that documents insert. `looser` returns whether a
    /// permission rule would loosen the user's rules.
    pub(crate) fn collect_requests(&mut self, looser: &dyn Fn(&Rule) -> bool) {
        let mut requests = Vec::new();
        let paths: Vec<_> = self.texts.keys().cloned().collect();
        for path in paths {
            let name = self.display_name(&path);
            if is_terminal(&path) {
                let keys = self.document(&path).and_then(|document| document.get("keybinds").cloned());
                requests.extend(keys.map(|keys| request::of_keys(&name, &keys)));
            } else if is_hooks(&path) {
                let hooks = self.document(&path).and_then(|document| document.get("hooks").cloned());
                requests.extend(hooks.map(|hooks| request::hooks(&hooks, &name)).into_iter().flatten());
            } else if is_document(&path) {
                let Some(document) = self.document(&path) else { continue };
                for inserted in references(&document) {
                    self.read_inserted(&path, &inserted);
                }
                for folder in request::skill_folders(&document) {
                    self.skill_folder(&path, &folder);
                }
                requests.extend(request::of_document(&document, &name, looser));
            }
        }
        for (folder, key) in self.markdown_folders() {
            let found = markdown::entries_of(self, &folder, key);
            for (key, name, entry, path) in found.entries {
                let document =
                    load::normalize(Map::from_iter([(key.to_owned(), serde_json::json!({ name: entry }))]));
                requests.extend(request::of_document(&document, &self.display_name(&path), looser));
            }
        }
        let code = self.digests.keys().filter_map(|path| request::of_code(path));
        requests.extend(code);
        let skills: Vec<_> = self.texts.keys().filter(|path| skills::is_skill(path)).collect();
        requests.extend(skills.into_iter().map(|path| request::of_skill(&self.display_name(path))));
        if requests.len() > MAX_REQUESTS {
            self.set_limit(format!("the repository requests more than {MAX_REQUESTS} permissions"));
            requests.truncate(MAX_REQUESTS);
        }
        self.requests = requests;
        if !self.requests.is_empty() {
            self.git();
        }
    }

    /// The directories of Markdown files with agents, modes and commands.
    fn markdown_folders(&self) -> Vec<(PathBuf, &'static str)> {
        let folders = self.levels.iter().flat_map(|level| OWN_FOLDERS.map(|name| level.join(name)));
        folders.flat_map(|folder| markdown::FOLDERS.map(|(name, key)| (folder.join(name), key))).collect()
    }

    /// A document without inserted references, with values of any type.
    fn document(&self, path: &Path) -> Option<Map> {
        let text = self.text(path)?.ok()?;
        let node = Origin::new(self.display_name(path), text).read(&Shape::Any, None).ok()?;
        Some(load::normalize(node.into_map()))
    }

    /// Reads a file that a document inserts, so that the digests cover its content.
    fn read_inserted(&mut self, document: &Path, written: &str) {
        let Some(path) = self.inserted_path(document, written) else { return };
        if self.texts.contains_key(&path) {
            return;
        }
        let relative = path.strip_prefix(self.boundary(&path)).unwrap_or(&path).to_owned();
        match confined::read(&self.boundary(&path), &relative, file::MAX_FILE_BYTES) {
            Ok(bytes) => {
                self.digests.insert(self.key(&path), hash(&bytes));
                self.texts.insert(path, String::from_utf8(bytes).map_err(|_| FileProblem::NotText));
            }
            Err(problem) => {
                self.digests.insert(self.key(&path), format!("unread: {problem}"));
                self.texts.insert(path, Err(problem));
            }
        }
    }

    /// The path that `{file:written}` in a document refers to; `None` outside the worktree.
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

/// The beginning of the key of a path that is not text. No path contains it.
const BYTES: &str = "\0bytes:";

/// The identity of a path as text. Different paths have different keys: a path that is text is its own key, and of
/// others the key contains the bytes as hexadecimal numbers.
#[must_use]
pub fn path_key(path: &Path) -> String {
    let bytes = || format!("{BYTES}{}", hex(path.as_os_str().as_bytes()));
    path.to_str().map_or_else(bytes, str::to_owned)
}

/// The path of a key; `None` if the key is not valid.
#[must_use]
pub fn key_path(key: &str) -> Option<PathBuf> {
    let Some(digits) = key.strip_prefix(BYTES) else { return Some(key.into()) };
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    Some(OsString::from_vec(bytes?).into())
}

/// The text of a key in lists. It is no identity: several keys can have the same text.
#[must_use]
pub fn key_display(key: &str) -> String {
    let path = key_path(key).unwrap_or_default();
    request::plain(&path.to_string_lossy())
}

/// Whether a key of a decision from before keys were exact can belong to several paths.
#[must_use]
pub fn is_ambiguous_key(key: &str) -> bool {
    key.contains(['\'', '\u{fffd}', '\u{2026}'])
}

/// Whether the text of a file is interpreted, in addition to its digest.
fn is_interpreted(path: &Path) -> bool {
    is_document(path) || is_terminal(path) || is_hooks(path) || markdown::is_markdown(path)
}

/// Whether a file configures the terminal client.
fn is_terminal(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| TERMINAL_FILES.contains(&name))
}

/// Whether a file contains hooks of Claude Code.
fn is_hooks(path: &Path) -> bool {
    HOOK_FILES.iter().any(|name| path.ends_with(name))
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

/// Whether a directory and its parent are on the same file system. A search for configuration ends at a mount point.
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
