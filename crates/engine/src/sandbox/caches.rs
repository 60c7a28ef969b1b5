//! Private caches of build tools, one set for each project.
//!
//! Build tools write caches below the home directory, which commands cannot write. Each project has its own caches
//! instead, so that ordinary work needs no permission and no command can change the code that another project or the
//! user builds. A variable that the user has set is kept. What cargo has downloaded already is linked, read-only.

use std::collections::HashSet;
use std::fs::{File, create_dir_all, read_dir, read_link, remove_dir_all, remove_file};
use std::io::Error;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use codewright_config::Env;
use codewright_workspace::make_private_directory;

/// The directory of all caches, in the state directory.
const ALL: &str = "sandbox-caches";
/// The variables that move a cache, and its directory.
const VARIABLES: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", "xdg"),
    ("GOCACHE", "go-build"),
    ("GOMODCACHE", "go-mod"),
    ("npm_config_cache", "npm"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("PIP_CACHE_DIR", "pip"),
    ("NUGET_PACKAGES", "nuget"),
    ("BUN_INSTALL_CACHE_DIR", "bun"),
    ("CCACHE_DIR", "ccache"),
    ("SCCACHE_DIR", "sccache"),
    // Not a cache: Chromium creates the profile of each start there and does not start without it.
    ("CHROME_CONFIG_HOME", "chromium"),
];
/// Variables that name programs in the user's caches, which commands only read.
const READ_ONLY: &[(&str, &str)] =
    &[("PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright"), ("CYPRESS_CACHE_FOLDER", ".cache/Cypress")];
/// Cargo's directory, which contains more than a cache.
const CARGO: (&str, &str) = ("CARGO_HOME", "cargo");
/// The content of cargo's directory that is used as it is. Credentials are left out.
const CARGO_SHARED: &[&str] = &["bin", "config", "config.toml", "env"];
/// The directories of cargo's downloads, with one level of directories between them and the entries.
const CARGO_DOWNLOADS: &[&str] = &["registry/cache", "registry/src", "registry/index", "git/checkouts"];
/// The directory of cargo's clones.
const CARGO_CLONES: &str = "git/db";
/// The file whose age is that of the links.
const LINKED: &str = ".linked";
/// The file whose age is that of the last use.
const USED: &str = ".used";
/// The largest number of links that are created.
const MAX_LINKS: usize = 20_000;
/// The time after which unused caches are removed.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The interval at which the size of caches is checked.
const CHECK_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// The largest size of the caches of one project. Larger ones are removed.
const MAX_BYTES: u64 = 10 * 1024 * 1024 * 1024;
/// The largest number of files in the caches of one project. More are removed.
const MAX_FILES: usize = 1_000_000;
/// The largest number of entries of the caches of one project that are read at once.
const MAX_ENTRIES: usize = 100;
/// The largest number of projects that are looked at.
const MAX_PROJECTS: usize = 1000;

/// The caches of one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caches(PathBuf);

impl Caches {
    /// The caches of a worktree.
    pub(crate) fn of(state: &Path, root: &Path) -> Self {
        Self(state.join(ALL).join(name(root)))
    }

    /// The caches in a directory that is removed with its session.
    pub(crate) fn within(temporary: &Path) -> Self {
        Self(temporary.join(ALL))
    }

    /// The directory of the caches.
    pub(crate) fn directory(&self) -> &Path {
        &self.0
    }

    /// Creates the directories and links.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be created.
    pub(crate) fn prepare(&self, user: &Env, home: &Path) -> Result<(), Error> {
        if age(&self.0.join(USED)).is_none_or(|age| age > CHECK_EVERY) {
            if let Some(all) = self.0.parent().filter(|all| all.ends_with(ALL)) {
                sweep(all);
                make_private_directory(all)?;
            }
            if is_too_large(&self.0) {
                remove_dir_all(&self.0)?;
            }
            make_private_directory(&self.0)?;
            File::create(self.0.join(USED))?;
        }
        let present = directories(&self.0);
        for (_, directory) in VARIABLES.iter().filter(|(_, directory)| !present.contains(*directory)) {
            create_dir_all(self.0.join(directory))?;
        }
        if user.get(CARGO.0).is_none() && home.join(".cargo").is_dir() {
            link_cargo(&home.join(".cargo"), &self.0.join(CARGO.1))?;
        }
        Ok(())
    }

