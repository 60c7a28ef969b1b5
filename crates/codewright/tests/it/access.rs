//! Access to a server: not for foreign pages, other users, or commands that the server runs.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use codewright_testkit::{BlockingServer, Project, Running, Script};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, get, new_session, post, program, prompt, serve, wait_until};

/// The user `nobody`.
const NOBODY: u32 = 65_534;
/// The time limit of a response while the server is busy.
const PROMPT: Duration = Duration::from_secs(1);

/// Sends a request with header lines and reads the whole response.
pub(crate) fn send(url: &str, first: &str, lines: &[&str]) -> Result<String> {
    let address = url.strip_prefix("http://").context("not an http address")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    write!(stream, "{first} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{lines}\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn port(url: &str) -> &str {
    url.rsplit(':').next().unwrap_or_default()
}

/// A bash line that sends a request and prints the response.
fn request(port: &str, method: &str, path: &str, body: &str) -> String {
    let head = format!(
        "{method} {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nConnection: close\\r\\n\
         Content-Type: application/json\\r\\nContent-Length: {}\\r\\n\\r\\n",
        body.len()
    );
    format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{head}%s' '{body}' >&3; cat <&3")
}

/// Whether tests can start programs as other users.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The output of a bash line that another user runs.
fn as_nobody(line: &str) -> Result<String> {
    let done = Command::new("bash").args(["-c", line]).uid(NOBODY).gid(NOBODY).current_dir("/").output()?;
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

#[test]
fn a_foreign_page_cannot_open_a_directory() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let (_server, url) = stage.serve()?;
    let trap = stage.project.home().join("trap");
    std::fs::create_dir(&trap)?;
    std::fs::write(trap.join("opencode.json"), "{ broken")?;
    let path = format!("GET /path?directory={}", trap.display());
    check_has(&send(&url, &path, &[])?, &["HTTP/1.1 500 ", "trap/opencode.json"]);
    for lines in [
        vec!["Origin: https://evil.example"],
        vec!["Origin: null"],
        vec!["Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"],
        vec!["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"],
        vec!["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"],
        vec!["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
        vec!["User-Agent: Mozilla/5.0", "Referer: https://evil.example/page"],
        vec!["User-Agent: Mozilla/5.0"],
    ] {
        for first in [
            path.clone(),
            format!("GET /event?directory={}", trap.display()),
            format!("GET /vcs/diff?mode=git&directory={}", trap.display()),
            format!("HEAD /path?directory={}", trap.display()),
            format!("OPTIONS /path?directory={}", trap.display()),
            format!("DELETE /session/ses_1?directory={}", trap.display()),
        ] {
            let answer = send(&url, &first, &lines)?;
            check_has(&answer, &["HTTP/1.1 403 "]);
            assert!(
                !answer.contains("opencode.json") && !answer.to_lowercase().contains("access-control"),
                "{answer}"
            );
        }
    }
    // A rebound host name and a WebSocket of a foreign page.
    let address = url.strip_prefix("http://").context("no address")?;
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /path HTTP/1.1\r\nHost: evil.example:4096\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    check_has(&answer, &["HTTP/1.1 403 "]);
    let upgrade = [
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        "Origin: https://evil.example",
    ];
    check_has(&send(&url, "GET /pty/pty_1/connect?ticket=x", &upgrade)?, &["HTTP/1.1 403 "]);
    Ok(())
}

#[test]
fn local_clients_and_their_pages_work_and_others_need_a_password() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let (_server, url) = stage.serve()?;
    for lines in [
        vec![],
        vec!["Origin: http://localhost:3000", "Sec-Fetch-Site: same-site"],
        vec!["Origin: http://127.0.0.1:5173", "Sec-Fetch-Site: cross-site"],
        vec!["Origin: tauri://localhost", "Sec-Fetch-Site: cross-site"],
        vec!["Origin: oc://renderer"],
        vec!["Sec-Fetch-Site: same-origin"],
    ] {
        check_has(&send(&url, "GET /path", &lines)?, &["HTTP/1.1 200 "]);
    }
    let web = ["Origin: https://app.opencode.ai", "Sec-Fetch-Site: cross-site"];
    let answer = send(&url, "GET /path", &web)?;
    check_has(&answer, &["HTTP/1.1 401 ", "a password is required", "OPENCODE_SERVER_PASSWORD"]);
    let run = program(&stage.project, ["serve", "--cors", "https://pages.example"]);
    let (_closed, url) = serve(run.env("OPENCODE_SERVER_PASSWORD", "secret"))?;
    let signed = "Authorization: Basic b3BlbmNvZGU6c2VjcmV0";
    for origin in
        ["Origin: https://app.opencode.ai", "Origin: https://pages.example", "Origin: http://localhost:1"]
    {
        check_has(&send(&url, "GET /path", &[origin])?, &["HTTP/1.1 401 "]);
        check_has(&send(&url, "GET /path", &[origin, signed])?, &["HTTP/1.1 200 "]);
    }
    check_has(&send(&url, "GET /path", &["Origin: https://evil.example", signed])?, &["HTTP/1.1 403 "]);
    Ok(())
}

#[test]
fn another_user_needs_the_password() -> Result<()> {
    if !is_root() {
        // Only root can be another user; the lookup itself is tested in `peer.rs`.
        return Ok(());
    }
    let stage = Stage::plain(Script::new())?;
    let (_server, url) = stage.serve()?;
    let port = port(&url);
    for (method, path) in [("GET", "/path"), ("GET", "/event"), ("POST", "/session"), ("GET", "/")] {
        let answer = as_nobody(&request(port, method, path, ""))?;
        check_has(&answer, &["HTTP/1.1 401 ", "belongs to another user", "OPENCODE_SERVER_PASSWORD"]);
    }
    // A closed socket has no owner, which must not count as root.
    let create = request(port, "POST", "/session", "{}").replace("cat <&3", "exec 3<&- 3>&-");
    for _ in 0..50 {
        as_nobody(&create)?;
    }
    assert_eq!(get(&url, "/session")?, json!([]));
    new_session(&url)?;

    let run = program(&stage.project, ["serve"]).env("OPENCODE_SERVER_PASSWORD", "secret");
    let (_closed, url) = serve(run)?;
    let open = format!("/path?auth_token={}", "b3BlbmNvZGU6c2VjcmV0");
    check_has(&as_nobody(&request(self::port(&url), "GET", &open, ""))?, &["HTTP/1.1 200 "]);
    let answer = as_nobody(&request(self::port(&url), "GET", "/path", ""))?;
    check_has(&answer, &["HTTP/1.1 401 "]);
    Ok(())
}

/// A server on a known port, whose model runs a script of the project.
fn with_command(script: impl Fn(&str) -> String) -> Result<(Stage, Running, String)> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let project = Project::plain()?;
    let call = json!({"command": "bash ./call.sh", "timeout": 20_000});
    let server = BlockingServer::start(Script::new().tool("bash", call).text("Done."))?;
    let mut config = Project::config(&server.url());
    config["permission"] = json!({"bash": "allow"});
    project.write_config(&config)?;
    project.write("call.sh", script(&port))?;
    // In the sandbox a command does not even reach the server.
    let (running, url) = serve(program(&project, ["serve", "--sandbox", "off", "--port", &port]))?;
    Ok((Stage { server, project }, running, url))
}

