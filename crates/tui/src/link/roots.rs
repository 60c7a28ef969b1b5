//! The files that references name, and the targets of links.
//!
//! Only files inside the directory or the worktree are linked, after symbolic links were resolved.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::reference::{FileReference, Reference};

/// The maximum length of a target, in bytes. Terminals ignore longer ones.
const MAX_TARGET_BYTES: usize = 2_048;
/// The maximum number of cached targets.
const MAX_TARGETS: usize = 1_024;
/// How long a target is cached, because files are created and removed.
const CACHE_TIME: Duration = Duration::from_secs(5);
/// The maximum number of files that are looked up for a frame.
const MAX_LOOKUPS: usize = 64;
/// Extensions of files that a desktop may execute when they are opened.
const LAUNCHED: [&str; 24] = [
    "action", "app", "appimage", "bat", "cmd", "com", "command", "desktop", "exe", "fileloc", "inetloc",
    "jar", "lnk", "msi", "pif", "ps1", "reg", "scpt", "scr", "terminal", "tool", "url", "webloc", "workflow",
];

/// The directories whose files can be opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Roots {
    pub(crate) directory: String,
    pub(crate) worktree: String,
}

impl Roots {
    /// Whether a path is inside one of the directories.
    pub(crate) fn contain(&self, path: &Path) -> bool {
        self.existing().iter().any(|root| path.starts_with(root))
            || self.usable().any(|root| path.starts_with(root))
    }

    /// Returns the directories. Without a repository the worktree is the root directory, which would allow
    /// every file, so it is left out.
    fn usable(&self) -> impl Iterator<Item = &Path> {
        let roots = [&self.directory, &self.worktree].into_iter().map(Path::new);
        roots.filter(|root| root.is_absolute() && root.parent().is_some())
    }

    /// Returns the existing directories, with symbolic links resolved.
    fn existing(&self) -> Vec<PathBuf> {
        self.usable().filter_map(|root| root.canonicalize().ok()).collect()
    }

    /// Returns the existing file of a reference, with symbolic links resolved.
    pub(crate) fn file(&self, file: &FileReference) -> Option<(PathBuf, Metadata)> {
        let roots = self.existing();
        let found = roots.iter().find_map(|root| {
            let path = root.join(&file.path).canonicalize().ok()?;
            let metadata = path.metadata().ok()?;
            metadata.is_file().then_some((path, metadata))
        });
        found.filter(|(path, _)| {
            let is_clean = path.to_str().is_some_and(|path| !path.chars().any(char::is_control));
            is_clean && roots.iter().any(|root| path.starts_with(root))
        })
    }
}

/// Computes the targets of links, and caches them.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    roots: Roots,
    since: Option<Instant>,
    known: HashMap<Reference, Option<Rc<str>>>,
}

impl Targets {
    /// Forgets targets that are too old or belong to other directories. Call it before each frame.
    pub(crate) fn refresh(&mut self, roots: Roots) {
        let is_old = self.since.is_none_or(|since| since.elapsed() >= CACHE_TIME);
        if is_old || self.roots != roots || self.known.len() >= MAX_TARGETS {
            self.known.clear();
            self.since = Some(Instant::now());
            self.roots = roots;
        }
    }

    /// Returns the targets of references, in order.
    pub(crate) fn of<'a>(
        &mut self,
        references: impl Iterator<Item = &'a Reference>,
        with_files: bool,
    ) -> Vec<Option<Rc<str>>> {
        let mut lookups = 0;
        let target = |reference: &Reference| {
            if let Some(known) = self.known.get(reference) {
                return known.clone();
            }
            let target = match reference {
                Reference::Url(url) => url_target(url),
                Reference::File(file) if with_files && lookups < MAX_LOOKUPS => {
                    lookups += 1;
                    file_target(&self.roots, file)
                }
                Reference::File(_) => return None,
            };
            let target = target.map(Rc::from);
            self.known.insert(reference.clone(), target.clone());
            target
        };
        references.map(target).collect()
    }
}

