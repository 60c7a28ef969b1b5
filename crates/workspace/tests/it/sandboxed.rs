//! Commands in a sandbox, with each mechanism of this machine.
//!
//! A mechanism that does not work here is skipped, and the test says so.

use std::fs::{create_dir, create_dir_all, read_to_string, write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codewright_workspace::{
    Author, Below, Command, Confined, Confinement, End, Ended, Guarded, Limits, Mechanism, Mounter, Network,
    OutsidePackages, Sandbox, run, sandbox_support,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(30);

/// A home directory with a worktree, a secret and a directory of another project.
pub(crate) struct House {
    directory: TempDir,
}

impl House {
    pub(crate) fn new() -> Self {
        // Not in /tmp, which is private in a sandbox.
        let house = Self { directory: TempDir::new_in("/var/tmp").expect("a directory") };
        for name in ["work/.git/hooks", "home/.ssh", "other", "private"] {
            create_dir_all(house.path(name)).expect("written");
        }
        write(house.path("home/.ssh/id"), "SECRET").expect("written");
        write(house.path("home/notes"), "readable").expect("written");
        write(house.path("other/file"), "before").expect("written");
        write(house.path("work/.git/config"), "[core]").expect("written");
        house
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn sandbox(&self) -> Sandbox {
        Sandbox {
            write: vec![self.path("work"), self.path("work/.git")],
            protect: vec![self.path("work/.git/config"), self.path("work/.git/hooks")],
            guarded: vec![Guarded {
                directory: self.path("work"),
                patterns: vec!["opencode.json*".to_owned(), ".claude".to_owned()],
                except: Vec::new(),
            }],
            below: Below {
                directories: vec![self.path("work")],
                rows: [&[".envrc"][..], &[".git", "$"], &[".git", "config"]]
                    .iter()
                    .map(|row| row.iter().map(|&name| name.to_owned()).collect())
                    .collect(),
                except: Vec::new(),
                outside_packages: OutsidePackages {
                    directories: vec![self.path("work")],
                    rows: vec![vec![".npmrc".to_owned()]],
                    packages: vec!["node_modules".to_owned()],
                    linked: Vec::new(),
                },
                unless_linked: Vec::new(),
            },
            hide: vec![self.path("home/.ssh"), PathBuf::from("/run")],
            show: Vec::new(),
            temporary: self.path("private"),
            mask: Vec::new(),
            blank: None,
            opened: Vec::new(),
            network: Network::Off,
        }
    }

    pub(crate) async fn run(&self, mechanism: &Mechanism, line: &str) -> Ended {
        self.run_in(self.sandbox(), mechanism, line).await
    }

    pub(crate) async fn run_in(&self, sandbox: Sandbox, mechanism: &Mechanism, line: &str) -> Ended {
        self.run_command(self.command(sandbox, mechanism, line)).await
    }

    /// Runs a line with another program as supervisor.
    async fn run_by(&self, program: PathBuf, mechanism: &Mechanism, line: &str) -> Ended {
        let command = self.command(self.sandbox(), mechanism, line);
        self.run_command(Command { confinement: Confinement::Supervisor(program), ..command }).await
    }

    fn command(&self, sandbox: Sandbox, mechanism: &Mechanism, line: &str) -> Command {
        Command {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), line.into()],
            directory: self.path("work"),
            env: vec![("ROOT".to_owned(), self.directory.path().to_string_lossy().into_owned())],
            env_remove: Vec::new(),
            confinement: confinement(),
            author: Author::Model,
            sandbox: Some(Arc::new(Confined { sandbox, mechanism: mechanism.clone(), connections: None })),
        }
    }

    async fn run_command(&self, command: Command) -> Ended {
        let limits = Limits { timeout: SOON, lines: 1000, bytes: 50_000, spill: self.path("spill/out") };
        run(command, limits, &CancellationToken::new(), &mut |_| {}).await.expect("started")
    }
}

pub(crate) fn confinement() -> Confinement {
    Confinement::Supervisor(env!("CARGO_BIN_EXE_supervise").into())
}

/// The mechanisms that work here.
#[expect(clippy::print_stderr, reason = "the results must show that a mechanism was skipped")]
pub(crate) fn mechanisms() -> Vec<Mechanism> {
    let strongest = sandbox_support(&confinement());
    let mut mechanisms = vec![strongest.mechanism.clone()];
    if let Mechanism::Bubblewrap(program, mounter, creation) = &strongest.mechanism {
        if *mounter == Mounter::Helper {
            mechanisms.push(Mechanism::Bubblewrap(program.clone(), Mounter::Bubblewrap, *creation));
        } else {
            eprintln!("skipped: mounts of the helper");
        }
        mechanisms.push(Mechanism::Landlock(6));
    } else {
        eprintln!("skipped: bubblewrap: {:?}", strongest.reasons);
    }
    mechanisms.retain(|mechanism| *mechanism != Mechanism::Nothing);
    mechanisms
}

/// The mechanism with all promises, if it works here.
pub(crate) fn complete() -> Option<Mechanism> {
    mechanisms().into_iter().find(Mechanism::is_complete)
}

pub(crate) fn exit(ended: &Ended) -> (End, String) {
    (ended.end, ended.output.text().trim().to_owned())
}

#[tokio::test]
async fn only_writable_directories_can_be_written() {
    for mechanism in mechanisms() {
        let house = House::new();
        let ended = house.run(&mechanism, "echo new > file && mkdir -p a/b && cat file").await;
        assert_eq!(exit(&ended), (End::Exited(0), "new".to_owned()), "{mechanism:?}");
        for line in [
            "echo x > $ROOT/other/file",
            "echo x > $ROOT/home/new",
            "rm $ROOT/other/file",
            "mv $ROOT/other $ROOT/work/other",
            "ln $ROOT/other/file $ROOT/work/link && echo x > $ROOT/work/link",
            "ln -s $ROOT/other/file $ROOT/work/soft; echo x > $ROOT/work/soft",
            "chmod 777 $ROOT/other/file",
            "touch /etc/codewright-was-here",
        ] {
            let ended = house.run(&mechanism, line).await;
            if mechanism.is_complete() || !line.starts_with("chmod") {
                assert_ne!(ended.end, End::Exited(0), "{mechanism:?}: {line}");
            }
            assert_eq!(read_to_string(house.path("other/file")).unwrap(), "before", "{mechanism:?}: {line}");
            assert!(!house.path("home/new").exists());
        }
    }
}

#[tokio::test]
async fn hidden_files_cannot_be_read() {
    for mechanism in mechanisms() {
        let house = House::new();
        let ended =
            house.run(&mechanism, "cat $ROOT/home/notes; cat $ROOT/home/.ssh/id; ls $ROOT/home/.ssh").await;
        let text = ended.output.text();
        assert!(text.contains("readable") && !text.contains("SECRET"), "{mechanism:?}: {text}");
        let ended = house
            .run(&mechanism, "ln -s $ROOT/home/.ssh/id here; cat here /proc/self/root$ROOT/home/.ssh/id")
            .await;
        assert!(!ended.output.text().contains("SECRET"), "{mechanism:?}");
    }
}

#[tokio::test]
async fn protected_files_stay_as_they_are() {
    let Some(mechanism) = complete() else { return };
    let house = House::new();
    for line in [
        "echo evil > .git/config",
        "rm .git/config",
        "mv .git/config .git/old",
        "mv .git old && mkdir .git && echo evil > .git/config",
        "echo evil > .git/hooks/pre-commit",
        "rm -rf .git",
        "ln .git/config copy && echo evil > copy",
        "cp .git/config /tmp/c && mv /tmp/c .git/config",
    ] {
        let ended = house.run(&mechanism, line).await;
        assert_ne!(ended.end, End::Exited(0), "{line}: {}", ended.output.text());
        assert_eq!(read_to_string(house.path("work/.git/config")).unwrap(), "[core]", "{line}");
        assert!(house.path("work/.git/hooks").read_dir().unwrap().next().is_none(), "{line}");
    }
    let ended = house.run(&mechanism, "echo x > .git/index && cat .git/config").await;
    assert_eq!(exit(&ended), (End::Exited(0), "[core]".to_owned()));
}

#[tokio::test]
async fn a_protected_name_never_appears() {
    for mechanism in mechanisms() {
        let house = House::new();
        let ended = house
            .run(&mechanism, "echo '{}' > opencode.json; mkdir .claude; mkdir -p a/b; echo x > a/b/.envrc; echo ok > allowed")
            .await;
        assert_eq!(ended.end, End::Exited(0), "{mechanism:?}: {}", ended.output.text());
        let names = ["work/.claude", "work/a/b/.envrc", "work/opencode.json"].map(|name| house.path(name));
        assert!(names.iter().all(|path| !path.exists()), "{mechanism:?}");
        assert!(house.path("work/allowed").exists());
        let mut refused = ended.refused_names.clone();
        refused.sort();
        assert_eq!(refused, names, "{mechanism:?}: {}", ended.output.text());
        assert_eq!(std::fs::read_dir(house.path("work")).unwrap().count(), 3, "nothing else was created");
    }
}

#[tokio::test]
async fn a_protected_link_cannot_be_replaced_or_removed() {
    let Some(mechanism) = complete() else { return };
    let house = House::new();
    create_dir(house.path("work/real")).unwrap();
    symlink("real", house.path("work/.claude")).unwrap();
    for line in [
        "rm .claude",
        "mv .claude x",
        "ln -sfn other .claude",
        "ln -s real y; mv -T y .claude",
        "rm -rf .claude",
    ] {
        let ended = house.run(&mechanism, line).await;
        assert_ne!(ended.end, End::Exited(0), "{line}: {}", ended.output.text());
        assert_eq!(std::fs::read_link(house.path("work/.claude")).unwrap(), Path::new("real"), "{line}");
    }
    let ended =
        house.run(&mechanism, "echo x > file && rm file && mkdir d && rmdir d  && mkdir e && mv e e2").await;
    assert_eq!(ended.end, End::Exited(0), "{}", ended.output.text());
}

#[tokio::test]
async fn nothing_is_reached_through_the_network() {
    for mechanism in mechanisms() {
        let house = House::new();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = house.path("home/socket");
        let unix = UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        unix.set_nonblocking(true).unwrap();
        let script = format!(
            "import socket\n\
             for f, k, a in [(2, 1, ('127.0.0.1', {port})), (2, 2, ('127.0.0.1', {port})), (10, 1, ('::1', {port})),\n\
             \x20   (1, 1, '{}'), (1, 1, '\\0abstract-codewright')]:\n\
             \x20 try:\n\
             \x20   s = socket.socket(f, k); s.connect(a); s.send(b'x'); print('sent', f, k)\n\
             \x20 except OSError as e: print('failed', f, k)\n",
            socket.display(),
        );
        write(house.path("work/connect.py"), script).unwrap();
        let ended = house.run(&mechanism, "python3 connect.py").await;
        let text = ended.output.text();
        assert_eq!(ended.end, End::Exited(0), "{mechanism:?}: {text}");
        assert!(listener.accept().is_err(), "{mechanism:?}: {text}");
        if !mechanism.is_complete() {
            assert!(unix.accept().is_err(), "{mechanism:?}: {text}");
        }
    }
}

#[tokio::test]
async fn sockets_in_hidden_directories_cannot_be_reached() {
    let Some(mechanism) = complete() else { return };
    let house = House::new();
    let socket = house.path("home/.ssh/agent");
    let unix = UnixListener::bind(&socket).unwrap();
    unix.set_nonblocking(true).unwrap();
    let line =
        "python3 -c \"import socket,os; socket.socket(1,1).connect(os.environ['ROOT']+'/home/.ssh/agent')\"";
    let ended = house.run(&mechanism, line).await;
    assert_ne!(ended.end, End::Exited(0));
    assert!(unix.accept().is_err());
}

#[tokio::test]
async fn dangerous_system_calls_fail() {
    for mechanism in mechanisms() {
        let house = House::new();
        for line in [
            "unshare -U true",
            "unshare -Ur mount -t tmpfs none /mnt",
            "mount -t tmpfs none /mnt",
            "nsenter -t 1 -m true",
            "chroot / true",
            "python3 -c \"import ctypes,os; r=ctypes.CDLL(None,use_errno=True).syscall(425,8,0); os._exit(0 if r>=0 else 1)\"",
            "python3 -c \"import ctypes,os; r=ctypes.CDLL(None,use_errno=True).syscall(321,0,0,0); os._exit(0 if r>=0 else 1)\"",
        ] {
            let ended = house.run(&mechanism, line).await;
            assert_ne!(ended.end, End::Exited(0), "{mechanism:?}: {line}");
        }
    }
}

#[tokio::test]
async fn calls_that_a_filter_cannot_judge_are_missing() {
    // The last is `unshare` with 32-bit pointers.
    for call in ["425", "435", "0x40000000 | 272"] {
        for mechanism in mechanisms() {
            let line = format!(
                "python3 -c \"import ctypes; c=ctypes.CDLL(None,use_errno=True); print(c.syscall({call},0x10000000,0), ctypes.get_errno())\""
            );
            let ended = House::new().run(&mechanism, &line).await;
            assert_eq!(ended.output.text().trim(), "-1 38", "{mechanism:?}: {call}");
        }
    }
}

#[tokio::test]
async fn processes_outside_cannot_be_seen_or_stopped() {
    let mut outside = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    for mechanism in mechanisms() {
        let house = House::new();
        let id = outside.id();
        let ended =
            house.run(&mechanism, &format!("kill -9 {id}; cat /proc/{id}/environ | head -c 1 | wc -c")).await;
        if mechanism.is_complete() {
            assert!(ended.output.text().trim().ends_with('0'), "{}", ended.output.text());
        }
        assert!(outside.try_wait().unwrap().is_none(), "{mechanism:?}");
    }
    outside.kill().unwrap();
    outside.wait().unwrap();
}

#[tokio::test]
async fn ordinary_things_work() {
    for mechanism in mechanisms() {
        let house = House::new();
        let line = "echo a > \"$TMPDIR/x\" && cat \"$TMPDIR/x\" && echo b > /dev/null && ls /proc/self > /dev/null \
                    && (echo c | cat) && python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"d\"); print(b.recv(1).decode())' \
                    && (sleep 0.05; echo late) & wait; exit 7";
        let ended = house.run(&mechanism, line).await;
        assert_eq!(exit(&ended), (End::Exited(7), "a\nc\nd\nlate".to_owned()), "{mechanism:?}");
        assert_eq!(read_to_string(house.path("private/x")).unwrap(), "a\n");
        let ended = house.run(&mechanism, "kill -TERM $$").await;
        assert_eq!(ended.end, End::Exited(143), "{mechanism:?}");
        let ended = house.run(&mechanism, "nope-nope").await;
        assert_eq!(ended.end, End::Exited(127), "{mechanism:?}");
    }
}

#[tokio::test]
async fn a_timeout_leaves_no_process() {
    for mechanism in mechanisms() {
        let house = House::new();
        let command = Command {
            program: "/bin/sh".into(),
            args: vec![
                "-c".into(),
                "trap '' TERM; setsid sleep 314159 & echo started; while :; do sleep 0.1; done".into(),
            ],
            directory: house.path("work"),
            env: Vec::new(),
            env_remove: Vec::new(),
            confinement: confinement(),
            author: Author::Model,
            sandbox: Some(Arc::new(Confined {
                sandbox: house.sandbox(),
                mechanism: mechanism.clone(),
                connections: None,
            })),
        };
        let limits = Limits {
            timeout: Duration::from_secs(1),
            lines: 10,
            bytes: 1000,
            spill: house.path("spill/out"),
        };
        let ended = run(command, limits, &CancellationToken::new(), &mut |_| {}).await.unwrap();
        assert_eq!(exit(&ended), (End::TimedOut, "started".to_owned()), "{mechanism:?}");
        assert!(!is_running("314159"), "{mechanism:?}");
    }
}

/// Whether a process has this argument.
fn is_running(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("a list of processes").flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()))
}