/// The number of sessions of a server after its model ran the command, including the prompt's session.
fn after_command(stage: &Stage, url: &str) -> Result<(String, usize)> {
    let session = new_session(url)?;
    let (status, answer) = post(url, &format!("/session/{session}/message"), &prompt("go"))?;
    assert_eq!(status, 200, "{answer}");
    let results = stage.results(1)?;
    let sessions = get(url, "/session")?.as_array().map_or(0, Vec::len);
    Ok((results.first().cloned().unwrap_or_default(), sessions))
}

#[test]
fn a_command_cannot_drive_the_server_that_runs_it() -> Result<()> {
    let refused = ["HTTP/1.1 403 ", "commands of the model may not use the server"];
    let (stage, _server, url) = with_command(|port| request(port, "POST", "/session", "{}"))?;
    let (output, sessions) = after_command(&stage, &url)?;
    check_has(&output, &refused);
    assert_eq!(sessions, 1);
    // By a daemon whose parent has ended.
    let (stage, _server, url) = with_command(|port| {
        let call = request(port, "POST", "/session", "{}");
        format!(
            "(setsid bash -c \"{}\" > out 2>&1 &); sleep 0.2; cat out",
            call.replace('\\', "\\\\").replace('"', "\\\"")
        )
    })?;
    let (output, sessions) = after_command(&stage, &url)?;
    check_has(&output, &["HTTP/1.1 4"]);
    assert_eq!(sessions, 1);
    Ok(())
}

