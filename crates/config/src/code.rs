//! Finds the files that contain plugins and tools: `plugin/*.ts` and `tool/*.ts` in configuration directories.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use crate::{ControlFiles, LoadInput, env, key_path, request};

/// The maximum number of files; more would not fit into a request.
const MAX_FILES: usize = 200;
/// The maximum number of entries of a directory that are read.
const MAX_ENTRIES: usize = 2000;
/// The extensions of files that are loaded.
const EXTENSIONS: [&str; 2] = ["js", "ts"];

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeKind {
    /// A plugin.
    Plugin,
    /// Tools, named after the file.
    Tool,
}

impl CodeKind {
    /// All kinds.
    const ALL: [Self; 2] = [Self::Plugin, Self::Tool];

    /// The directories of a kind.
    fn folders(self) -> [&'static str; 2] {
        match self {
            Self::Plugin => ["plugin", "plugins"],
            Self::Tool => ["tool", "tools"],
        }
    }
}

/// A file with code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeFile {
    /// Its absolute path.
    pub path: PathBuf,
    /// Its content.
    pub kind: CodeKind,
    /// Whether it belongs to the repository, and not to the user.
    pub is_repository: bool,
}

/// The state of a file with code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeStamp {
    path: PathBuf,
    modified: Option<SystemTime>,
    bytes: u64,
}

/// The files with code of a directory, and their state when they were found.
#[derive(Debug, Clone, Default)]
pub struct Code {
    /// The files, in the order of their directories.
    pub files: Vec<CodeFile>,
    /// The state of all files, also of those that are not trusted.
    pub stamps: Arc<Vec<CodeStamp>>,
    folders: Vec<PathBuf>,
    named: Vec<PathBuf>,
}

impl Code {
    /// Finds the files with code in configuration directories, in the order of `folders`. Those of a repository are only
    /// found if it is trusted: `control` contains its files. `named` are other files whose state matters.
    #[must_use]
    pub fn find(
        folders: Vec<PathBuf>,
        named: Vec<PathBuf>,
        input: LoadInput<'_>,
        control: Option<&ControlFiles>,
    ) -> Self {
        let stamps = Arc::new(stamps(&folders, &named));
        // Most directories contain no code.
        let files = if stamps.is_empty() { Vec::new() } else { code_files(&folders, input, control) };
        Self { files, stamps, folders, named }
    }

    /// Reports whether no file was added, changed or removed.
    #[must_use]
    pub fn is_current(&self) -> bool {
        *self.stamps == stamps(&self.folders, &self.named)
    }
}

/// The names of the files with code in configuration directories, without extensions. Tools are named after them.
pub(crate) fn names(folders: &[PathBuf]) -> impl Iterator<Item = String> {
    let names = CodeKind::ALL.iter().flat_map(|kind| kind.folders());
    let directories = names.flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let files = directories.flat_map(|directory| listed(&directory)).take(MAX_FILES);
    files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
}

fn stamps(folders: &[PathBuf], named: &[PathBuf]) -> Vec<CodeStamp> {
    let names = CodeKind::ALL.iter().flat_map(|kind| kind.folders());
    let directories = names.flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let paths = directories.flat_map(|directory| listed(&directory)).chain(named.iter().cloned());
    let stamp = |path: PathBuf| {
        let about = path.metadata().ok();
        let modified = about.as_ref().and_then(|about| about.modified().ok());
        CodeStamp { path, modified, bytes: about.map_or(0, |about| about.len()) }
    };
    paths.map(stamp).collect()
}

fn code_files(folders: &[PathBuf], input: LoadInput<'_>, control: Option<&ControlFiles>) -> Vec<CodeFile> {
    let mut found = Vec::new();
    for folder in folders {
        let is_repository = !is_users(folder, input);
        for kind in CodeKind::ALL {
            for name in kind.folders() {
                let directory = folder.join(name);
                let paths = match (is_repository, control) {
                    (false, _) => listed(&directory),
                    (true, Some(control)) => of_repository(control, &directory),
                    (true, None) => Vec::new(),
                };
                found.extend(paths.into_iter().map(|path| CodeFile { path, kind, is_repository }));
            }
        }
    }
    found.truncate(MAX_FILES);
    found
}

/// Whether a configuration directory is the user's own.
fn is_users(folder: &Path, input: LoadInput<'_>) -> bool {
    let LoadInput { directory, env, dirs, .. } = input;
    let of_home = [".opencode", ".codewright"].map(|name| dirs.home.join(name));
    let named = env.filled(env::CONFIG_DIR).map(|named| directory.join(named));
    folder == dirs.config
        || folder == dirs.own_config
        || of_home.iter().chain(&named).any(|own| own == folder)
}

fn listed(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.flatten().take(MAX_ENTRIES).map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| is_code(path) && path.is_file()).collect();
    paths.sort();
    paths
}

/// The files of a repository that its trust decision is about.
fn of_repository(control: &ControlFiles, directory: &Path) -> Vec<PathBuf> {
    let relative = control.digests().keys().filter(|name| request::of_code(name).is_some());
    let paths = relative.filter_map(|key| Some(control.root().join(key_path(key)?)));
    let is_here = |path: &PathBuf| path.parent() == Some(directory) && is_code(path);
    // A special file or link was not read.
    paths.filter(is_here).filter(|path| path.symlink_metadata().is_ok_and(|about| about.is_file())).collect()
}

fn is_code(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    // Files of types contain no code.
    EXTENSIONS.contains(&extension) && !path.to_string_lossy().ends_with(".d.ts")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dirs, Env};

    #[test]
    fn files_of_the_user_and_of_a_trusted_repository_are_found() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let env = Env::from_pairs([("HOME", root.join("home").to_str().unwrap())]);
        let dirs = Dirs::new(&env).unwrap();
        let (directory, worktree) = (root.join("repo"), root.join("repo"));
        for name in [
            "home/.config/opencode/plugin/a.ts",
            "home/.config/opencode/plugin/a.d.ts",
            "home/.config/codewright/tools/t.js",
            "home/.config/codewright/tools/readme.md",
            "repo/.opencode/plugins/p.js",
            "repo/.opencode/tool/math.ts",
            "repo/.opencode/tool/deeper/no.ts",
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::create_dir_all(worktree.join(".git")).unwrap();
        let input = LoadInput { directory: &directory, worktree: &worktree, env: &env, dirs: &dirs };
        let (loaded, control) =
            crate::open(input, &[], &crate::Overlay::default(), |_| crate::Trust::Full).unwrap();
        let names = |control: Option<&ControlFiles>| -> Vec<(String, CodeKind, bool)> {
            let files = code_files(&loaded.folders, input, control);
            let name = |path: PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
            files.into_iter().map(|file| (name(file.path), file.kind, file.is_repository)).collect()
        };
        let code = Code::find(loaded.folders.clone(), Vec::new(), input, Some(&control));
        assert!(code.is_current() && code.files.len() == 4);
        let users = [
            ("home/.config/opencode/plugin/a.ts".to_owned(), CodeKind::Plugin, false),
            ("home/.config/codewright/tools/t.js".to_owned(), CodeKind::Tool, false),
        ];
        assert_eq!(names(None), users);
        let repository = [
            ("repo/.opencode/plugins/p.js".to_owned(), CodeKind::Plugin, true),
            ("repo/.opencode/tool/math.ts".to_owned(), CodeKind::Tool, true),
        ];
        assert_eq!(names(Some(&control)), [users, repository].concat());
        fs::write(root.join("repo/.opencode/tool/new.js"), "").unwrap();
        assert!(!code.is_current());
    }
}
