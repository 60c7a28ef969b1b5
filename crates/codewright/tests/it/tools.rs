//! The tools with real files, and invalid calls.

use anyhow::Result;
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, of_type};

#[test]
fn six_tools_work_on_real_files_and_return_results() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([
            ("read", json!({"filePath": "src/a.txt"})),
            ("glob", json!({"pattern": "**/*.txt"})),
            ("grep", json!({"pattern": "al+pha"})),
            ("bash", json!({"command": "wc -l < src/a.txt; echo error >&2; pwd"})),
            ("write", json!({"filePath": "new/deep/b.txt", "content": "written\n"})),
            ("edit", json!({"filePath": "c.txt", "oldString": "before", "newString": "after"})),
        ]))
        .text("Done.");
    let stage = Stage::git(script)?;
    stage.project.write("src/a.txt", "alpha\nbeta\n")?;
    stage.project.write("c.txt", "it was before\n")?;
    let lines = stage.json(["work"])?;
    let calls = of_type(&lines, "tool_use");
    assert_eq!(calls.len(), 6);
    assert!(calls.iter().all(|call| call["part"]["state"]["status"] == "completed"), "{calls:#?}");
    assert_eq!(stage.project.read("new/deep/b.txt")?, "written\n");
    assert_eq!(stage.project.read("c.txt")?, "it was after\n");
    let results = stage.results(1)?;
    let path = |relative: &str| stage.project.path(relative).display().to_string();
    let read = format!(
        "<path>{}</path>\n<type>file</type>\n<content>\n1: alpha\n2: beta\n\n(End of file - total 2 lines)\n</content>",
        path("src/a.txt")
    );
    assert_eq!(results[0], read);
    check_has(&results[1], &[&path("src/a.txt"), &path("c.txt")]);
    check_has(&results[2], &["Found 1 matches", &format!("{}:", path("src/a.txt")), "  Line 1: alpha"]);
    check_has(&results[3], &["2\n", "error\n", &path("")[..path("").len() - 1]]);
    assert_eq!(results[4], "Wrote file successfully.");
    assert_eq!(results[5], "Edit applied successfully.");
    stage.no_problems()
}

#[test]
fn calls_of_one_answer_run_in_parallel() -> Result<()> {
    // Each succeeds only if it sees the other running.
    let wait = |own: &str, other: &str| {
        let look = format!("for i in $(seq 400); do [ -e {other} ] && exit 0; sleep 0.05; done; exit 1");
        json!({"command": format!("touch {own}; {look}")})
    };
    let script =
        Script::new().turn(Turn::tools([("bash", wait("a", "b")), ("bash", wait("b", "a"))])).text("ok");
    let stage = Stage::plain(script)?;
    let lines = stage.json(["both"])?;
    let exits: Vec<_> = of_type(&lines, "tool_use")
        .iter()
        .map(|call| call["part"]["state"]["metadata"]["exit"].clone())
        .collect();
    assert_eq!(exits, [0, 0]);
    stage.no_problems()
}

#[test]
fn a_call_starts_during_the_answer() -> Result<()> {
    // The answer continues only after its first call has taken effect.
    let stage = Stage::plain(Script::new().turn(
        Turn::steps().tool("bash", json!({"command": "touch started"})).text("still speaking").hang(),
    ))?;
    let run = stage.program(["run", "hi"]).start()?;
    let started = stage.project.path("started");
    crate::support::wait_until("the call's effect", || started.exists())?;
    run.interrupt()?;
    assert_eq!(run.finish()?.code, Some(130));
    Ok(())
}

#[test]
fn invalid_calls_get_an_error_and_the_turn_continues() -> Result<()> {
    let script = Script::new()
        .turn(
            Turn::steps()
                .tool("nonexistent_tool", json!({}))
                .tool("read", json!({"file": "x"}))
                .tool("read", "{bad json")
                .tool("read", "[1]")
                .tool("question", json!({"questions": []})),
        )
        .text("ok");
    let stage = Stage::plain(script)?;
    let lines = stage.json(["go"])?;
    let calls: Vec<&Value> = of_type(&lines, "tool_use").iter().map(|line| &line["part"]).collect();
    let find = |fits: &dyn Fn(&Value) -> bool| {
        calls.iter().copied().find(|call| fits(call)).unwrap_or_else(|| panic!("{calls:#?}"))
    };
    let unknown = find(&|call| call["state"]["input"]["tool"] == "nonexistent_tool");
    assert_eq!((&unknown["tool"], &unknown["state"]["status"]), (&json!("invalid"), &json!("completed")));
    assert_eq!(unknown["state"]["title"], "Invalid Tool");
    let reason = "Model tried to call unavailable tool 'nonexistent_tool'. Available tools: bash, edit, glob, grep, \
                  invalid, read, skill, task, todowrite, webfetch, write.";
    assert_eq!(unknown["state"]["input"]["error"], reason);
    assert_eq!(
        unknown["state"]["output"],
        format!("The arguments provided to the tool are invalid: {reason}")
    );
    let broken = find(&|call| {
        call["tool"] == "invalid" && call["state"]["output"].as_str().unwrap().contains("{bad json")
    });
    assert_eq!(broken["state"]["input"]["tool"], "read");
    let mismatched = find(&|call| call["state"]["input"]["file"] == "x");
    assert_eq!(mismatched["state"]["status"], "error");
    assert_eq!(
        mismatched["state"]["error"],
        "The read tool was called with invalid arguments: SchemaError(Missing key\n  at [\"filePath\"]).\nPlease \
         rewrite the input so it satisfies the expected schema."
    );
    // There is no user to answer, so the question tool is not offered.
    find(&|call| call["state"]["input"]["tool"] == "question" && call["tool"] == "invalid");
    assert_eq!(stage.results(1)?.len(), 5);
    assert_eq!(of_type(&lines, "text")[0]["part"]["text"], "ok");
    stage.no_problems()
}

