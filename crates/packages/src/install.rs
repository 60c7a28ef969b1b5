//! Installs packages, one at a time.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::future::Future;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use codewright_workspace::{make_private_directory, write_atomic};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::check::{self, Size};
use crate::lock::{Locked, MAX_LOCK_BYTES};
use crate::{Error, Package, Registries};

/// The directory of what ranges and tags were when they were last looked up.
const WANTED: &str = ".wanted";
/// The file that the installing process locks.
const LOCK: &str = ".lock";
/// The beginning of the names of directories that are being installed.
const STAGING: &str = ".staging-";
/// The pause between two attempts to take the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// The interval at which the size of an installation is checked.
const SIZE_EVERY: Duration = Duration::from_millis(500);
/// The largest number of lockfiles whose digests are compared.
const MAX_COMPARED: usize = 1000;
/// The largest number of installed versions of a package.
const MAX_VERSIONS: usize = 10;
/// The characters of a package manager's output that an error shows.
const SHOWN_CHARS: usize = 1500;

/// The cache of installed packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages {
    /// The directory of the packages.
    pub root: PathBuf,
    /// A private directory for the files of running installations, which contain tokens.
    pub scratch: PathBuf,
}

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The directory of the package itself, `ROOT/node_modules/NAME`. Its content never changes.
    pub directory: PathBuf,
    /// The directory with `node_modules` and the lockfile.
    pub root: PathBuf,
    /// When the version was looked up, in milliseconds since 1970. `None` if an exact version is wanted.
    pub looked_up_ms: Option<u64>,
}

/// The limits of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time for everything, including the wait for other installations.
    pub deadline: Duration,
    /// The largest size on the disk, including the downloads.
    pub bytes: u64,
    /// The largest number of files and directories, including the downloads.
    pub files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(120), bytes: 1024 * 1024 * 1024, files: 200_000 }
    }
}

/// The package managers of this machine, and the registries of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// The path of `npm`.
    pub npm: Option<PathBuf>,
    /// The path of `bun`, which is used if there is no `npm`.
    pub bun: Option<PathBuf>,
    /// The registries.
    pub registries: Registries,
}

/// A start of a package manager.
#[derive(Debug)]
pub struct Job<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub args: Vec<String>,
    /// The working directory. Writable.
    pub directory: &'a Path,
    /// The home directory, with the settings. Writable; no other process may see it.
    pub home: &'a Path,
    /// The only hosts that it may connect to.
    pub registries: &'a Registries,
    /// The time limit.
    pub timeout: Duration,
}

/// A package manager that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code. `None` if it exceeded the time limit.
    pub code: Option<i32>,
    /// The end of its output.
    pub output: String,
}

/// The future of a start.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Ran, String>> + Send + 'a>>;

/// Starts package managers with as few rights as possible: an environment without the user's variables, and no other
/// directories to write and hosts to connect to than those of the [`Job`].
pub trait Runner: Send + Sync {
    /// Runs a package manager to its end. A dropped future ends it.
    fn run<'a>(&'a self, job: Job<'a>) -> Running<'a>;
}

/// The version that a range or tag had.
#[derive(Debug, Serialize, Deserialize)]
struct Wanted {
    version: String,
    looked_up_ms: u64,
}

impl Packages {
    /// Returns a package if it is installed. Reads two files at most.
    #[must_use]
    pub fn installed(&self, package: &Package) -> Option<Installed> {
        if let Some(version) = package.version() {
            return self.installed_version(&package.name, version);
        }
        let text = fs::read(self.wanted(package)).ok()?;
        let wanted: Wanted = serde_json::from_slice(&text).ok()?;
        semver::Version::parse(&wanted.version).ok()?;
        let installed = self.installed_version(&package.name, &wanted.version)?;
        Some(Installed { looked_up_ms: Some(wanted.looked_up_ms), ..installed })
    }

    fn installed_version(&self, name: &str, version: &str) -> Option<Installed> {
        let root = self.root.join(format!("{name}@{version}"));
        let directory = root.join("node_modules").join(name);
        let is_there = directory.join("package.json").symlink_metadata().is_ok_and(|file| file.is_file());
        is_there.then(|| Installed {
            name: name.to_owned(),
            version: version.to_owned(),
            directory,
            root,
            looked_up_ms: None,
        })
    }

