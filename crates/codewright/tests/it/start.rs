//! The first hour: the choice of a model, and errors that say what to do.

use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use codewright_testkit::{Project, Run, Script};
use serde_json::{Value, json};

use crate::support::{Stage, check_code, check_has, get, new_session, post, program, prompt, serve};

#[test]
fn no_prompt_goes_to_a_service_that_nobody_chose() -> Result<()> {
    let project = Project::plain()?;
    let (_server, url) = serve(program(&project, ["serve"]))?;
    let listed = get(&url, "/config/providers")?;
    assert_eq!(listed["providers"][0]["id"], "opencode", "the free models are offered");
    assert_eq!(listed["model"], Value::Null, "but not chosen");
    // What a client does that takes the first model of the list.
    let free = json!({ "providerID": "opencode", "modelID": "big-pickle" });
    let id = new_session(&url)?;
    let with = |extra: Value| {
        let mut body = prompt("hi");
        for (key, value) in extra.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        body
    };
    let (status, answer) = post(&url, &format!("/session/{id}/message"), &with(json!({})))?;
    assert!(status == 500 && answer.to_string().contains("no model provider was found"), "{status} {answer}");
    for (path, body, expected) in [
        ("message", with(json!({ "model": free })), "no model was chosen"),
        ("prompt_async", with(json!({ "model": free })), "no model was chosen"),
        (
            "command",
            json!({ "command": "init", "arguments": "", "model": "opencode/big-pickle" }),
            "no model was chosen",
        ),
        ("summarize", free.clone(), "no model was chosen"),
    ] {
        let (status, answer) = post(&url, &format!("/session/{id}/{path}"), &body)?;
        let text = answer.to_string();
        assert!(status == 400 && text.contains(expected), "{path}: {status} {text}");
    }
    assert_eq!(get(&url, &format!("/session/{id}/message"))?, json!([]), "nothing was stored");
    // A session that names the model has not chosen it either.
    let (_, named) =
        post(&url, "/session", &json!({ "model": { "providerID": "opencode", "id": "big-pickle" } }))?;
    let id = named["id"].as_str().unwrap_or_default();
    let (status, answer) = post(&url, &format!("/session/{id}/message"), &prompt("hi"))?;
    assert!(status == 400 && answer.to_string().contains("no model was chosen"), "{status} {answer}");
    // A choice is accepted: `noReply` stores the prompt and sends nothing.
    let chosen = with(json!({ "model": free, "chosen": true, "noReply": true }));
    let (status, answer) = post(&url, &format!("/session/{id}/message"), &chosen)?;
    assert_eq!(status, 200, "{answer}");
    Ok(())
}

#[test]
fn the_configuration_chooses_a_service_without_a_key() -> Result<()> {
    let project = Project::plain()?;
    project.write_config(&json!({ "model": "opencode/big-pickle" }))?;
    let (_server, url) = serve(program(&project, ["serve"]))?;
    let chosen = json!({ "providerID": "opencode", "modelID": "big-pickle", "guessed": false });
    assert_eq!(get(&url, "/config/providers")?["model"], chosen);
    let id = new_session(&url)?;
    let mut body = prompt("hi");
    body["noReply"] = json!(true);
    let (status, answer) = post(&url, &format!("/session/{id}/message"), &body)?;
    assert_eq!(status, 200, "{answer}");
    Ok(())
}

/// A stage whose provider has several models and no configured choice.
fn unchosen(script: Script) -> Result<Stage> {
    let stage = Stage::plain(script)?;
    let mut config = Project::config(&stage.server.url());
    config["provider"]["mock"]["models"] = json!({
        "old": { "release_date": "2025-01-01" }, "new": { "release_date": "2026-01-01" },
        "whisper-9": { "release_date": "2026-02-01" }, "new-mini": { "release_date": "2026-03-01" },
    });
    if let Some(config) = config.as_object_mut() {
        config.remove("model");
    }
    stage.project.write_config(&config)?;
    Ok(stage)
}

#[test]
fn a_guessed_model_is_named_with_the_way_to_change_it() -> Result<()> {
    let stage = unchosen(Script::new().text("Done.").text("Done."))?;
    let done = stage.run(["hi"])?.success()?;
    check_has(&done.stderr, &["no model was chosen: using mock/new", "--model", "opencode.json"]);
    assert_eq!(stage.server.main_requests()[0].body["model"], "new");
    let chosen = stage.run(["-m", "mock/old", "hi"])?.success()?;
    assert!(!chosen.stderr.contains("no model was chosen"), "{}", chosen.stderr);
    Ok(())
}