#[tokio::test]
async fn mounts_of_the_helper_leave_no_right_and_no_device_that_can_be_changed() {
    for mechanism in mechanisms() {
        if !matches!(mechanism, Mechanism::Bubblewrap(_, Mounter::Helper, _)) {
            continue;
        }
        let house = House::new();
        let line = "grep -c '^Cap.*[1-9a-f]$' /proc/self/status; chmod 600 /dev/null 2>&1; \
                    echo x > /dev/null && ls -l /dev/null | cut -c1-10; umount /run 2>&1; ls /run; \
                    touch /dev/shm/x /tmp/y && ls $ROOT/private; cat /proc/self/uid_map | tr -s ' '";
        let (end, text) = exit(&house.run(&mechanism, line).await);
        let expected = ["0\n", "Read-only file system", "crw-rw-rw-", "y\n", " 1"];
        assert!(expected.iter().all(|part| text.contains(part)) && end == End::Exited(0), "{end:?} {text}");
    }
}

#[tokio::test]
async fn a_program_that_commands_can_exchange_makes_no_mounts() {
    let Some(mechanism) = complete() else { return };
    let house = House::new();
    let program = house.path("work/program");
    std::fs::copy(env!("CARGO_BIN_EXE_supervise"), &program).expect("copied");
    let line = "grep -c ' /dev/codewright ' /proc/self/mountinfo; touch /etc/codewright-was-here 2> /dev/null || echo held";
    let (end, text) = exit(&house.run_by(program, &mechanism, line).await);
    assert_eq!((end, text.as_str()), (End::Exited(0), "1\nheld"));
}