#[test]
fn a_command_cannot_add_permission_rules() -> Result<()> {
    let rule = r#"{"permission":"*","pattern":"*","action":"allow"}"#;
    let (stage, _server, url) = with_command(|port| request(port, "POST", "/permission", rule))?;
    let (output, _) = after_command(&stage, &url)?;
    check_has(&output, &["HTTP/1.1 403 ", "commands of the model may not use the server"]);
    assert_eq!(get(&url, "/api/permission/saved")?["data"], json!([]));
    Ok(())
}

#[test]
fn a_command_that_does_not_wait_for_the_response_is_rejected_too() -> Result<()> {
    let (stage, _server, url) = with_command(|port| {
        let call = request(port, "POST", "/session", "{}").replace("cat <&3", "exec 3<&- 3>&-");
        let hop = request(port, "POST", "/session", "{}").replace("cat <&3", "(sleep 0.1 & ) &");
        format!("for i in {{1..20}}; do ({call}); ({hop}); done; sleep 0.3; echo over")
    })?;
    let (output, sessions) = after_command(&stage, &url)?;
    check_has(&output, &["over"]);
    assert_eq!(sessions, 1);
    Ok(())
}

#[test]
fn the_user_is_served_while_commands_start_and_end() -> Result<()> {
    let (stage, _server, url) = with_command(|_| {
        "end=$((SECONDS + 3)); echo begun > begun; while [ $SECONDS -lt $end ]; do /bin/true; done".to_owned()
    })?;
    let session = new_session(&url)?;
    let body = prompt("go");
    let (begun, path) = (stage.project.path("begun"), format!("/session/{session}/prompt_async"));
    assert_eq!(post(&url, &path, &body)?.0, 204);
    wait_until("the command", || begun.exists())?;
    for _ in 0..20 {
        let asked = Instant::now();
        check_has(&send(&url, "GET /session", &[])?, &["HTTP/1.1 200 "]);
        assert!(asked.elapsed() < PROMPT, "{:?}", asked.elapsed());
    }
    Ok(())
}

#[test]
fn the_users_own_commands_can_use_the_server() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let (_server, url) = stage.serve()?;
    let session = new_session(&url)?;
    let line = request(port(&url), "GET", "/path", "");
    stage.project.write("call.sh", &line)?;
    let body = json!({"agent": "build", "command": "bash ./call.sh"});
    let (status, answer) = post(&url, &format!("/session/{session}/shell"), &body)?;
    assert_eq!(status, 200, "{answer}");
    check_has(
        &answer.to_string(),
        &["HTTP/1.1 200 OK", "\\\\\\\"worktree"].map(|text| text.trim_start_matches('\\')),
    );
    Ok(())
}

#[test]
fn a_thousand_streams_do_not_block_requests() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let (_server, url) = stage.serve()?;
    let address = url.strip_prefix("http://").context("no address")?;
    let mut streams = Vec::new();
    for _ in 0..1200 {
        // If this process can open fewer files, the test uses fewer streams.
        let Ok(mut stream) = TcpStream::connect(address) else { break };
        write!(stream, "GET /event HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
        streams.push(stream);
    }
    // Some files are for this process itself.
    streams.truncate(streams.len().saturating_sub(20));
    for _ in 0..10 {
        let asked = Instant::now();
        check_has(&send(&url, "GET /path", &[])?, &["HTTP/1.1 200 "]);
        assert!(asked.elapsed() < PROMPT, "{:?} with {} streams", asked.elapsed(), streams.len());
    }
    // Connections without a request do not use up the limit.
    drop(streams);
    let idle: Vec<_> = (0..900).map_while(|_| TcpStream::connect(address).ok()).collect();
    check_has(&send(&url, "GET /path", &[])?, &["HTTP/1.1 200 "]);
    drop(idle);
    Ok(())
}