#[test]
fn a_unique_part_of_a_name_names_a_model() -> Result<()> {
    let stage = unchosen(Script::new().text("Done.").text("Done."))?;
    stage.run(["-m", "OL", "hi"])?.success()?;
    assert_eq!(stage.server.main_requests()[0].body["model"], "old");
    let done = stage.run(["-m", "ne", "hi"])?;
    check_code(&done, 1);
    check_has(&done.stderr, &["`ne` is a part of 2 models", "mock/new", "mock/new-mini"]);
    assert_eq!(stage.server.main_requests().len(), 1);
    Ok(())
}

#[test]
fn models_that_cannot_be_agents_are_listed_only_on_request() -> Result<()> {
    let project = Project::plain()?;
    let run =
        |args: &[&'static str]| program(&project, args.to_vec()).env("GROQ_API_KEY", "k").finish()?.success();
    let usual = run(&["models", "groq"])?;
    assert!(!usual.stdout.contains("whisper"), "{}", usual.stdout);
    check_has(&usual.stdout, &["groq/openai/gpt-oss-120b"]);
    check_has(&usual.stderr, &["models that cannot be agents are hidden", "--all"]);
    check_has(&run(&["models", "groq", "--all"])?.stdout, &["groq/whisper-large-v3-turbo"]);
    Ok(())
}

#[test]
fn a_misspelt_command_is_never_a_prompt() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Done.").text("Done."))?;
    for (line, expected) in [
        (&["rum", "hi"][..], "unknown command `rum`; did you mean `run`?"),
        (&["sesion"], "unknown command `sesion`; did you mean `session`?"),
        (&["zzqqxx"], "`zzqqxx` is neither a command nor a directory"),
        (&["run", "/inti"], "unknown command `/inti`; did you mean `/init`?"),
        (&["run", "/nosuch", "hi"], "unknown command `/nosuch`"),
    ] {
        let done = stage.program(line.iter().copied()).finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &[expected]);
    }
    assert!(stage.server.requests().is_empty());
    // A path and a text after a space are prompts.
    stage.run(["/etc/hosts is wrong"])?.success()?;
    stage.run([" /nosuch"])?.success()?;
    Ok(())
}

#[test]
fn a_prompt_in_the_place_of_a_command_is_sent() -> Result<()> {
    let stage = Stage::plain(Script::new().text("It works."))?;
    let done = stage.program(["fix the test"]).finish()?.success()?;
    assert_eq!(done.stdout, "It works.\n");
    check_has(&stage.server.main_requests()[0].body.to_string(), &["fix the test"]);
    Ok(())
}

#[test]
fn an_unreachable_server_fails_after_three_tries_with_advice() -> Result<()> {
    for (url, expected) in [
        ("http://127.0.0.1:1/v1", "start the server"),
        ("http://no-such-host.invalid/v1", "could not find the host `no-such-host.invalid`"),
    ] {
        let project = Project::plain()?;
        project.configure(url.trim_end_matches("/v1"))?;
        let begun = Instant::now();
        let done = program(&project, ["run", "hi"]).finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &[expected]);
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    }
    Ok(())
}

#[test]
fn strict_reports_a_rejected_permission_by_the_exit_code() -> Result<()> {
    let script = || {
        Script::new().tool("bash", json!({ "command": "rm -r /tmp/none", "description": "d" })).text("No.")
    };
    for (args, expected) in [(&["hi"][..], 0), (&["--strict", "hi"], 2), (&["--strict", "--auto", "hi"], 0)] {
        let stage = Stage::plain(script())?;
        let mut config = Project::config(&stage.server.url());
        config["permission"] = json!({ "bash": "ask" });
        stage.project.write_config(&config)?;
        check_code(&stage.run(args.iter().copied())?, expected);
    }
    Ok(())
}

#[test]
fn help_is_in_groups_without_what_does_nothing() -> Result<()> {
    let project = Project::plain()?;
    let help = program(&project, ["--help"]).finish()?.success()?.stdout;
    check_has(&help, &["Everyday:", "Set up:", "Diagnosis:", "codewright \"fix the test\""]);
    for gone in ["  pr ", "gh`"] {
        assert!(!help.contains(gone), "{gone}: {help}");
    }
    let help = program(&project, ["run", "--help"]).finish()?.success()?.stdout;
    for gone in ["--share", "--interactive", "--port"] {
        assert!(!help.contains(gone), "{gone}: {help}");
    }
    Ok(())
}