#[tokio::test]
async fn variables_that_load_code_reach_the_command_alone() {
    for mechanism in mechanisms() {
        let house = House::new();
        let mut command = house.command(house.sandbox(), &mechanism, "echo $LD_PRELOAD; env | grep -c LATER");
        command.env.push(("LD_PRELOAD".to_owned(), "/codewright-missing.so".to_owned()));
        let (_, text) = exit(&house.run_command(command).await);
        let errors = text.lines().filter(|line| line.contains("cannot be preloaded")).count();
        // The shell, `env` and `grep` complain, and no program that builds the sandbox.
        assert_eq!(errors, 3, "{mechanism:?} {text}");
        assert!(text.contains("/codewright-missing.so\n") && text.ends_with('0'), "{mechanism:?} {text}");
    }
}

#[tokio::test]
async fn restrictions_of_any_length_hold() {
    for mechanism in mechanisms() {
        let house = House::new();
        let mut sandbox = house.sandbox();
        // Far more than a helper reads from its standard input.
        for number in 0..300 {
            let hidden = house.path(&format!("other/{number}-{}", "x".repeat(200)));
            create_dir(&hidden).expect("created");
            write(hidden.join("secret"), "SECRET").expect("written");
            sandbox.hide.push(hidden);
        }
        let ended = house.run_in(sandbox, &mechanism, "cat $ROOT/other/*/secret 2>/dev/null | wc -c").await;
        assert_eq!(exit(&ended), (End::Exited(0), "0".to_owned()), "{mechanism:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_helper_without_all_restrictions_starts_nothing() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().expect("a directory");
    let mark = folder.path().join("mark");
    let frame = br#"{"forward":null,"frame":{"temporary":null,"proxy":null,"directory":"/","user":0,"group":0,"steps":2},"paths":null,"sockets":"Any"}"#;
    let with_length = |text: &[u8]| [&(text.len() as u32).to_le_bytes()[..], text].concat();
    for plan in [
        Vec::new(),
        vec![9, 0],
        [&[200, 0, 0, 0][..], frame].concat(),
        u32::MAX.to_le_bytes().to_vec(),
        with_length(b""),
        with_length(b"{}"),
        // Two mounts are missing.
        with_length(frame),
        with_length(&[&frame[..], b"\0write=/tmp\0everything=/"].concat()),
    ] {
        let mut helper = Command::new(env!("CARGO_BIN_EXE_supervise"))
            .args(["__confine", "-", "__supervise", "-", "/bin/touch"])
            .arg(&mark)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        // It may have ended already.
        drop(helper.stdin.take().expect("a pipe").write_all(&plan));
        let ended = helper.wait_with_output().expect("ended");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(126), "{plan:?}: {said}");
        assert!(said.starts_with("the command was not started: "), "{said}");
        assert!(!mark.exists());
    }
}
