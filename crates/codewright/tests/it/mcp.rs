//! MCP servers: their tools, prompts and resources, and everything that they can do wrong.
//!
//! The server is `crates/testkit/servers/mcp.py`, which needs only Python.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use codewright_testkit::{Project, Run, Running, Script, Steps, Turn, Usage};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, get, last_call, new_session, post, program, prompt, wait_until};

mod economy;
mod replay;
mod status;

/// The path of the scripted server.
fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/servers/mcp.py")
}

/// The command of the scripted server.
fn command(words: &[&str]) -> Value {
    let mut command = vec!["python3".to_owned(), script().to_string_lossy().into_owned()];
    command.extend(words.iter().map(|word| (*word).to_owned()));
    json!(command)
}

fn local(words: &[&str]) -> Value {
    json!({"type": "local", "command": command(&[&["stdio"], words].concat())})
}

/// A stage whose user configured these servers.
fn stage(script: Script, mcp: Value, more: Value) -> Result<Stage> {
    let stage = Stage::git(script)?;
    configure(&stage, mcp, more)?;
    Ok(stage)
}

/// Configures these servers.
fn configure(stage: &Stage, mcp: Value, more: Value) -> Result<()> {
    let mut config = Project::config(&stage.server.url());
    config["mcp"] = mcp;
    // The servers record what they receive outside of the worktree, and report process ids of the machine.
    config["sandbox"] = json!({"mode": "off"});
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    stage.project.write_config(&config)
}

/// A script of calls, each in a separate prompt.
fn calls(calls: &[(&str, Value)]) -> Script {
    calls.iter().fold(Script::new(), |script, (name, input)| {
        script.turn(Turn::steps().tool(*name, input.clone())).text("Done.")
    })
}

/// The server of a stage with one session.
struct Serving {
    server: Running,
    url: String,
    id: String,
}

impl Serving {
    fn new(stage: &Stage) -> Result<Self> {
        let (server, url) = stage.serve()?;
        let id = new_session(&url)?;
        Ok(Self { server, url, id })
    }

    /// Sends a prompt, waits for its end and returns the call that it led to.
    fn call(&self) -> Result<Value> {
        last_call(&self.url, &self.id)
    }

    fn mcp(&self) -> Result<Value> {
        get(&self.url, "/mcp")
    }
}

/// The names of the tools in a request for the model.
fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| Some(tool["function"]["name"].as_str()?.to_owned())).collect()
}

#[test]
fn tools_have_the_recorded_names_schemas_and_parts() -> Result<()> {
    let script = calls(&[
        ("scripted_echo", json!({"text": "x"})),
        ("scripted_image", json!({})),
        ("scripted_structured", json!({})),
        ("scripted_fail", json!({})),
        ("scripted_echo", json!({})),
        ("scripted_stray", json!({})),
        ("scripted_links", json!({})),
        ("scripted_roots", json!({})),
        ("scripted_sample", json!({})),
    ]);
    let stage = stage(script, json!({"scripted": local(&[])}), json!({}))?;
    let serving = Serving::new(&stage)?;
    let echo = serving.call()?;
    assert_eq!(echo["tool"], "scripted_echo");
    let mut state = echo["state"].clone();
    state.as_object_mut().context("no state")?.remove("time");
    assert_eq!(
        state,
        json!({"status": "completed", "input": {"text": "x"}, "output": "Echo: x", "title": "",
               "metadata": {"truncated": false}})
    );
    let image = serving.call()?;
    assert_eq!(image["state"]["output"], "Before\n\nAfter");
    let file = &image["state"]["attachments"][0];
    assert_eq!((&file["type"], &file["mime"]), (&json!("file"), &json!("image/png")));
    assert!(file["url"].as_str().is_some_and(|url| url.starts_with("data:image/png;base64,iVBOR")));
    assert_eq!(serving.call()?["state"]["output"], r#"{"answer":42}"#);
    assert_eq!(serving.call()?["state"]["error"], "It does not work");
    let error = "MCP error -32602: Input validation error: `text` is missing";
    assert_eq!(serving.call()?["state"]["error"], error);
    assert_eq!(serving.call()?["state"]["output"], "After stray lines");
    assert_eq!(serving.call()?["state"]["output"], "[Resource: notes.md (demo://notes.md)]");
    let roots = format!("[{{\"uri\": \"file://{}\"}}]", stage.project.directory().display());
    assert_eq!(serving.call()?["state"]["output"], roots);
    check_has(&serving.call()?["state"]["output"].to_string(), &["-32601"]);
    let first = &stage.server.main_requests()[0].body;
    let tools = first["tools"].as_array().context("no tools")?;
    let echo =
        tools.iter().find(|tool| tool["function"]["name"] == "scripted_echo").context("not offered")?;
    assert_eq!(
        echo["function"]["parameters"],
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
               "additionalProperties": false})
    );
    let names = offered(first);
    for name in ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"] {
        assert!(names.iter().any(|offered| offered == name), "{names:?}");
    }
    let system = first["messages"][0]["content"].to_string();
    check_has(&system, &["<mcp_instructions>", "<server name=\\\"scripted\\\">", "Say please."]);
    // Instructions of a server cannot end their block.
    assert_eq!(system.matches("</mcp_instructions>").count(), 1, "{system}");
    stage.no_problems()
}

