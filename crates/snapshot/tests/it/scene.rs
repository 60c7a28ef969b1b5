//! A temporary directory with snapshots.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use codewright_snapshot::{Effect, File, Kind, Options, Respect, Snapshot, Snapshots, Step, StepChange};
use tokio_util::sync::CancellationToken;

pub(crate) struct Scene {
    _folder: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) snapshots: Snapshots,
    pub(crate) steps: Vec<StepChange>,
}

impl Scene {
    /// A directory without git.
    pub(crate) fn plain() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        let mut options = Options::new(&root.with_file_name("data"), "global", &root, &root);
        change(&mut options);
        let snapshots = Snapshots::new(options);
        Self { _folder: folder, root, snapshots, steps: Vec::new() }
    }

    /// A directory with a git repository.
    pub(crate) fn git() -> Self {
        let mut scene = Self::plain();
        scene.run(&["init", "-q", "-b", "main"]);
        scene.again();
        scene
    }

    /// Opens the same directory as another process.
    pub(crate) fn again(&mut self) {
        self.snapshots = Snapshots::new(self.options());
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(&self.root.with_file_name("data"), "global", &self.root, &self.root)
    }

    pub(crate) fn shadow(&self) -> PathBuf {
        self.options().directory
    }

    /// Runs the user's git.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=u", "-c", "user.email=u@example.com", "-c", "commit.gpgsign=false"]);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let output = git.args(args).current_dir(&self.root).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn put(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read(self.root.join(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) async fn track(&self) -> Snapshot {
        self.snapshots.track(&CancellationToken::new()).await.unwrap()
    }

    /// The paths of a snapshot, as git lists them.
    pub(crate) fn listed(&self, snapshot: &Snapshot) -> Vec<String> {
        let mut git = Command::new("git");
        git.arg("--git-dir").arg(self.shadow());
        // A tree that is in the user's repository is borrowed from it.
        git.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.root.join(".git/objects"));
        let output =
            git.args(["ls-tree", "-r", "-z", "--name-only", &snapshot.tree.to_string()]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// A step in which a tool writes or removes files.
    pub(crate) async fn writes(&mut self, files: &[(&str, Option<&str>)]) {
        let mut step = Step::default();
        for (path, text) in files {
            self.effect(&mut step, path, *text).await;
        }
        self.steps.extend(self.snapshots.close(step).await.unwrap());
    }

    pub(crate) async fn effect(&self, step: &mut Step, path: &str, text: Option<&str>) {
        let before = self.snapshots.look(Path::new(path)).await.unwrap();
        match text {
            Some(text) => self.put(path, text),
            None => fs::remove_file(self.root.join(path)).unwrap(),
        }
        let after = self.snapshots.look(Path::new(path)).await.unwrap();
        let effect =
            Effect { path: path.into(), before: before.file, after: after.file, made: before.missing };
        self.snapshots.report(step, effect).await.unwrap();
    }

    /// A step in which an opaque tool changes files.
    pub(crate) async fn opaque(&mut self, work: impl FnOnce(&Self)) {
        let before = self.track().await;
        work(self);
        let after = self.track().await;
        let mut step = Step::default();
        self.snapshots.report_difference(&mut step, &before, &after).await.unwrap();
        self.steps.extend(self.snapshots.close(step).await.unwrap());
    }

    /// Moves between positions. Returns the kept files with their reasons.
    #[track_caller]
    pub(crate) fn travel(
        &self,
        from: usize,
        to: usize,
        respect: Respect,
    ) -> impl Future<Output = Vec<String>> {
        let travel = async move { self.snapshots.travel(&self.steps, from, to, respect).await.unwrap() };
        async move {
            let outcome = travel.await;
            assert_eq!(outcome.failed, []);
            outcome.kept.into_iter().map(|(path, reason)| format!("{}: {reason}", path.display())).collect()
        }
    }

    /// Every path in the root with its entry, except `.git`.
    pub(crate) fn all(&self) -> Vec<(String, Option<File>)> {
        let mut found = Vec::new();
        let mut left = vec![self.root.clone()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&self.root).unwrap().to_string_lossy().into_owned();
                if name == ".git" {
                    continue;
                }
                found.push((name, of(&path)));
                if path.is_dir() && !path.is_symlink() {
                    left.push(path);
                }
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }
}

/// The file at a path, unless it is a directory.
fn of(path: &Path) -> Option<File> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = fs::symlink_metadata(path).unwrap();
    if metadata.is_symlink() {
        let target = fs::read_link(path).unwrap();
        return Some(File { kind: Kind::Link, bytes: target.as_os_str().as_bytes().to_vec() });
    }
    let kind = if metadata.permissions().mode() & 0o100 == 0 { Kind::File } else { Kind::Executable };
    metadata.is_file().then(|| File { kind, bytes: fs::read(path).unwrap() })
}
