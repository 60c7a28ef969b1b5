//! Background commands, with the experiment enabled.

use anyhow::Result;
use codewright_testkit::{Project, Run, Script, Turn};
use serde_json::{Value, json};

use crate::support::{
    Stage, check_has, delete, get, is_running, lines, new_session, of_type, post, program, prompt, serve,
    wait_until,
};

/// The variable of the experiment.
const SWITCH: (&str, &str) = ("OPENCODE_EXPERIMENTAL_BACKGROUND_COMMANDS", "1");

/// A sleep time that only this case uses.
fn own(number: u32) -> String {
    format!("{number}.{}", std::process::id())
}

fn start(command: &str) -> (&'static str, Value) {
    ("background", json!({"action": "start", "command": command}))
}

fn switched<'a>(stage: &Stage, args: impl IntoIterator<Item = &'a str>) -> Run {
    stage.program(args).env(SWITCH.0, SWITCH.1)
}

/// A server with a background command that has this argument, and its session.
fn at_work(stage: &Stage, own: &str) -> Result<(codewright_testkit::Running, String, String)> {
    let (server, url) = serve(program(&stage.project, ["serve"]).env(SWITCH.0, SWITCH.1))?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/message"), &prompt("go"))?;
    // On a loaded machine the command starts after its turn.
    wait_until("the command, which outlasts its turn", || is_running(own))?;
    Ok((server, url, id))
}

#[test]
fn a_command_is_started_read_listed_and_stopped() -> Result<()> {
    let own = own(7301);
    let call = |action: &str| ("background", json!({"action": action, "id": "job_1"}));
    let script = Script::new()
        .turn(Turn::tools([start(&format!("echo ready; sleep {own}"))]))
        .turn(Turn::tools([call("read"), ("background", json!({"action": "list"}))]))
        .turn(Turn::tools([call("stop")]))
        .turn(Turn::tools([call("read"), ("background", json!({"action": "read", "id": "job_7"}))]))
        .text("Done.");
    let stage = Stage::plain(script)?;
    switched(&stage, ["run", "go"]).finish()?.success()?;
    check_has(&stage.results(1)?[0], &["job_1: echo ready", "running"]);
    check_has(&stage.results(2)?[1], &["running", "ready\n"]);
    check_has(&stage.results(2)?[2], &[&format!("job_1: echo ready; sleep {own} (running)")]);
    check_has(&stage.results(3)?[3], &["stopped", "ready\n"]);
    check_has(&stage.results(4)?[4], &["stopped"]);
    check_has(&stage.results(4)?[5], &["no background command `job_7`", "job_1"]);
    assert!(!is_running(&own));
    stage.no_problems()
}

#[test]
fn a_call_can_wait_for_the_end_and_gets_the_exit_code() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([start("sleep 1; echo late; exit 3")]))
        .turn(Turn::tools([("background", json!({"action": "read", "id": "job_1", "wait": 60_000}))]))
        .text("Done.");
    let stage = Stage::plain(script)?;
    switched(&stage, ["run", "go"]).finish()?.success()?;
    check_has(&stage.results(2)?[1], &["ended with code 3", "late\n"]);
    stage.no_problems()
}

#[test]
fn without_the_experiment_there_are_no_background_commands() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::tools([start("true")])).text("No."))?;
    let printed = stage.json(["go"])?;
    assert_eq!(of_type(&printed, "tool_use")[0]["part"]["tool"], "invalid");
    let tools = stage.server.main_requests()[0].body["tools"].to_string();
    assert!(!tools.contains("\"background\""), "{tools}");
    Ok(())
}

#[test]
fn permission_rules_apply_to_background_commands() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([
            start("rm kept"),
            start("sh -c 'rm kept'"),
            start("cat .env"),
            start("touch made"),
        ]))
        .text("Done.");
    let stage = Stage::plain(script)?;
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({"bash": {"*": "allow", "rm *": "deny"}});
    stage.project.write_config(&config)?;
    stage.project.write("kept", "x")?;
    stage.project.write(".env", "x")?;
    let done = switched(&stage, ["run", "--format", "json", "go"]).finish()?.success()?;
    let printed = lines(&done)?;
    let mut errors: Vec<String> = of_type(&printed, "tool_use")
        .iter()
        .map(|call| call["part"]["state"]["error"].as_str().unwrap_or_default().chars().take(12).collect())
        .collect();
    errors.sort();
    assert_eq!(errors, ["", "A permission", "A permission", "The user rej"]);
    assert!(stage.project.path("kept").exists() && stage.project.path("made").exists());
    Ok(())
}

#[test]
fn at_most_eight_background_commands_run() -> Result<()> {
    let own = own(7302);
    let calls = (0..9).map(|number| start(&format!("true {number}; sleep {own}")));
    let stage = Stage::plain(Script::new().turn(Turn::tools(calls)).text("Done."))?;
    switched(&stage, ["run", "go"]).finish()?.success()?;
    let results = stage.results(1)?;
    let refused = results.iter().filter(|result| result.contains("Too many commands run in the background"));
    assert_eq!((results.len(), refused.count()), (9, 1));
    // The program has ended, and so have the commands.
    wait_until("their end", || !is_running(&own))?;
    stage.no_problems()
}

#[test]
fn background_commands_end_with_their_session() -> Result<()> {
    let own = own(7303);
    let stage =
        Stage::plain(Script::new().turn(Turn::tools([start(&format!("sleep {own}"))])).text("Done."))?;
    let (server, url, id) = at_work(&stage, &own)?;
    delete(&url, &format!("/session/{id}"))?;
    wait_until("its end", || !is_running(&own))?;
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

#[test]
fn background_commands_end_with_the_directory_and_the_server() -> Result<()> {
    for (number, with_server) in [(7304, false), (7305, true)] {
        let own = own(number);
        let script =
            Script::new().turn(Turn::tools([start(&format!("trap '' TERM; sleep {own}; sleep {own}"))]));
        let stage = Stage::plain(script.text("Done."))?;
        let (server, url, _) = at_work(&stage, &own)?;
        if with_server {
            // A killed server cannot end them itself.
            drop(server);
        } else {
            post(&url, "/instance/dispose", &json!({}))?;
        }
        wait_until("its end", || !is_running(&own))?;
    }
    Ok(())
}

#[test]
fn background_commands_of_a_subagent_end_with_it() -> Result<()> {
    let own = own(7306);
    let script = Script::new()
        .session("SUBTASK", [Turn::tools([start(&format!("sleep {own}"))]), Turn::text("Begun.")])
        .tool("task", json!({"description": "part", "prompt": "SUBTASK", "subagent_type": "general"}))
        .turn(Turn::tools([("background", json!({"action": "list"}))]))
        .text("Done.");
    let stage = Stage::plain(script)?;
    let (server, url) = serve(program(&stage.project, ["serve"]).env(SWITCH.0, SWITCH.1))?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/message"), &prompt("go"))?;
    wait_until("its end", || !is_running(&own))?;
    check_has(
        &get(&url, &format!("/session/{id}/message"))?.to_string(),
        &["There are no background commands."],
    );
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}
