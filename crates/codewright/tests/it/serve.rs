//! The server process.

use std::io::{BufRead, BufReader};

use anyhow::{Context, Result};
use codewright_testkit::{Run, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, ask, check_code, check_has, get, is_running, post, program, serve, wait_until};

#[test]
fn a_server_prints_its_address_and_ends_on_a_signal() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let mut server = program(&stage.project, ["serve"]).start()?;
    let line = server.line()?.context("no line")?;
    let url = line.strip_prefix("codewright server listening on ").context(line.clone())?.to_owned();
    assert_eq!(get(&url, "/global/health")?["healthy"], true);
    check_has(&server.so_far(), &["OPENCODE_SERVER_PASSWORD is not set"]);
    server.terminate()?;
    check_code(&server.finish()?, 0);
    let (server, _) =
        serve(program(&stage.project, ["serve", "--port", "0"]).env("OPENCODE_SERVER_PASSWORD", "p"))?;
    server.interrupt()?;
    let done = server.finish()?;
    check_code(&done, 0);
    assert_eq!(done.stderr, "");
    Ok(())
}

#[test]
fn a_sign_in_is_reported_to_the_clients_of_open_directories() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let (_server, url) = stage.serve()?;
    get(&url, "/agent")?;
    let mut seen = Vec::new();
    for line in BufReader::new(ask(&url, "/global/event")?).lines() {
        let line = line?;
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(data)?;
        let kind = event["payload"]["type"].as_str().context("no type")?.to_owned();
        match kind.as_str() {
            "server.connected" => {
                let (status, answer) = post(&url, "/api/integration/groq/connect/key", &json!({"key": "k"}))?;
                assert_eq!(status, 204, "{answer}");
                get(&url, "/agent")?;
            }
            "integration.connection.updated" | "integration.updated" | "catalog.updated" => {
                let directory = stage.project.directory().canonicalize()?;
                assert_eq!(event["directory"].as_str(), directory.to_str(), "{event}");
                seen.push(json!([kind, event["payload"]["properties"]]));
            }
            _ => {}
        }
        if kind == "catalog.updated" {
            break;
        }
    }
    let expected = json!([
        ["integration.connection.updated", {"integrationID": "groq"}],
        ["integration.updated", {}],
        ["integration.updated", {}],
        ["catalog.updated", {}],
    ]);
    assert_eq!(json!(seen), expected);
    Ok(())
}

#[test]
fn events_begin_with_the_connection() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Hello."))?;
    let (_server, url) = stage.serve()?;
    let events = BufReader::new(ask(&url, "/event")?);
    let mut types = Vec::new();
    let mut client = None;
    for line in events.lines() {
        let line = line?;
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(data)?;
        let kind = event["type"].as_str().context("no type")?.to_owned();
        if kind == "server.connected" {
            assert!(types.is_empty(), "{types:?}");
            client = Some(program(&stage.project, ["run", "--attach", &url, "hi"]).start()?);
        }
        types.push(kind.clone());
        if kind == "session.idle" {
            break;
        }
    }
    client.context("not connected")?.finish()?.success()?;
    for kind in
        ["session.created", "session.status", "message.updated", "message.part.updated", "message.part.delta"]
    {
        assert!(types.iter().any(|known| known == kind), "no {kind} in {types:?}");
    }
    Ok(())
}

#[test]
fn a_server_for_other_machines_needs_a_password() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    for hostname in ["0.0.0.0", "::"] {
        let done = program(&stage.project, ["serve", "--hostname", hostname]).finish()?;
        check_code(&done, 1);
        assert_eq!(done.stdout, "");
        check_has(&done.stderr, &["Error: ", hostname, "without a password", "OPENCODE_SERVER_PASSWORD"]);
    }
    let run = program(&stage.project, ["serve", "--hostname", "0.0.0.0", "--port", "0"]);
    let (_server, url) = serve(run.env("OPENCODE_SERVER_PASSWORD", "secret"))?;
    check_has(&url, &["http://0.0.0.0:"]);
    Ok(())
}

#[test]
fn a_port_in_use_is_reported() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port().to_string();
    let done = program(&stage.project, ["serve", "--port", &port]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: ", &format!("127.0.0.1:{port}")]);
    Ok(())
}

