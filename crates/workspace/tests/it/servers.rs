//! Protected names of a server, which runs for long and is connected to this process.

use std::fs::{create_dir_all, read_link};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use codewright_workspace::{Author, Command, Confined, Guarded, Mechanism, Outlet, Sandbox, Served, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use crate::sandboxed::{House, confinement, mechanisms};

/// The server runs each line of its input.
const SERVER: &str = "while read -r line; do eval \"$line\"; echo done; done";
/// Longer than a change takes to be noticed if the system reports it, and shorter than the interval of checks without
/// reports.
const SOON: Duration = Duration::from_millis(1500);

struct Server {
    served: Served,
    peer: UnixStream,
    log: Arc<Mutex<Vec<String>>>,
    tasks: TaskTracker,
}

impl Server {
    fn start(house: &House, guarded: Vec<Guarded>, mechanism: &Mechanism) -> Self {
        Self::run(house, guarded, mechanism, SERVER)
    }

    fn run(house: &House, guarded: Vec<Guarded>, mechanism: &Mechanism, program: &str) -> Self {
        let sandbox = Sandbox { guarded, ..house.sandbox() };
        let command = Command {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), program.into()],
            directory: house.path("work"),
            env: Vec::new(),
            env_remove: Vec::new(),
            confinement: confinement(),
            author: Author::Model,
            sandbox: Some(Arc::new(Confined { sandbox, mechanism: mechanism.clone(), connections: None })),
        };
        let (tasks, log) = (TaskTracker::new(), Arc::<Mutex<Vec<String>>>::default());
        let lines = log.clone();
        let (served, peer) = serve(&command, Outlet::Connection, &tasks, move |line| {
            lines.lock().expect("it works").push(line.to_owned());
        })
        .expect("it works");
        Self { served, peer, log, tasks }
    }

    /// Runs a line and waits until the server has done it.
    async fn do_line(&mut self, line: &str) {
        self.peer.write_all(format!("{line}\n").as_bytes()).await.expect("it works");
        let mut answer = [0; 5];
        self.peer.read_exact(&mut answer).await.expect("it works");
        assert_eq!(&answer, b"done\n");
    }

    async fn end(self) -> Vec<String> {
        drop(self.peer);
        self.served.end().await;
        self.tasks.close();
        self.tasks.wait().await;
        let log = self.log.lock().expect("it works");
        log.iter().filter(|line| line.starts_with("it created")).cloned().collect()
    }
}

fn guarded(house: &House, directory: &str, patterns: &[&str]) -> Guarded {
    Guarded {
        directory: house.path(directory),
        patterns: patterns.iter().map(|one| (*one).to_owned()).collect(),
        except: Vec::new(),
    }
}

/// Waits until a path is gone. Returns whether that took less than a time.
async fn is_gone(path: &Path, within: Duration) -> bool {
    let begun = Instant::now();
    while path.symlink_metadata().is_ok() {
        if begun.elapsed() > within {
            return false;
        }
        sleep(Duration::from_millis(20)).await;
    }
    true
}

#[tokio::test]
async fn a_protected_file_of_a_server_is_renamed_and_reported() {
    for mechanism in mechanisms() {
        let house = House::new();
        let rows = vec![guarded(&house, "work", &["opencode.json*", ".claude"])];
        let mut server = Server::start(&house, rows, &mechanism);
        for round in 1..=2 {
            server.do_line("echo evil > opencode.json; mkdir .claude; echo fine > other").await;
            for name in ["opencode.json", ".claude"] {
                assert!(is_gone(&house.path(&format!("work/{name}")), SOON).await, "{mechanism:?} {name}");
                assert!(house.path(&format!("work/blocked-{round}-{name}")).exists());
            }
        }
        assert!(house.path("work/other").exists());
        let log = server.end().await;
        assert_eq!(log.len(), 4, "{log:?}");
        assert!(log.iter().any(|line| line.contains("blocked-1-opencode.json")), "{log:?}");
    }
}