#[test]
fn a_long_output_is_shortened_for_the_model_and_stored() -> Result<()> {
    let script = Script::new().tool("bash", json!({"command": "seq 100000"})).text("long");
    let stage = Stage::plain(script)?;
    stage.run(["hi"])?.success()?;
    let result = &stage.results(1)?[0];
    assert!(result.len() < 60_000 && result.ends_with("99999\n100000\n"), "{}", result.len());
    let (_, kept) = result.split_once("Full output saved to: ").unwrap();
    let kept = std::fs::read_to_string(kept.lines().next().unwrap().trim())?;
    assert!(kept.starts_with("1\n2\n") && kept.ends_with("\n100000\n"));
    Ok(())
}

#[test]
fn a_command_has_no_input_and_a_deadline() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([
            ("bash", json!({"command": "cat; echo read"})),
            ("bash", json!({"command": "echo begun; sleep 600", "timeout": 300})),
        ]))
        .text("end");
    let stage = Stage::plain(script)?;
    stage.program(["run"]).stdin("typed").finish()?.success()?;
    let results = stage.results(1)?;
    assert_eq!(results[0], "read\n");
    check_has(&results[1], &["begun\n", "<shell_metadata>", "300"]);
    Ok(())
}

#[test]
fn a_todo_list_is_stored_published_and_printed() -> Result<()> {
    let todo =
        |content: &str, status: &str| json!({"content": content, "status": status, "priority": "high"});
    let first = json!({"todos": [todo("Do A", "in_progress"), todo("Do B", "pending")]});
    let second = json!({"todos": [todo("Do A", "completed"), todo("Do B", "in_progress")]});
    let script = Script::new().tool("todowrite", first).tool("todowrite", second.clone()).text("ok");
    let stage = Stage::plain(script)?;
    let lines = stage.json(["go"])?;
    let titles: Vec<_> =
        of_type(&lines, "tool_use").iter().map(|call| call["part"]["state"]["title"].clone()).collect();
    assert_eq!(titles, ["2 todos", "1 todos"]);
    assert_eq!(serde_json::from_str::<Value>(&stage.results(2)?[1])?, second["todos"]);
    let (server, url) = stage.serve()?;
    let session = crate::support::session_of(&lines)?;
    assert_eq!(crate::support::get(&url, &format!("/session/{session}/todo"))?, second["todos"]);
    server.terminate()?;
    server.finish()?.success()?;
    stage.no_problems()
}

#[test]
fn instructions_in_subdirectories_are_sent_when_a_file_next_to_them_is_read() -> Result<()> {
    let read = |path: &str| ("read", json!({"filePath": path}));
    let script = Script::new()
        .turn(Turn::tools([read("a/x.txt"), read("a/y.txt")]))
        .turn(Turn::tools([read("a/x.txt")]))
        .text("ok");
    let stage = Stage::git(script)?;
    stage.project.write("AGENTS.md", "Root rules.\n")?;
    stage.project.write("a/AGENTS.md", "Nested rules.\n")?;
    stage.project.write("a/x.txt", "x\n")?;
    stage.project.write("a/y.txt", "y\n")?;
    stage.json(["go"])?;
    let results = stage.results(2)?;
    let reminders = results.iter().filter(|result| result.contains("<system-reminder>")).count();
    assert_eq!((results.len(), reminders), (3, 1), "{results:#?}");
    assert!(results[..2].iter().any(|result| result.contains("Nested rules.")), "{results:#?}");
    assert_eq!(
        stage.messages(2)?.iter().filter(|message| message.to_string().contains("Root rules.")).count(),
        1
    );
    stage.no_problems()
}

/// The names of the tools in the first request of a run with these variables.
fn offered(stage: &Stage, variables: &[(&str, &str)]) -> Result<Vec<String>> {
    let before = stage.server.main_requests().len();
    let mut run = stage.program(["run", "hi"]);
    for (name, value) in variables {
        run = run.env(name, value);
    }
    run.finish()?.success()?;
    let request = &stage.server.main_requests()[before];
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    Ok(tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap_or_default().to_owned()).collect())
}