#[test]
fn a_server_that_fails_has_one_sentence_and_the_others_work() -> Result<()> {
    let mcp = json!({
        "good": local(&["bad=1"]),
        "missing": {"type": "local", "command": ["no-such-program-here"]},
        "path": {"type": "local", "command": ["/nonexistent"]},
        "directory": {"type": "local", "command": ["x"], "cwd": "nowhere"},
        "crash": local(&["init=crash"]),
        "hang": {"type": "local", "command": command(&["stdio", "init=hang"]), "timeout": 1500},
        "noise": {"type": "local", "command": command(&["stdio", "init=noise"]), "timeout": 1500},
        "stray": local(&["init=stray"]),
        "version": local(&["init=old"]),
        "kind": {"type": "pigeon"},
        "url": {"type": "remote", "url": "no url"},
        "closed": {"type": "remote", "url": "http://127.0.0.1:1/mcp"},
        "model": {"type": "remote", "url": format!("http://{}/nothing", "127.0.0.1:9")},
        "off": {"type": "local", "command": ["x"], "enabled": false},
    });
    let stage = stage(calls(&[("good_echo", json!({"text": "x"}))]), mcp, json!({}))?;
    let serving = Serving::new(&stage)?;
    let all = serving.mcp()?;
    for (name, words) in [
        ("missing", "Executable not found in $PATH: \"no-such-program-here\""),
        ("path", "`/nonexistent` does not exist."),
        ("directory", "which is not a directory"),
        ("crash", "exit code 2: cannot read the key file"),
        ("hang", "did not answer within 1.5 s"),
        ("noise", "did not answer within 1.5 s"),
        ("version", "another version of the protocol"),
        ("kind", "pigeon"),
        ("url", "no URL"),
        ("closed", "Cannot reach 127.0.0.1"),
    ] {
        let error = all[name]["error"].as_str().with_context(|| format!("{name}: {all}"))?;
        assert!(all[name]["status"] == "failed" && error.contains(words), "{name}: {error}");
        assert!(!error.contains('\n') && error.len() < 600, "{name}: {error}");
    }
    for (name, status) in [("good", "connected"), ("stray", "connected"), ("off", "disabled")] {
        assert_eq!(all[name]["status"], status, "{name}");
    }
    assert_eq!(serving.call()?["state"]["output"], "Echo: x");
    // Bad tools are left out, and names that collide are made unique.
    let names = offered(&stage.server.main_requests()[0].body);
    assert!(
        names.contains(&"good_e_c_h_o".to_owned()) && names.contains(&"good_e_c_h_o_2".to_owned()),
        "{names:?}"
    );
    assert!(!names.iter().any(|name| name == "good_no-schema" || name == "good_list"), "{names:?}");
    stage.no_problems()
}

#[test]
fn a_call_that_hangs_crashes_or_floods_ends_alone() -> Result<()> {
    let script = calls(&[
        ("s_hang", json!({})),
        ("s_progress", json!({})),
        ("s_flood", json!({})),
        ("s_crash", json!({})),
        ("s_echo", json!({"text": "again"})),
    ]);
    let project = Project::plain()?;
    let record = project.path("record");
    let words = ["stdio".to_owned(), format!("record={}", record.display())];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // Progress extends the limit, which is shorter than that call and longer than the start of Python.
    let mcp = json!({"s": {"type": "local", "command": command(&words), "timeout": 6000}});
    let stage = stage(script, mcp, json!({}))?;
    let serving = Serving::new(&stage)?;
    assert_eq!(serving.call()?["state"]["error"], "The server did not answer within 6 s.");
    wait_until("a cancellation", || {
        fs::read_to_string(&record).is_ok_and(|text| text.contains("notifications/cancelled"))
    })?;
    assert_eq!(serving.call()?["state"]["output"], "All steps done");
    let flood = serving.call()?["state"]["error"].to_string();
    assert!(flood.contains("larger than 16 MiB"), "{flood}");
    let crash = serving.call()?["state"]["error"].to_string();
    assert!(crash.contains("closed"), "{crash}");
    // It is started again.
    wait_until("a new start", || serving.mcp().is_ok_and(|all| all["s"]["status"] == "connected"))?;
    assert_eq!(serving.call()?["state"]["output"], "Echo: again");
    let starts = fs::read_to_string(&record)?.matches("started ").count();
    assert_eq!(starts, 2);
    stage.no_problems()
}

