//! What operators of a server use: readiness, metrics and the log.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use codewright_testkit::{Script, is_default_store};
use serde_json::{Value, json};

use crate::support::{
    Call, Stage, check_has, database, get, new_session, post, program, prompt, serve, wait_until,
};

fn call(url: &str, path: &str) -> Result<(u16, String)> {
    Call { url, method: "GET", path, headers: &[], body: "" }.send()
}

/// A process that holds the lock for writing of a database until it is dropped.
struct Blocker(std::process::Child);

impl Blocker {
    fn start(database: &std::path::Path) -> Result<Self> {
        let script = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
            db.execute('BEGIN IMMEDIATE')\nprint('locked', flush=True)\nsys.stdin.read()";
        let mut python = Command::new("python3");
        python.arg("-c").arg(script).arg(database);
        let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        assert_eq!(line, "locked\n");
        Ok(Self(child))
    }
}

impl Drop for Blocker {
    fn drop(&mut self) {
        drop(self.0.stdin.take().map(|mut input| input.flush()));
        drop(self.0.wait());
    }
}

#[test]
fn a_server_is_ready_while_its_store_can_be_written() -> Result<()> {
    if !is_default_store() {
        return Ok(());
    }
    let stage = Stage::plain(Script::new())?;
    let (_server, url) = stage.serve()?;
    assert_eq!(get(&url, "/global/ready")?, json!({"ready": true}));
    let blocker = Blocker::start(&database(&stage.project))?;
    wait_until("the reason", || {
        call(&url, "/global/ready")
            .is_ok_and(|(status, text)| status == 503 && text.contains("\"ready\":false"))
    })?;
    check_has(&call(&url, "/global/ready")?.1, &["\"reason\":\"the store "]);
    assert_eq!(get(&url, "/global/health")?["healthy"], true);
    drop(blocker);
    wait_until("the store", || call(&url, "/global/ready").is_ok_and(|(status, _)| status == 200))
}

#[test]
fn metrics_are_off_by_default_and_contain_neither_sessions_nor_directories() -> Result<()> {
    let stage = Stage::plain(Script::new().text("A secret answer."))?;
    let (_server, url) = stage.serve()?;
    assert_eq!(call(&url, "/metrics")?.0, 404);
    let (_server, url) = serve(stage.program(["serve", "--metrics"]))?;
    let session = new_session(&url)?;
    assert_eq!(post(&url, &format!("/session/{session}/message"), &prompt("a secret prompt"))?.0, 200);
    let (status, text) = call(&url, "/metrics")?;
    assert_eq!(status, 200);
    check_has(
        &text,
        &[
            "text/plain; version=0.0.4",
            "codewright_http_requests_total{class=\"2xx\"} 2",
            "codewright_http_response_seconds_bucket{le=\"+Inf\"} 2",
            "codewright_event_streams 0",
            "codewright_running_sessions 0",
            "process_start_time_seconds ",
        ],
    );
    let directory = stage.project.directory().display().to_string();
    for private in ["secret", session.as_str(), directory.as_str(), "/session"] {
        assert!(!text.contains(private), "{private} in {text}");
    }
    let series = text.lines().filter(|line| line.starts_with("codewright_") || line.starts_with("process_"));
    assert!(series.count() < 40, "{text}");
    Ok(())
}

#[test]
fn metrics_and_probes_need_the_password_unless_they_are_open() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let statuses = |config: Value| -> Result<[u16; 4]> {
        stage.project.write_config(&config)?;
        let run = program(&stage.project, ["serve"]).env("OPENCODE_SERVER_PASSWORD", "p");
        let (_server, url) = serve(run)?;
        let status = |path: &str| Ok::<_, anyhow::Error>(call(&url, path)?.0);
        Ok([status("/metrics")?, status("/global/ready")?, status("/global/health")?, status("/session")?])
    };
    assert_eq!(statuses(json!({"server": {"metrics": "guarded"}}))?, [401, 401, 401, 401]);
    assert_eq!(statuses(json!({"server": {"metrics": "open"}}))?, [200, 401, 401, 401]);
    assert_eq!(statuses(json!({"server": {"probes": "open"}}))?, [401, 200, 200, 401]);
    Ok(())
}

#[test]
fn lines_of_a_server_s_log_name_the_server_and_the_request() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let (server, url) = serve(stage.program(["serve", "--print-logs", "--log-level", "DEBUG"]))?;
    let headers = [("x-request-id", "mine-1")];
    Call { url: &url, method: "GET", path: "/global/health", headers: &headers, body: "" }.send()?;
    wait_until("the line", || server.so_far().contains("GET /global/health"))?;
    server.terminate()?;
    let done = server.finish()?;
    let lines = done.stderr.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let line = lines.into_iter().find(|line| line["message"] == "GET /global/health").context("no line")?;
    assert_eq!(line["extra"]["request"], "mine-1");
    assert!(line["node"].as_str().context("no node")?.contains('-'), "{line}");
    Ok(())
}