    fn wanted(&self, package: &Package) -> PathBuf {
        self.root.join(WANTED).join(format!("{}.json", package.key()))
    }

    /// Looks a package up and installs it unless this version is installed.
    ///
    /// Only one process at a time installs; others wait for it.
    ///
    /// # Errors
    ///
    /// Fails if there is no package manager, the registry does not deliver the package in time, or the package is not
    /// safe. Nothing is changed then.
    pub async fn install(&self, runner: &dyn Runner, order: &Order<'_>) -> Result<Installed, Error> {
        let spec = order.spec();
        let late = || Error::Unavailable {
            spec: spec.clone(),
            reason: format!("it took longer than {} seconds", order.limits.deadline.as_secs()),
        };
        let until = Instant::now() + order.limits.deadline;
        tokio::time::timeout_at(until, self.install_until(runner, order, until))
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    async fn install_until(
        &self,
        runner: &dyn Runner,
        order: &Order<'_>,
        until: Instant,
    ) -> Result<Installed, Error> {
        let manager = Manager::of(order.tools).ok_or(Error::NoManager)?;
        make_private_directory(&self.root).map_err(Error::at(&self.root))?;
        let _lock = self.lock().await?;
        // Another process may have installed it meanwhile.
        if let Some(installed) = self.installed(order.package)
            && installed.looked_up_ms.is_none_or(|at| at > order.now_ms)
        {
            return Ok(installed);
        }
        let place = Place::new(self, order)?;
        let work = Work { runner, order, manager, place: &place, until };
        work.run(manager.resolve()).await?;
        let locked = work.locked(registries(order))?;
        self.compare(&locked).map_err(|reason| order.refused(reason))?;
        let name = &order.package.name;
        let missing = || order.refused("the lockfile does not contain it".to_owned());
        let version = locked.version(name).ok_or_else(missing)?.to_owned();
        if semver::Version::parse(&version).is_err() {
            return Err(order.refused(format!("`{}` is not a version", version.escape_debug())));
        }
        if self.installed_version(name, &version).is_none() {
            match work.start(manager.install()).await? {
                // The package manager must have installed exactly what was checked.
                Ran { code: Some(0), .. } if work.locked(registries(order))? == locked => {}
                Ran { code: Some(0), .. } => {
                    return Err(order.refused("the package manager changed the lockfile".to_owned()));
                }
                Ran { output, .. } if does_not_fit(&output) => self.install_loosely(&work, &version).await?,
                Ran { code, output } => return Err(work.failed(code, &output)),
            }
            self.accept(order, &place, &version).await?;
        }
        if order.package.version().is_none() {
            self.note(order, &version, until)?;
        }
        self.prune(name, &version);
        let installed = self.installed(order.package).or_else(|| self.installed_version(name, &version));
        installed.ok_or_else(|| order.refused("it is not where it was installed".to_owned()))
    }

    /// Installs without the check of the lockfile. npm leaves an optional dependency that cannot be fetched out of the
    /// lockfile, and then refuses the lockfile because the dependency is missing.
    ///
    /// What was installed is checked afterwards like a lockfile before. No script has run.
    async fn install_loosely(&self, work: &Work<'_>, version: &str) -> Result<(), Error> {
        let order = work.order;
        work.run(work.manager.install_loosely()).await?;
        let installed = work.locked(registries(order))?;
        self.compare(&installed).map_err(|reason| order.refused(reason))?;
        match installed.version(&order.package.name) {
            Some(found) if found == version => Ok(()),
            _ => Err(order.refused("the package manager installed another version".to_owned())),
        }
    }

    /// Waits for the lock, which ends with the returned file. The caller limits the time.
    async fn lock(&self) -> Result<File, Error> {
        let path = self.root.join(LOCK);
        let open = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = open.map_err(Error::at(&path))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(fs::TryLockError::WouldBlock) => sleep(LOCK_PAUSE).await,
                Err(fs::TryLockError::Error(error)) => return Err(Error::at(&path)(error)),
            }
        }
    }

    /// Compares a lockfile with those of all installed packages.
    fn compare(&self, locked: &Locked) -> Result<(), String> {
        for root in self.roots() {
            for manager in [Manager::Npm(Path::new("")), Manager::Bun(Path::new(""))] {
                // A damaged lockfile of another package says nothing about this one.
                if let Ok(Some(before)) = manager.read(&root) {
                    locked.compare(&before)?;
                }
            }
        }
        Ok(())
    }

    /// The directories of installed packages.
    fn roots(&self) -> Vec<PathBuf> {
        let entries = |directory: &Path| -> Vec<PathBuf> {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).take(MAX_COMPARED).collect()
        };
        let is_scope = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with('@') && !name[1..].contains('@')
        };
        let (scopes, plain): (Vec<_>, Vec<_>) = entries(&self.root).into_iter().partition(is_scope);
        let scoped = scopes.iter().flat_map(|scope| entries(scope));
        plain
            .into_iter()
            .filter(|path| path.join("node_modules").is_dir())
            .chain(scoped)
            .take(MAX_COMPARED)
            .collect()
    }

    /// Checks what was installed and gives it its name.
    async fn accept(&self, order: &Order<'_>, place: &Place, version: &str) -> Result<(), Error> {
        let (staging, package) =
            (place.staging.clone(), place.staging.join("node_modules").join(&order.package.name));
        let expected = version.to_owned();
        let checking = tokio::task::spawn_blocking(move || {
            let staging = staging.canonicalize().map_err(|error| error.to_string())?;
            check::content(&staging)?;
            check::manifest(&package, &expected)
        });
        let checked = checking.await.unwrap_or_else(|error| Err(error.to_string()));
        checked.map_err(|reason| order.refused(reason))?;
        let target = self.root.join(format!("{}@{version}", order.package.name));
        if let Some(above) = target.parent() {
            fs::create_dir_all(above).map_err(Error::at(above))?;
        }
        // Only a damaged installation can be there.
        match fs::remove_dir_all(&target) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::at(&target)(error)),
            _ => fs::rename(&place.staging, &target).map_err(Error::at(&target)),
        }
    }

    /// Removes the oldest versions of a package if there are many. One that is still wanted is installed again.
    fn prune(&self, name: &str, kept: &str) {
        let prefix = format!("{name}@");
        let kept = self.root.join(format!("{prefix}{kept}"));
        let is_version = |path: &PathBuf| {
            let below = path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned();
            below.starts_with(&prefix) && *path != kept
        };
        let mut versions: Vec<PathBuf> = self.roots().into_iter().filter(is_version).collect();
        versions.sort_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok());
        let excess = (versions.len() + 1).saturating_sub(MAX_VERSIONS);
        for path in versions.into_iter().take(excess) {
            // It is tried again after the next installation.
            drop(fs::remove_dir_all(path));
        }
    }

    /// Records the version of a range or tag.
    fn note(&self, order: &Order<'_>, version: &str, until: Instant) -> Result<(), Error> {
        let path = self.wanted(order.package);
        let directory = self.root.join(WANTED);
        fs::create_dir_all(&directory).map_err(Error::at(&directory))?;
        let elapsed = order.limits.deadline.saturating_sub(until.saturating_duration_since(Instant::now()));
        let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or_default();
        let wanted =
            json!(Wanted { version: version.to_owned(), looked_up_ms: order.now_ms.saturating_add(elapsed) });
        let failed = |error: codewright_workspace::Error| std::io::Error::other(error.to_string());
        write_atomic(&path, wanted.to_string().as_bytes()).map_err(|error| Error::at(&path)(failed(error)))
    }
}