#[test]
fn an_aborted_call_is_cancelled_at_the_server() -> Result<()> {
    let project = Project::plain()?;
    let record = project.path("record");
    let option = format!("record={}", record.display());
    let stage = stage(calls(&[("s_hang", json!({}))]), json!({"s": local(&[&option])}), json!({}))?;
    let serving = Serving::new(&stage)?;
    let path = format!("/session/{}", serving.id);
    assert_eq!(post(&serving.url, &format!("{path}/prompt_async"), &prompt("go"))?.0, 204);
    let has = |text: &str| fs::read_to_string(&record).is_ok_and(|all| all.contains(text));
    wait_until("the call", || has("request tools/call"))?;
    post(&serving.url, &format!("{path}/abort"), &json!({}))?;
    wait_until("a cancellation", || has("notifications/cancelled"))?;
    wait_until("the end", || get(&serving.url, "/session/status").is_ok_and(|all| all == json!({})))?;
    Ok(())
}

#[test]
fn servers_are_added_switched_and_removed_while_the_program_runs() -> Result<()> {
    // The list is read again a moment after the change, so the new tool is called until it exists.
    let mut script = vec![("one_grow", json!({}))];
    script.extend((0..200).map(|_| ("one_grown", json!({}))));
    let stage = stage(calls(&script), json!({"one": local(&[])}), json!({}))?;
    let serving = Serving::new(&stage)?;
    let url = &serving.url;
    assert_eq!(serving.mcp()?, json!({"one": {"status": "connected"}}));
    assert_eq!(post(url, "/mcp/one/disconnect", &json!({}))?, (200, json!(true)));
    assert_eq!(serving.mcp()?, json!({"one": {"status": "disabled"}}));
    assert_eq!(post(url, "/mcp/one/connect", &json!({}))?, (200, json!(true)));
    let (status, added) = post(url, "/mcp", &json!({"name": "dyn one", "config": local(&[])}))?;
    assert_eq!((status, &added["dyn one"]["status"]), (200, &json!("connected")));
    assert_eq!(post(url, "/mcp", &json!({"name": "x", "config": {"type": "pigeon"}}))?.0, 400);
    let (status, missing) = post(url, "/mcp/nonesuch/connect", &json!({}))?;
    let expected = json!({"_tag": "McpServerNotFoundError", "name": "nonesuch", "message": "MCP server not found: nonesuch"});
    assert_eq!((status, missing), (404, expected));
    // A removed server is forgotten.
    post(url, "/mcp", &json!({"name": "gone", "config": local(&[])}))?;
    assert_eq!(serving.mcp()?["gone"]["status"], "connected");
    check_has(&crate::support::delete(url, "/mcp?name=gone")?, &["200 OK"]);
    assert!(serving.mcp()?["gone"].is_null());
    // A new tool is offered to the next request.
    serving.call()?;
    wait_until("the new tool", || {
        serving.call().is_ok_and(|call| call["state"]["output"] == "Called grown with {}")
    })?;
    let names = offered(&stage.server.main_requests().pop().context("no request")?.body);
    assert!(
        names.contains(&"dyn_one_echo".to_owned()) && names.contains(&"one_grown".to_owned()),
        "{names:?}"
    );
    stage.no_problems()
}

#[test]
fn no_process_of_a_server_survives_the_program() -> Result<()> {
    let project = Project::plain()?;
    let (record, child) = (project.path("record"), project.path("child"));
    let option = format!("record={}", record.display());
    let script = calls(&[("s_child", json!({"path": child}))]);
    let stage = stage(script, json!({"s": local(&["exit=slow", &option])}), json!({}))?;
    let serving = Serving::new(&stage)?;
    serving.call()?;
    wait_until("the child", || fs::read_to_string(&child).is_ok_and(|text| !text.is_empty()))?;
    let started = fs::read_to_string(&record)?;
    let server =
        started.lines().find_map(|line| line.strip_prefix("started ")).context("no process")?.to_owned();
    let child = fs::read_to_string(&child)?;
    // Dropping it kills the program itself, which cannot clean up.
    drop(serving.server);
    for id in [server, child] {
        let path = PathBuf::from(format!("/proc/{id}"));
        wait_until("its end", || !path.exists() || is_zombie(&path))?;
    }
    Ok(())
}

