//! `acp`: an editor speaks the Agent Client Protocol with the program.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Stage, check_has};

mod files;
mod replay;

/// A scripted editor.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<String>,
    next: u64,
    /// The updates that have arrived, without their session.
    updates: Vec<Value>,
    /// The requests that have arrived, and the option with which they are answered.
    requests: Vec<Value>,
    choice: &'static str,
    /// The documents of the editor, by path. A request for another path is refused.
    documents: HashMap<String, String>,
    /// Whether the editor saves what is written.
    saves: bool,
    /// The requests about files that have arrived.
    file_requests: Vec<Value>,
}

impl Editor {
    fn start(project: &Project) -> Result<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_codewright"))
            .arg("acp")
            .env_clear()
            .envs(project.environment())
            .current_dir(project.directory())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (sender, messages) = channel();
        let output = BufReader::new(child.stdout.take().context("stdout")?);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let (updates, requests, file_requests) = (Vec::new(), Vec::new(), Vec::new());
        let (documents, saves, choice) = (HashMap::new(), true, "once");
        Ok(Self {
            child,
            input,
            messages,
            next: 0,
            updates,
            requests,
            choice,
            documents,
            saves,
            file_requests,
        })
    }

    fn write(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().context("the input is closed")?;
        writeln!(input, "{line}")?;
        Ok(input.flush()?)
    }

    /// Sends a request and returns its id.
    fn send(&mut self, method: &str, params: &Value) -> Result<u64> {
        let id = self.next;
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())?;
        Ok(id)
    }

    fn notify(&mut self, method: &str, params: &Value) -> Result<()> {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
    }

    /// Reads the next message. Updates are collected, and requests are answered.
    fn read(&mut self) -> Result<Option<Value>> {
        let line = self.messages.recv_timeout(DEADLINE).context("no message of the program")?;
        let message: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        match message["method"].as_str() {
            Some("session/update") => {
                self.updates.push(message["params"]["update"].clone());
                Ok(None)
            }
            Some("fs/read_text_file" | "fs/write_text_file") => {
                self.serve_file(&message)?;
                Ok(None)
            }
            Some(_) => {
                let outcome = json!({"outcome": "selected", "optionId": self.choice});
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}});
                self.requests.push(message["params"].clone());
                self.write(&answer.to_string())?;
                Ok(None)
            }
            None => Ok(Some(message)),
        }
    }

    /// Answers a request about a file.
    fn serve_file(&mut self, message: &Value) -> Result<()> {
        let params = &message["params"];
        let path = params["path"].as_str().context("no path")?.to_owned();
        self.file_requests.push(json!({"method": message["method"], "path": path}));
        let answer = if message["method"] == "fs/write_text_file" {
            let content = params["content"].as_str().context("no content")?;
            if self.saves {
                std::fs::write(&path, content)?;
            }
            self.documents.insert(path, content.to_owned());
            json!({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        } else {
            match self.documents.get(&path) {
                Some(text) => json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": text}}),
                None => {
                    let error = json!({"code": -32002, "message": "no such document"});
                    json!({"jsonrpc": "2.0", "id": message["id"], "error": error})
                }
            }
        };
        self.write(&answer.to_string())
    }

    /// Waits for the response of a request.
    fn response(&mut self, id: u64) -> Result<Value> {
        loop {
            if let Some(message) = self.read()?
                && message["id"] == id
            {
                return Ok(message);
            }
        }
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.send(method, params)?;
        let response = self.response(id)?;
        ensure!(response.get("error").is_none(), "{method}: {response}");
        Ok(response["result"].clone())
    }

    /// The error of a request that must fail.
    fn refusal(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.send(method, params)?;
        let response = self.response(id)?;
        ensure!(response.get("error").is_some(), "{method}: {response}");
        Ok(response["error"].clone())
    }

    /// Initializes the connection and creates a session.
    fn session(&mut self, directory: &Path) -> Result<String> {
        self.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}))?;
        let session = self.call("session/new", &json!({"cwd": directory, "mcpServers": []}))?;
        Ok(session["sessionId"].as_str().context("an id")?.to_owned())
    }

    fn prompt(&mut self, session: &str, text: &str) -> Result<Value> {
        self.call("session/prompt", &prompt(session, text))
    }

    fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// The text of all updates of a kind.
    fn text(&self, kind: &str) -> String {
        self.of_kind(kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// Closes the input and waits for the end of the program.
    fn close(mut self) -> Result<()> {
        self.input = None;
        let started = Instant::now();
        while self.child.try_wait()?.is_none() {
            ensure!(started.elapsed() < Duration::from_secs(20), "the program did not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

#[test]
fn a_turn_becomes_updates_of_the_recorded_kinds() -> Result<()> {
    let todos = json!({"todos": [{"content": "first", "status": "in_progress", "priority": "high"}]});
    let script = Script::new()
        .turn(Turn::text("Working. ").tool("bash", json!({"command": "echo hi", "description": "say hi"})))
        .turn(Turn::steps().tool("write", json!({"filePath": "new.txt", "content": "line1\n"})))
        .turn(
            Turn::steps()
                .tool("edit", json!({"filePath": "new.txt", "oldString": "line1", "newString": "line2"})),
        )
        .turn(Turn::steps().tool("todowrite", todos))
        .turn(Turn::text("All done."));
    let stage = Stage::git(script)?;
    let mut editor = Editor::start(&stage.project)?;
    let session = editor.session(stage.project.directory())?;
    let answer = editor.prompt(&session, "do it")?;
    assert_eq!(answer["stopReason"], "end_turn");
    assert!(answer["usage"]["totalTokens"].as_u64().is_some_and(|tokens| tokens > 0), "{answer}");
    assert_eq!(editor.text("agent_message_chunk"), "Working. All done.");
    assert_eq!(editor.text("user_message_chunk"), "", "the editor shows its own prompt");

    let announced: Vec<_> = editor
        .of_kind("tool_call")
        .iter()
        .map(|call| (call["title"].clone(), call["kind"].clone()))
        .collect();
    let expected = [("bash", "execute"), ("write", "edit"), ("edit", "edit"), ("todowrite", "null")];
    for (found, (title, kind)) in announced.iter().zip(expected) {
        assert_eq!(found.0, title);
        // The kind `other` is the default and not sent.
        assert_eq!(found.1.as_str().unwrap_or("null"), kind);
    }
    assert_eq!(announced.len(), expected.len());
    let completed: Vec<_> = editor
        .of_kind("tool_call_update")
        .into_iter()
        .filter(|it| it["status"] == "completed")
        .cloned()
        .collect();
    assert_eq!(completed.len(), 4);
    assert_eq!(completed[0]["title"], "echo hi");
    assert_eq!(completed[0]["content"][0]["content"]["text"], "hi\n");
    assert_eq!(completed[0]["rawOutput"]["metadata"]["exit"], 0);
    let file = stage.project.path("new.txt");
    let diff = json!({"type": "diff", "path": file, "oldText": "line1", "newText": "line2"});
    assert_eq!(completed[2]["content"][1], diff);
    assert_eq!(stage.project.read("new.txt")?, "line2\n");

    let plan = editor.of_kind("plan");
    let entry = json!({"content": "first", "priority": "high", "status": "in_progress"});
    assert_eq!(plan.last().context("a plan")?["entries"], json!([entry]));
    assert_eq!(editor.of_kind("usage_update").len(), 1);
    assert!(!editor.of_kind("available_commands_update").is_empty());
    stage.no_problems()?;
    editor.close()
}

#[test]
fn files_that_commands_changed_are_shown_at_the_end_of_the_turn() -> Result<()> {
    let bash = |command: &str| Turn::steps().tool("bash", json!({"command": command, "description": "x"}));
    let edit = json!({"filePath": "known.txt", "content": "written\n"});
    let script = Script::new()
        .turn(bash("printf 'new\n' > old.txt; mkdir sub; printf 'x\n' > sub/made.txt"))
        .turn(Turn::steps().tool("write", edit))
        .text("Done.")
        .turn(bash("true"))
        .text("Nothing.");
    let stage = Stage::git(script)?;
    stage.project.write("old.txt", "old\n")?;
    let mut editor = Editor::start(&stage.project)?;
    let session = editor.session(stage.project.directory())?;
    editor.prompt(&session, "do it")?;
    let changes: Vec<_> = editor
        .of_kind("tool_call_update")
        .into_iter()
        .filter(|it| it["toolCallId"].as_str().is_some_and(|id| id.starts_with("changes-")))
        .cloned()
        .collect();
    ensure!(changes.len() == 1 && changes[0]["status"] == "completed", "{changes:?}");
    let files = changes[0]["rawOutput"]["metadata"]["files"].as_array().context("no files")?;
    let paths: Vec<_> = files.iter().map(|file| file["filePath"].clone()).collect();
    assert_eq!(paths, [json!(stage.project.path("old.txt")), json!(stage.project.path("sub/made.txt"))]);
    check_has(files[0]["patch"].as_str().unwrap_or_default(), &["-old", "+new"]);
    check_has(files[1]["patch"].as_str().unwrap_or_default(), &["+x"]);
    let call = editor.of_kind("tool_call").pop().context("no call")?;
    assert_eq!((&call["kind"], &call["title"]), (&json!("edit"), &json!("Files changed by commands")));
    assert_eq!(call["locations"][0]["path"], json!(stage.project.path("old.txt")));
    editor.updates.clear();
    editor.prompt(&session, "nothing")?;
    let again = editor.of_kind("tool_call").len();
    assert_eq!(again, 1, "a turn without changes has only its command");
    Ok(())
}

#[test]
fn a_permission_is_requested_with_the_change_and_obeyed() -> Result<()> {
    for (choice, is_written) in [("once", true), ("reject", false), ("invented", false)] {
        let write = json!({"filePath": "new.txt", "content": "text"});
        let script = Script::new().turn(Turn::steps().tool("write", write)).turn(Turn::text("Done."));
        let stage = Stage::git(script)?;
        let mut config = Project::config(&stage.server.url());
        config["permission"] = json!({"edit": "ask"});
        stage.project.write_config(&config)?;
        let mut editor = Editor::start(&stage.project)?;
        editor.choice = choice;
        let session = editor.session(stage.project.directory())?;
        editor.prompt(&session, "write it")?;
        let request = editor.requests.first().context("a request")?;
        let options: Vec<_> =
            request["options"].as_array().context("options")?.iter().map(|it| &it["kind"]).collect();
        assert_eq!(options, ["allow_once", "allow_always", "reject_once"]);
        let call = &request["toolCall"];
        assert_eq!((&call["kind"], &call["status"]), (&json!("edit"), &json!("pending")));
        assert_eq!(call["content"][0]["newText"], "text");
        assert_eq!(stage.project.path("new.txt").exists(), is_written, "{choice}");
        editor.close()?;
    }
    Ok(())
}

#[test]
fn a_question_is_a_request_with_its_options() -> Result<()> {
    let question = json!({"questions": [{"question": "Which color?", "header": "Color", "options": [
        {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"},
    ]}]});
    let script = Script::new().turn(Turn::steps().tool("question", question)).turn(Turn::text("Thanks."));
    let stage = Stage::git(script)?;
    let mut editor = Editor::start(&stage.project)?;
    editor.choice = "1";
    let session = editor.session(stage.project.directory())?;
    editor.prompt(&session, "choose")?;
    assert_eq!(editor.requests[0]["toolCall"]["title"], "Which color?");
    let result = stage.results(1)?;
    assert!(result.iter().any(|text| text.contains("Blue")), "{result:?}");
    editor.close()
}

#[test]
fn a_cancelled_prompt_ends_and_the_session_goes_on() -> Result<()> {
    let sleep = json!({"command": "sleep 60", "description": "wait"});
    let script = Script::new().turn(Turn::steps().tool("bash", sleep)).turn(Turn::text("Again."));
    let stage = Stage::git(script)?;
    let mut editor = Editor::start(&stage.project)?;
    let session = editor.session(stage.project.directory())?;
    let id = editor.send("session/prompt", &prompt(&session, "wait"))?;
    while !editor.of_kind("tool_call_update").iter().any(|update| update["status"] == "in_progress") {
        ensure!(editor.read()?.is_none(), "the turn has ended");
    }
    editor.notify("session/cancel", &json!({"sessionId": session}))?;
    let started = Instant::now();
    assert_eq!(editor.response(id)?["result"]["stopReason"], "cancelled");
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(editor.prompt(&session, "again")?["stopReason"], "end_turn");
    assert!(editor.text("agent_message_chunk").ends_with("Again."));
    editor.close()
}

#[test]
fn sessions_are_listed_loaded_forked_resumed_and_shared() -> Result<()> {
    let script = Script::new().turn(Turn::text("First answer.")).turn(Turn::text("From the terminal."));
    let stage = Stage::git(script)?;
    let directory = stage.project.directory();
    let mut editor = Editor::start(&stage.project)?;
    let session = editor.session(directory)?;
    editor.prompt(&session, "first prompt")?;

    let listed = editor.call("session/list", &json!({"cwd": directory}))?;
    assert_eq!(listed["sessions"][0]["sessionId"], json!(session));
    // Another client sees the session of the editor, continues it, and the editor sees that.
    stage.run(["--session", &session, "second prompt"])?.success()?;
    while !editor.text("agent_message_chunk").ends_with("From the terminal.") {
        ensure!(editor.read()?.is_none(), "nothing was requested");
    }
    assert_eq!(editor.text("user_message_chunk"), "second prompt");

    editor.updates.clear();
    let load = json!({"sessionId": session, "cwd": directory, "mcpServers": []});
    editor.call("session/load", &load)?;
    assert_eq!(editor.text("user_message_chunk"), "first promptsecond prompt");
    assert_eq!(editor.text("agent_message_chunk"), "First answer.From the terminal.");

    let forked = editor.call("session/fork", &load)?;
    assert_ne!(forked["sessionId"], json!(session));
    let resumed = editor.call("session/resume", &load)?;
    let ids: Vec<_> =
        resumed["configOptions"].as_array().context("options")?.iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["model", "mode"]);
    editor.call("session/close", &json!({"sessionId": session}))?;
    let refused = editor.refusal("session/prompt", &prompt(&session, "more"))?;
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("not open")), "{refused}");
    editor.close()
}

#[test]
fn modes_models_and_commands_are_chosen() -> Result<()> {
    let script = Script::new().turn(Turn::text("Planned.")).turn(Turn::text("Greeted."));
    let stage = Stage::git(script)?;
    stage
        .project
        .write(".opencode/command/greet.md", "---\ndescription: Greets\n---\nSay hello to $ARGUMENTS\n")?;
    let mut config = Project::config(&stage.server.url());
    config["command"] = json!({"greet": {"template": "Say hello to $ARGUMENTS", "description": "Greets"}});
    stage.project.write_config(&config)?;
    let mut editor = Editor::start(&stage.project)?;
    let session = editor.session(stage.project.directory())?;
    let mode = |mode: &str| json!({"sessionId": session, "modeId": mode});
    assert_eq!(editor.call("session/set_mode", &mode("plan"))?, json!({}));
    assert!(editor.refusal("session/set_mode", &mode("nonsense"))?["message"].as_str().is_some());
    let option = json!({"sessionId": session, "configId": "model", "value": "none/such"});
    assert_eq!(editor.refusal("session/set_config_option", &option)?["code"], -32602);
    editor.prompt(&session, "think")?;
    let messages = serde_json::to_string(&stage.stored()?)?;
    assert!(messages.contains(r#""agent":"plan""#), "the prompt has the mode of the session");
    editor.prompt(&session, "/greet the world")?;
    let last = serde_json::to_string(&stage.messages(1)?)?;
    assert!(last.contains("Say hello to the world"), "{last}");
    editor.close()
}

#[test]
fn bad_input_is_an_error_and_the_process_goes_on() -> Result<()> {
    let stage = Stage::git(Script::new().turn(Turn::text("Still here.")))?;
    let directory = stage.project.directory();
    let mut editor = Editor::start(&stage.project)?;
    editor.write("{broken")?;
    assert_eq!(editor.read()?.context("a message")?["error"]["code"], -32700);
    let session = editor.session(directory)?;
    let gone = stage.project.path("gone");
    for (method, params, code) in [
        ("no/such", json!({}), -32601),
        ("session/new", json!({"cwd": "relative", "mcpServers": []}), -32602),
        ("session/new", json!({"cwd": gone, "mcpServers": []}), -32602),
        ("session/new", json!({"cwd": 5}), -32602),
        ("session/load", json!({"sessionId": "ses_none", "cwd": directory, "mcpServers": []}), -32002),
        ("session/load", json!({"sessionId": "../etc", "cwd": directory, "mcpServers": []}), -32602),
        ("session/prompt", prompt("ses_none", "hi"), -32602),
        ("session/prompt", json!({"sessionId": session, "prompt": []}), -32602),
        ("authenticate", json!({"methodId": "other"}), -32602),
    ] {
        let refused = editor.refusal(method, &params)?;
        assert_eq!(refused["code"], code, "{method} {params}: {refused}");
        assert!(refused["message"].as_str().is_some_and(|text| text.len() > 10), "{method}: {refused}");
    }
    editor.notify("session/cancel", &json!({"sessionId": "ses_none"}))?;
    assert_eq!(editor.prompt(&session, "hi")?["stopReason"], "end_turn");
    editor.close()
}

#[test]
fn the_last_answer_is_written_after_the_input_has_ended() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    let mut editor = Editor::start(&stage.project)?;
    let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
    let id = editor.send("initialize", &params)?;
    editor.input = None;
    let answer = editor.read()?.context("an answer")?;
    assert_eq!(answer["id"], json!(id));
    assert_eq!(answer["result"]["protocolVersion"], 1);
    editor.close()
}
