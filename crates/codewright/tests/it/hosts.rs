//! The network of commands in the sandbox: permitted hosts, questions and refusals. Without a complete mechanism on this
//! machine the tests are skipped, with a note.

use std::fs;
use std::thread;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{FileServer, Project, Running, Script, Turn};
use serde_json::{Value, json};

use crate::sandbox::is_enforced;
use crate::support::{Stage, check_has, get, new_session, post, prompt, wait_until};

/// A server with one file.
fn origin() -> Result<FileServer> {
    let origin = FileServer::start()?;
    origin.write("hello", "hello from outside")?;
    Ok(origin)
}

/// A stage whose model calls these commands at once. `permission` are the user's rules.
fn stage(commands: &[String], permission: &Value) -> Result<Stage> {
    let calls: Vec<(&str, Value)> =
        commands.iter().map(|command| ("bash", json!({ "command": command, "timeout": 50_000 }))).collect();
    staged(Script::new().turn(Turn::tools(calls)).text("Done."), permission)
}

fn staged(script: Script, permission: &Value) -> Result<Stage> {
    let stage = Stage::git(script)?;
    let mut config = Project::config(&stage.server.url());
    config["sandbox"] = json!({ "mode": "workspace" });
    config["permission"] = json!({ "network": permission });
    stage.project.write_config(&config)?;
    Ok(stage)
}

/// Files for git, npm and pip: a repository and two packages.
fn packages(origin: &FileServer) -> Result<()> {
    let script = format!(
        "git init -q work; cd work; echo content > file; git add file; \
         git -c user.name=a -c user.email=a@b commit -qm x; cd ..; git clone -q --bare work repo.git; \
         git -C repo.git update-server-info; mkdir -p package; \
         echo '{{\"name\":\"tiny\",\"version\":\"1.0.0\"}}' > package/package.json; tar czf tiny.tgz package; \
         mkdir -p tiny simple/tiny; \
         echo '{{\"name\":\"tiny\",\"dist-tags\":{{\"latest\":\"1.0.0\"}},\"versions\":{{\"1.0.0\":{{\"name\":\"tiny\",\
         \"version\":\"1.0.0\",\"dist\":{{\"tarball\":\"http://{host}/tiny.tgz\"}}}}}}}}' > tiny/index; \
         echo '<a href=\"/tiny-1.0-py3-none-any.whl\">tiny-1.0-py3-none-any.whl</a>' > simple/tiny/index; \
         python3 -c \"import zipfile; z = zipfile.ZipFile('tiny-1.0-py3-none-any.whl', 'w'); d = 'tiny-1.0.dist-info/'; \
         z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n'); \
         z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'); \
         z.writestr(d + 'RECORD', '')\"",
        host = origin.host()
    );
    origin.run(&script)
}