fn is_zombie(process: &Path) -> bool {
    fs::read_to_string(process.join("stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn a_repositorys_server_starts_only_in_a_trusted_directory() -> Result<()> {
    let stage = stage(Script::new().default_turn(Turn::text("Done.")), json!({}), json!({}))?;
    let record = stage.project.home().join("record");
    let option = format!("record={}", record.display());
    let config = json!({"mcp": {"theirs": local(&[&option])}});
    stage.project.write("opencode.json", config.to_string())?;
    let run = |args: &[&'static str]| -> Result<Run> {
        let all = ["run"].into_iter().chain(args.iter().copied());
        Ok(program(&stage.project, all).env("CODEWRIGHT_TRUST", "ask"))
    };
    run(&["hi"])?.finish()?.success()?;
    assert!(!record.exists());
    run(&["--trust", "hi"])?.finish()?.success()?;
    check_has(&fs::read_to_string(&record)?, &["request initialize", "request tools/list"]);
    let requests = stage.server.main_requests();
    let has = |at: usize| offered(&requests[at].body).contains(&"theirs_echo".to_owned());
    assert_eq!((has(0), has(1)), (false, true));
    Ok(())
}

#[test]
fn rules_and_plan_mode_hold_for_tools_of_servers() -> Result<()> {
    let file = |stage: &Stage| stage.project.path("written");
    let write = |path: &Path| json!({"path": path});
    let project = Project::plain()?;
    let canary = project.path("canary");
    let servers = json!({"s": local(&[])});
    // Denied tools are not offered.
    let denied =
        stage(Script::new().text("Done."), servers.clone(), json!({"permission": {"s_w*": "deny"}}))?;
    denied.run(["hi"])?.success()?;
    let names = offered(&denied.server.main_requests()[0].body);
    assert!(names.contains(&"s_echo".to_owned()) && !names.contains(&"s_write".to_owned()), "{names:?}");
    // `run` has no user to reply, so a call that needs a permission is rejected.
    for (more, args) in
        [(json!({"permission": {"s_write": "ask"}}), &["hi"][..]), (json!({}), &["--agent", "plan", "hi"])]
    {
        let stage = stage(calls(&[("s_write", write(&canary))]), servers.clone(), more.clone())?;
        let done = stage.run(args.iter().copied())?;
        check_has(&done.stderr, &["permission requested: ", "s_write"]);
        assert!(!canary.exists() && !file(&stage).exists(), "{more}");
    }
    let allowed = stage(calls(&[("s_write", write(&canary))]), servers, json!({}))?;
    allowed.run(["hi"])?.success()?;
    assert!(canary.exists());
    Ok(())
}

#[test]
fn prompts_are_commands_and_resources_are_attached_and_read() -> Result<()> {
    let script = calls(&[
        ("list_mcp_resources", json!({})),
        ("list_mcp_resource_templates", json!({"server": "s"})),
        ("read_mcp_resource", json!({"server": "s", "uri": "demo://notes.md"})),
        ("read_mcp_resource", json!({"server": "s", "uri": "demo://dot.png"})),
        ("read_mcp_resource", json!({"server": "s", "uri": "nope://x"})),
    ])
    .text("Sunny.")
    .text("Seen.");
    let stage = stage(script, json!({"s": local(&[])}), json!({}))?;
    let serving = Serving::new(&stage)?;
    let listed = serving.call()?;
    assert_eq!(
        (&listed["state"]["title"], &listed["state"]["metadata"]["count"]),
        (&json!("MCP resources"), &json!(2))
    );
    let output = listed["state"]["output"].as_str().context("no output")?;
    assert!(
        output.starts_with("{\n  \"resources\": [\n    {\n      \"name\": \"notes.md\",\n      \"uri\""),
        "{output}"
    );
    assert_eq!(serving.call()?["state"]["title"], "MCP resource templates: s");
    let read = serving.call()?;
    let text = "Resource: demo://notes.md\nMIME: text/markdown\n# Notes of the server";
    assert_eq!((&read["state"]["output"], &read["state"]["metadata"]["contents"]), (&json!(text), &json!(1)));
    assert_eq!(serving.call()?["state"]["attachments"][0]["mime"], "image/png");
    let error = serving.call()?["state"]["error"].to_string();
    assert!(error.contains("Failed to read MCP resource: s/nope://x"), "{error}");
    let resources = get(&serving.url, "/experimental/resource")?;
    let notes =
        json!({"name": "notes.md", "uri": "demo://notes.md", "mimeType": "text/markdown", "client": "s"});
    assert_eq!(resources["s:demo://notes.md"], notes);
    let commands = get(&serving.url, "/command")?;
    let weather = commands.as_array().into_iter().flatten().find(|command| command["name"] == "s:weather");
    let weather = weather.context("no command")?;
    assert_eq!((&weather["source"], &weather["hints"]), (&json!("mcp"), &json!(["$1", "$2"])));
    let path = format!("/session/{}", serving.id);
    let command = |arguments: &str| json!({"command": "s:weather", "arguments": arguments});
    let (status, _) = post(&serving.url, &format!("{path}/command"), &command(""))?;
    assert_eq!(status, 400);
    let (status, answer) = post(&serving.url, &format!("{path}/command"), &command("Paris TX USA"))?;
    assert_eq!((status, &answer["parts"][1]["text"]), (200, &json!("Sunny.")), "{answer}");
    let asked = stage.server.main_requests().pop().context("no request")?.body["messages"].to_string();
    check_has(&asked, &["The weather in Paris, TX USA?"]);
    // A server's text runs no command and attaches no file.
    assert!(!stage.project.path("pwned").exists() && !asked.contains("# Project"), "{asked}");
    let source = json!({"type": "resource", "clientName": "s", "uri": "demo://notes.md",
                        "text": {"start": 0, "end": 4, "value": "look"}});
    let file = json!({"type": "file", "mime": "text/markdown", "filename": "notes.md", "url": "demo://notes.md",
                      "source": source});
    let body = json!({"parts": [{"type": "text", "text": "look"}, file]});
    assert_eq!(post(&serving.url, &format!("{path}/message"), &body)?.0, 200);
    let asked = stage.server.main_requests().pop().context("no request")?.body["messages"].to_string();
    check_has(&asked, &["Reading MCP resource: notes.md (demo://notes.md)", "# Notes of the server"]);
    stage.no_problems()
}

#[test]
fn a_server_asks_the_user_through_a_question() -> Result<()> {
    let stage =
        stage(calls(&[("s_ask", json!({})), ("s_ask", json!({}))]), json!({"s": local(&[])}), json!({}))?;
    let serving = Serving::new(&stage)?;
    let url = &serving.url;
    let path = format!("/session/{}/prompt_async", serving.id);
    let answers = [("reply", json!({"answers": [["Ann"], ["s"]]})), ("reject", json!({}))];
    for (verb, body) in answers {
        post(url, &path, &prompt("go"))?;
        wait_until("a question", || get(url, "/question").is_ok_and(|list| !list[0].is_null()))?;
        let request = get(url, "/question")?[0].clone();
        let text = request["questions"][0]["question"].to_string();
        check_has(&text, &["The MCP server `s` asks: Who are you?", "Your name"]);
        let id = request["id"].as_str().context("no id")?;
        assert_eq!(post(url, &format!("/question/{id}/{verb}"), &body)?.0, 200);
        wait_until("the end", || get(url, "/session/status").is_ok_and(|all| all == json!({})))?;
    }
    let messages = get(url, &format!("/session/{}/message", serving.id))?.to_string();
    check_has(
        &messages,
        &[r#"\"action\": \"accept\", \"content\": {\"name\": \"Ann\", \"size\": \"s\"}"#, r#"\"decline\""#],
    );
    stage.no_problems()
}

/// Sends a prompt whose call leads to a question, answers that, and returns the text of the question and the call.
fn asked(serving: &Serving, answer: &str) -> Result<(String, Value)> {
    let url = &serving.url;
    post(url, &format!("/session/{}/prompt_async", serving.id), &prompt("go"))?;
    wait_until("a question", || get(url, "/question").is_ok_and(|list| !list[0].is_null()))?;
    let request = get(url, "/question")?[0].clone();
    let id = request["id"].as_str().context("no id")?;
    post(url, &format!("/question/{id}/reply"), &json!({"answers": [[answer]]}))?;
    wait_until("the end", || get(url, "/session/status").is_ok_and(|all| all == json!({})))?;
    let messages = get(url, &format!("/session/{}/message", serving.id))?;
    let parts = messages.as_array().into_iter().flatten().flat_map(|message| message["parts"].as_array());
    let call = parts.flatten().rfind(|part| part["type"] == "tool").context("no call")?;
    Ok((request["questions"][0]["question"].as_str().unwrap_or_default().to_owned(), call.clone()))
}

#[test]
fn a_server_gets_answers_of_the_model_only_with_the_users_consent() -> Result<()> {
    let script = Script::new()
        .turn(Turn::steps().tool("s_sample", json!({})))
        .text("Blue.")
        .text("Done.")
        .turn(Turn::steps().tool("s_sample", json!({})))
        .text("Done.");
    let mut server = local(&[]);
    server["sampling"] = json!(true);
    let stage = stage(script, json!({"s": server}), json!({}))?;
    let serving = Serving::new(&stage)?;
    let (question, call) = asked(&serving, "Accept")?;
    check_has(
        &question,
        &["The MCP server `s` wants an answer of the model", "System: One word.", "Which colour?"],
    );
    assert!(!question.contains('\u{1b}'), "{question:?}");
    let answer = call["state"]["output"].as_str().context("no output")?;
    check_has(answer, &["Blue.", "\"role\": \"assistant\"", "\"stopReason\": \"endTurn\""]);
    let request = &stage.server.main_requests()[1].body;
    assert_eq!(request["messages"][0], json!({"role": "system", "content": "One word."}), "{request}");
    assert!(request["tools"].is_null(), "{request}");
    let (_, call) = asked(&serving, "Decline")?;
    check_has(call["state"]["output"].as_str().unwrap_or_default(), &["the user declined the request"]);
    stage.no_problems()
}

#[test]
fn answers_for_servers_are_in_the_cost_of_the_session_and_of_the_message() -> Result<()> {
    let using = |steps: Steps, input, output| {
        let cached = Usage { cache_read: 0, cache_write: 0, reasoning: 0, ..Usage::default() };
        Steps { usage: Usage { input, output, ..cached }, ..steps }
    };
    let script = Script::new()
        .turn(using(Turn::steps().tool("s_sample", json!({})), 1000, 100))
        .turn(using(Turn::steps().text("Blue."), 3000, 500))
        .turn(using(Turn::steps().text("Done."), 2000, 200));
    let mut server = local(&[]);
    server["sampling"] = json!(true);
    let stage = Stage::git(script)?;
    let mut provider = Project::config(&stage.server.url())["provider"].clone();
    provider["mock"]["models"]["plain-model"]["cost"] = json!({"input": 1000, "output": 10_000});
    configure(&stage, json!({"s": server}), json!({"provider": provider}))?;
    let serving = Serving::new(&stage)?;
    asked(&serving, "Accept")?;
    let session = get(&serving.url, &format!("/session/{}", serving.id))?;
    assert_eq!((&session["tokens"]["input"], &session["tokens"]["output"]), (&json!(6000), &json!(800)));
    assert_eq!(session["cost"], 14.0, "{session}");
    let messages = get(&serving.url, &format!("/session/{}/message", serving.id))?;
    let answers =
        messages.as_array().into_iter().flatten().filter(|message| message["info"]["role"] == "assistant");
    let (mut costs, mut steps) = (Vec::new(), Vec::new());
    for answer in answers {
        costs.push((answer["info"]["cost"].clone(), answer["info"]["tokens"]["input"].clone()));
        let parts = answer["parts"].as_array().into_iter().flatten();
        steps.extend(parts.filter(|part| part["type"] == "step-finish").map(|part| part["cost"].clone()));
    }
    // The tokens of a message are the size of its context.
    assert_eq!(costs, [(json!(10.0), json!(1000)), (json!(4.0), json!(2000))]);
    assert_eq!(steps, [json!(10.0), json!(4.0)]);
    stage.no_problems()
}

#[test]
fn only_safe_pages_are_shown_to_the_user() -> Result<()> {
    let open = |url: &str| ("s_open", json!({ "url": url }));
    let urls = ["javascript:alert(1)", "file:///etc/passwd", "http://example.com/", "https://a@example.com/"];
    let mut script: Vec<_> = urls.iter().map(|url| open(url)).collect();
    // The first letter is Cyrillic.
    script.push(open("https://\u{430}pple.com/"));
    let stage = stage(calls(&script), json!({"s": local(&[])}), json!({}))?;
    let serving = Serving::new(&stage)?;
    for url in urls {
        let answer = serving.call()?["state"]["output"].to_string();
        assert!(answer.contains("decline"), "{url}: {answer}");
    }
    let (question, call) = asked(&serving, "Accept")?;
    check_has(&question, &["Sign in", "https://xn--pple-43d.com/"]);
    check_has(&call["state"]["output"].to_string(), &["accept"]);
    stage.no_problems()
}

#[test]
fn a_changed_configuration_takes_effect_while_the_program_runs() -> Result<()> {
    let stage = stage(Script::new().text("Done.").text("Done."), json!({"one": local(&[])}), json!({}))?;
    let serving = Serving::new(&stage)?;
    assert_eq!(serving.mcp()?, json!({"one": {"status": "connected"}}));
    let change = json!({"mcp": {"one": {"enabled": false}, "two": local(&[])}});
    assert_eq!(crate::access::patch(&serving.url, "/config", &change)?.0, 200);
    wait_until("the servers", || {
        serving
            .mcp()
            .is_ok_and(|all| all["one"]["status"] == "disabled" && all["two"]["status"] == "connected")
    })?;
    post(&serving.url, &format!("/session/{}/message", serving.id), &prompt("go"))?;
    let names = offered(&stage.server.main_requests().pop().context("no request")?.body);
    assert!(names.contains(&"two_echo".to_owned()) && !names.contains(&"one_echo".to_owned()), "{names:?}");
    stage.no_problems()
}

#[test]
fn results_are_truncated_hooks_see_calls_and_messages_are_logged() -> Result<()> {
    let long = "line\n".repeat(5000);
    let script = calls(&[
        ("s_echo", json!({"text": long})),
        ("s_stray", json!({})),
        ("s_roots", json!({})),
        ("batch", json!({"tool_calls": [{"tool": "s_echo", "parameters": {"text": "x"}}]})),
    ]);
    let hook = json!([{"matcher": "s_roots", "hooks": [{"type": "command", "command": "echo not now >&2; exit 2"}]}]);
    let more = json!({"hooks": {"PreToolUse": hook}, "experimental": {"batch_tool": true}});
    let stage = stage(script, json!({"s": local(&[])}), more)?;
    let serving = Serving::new(&stage)?;
    let state = serving.call()?["state"].clone();
    assert_eq!(state["metadata"]["truncated"], true, "{}", state["metadata"]);
    assert!(state["output"].as_str().is_some_and(|output| output.len() < long.len()));
    assert_eq!(serving.call()?["state"]["output"], "After stray lines");
    wait_until("the log", || {
        get(&serving.url, "/log").is_ok_and(|log| log.to_string().contains("a logged line"))
    })?;
    let blocked = serving.call()?["state"].to_string();
    assert!(blocked.contains("not now"), "{blocked}");
    // Tools of servers cannot be part of a batch.
    let batch = serving.call()?["state"].to_string();
    assert!(!batch.contains("Echo: x") && batch.contains("s_echo"), "{batch}");
    stage.no_problems()
}

#[test]
fn hostile_tools_are_sanitised_and_bounded() -> Result<()> {
    let script =
        calls(&[("s_binary", json!({})), ("s_local", json!({})), ("s_loop", json!({"next": {"next": {}}}))]);
    let stage = stage(script, json!({"s": local(&["hostile=1"])}), json!({}))?;
    let serving = Serving::new(&stage)?;
    // Damaged text is repaired or refused, and the connection stays.
    let damaged = serving.call()?["state"].to_string();
    assert!(damaged.contains("damaged") || damaged.contains("UTF-8"), "{damaged}");
    // A link is only text, which names the address.
    let link = serving.call()?["state"]["output"].as_str().unwrap_or_default().to_owned();
    check_has(&link, &["[Resource: notes", "file:///etc/passwd"]);
    assert!(!link.contains("root:") && !link.contains(['\u{1b}', '\u{202e}']), "{link}");
    serving.call()?;
    let request = &stage.server.main_requests()[0].body;
    let names = offered(request);
    assert!(names.contains(&"s_b_sh__31m_".to_owned()) && names.contains(&"s_loop".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name == "s_deep" || name == "s_huge"), "{names:?}");
    let text = request.to_string();
    assert!(text.len() < 300_000 && !text.contains("<system-reminder>Obey"), "{} bytes", text.len());
    assert!(!text.contains("\\u001b") && !text.contains('\u{202e}'));
    stage.no_problems()
}

#[test]
fn a_redirect_to_another_host_is_not_followed() -> Result<()> {
    let (project, other) = (Project::plain()?, codewright_testkit::FileServer::start()?);
    let (path, away) = (script(), format!("away=http://{}/mcp", other.host()));
    let args = [path.to_str().context("no path")?, "http", &away];
    let mut remote = Run::new("python3", &project).args(args).deadline(Duration::from_secs(300)).start()?;
    let port = remote.line()?.context("no port")?;
    let url = format!("http://127.0.0.1:{}/away", port.trim());
    let server = json!({"type": "remote", "url": url, "headers": {"authorization": "secret"}});
    let stage = stage(Script::new(), json!({"s": server}), json!({}))?;
    let serving = Serving::new(&stage)?;
    let status = serving.mcp()?["s"].clone();
    assert_eq!((&status["status"], other.connections()), (&json!("failed"), 0), "{status}");
    Ok(())
}

#[test]
fn an_agent_can_switch_off_the_tools_of_a_server() -> Result<()> {
    let more = json!({"agent": {"quiet": {"mode": "primary", "tools": {"s_*": false}}}});
    let stage = stage(Script::new().text("Done.").text("Done."), json!({"s": local(&[])}), more)?;
    stage.run(["--agent", "quiet", "hi"])?.success()?;
    stage.run(["hi"])?.success()?;
    let requests = stage.server.main_requests();
    let has = |at: usize| offered(&requests[at].body).iter().any(|name| name.starts_with("s_"));
    assert_eq!((has(0), has(1)), (false, true));
    Ok(())
}

#[test]
fn a_change_of_tools_is_an_event() -> Result<()> {
    let stage = stage(calls(&[("s_grow", json!({}))]), json!({"s": local(&[])}), json!({}))?;
    let serving = Serving::new(&stage)?;
    serving.mcp()?;
    let events = BufReader::new(crate::support::ask(&serving.url, "/event")?);
    serving.call()?;
    for line in events.lines() {
        let line = line?;
        if line.contains("\"mcp.tools.changed\"") {
            check_has(&line, &["\"properties\":{\"server\":\"s\"}"]);
            return Ok(());
        }
    }
    anyhow::bail!("the stream ended")
}

#[test]
fn remote_servers_work_over_both_transports() -> Result<()> {
    let project = Project::plain()?;
    let record = project.path("record");
    let option = format!("record={}", record.display());
    let path = script();
    let args = [path.to_str().context("no path")?, "http", &option];
    let mut remote = Run::new("python3", &project).args(args).deadline(Duration::from_secs(300)).start()?;
    let port = remote.line()?.context("no port")?;
    let at = |path: &str| {
        json!({"type": "remote", "url": format!("http://127.0.0.1:{}/{path}", port.trim()),
                                 "headers": {"x-test": "1"}})
    };
    let mcp = json!({"http": at("mcp"), "sse": at("sse"), "moved": at("moved"), "page": at("page"), "no": at("no")});
    let script = calls(&[
        ("http_echo", json!({"text": "new"})),
        ("sse_echo", json!({"text": "old"})),
        ("moved_echo", json!({"text": "there"})),
        ("http_progress", json!({})),
        ("sse_fail", json!({})),
        ("http_roots", json!({})),
    ]);
    let stage = stage(script, mcp, json!({}))?;
    let serving = Serving::new(&stage)?;
    let all = serving.mcp()?;
    for name in ["http", "sse", "moved"] {
        assert_eq!(all[name]["status"], "connected", "{name}: {all}");
    }
    for name in ["page", "no"] {
        let error = all[name]["error"].to_string();
        assert!(error.contains("web page") && !error.contains('<'), "{name}: {error}");
    }
    assert_eq!(serving.call()?["state"]["output"], "Echo: new");
    assert_eq!(serving.call()?["state"]["output"], "Echo: old");
    assert_eq!(serving.call()?["state"]["output"], "Echo: there");
    assert_eq!(serving.call()?["state"]["output"], "All steps done");
    assert_eq!(serving.call()?["state"]["error"], "It does not work");
    check_has(&serving.call()?["state"]["output"].to_string(), &["file://"]);
    check_has(&fs::read_to_string(&record)?, &["headers 1 codewright/", "stream 1"]);
    stage.no_problems()
}

#[test]
fn the_list_names_the_tools_that_are_left_out() -> Result<()> {
    let stage = stage(Script::new(), json!({"s": local(&["bad=1"])}), json!({}))?;
    let done = stage.program(["mcp", "list"]).finish()?.success()?;
    check_has(
        &done.stdout,
        &[
            "connected",
            "tool `list` is left out: its `inputSchema` is not the schema of an object",
            "`no-schema`",
        ],
    );
    stage.no_problems()
}