/// Whether a package manager refused a lockfile because it does not fit the packages.
fn does_not_fit(output: &str) -> bool {
    ["EUSAGE", "lockfile is frozen"].iter().any(|sign| output.contains(sign))
}

fn registries<'a>(order: &Order<'a>) -> &'a Registries {
    &order.tools.registries
}

/// What to install.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The package.
    pub package: &'a Package,
    /// Other packages that are installed next to it.
    pub with: &'a [Package],
    /// The package managers.
    pub tools: &'a Tools,
    /// The limits.
    pub limits: Limits,
    /// The time in milliseconds since 1970.
    pub now_ms: u64,
}

impl Order<'_> {
    fn spec(&self) -> String {
        format!("{}@{}", self.package.name, self.package.wanted)
    }

    fn refused(&self, reason: String) -> Error {
        Error::Refused { spec: self.spec(), reason }
    }

    fn unavailable(&self, reason: String) -> Error {
        Error::Unavailable { spec: self.spec(), reason }
    }
}

/// A package manager.
#[derive(Debug, Clone, Copy)]
enum Manager<'a> {
    Npm(&'a Path),
    Bun(&'a Path),
}

impl<'a> Manager<'a> {
    fn of(tools: &'a Tools) -> Option<Self> {
        let npm = tools.npm.as_deref().map(Manager::Npm);
        npm.or_else(|| tools.bun.as_deref().map(Manager::Bun))
    }

    fn program(self) -> &'a Path {
        match self {
            Self::Npm(program) | Self::Bun(program) => program,
        }
    }

    /// The arguments that write the lockfile.
    fn resolve(self) -> &'static [&'static str] {
        match self {
            Self::Npm(_) => &["install", "--package-lock-only"],
            Self::Bun(_) => &["install", "--lockfile-only"],
        }
    }

    /// The arguments that install the lockfile.
    fn install(self) -> &'static [&'static str] {
        match self {
            Self::Npm(_) => &["ci"],
            Self::Bun(_) => &["install", "--frozen-lockfile"],
        }
    }

    /// The arguments that install what the lockfile allows, and correct it.
    fn install_loosely(self) -> &'static [&'static str] {
        match self {
            Self::Npm(_) | Self::Bun(_) => &["install"],
        }
    }

    /// The arguments of every step.
    fn options(self, place: &Place) -> Vec<String> {
        let path = |name: &str, path: &Path| format!("{name}={}", path.display());
        match self {
            Self::Npm(_) => {
                // These override settings of the user that have another purpose.
                let mut options: Vec<String> = [
                    "--ignore-scripts",
                    "--no-audit",
                    "--no-fund",
                    "--no-update-notifier",
                    "--global=false",
                    "--dry-run=false",
                    "--package-lock=true",
                    "--install-strategy=hoisted",
                    "--omit=dev",
                    "--loglevel=error",
                    "--progress=false",
                    "--fetch-retries=1",
                    "--git=/nonexistent",
                    // Without a value a registry on this machine would not be reached through the proxy.
                    "--noproxy=none.invalid",
                ]
                .map(str::to_owned)
                .into();
                options.push(path("--prefix", &place.staging));
                options.push(path("--userconfig", &place.home.join(".npmrc")));
                options.push(path("--globalconfig", &place.home.join("none")));
                options.push(path("--cache", &place.home.join("cache")));
                options
            }
            Self::Bun(_) => {
                let mut options: Vec<String> = [
                    "--ignore-scripts",
                    "--save-text-lockfile",
                    "--no-progress",
                    "--no-summary",
                    "--production",
                ]
                .map(str::to_owned)
                .into();
                options.push(path("--cwd", &place.staging));
                options.push(path("--cache-dir", &place.home.join("cache")));
                options
            }
        }
    }

    /// Reads the lockfile in a directory. `None` if there is none.
    fn read(self, root: &Path) -> Result<Option<Locked>, String> {
        let path = root.join(match self {
            Self::Npm(_) => "package-lock.json",
            Self::Bun(_) => "bun.lock",
        });
        let Ok(metadata) = path.symlink_metadata() else { return Ok(None) };
        if !metadata.is_file() || metadata.len() > MAX_LOCK_BYTES {
            return Err("the lockfile is larger than 32 MiB".to_owned());
        }
        let text =
            fs::read_to_string(&path).map_err(|error| format!("the lockfile cannot be read: {error}"))?;
        match self {
            Self::Npm(_) => Locked::of_npm(&text).map(Some),
            Self::Bun(_) => Locked::of_bun(&text).map(Some),
        }
    }
}

