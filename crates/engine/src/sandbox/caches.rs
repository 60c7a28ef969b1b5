//! Private caches of build tools, one set for each project.
//!
//! Build tools write caches below the home directory, which commands cannot write. Each project has its own caches
//! instead, so that ordinary work needs no permission and no command can change the code that another project or the
//! user builds. A variable that the user has set is kept. What cargo has downloaded already is linked, read-only.
//!
//! Commands can exchange everything in these directories at any time. So this program works in them through handles and
//! follows no link. What it remembers about them is in files next to them, which commands do not see.

use std::ffi::{OsStr, OsString};
use std::io::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use codewright_config::Env;
use codewright_workspace::Directory;

/// The directory of all caches, in the state directory.
pub(super) const ALL: &str = "sandbox-caches";
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
/// The end of the name of the file whose age is that of the links. No name of caches contains this character.
const LINKED: &str = "~linked";
/// The end of the name of the file whose age is that of the last check.
const USED: &str = "~used";
/// The end of the name of the caches of a session.
const OF_SESSION: &str = "~caches";
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
/// The largest number of projects that are looked at.
const MAX_PROJECTS: usize = 1000;

/// The owner of caches.
pub(crate) enum Owner<'a> {
    /// The worktree of a project. Its caches stay until they are not used any more.
    Project(&'a Path),
    /// A session. Its caches are removed with its private directory.
    Session(&'a str),
}

impl Owner<'_> {
    /// The name of the directory.
    fn name(&self) -> String {
        match self {
            Self::Project(root) => name(root),
            Self::Session(session) => format!("{session}{OF_SESSION}"),
        }
    }
}

/// Open caches.
#[derive(Debug)]
pub(crate) struct Caches {
    directory: Directory,
    /// The variables for the directories that exist, and these directories.
    present: Vec<(&'static str, &'static str)>,
}

impl Caches {
    /// Opens the caches of an owner in the directory of all caches. Creates what is missing.
    ///
    /// # Errors
    ///
    /// Fails if a link, a file or the directory of another user has taken their place, and if something cannot be created.
    pub(crate) fn open(all: &Directory, owner: &Owner<'_>, user: &Env, home: &Path) -> Result<Self, Error> {
        let name = OsString::from(owner.name());
        let used = marker(&name, USED);
        let is_due = age(all, &used).is_none_or(|age| age > CHECK_EVERY);
        if is_due && matches!(owner, Owner::Project(_)) {
            sweep(all);
        }
        let mut directory = all.private_child(&name)?;
        if is_due {
            if directory.exceeds(MAX_BYTES, MAX_FILES) {
                all.remove(&name)?;
                directory = all.private_child(&name)?;
            }
            all.touch_file(&used)?;
        }
        if matches!(owner, Owner::Session(_)) {
            // The age of the directory is that of its last use.
            directory.touch()?;
        }
        Self::prepare(directory, &Markers { all, name: &name }, user, home)
    }

    /// Opens new caches, which no other command knows.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be created.
    pub(crate) fn fresh(parent: &Directory, session: &str, user: &Env, home: &Path) -> Result<Self, Error> {
        let directory = parent.fresh_child(&format!("{session}{OF_SESSION}"))?;
        let name = directory.path().file_name().unwrap_or_default().to_owned();
        Self::prepare(directory, &Markers { all: parent, name: &name }, user, home)
    }

    fn prepare(directory: Directory, markers: &Markers<'_>, user: &Env, home: &Path) -> Result<Self, Error> {
        let mut present = Vec::new();
        for (variable, name) in VARIABLES {
            let status = directory.status(OsStr::new(name))?;
            if status.is_none_or(|status| !status.is_directory) {
                directory.make(OsStr::new(name))?;
            }
            present.push((*variable, *name));
        }
        if user.get(CARGO.0).is_none() && home.join(".cargo").is_dir() {
            let to = directory.make(OsStr::new(CARGO.1))?;
            link_cargo(&home.join(".cargo"), &to, markers)?;
            present.push(CARGO);
        }
        Ok(Self { directory, present })
    }