#[test]
fn programs_reach_a_host_that_a_rule_names() -> Result<()> {
    let origin = origin()?;
    packages(&origin)?;
    let host = origin.host();
    let node = "node -e 'process.exit(parseInt(process.versions.node) >= 24 ? 0 : 1)'";
    let rows = [
        ("curl", format!("curl -sS http://{host}/hello"), "hello from outside"),
        ("curl", format!("curl -sS -p http://{host}/hello"), "hello from outside"),
        (
            "curl",
            format!("curl -sS --noproxy '' --socks5-hostname 127.0.0.1:17171 http://{host}/hello"),
            "hello from outside",
        ),
        ("wget", format!("wget -qO- http://{host}/hello"), "hello from outside"),
        ("git", format!("git clone -q http://{host}/repo.git cloned && cat cloned/file"), "content"),
        (
            "pip",
            format!(
                "pip download -q --no-cache-dir --disable-pip-version-check --no-deps -d got --trusted-host 127.0.0.2 \
                 --index-url http://{host}/simple tiny && ls got"
            ),
            "tiny-1.0-py3-none-any.whl",
        ),
        (
            "npm",
            format!(
                "mkdir n && cd n && npm install --silent --no-audit --no-fund --cache /tmp/npm \
                 --registry http://{host}/ tiny && cat node_modules/tiny/package.json"
            ),
            "\"tiny\"",
        ),
        (
            "node",
            format!(
                "{node} || {{ echo skipped: old node; exit; }}; node -e \"fetch('http://{host}/hello').then(r => r.text()).then(console.log)\""
            ),
            "hello from outside",
        ),
    ];
    let commands: Vec<String> = rows
        .iter()
        .map(|(name, line, _)| {
            format!("{name} --version > /dev/null 2>&1 || {{ echo skipped: no {name}; exit; }}; {line}")
        })
        .collect();
    let stage = stage(&commands, &json!({ host.clone(): "allow" }))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let done = stage.run(["--auto", "go"])?.success()?;
    assert!(!done.stderr.contains("permission requested"), "{}", done.stderr);
    for ((name, line, expected), result) in rows.iter().zip(stage.results(1)?) {
        if result.contains("skipped: ") {
            eprintln!("{name}: {result}");
        } else {
            assert!(result.contains(expected), "{line}: {result}");
        }
    }
    let requests = origin.requests();
    assert!(requests.iter().all(|request| request.ends_with(&host)), "{requests:#?}");
    stage.no_problems()
}

#[test]
fn private_addresses_need_their_exact_name() -> Result<()> {
    let origin = origin()?;
    let port = origin.port();
    let stop = "-sS --noproxy '' -m 20 -o /dev/null -w '%{http_code} '";
    let direct = format!("curl --noproxy '*' -sS -m 5 http://127.0.0.2:{port}/hello");
    let through = format!(
        "for host in 127.0.0.2 2130706434 0x7f000002 127.2 localhost LOCALHOST. a.localhost 0 [::1] \
         [::ffff:127.0.0.2] 169.254.169.254 10.0.0.1 [fd00::1] [64:ff9b::7f00:2] 100.100.100.200 224.0.0.1; do \
         curl {stop} http://$host:{port}/hello; curl {stop} -p http://$host:{port}/hello; \
         curl {stop} -x socks5h://127.0.0.1:17171 http://$host:{port}/hello; done 2>&1"
    );
    let forged = format!(
        "python3 -c \"import socket; s = socket.create_connection(('127.0.0.1', 17171)); \
         s.sendall(b'GET http://example.invalid/ HTTP/1.1\\r\\nHost: 127.0.0.2:{port}\\r\\n\\r\\n'); print(s.recv(400))\""
    );
    let stage = stage(&[direct, through, forged], &json!({ "*": "allow" }))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let done = stage.run(["go"])?.success()?;
    // A program listens there, so the user is asked about the port in the first two commands, and about nothing else.
    let asked = format!("permission requested: network ({}); auto-rejecting", origin.host());
    assert!(!done.stderr.replace(&asked, "").contains("permission requested"), "{}", done.stderr);
    let results = stage.results(1)?;
    assert!(!results.concat().contains("hello from outside"), "{results:#?}");
    assert!(!results[1].contains(" 200 "), "{}", results[1]);
    let rule = format!("{{\"network\": {{\"127.0.0.2:{port}\": \"allow\"}}}}");
    check_has(
        &results[1],
        &[
            "403 ",
            "CONNECT tunnel failed, response 403",
            "(2)",
            "The sandbox refused connections",
            &rule,
            "`169.254.169.254:",
        ],
    );
    check_has(&results[2], &["HTTP/1.1 50"]);
    assert_eq!(origin.connections(), 0);
    Ok(())
}