/// The findings of `doctor --json` by name.
fn doctor(project: &Project, env: &[(&str, &str)]) -> Result<(i32, Value)> {
    let mut run = program(project, ["doctor", "--json"]);
    for (name, value) in env {
        run = run.env(*name, *value);
    }
    let done = run.finish()?;
    let report: Value = serde_json::from_str(&done.stdout)?;
    let checks = report["checks"].as_array().cloned().unwrap_or_default();
    let by_name =
        checks.into_iter().map(|check| (check["name"].as_str().unwrap_or_default().to_owned(), check));
    Ok((done.code.unwrap_or(-1), Value::Object(by_name.collect())))
}

#[test]
fn doctor_reports_each_part_with_advice_and_without_secrets() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    let (code, checks) = doctor(&stage.project, &[("HTTPS_PROXY", "http://me:canary-password@127.0.0.1:9")])?;
    for name in [
        "version",
        "config",
        "model",
        "key",
        "network",
        "sandbox",
        "mcp",
        "database",
        "git",
        "proxy",
        "terminal",
        "tools",
        "languages",
        "disk",
    ] {
        assert!(checks[name]["status"].is_string(), "{name}: {checks}");
    }
    assert_eq!((code, &checks["model"]["detail"]), (0, &json!("mock/plain-model")), "{checks}");
    assert_eq!(checks["proxy"]["detail"], "set by HTTPS_PROXY");
    assert!(!checks.to_string().contains("canary"), "{checks}");
    let text = stage.program(["doctor"]).finish()?.success()?.stdout;
    assert_eq!(
        text.lines().count(),
        checks.as_object().map_or(0, serde_json::Map::len),
        "one line each: {text}"
    );
    Ok(())
}

#[test]
fn doctor_says_what_is_missing() -> Result<()> {
    let project = Project::plain()?;
    let (code, checks) = doctor(&project, &[])?;
    assert_eq!((code, &checks["key"]["status"]), (1, &json!("failed")));
    check_has(&checks["key"].to_string(), &["no model provider was found", "codewright providers login"]);
    project.configure("http://127.0.0.1:1")?;
    let (code, checks) = doctor(&project, &[])?;
    assert_eq!((code, &checks["network"]["status"]), (1, &json!("failed")));
    check_has(&checks["network"].to_string(), &["127.0.0.1:1", "start the server"]);
    project.write_config(&json!({ "modle": "a/b" }))?;
    let (code, checks) = doctor(&project, &[])?;
    assert_eq!((code, &checks["config"]["status"]), (1, &json!("failed")));
    check_has(&checks["config"].to_string(), &["did you mean `model`?"]);
    Ok(())
}

#[test]
fn doctor_does_not_wait_for_a_silent_server() -> Result<()> {
    let project = Project::plain()?;
    // A listener that accepts and never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    project.configure(&format!("http://{}", listener.local_addr()?))?;
    let begun = Instant::now();
    let (code, checks) = doctor(&project, &[])?;
    assert_eq!((code, &checks["network"]["status"]), (1, &json!("failed")));
    // Two seconds on a machine without other work.
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    Ok(())
}

#[test]
fn a_report_of_a_bug_is_written_without_secrets_and_sent_nowhere() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let (_server, url) = stage.serve()?;
    let line = json!({ "service": "test", "level": "error", "message": "failed with api_key=sk-canary1234567890abcdef" });
    assert_eq!(post(&url, "/log", &line)?.0, 200);
    let done = stage.program(["bug", "-o", "report.md"]).finish()?.success()?;
    check_has(&done.stdout, &["report.md", "issue"]);
    let report = std::fs::read_to_string(stage.project.path("report.md"))?;
    check_has(&report, &["## codewright doctor", "mock/plain-model", "failed with"]);
    assert!(!report.contains("canary"), "{report}");
    // A file of the user is not replaced.
    check_code(&stage.program(["bug", "-o", "report.md"]).finish()?, 1);
    assert!(stage.server.main_requests().is_empty());
    Ok(())
}

/// The answer of a model with these findings.
fn findings(findings: Value) -> Script {
    Script::new().tool("StructuredOutput", json!({ "summary": "Mostly fine.", "findings": findings }))
}

