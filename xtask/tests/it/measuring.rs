//! The measuring process.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Far longer than any of these runs takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

struct Measured {
    cost: Value,
    stdout: String,
    stderr: String,
}

/// Measures a shell command.
fn measure(sink: &str, deadline: Duration, script: &str) -> Measured {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["measure", sink]).arg(deadline.as_millis().to_string());
    command.args([path("out"), path("err")]).args(["/bin/sh", "-c", script]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // Kept open until the cost is printed.
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert!(output.status.success());
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let cost = serde_json::from_slice(&output.stdout).unwrap();
    Measured { cost, stdout: read("out"), stderr: read("err") }
}

#[test]
fn a_cost_has_the_exit_code_and_the_output_is_kept() {
    for sink in ["file", "pipe"] {
        let measured = measure(sink, LONG, "echo out; echo err >&2; exit 3");
        assert_eq!((measured.stdout.as_str(), measured.stderr.as_str()), ("out\n", "err\n"), "{sink}");
        assert_eq!(measured.cost["code"], 3);
        assert_eq!(measured.cost["late"], false);
        assert!(measured.cost["peak_kib"].as_i64().unwrap() > 0);
    }
}

#[test]
fn the_cpu_of_a_waited_for_child_is_counted() {
    let idle = measure("file", LONG, "exit 0");
    let busy = measure("file", LONG, "sh -c 'n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done'; exit 0");
    let cpu = |measured: &Measured| measured.cost["cpu_us"].as_i64().unwrap();
    assert!(cpu(&busy) > 2 * cpu(&idle), "{} against {}", cpu(&busy), cpu(&idle));
}

#[test]
fn a_run_is_killed_at_its_deadline_with_its_children() {
    let begun = Instant::now();
    let measured = measure("pipe", Duration::from_millis(300), "sleep 300 & sleep 300");
    assert_eq!(measured.cost["late"], true);
    assert_eq!(measured.cost["signal"], 9);
    // The pipe closes only when both processes have ended.
    assert!(begun.elapsed() < Duration::from_secs(200));
}

#[test]
fn a_run_is_killed_when_stdin_is_closed() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["measure", "file", "100000"]).args([path("out"), path("err")]).args(["sleep", "300"]);
    // Stdin is at its end from the start, as if the benchmark had ended.
    let output = command.stdin(Stdio::null()).output().unwrap();
    let cost: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(cost["signal"], 9, "{cost}");
    assert_eq!(cost["late"], false);
}
