//! Subagents over HTTP, without a user, and after a kill.

use anyhow::{Context, Result};
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, get, is_running, new_session, post, prompt, wait_until};

fn task(prompt: &str) -> Value {
    json!({"description": "part", "prompt": prompt, "subagent_type": "general"})
}

fn call(messages: &Value, tool: &str) -> Result<Value> {
    let messages = messages.as_array().into_iter().flatten();
    let mut parts = messages.flat_map(|message| message["parts"].as_array().into_iter().flatten());
    parts.find(|part| part["tool"] == tool).cloned().context("no such call")
}

#[test]
fn a_run_rejects_a_request_of_its_subagent_and_continues() -> Result<()> {
    let script = Script::new()
        .session("SUBTASK", [Turn::from(Turn::steps().tool("bash", json!({"command": "touch made"})))])
        .tool("task", task("SUBTASK make"))
        .text("Told.");
    let stage = Stage::plain(script)?;
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({"bash": {"*": "allow", "touch *": "ask"}});
    stage.project.write_config(&config)?;
    let done = stage.run(["go"])?.success()?;
    check_has(&done.stderr, &["permission requested: bash (touch made); auto-rejecting"]);
    assert_eq!(done.stdout, "Told.\n");
    check_has(&stage.results(2)?[0], &["<task id=\"ses_", "The user refused a call of the subagent"]);
    assert!(!stage.project.path("made").exists());
    stage.no_problems()
}

#[test]
fn a_subagent_that_was_killed_is_reported_and_continued() -> Result<()> {
    let own = format!("6400.{}", std::process::id());
    let script = Script::new()
        .session(
            "SUBTASK",
            [
                Turn::from(Turn::steps().tool("bash", json!({"command": format!("sleep {own}")}))),
                Turn::text("The rest is done.").into(),
            ],
        )
        .tool("task", task("SUBTASK long"))
        .turn(Turn::respond(|request| {
            // The model got the id that continues the work.
            let result = &request.results[0].text;
            let id = result.split('`').nth(1).unwrap_or_default().to_owned();
            let mut input = task("go on");
            input["task_id"] = id.into();
            Turn::steps().tool("task", input)
        }))
        .text("All done.");
    let stage = Stage::plain(script)?;
    let (server, url) = stage.serve()?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("go"))?;
    wait_until("the command", || is_running(&own))?;
    // Dropping kills it.
    drop(server);
    let (server, url) = stage.serve()?;
    let path = format!("/session/{id}/message");
    wait_until("the end", || get(&url, &path).is_ok_and(|all| all[1]["info"]["time"]["completed"].is_u64()))?;
    let failed = call(&get(&url, &path)?, "task")?;
    let error = failed["state"]["error"].as_str().context("no error")?;
    check_has(error, &["The program ended while the subagent worked", "ses_"]);
    assert_eq!(failed["state"]["metadata"]["interrupted"], "uncertain");
    let child =
        get(&url, &format!("/session/{id}/children"))?[0]["id"].as_str().context("no child")?.to_owned();
    let closed = || {
        let messages = get(&url, &format!("/session/{child}/message"))?;
        Ok::<_, anyhow::Error>(messages[1]["info"]["time"]["completed"].is_u64())
    };
    wait_until("the child's end", || closed().unwrap_or_default())?;
    let of_child = call(&get(&url, &format!("/session/{child}/message"))?, "bash")?;
    assert_eq!(of_child["state"]["metadata"]["interrupted"], "uncertain");
    let (status, answer) = post(&url, &format!("/session/{id}/message"), &prompt("go on"))?;
    assert_eq!((status, &answer["parts"][1]["text"]), (200, &json!("All done.")));
    assert_eq!(get(&url, &format!("/session/{id}/children"))?.as_array().map(Vec::len), Some(1));
    server.terminate()?;
    server.finish()?.success()?;
    stage.no_problems()
}

#[test]
fn a_prompt_can_start_a_subagent_over_http() -> Result<()> {
    let script = Script::new().session("SUBTASKCMD", [Turn::text("sub result")]).text("parent continue");
    let stage = Stage::plain(script)?;
    let (_server, url) = stage.serve()?;
    let id = new_session(&url)?;
    let part = json!({"type": "subtask", "prompt": "SUBTASKCMD zz", "description": "sub", "agent": "explore", "command": "subt"});
    let (status, answer) = post(&url, &format!("/session/{id}/message"), &json!({"parts": [part]}))?;
    assert_eq!((status, &answer["parts"][1]["text"]), (200, &json!("parent continue")), "{answer}");
    let played = call(&get(&url, &format!("/session/{id}/message"))?, "task")?;
    check_has(
        played["state"]["output"].as_str().context("no output")?,
        &["state=\"completed\"", "sub result"],
    );
    stage.no_problems()
}
