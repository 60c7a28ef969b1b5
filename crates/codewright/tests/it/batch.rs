//! Batches of calls, with `experimental.batch_tool`.

use anyhow::Result;
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, of_type};

/// A stage with the batch tool and permission rules.
fn stage(calls: Vec<Value>, permission: &Value) -> Result<Stage> {
    let script = Script::new().turn(Turn::tools([("batch", json!({ "tool_calls": calls }))])).text("Done.");
    let stage = Stage::git(script)?;
    let mut config = Project::config(&stage.server.url());
    config["experimental"] = json!({"batch_tool": true});
    config["permission"] = permission.clone();
    stage.project.write_config(&config)?;
    Ok(stage)
}

fn call(tool: &str, parameters: Value) -> Value {
    json!({"tool": tool, "parameters": parameters})
}

#[test]
fn calls_run_in_parallel_and_results_are_in_order() -> Result<()> {
    // Each command succeeds only if it sees the other running.
    let wait = |own: &str, other: &str| {
        let look = format!("for i in $(seq 400); do [ -e {other} ] && exit 0; sleep 0.05; done; exit 1");
        json!({"command": format!("touch {own}; {look}")})
    };
    let calls = vec![
        call("read", json!({"filePath": "README.md"})),
        call("bash", wait("a", "b")),
        call("bash", wait("b", "a")),
        call("write", json!({"filePath": "new/c.txt", "content": "written\n"})),
        call("read", json!({"filePath": "missing.txt"})),
        call("read", json!({"file": "README.md"})),
    ];
    let stage = stage(calls, &json!({}))?;
    let printed = stage.json(["go"])?;
    let state = &of_type(&printed, "tool_use")[0]["part"]["state"];
    assert_eq!((&state["status"], &state["title"]), (&json!("completed"), &json!("4 of 6 calls")));
    let calls = state["metadata"]["calls"].as_array().unwrap();
    let statuses: Vec<_> = calls.iter().map(|call| call["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["completed", "completed", "completed", "completed", "error", "error"]);
    assert_eq!((&calls[1]["metadata"]["exit"], &calls[2]["metadata"]["exit"]), (&json!(0), &json!(0)));
    let result = &stage.results(1)?[0];
    check_has(
        result,
        &[
            "4 of 6 calls were made without an error.",
            "<call number=\"1\" tool=\"read\" status=\"completed\">\n<path>",
            "1: # Project",
            "<call number=\"4\" tool=\"write\" status=\"completed\">\nWrote file successfully.",
            "<call number=\"5\" tool=\"read\" status=\"error\">\nFile not found:",
            "SchemaError(Missing key",
        ],
    );
    assert_eq!(stage.project.read("new/c.txt")?, "written\n");
    stage.no_problems()
}

#[test]
fn permission_rules_apply_to_every_call() -> Result<()> {
    let calls = vec![
        call("bash", json!({"command": "rm README.md"})),
        call("edit", json!({"filePath": "README.md", "oldString": "Project", "newString": "x"})),
        call("bash", json!({"command": "echo fine"})),
        call("webfetch", json!({"url": "http://example.com/"})),
    ];
    let rules = json!({"bash": {"*": "allow", "rm *": "deny"}, "edit": {"*": "allow", "*.md": "deny"}, "webfetch": "deny"});
    let stage = stage(calls, &rules)?;
    let printed = stage.json(["--auto", "go"])?;
    let state = &of_type(&printed, "tool_use")[0]["part"]["state"];
    let statuses: Vec<_> =
        state["metadata"]["calls"].as_array().unwrap().iter().map(|call| &call["status"]).collect();
    assert_eq!(statuses, ["error", "error", "completed", "error"]);
    check_has(
        &stage.results(1)?[0],
        &[
            "A permission rule forbids this call.",
            "\"pattern\":\"*.md\"",
            "fine\n",
            "unavailable tool 'webfetch'",
        ],
    );
    assert_eq!(stage.project.read("README.md")?, "# Project\n");
    stage.no_problems()
}

#[test]
fn a_rejection_ends_the_turn_before_any_call_runs() -> Result<()> {
    let calls =
        vec![call("bash", json!({"command": "touch made"})), call("read", json!({"filePath": ".env"}))];
    let stage = stage(calls, &json!({}))?;
    stage.project.write(".env", "SECRET=1\n")?;
    let done = stage.run(["--format", "json", "go"])?.success()?;
    check_has(&done.stderr, &["permission requested: read (.env); auto-rejecting"]);
    assert_eq!(stage.server.main_requests().len(), 1);
    assert!(!stage.project.path("made").exists());
    Ok(())
}

#[test]
fn a_batch_has_at_most_twenty_five_calls_and_no_batches() -> Result<()> {
    let mut calls: Vec<Value> =
        (0..25).map(|number| call("bash", json!({"command": format!("touch made{number}")}))).collect();
    calls[3] = call("batch", json!({"tool_calls": [call("bash", json!({"command": "touch inner"}))]}));
    calls.push(call("bash", json!({"command": "touch made25"})));
    let stage = stage(calls, &json!({}))?;
    stage.run(["go"])?.success()?;
    check_has(
        &stage.results(1)?[0],
        &[
            "24 of 26 calls",
            "unavailable tool 'batch'",
            "A batch has 25 calls at most; this one was not made.",
        ],
    );
    let made = |name: &str| stage.project.path(name).exists();
    assert!(made("made0") && made("made24") && !made("made25") && !made("inner"));
    stage.no_problems()
}

#[test]
fn long_results_share_the_output_limit() -> Result<()> {
    let calls = (0..20).map(|_| call("bash", json!({"command": "seq 100000"}))).collect();
    let stage = stage(calls, &json!({}))?;
    stage.run(["go"])?.success()?;
    let result = &stage.results(1)?[0];
    assert!(result.len() < 150_000, "{} bytes", result.len());
    assert_eq!(result.matches("Full output saved to: ").count(), 20);
    assert_eq!(result.matches("99999\n100000\n").count(), 20);
    stage.no_problems()
}

#[test]
fn without_the_experiment_there_is_no_batch_tool() -> Result<()> {
    let calls = json!({"tool_calls": [call("bash", json!({"command": "true"}))]});
    let stage = Stage::plain(Script::new().turn(Turn::tools([("batch", calls)])).text("No."))?;
    let printed = stage.json(["go"])?;
    assert_eq!(of_type(&printed, "tool_use")[0]["part"]["tool"], "invalid");
    assert!(!stage.server.main_requests()[0].body["tools"].to_string().contains("\"batch\""));
    Ok(())
}