#[tokio::test]
async fn names_in_directories_that_appear_later_are_protected() {
    for mechanism in mechanisms() {
        let house = House::new();
        create_dir_all(house.path("work/.cargo")).unwrap();
        let rows = vec![
            guarded(&house, "work/.config/git", &["config"]),
            guarded(&house, "work/.cargo", &["config*"]),
        ];
        let mut server = Server::start(&house, rows, &mechanism);
        let file = house.path("work/.config/git/config");
        server
            .do_line("mkdir .config; sleep 0.4; mkdir .config/git; sleep 0.4; echo evil > .config/git/config")
            .await;
        assert!(is_gone(&file, SOON).await, "one after the other: {mechanism:?}");
        server.do_line("mv .config away; mkdir -p .config/git; echo evil > .config/git/config").await;
        assert!(is_gone(&file, SOON).await, "replaced at once: {mechanism:?}");
        // The shell keeps the directory open, so that its end is not reported.
        let file = house.path("work/.cargo/config.toml");
        server
            .do_line("exec 3<.cargo; rmdir .cargo; mkdir .cargo; sleep 0.4; echo evil > .cargo/config.toml")
            .await;
        assert!(is_gone(&file, SOON).await, "replaced while open: {mechanism:?}");
        assert_eq!(server.end().await.len(), 3, "{mechanism:?}");
    }
}

#[tokio::test]
async fn a_link_that_a_server_replaces_is_restored() {
    for mechanism in mechanisms() {
        let house = House::new();
        let link = house.path("work/.claude");
        symlink("elsewhere", &link).unwrap();
        let mut server = Server::start(&house, vec![guarded(&house, "work", &[".claude"])], &mechanism);
        for line in ["rm .claude; mkdir .claude", "rm .claude"] {
            server.do_line(line).await;
            let begun = Instant::now();
            while read_link(&link).is_err() && begun.elapsed() < SOON {
                sleep(Duration::from_millis(20)).await;
            }
            assert_eq!(read_link(&link).unwrap(), Path::new("elsewhere"), "{mechanism:?} {line}");
        }
        server.end().await;
    }
}

#[tokio::test]
async fn a_protected_file_from_the_end_of_a_server_is_renamed() {
    for mechanism in mechanisms() {
        for (end, program) in [
            ("its input ends", "cat > started; echo evil > opencode.json"),
            (
                "it is killed",
                "trap '' TERM; cat > started; while :; do echo evil > opencode.json; sleep 0.01; done",
            ),
        ] {
            let house = House::new();
            let rows = vec![guarded(&house, "work", &["opencode.json"])];
            let server = Server::run(&house, rows, &mechanism, program);
            let begun = Instant::now();
            while !house.path("work/started").exists() && begun.elapsed() < Duration::from_secs(20) {
                sleep(Duration::from_millis(20)).await;
            }
            assert!(!server.end().await.is_empty(), "{mechanism:?} {end}");
            assert!(!house.path("work/opencode.json").exists(), "{mechanism:?} {end}");
        }
    }
}

#[tokio::test]
async fn names_behind_a_link_to_nothing_are_checked_regularly() {
    for mechanism in mechanisms() {
        let house = House::new();
        symlink("missing", house.path("work/.config")).unwrap();
        let rows = vec![guarded(&house, "work/.config", &["config"])];
        let mut server = Server::start(&house, rows, &mechanism);
        server.do_line("mkdir missing; echo evil > missing/config").await;
        assert!(is_gone(&house.path("work/missing/config"), SOON * 4).await, "{mechanism:?}");
        server.end().await;
    }
}

#[tokio::test]
async fn a_server_that_keeps_creating_protected_files_is_ended() {
    for mechanism in mechanisms() {
        let house = House::new();
        let rows = vec![guarded(&house, "work", &["*.code-workspace"])];
        let line = "i=0; while [ $i -lt 1100 ]; do echo > $i.code-workspace; i=$((i+1)); done; exec sleep 60";
        let server = Server::run(&house, rows, &mechanism, line);
        let begun = Instant::now();
        let is_refused = |log: &[String]| log.iter().any(|line| line.contains("more than 1000"));
        while !is_refused(&server.log.lock().unwrap()) && begun.elapsed() < Duration::from_secs(20) {
            sleep(Duration::from_millis(20)).await;
        }
        assert!(is_refused(&server.log.lock().unwrap()), "{mechanism:?}");
        server.tasks.close();
        tokio::time::timeout(Duration::from_secs(20), server.tasks.wait()).await.unwrap();
    }
}