#[test]
fn a_review_is_printed_as_text_json_and_sarif() -> Result<()> {
    let list = json!([
        { "file": "a.txt", "line": 1, "severity": "low", "title": "Small", "description": "d" },
        { "file": "./a.txt", "line": 99, "severity": "critical", "title": "Large", "description": "It breaks.", "suggestion": "fixed" },
        { "file": "../outside", "line": 1, "severity": "high", "title": "Gone", "description": "d" },
    ]);
    for (args, expected) in [
        (
            &["review"][..],
            &["Mostly fine.", "a.txt:2: critical: Large", "Suggestion:\n    fixed", "2 findings."][..],
        ),
        (&["review", "--format", "json"], &["\"severity\": \"critical\"", "\"suggestion\": \"fixed\""]),
        (
            &["review", "--format", "sarif"],
            &["\"version\": \"2.1.0\"", "\"level\": \"error\"", "\"startLine\": 2"],
        ),
    ] {
        let stage = Stage::git(findings(list.clone()))?;
        std::fs::write(stage.project.path("a.txt"), "one\ntwo")?;
        let done = stage.program(args.iter().copied()).finish()?.success()?;
        check_has(&done.stdout, expected);
        check_has(&done.stderr, &["a finding was left out", "../outside:1"]);
        assert!(!done.stdout.contains("Gone"), "{}", done.stdout);
        stage.no_problems()?;
    }
    Ok(())
}

#[test]
fn a_review_over_http_has_patches_that_apply() -> Result<()> {
    let stage = Stage::git(findings(json!([
        { "file": "a.txt", "line": 2, "severity": "high", "title": "Large", "description": "It breaks.",
          "original": "two", "suggestion": "2" },
        { "file": "a.txt", "line": 1, "severity": "low", "title": "Words", "description": "d", "suggestion": "Say more." },
    ])))?;
    std::fs::write(stage.project.path("a.txt"), "one\ntwo\nthree\n")?;
    let (_server, url) = stage.serve()?;
    let request = get(&url, "/experimental/review")?;
    let (_, session) = post(&url, "/session", &request["session"])?;
    let id = session["id"].as_str().unwrap_or_default().to_owned();
    // Without an answer there are no findings, and not an empty list.
    assert!(get(&url, &format!("/session/{id}/review")).is_err());
    let (status, answer) = post(&url, &format!("/session/{id}/message"), &request["prompt"])?;
    assert_eq!(status, 200, "{answer}");
    let review = get(&url, &format!("/session/{id}/review"))?;
    assert_eq!(review["findings"][0]["title"], "Large", "{review}");
    // The server's own mode is another one.
    let sent =
        stage.server.main_requests().first().map(|request| request.body.to_string()).unwrap_or_default();
    check_has(&sent, &["Commands run in a sandbox (mode `read-only`)"]);
    assert_eq!(review["findings"][1]["patch"], Value::Null);
    // The file has changed elsewhere since.
    std::fs::write(stage.project.path("a.txt"), "zero\none\ntwo\nthree\n")?;
    let review = get(&url, &format!("/session/{id}/review"))?;
    let patch = json!({ "patch": review["findings"][0]["patch"] });
    assert_eq!(post(&url, "/vcs/apply", &patch)?.0, 200);
    assert_eq!(std::fs::read_to_string(stage.project.path("a.txt"))?, "zero\none\n2\nthree\n");
    assert_eq!(post(&url, "/vcs/apply", &patch)?.0, 400);
    // What was applied cannot be applied again.
    assert_eq!(get(&url, &format!("/session/{id}/review"))?["findings"][0]["patch"], Value::Null);
    let error = get(&url, "/experimental/review?range=nosuch").map_err(|error| error.to_string());
    check_has(&error.err().unwrap_or_default(), &["400", "there is no commit `nosuch`"]);
    stage.no_problems()
}

#[test]
fn a_review_without_an_answer_is_an_error() -> Result<()> {
    let stage = Stage::git(
        Script::new()
            .text("All good!")
            .text("All good!")
            .text("All good!")
            .text("All good!")
            .text("All good!"),
    )?;
    std::fs::write(stage.project.path("a.txt"), "one")?;
    let done = stage.program(["review"]).finish()?;
    check_code(&done, 1);
    assert_eq!(done.stdout, "");
    check_has(&done.stderr, &["the review failed"]);
    Ok(())
}

