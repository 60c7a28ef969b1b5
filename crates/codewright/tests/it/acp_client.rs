//! Other agents of the Agent Client Protocol: in the place of a model, as subagents, and everything that they can do wrong.
//!
//! The agent is `crates/testkit/servers/acp.py`, which needs only Python.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Project, Running, Script, Turn};
use serde_json::{Value, json};

use crate::sandbox::is_enforced;
use crate::support::{Stage, check_harmless, check_has, get, new_session, post, prompt, serve, wait_until};

/// A program that writes, and that no reading of the command line can see through.
const WRITER: &str = "import sys\ntry:\n  open(sys.argv[1], 'w').write('changed')\nexcept OSError as error:\n  \
                      print(error.strerror)\n  sys.exit(1)\n";

/// A file that gets one line for each start of the agent and each prompt.
fn log(stage: &Stage) -> PathBuf {
    stage.project.home().join("agent.log")
}

fn logged(stage: &Stage) -> String {
    fs::read_to_string(log(stage)).unwrap_or_default()
}

/// The configuration of the scripted agent.
fn entry(stage: &Stage, words: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/servers/acp.py");
    let mut args = vec![json!(script), json!(log(stage))];
    args.extend(words.iter().map(|word| json!(word)));
    json!({"type": "acp", "command": "python3", "args": args, "description": "Another agent",
           "options": {"mode": "b"}})
}

/// A stage whose user configured the agent `other`.
fn stage(script: Script, words: &[&str], more: Value) -> Result<Stage> {
    let stage = Stage::git(script)?;
    let mut config = Project::config(&stage.server.url());
    config["agent"] = json!({"other": entry(&stage, words)});
    // The agent writes its log outside of the worktree.
    config["sandbox"] = json!({"mode": "off"});
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    stage.project.write_config(&config)?;
    Ok(stage)
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

    /// Sends a prompt to the other agent and returns its answer.
    fn say(&self, text: &str) -> Result<Value> {
        let mut body = prompt(text);
        body["agent"] = json!("other");
        let (status, reply) = post(&self.url, &format!("/session/{}/message", self.id), &body)?;
        ensure!(status == 200, "{status}: {reply}");
        Ok(reply)
    }

    /// Sends a prompt to the other agent and does not wait.
    fn begin(&self, text: &str) -> Result<()> {
        let mut body = prompt(text);
        body["agent"] = json!("other");
        let (status, reply) = post(&self.url, &format!("/session/{}/prompt_async", self.id), &body)?;
        ensure!(status < 300, "{status}: {reply}");
        Ok(())
    }

    fn messages(&self) -> Result<Value> {
        get(&self.url, &format!("/session/{}/message", self.id))
    }

    fn shows(&self, text: &str) -> bool {
        self.messages().is_ok_and(|messages| messages.to_string().contains(text))
    }

    fn abort(&self) -> Result<()> {
        post(&self.url, &format!("/session/{}/abort", self.id), &json!({})).map(drop)
    }

    /// Answers the next permission request, and returns it.
    fn answer(&self, reply: &str) -> Result<Value> {
        wait_until("a permission request", || {
            get(&self.url, "/permission").is_ok_and(|list| list[0]["id"].is_string())
        })?;
        let request = get(&self.url, "/permission")?[0].take();
        let id = request["id"].as_str().context("no id")?;
        post(&self.url, &format!("/permission/{id}/reply"), &json!({"reply": reply}))?;
        Ok(request)
    }
}

/// The texts of an answer.
fn text(answer: &Value) -> String {
    let parts = answer["parts"].as_array().into_iter().flatten();
    let is_text = |part: &&Value| part["type"] == "text" && !is_note(part);
    parts.filter(is_text).filter_map(|part| part["text"].as_str()).collect()
}

/// Whether a part is a text of the program.
fn is_note(part: &Value) -> bool {
    part["metadata"]["codewright"]["note"] == true
}

/// The texts of the program in an answer.
fn notes(answer: &Value) -> Vec<&str> {
    parts(answer, "text")
        .into_iter()
        .filter(|part| is_note(part))
        .filter_map(|part| part["text"].as_str())
        .collect()
}

fn parts<'a>(answer: &'a Value, kind: &str) -> Vec<&'a Value> {
    answer["parts"].as_array().into_iter().flatten().filter(|part| part["type"] == kind).collect()
}