#[test]
fn experiments_enable_their_tools() -> Result<()> {
    let stage = Stage::plain(Script::new().text("a").text("b").text("c").text("d").text("e"))?;
    let has = |names: &[String], tool: &str| names.iter().any(|name| name == tool);
    let plain = offered(&stage, &[])?;
    for tool in ["websearch", "codesearch", "lsp", "list", "multiedit", "todoread", "batch", "invalid"] {
        assert!(!has(&plain, tool), "{tool}: {plain:?}");
    }
    let with = |names: &[&str]| {
        let mut all = plain.clone();
        all.extend(names.iter().map(|name| (*name).to_owned()));
        all.sort_by_key(|name| name.to_lowercase());
        all
    };
    assert_eq!(offered(&stage, &[("OPENCODE_ENABLE_EXA", "1")])?, with(&["websearch"]));
    // Without a configured language server every call of the tool would fail.
    assert_eq!(offered(&stage, &[("OPENCODE_EXPERIMENTAL_LSP_TOOL", "1")])?, plain);
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    config["lsp"] = json!(true);
    stage.project.write_config(&config)?;
    assert_eq!(offered(&stage, &[("OPENCODE_EXPERIMENTAL_LSP_TOOL", "1")])?, with(&["lsp"]));
    config["tools"] = json!({"multiedit": true, "todoread": true, "webfetch": false});
    stage.project.write_config(&config)?;
    let mut expected = with(&["multiedit", "todoread"]);
    expected.retain(|name| name != "webfetch");
    assert_eq!(offered(&stage, &[])?, expected);
    Ok(())
}

#[test]
fn older_names_are_accepted_and_not_offered() -> Result<()> {
    let todo = json!({"content": "A", "status": "pending", "priority": "high"});
    let script = Script::new()
        .tool("todo", json!({"todos": [todo]}))
        .turn(Turn::tools([
            ("ls", json!({})),
            ("TodoRead", json!({})),
            ("multiedit", json!({"filePath": "a.txt", "edits": [{"oldString": "a", "newString": "b"}]})),
            ("websearch", json!({"query": "x"})),
        ]))
        .text("ok");
    let stage = Stage::plain(script)?;
    stage.project.write("a.txt", "a\n")?;
    let lines = stage.json(["go"])?;
    let mut names: Vec<_> = of_type(&lines, "tool_use")
        .iter()
        .map(|call| call["part"]["tool"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["invalid", "list", "multiedit", "todoread", "todowrite"]);
    let results = stage.results(2)?;
    check_has(&results[1], &["a.txt"]);
    assert_eq!(serde_json::from_str::<Value>(&results[2])?, json!([todo]));
    assert_eq!(results[3], "Edit applied successfully.");
    check_has(&results[4], &["Model tried to call unavailable tool 'websearch'"]);
    assert_eq!(stage.project.read("a.txt")?, "b\n");
    stage.no_problems()
}

#[test]
fn a_todo_list_is_published_to_subscribers() -> Result<()> {
    use std::io::BufRead as _;
    let todos = json!([{"content": "Do A", "status": "pending", "priority": "high"}]);
    let stage = Stage::plain(Script::new().tool("todowrite", json!({"todos": todos})).text("ok"))?;
    let (_server, url) = stage.serve()?;
    let id = crate::support::new_session(&url)?;
    let mut events = std::io::BufReader::new(crate::support::ask(&url, "/event")?).lines();
    let mut next = |kind: &str| -> Result<Value> {
        for line in events.by_ref() {
            let line = line?;
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(data)?;
            if event["type"] == kind {
                return Ok(event);
            }
        }
        anyhow::bail!("no {kind}")
    };
    next("server.connected")?;
    crate::support::post(&url, &format!("/session/{id}/prompt_async"), &crate::support::prompt("go"))?;
    let event = next("todo.updated")?;
    assert_eq!(event["properties"], json!({"sessionID": id, "todos": todos}));
    stage.no_problems()
}

#[test]
fn old_outputs_are_removed_unless_a_session_in_use_refers_to_them() -> Result<()> {
    let script = Script::new().tool("bash", json!({"command": "seq 1 5000"})).text("One.").text("Two.");
    let stage = Stage::plain(script)?;
    let outputs = crate::support::data(&stage.project).join("tool-output");
    std::fs::create_dir_all(&outputs)?;
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let make_old = |path: &std::path::Path| {
        std::fs::File::options().append(true).create(true).open(path)?.set_modified(old)
    };
    make_old(&outputs.join("tool_old"))?;
    stage.run(["go"])?.success()?;
    crate::support::wait_until("the removal of an old file", || !outputs.join("tool_old").exists())?;
    let kept = crate::support::files(&outputs)?;
    assert_eq!(kept.len(), 1, "{kept:?}");
    make_old(&kept[0])?;
    // The session is continued, so the output is in use again.
    stage.run(["--continue", "again"])?.success()?;
    assert!(std::fs::metadata(&kept[0])?.modified()? > old);
    Ok(())
}