    /// The variables for commands.
    pub(crate) fn variables(&self, user: &Env, home: &Path) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut variables: Vec<(String, String)> = Vec::new();
        let present = directories(&self.0);
        for (name, directory) in VARIABLES.iter().chain([&CARGO]) {
            let path = self.0.join(directory);
            if present.contains(*directory) || path.is_dir() {
                variables.push(((*name).to_owned(), text(path)));
            }
        }
        for (name, directory) in READ_ONLY.iter().map(|(name, directory)| (name, home.join(directory))) {
            if directory.is_dir() {
                variables.push(((*name).to_owned(), text(directory)));
            }
        }
        let downloaded = home.join("go/pkg/mod/cache/download");
        if user.get("GOMODCACHE").or(user.get("GOPATH")).is_none() && downloaded.is_dir() {
            // Modules that the user has downloaded are taken from there.
            let proxy = format!("file://{},https://proxy.golang.org,direct", downloaded.to_string_lossy());
            variables.push(("GOPROXY".to_owned(), proxy));
        }
        // Otherwise the directories of modules are read-only, so that nobody can remove them.
        variables.push(("GOFLAGS".to_owned(), "-modcacherw".to_owned()));
        variables.retain(|(name, _)| user.get(name).is_none());
        variables
    }
}

/// The longest name of a directory.
const MAX_NAME_BYTES: usize = 240;

/// A name for a path that no other path has.
fn name(root: &Path) -> String {
    use std::fmt::Write as _;
    let mut name = String::new();
    for byte in root.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' => name.push(char::from(byte)),
            // Writing to a text cannot fail.
            other => drop(write!(name, "-{other:02x}")),
        }
    }
    // The longest name of a file is 255 bytes. Projects with the same long end share caches.
    let start = name.len().saturating_sub(MAX_NAME_BYTES);
    name.split_off(start)
}

/// The age of a file. A file of the future, after the clock was set back, is new.
fn age(path: &Path) -> Option<Duration> {
    let modified = path.symlink_metadata().ok()?.modified().ok()?;
    Some(modified.elapsed().unwrap_or_default())
}

/// Removes the caches of projects that ran no command for a month.
fn sweep(all: &Path) {
    for entry in read_dir(all).into_iter().flatten().flatten().take(MAX_PROJECTS) {
        let path = entry.path();
        // Another process may be about to create the file.
        if age(&path.join(USED)).or_else(|| age(&path)).is_none_or(|age| age > UNUSED) {
            // What cannot be removed now is tried again later.
            drop(remove_dir_all(path));
        }
    }
}

