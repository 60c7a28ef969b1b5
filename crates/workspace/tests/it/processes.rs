//! Running programs and ending all their processes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use codewright_workspace::{Author, Command, Confinement, End, Ended, Error, Limits, run};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Much longer than any of these programs takes, and much shorter than a test that hangs.
const SOON: Duration = Duration::from_secs(20);

struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: TempDir::new().expect("a directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        Command {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), line.into()],
            directory: self.directory.path().to_owned(),
            env: Vec::new(),
            env_remove: Vec::new(),
            confinement: Confinement::Supervisor(env!("CARGO_BIN_EXE_supervise").into()),
            author: Author::Model,
            sandbox: None,
        }
    }

    fn limits(&self, timeout: Duration) -> Limits {
        Limits { timeout, lines: 100, bytes: 1000, spill: self.path("spill/out") }
    }

    async fn run(&self, line: &str, timeout: Duration) -> Ended {
        let cancel = CancellationToken::new();
        run(self.command(line), self.limits(timeout), &cancel, &mut |_| {}).await.expect("started")
    }

    /// The process id in a file, once it is written.
    async fn pid(&self, name: &str) -> String {
        let started = Instant::now();
        loop {
            let pid = std::fs::read_to_string(self.path(name)).unwrap_or_default();
            if pid.ends_with('\n') {
                return pid.trim().to_owned();
            }
            assert!(started.elapsed() < SOON, "no process");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn gone(pid: &str) {
    let started = Instant::now();
    loop {
        let state = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
        // An orphan may stay a zombie if no process reaps it.
        if state.is_empty() || state.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")) {
            return;
        }
        assert!(started.elapsed() < SOON, "process {pid} is still running");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_program_ends_with_its_code_and_output() {
    let place = Place::new();
    let ended = place.run("echo out; echo err >&2; exit 3", SOON).await;
    assert_eq!((ended.end, ended.output.text().as_str()), (End::Exited(3), "out\nerr\n"));
    assert!(ended.output.file().is_none() && !place.path("spill").exists());
}

#[tokio::test]
async fn a_program_that_ignores_the_polite_signal_is_killed() {
    let place = Place::new();
    let started = Instant::now();
    let line = "trap '' TERM; echo $$ > pid; while :; do sleep 1; done";
    let ended = place.run(line, Duration::from_millis(300)).await;
    assert_eq!(ended.end, End::TimedOut);
    assert!(started.elapsed() < SOON);
    gone(&place.pid("pid").await).await;
}

#[tokio::test]
async fn a_dropped_run_leaves_no_process() {
    let place = Place::new();
    let cancel = CancellationToken::new();
    let line = "sleep 60 & echo $! > child; echo $$ > pid; sleep 61";
    let mut watch = |_: &codewright_workspace::Output| {};
    let running = run(place.command(line), place.limits(SOON), &cancel, &mut watch);
    let (pid, child) = tokio::select! {
        _ = running => panic!("it ended by itself"),
        pids = async { (place.pid("pid").await, place.pid("child").await) } => pids,
    };
    gone(&pid).await;
    gone(&child).await;
}

#[tokio::test]
async fn a_long_output_goes_to_a_file_from_its_first_byte() {
    let place = Place::new();
    let ended = place.run("seq 1 100", SOON).await;
    let whole: String = (1..=100).map(|n| format!("{n}\n")).collect();
    let file = ended.output.file().expect("long").to_owned();
    assert_eq!(std::fs::read_to_string(file).expect("kept"), whole);
    assert!(ended.output.is_long() && ended.output.file_is_whole());
}

#[tokio::test]
async fn a_tail_splits_no_character() {
    let place = Place::new();
    let ended =
        place.run("i=0; while [ $i -lt 50 ]; do printf '\\342\\202\\254'; i=$((i+1)); done", SOON).await;
    for bytes in 0..12 {
        assert_eq!(ended.output.tail(bytes), "\u{20ac}".repeat(bytes / 3), "{bytes}");
    }
}

#[tokio::test]
async fn output_is_returned_even_if_its_file_cannot_be_written() {
    let place = Place::new();
    std::fs::write(place.path("spill"), "a file in the way").expect("written");
    let ended = place.run("seq 1 1000", SOON).await;
    assert!(ended.output.text().ends_with("1000\n") && ended.output.file().is_none());
}

#[tokio::test]
async fn the_error_for_a_missing_program_names_it() {
    let place = Place::new();
    let mut command = place.command("");
    command.program = "/no/such/shell".into();
    let cancel = CancellationToken::new();
    let ended = run(command.clone(), place.limits(SOON), &cancel, &mut |_| {}).await.expect("a supervisor");
    assert_eq!(ended.end, End::Exited(127));
    assert!(ended.output.text().starts_with("cannot start `/no/such/shell`: "), "{}", ended.output.text());
    command.confinement = Confinement::Group;
    let error = run(command, place.limits(SOON), &cancel, &mut |_| {}).await.expect_err("not there");
    assert!(matches!(&error, Error::Start { program, .. } if program == Path::new("/no/such/shell")));
}

/// Ways to leave processes running. `$T` is a sleep time that no other case uses.
const LEAVERS: [(&str, &str); 16] = [
    ("background", "sleep $T & echo x"),
    ("pipe holder", "(sleep $T; echo late) & echo x"),
    ("setsid", "setsid sleep $T & echo x"),
    ("nohup", "nohup sleep $T >/dev/null 2>&1 & echo x"),
    ("double fork", "(setsid sh -c 'sleep $T & exec sleep $T' &) ; echo x"),
    ("daemon", "(cd /; exec </dev/null >/dev/null 2>&1; setsid setsid sleep $T &) ; echo x"),
    ("deaf", "(trap '' TERM INT HUP; sleep $T; sleep $T) & echo x"),
    ("stopped", "sh -c 'kill -STOP $$; sleep $T' & sleep 0.1; echo x"),
    ("stopped alone", "sleep $T & kill -STOP $!; echo x"),
    ("terminal", "script -qc 'sleep $T' /dev/null >/dev/null 2>&1 & sleep 0.2; echo x"),
    ("no environment", "env -i setsid sleep $T & echo x"),
    ("closed ends", "sleep $T <&- >&- 2>&- & echo x"),
    ("zombies", "for i in 1 2 3 4 5; do (sh -c 'exit 0' & exec sleep $T) & done; echo x"),
    ("foreground and background", "sleep $T | setsid sleep $T & sleep 0.1; echo x"),
    ("without its supervisor", "sleep $T & setsid sleep $T & kill -9 $PPID; sleep $T"),
    ("hopping", "hop() { (setsid sh -c 'sleep 0.02; exec \"$0\" \"$@\"' sleep $T &) ; }; hop; hop; echo x"),
];

/// The ids of the processes whose arguments contain a word.
fn with_argument(word: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("processes");
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let holds = |id: &String| {
        let line = std::fs::read(Path::new("/proc").join(id).join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    names.filter(|name| name.parse::<u32>().is_ok()).filter(holds).collect()
}

/// A sleep time that identifies the processes of a test.
fn own_time(case: usize) -> String {
    format!("6{case}.{}", std::process::id())
}

#[tokio::test]
async fn no_process_survives_the_end_of_its_program() {
    for (case, (name, line)) in LEAVERS.into_iter().enumerate() {
        let (place, time) = (Place::new(), own_time(case));
        let ended = place.run(&line.replace("$T", &time), SOON).await;
        assert!(matches!(ended.end, End::Exited(_)), "{name}: {:?}", ended.end);
        let left = with_argument(&time);
        assert!(left.is_empty(), "{name} left {left:?}");
    }
}

#[tokio::test]
async fn no_process_survives_a_timeout_or_a_cancellation() {
    for (case, (name, line)) in LEAVERS.into_iter().enumerate() {
        let (place, time) = (Place::new(), own_time(100 + case));
        let line = format!("{} ; touch begun; sleep {time}", line.replace("$T", &time));
        let cancel = CancellationToken::new();
        if case % 2 == 0 {
            let ended = place.run(&line, Duration::from_millis(600)).await;
            assert!(matches!(ended.end, End::TimedOut | End::Exited(137)), "{name}: {:?}", ended.end);
        } else {
            let stop = async {
                let started = Instant::now();
                while !place.path("begun").exists() && started.elapsed() < Duration::from_secs(5) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                cancel.cancel();
            };
            let limits = place.limits(SOON);
            let mut watch = |_: &codewright_workspace::Output| {};
            let (ended, ()) = tokio::join!(run(place.command(&line), limits, &cancel, &mut watch), stop);
            let ended = ended.expect("started");
            assert!(matches!(ended.end, End::Cancelled | End::Exited(137)), "{name}: {:?}", ended.end);
            if let Some(rest) = ended.rest {
                rest.end().await;
            }
        }
        let left = with_argument(&time);
        assert!(left.is_empty(), "{name} left {left:?}");
    }
}
