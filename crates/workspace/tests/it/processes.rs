//! Processes and what is left of them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use codewright_workspace::{Command, End, Ended, Error, Limits, run};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Far more than any of these takes, far less than a test that hangs.
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
        }
    }

    fn limits(&self, timeout: Duration) -> Limits {
        Limits { timeout, lines: 100, bytes: 1000, spill: self.path("spill/out") }
    }

    async fn run(&self, line: &str, timeout: Duration) -> Ended {
        let cancel = CancellationToken::new();
        run(self.command(line), self.limits(timeout), &cancel, &mut |_| {}).await.expect("started")
    }

    /// The process whose number a file holds, once it does.
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
        // An orphan may stay a zombie where nobody collects it.
        if state.is_empty() || state.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")) {
            return;
        }
        assert!(started.elapsed() < SOON, "process {pid} is still there");
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
async fn a_tail_is_cut_between_characters() {
    let place = Place::new();
    let ended =
        place.run("i=0; while [ $i -lt 50 ]; do printf '\\342\\202\\254'; i=$((i+1)); done", SOON).await;
    for bytes in 0..12 {
        assert_eq!(ended.output.tail(bytes), "\u{20ac}".repeat(bytes / 3), "{bytes}");
    }
}

#[tokio::test]
async fn an_output_that_cannot_be_kept_whole_is_shown_all_the_same() {
    let place = Place::new();
    std::fs::write(place.path("spill"), "a file in the way").expect("written");
    let ended = place.run("seq 1 1000", SOON).await;
    assert!(ended.output.text().ends_with("1000\n") && ended.output.file().is_none());
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let place = Place::new();
    let mut command = place.command("");
    command.program = "/no/such/shell".into();
    let cancel = CancellationToken::new();
    let error = run(command, place.limits(SOON), &cancel, &mut |_| {}).await.expect_err("not there");
    assert!(matches!(&error, Error::Start { program, .. } if program == Path::new("/no/such/shell")));
}
