//! Tests of projects, runs and the blocking server, with a shell as the program.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::Result;
use codewright_testkit::{BlockingServer, Kind, Outcome, Project, Run, Script, Turn};
use serde_json::Value;

/// Long enough for a loaded machine; a test waits this long only if it fails.
const DEADLINE: Duration = Duration::from_secs(30);

fn shell(project: &Project, script: &str) -> Run {
    Run::new("/bin/sh", project).args(["-c", script]).deadline(DEADLINE)
}

/// Whether a process has ended, even if it is still a zombie.
fn is_dead(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    status.is_err() || status.is_ok_and(|status| status.contains(") Z "))
}

fn wait_for_death(pid: &str) -> bool {
    let until = Instant::now() + DEADLINE;
    while !is_dead(pid) {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn a_git_project_has_one_commit_and_nothing_to_commit() -> Result<()> {
    let project = Project::git()?;
    project.configure("http://127.0.0.1:1")?;
    assert_eq!(project.run_git(&["log", "--format=%an %s"])?, "Tester First\n");
    assert_eq!(project.run_git(&["status", "--porcelain"])?, "");
    let same = Project::git()?;
    let head = ["rev-parse", "HEAD"];
    assert_eq!(project.run_git(&head)?, same.run_git(&head)?);
    Ok(())
}

#[test]
fn a_plain_project_is_not_a_repository_and_is_deleted_when_dropped() -> Result<()> {
    let project = Project::plain()?;
    assert!(!project.path(".git").exists());
    project.write("a/b.txt", "deep")?;
    assert_eq!(project.read("a/b.txt")?, "deep");
    let error = project.read("missing").unwrap_err().to_string();
    assert!(error.contains("cannot read `") && error.contains("missing`"), "{error}");
    let directory = project.directory().to_owned();
    drop(project);
    assert!(!directory.exists());
    Ok(())
}

#[test]
fn the_configuration_names_both_providers() -> Result<()> {
    let project = Project::plain()?;
    project.configure("http://127.0.0.1:9")?;
    let config: Value = serde_json::from_str(&std::fs::read_to_string(
        project.home().join(".config/opencode/opencode.json"),
    )?)?;
    assert_eq!(config["model"], "mock/plain-model");
    let provider = &config["provider"]["mock"];
    assert_eq!(provider["npm"], "@ai-sdk/openai-compatible");
    assert_eq!(provider["options"]["baseURL"], "http://127.0.0.1:9/v1");
    assert_eq!(provider["models"]["plain-model"]["limit"]["context"], 200_000);
    assert_eq!(config["provider"]["mockanth"]["npm"], "@ai-sdk/anthropic");
    assert!(config["provider"]["mockanth"]["models"]["claude-mock"].is_object());
    Ok(())
}

#[test]
fn a_program_sees_the_project_and_nothing_else() -> Result<()> {
    let project = Project::plain()?;
    let done = shell(&project, "pwd; env | cut -d= -f1 | sort").env("EXTRA", "1").finish()?.success()?;
    let mut lines = done.stdout.lines();
    assert_eq!(lines.next(), project.directory().to_str());
    // The shell sets the excluded ones itself.
    let names: Vec<_> = lines.filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name)).collect();
    let xdg = ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"];
    let expected: Vec<_> = ["CODEWRIGHT_SANDBOX_OUTER", "CODEWRIGHT_TRUST", "EXTRA", "HOME", "PATH"]
        .into_iter()
        .chain(xdg)
        .collect();
    assert_eq!(names, expected);
    Ok(())
}

#[test]
fn input_output_and_exit_code_are_passed() -> Result<()> {
    let project = Project::plain()?;
    let done = shell(&project, "cat; echo bad >&2; exit 3").stdin("given").finish()?;
    assert_eq!((done.stdout.as_str(), done.stderr.as_str(), done.code), ("given", "bad\n", Some(3)));
    let error = done.success().unwrap_err().to_string();
    assert!(error.contains("exit code 3") && error.contains("bad"), "{error}");
    // Without input, stdin is empty.
    assert_eq!(shell(&project, "cat; echo over").finish()?.stdout, "over\n");
    Ok(())
}

