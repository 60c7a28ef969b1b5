//! Ports of this machine that a command in the sandbox wants: the user is asked, and the command then reaches them.
//! Without a complete mechanism on this machine the tests are skipped, with a note.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{FileServer, Project, Running, Script, Turn};
use serde_json::{Value, json};

use crate::sandbox::is_enforced;
use crate::support::{Stage, check_has, get, new_session, post, prompt, wait_until};

/// A program of the user with one file, at the usual address.
fn service() -> Result<FileServer> {
    service_on(Ipv4Addr::LOCALHOST.into())
}

fn service_on(address: IpAddr) -> Result<FileServer> {
    let service = FileServer::on(address)?;
    service.write("hello", "hello from the machine")?;
    Ok(service)
}

/// A stage whose model calls these commands, one in each step. `permission` are the user's rules about the network.
fn stage(commands: &[String], permission: &Value) -> Result<Stage> {
    let script = commands.iter().fold(Script::new(), |script, command| {
        script.turn(Turn::tools([("bash", json!({ "command": command, "timeout": 60_000 }))]))
    });
    let stage = Stage::git(script.text("Done."))?;
    let mut config = Project::config(&stage.server.url());
    config["sandbox"] = json!({ "mode": "workspace" });
    config["permission"] = json!({ "network": permission });
    stage.project.write_config(&config)?;
    Ok(stage)
}

/// Starts a server and a turn in a new session. Returns the server and its address.
fn begun(stage: &Stage) -> Result<(Running, String)> {
    let (server, url) = stage.serve()?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("go"))?;
    Ok((server, url))
}