/// The directories of one installation, which are removed with this value.
#[derive(Debug)]
struct Place {
    /// The later directory of the package.
    staging: PathBuf,
    /// The home directory of the package manager.
    home: PathBuf,
}

impl Place {
    /// Creates the directories. The caller holds the lock, so what dead processes left can be removed.
    fn new(packages: &Packages, order: &Order<'_>) -> Result<Self, Error> {
        let leftover =
            |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(STAGING));
        for entry in fs::read_dir(&packages.root).into_iter().flatten().flatten() {
            if leftover(&entry.path()) {
                fs::remove_dir_all(entry.path()).map_err(Error::at(&entry.path()))?;
            }
        }
        match fs::remove_dir_all(&packages.scratch) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::at(&packages.scratch)(error));
            }
            _ => make_private_directory(&packages.scratch).map_err(Error::at(&packages.scratch))?,
        }
        let place = Self {
            staging: packages.root.join(format!("{STAGING}{}", std::process::id())),
            home: packages.scratch.join(std::process::id().to_string()),
        };
        make_private_directory(&place.home).map_err(Error::at(&place.home))?;
        fs::create_dir(&place.staging).map_err(Error::at(&place.staging))?;
        let write = |path: PathBuf, text: &str| {
            let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
            let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
            written.map_err(Error::at(&path))
        };
        write(place.home.join(".npmrc"), &order.tools.registries.settings)?;
        let packages = order.with.iter().chain([order.package]);
        let packages: BTreeMap<_, _> =
            packages.map(|package| (package.name.as_str(), package.wanted.as_str())).collect();
        let manifest = json!({"private": true, "dependencies": packages});
        write(place.staging.join("package.json"), &format!("{manifest:#}\n"))?;
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The next installation tries again.
        drop(fs::remove_dir_all(&self.staging));
        drop(fs::remove_dir_all(&self.home));
    }
}

