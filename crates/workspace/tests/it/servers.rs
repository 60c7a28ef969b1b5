//! Protected names of a server, which runs for long and is connected to this process.

use std::fs::{create_dir_all, read_to_string, write};
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use codewright_workspace::{Author, Command, Confined, Guarded, Mechanism, Outlet, Sandbox, Served, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use crate::sandboxed::{House, confinement, mechanisms};

/// The server runs each line of its input.
const SERVER: &str = "while read -r line; do eval \"$line\"; echo done; done";

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
        log.iter().filter(|line| line.starts_with("the sandbox refused")).cloned().collect()
    }
}

fn guarded(house: &House, directory: &str, patterns: &[&str]) -> Guarded {
    Guarded {
        directory: house.path(directory),
        patterns: patterns.iter().map(|one| (*one).to_owned()).collect(),
        except: Vec::new(),
    }
}

#[tokio::test]
async fn a_protected_file_of_a_server_never_appears_and_is_reported() {
    for mechanism in mechanisms() {
        let house = House::new();
        let rows = vec![guarded(&house, "work", &["opencode.json*", ".claude"])];
        let mut server = Server::start(&house, rows, &mechanism);
        for _ in 1..=2 {
            server.do_line("echo evil > opencode.json; mkdir .claude; echo fine > other").await;
            for name in ["opencode.json", ".claude"] {
                assert!(!house.path(&format!("work/{name}")).exists(), "{mechanism:?} {name}");
            }
        }
        assert!(house.path("work/other").exists());
        let log = server.end().await;
        assert_eq!(log.len(), 2, "each name is reported once: {log:?}");
        assert!(log.iter().any(|line| line.contains("work/opencode.json")), "{log:?}");
    }
}

#[tokio::test]
async fn what_the_user_creates_while_a_server_runs_stays() {
    for mechanism in mechanisms() {
        let house = House::new();
        let rows = vec![guarded(&house, "work", &["opencode.json*", ".opencode", ".claude"])];
        let mut server = Server::start(&house, rows, &mechanism);
        // The server tries all the time, too.
        server
            .do_line(
                "(while :; do echo evil > opencode.json; mkdir .opencode .claude; done) 2>/dev/null & true",
            )
            .await;
        for round in 0..20 {
            write(house.path("work/opencode.json"), "the user's").unwrap();
            create_dir_all(house.path("work/.opencode/command")).unwrap();
            write(house.path("work/.opencode/command/x.md"), "the user's").unwrap();
            sleep(Duration::from_millis(20)).await;
            assert_eq!(
                read_to_string(house.path("work/opencode.json")).unwrap(),
                "the user's",
                "{mechanism:?}"
            );
            assert_eq!(read_to_string(house.path("work/.opencode/command/x.md")).unwrap(), "the user's");
            std::fs::rename(house.path("work/.opencode"), house.path(&format!("other/{round}"))).unwrap();
            std::fs::remove_file(house.path("work/opencode.json")).unwrap();
        }
        assert_eq!(std::fs::read_dir(house.path("work")).unwrap().count(), 1, "nothing was moved");
        server.end().await;
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
        for (line, name) in [
            ("mkdir -p .config/git; echo evil > .config/git/config", ".config/git/config"),
            ("mv .config away; mkdir -p .config/git; echo evil > .config/git/config", ".config/git/config"),
            (
                "mkdir -p new/git; echo evil > new/git/config; rm -rf .config; mv new .config",
                ".config/git/config",
            ),
            ("mkdir -p n/git; echo evil > n/git/config; ln -s n .config", ".config/git/config"),
            (
                "exec 3<.cargo; rmdir .cargo; mkdir .cargo; echo evil > .cargo/config.toml",
                ".cargo/config.toml",
            ),
            ("mkdir n2; echo evil > n2/config.toml; mv -T n2 .cargo", ".cargo/config.toml"),
        ] {
            server.do_line(line).await;
            assert!(!house.path("work").join(name).exists(), "{mechanism:?}: {line}");
        }
        assert!(!server.end().await.is_empty(), "{mechanism:?}");
    }
}

#[tokio::test]
async fn names_behind_a_link_to_nothing_are_protected() {
    for mechanism in mechanisms() {
        let house = House::new();
        symlink("missing", house.path("work/.config")).unwrap();
        let rows = vec![guarded(&house, "work/.config", &["config"])];
        let mut server = Server::start(&house, rows, &mechanism);
        server.do_line("mkdir missing; echo evil > missing/config").await;
        assert!(
            house.path("work/missing").exists() && !house.path("work/missing/config").exists(),
            "{mechanism:?}"
        );
        server.end().await;
    }
}

#[tokio::test]
async fn a_server_that_keeps_trying_is_reported_a_bounded_number_of_times() {
    for mechanism in mechanisms() {
        let house = House::new();
        let rows = vec![guarded(&house, "work", &["*.code-workspace"])];
        let line = "i=0; while [ $i -lt 2000 ]; do echo > $i.code-workspace; i=$((i+1)); done 2>/dev/null; echo ok > end";
        let mut server = Server::start(&house, rows, &mechanism);
        server.do_line(line).await;
        assert!(house.path("work/end").exists(), "{mechanism:?}");
        let log = server.end().await;
        assert!(!log.is_empty() && log.len() < 1000, "{mechanism:?}: {}", log.len());
    }
}