#[test]
fn connections_of_other_users_are_limited() -> Result<()> {
    if !is_root() {
        return Ok(());
    }
    let stage = Stage::plain(Script::new())?;
    let (_server, url) = stage.serve()?;
    let port = port(&url);
    let line = format!(
        "for i in {{1..400}}; do exec {{fd}}<>/dev/tcp/127.0.0.1/{port} || break; \
         printf 'GET /event HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n' >&$fd; done; echo open; sleep 30"
    );
    let mut other = Command::new("bash");
    other.args(["-c", &line]).uid(NOBODY).gid(NOBODY).current_dir("/").stdout(Stdio::piped());
    let mut other = other.stderr(Stdio::null()).spawn()?;
    let mut said = [0; 4];
    other.stdout.as_mut().context("no output")?.read_exact(&mut said)?;
    let connections = || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        let local = format!(":{:04X}", port.parse::<u16>().unwrap_or_default());
        let of_server = |line: &&str| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            fields.next().is_some_and(|own| own.ends_with(&local)) && fields.nth(1) == Some("01")
        };
        table.lines().filter(of_server).count()
    };
    let asked = Instant::now();
    check_has(&send(&url, "GET /path", &[])?, &["HTTP/1.1 200 "]);
    assert!(asked.elapsed() < PROMPT, "{:?}", asked.elapsed());
    wait_until("the refusals", || connections() <= 40)?;
    wait_until("the end of those that are idle", || connections() == 0)?;
    other.kill()?;
    other.wait()?;
    Ok(())
}

#[test]
fn pending_requests_are_sent_to_clients_of_the_directory() -> Result<()> {
    let call = json!({"command": "sleep 0.1"});
    let script = Script::new().tool("bash", call).text("Done.");
    let project = Project::plain()?;
    let server = BlockingServer::start(script)?;
    let mut config = Project::config(&server.url());
    config["permission"] = json!({"bash": "ask"});
    project.write_config(&config)?;
    let (_running, url) = serve(program(&project, ["serve"]))?;
    let other = project.home().join("other");
    std::fs::create_dir(&other)?;
    let session = new_session(&url)?;
    assert_eq!(post(&url, &format!("/session/{session}/prompt_async"), &prompt("go"))?.0, 204);
    let pending = || get(&url, "/permission").ok().and_then(|list| list[0]["id"].as_str().map(str::to_owned));
    wait_until("the request", || pending().is_some())?;
    let there = |path: &str| get(&url, &format!("{path}?directory={}", other.display()));
    assert_eq!(get(&url, "/session/status")?[&session]["type"], "busy");
    assert_eq!(there("/session/status")?, json!({}));
    assert_eq!(there("/permission")?, json!([]));
    assert_eq!(there("/question")?, json!([]));
    let newer =
        |query: &str| get(&url, &format!("/api/permission/request{query}")).map(|list| list["data"].clone());
    assert_eq!(newer("")?.as_array().map(Vec::len), Some(1));
    assert_eq!(newer(&format!("?location%5Bdirectory%5D={}", other.display()))?, json!([]));
    assert!(get(&url, "/api/session/active")?["data"][&session].is_object(), "it is about all directories");
    let id = pending().context("nothing waits")?;
    assert_eq!(post(&url, &format!("/permission/{id}/reply"), &json!({"reply": "once"}))?.0, 200);
    wait_until("the end", || get(&url, "/session/status").is_ok_and(|busy| busy == json!({})))?;
    Ok(())
}

#[test]
fn configuration_is_returned_without_secrets_and_stored_with_them() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let global = stage.project.home().join(".config/codewright");
    std::fs::create_dir_all(&global)?;
    let secrets = json!({
        "provider": {"mine": {"options": {"apiKey": "sk-secret-1", "headers": {"X-Auth": "sk-secret-2"}}}},
        "mcp": {"m": {"type": "local", "command": ["x", "--token", "sk-secret-3"], "environment": {"A": "sk-secret-4"}}},
        "agent": {"a": {"options": {"apiKey": "sk-secret-5"}, "description": "d", "permission": {}}},
    });
    let file = global.join("codewright.json");
    std::fs::write(&file, secrets.to_string())?;
    let (_server, url) = stage.serve()?;
    for path in [
        "/config",
        "/global/config",
        "/config/providers",
        "/provider",
        "/agent",
        "/mcp",
        "/api/agent",
        "/api/provider",
        "/api/model",
        "/command",
        "/doc",
    ] {
        let shown = get(&url, path)?.to_string();
        assert!(!shown.contains("sk-secret"), "{path}: {shown}");
    }
    let shown = get(&url, "/global/config")?;
    assert_eq!(shown["provider"]["mine"]["options"]["apiKey"], "(hidden)");
    assert_eq!(shown["mcp"]["m"]["command"], json!(["x", "--token", "(hidden)"]));
    let mut change = shown;
    change["username"] = json!("bob");
    change["mcp"]["m"]["command"] = json!(["y", "--token", "(hidden)"]);
    let (status, answer) = patch(&url, "/global/config", &change)?;
    assert_eq!(status, 200, "{answer}");
    assert!(!answer.to_string().contains("sk-secret"), "{answer}");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    let mut expected = secrets;
    expected["username"] = json!("bob");
    expected["mcp"]["m"]["command"] = json!(["y", "--token", "sk-secret-3"]);
    // The values of another file are included, without secrets.
    assert!(kept["provider"]["mock"]["options"].get("apiKey").is_none(), "{kept}");
    for pointer in ["/username", "/provider/mine", "/mcp", "/agent"] {
        assert_eq!(kept.pointer(pointer), expected.pointer(pointer), "{kept}");
    }
    // The secrets of the user's file are not written to the project's file.
    let (status, answer) = patch(&url, "/config", &get(&url, "/config")?)?;
    assert_eq!(status, 200, "{answer}");
    let written = std::fs::read_to_string(stage.project.path("codewright.json")).unwrap_or_default();
    assert!(!written.contains("sk-secret") && !written.contains("(hidden)"), "{written}");
    Ok(())
}

