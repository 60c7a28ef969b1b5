//! The commands `bench` and `scripted`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

fn xtask(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A program that prints its arguments instead of an answer.
const PARROT: &str = "/bin/echo";

#[test]
fn two_programs_are_compared() {
    let output = xtask(&["bench", "--bin", PARROT, "--against", PARROT, "--runs", "2", "--only", "version"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("limit 4 ms") && text.contains(" x ours"), "{text}");
}

#[test]
fn a_program_without_an_answer_has_no_figures() {
    let output = xtask(&["bench", "--bin", PARROT, "--runs", "1", "--only", "hi"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("FAILED ours hi: the answer is not in its output"), "{text}");
    assert!(!text.contains("limit 45 ms"), "{text}");
}

#[test]
fn an_unknown_flag_is_an_error() {
    let output = xtask(&["bench", "--fast"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`bench` has no flag `--fast`"));
}

#[test]
fn the_scripted_model_prints_its_address() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let mut child = command.args(["scripted", "--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let port = line.rsplit(':').next().unwrap().parse::<u16>();
    assert!(line.contains("http://127.0.0.1:") && port.is_ok_and(|port| port > 0), "{line}");
}
