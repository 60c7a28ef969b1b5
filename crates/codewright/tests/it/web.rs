//! Fetching web pages, and loading skills.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use codewright_testkit::{BlockingServer, Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, get, of_type, wait_until};

const PAGE: &str = "<html><head><title>T</title><style>x{}</style><script>1</script></head><body><h1>Head</h1><p>Para \
                    <b>bold</b> <a href='/x'>link</a></p><ul><li>one</li><li>two</li></ul><pre><code>code()</code></pre>\
                    </body></html>";
/// The duration of the slow page.
const SLOW: Duration = Duration::from_secs(30);

/// A server of pages until the process ends. Returns its address.
fn pages() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
                let first = lines.next().and_then(Result::ok).unwrap_or_default();
                // The rest of the request does not matter.
                lines.take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).for_each(drop);
                answer(first.split(' ').nth(1).unwrap_or_default(), stream);
            });
        }
    });
    Ok(url)
}

fn answer(path: &str, mut stream: std::net::TcpStream) {
    let (status, head, body): (&str, &str, Vec<u8>) = match path {
        "/p.html" => ("200 OK", "Content-Type: text/html; charset=utf-8\r\n", PAGE.into()),
        "/j.json" => ("200 OK", "Content-Type: application/json\r\n", b"{\"a\":1}".to_vec()),
        "/moved" => ("302 Found", "Location: /j.json\r\n", Vec::new()),
        "/astray" => ("302 Found", "Location: http://127.0.0.2:9/\r\n", Vec::new()),
        "/img" => ("200 OK", "Content-Type: image/png\r\n", b"\x89PNG\r\n\x1a\n0000".to_vec()),
        "/long" => ("200 OK", "Content-Type: text/plain\r\n", "line of text here\n".repeat(3000).into()),
        "/endless" => {
            // A response without a length that never ends.
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"));
            while stream.write_all(&[b'x'; 65536]).is_ok() {}
            return;
        }
        "/slow" => {
            thread::sleep(SLOW);
            return;
        }
        _ => ("404 Not Found", "", Vec::new()),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    // The client may have disconnected.
    drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)));
}

/// A stage on which fetches of this address are allowed.
fn stage(pages: &str, calls: Vec<Value>) -> Result<Stage> {
    let script =
        Script::new().turn(Turn::tools(calls.into_iter().map(|input| ("webfetch", input)))).text("ok");
    let project = Project::plain()?;
    let server = BlockingServer::start(script)?;
    let mut config = Project::config(&server.url());
    config["permission"] = json!({"webfetch": {format!("{pages}/*"): "allow"}});
    project.write_config(&config)?;
    Ok(Stage { server, project })
}

#[test]
fn pages_are_fetched_as_recorded() -> Result<()> {
    let pages = pages()?;
    let at = |path: &str| format!("{pages}{path}");
    let calls = [
        json!({"url": at("/p.html")}),
        json!({"url": at("/p.html"), "format": "text"}),
        json!({"url": at("/p.html"), "format": "html"}),
        json!({"url": at("/moved")}),
        json!({"url": at("/404")}),
        json!({"url": at("/endless")}),
        json!({"url": at("/slow"), "timeout": 1}),
        json!({"url": at("/img")}),
        json!({"url": at("/long")}),
        json!({"url": "ftp://x"}),
    ];
    let stage = stage(&pages, calls.to_vec())?;
    let lines = stage.json(["fetch"])?;
    let results = stage.results(1)?;
    let markdown = "T\n\n# Head\n\nPara **bold** [link](/x)\n\n-   one\n-   two\n\n```\ncode()\n```";
    assert_eq!(results[0], markdown);
    assert_eq!(results[1], "THeadPara bold linkonetwocode()");
    assert_eq!(results[2], PAGE);
    assert_eq!(results[3], "{\"a\":1}");
    assert_eq!(results[4], format!("StatusCode: non 2xx status code (404 GET {})", at("/404")));
    assert_eq!(results[5], "Response too large (exceeds 5MB limit)");
    assert_eq!(results[6], "Request timed out");
    check_has(&results[7], &["Image fetched successfully"]);
    check_has(&results[8], &["line of text here", "Full output saved to: "]);
    assert_eq!(results[9], "URL must start with http:// or https://");
    let title = |url: &str| {
        let calls = of_type(&lines, "tool_use");
        let call = calls.iter().find(|call| {
            call["part"]["state"]["input"]["url"] == url && call["part"]["state"]["input"]["format"].is_null()
        });
        call.map(|call| call["part"]["state"]["title"].clone()).unwrap_or_default()
    };
    assert_eq!(title(&at("/p.html")), format!("{} (text/html; charset=utf-8)", at("/p.html")));
    stage.no_problems()
}