/// A running installation.
struct Work<'a> {
    runner: &'a dyn Runner,
    order: &'a Order<'a>,
    manager: Manager<'a>,
    place: &'a Place,
    until: Instant,
}

impl Work<'_> {
    /// Runs a step of the package manager that must succeed.
    async fn run(&self, step: &[&str]) -> Result<(), Error> {
        match self.start(step).await? {
            Ran { code: Some(0), .. } => Ok(()),
            Ran { code, output } => Err(self.failed(code, &output)),
        }
    }

    /// Runs a step of the package manager to its end, and ends it when it exceeds the size.
    async fn start(&self, step: &[&str]) -> Result<Ran, Error> {
        let order = self.order;
        let own = step.iter().map(|&word| word.to_owned());
        let job = Job {
            program: self.manager.program(),
            args: own.chain(self.manager.options(self.place)).collect(),
            directory: &self.place.staging,
            home: &self.place.home,
            registries: &order.tools.registries,
            timeout: self.until.saturating_duration_since(Instant::now()),
        };
        tokio::select! {
            ran = self.runner.run(job) => ran.map_err(|reason| order.unavailable(reason)),
            () = self.grown() => {
                let limits = order.limits;
                Err(order.refused(format!(
                    "it is larger than {} MiB or has more than {} files",
                    limits.bytes / (1024 * 1024),
                    limits.files
                )))
            }
        }
    }

    /// Waits until the directories exceed the limits.
    async fn grown(&self) {
        let limit = Size { bytes: self.order.limits.bytes, files: self.order.limits.files };
        loop {
            sleep(SIZE_EVERY).await;
            let (staging, home) = (self.place.staging.clone(), self.place.home.clone());
            let sizing = tokio::task::spawn_blocking(move || check::size(&[&staging, &home], limit));
            match sizing.await {
                Ok(size) if size.bytes <= limit.bytes && size.files <= limit.files => {}
                // A size that cannot be determined counts as too large.
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn locked(&self, registries: &Registries) -> Result<Locked, Error> {
        let read = self.manager.read(&self.place.staging).and_then(|locked| {
            let locked = locked.ok_or("the package manager wrote no lockfile")?;
            locked.check(registries)?;
            Ok(locked)
        });
        read.map_err(|reason| self.order.refused(reason))
    }

    /// The error of a package manager that failed.
    fn failed(&self, code: Option<i32>, output: &str) -> Error {
        let mut shown: String = output
            .lines()
            .map(|line| line.trim_start_matches("npm error").trim())
            .filter(|line| !line.is_empty() && !line.starts_with("A complete log of this run"))
            .collect::<Vec<_>>()
            .join("\n");
        for secret in self.order.tools.registries.secrets() {
            shown = shown.replace(secret, "***");
        }
        let shown: String = shown.chars().take(SHOWN_CHARS).collect();
        let name = self.manager.program().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let reason = match code {
            None => format!("`{name}` did not end in time"),
            Some(_) if shown.contains("EINTEGRITY") || shown.contains("Integrity check failed") => {
                return self.order.refused(format!(
                    "the downloaded archive does not match the digest of the registry\n{shown}"
                ));
            }
            Some(code) => format!("`{name}` ended with code {code}\n{shown}"),
        };
        self.order.unavailable(reason.trim_end().to_owned())
    }
}