#[test]
fn a_server_that_ends_stops_its_turns() -> Result<()> {
    let own = format!("6004.{}", std::process::id());
    let script =
        Script::new().tool("bash", json!({"command": format!("sleep {own}")})).turn(Turn::text("On."));
    let stage = Stage::plain(script)?;
    let (server, url) = stage.serve()?;
    let run = program(&stage.project, ["run", "--attach", &url, "hi"]).start()?;
    wait_until("the command", || is_running(&own))?;
    server.terminate()?;
    check_code(&server.finish()?, 0);
    wait_until("the end of the child", || !is_running(&own))?;
    let done = run.finish()?;
    assert!(done.code.is_some_and(|code| code <= 1), "{done:?}");
    // The session is consistent and can be continued in another process.
    stage.run(["-c", "go on"])?.success()?;
    stage.no_problems()
}

#[test]
fn under_the_name_opencode_it_prints_the_line_that_clients_expect() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let link = stage.project.path("opencode");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_codewright"), &link)?;
    let mut server = Run::new(link, &stage.project).args(["serve"]).start()?;
    let line = server.line()?.context("no line")?;
    check_has(&line, &["opencode server listening on http://127.0.0.1:"]);
    Ok(())
}

#[test]
fn the_address_comes_from_the_users_configuration_and_not_from_a_repository() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let free = std::net::TcpListener::bind("127.0.0.2:0")?.local_addr()?.port();
    let global = stage.project.home().join(".config/opencode");
    std::fs::create_dir_all(&global)?;
    let written = json!({"server": {"hostname": "127.0.0.2", "port": free}});
    std::fs::write(global.join("opencode.json"), written.to_string())?;
    stage.project.write("codewright.json", r#"{"server": {"hostname": "0.0.0.0", "port": 1}}"#)?;
    let (_server, url) = serve(program(&stage.project, ["serve"]))?;
    assert_eq!(url, format!("http://127.0.0.2:{free}"));
    let (_server, url) = serve(program(&stage.project, ["serve", "--hostname", "127.0.0.1"]))?;
    assert_eq!(url, format!("http://127.0.0.1:{free}"));
    Ok(())
}

#[test]
fn the_log_contains_requests_and_failures_and_no_secrets() -> Result<()> {
    const KEY: &str = "sk-0123456789-very-secret-key";
    let stage = Stage::plain(Script::new().turn(Turn::http_error(400)))?;
    let run = program(&stage.project, ["serve", "--port", "0", "--log-level", "debug", "--print-logs"]);
    let (server, url) = serve(run)?;
    get(&url, &format!("/session?auth_token={KEY}"))?;
    program(&stage.project, ["run", "--attach", &url, "hi"]).finish()?;
    server.terminate()?;
    let shown = server.finish()?.stderr;
    let path = stage.project.home().join(".local/state/codewright/log/codewright.log");
    let kept = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    for text in [&shown, &kept] {
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<_> = lines.collect();
        let of = |message: &str| {
            let found =
                lines.iter().find(|line| line["message"].as_str().is_some_and(|is| is.starts_with(message)));
            found.with_context(|| format!("no `{message}` in {text}"))
        };
        assert_eq!(of("listening on http://")?["level"], "info");
        assert_eq!(of("ended")?["service"], "server");
        let listed = of("GET /session")?;
        assert_eq!((&listed["level"], &listed["extra"]["status"]), (&json!("debug"), &json!(200)));
        assert!(listed["extra"]["request"].as_str().is_some_and(|id| id.starts_with("req_")), "{listed}");
        let failed = lines.iter().find(|line| line["service"] == "session").context("no failure")?;
        assert_eq!((&failed["level"], &failed["extra"]["statusCode"]), (&json!("warn"), &json!(400)));
        assert!(failed["extra"]["sessionID"].as_str().is_some_and(|id| id.starts_with("ses_")), "{failed}");
        assert!(!text.contains(KEY), "{text}");
    }
    Ok(())
}

#[test]
fn ordinary_requests_are_only_logged_with_debug() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let (server, url) = serve(program(&stage.project, ["serve", "--port", "0"]))?;
    get(&url, "/session")?;
    server.terminate()?;
    let done = server.finish()?;
    let kept =
        std::fs::read_to_string(stage.project.home().join(".local/state/codewright/log/codewright.log"))?;
    check_has(&kept, &["listening on http://", "ended"]);
    assert!(!kept.contains("GET ") && !done.stderr.contains("listening"), "{kept}{}", done.stderr);
    Ok(())
}