    /// The directory of the caches.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The variables for commands.
    pub(crate) fn variables(&self, user: &Env, home: &Path) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut variables: Vec<(String, String)> = Vec::new();
        for (name, directory) in &self.present {
            variables.push(((*name).to_owned(), text(self.directory.path().join(directory))));
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
const MAX_NAME_BYTES: usize = 230;

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

/// The files next to caches.
struct Markers<'a> {
    all: &'a Directory,
    /// The name of the caches.
    name: &'a OsStr,
}

/// The name of a file next to caches.
fn marker(name: &OsStr, end: &str) -> OsString {
    let mut marker = name.to_owned();
    marker.push(end);
    marker
}

/// The age of an entry. One of the future, after the clock was set back, is new.
fn age(directory: &Directory, name: &OsStr) -> Option<Duration> {
    let modified = directory.status(name).ok()??.modified?;
    Some(modified.elapsed().unwrap_or_default())
}

/// Removes the caches of projects that ran no command for a month, with the files next to them.
fn sweep(all: &Directory) {
    for name in all.names(MAX_PROJECTS).unwrap_or_default() {
        let text = name.to_string_lossy();
        let is_unused = match text.strip_suffix(USED).or(text.strip_suffix(LINKED)) {
            Some(caches) => matches!(all.status(OsStr::new(caches)), Ok(None)),
            // Another process may be about to create the file.
            None => age(all, &marker(&name, USED)).or_else(|| age(all, &name)).is_none_or(|age| age > UNUSED),
        };
        if is_unused {
            // What cannot be removed now is tried again later.
            drop(all.remove(&name));
        }
    }
}

/// Makes the downloads of cargo available in another directory. New downloads are stored there.
fn link_cargo(from: &Path, to: &Directory, markers: &Markers<'_>) -> Result<(), Error> {
    let (all, last) = (markers.all, &marker(markers.name, LINKED));
    let groups: Vec<(&str, PathBuf)> = CARGO_DOWNLOADS
        .iter()
        .flat_map(|kind| entries(&from.join(kind)).into_iter().map(move |group| (*kind, group)))
        .collect();
    let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let linked = all.status(last)?.and_then(|status| status.modified).unwrap_or(SystemTime::UNIX_EPOCH);
    let is_newer = |path: &Path| modified(path).is_some_and(|modified| modified > linked);
    let clones = from.join(CARGO_CLONES);
    if !is_newer(from) && !is_newer(&clones) && !groups.iter().any(|(_, group)| is_newer(group)) {
        return Ok(());
    }
    // Downloads during the work below are newer than this.
    all.touch_file(last)?;
    let mut left = MAX_LINKS;
    for name in CARGO_SHARED {
        link(&from.join(name), to, &mut left)?;
    }
    link_all(&clones, to, Path::new(CARGO_CLONES), &mut left)?;
    for (kind, group) in groups {
        let Some(name) = group.file_name() else { continue };
        link_all(&group, to, &Path::new(kind).join(name), &mut left)?;
    }
    Ok(())
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Creates links to all entries of a directory.
fn link_all(from: &Path, to: &Directory, below: &Path, left: &mut usize) -> Result<(), Error> {
    let entries = entries(from);
    if entries.is_empty() {
        return Ok(());
    }
    let directory = to.make_all(below)?;
    entries.iter().try_for_each(|entry| link(entry, &directory, left))
}

/// Creates a link unless something else is there. A link to nothing is replaced.
fn link(from: &Path, to: &Directory, left: &mut usize) -> Result<(), Error> {
    let Some(name) = from.file_name().filter(|_| *left > 0 && from.exists()) else { return Ok(()) };
    match to.target(name) {
        Some(target) if target == from || to.path().join(&target).exists() => return Ok(()),
        Some(_) => to.remove(name)?,
        None => {}
    }
    if to.status(name)?.is_none() {
        *left -= 1;
        to.link(name, from)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir_all, read_to_string, write};
    use std::os::unix::fs::symlink;

    use super::*;

    /// The directory of all caches in a folder.
    fn all(folder: &Path) -> Directory {
        create_dir_all(folder.join("state")).unwrap();
        Directory::open(&folder.join("state")).unwrap()
    }

    fn open(folder: &Path, root: &str) -> Caches {
        let owner = Owner::Project(Path::new(root));
        Caches::open(&all(folder), &owner, &Env::default(), &folder.join("home")).unwrap()
    }

    /// A file next to caches.
    fn beside(caches: &Caches, end: &str) -> PathBuf {
        let path = caches.directory().path();
        path.with_file_name(marker(path.file_name().unwrap(), end))
    }

    fn set_age(path: &Path, modified: SystemTime) {
        File::open(path).unwrap().set_modified(modified).unwrap();
    }

    const PAST: SystemTime = SystemTime::UNIX_EPOCH;

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
        let caches = open(folder.path(), "/work/a b");
        let cargo = caches.directory().path().join("cargo");
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
        set_age(&beside(&caches, LINKED), PAST);
        let caches = open(folder.path(), "/work/a b");
        assert!(cargo.join("registry/cache/index/c-1.crate").exists());
        // A directory that a command has exchanged is created again, and nothing appears at the other place.
        let elsewhere = folder.path().join("elsewhere");
        create_dir_all(&elsewhere).unwrap();
        for name in ["registry", "go-build", "xdg"] {
            let path =
                if name == "registry" { cargo.join(name) } else { caches.directory().path().join(name) };
            std::fs::remove_dir_all(&path).unwrap();
            symlink(&elsewhere, &path).unwrap();
        }
        set_age(&beside(&caches, LINKED), PAST);
        open(folder.path(), "/work/a b");
        assert!(cargo.join("registry/cache/index/c-1.crate").exists());
        assert!(!cargo.join("registry").is_symlink());
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn only_variables_that_the_user_has_not_set_are_set() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        create_dir_all(home.join("go/pkg/mod/cache/download")).unwrap();
        let user = Env::from_pairs([("GOCACHE", "/mine"), ("CARGO_HOME", "/cargo")]);
        let owner = Owner::Project(Path::new("/work"));
        let caches = Caches::open(&all(folder.path()), &owner, &user, &home).unwrap();
        let variables = caches.variables(&user, &home);
        let value =
            |wanted: &str| variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
        assert_eq!(
            (value("GOCACHE"), value("CARGO_HOME"), value("PLAYWRIGHT_BROWSERS_PATH")),
            (None, None, None)
        );
        assert!(value("PIP_CACHE_DIR").unwrap().ends_with("state/-2fwork/pip"));
        assert!(value("GOPROXY").unwrap().starts_with("file:///"));
    }

    #[test]
    fn caches_that_nobody_uses_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let old = open(folder.path(), "/old");
        set_age(&beside(&old, USED), PAST);
        open(folder.path(), "/new");
        assert!(!old.directory().path().exists());
        set_age(&beside(&open(folder.path(), "/new"), USED), PAST);
        open(folder.path(), "/other");
        open(folder.path(), "/third");
        let names = all(folder.path()).names(100).unwrap();
        assert!(!names.iter().any(|name| name == "-2fold~used"), "{names:?}");
    }