#[test]
fn null_removes_an_entry_from_every_file_of_the_user() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let file = stage.project.home().join(".config/opencode/opencode.json");
    let text = std::fs::read_to_string(&file)?;
    let with = text.replacen(
        '{',
        "{\n  // mine\n  \"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"x\"], \"enabled\": false}},",
        1,
    );
    std::fs::write(&file, with)?;
    let (_server, url) = stage.serve()?;
    let change = json!({
        "mcp": {"b": {"type": "local", "command": ["y"], "enabled": false}},
        "permission": {"bash": {"make *": "allow", "rm *": "deny"}},
        "agent": {"helper": {"description": "d"}},
    });
    assert_eq!(patch(&url, "/global/config", &change)?.0, 200);
    let removal = json!({
        "mcp": {"a": null, "b": null, "absent": null}, "permission": {"bash": {"make *": null}}, "agent": {"helper": null},
    });
    let (status, left) = patch(&url, "/global/config", &removal)?;
    assert_eq!(status, 200, "{left}");
    assert!(left["mcp"].get("a").is_none() && left["mcp"].get("b").is_none(), "{left}");
    assert_eq!(left["permission"], json!({"bash": {"rm *": "deny"}}), "{left}");
    assert!(left["agent"].get("helper").is_none(), "{left}");
    let kept = std::fs::read_to_string(&file)?;
    check_has(&kept, &["// mine", "mock/plain-model"]);
    // A wrong value is refused as before.
    assert_eq!(patch(&url, "/global/config", &json!({"mcp": {"a": null}, "username": 1}))?.0, 400);
    Ok(())
}

pub(crate) fn patch(url: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    with_body("PATCH", url, path, body)
}

/// Sends a request with a JSON body and returns the status and the answer.
pub(crate) fn with_body(method: &str, url: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let body = body.to_string();
    let length = format!("Content-Length: {}", body.len());
    let address = url.strip_prefix("http://").context("not an http address")?;
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n{length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, serde_json::from_str(body.trim())?))
}

#[test]
fn a_socket_file_is_private() -> Result<()> {
    use std::os::unix::net::UnixStream;

    let stage = Stage::plain(Script::new())?;
    let path = stage.project.home().join("s");
    let socket = path.display().to_string();
    let (_server, _) = serve(program(&stage.project, ["serve", "--socket", &socket]))?;
    let asked = "GET /path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut stream = UnixStream::connect(&path)?;
    stream.write_all(asked.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    check_has(&answer, &["HTTP/1.1 200 "]);
    if is_root() {
        // Even if the file's permissions were opened.
        for above in path.ancestors().skip(1).take_while(|above| *above != std::env::temp_dir()) {
            std::fs::set_permissions(above, std::fs::Permissions::from_mode(0o755)).ok();
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))?;
        let line = format!(
            "import socket\ns=socket.socket(socket.AF_UNIX)\ns.connect({socket:?})\ns.send({asked:?}.encode())\n\
             print(s.recv(4096).decode())"
        );
        let python =
            Command::new("python3").args(["-c", &line]).uid(NOBODY).gid(NOBODY).current_dir("/").output();
        if let Ok(done) = python {
            check_has(&String::from_utf8_lossy(&done.stdout), &["HTTP/1.1 401 ", "belongs to another user"]);
        }
    }
    Ok(())
}