#[test]
fn lines_are_read_while_the_program_runs() -> Result<()> {
    let project = Project::plain()?;
    let mut running =
        shell(&project, "echo one; echo two; while [ ! -e go ]; do sleep 0.01; done; printf three")
            .start()?;
    assert_eq!(running.line_that(|line| line.starts_with("tw"))?, "two");
    project.write("go", "")?;
    assert_eq!(running.line()?.as_deref(), Some("three"));
    assert_eq!(running.line()?, None);
    assert_eq!(running.finish()?.stdout, "one\ntwo\nthree");
    Ok(())
}

#[test]
fn an_interrupt_reaches_the_program() -> Result<()> {
    let project = Project::plain()?;
    // Not a shell, because it cannot trap a signal that was ignored at its start, as in background jobs.
    // `os.write`, because `print` may be interrupted by the signal.
    let script = "import os, signal, time
signal.signal(signal.SIGINT, lambda *_: (os.write(1, b'caught\\n'), os._exit(130)))
print('ready', flush=True)
time.sleep(60)";
    let mut running = Run::new("python3", &project).args(["-c", script]).start()?;
    running.line_that(|line| line == "ready")?;
    running.interrupt()?;
    let done = running.finish()?;
    assert_eq!((done.code, done.stdout.as_str()), (Some(130), "ready\ncaught\n"));
    Ok(())
}

#[test]
fn after_the_deadline_the_group_is_killed_and_the_error_has_the_output() -> Result<()> {
    let project = Project::plain()?;
    let script = "sleep 1000 & echo $! > pid; echo before; echo odd >&2; wait";
    let error =
        shell(&project, script).deadline(Duration::from_millis(500)).finish().unwrap_err().to_string();
    assert!(error.contains("did not end within 500ms"), "{error}");
    assert!(error.contains("before") && error.contains("odd"), "{error}");
    assert!(wait_for_death(project.read("pid")?.trim()));
    let mut running = shell(&project, "sleep 1000").deadline(Duration::from_millis(50)).start()?;
    let error = running.line().unwrap_err().to_string();
    assert!(error.contains("wrote no line within 50ms"), "{error}");
    Ok(())
}

#[test]
fn dropping_a_program_kills_its_children() -> Result<()> {
    let project = Project::plain()?;
    let mut running = shell(&project, "sleep 1000 & echo $!; wait").start()?;
    let child = running.line()?.unwrap_or_default();
    let parent = running.id().to_string();
    drop(running);
    assert!(wait_for_death(&child) && wait_for_death(&parent));
    Ok(())
}

#[test]
fn a_blocking_server_needs_no_runtime() -> Result<()> {
    let server = BlockingServer::start(Script::new().turn(Turn::http_error(503)))?;
    let mut stream = TcpStream::connect(server.url().trim_start_matches("http://"))?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Go"}]}"#;
    let head = "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\nconnection: close";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(server.wait_for_request(1, DEADLINE)?.kind, Kind::Main);
    assert_eq!(server.wait_for_end(1, DEADLINE)?.outcome, Outcome::Status(503));
    assert_eq!((server.requests().len(), server.main_requests().len()), (1, 1));
    assert!(server.problems().is_empty());
    let error = server.wait_for_request(2, Duration::from_millis(20)).unwrap_err().to_string();
    assert!(error.contains("request 2 did not come"), "{error}");
    drop(server);
    // Another test may get the free port at once, but not three times.
    let refuses = || {
        let server = BlockingServer::start(Script::new())?;
        let url = server.url();
        drop(server);
        anyhow::Ok(TcpStream::connect(url.trim_start_matches("http://")).is_err())
    };
    assert!(refuses()? || refuses()? || refuses()?);
    Ok(())
}