#[test]
fn without_a_user_hosts_are_refused_and_the_turn_continues() -> Result<()> {
    let many = "for i in $(seq 1 60); do curl -sS -o /dev/null -w '%{http_code} ' http://h$i.invalid/; done";
    let commands = [
        "curl -sS http://one.invalid/ https://two.invalid/; echo after".to_owned(),
        many.to_owned(),
        "curl -sS --socks5-hostname 127.0.0.1:17171 http://three.invalid:8080/; echo $?".to_owned(),
    ];
    let stage = stage(&commands, &json!({ "denied.invalid:*": "deny" }))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let done = stage.run(["go"])?.success()?;
    check_has(
        &done.stderr,
        &[
            "permission requested: network (one.invalid:80); auto-rejecting",
            "permission requested: network (two.invalid:443); auto-rejecting",
            "permission requested: network (three.invalid:8080); auto-rejecting",
        ],
    );
    // The turn was not ended by the rejection.
    check_has(&done.stdout, &["Done."]);
    let results = stage.results(1)?;
    check_has(
        &results[0],
        &[
            "The sandbox refused the connection to one.invalid:80: the permission request was rejected",
            "after",
            "`one.invalid:80`",
            "`two.invalid:443`",
            "\"permission\": {\"network\": {\"one.invalid:80\": \"allow\"}}",
        ],
    );
    // A program with many hosts asks about few of them.
    let asked = done.stderr.matches("network (h").count();
    assert!((1..=4).contains(&asked), "{asked} questions\n{}", done.stderr);
    check_has(&results[1], &["the command requested too many hosts"]);
    assert_eq!(results[1].matches("403").count(), 60, "{}", results[1]);
    check_has(&results[2], &["97", "`three.invalid:8080`"]);
    Ok(())
}

/// Starts a server and a turn in a new session. Returns the server, its address and the session.
fn begun(stage: &Stage) -> Result<(Running, String, String)> {
    let (server, url) = stage.serve()?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("go"))?;
    Ok((server, url, id))
}

/// The pending permission requests.
fn pending(url: &str) -> Vec<Value> {
    get(url, "/permission").ok().and_then(|list| list.as_array().cloned()).unwrap_or_default()
}

#[test]
fn one_question_is_shared_and_its_reply_holds_as_long_as_it_says() -> Result<()> {
    // A name that is permitted and does not exist is a bad gateway.
    let code = "-s -o /dev/null -w '%{http_code} '";
    let parallel = format!(
        "for i in 1 2 3 4 5 6; do curl {code} http://asked.invalid/$i & done; wait; curl {code} http://asked.invalid/7"
    );
    let single = format!("curl {code} http://asked.invalid/");
    let bash = |command: &str| Turn::tools([("bash", json!({ "command": command }))]);
    let script = Script::new()
        .turn(bash(&parallel))
        .turn(bash(&single))
        .turn(bash(&single))
        .turn(bash(&single))
        .text("Done.")
        .turn(bash(&single))
        .text("Done again.");
    let stage = staged(script, &json!({}))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let (server, url, id) = begun(&stage)?;
    let answer = |reply: Value| -> Result<Value> {
        wait_until("a question", || !pending(&url).is_empty())?;
        // The other connections had time to ask.
        thread::sleep(std::time::Duration::from_millis(300));
        let asked = pending(&url);
        ensure!(asked.len() == 1, "{asked:#?}");
        let id = asked[0]["id"].as_str().context("no id")?;
        assert_eq!(post(&url, &format!("/permission/{id}/reply"), &reply)?.0, 200);
        wait_until("the end of the question", || pending(&url).iter().all(|asked| asked["id"] != id))?;
        Ok(asked[0].clone())
    };
    let asked = answer(json!({ "reply": "once" }))?;
    assert_eq!(asked["permission"], "network");
    assert_eq!(asked["patterns"], json!(["asked.invalid:80"]));
    assert_eq!(asked["always"], json!(["asked.invalid:80"]));
    assert_eq!(asked["metadata"]["command"], json!(parallel));
    assert!(asked["tool"]["callID"].is_string(), "{asked}");
    // "Once" was for one command. A rejection holds for the rest of the turn.
    answer(json!({ "reply": "reject", "message": "use the mirror" }))?;
    wait_until("the end of the turn", || stage.server.main_requests().len() == 5)?;
    let results = stage.results(4)?;
    assert!(!results[0].contains("403") && results[0].matches("50").count() == 7, "{}", results[0]);
    check_has(&results[1], &["403", "feedback: use the mirror"]);
    check_has(&results[2], &["403", "rejected"]);
    check_has(&results[3], &["403", "rejected"]);
    // A new prompt is a new decision, and "always" is stored.
    let is_idle = || get(&url, "/session/status").is_ok_and(|status| status.get(&id).is_none());
    wait_until("an idle session", is_idle)?;
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("again"))?;
    answer(json!({ "reply": "always" }))?;
    wait_until("the end of the turn", || stage.server.main_requests().len() == 7)?;
    assert!(!stage.results(6)?[4].contains("403"));
    let saved = get(&url, "/api/permission/saved")?;
    check_has(&saved.to_string(), &["asked.invalid:80"]);
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