fn end(server: Running) -> Result<()> {
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

/// The pending permission requests.
fn pending(url: &str) -> Vec<Value> {
    get(url, "/permission").ok().and_then(|list| list.as_array().cloned()).unwrap_or_default()
}

/// Waits for one request and replies to it. Returns the request.
fn reply(url: &str, reply: &Value) -> Result<Value> {
    wait_until("a question", || !pending(url).is_empty())?;
    let asked = pending(url);
    ensure!(asked.len() == 1, "{asked:#?}");
    let id = asked[0]["id"].as_str().context("no id")?;
    assert_eq!(post(url, &format!("/permission/{id}/reply"), reply)?.0, 200);
    wait_until("the end of the question", || pending(url).iter().all(|asked| asked["id"] != id))?;
    Ok(asked[0].clone())
}

#[test]
fn a_port_is_asked_for_and_then_reached() -> Result<()> {
    let service = service()?;
    let port = service.port();
    let by_name = format!("curl -sS http://localhost:{port}/hello && curl -sS http://127.0.0.1:{port}/hello");
    let stage = stage(&[by_name.clone(), by_name.clone(), by_name.clone()], &json!({ "*": "allow" }))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let (server, url) = begun(&stage)?;
    let asked = reply(&url, &json!({ "reply": "once" }))?;
    assert_eq!(asked["permission"], "network");
    assert_eq!(asked["patterns"], json!([format!("localhost:{port}")]));
    assert_eq!(asked["always"], json!([format!("localhost:{port}")]));
    assert_eq!(asked["metadata"]["command"], json!(by_name));
    assert_eq!(asked["metadata"]["host"], "localhost");
    assert_eq!(asked["metadata"]["port"], port);
    // "Once" was for one command, and "always" is for this port alone.
    reply(&url, &json!({ "reply": "always" }))?;
    wait_until("the end of the turn", || stage.server.main_requests().len() == 4)?;
    for result in stage.results(3)? {
        assert_eq!(result.matches("hello from the machine").count(), 2, "{result}");
    }
    let saved = get(&url, "/api/permission/saved")?.to_string();
    check_has(&saved, &[&format!("\"localhost:{port}\"")]);
    end(server)
}

#[test]
fn every_client_reaches_a_permitted_port() -> Result<()> {
    let service = service()?;
    let sixth = service_on(Ipv6Addr::LOCALHOST.into()).ok();
    let port = service.port();
    let other = sixth.as_ref().map_or(port, FileServer::port);
    let raw = "GET /hello HTTP/1.0\\r\\n\\r\\n";
    let rows = [
        ("curl", format!("curl -sS http://localhost:{port}/hello")),
        ("curl", format!("curl -sS http://127.1:{port}/hello")),
        ("curl", format!("curl -sS http://0.0.0.0:{port}/hello")),
        ("curl", format!("NO_PROXY=localhost no_proxy=localhost curl -sS http://localhost:{port}/hello")),
        ("curl", format!("NO_PROXY=localhost no_proxy=localhost curl -sS http://127.0.0.1:{port}/hello")),
        ("curl", format!("curl -sS --noproxy '' http://localhost:{port}/hello")),
        ("curl", format!("curl -sS --noproxy '' -p http://localhost:{port}/hello")),
        ("curl", format!("curl -sS -x socks5h://127.0.0.1:17171 --noproxy '' http://localhost:{port}/hello")),
        (
            "curl",
            if sixth.is_some() {
                format!("curl -sS 'http://[::1]:{other}/hello'")
            } else {
                "echo skipped: no version 6".to_owned()
            },
        ),
        ("wget", format!("wget -qO- http://localhost:{port}/hello")),
        ("bash", format!("bash -c 'exec 3<>/dev/tcp/localhost/{port}; printf \"{raw}\" >&3; cat <&3'")),
        (
            "python3",
            format!(
                "python3 -c 'import asyncio\nasync def main():\n  r, w = await asyncio.open_connection(\"localhost\", {port})\n  \
                 w.write(b\"{raw}\")\n  print(await r.read())\nasyncio.run(main())'"
            ),
        ),
        (
            "python3",
            format!(
                "python3 -c 'import socket, threading\nfor number in range(3):\n  s = socket.socket(socket.AF_INET6); \
                 s.connect((\"::ffff:127.0.0.1\", {port})); s.sendall(b\"{raw}\"); print(s.makefile().read())'"
            ),
        ),
        (
            "node",
            format!(
                "node -e \"require('http').get('http://localhost:{port}/hello', r => r.pipe(process.stdout))\""
            ),
        ),
    ];
    let commands: Vec<String> = rows
        .iter()
        .map(|(name, line)| {
            format!("{name} --version > /dev/null 2>&1 || {{ echo skipped: no {name}; exit; }}; {line}")
        })
        .collect();
    let stage = stage(&commands, &json!({}))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    stage.run(["--auto", "go"])?.success()?;
    for ((name, line), result) in rows.iter().zip(stage.results(rows.len())?) {
        if result.contains("skipped: ") {
            eprintln!("{name}: {result}");
        } else {
            assert!(result.contains("hello from the machine"), "{line}: {result}");
        }
    }
    stage.no_problems()
}

#[test]
fn a_refused_port_is_closed_and_the_result_says_why() -> Result<()> {
    let (service, denied) = (service()?, service()?);
    let (port, other) = (service.port(), denied.port());
    let command = format!(
        "curl -s -o /dev/null http://localhost:{port}/hello; echo code $?; curl -s http://127.0.0.1:{other}/hello; echo code $?; \
         python3 -c 'import socket; print(socket.socket().connect_ex((\"127.0.0.1\", {port})))'"
    );
    let stage = stage(&[command], &json!({ "*": "allow", format!("localhost:{other}"): "deny" }))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let done = stage.run(["go"])?.success()?;
    let asked = done.stderr.matches("permission requested").count();
    assert_eq!(asked, 1, "{}", done.stderr);
    check_has(&done.stderr, &[&format!("permission requested: network (localhost:{port}); auto-rejecting")]);
    check_has(
        &stage.results(1)?[0],
        &[
            "code 7\ncode 7\n111",
            &format!("`localhost:{port}` (the permission request was rejected)"),
            &format!("`localhost:{other}` (a permission rule denies it)"),
            &format!("`\"permission\": {{\"network\": {{\"localhost:{port}\": \"allow\"}}}}`"),
        ],
    );
    assert_eq!((service.connections(), denied.connections()), (0, 0));
    Ok(())
}

#[test]
fn only_a_rule_with_exactly_the_port_replaces_the_question() -> Result<()> {
    let [exact, spelled, wide] = [service()?, service()?, service()?];
    let curl = |service: &FileServer| format!("curl -sS http://localhost:{}/hello", service.port());
    let rules = json!({
        "*": "allow", "localhost:*": "allow",
        format!("localhost:{}", exact.port()): "allow", format!("127.0.0.1:{}", spelled.port()): "allow",
    });
    let by_address = format!("curl -sS http://127.0.0.1:{}/hello", spelled.port());
    let stage = stage(&[curl(&exact), by_address, curl(&wide)], &rules)?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let done = stage.run(["go"])?.success()?;
    assert_eq!(done.stderr.matches("permission requested").count(), 1, "{}", done.stderr);
    let results = stage.results(3)?;
    assert!(results[..2].iter().all(|result| result.contains("hello from the machine")), "{results:#?}");
    check_has(&results[2], &["Failed to connect", "the permission request was rejected"]);
    assert_eq!(wide.connections(), 0);
    Ok(())
}

#[test]
fn a_server_inside_needs_no_question_although_the_port_is_in_use_outside() -> Result<()> {
    let service = service()?;
    let port = service.port();
    // The client waits while its server starts, longer than a question takes to appear.
    let command = format!(
        "echo inside > page; (sleep 2; exec python3 -m http.server {port} --bind 127.0.0.1 > /dev/null 2>&1) & \
         curl -s http://127.0.0.1:{port}/page && curl -s http://localhost:{port}/page; kill %1"
    );
    let stage = stage(&[command], &json!({}))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let (server, url) = begun(&stage)?;
    wait_until("the end of the turn", || stage.server.main_requests().len() == 2)?;
    let result = &stage.results(1)?[0];
    check_has(result, &["inside\ninside"]);
    assert!(!result.contains("refused"), "{result}");
    assert!(pending(&url).is_empty() && service.connections() == 0);
    end(server)
}

#[test]
fn a_port_that_nobody_uses_is_closed_without_a_question() -> Result<()> {
    let service = service()?;
    let port = service.port();
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let command = format!(
        "python3 -c 'import socket\ns = socket.socket(); s.setblocking(False)\ntry:\n  s.connect((\"127.0.0.1\", {free}))\n\
         except OSError as e:\n  print(e.errno)\nu = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect((\"127.0.0.1\", {port})); \
         print(\"datagram\")'; curl -s http://localhost:{free}/; echo code $?"
    );
    let stage = stage(&[command], &json!({}))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let done = stage.run(["go"])?.success()?;
    assert!(!done.stderr.contains("permission requested"), "{}", done.stderr);
    let result = &stage.results(1)?[0];
    check_has(result, &["datagram", "code 7"]);
    assert!(result.starts_with("111") || result.starts_with("115"), "{result}");
    assert!(!result.contains("sandbox refused"), "{result}");
    Ok(())
}

#[test]
fn many_connections_at_once_are_forwarded_after_one_question() -> Result<()> {
    let service = service()?;
    let port = service.port();
    let client = format!(
        "import asyncio\nasync def one():\n  r, w = await asyncio.open_connection('127.0.0.1', {port})\n  return r, w\n\
         async def main():\n  all = await asyncio.gather(*[one() for _ in range(200)])\n  \
         for r, w in all:\n    w.write(b'GET /hello HTTP/1.0\\r\\n\\r\\n')\n  \
         texts = [await r.read() for r, w in all]\n  print('answers', sum(b'hello from' in text for text in texts))\nasyncio.run(main())\n"
    );
    let stage = stage(&["python3 client.py".to_owned()], &json!({}))?;
    stage.project.write("client.py", client)?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let (server, url) = begun(&stage)?;
    reply(&url, &json!({ "reply": "once" }))?;
    wait_until("the end of the turn", || stage.server.main_requests().len() == 2)?;
    check_has(&stage.results(1)?[0], &["answers 200"]);
    assert_eq!(service.connections(), 200);
    end(server)
}

#[test]
fn ports_of_this_program_are_never_reached() -> Result<()> {
    let own = "curl -s -o /dev/null -w '%{http_code} ' $(cat address)/config; curl -s -o /dev/null -w '%{http_code} ' \
               --noproxy '' $(cat address)/config; curl -s -w '%{http_code}' $(cat other)/config";
    let stage = stage(&[own.to_owned()], &json!({ "*": "allow" }))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let second = Stage::git(Script::new())?;
    let (other, address) = second.serve()?;
    stage.project.write("other", &address)?;
    let (server, url) = stage.serve()?;
    stage.project.write("address", url.replace("127.0.0.1", "localhost"))?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("go"))?;
    wait_until("the end of the turn", || stage.server.main_requests().len() == 2)?;
    check_has(&stage.results(1)?[0], &["000 403 000", "a server of this program listens there"]);
    assert!(pending(&url).is_empty());
    end(server)?;
    end(other)
}

