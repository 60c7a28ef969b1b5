//! The sessions of a directory while its project changes.

use std::path::{Path, PathBuf};
use std::process::Command;

use codewright_config::{Dirs, Env};
use codewright_engine::{Confinement, Engine, Options, SessionFilter};
use codewright_proto::{Clock, SessionId, SessionInput};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The directories: two beside each other, and one in the first.
const DIRECTORIES: [&str; 3] = ["one", "two", "one/sub"];
/// Random histories. Each starts the engine and git some twenty times.
const HISTORIES: u32 = 12;

/// What a person does to a directory.
#[derive(Debug, Clone)]
enum Act {
    Work(usize),
    Init(usize),
    Commit(usize),
    Rewrite(usize),
    RemoveGit(usize),
    Copy,
}

fn act() -> impl Strategy<Value = Act> {
    let directory = 0..DIRECTORIES.len();
    prop_oneof![
        4 => directory.clone().prop_map(Act::Work),
        2 => directory.clone().prop_map(Act::Init),
        3 => directory.clone().prop_map(Act::Commit),
        1 => directory.clone().prop_map(Act::Rewrite),
        1 => directory.prop_map(Act::RemoveGit),
        1 => Just(Act::Copy),
    ]
}

struct World {
    folder: tempfile::TempDir,
    /// The sessions of each directory, oldest first.
    sessions: [Vec<SessionId>; DIRECTORIES.len()],
    commits: usize,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("one/sub")).unwrap();
        std::fs::create_dir_all(folder.path().join("two")).unwrap();
        Self { folder, sessions: Default::default(), commits: 0 }
    }

    fn path(&self, directory: usize) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(DIRECTORIES[directory])
    }

    fn git(&self, directory: usize, args: &[&str]) {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.path(directory)).args(["-c", "user.name=T", "-c", "user.email=t@localhost"]);
        git.args(args).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", self.folder.path());
        // An act that makes no sense in this state, such as a commit without a repository, changes nothing.
        drop(git.output().unwrap());
    }

    /// Opens an engine as a new process would.
    async fn engine(&self, directory: &Path) -> Engine {
        let home = self.folder.path().join("home");
        let pairs = [
            ("HOME".to_owned(), home.to_string_lossy().into_owned()),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ];
        let env = Env::from_pairs(pairs);
        let dirs = Dirs::new(&env).unwrap();
        let (directory, confinement) = (directory.to_owned(), Confinement::Group);
        let clock = Clock::system();
        Engine::open(Options { directory, env, dirs, version: "test", clock, confinement }).await.unwrap()
    }

    async fn perform(&mut self, act: &Act) {
        self.commits += 1;
        let message = format!("--message={}", self.commits);
        match act {
            Act::Work(directory) => {
                let path = self.path(*directory);
                let engine = self.engine(&path).await;
                let instance = engine.instance(&path).await.unwrap();
                let session = engine.sessions().create(&instance, SessionInput::default()).await.unwrap();
                self.sessions[*directory].push(session.id);
                engine.close().await.unwrap();
            }
            Act::Init(directory) => self.git(*directory, &["init", "--quiet"]),
            Act::Commit(directory) => {
                self.git(*directory, &["commit", "--quiet", "--allow-empty", &message]);
            }
            Act::Rewrite(directory) => {
                self.git(*directory, &["checkout", "--quiet", "--orphan", &format!("b{}", self.commits)]);
                self.git(*directory, &["commit", "--quiet", "--allow-empty", &message]);
            }
            Act::RemoveGit(directory) => {
                // It is missing in most states.
                drop(std::fs::remove_dir_all(self.path(*directory).join(".git")));
            }
            Act::Copy => {
                let (from, to) = (self.path(0), self.path(1));
                std::fs::remove_dir_all(&to).unwrap();
                let copied = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
                assert!(copied.success());
            }
        }
    }

    /// Checks that each directory lists exactly its sessions, and that the last one of it and below it is continued.
    async fn check(&self) {
        for (directory, sessions) in self.sessions.iter().enumerate() {
            let path = self.path(directory);
            let engine = self.engine(&path).await;
            let instance = engine.instance(&path).await.unwrap();
            let filter = SessionFilter {
                directory: Some(instance.path().directory),
                project: Some(instance.project().id),
                ..SessionFilter::default()
            };
            let listed = engine.sessions().list(filter).await.unwrap();
            let mut listed: Vec<_> = listed.into_iter().map(|session| session.id).collect();
            let mut expected = sessions.clone();
            listed.sort();
            expected.sort();
            assert_eq!(listed, expected, "{}", DIRECTORIES[directory]);
            let below = Some(instance.path().directory);
            let filter = SessionFilter { below, ..SessionFilter::default() };
            let found = engine.sessions().in_worktree(&instance, filter).await.unwrap();
            let is_shared = directory == 0 && !self.path(2).join(".git").exists();
            let inner = self.sessions[2].iter().filter(|_| is_shared);
            let mut expected: Vec<_> = sessions.iter().chain(inner).cloned().collect();
            let mut found: Vec<_> = found.into_iter().map(|session| session.id).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "at or below {}", DIRECTORIES[directory]);
            engine.close().await.unwrap();
        }
    }
}

#[test]
fn sessions_stay_with_their_directory_in_every_history() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: HISTORIES, ..Config::default() });
    let histories = proptest::collection::vec(act(), 1..12);
    let outcome = runner.run(&histories, |acts| {
        runtime.block_on(async {
            let mut world = World::new();
            for act in &acts {
                world.perform(act).await;
            }
            world.check().await;
        });
        Ok(())
    });
    outcome.unwrap();
}