#[test]
fn local_addresses_need_a_rule_that_names_them() -> Result<()> {
    let pages = pages()?;
    let url = format!("{pages}/j.json");
    let stage = Stage::plain(
        Script::new().tool("webfetch", json!({"url": url})).tool("webfetch", json!({"url": url})).text("ok"),
    )?;
    let done = stage.run(["fetch"])?.success()?;
    check_has(&done.stderr, &[&format!("permission requested: webfetch ({url}); auto-rejecting")]);
    stage.run(["--auto", "fetch"])?.success()?;
    let results: Vec<_> =
        stage.server.main_requests().iter().map(|request| request.body.to_string()).collect();
    assert!(results.iter().any(|body| body.contains("{\\\"a\\\":1}")), "{results:#?}");
    Ok(())
}

#[test]
fn a_redirect_to_another_local_address_needs_permission() -> Result<()> {
    let pages = pages()?;
    let stage = stage(&pages, vec![json!({"url": format!("{pages}/astray")})])?;
    let done = stage.run(["fetch"])?.success()?;
    check_has(&done.stderr, &["permission requested: webfetch (http://127.0.0.2:9/); auto-rejecting"]);
    Ok(())
}

#[test]
fn an_aborted_fetch_ends_immediately() -> Result<()> {
    let pages = pages()?;
    let stage = stage(&pages, vec![json!({"url": format!("{pages}/slow"), "timeout": 100})])?;
    let run = stage.program(["run", "fetch"]).start()?;
    wait_until("the request of the model", || !stage.server.main_requests().is_empty())?;
    run.interrupt()?;
    assert_eq!(run.finish()?.code, Some(130));
    Ok(())
}

#[test]
fn skills_are_listed_and_loaded() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([("skill", json!({"name": "myskill"})), ("skill", json!({"name": "hidden-one"}))]))
        .text("ok");
    let stage = Stage::git(script)?;
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({"skill": {"hidden-one": "deny"}});
    stage.project.write_config(&config)?;
    let skill =
        |name: &str, body: &str| format!("---\nname: {name}\ndescription: Does {name}\n---\n{body}\n");
    stage.project.write(".opencode/skills/myskill/SKILL.md", skill("myskill", "SKILL BODY"))?;
    stage.project.write(".opencode/skills/myskill/run.sh", "")?;
    stage.project.write(".claude/skills/cskill/SKILL.md", skill("cskill", "CBODY"))?;
    stage.project.write(".agents/skills/hidden-one/SKILL.md", skill("hidden-one", "HIDDEN"))?;
    stage.json(["go"])?;
    let system = stage.messages(0)?[0]["content"].to_string();
    check_has(
        &system,
        &["<available_skills>", "<name>cskill</name>", "<name>customize-opencode</name>", "&lt;built-in&gt;"],
    );
    assert!(!system.contains("SKILL BODY") && !system.contains("hidden-one"), "{system}");
    let results = stage.results(1)?;
    let file = stage.project.path(".opencode/skills/myskill/run.sh").display().to_string();
    check_has(
        &results[0],
        &["<skill_content name=\"myskill\">", "SKILL BODY", &format!("<file>{file}</file>")],
    );
    assert_eq!(
        results[1],
        "Skill \"hidden-one\" not found. Available skills: cskill, customize-opencode, myskill"
    );
    let printed: Value =
        serde_json::from_str(&stage.program(["debug", "skill"]).finish()?.success()?.stdout)?;
    let (server, url) = stage.serve()?;
    let listed = get(&url, "/skill")?;
    assert_eq!(printed, listed);
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|skill| skill["name"].clone()).collect();
    assert_eq!(names, ["customize-opencode", "cskill", "hidden-one", "myskill"]);
    assert_eq!(listed[0]["location"], "<built-in>");
    let location = stage.project.path(".claude/skills/cskill/SKILL.md").display().to_string();
    let expected =
        json!({"name": "cskill", "description": "Does cskill", "location": location, "content": "CBODY\n"});
    assert_eq!(listed[1], expected);
    server.terminate()?;
    server.finish()?.success()?;
    stage.no_problems()
}