fn error(answer: &Value) -> String {
    answer["info"]["error"]["data"]["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn another_agent_answers_in_place_of_a_model() -> Result<()> {
    let stage = stage(Script::new(), &[], json!({}))?;
    let serving = Serving::new(&stage)?;
    let hello = serving.say("hello")?;
    assert_eq!(text(&hello), "Hello from the agent.");
    assert_eq!(parts(&hello, "reasoning")[0]["text"], "Let me see.");
    let info = &hello["info"];
    assert_eq!((&info["providerID"], &info["modelID"]), (&json!("acp"), &json!("other")));
    assert_eq!((&info["finish"], &info["cost"]), (&json!("stop"), &json!(0.5)));
    assert_eq!(info["tokens"]["input"], 1234);
    serving.say("plan")?;
    let todos = get(&serving.url, &format!("/session/{}/todo", serving.id))?;
    assert_eq!(todos[0], json!({"content": "First[2J", "status": "completed", "priority": "high"}));
    assert_eq!(todos[1]["status"], "in_progress");
    let session = get(&serving.url, &format!("/session/{}", serving.id))?;
    assert_eq!(session["title"], "hello");
    let log = logged(&stage);
    check_has(&log, &["\"terminal\": true", "mode b", r#"prompt ["hello"]"#, r#"prompt ["plan"]"#]);
    assert_eq!(log.matches("start").count(), 1, "one process serves all prompts: {log}");
    assert!(stage.server.requests().is_empty(), "no model is called");
    serving.server.terminate()?;
    serving.server.finish()?.success()?;
    wait_until("the end of the agent", || logged(&stage).contains("input ended"))
}

#[test]
fn its_changes_of_files_are_recorded_and_undone() -> Result<()> {
    let stage = stage(Script::new(), &[], json!({}))?;
    stage.project.write("own.txt", "old\n")?;
    let serving = Serving::new(&stage)?;
    let answer = serving.say("tools")?;
    let calls = parts(&answer, "tool");
    assert_eq!(calls[0]["tool"], "bash");
    assert_eq!(calls[0]["state"]["output"], "built");
    assert_eq!(calls[0]["state"]["input"]["command"], "make");
    assert_eq!(calls[1]["tool"], "edit");
    check_has(calls[1]["state"]["metadata"]["diff"].as_str().unwrap_or_default(), &["-old", "+new"]);
    assert_eq!(stage.project.read("own.txt")?, "new\n");
    let write = format!("write {} from fs", stage.project.path("via.txt").display());
    assert_eq!(text(&serving.say(&write)?), "Written: {}");
    assert_eq!(stage.project.read("via.txt")?, "from fs\n");
    let messages = serving.messages()?;
    let first = messages[0]["info"]["id"].clone();
    post(&serving.url, &format!("/session/{}/revert", serving.id), &json!({"messageID": first}))?;
    assert_eq!(stage.project.read("own.txt")?, "old\n");
    assert!(!stage.project.path("via.txt").exists());
    Ok(())
}

#[test]
fn files_and_terminals_are_served_under_our_rules() -> Result<()> {
    let rules = json!({"permission": {
        "read": {"*": "allow", "*.secret": "deny"},
        "edit": {"*": "allow", "locked.txt": "deny"},
        "external_directory": "deny",
        "bash": {"*": "allow", "touch *": "deny"},
    }});
    let stage = stage(Script::new(), &[], rules)?;
    stage.project.write("a.txt", "one\ntwo\n")?;
    stage.project.write("key.secret", "hidden\n")?;
    let serving = Serving::new(&stage)?;
    let path = |name: &str| stage.project.path(name).display().to_string();
    let say = |text_: String| serving.say(&text_).map(|answer| text(&answer));
    assert_eq!(say(format!("read {}", path("a.txt")))?, r#"Read: {"content": "one\ntwo\n"}"#);
    check_has(&say(format!("read {}", path("key.secret")))?, &["permission rule"]);
    check_has(&say("read /etc/hostname".to_owned())?, &["permission rule"]);
    check_has(&say(format!("read {}", path("none.txt")))?, &["-32002"]);
    check_has(&say(format!("write {} x", path("locked.txt")))?, &["permission rule"]);
    check_has(&say("write /tmp/outside.txt x".to_owned())?, &["permission rule"]);
    assert!(!stage.project.path("locked.txt").exists());
    let terminal = serving.say("term printf 'a\\nb' && exit 3")?;
    assert_eq!(text(&terminal), "Exit 3: a\nb then -32602");
    assert_eq!(parts(&terminal, "tool")[0]["state"]["output"], "a\nb");
    check_has(&say("term touch x".to_owned())?, &["Refused: A permission rule"]);
    check_has(&say("kill".to_owned())?, &["Ended: {", "\"signal\": \"SIGTERM\""]);
    Ok(())
}

#[test]
fn its_permission_requests_are_ours() -> Result<()> {
    let rules = json!({"permission": {"bash": {"*": "ask", "ls *": "allow", "dd *": "deny"}}});
    let stage = stage(Script::new(), &[], rules)?;
    let serving = Serving::new(&stage)?;
    assert_eq!(text(&serving.say("ask ls -l")?), "Outcome: yes");
    assert_eq!(text(&serving.say("ask dd if=x")?), "Outcome: no");
    for (reply, expected) in [("once", "Outcome: yes"), ("reject", "Outcome: no")] {
        serving.begin("ask rm -r x")?;
        let request = serving.answer(reply)?;
        assert_eq!(request["permission"], "bash");
        assert_eq!(request["patterns"], json!(["rm -r x"]));
        let messages = serving.messages()?;
        let call = &request["tool"]["callID"];
        assert!(messages.to_string().contains(call.as_str().context("no call")?), "the call is a part");
        wait_until(expected, || serving.shows(expected))?;
    }
    Ok(())
}

#[test]
fn a_model_delegates_to_another_agent() -> Result<()> {
    let task = json!({"description": "Say hello", "prompt": "hello", "subagent_type": "other"});
    let script = Script::new().turn(Turn::steps().tool("task", task)).text("It said hello.");
    let stage = stage(script, &[], json!({}))?;
    let lines = stage.json(["go"])?;
    let call = lines.iter().find(|line| line["part"]["tool"] == "task").context("no call")?;
    check_has(call["part"]["state"]["output"].as_str().unwrap_or_default(), &["Hello from the agent."]);
    check_has(&stage.results(1)?.join("\n"), &["Hello from the agent."]);
    Ok(())
}

#[test]
fn it_learns_what_a_model_answered_and_forgets_what_was_undone() -> Result<()> {
    let stage = stage(Script::new().text("The model says 42."), &[], json!({}))?;
    let serving = Serving::new(&stage)?;
    post(&serving.url, &format!("/session/{}/message", serving.id), &prompt("What is it?"))?;
    serving.say("hello")?;
    serving.say("hello again")?;
    let log = logged(&stage);
    let prompts: Vec<_> = log.lines().filter(|line| line.starts_with("prompt")).collect();
    check_has(prompts[0], &["User: What is it?", "Assistant: The model says 42.", "\"hello\""]);
    assert_eq!(prompts[1], r#"prompt ["hello again"]"#);
    let messages = serving.messages()?;
    let second = messages[2]["info"]["id"].clone();
    post(&serving.url, &format!("/session/{}/revert", serving.id), &json!({"messageID": second}))?;
    serving.say("hello anew")?;
    let log = logged(&stage);
    let last = log.lines().rfind(|line| line.starts_with("prompt")).unwrap_or_default();
    check_has(last, &["The model says 42.", "hello anew"]);
    assert!(!last.contains("hello again"), "{last}");
    // A model continues the session.
    let stored = serving.messages()?;
    assert_eq!(stored.as_array().map(Vec::len), Some(4));
    Ok(())
}

#[test]
fn a_crash_ends_the_turn_and_the_next_prompt_starts_it_again() -> Result<()> {
    let stage = stage(Script::new(), &[], json!({}))?;
    let serving = Serving::new(&stage)?;
    let crashed = serving.say("crash")?;
    assert_eq!(error(&crashed), "the agent `other` ended with the exit code 7: out of memory");
    assert_eq!(text(&crashed), "I will crash.");
    let call = &parts(&crashed, "tool")[0]["state"];
    assert_eq!((&call["status"], &call["metadata"]["interrupted"]), (&json!("error"), &json!("uncertain")));
    assert_eq!(text(&serving.say("hello")?), "Hello from the agent.");
    let log = logged(&stage);
    assert_eq!(log.matches("start").count(), 2, "{log}");
    // The new process gets the conversation.
    let last = log.lines().last().unwrap_or_default();
    check_has(last, &["User: crash", "I will crash.", "\"hello\""]);
    Ok(())
}

#[test]
fn an_aborted_agent_stops_and_its_last_changes_are_undone() -> Result<()> {
    let stage = stage(Script::new(), &[], json!({}))?;
    let serving = Serving::new(&stage)?;
    serving.begin("slow")?;
    wait_until("the first words", || serving.shows("Working."))?;
    serving.abort()?;
    wait_until("the change after the abort", || stage.project.path("late.txt").exists())?;
    wait_until("its record", || serving.shows("late.txt"))?;
    // The agent serves the next prompt.
    assert_eq!(text(&serving.say("hello")?), "Hello from the agent.");
    assert!(!serving.shows("TOO LATE"));
    assert_eq!(logged(&stage).matches("start").count(), 1);
    let messages = serving.messages()?;
    assert_eq!(messages[1]["info"]["error"]["name"], "MessageAbortedError");
    let first = messages[0]["info"]["id"].clone();
    post(&serving.url, &format!("/session/{}/revert", serving.id), &json!({"messageID": first}))?;
    assert!(!stage.project.path("late.txt").exists());
    Ok(())
}

#[test]
fn an_agent_that_does_not_stop_is_ended() -> Result<()> {
    let stage = stage(Script::new(), &[], json!({}))?;
    let serving = Serving::new(&stage)?;
    serving.begin("hang")?;
    wait_until("the first words", || serving.shows("Hanging."))?;
    serving.abort()?;
    wait_until("the end of the turn", || serving.shows("MessageAbortedError"))?;
    assert_eq!(text(&serving.say("hello")?), "Hello from the agent.");
    assert_eq!(logged(&stage).matches("start").count(), 2);
    Ok(())
}

#[test]
fn what_an_agent_sends_is_limited() -> Result<()> {
    let stage = stage(Script::new(), &[], json!({}))?;
    let serving = Serving::new(&stage)?;
    let answer = serving.say("broken")?;
    assert_eq!(text(&answer), "Errors -32601 -32602 -32602");
    let controls = serving.say("control")?;
    assert_eq!(text(&controls), "Clean.");
    let call = &parts(&controls, "tool")[0]["state"];
    check_harmless(call["input"]["filePath"].as_str().context("no path")?);
    check_harmless(call["error"].as_str().context("no error")?);
    check_has(&error(&serving.say("flood")?), &["more than 16 MiB of text"]);
    check_has(&error(&serving.say("calls")?), &["more than 2000 calls"]);
    check_has(&error(&serving.say("noise")?), &["the connection to the agent `other` ended"]);
    Ok(())
}

#[test]
fn an_agent_that_cannot_start_is_explained() -> Result<()> {
    for (words, expected) in [
        (&["die"][..], "the agent `other` ended with the exit code 3: no key[31m here"),
        (
            &["auth"],
            "the agent `other` needs a sign-in (`Sign in to X`): sign in with its own program `python3`",
        ),
        (&["version"], "it speaks version 99 of the protocol"),
    ] {
        let stage = stage(Script::new(), words, json!({}))?;
        let serving = Serving::new(&stage)?;
        check_has(&error(&serving.say("hello")?), &[expected]);
    }
    let missing = json!({"agent": {"other": {"type": "acp", "command": ["no-such-agent", "--acp"]}}});
    let stage = stage(Script::new(), &[], missing)?;
    let serving = Serving::new(&stage)?;
    check_has(&error(&serving.say("hello")?), &["there is no program `no-such-agent`"]);
    Ok(())
}

#[test]
fn the_agent_of_a_repository_needs_trust() -> Result<()> {
    let stage = stage(Script::new().text("A model."), &[], json!({"agent": {}}))?;
    let entry = json!({"agent": {"other": entry(&stage, &[])}});
    stage.project.write("opencode.json", entry.to_string())?;
    let untrusted =
        |args: &[&'static str]| stage.program(args.iter().copied()).env("CODEWRIGHT_TRUST", "ask");
    let (server, url) = serve(untrusted(&["serve"]))?;
    let id = new_session(&url)?;
    let serving = Serving { server, url, id };
    let refused = serving.say("hello").err().map(|error| error.to_string()).unwrap_or_default();
    check_has(&refused, &["400", "agent `other` not found"]);
    assert_eq!(logged(&stage), "", "nothing was started");
    let shown = untrusted(&["trust", "show"]).finish()?;
    check_has(&shown.stdout, &["start the program of the agent `other`: python3"]);
    let trusted = Serving::new(&stage)?;
    assert_eq!(text(&trusted.say("hello")?), "Hello from the agent.");
    Ok(())
}

#[test]
fn an_agent_runs_in_the_sandbox() -> Result<()> {
    // The sandbox replaces `/tmp`.
    let outside = tempfile::TempDir::new_in("/var/tmp")?;
    let file = outside.path().join("file");
    for (mode, inside, written) in
        [("workspace", "wrote it", true), ("read-only", "Read-only file system", false)]
    {
        let stage = stage(Script::new(), &[], json!({}))?;
        let mut config = Project::config(&stage.server.url());
        config["agent"] = json!({"other": entry(&stage, &[])});
        config["agent"]["other"]["sandbox"] = json!(mode);
        // A repository below `/tmp` is not visible in the sandbox, but the project is.
        let script = stage.project.write("acp.py", include_str!("../../../testkit/servers/acp.py"))?;
        config["agent"]["other"]["args"][0] = json!(script);
        // In this mode the agent cannot write its log.
        config["agent"]["other"]["args"][1] = json!("");
        stage.project.write_config(&config)?;
        if !is_enforced(&stage)? {
            return Ok(());
        }
        let serving = Serving::new(&stage)?;
        let say = |path: &Path| {
            let answer = serving.say(&format!("try {}", path.display()))?;
            anyhow::Ok(format!("{}{}", text(&answer), error(&answer)))
        };
        assert_eq!(say(&stage.project.path("inside.txt"))?, inside, "{mode}");
        assert_eq!(stage.project.path("inside.txt").exists(), written, "{mode}");
        assert_eq!(say(&file)?, "Read-only file system", "{mode}");
        // Its terminals are in the same sandbox as our commands.
        stage.project.write("writer.py", WRITER)?;
        // No rule recognizes this spelling.
        let spelled = file.to_string_lossy().replace("/var", "/var/./");
        let terminal = serving.say(&format!("term python3 writer.py {spelled}"))?;
        check_has(&text(&terminal), &["Exit 1", "Read-only file system"]);
        assert!(!file.exists());
    }
    Ok(())
}

/// Starts the server of a stage again, with the same session.
fn again(stage: &Stage, serving: Serving) -> Result<Serving> {
    let Serving { server, id, .. } = serving;
    server.terminate()?;
    server.finish()?.success()?;
    let (server, url) = stage.serve()?;
    Ok(Serving { server, url, id })
}

#[test]
fn a_session_of_an_agent_continues_after_a_restart() -> Result<()> {
    for (word, method) in [("resume", "session/resume s1"), ("load", "session/load s1")] {
        let stage = stage(Script::new().text("The model says 42."), &[word], json!({}))?;
        let serving = Serving::new(&stage)?;
        serving.say("hello")?;
        let serving = again(&stage, serving)?;
        let mut to_model = prompt("What is it?");
        to_model["agent"] = json!("build");
        to_model["model"] = json!({"providerID": "mock", "modelID": "plain-model"});
        post(&serving.url, &format!("/session/{}/message", serving.id), &to_model)?;
        let answer = serving.say("hello again")?;
        assert_eq!((text(&answer), notes(&answer)), ("Hello from the agent.".to_owned(), Vec::new()));
        // The agent has reported 0.5 for the whole session before.
        assert_eq!(answer["info"]["cost"], 0.0);
        let log = logged(&stage);
        check_has(&log, &[method]);
        assert_eq!(log.matches("mode b").count(), 2, "{log}");
        let last = log.lines().rfind(|line| line.starts_with("prompt")).unwrap_or_default();
        // It gets only what it does not know.
        check_has(last, &["User: What is it?", "Assistant: The model says 42.", "\"hello again\""]);
        assert!(!last.contains("Hello from the agent."), "{last}");
        assert!(!serving.shows("REPLAYED"), "the earlier conversation is not repeated");
    }
    Ok(())
}

#[test]
fn a_session_that_cannot_continue_begins_again_and_says_so() -> Result<()> {
    for word in ["none", "lost"] {
        let stage = stage(Script::new(), &[word], json!({}))?;
        let serving = Serving::new(&stage)?;
        assert_eq!(notes(&serving.say("hello")?), [""; 0]);
        let serving = again(&stage, serving)?;
        let answer = serving.say("hello again")?;
        check_has(notes(&answer)[0], &["`other` could not continue its earlier session"]);
        assert_eq!(text(&answer), "Hello from the agent.");
        let log = logged(&stage);
        assert_eq!(log.contains("session/resume s1"), word == "lost", "{log}");
        let last = log.lines().last().unwrap_or_default();
        check_has(last, &["User: hello", "Assistant: Hello from the agent.", "\"hello again\""]);
        assert_eq!(notes(&serving.say("hello anew")?), [""; 0], "once is enough");
    }
    Ok(())
}

#[test]
fn another_program_does_not_get_the_session_of_an_agent() -> Result<()> {
    let stage = stage(Script::new(), &["resume"], json!({}))?;
    let serving = Serving::new(&stage)?;
    serving.say("hello")?;
    let mut config = Project::config(&stage.server.url());
    config["agent"] = json!({"other": entry(&stage, &["resume", "changed"])});
    config["sandbox"] = json!({"mode": "off"});
    stage.project.write_config(&config)?;
    let serving = again(&stage, serving)?;
    assert_eq!(text(&serving.say("hello again")?), "Hello from the agent.");
    let log = logged(&stage);
    assert!(!log.contains("session/resume"), "{log}");
    Ok(())
}

/// The servers that the agent received first.
fn received(stage: &Stage) -> Result<Value> {
    let log = logged(stage);
    let line = log.lines().find_map(|line| line.strip_prefix("servers ")).context("no session")?;
    Ok(serde_json::from_str(line)?)
}

#[test]
fn an_agent_gets_the_servers_whose_tools_are_all_allowed() -> Result<()> {
    let local = json!({"type": "local", "command": ["python3", "s.py"], "environment": {"TOKEN": "t"}});
    let with = |more: Value| {
        let mut entry = local.clone();
        for (key, value) in more.as_object().into_iter().flatten() {
            entry[key] = value.clone();
        }
        entry
    };
    let servers = json!({
        "plain": local, "off": with(json!({"enabled": false})), "asked": local, "some": local,
        "elsewhere": with(json!({"cwd": "x"})),
        "web": {"type": "remote", "url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "k"}, "oauth": false},
        "old": {"type": "sse", "url": "http://127.0.0.1:9/sse"},
    });
    let rules = json!({"asked_*": "ask", "some_delete": "deny"});
    let env = json!([{"name": "TOKEN", "value": "t"}]);
    let plain = json!({"name": "plain", "command": "python3", "args": ["s.py"], "env": env});
    let web = json!({"type": "http", "name": "web", "url": "http://127.0.0.1:9/mcp", "headers": [{"name": "X-Key", "value": "k"}]});
    for (words, expected) in [(&[][..], json!([plain])), (&["http"], json!([plain, web]))] {
        let stage = stage(Script::new(), words, json!({"mcp": servers, "permission": rules}))?;
        let serving = Serving::new(&stage)?;
        assert_eq!(text(&serving.say("hello")?), "Hello from the agent.");
        assert_eq!(received(&stage)?, expected);
    }
    let stage = stage(Script::new(), &["http"], json!({"mcp": servers, "permission": {"*": "ask"}}))?;
    Serving::new(&stage)?.say("hello")?;
    assert_eq!(received(&stage)?, json!([]));
    Ok(())
}

#[test]
fn an_agent_gets_only_servers_of_the_owner_of_its_configuration() -> Result<()> {
    let server = |name: &str| json!({"type": "local", "command": ["python3", name]});
    let names = |stage: &Stage| -> Result<Vec<String>> {
        let all = received(stage)?;
        let names = all.as_array().into_iter().flatten().filter_map(|server| server["name"].as_str());
        Ok(names.map(str::to_owned).collect())
    };
    for trust in ["none", "all"] {
        let stage = stage(Script::new(), &[], json!({"mcp": {"mine": server("a.py")}}))?;
        stage.project.write("opencode.json", json!({"mcp": {"theirs": server("b.py")}}).to_string())?;
        let (server, url) = serve(stage.program(["serve"]).env("CODEWRIGHT_TRUST", trust))?;
        let id = new_session(&url)?;
        Serving { server, url, id }.say("hello")?;
        assert_eq!(names(&stage)?, ["mine"], "{trust}");
    }
    let stage = stage(Script::new(), &[], json!({"agent": {}, "mcp": {"mine": server("a.py")}}))?;
    let of_repository = json!({"agent": {"other": entry(&stage, &[])}, "mcp": {"theirs": server("b.py")}});
    stage.project.write("opencode.json", of_repository.to_string())?;
    Serving::new(&stage)?.say("hello")?;
    assert_eq!(names(&stage)?, ["theirs"]);
    Ok(())
}