    #[test]
    fn caches_of_the_future_and_those_that_begin_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let ahead = open(folder.path(), "/ahead");
        // A time after every clock of a machine.
        set_age(&beside(&ahead, USED), SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 32));
        let begun = folder.path().join("state/-2fbegun");
        create_dir_all(&begun).unwrap();
        open(folder.path(), "/new");
        open(folder.path(), "/ahead");
        assert!(ahead.directory().path().exists() && begun.exists());
    }

    #[test]
    fn what_has_taken_the_place_of_caches_is_refused_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        create_dir_all(&target).unwrap();
        write(target.join(".used"), "kept").unwrap();
        let parent = all(folder.path());
        let place = folder.path().join("state/-2fwork");
        let owner = Owner::Project(Path::new("/work"));
        let tried = || Caches::open(&parent, &owner, &Env::default(), &folder.path().join("home")).map(drop);
        symlink(&target, &place).unwrap();
        assert!(tried().is_err());
        std::fs::remove_file(&place).unwrap();
        write(&place, "").unwrap();
        assert!(tried().is_err());
        assert_eq!(read_to_string(target.join(".used")).unwrap(), "kept");
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 1);
        // The time of the last use was in the caches before. Nothing is written there.
        std::fs::remove_file(&place).unwrap();
        create_dir_all(&place).unwrap();
        symlink(target.join(".used"), place.join(".used")).unwrap();
        tried().unwrap();
        assert_eq!(read_to_string(target.join(".used")).unwrap(), "kept");
    }
}