#[test]
fn a_question_is_withdrawn_when_its_command_ends() -> Result<()> {
    let call = json!({ "command": "curl -s http://asked.invalid/", "timeout": 1500 });
    let script = Script::new().turn(Turn::tools([("bash", call)])).text("Done.");
    let stage = staged(script, &json!({}))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let (server, url, _) = begun(&stage)?;
    wait_until("a question", || !pending(&url).is_empty())?;
    wait_until("the end of the question", || pending(&url).is_empty())?;
    wait_until("the next request", || stage.server.main_requests().len() == 2)?;
    check_has(&stage.results(1)?[0], &["exceeding timeout"]);
    let state = stage.project.home().join(".local/state/codewright/proxy");
    wait_until("no socket", || fs::read_dir(&state).is_ok_and(|mut entries| entries.next().is_none()))?;
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

#[test]
fn a_server_and_its_client_in_one_command_use_loopback() -> Result<()> {
    let command = "echo inside > page; python3 -m http.server 8123 --bind 127.0.0.1 > /dev/null 2>&1 & \
                   for i in $(seq 100); do curl -s http://127.0.0.1:8123/page && \
                   curl -s http://localhost:8123/page && break; sleep 0.1; done; kill %1";
    let stage = stage(&[command.to_owned()], &json!({}))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    stage.run(["--auto", "go"])?.success()?;
    check_has(&stage.results(1)?[0], &["inside\ninside"]);
    Ok(())
}

#[test]
fn a_command_that_is_tried_uses_the_rules_and_asks_nobody() -> Result<()> {
    let origin = origin()?;
    let stage = stage(&[], &json!({ origin.host(): "allow" }))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let url = format!("http://{}/hello", origin.host());
    let done =
        stage.program(["sandbox", "run", "--", "curl", "-s", &url, "http://other.invalid/"]).finish()?;
    check_has(&done.stdout, &["hello from outside", "no user replied to the permission request"]);
    check_has(&done.stderr, &["no connection to other.invalid:80", "\"other.invalid:80\": \"allow\""]);
    Ok(())
}

#[test]
fn a_repository_cannot_allow_hosts() -> Result<()> {
    let origin = origin()?;
    let stage = stage(&[format!("curl -sS http://{}/hello", origin.host())], &json!({}))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let rules = json!({ "permission": { "network": { "*": "allow", origin.host(): "allow" } } });
    stage.project.write("opencode.json", rules.to_string())?;
    let run = stage.program(["run", "go"]).env("OPENCODE_TRUST", "all");
    run.finish()?.success()?;
    check_has(&stage.results(1)?[0], &["The sandbox refused", "the permission request was rejected"]);
    assert_eq!(origin.connections(), 0);
    Ok(())
}

#[test]
fn a_port_out_of_range_is_a_located_error() -> Result<()> {
    let stage = staged(Script::new(), &json!({ "example.com:70000": "allow" }))?;
    let done = stage.run(["go"])?;
    assert_ne!(done.code, Some(0));
    check_has(
        &done.stderr,
        &["opencode.json", "`permission.network.example.com:70000` must be named `host:port`"],
    );
    Ok(())
}