#[test]
fn a_review_changes_nothing_and_its_severities_set_the_exit_code() -> Result<()> {
    let script = Script::new()
        .tool("write", json!({ "filePath": "evil.txt", "content": "x" }))
        .tool("bash", json!({ "command": "git diff --output=evil.txt HEAD", "description": "d" }))
        .tool(
            "StructuredOutput",
            json!({ "summary": "s", "findings": [
            { "file": "a.txt", "line": 1, "severity": "medium", "title": "t", "description": "d" },
        ] }),
        );
    let stage = Stage::git(script)?;
    std::fs::write(stage.project.path("a.txt"), "one")?;
    check_code(&stage.program(["review", "--fail-on", "medium"]).finish()?, 3);
    assert!(!stage.project.path("evil.txt").exists());
    let done = stage.program(["review", "nosuch...HEAD"]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["there is no commit `nosuch`"]);
    Ok(())
}

#[test]
fn a_new_key_is_checked_and_kept_without_a_network() -> Result<()> {
    let project = Project::plain()?;
    let login = |provider: &str| {
        program(&project, ["providers", "login", "-p", provider]).stdin("sk-canary\n").finish()
    };
    let done = login("nosuchprovider")?;
    check_code(&done, 1);
    check_has(&done.stderr, &["there is no provider `nosuchprovider`"]);
    check_has(&login("antropic")?.stderr, &["did you mean `anthropic`?"]);
    let at = |url: &str| {
        project.write_config(&json!({ "provider": { "mine": {
            "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": url }, "models": { "m-1": {} },
        } } }))
    };
    at("http://127.0.0.1:1/v1")?;
    let done = login("mine")?.success()?;
    check_has(&done.stdout, &["was saved without a check", "Its model is mine/m-1", "Signed in to mine"]);
    // A provider that refuses the key, and one whose list needs none.
    let refusing = answering("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    at(&format!("{refusing}/v1"))?;
    check_has(&login("mine")?.success()?.stdout, &["refuses the credential"]);
    let open = answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")?;
    at(&format!("{open}/v1"))?;
    let done = login("mine")?.success()?;
    check_has(&done.stdout, &["was not checked: its list of models needs no key"]);
    assert!(!format!("{}{}", done.stdout, done.stderr).contains("canary"));
    let (_server, url) = serve(program(&project, ["serve"]))?;
    assert_eq!(post(&url, "/auth/mine/verify", &json!({}))?.1["status"], "unchecked");
    Ok(())
}

/// The address of a server that gives every request the same answer.
fn answering(answer: &'static str) -> Result<String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            // The client may have ended.
            drop(std::io::Read::read(&mut stream, &mut request));
            drop(std::io::Write::write_all(&mut stream, answer.as_bytes()));
        }
    });
    Ok(url)
}

#[test]
fn without_home_the_directory_of_the_user_is_used() -> Result<()> {
    let project = Project::plain()?;
    let user = std::fs::metadata("/proc/self")?.uid().to_string();
    let users = std::fs::read_to_string("/etc/passwd")?;
    let mut rows = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let row = rows.find(|row| row.get(2) == Some(&user.as_str())).context("this user has no row")?;
    let home = row.get(5).context("this user has no home")?;
    for run in [
        program(&project, ["debug", "paths"]).without_env("HOME"),
        program(&project, ["debug", "paths"]).env("HOME", ""),
    ] {
        let done = run.finish()?.success()?;
        let line = done.stdout.lines().find(|line| line.starts_with("home ")).unwrap_or_default();
        assert_eq!(line.split_ascii_whitespace().nth(1), Some(*home), "{}", done.stdout);
    }
    Ok(())
}

#[test]
fn a_home_that_cannot_be_written_is_an_error_with_a_way_out() -> Result<()> {
    let project = Project::plain()?;
    let list = || {
        let run = program(&project, ["session", "list"]).env("HOME", "/dev/null/home");
        let run = run.without_env("XDG_DATA_HOME").without_env("CODEWRIGHT_STORE");
        ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"].into_iter().fold(run, Run::without_env)
    };
    let done = list().finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["/dev/null/home", "set XDG_DATA_HOME to a directory that can be written"]);
    let data = project.directory().join("data");
    list().env("XDG_DATA_HOME", data).finish()?.success()?;
    Ok(())
}