/// Whether the files of a directory exceed a limit. Links are not followed.
fn is_too_large(directory: &Path) -> bool {
    let (mut waiting, mut bytes, mut files) = (vec![directory.to_owned()], 0_u64, 0_usize);
    while let Some(directory) = waiting.pop() {
        for entry in read_dir(directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(metadata.len());
            files += 1;
            if bytes > MAX_BYTES || files > MAX_FILES {
                return true;
            }
            if metadata.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    false
}

/// Makes the downloads of cargo available in another directory. New downloads are stored there.
fn link_cargo(from: &Path, to: &Path) -> Result<(), Error> {
    create_dir_all(to)?;
    let groups: Vec<(&str, PathBuf)> = CARGO_DOWNLOADS
        .iter()
        .flat_map(|kind| entries(&from.join(kind)).into_iter().map(move |group| (*kind, group)))
        .collect();
    let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let last = modified(&to.join(LINKED)).unwrap_or(SystemTime::UNIX_EPOCH);
    let is_newer = |path: &Path| modified(path).is_some_and(|modified| modified > last);
    let clones = from.join(CARGO_CLONES);
    if !is_newer(from) && !is_newer(&clones) && !groups.iter().any(|(_, group)| is_newer(group)) {
        return Ok(());
    }
    // Downloads during the work below are newer than this.
    File::create(to.join(LINKED))?;
    let mut left = MAX_LINKS;
    for name in CARGO_SHARED {
        link(&from.join(name), &to.join(name), &mut left)?;
    }
    for entry in entries(&clones) {
        link_into(&entry, &to.join(CARGO_CLONES), &mut left)?;
    }
    for (kind, group) in groups {
        let Some(name) = group.file_name() else { continue };
        for entry in entries(&group) {
            link_into(&entry, &to.join(kind).join(name), &mut left)?;
        }
    }
    Ok(())
}

/// The names of directories in a directory, without links. Commands can write it, so only the first entries are read: the
/// callers look for what is missing here.
fn directories(directory: &Path) -> HashSet<String> {
    let entries = read_dir(directory).into_iter().flatten().take(MAX_ENTRIES).flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn link_into(from: &Path, directory: &Path, left: &mut usize) -> Result<(), Error> {
    create_dir_all(directory)?;
    let Some(name) = from.file_name() else { return Ok(()) };
    link(from, &directory.join(name), left)
}

/// Creates a link unless something else is there. A link to nothing is replaced.
fn link(from: &Path, to: &Path, left: &mut usize) -> Result<(), Error> {
    if *left == 0 || !from.exists() {
        return Ok(());
    }
    if read_link(to).is_ok() && !to.exists() {
        remove_file(to)?;
    }
    if to.symlink_metadata().is_err() {
        *left -= 1;
        symlink(from, to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::write;

    use super::*;

    #[test]
    fn downloads_of_cargo_are_linked_and_credentials_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        for (name, content) in [
            ("registry/cache/index/a-1.crate", "a"),
            ("registry/src/index/a-1/.cargo-ok", ""),
            ("registry/index/index/config.json", "{}"),
            ("git/db/b/HEAD", ""),
            ("credentials.toml", "secret"),
            ("config.toml", ""),
        ] {
            let path = home.join(".cargo").join(name);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, content).unwrap();
        }
        let (user, caches) =
            (Env::default(), Caches::of(&folder.path().join("state"), Path::new("/work/a b")));
        caches.prepare(&user, &home).unwrap();
        let cargo = caches.directory().join("cargo");
        for (name, expected) in [
            ("registry/cache/index/a-1.crate", true),
            ("registry/src/index/a-1/.cargo-ok", true),
            ("registry/index/index/config.json", true),
            ("git/db/b/HEAD", true),
            ("config.toml", true),
            ("credentials.toml", false),
        ] {
            assert_eq!(cargo.join(name).exists(), expected, "{name}");
        }
        // A new download of a command is its own file.
        write(cargo.join("registry/cache/index/new.crate"), "x").unwrap();
        assert!(!home.join(".cargo/registry/cache/index/new.crate").exists());
        // One of the user appears at the next command.
        write(home.join(".cargo/registry/cache/index/c-1.crate"), "c").unwrap();
        let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        File::open(cargo.join(LINKED)).unwrap().set_modified(past).unwrap();
        caches.prepare(&user, &home).unwrap();
        assert!(cargo.join("registry/cache/index/c-1.crate").exists());
    }

    #[test]
    fn only_variables_that_the_user_has_not_set_are_set() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        create_dir_all(home.join("go/pkg/mod/cache/download")).unwrap();
        let user = Env::from_pairs([("GOCACHE", "/mine"), ("CARGO_HOME", "/cargo")]);
        let caches = Caches::of(folder.path(), Path::new("/work"));
        caches.prepare(&user, &home).unwrap();
        let variables = caches.variables(&user, &home);
        let value =
            |wanted: &str| variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
        assert_eq!(
            (value("GOCACHE"), value("CARGO_HOME"), value("PLAYWRIGHT_BROWSERS_PATH")),
            (None, None, None)
        );
        assert!(value("PIP_CACHE_DIR").unwrap().ends_with("sandbox-caches/-2fwork/pip"));
        assert!(value("GOPROXY").unwrap().starts_with("file:///"));
    }

    #[test]
    fn caches_that_nobody_uses_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (user, home) = (Env::default(), folder.path().join("home"));
        let old = Caches::of(folder.path(), Path::new("/old"));
        old.prepare(&user, &home).unwrap();
        let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        File::open(old.directory().join(USED)).unwrap().set_modified(past).unwrap();
        Caches::of(folder.path(), Path::new("/new")).prepare(&user, &home).unwrap();
        assert!(!old.directory().exists());
    }

    #[test]
    fn caches_of_the_future_and_those_that_begin_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (user, home) = (Env::default(), folder.path().join("home"));
        let [ahead, begun] = ["/ahead", "/begun"].map(|root| Caches::of(folder.path(), Path::new(root)));
        ahead.prepare(&user, &home).unwrap();
        // A time after every clock of a machine.
        let future = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 32);
        File::open(ahead.directory().join(USED)).unwrap().set_modified(future).unwrap();
        create_dir_all(begun.directory()).unwrap();
        Caches::of(folder.path(), Path::new("/new")).prepare(&user, &home).unwrap();
        ahead.prepare(&user, &home).unwrap();
        assert!(ahead.directory().exists() && begun.directory().exists());
    }
}
