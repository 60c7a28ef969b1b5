//! The benchmark and the scripted model as commands.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

fn xtask(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A program that says something whatever it is asked, and never what was asked for.
const PARROT: &str = "/bin/echo";

#[test]
fn two_programs_are_measured_side_by_side() {
    let output = xtask(&["bench", "--bin", PARROT, "--against", PARROT, "--runs", "2", "--only", "version"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("limit 4 ms") && text.contains(" x ours"), "{text}");
}

#[test]
fn a_program_that_does_not_answer_has_no_figures() {
    let output = xtask(&["bench", "--bin", PARROT, "--runs", "1", "--only", "hi"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("FAILED ours hi: the answer is not in its output"), "{text}");
    assert!(!text.contains("limit 45 ms"), "{text}");
}

#[test]
fn a_flag_nobody_knows_is_named() {
    let output = xtask(&["bench", "--fast"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`bench` has no flag `--fast`"));
}

#[test]
fn the_scripted_model_says_where_it_listens() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let mut child = command.args(["scripted", "--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let port = line.rsplit(':').next().unwrap().parse::<u16>();
    assert!(line.contains("http://127.0.0.1:") && port.is_ok_and(|port| port > 0), "{line}");
}
