//! A project next to directories that no call may reach, and the thread that exchanges its paths with links.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

/// The text of all outside files, and a part of the names that exist only there.
pub(super) const MARK: &str = "OUTSIDE-7f3a";
/// The content of the picture in the project.
pub(super) const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\ninside";
/// The limit for the time of one combination.
const DEADLINE: Duration = Duration::from_secs(600);
/// The longest pause between two exchanges, in turns of a loop.
const MAX_PAUSE: u64 = 20_000;

/// The exchanged path.
#[derive(Debug, Clone, Copy)]
pub(super) enum Exchange {
    /// A directory of the project.
    Directory,
    /// A file of the project.
    File,
    /// The directory that contains the project.
    Parent,
}

impl Exchange {
    pub(super) const ALL: [Self; 3] = [Self::Directory, Self::File, Self::Parent];
}

/// The directories.
pub(super) struct Scene {
    _keep: TempDir,
    pub(super) top: PathBuf,
    pub(super) root: PathBuf,
    /// The outside files at the start.
    before: BTreeMap<PathBuf, (u32, Vec<u8>)>,
}

impl Scene {
    pub(super) fn new() -> Result<Self> {
        let keep = tempfile::tempdir()?;
        let top = keep.path().canonicalize()?;
        let root = top.join("parent/proj");
        let put = |path: &str, bytes: &[u8]| -> Result<()> {
            let path = top.join(path);
            fs::create_dir_all(path.parent().context("a file has a parent")?)?;
            Ok(fs::write(path, bytes)?)
        };
        for name in ["d/f.txt", "d/deep/g.txt", "d/AGENTS.md", "file.txt"] {
            put(&format!("parent/proj/{name}"), b"inside one\n")?;
        }
        put("parent/proj/d/pic.png", PICTURE)?;
        let secret = format!("{MARK} inside one\n");
        let only = format!("deep/{MARK}.txt");
        let directories = ["outside", "evil/proj/d", "evil/proj"];
        let names = ["f.txt", "deep/g.txt", "AGENTS.md", "file.txt", "p.txt", "deep/q.txt", &only];
        for (directory, name) in directories.iter().flat_map(|one| names.iter().map(move |name| (one, name)))
        {
            put(&format!("{directory}/{name}"), secret.as_bytes())?;
        }
        let picture = [PICTURE, MARK.as_bytes()].concat();
        for directory in directories {
            put(&format!("{directory}/pic.png"), &picture)?;
        }
        // An interrupted write of a process that is gone.
        put("outside/.codewright-999999999-1.tmp", secret.as_bytes())?;
        symlink(top.join("outside"), root.join("directory-link"))?;
        symlink(top.join("outside/f.txt"), root.join("file-link"))?;
        symlink(top.join("evil"), top.join("parent-link"))?;
        let before = files(&[top.join("outside"), top.join("evil")])?;
        Ok(Self { _keep: keep, top, root, before })
    }

    /// The size of all changes of the outside files.
    pub(super) fn changed_bytes(&self) -> Result<u64> {
        let after = files(&[self.top.join("outside"), self.top.join("evil")])?;
        let mut bytes = 0;
        for (path, (mode, content)) in &self.before {
            bytes += match after.get(path) {
                Some((now_mode, now)) if now == content => u64::from(now_mode != mode),
                Some((_, now)) => now.len().max(1) as u64,
                None => content.len().max(1) as u64,
            };
        }
        let new = after.iter().filter(|(path, _)| !self.before.contains_key(*path));
        Ok(bytes + new.map(|(_, (_, content))| content.len().max(1) as u64).sum::<u64>())
    }

    /// Starts the exchanges. They end after their number and after enough calls.
    pub(super) fn start(&self, exchange: Exchange, exchanges: u64, min_calls: u64) -> Result<Exchanger> {
        let at = |name: &str| self.root.join(name);
        let (path, link) = match exchange {
            Exchange::Directory => (at("d"), at("directory-link")),
            Exchange::File => (at("file.txt"), at("file-link")),
            Exchange::Parent => (self.top.join("parent"), self.top.join("parent-link")),
        };
        let calls = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&calls);
        let work =
            move || exchange_all(&path, &link, exchanges, || seen.load(Ordering::Relaxed) >= min_calls);
        let thread = std::thread::Builder::new().name("exchanges".to_owned()).spawn(work)?;
        Ok(Exchanger { thread: Some(thread), calls })
    }
}

/// The running exchanges.
pub(super) struct Exchanger {
    thread: Option<JoinHandle<Result<u64>>>,
    calls: Arc<AtomicU64>,
}

impl Exchanger {
    /// Counts a call. Returns whether there are further exchanges.
    pub(super) fn goes_on(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits for the end. Returns the number of exchanges.
    pub(super) fn finish(&mut self) -> Result<u64> {
        let Some(thread) = self.thread.take() else { bail!("the exchanges have ended") };
        thread.join().map_err(|_| anyhow::anyhow!("the exchanges panicked"))?
    }
}

fn exchange_all(path: &Path, link: &Path, exchanges: u64, is_enough: impl Fn() -> bool) -> Result<u64> {
    let deadline = Instant::now() + DEADLINE;
    let target = fs::read_link(link)?;
    let (mut count, mut random) = (0_u64, 0x9e37_79b9_7f4a_7c15_u64);
    // An even number, so that everything is in its place at the end.
    while count < exchanges || count % 2 == 1 || !is_enough() {
        let done = renameat_with(CWD, path, CWD, link, RenameFlags::EXCHANGE);
        done.with_context(|| format!("cannot exchange `{}`", path.display()))?;
        count += 1;
        // A call may have replaced the link, which is inside of the project.
        if count % 64 == 0 && !link.is_symlink() {
            restore(link, &target)?;
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if random.is_multiple_of(4) {
            for _ in 0..(random >> 8) % MAX_PAUSE {
                std::hint::spin_loop();
            }
        }
        if count % 2 == 0 && Instant::now() > deadline {
            bail!("the calls take too long");
        }
    }
    Ok(count)
}

/// Puts the link back in place of a file.
fn restore(link: &Path, target: &Path) -> Result<()> {
    if fs::symlink_metadata(link)?.is_file() {
        fs::remove_file(link)?;
        symlink(target, link)?;
    }
    Ok(())
}

/// Every file with its mode and content.
fn files(directories: &[PathBuf]) -> Result<BTreeMap<PathBuf, (u32, Vec<u8>)>> {
    let mut all = BTreeMap::new();
    let mut left = directories.to_vec();
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let metadata = fs::symlink_metadata(&path)?;
            if metadata.is_dir() {
                all.insert(path.clone(), (metadata.permissions().mode(), Vec::new()));
                left.push(path);
            } else {
                let content = if metadata.is_file() { fs::read(&path)? } else { Vec::new() };
                all.insert(path, (metadata.permissions().mode(), content));
            }
        }
    }
    Ok(all)
}