#[test]
fn a_question_ends_with_the_client_that_caused_it() -> Result<()> {
    let service = service()?;
    let port = service.port();
    let command =
        format!("timeout 3 curl -s http://localhost:{port}/hello; echo code $?; touch given-up; sleep 20");
    let stage = stage(&[command], &json!({}))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let (server, url) = begun(&stage)?;
    wait_until("a question", || !pending(&url).is_empty())?;
    wait_until("the end of the client", || stage.project.path("given-up").exists())?;
    wait_until("the end of the question", || pending(&url).is_empty())?;
    assert_eq!(stage.server.main_requests().len(), 1, "the command still runs");
    end(server)
}

#[test]
fn where_the_sandbox_cannot_ask_the_result_names_the_port_and_the_setting() -> Result<()> {
    let service = service()?;
    let port = service.port();
    let lines = [format!("curl -s http://localhost:{port}/hello"), "false".to_owned()];
    let stage = stage(&lines, &json!({}))?;
    let run = stage.program(["run", "--auto", "go"]).without_env("CODEWRIGHT_SANDBOX_OUTER");
    run.env("CODEWRIGHT_SANDBOX_MECHANISM", "landlock").finish()?.success()?;
    let results = stage.results(2)?;
    let setting = r#"`"sandbox": {"network": "open"}` in the configuration"#;
    check_has(&results[0], &["Ports of this machine are closed", &format!("`localhost:{port}`"), setting]);
    assert!(!results[1].contains("Ports of this machine"), "{}", results[1]);
    Ok(())
}