/// Returns the target of a URL: the URL in ASCII.
fn url_target(url: &str) -> Option<String> {
    let mut target = String::with_capacity(url.len());
    for byte in url.bytes() {
        match byte {
            b'!'..=b'~' => target.push(char::from(byte)),
            byte => encode(&mut target, byte),
        }
    }
    (target.len() <= MAX_TARGET_BYTES).then_some(target)
}

/// Returns the target of a file, unless opening it could execute it.
fn file_target(roots: &Roots, file: &FileReference) -> Option<String> {
    let (path, metadata) = roots.file(file)?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let is_launched = LAUNCHED.contains(&extension.to_ascii_lowercase().as_str());
    if is_launched || metadata.permissions().mode() & 0o111 != 0 {
        return None;
    }
    let mut target = "file://".to_owned();
    for byte in path.to_str()?.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                target.push(char::from(byte));
            }
            byte => encode(&mut target, byte),
        }
    }
    if let Some(line) = file.line {
        target.push_str(&format!("#{line}"));
    }
    (target.len() <= MAX_TARGET_BYTES).then_some(target)
}

fn encode(target: &mut String, byte: u8) {
    // Writing to a string cannot fail.
    write!(target, "%{byte:02X}").ok();
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn file(path: &str) -> Reference {
        Reference::File(FileReference { path: path.to_owned(), line: None, column: None })
    }

    #[test]
    fn only_files_inside_the_worktree_are_linked() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let worktree = home.join("work");
        std::fs::create_dir_all(worktree.join("sub")).unwrap();
        for name in ["work/a b.rs", "work/sub/ä#.rs", "work/run.command", "work/tool.py", "secret.rs"] {
            std::fs::write(home.join(name), "x").unwrap();
        }
        std::fs::set_permissions(worktree.join("tool.py"), std::fs::Permissions::from_mode(0o755)).unwrap();
        symlink(home.join("secret.rs"), worktree.join("link.rs")).unwrap();
        let (directory, worktree) = (worktree.join("sub"), worktree);
        let roots = Roots {
            directory: directory.to_str().unwrap().to_owned(),
            worktree: worktree.to_str().unwrap().to_owned(),
        };
        let mut targets = Targets::default();
        targets.refresh(roots);
        let mut target = |reference: Reference| targets.of([&reference].into_iter(), true)[0].clone();
        let base = format!("file://{}", worktree.to_str().unwrap());
        assert_eq!(target(file("a b.rs")).as_deref(), Some(format!("{base}/a%20b.rs").as_str()));
        assert_eq!(target(file("ä#.rs")).as_deref(), Some(format!("{base}/sub/%C3%A4%23.rs").as_str()));
        let lined = FileReference { path: "a b.rs".to_owned(), line: Some(7), column: Some(2) };
        assert_eq!(target(Reference::File(lined)).as_deref(), Some(format!("{base}/a%20b.rs#7").as_str()));
        let absolute = worktree.join("a b.rs").to_str().unwrap().to_owned();
        assert!(target(file(&absolute)).is_some());
        let secret = home.join("secret.rs").to_str().unwrap().to_owned();
        for path in
            ["link.rs", "../secret.rs", "../../secret.rs", &secret, "sub", "missing.rs", "/etc/passwd"]
        {
            assert_eq!(target(file(path)), None, "{path}");
        }
        // A click on such a link could execute the file.
        for path in ["run.command", "tool.py"] {
            assert_eq!(target(file(path)), None, "{path}");
        }
    }

    #[test]
    fn without_a_repository_only_files_of_the_directory_are_linked() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("a.rs"), "x").unwrap();
        let directory = home.path().to_str().unwrap().to_owned();
        let roots = Roots { directory, worktree: "/".to_owned() };
        let reference = |path: &str| FileReference { path: path.to_owned(), line: None, column: None };
        assert!(roots.file(&reference("a.rs")).is_some());
        assert!(roots.file(&reference("/etc/passwd")).is_none());
    }

    #[test]
    fn a_url_is_encoded_and_bounded() {
        assert_eq!(
            url_target("https://a.example/ä b\u{7}").as_deref(),
            Some("https://a.example/%C3%A4%20b%07")
        );
        assert_eq!(url_target(&format!("https://a.example/{}", "ä".repeat(1_000))), None);
    }
}
