//! Calls that need permission, and their rejection without a user.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::Result;
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_code, check_has, lines, of_type};

const REJECTED: &str = "The user rejected permission to use this specific tool call.";

/// A stage next to a directory `outside` that contains `x.txt`, and that directory.
fn stage(script: impl Fn(&str) -> Script) -> Result<(Stage, String)> {
    let project = Project::git()?;
    let outside = project.directory().parent().unwrap().join("outside");
    fs::create_dir(&outside)?;
    fs::write(outside.join("x.txt"), "outside\n")?;
    let outside = outside.display().to_string();
    let server = codewright_testkit::BlockingServer::start(script(&outside))?;
    project.configure(&server.url())?;
    Ok((Stage { server, project }, outside))
}

/// Checks that a call needs permission: it is rejected without `--auto` and runs with it.
#[track_caller]
fn check_asks(tool: &str, input: impl Fn(&str) -> Value, expected: &str) {
    let script = |outside: &str| {
        let call = || Turn::text("Working.").tool(tool, input(outside));
        Script::new().turn(call()).turn(call()).text("next")
    };
    let (stage, outside) = stage(script).unwrap();
    stage.project.write(".env", "SECRET=1\n").unwrap();
    symlink(&outside, stage.project.path("link")).unwrap();
    let done = stage.run(["--format", "json", "do it"]).unwrap();
    check_code(&done, 0);
    let expected = expected.replace("$OUTSIDE", &outside);
    check_has(&done.stderr, &[&format!("! permission requested: {expected}; auto-rejecting\n")]);
    let printed = lines(&done).unwrap();
    let state = &of_type(&printed, "tool_use")[0]["part"]["state"];
    assert_eq!((&state["status"], &state["error"]), (&json!("error"), &json!(REJECTED)), "{printed:#?}");
    // The turn ends with the rejection.
    assert_eq!(stage.server.main_requests().len(), 1);
    let done = stage.run(["--auto", "--format", "json", "do it"]).unwrap();
    check_code(&done, 0);
    assert_eq!(done.stderr, "");
    let printed = lines(&done).unwrap();
    let state = &of_type(&printed, "tool_use")[0]["part"]["state"];
    assert_eq!(state["status"], "completed", "{state}");
    assert_eq!(of_type(&printed, "text")[1]["part"]["text"], "next");
    stage.no_problems().unwrap();
}

#[test]
fn a_command_on_a_path_outside_asks() {
    let input = |outside: &str| json!({"command": format!("cat {outside}/x.txt")});
    check_asks("bash", input, "external_directory ($OUTSIDE/*)");
}

#[test]
fn a_read_outside_asks() {
    check_asks(
        "read",
        |outside| json!({"filePath": format!("{outside}/x.txt")}),
        "external_directory ($OUTSIDE/*)",
    );
}

#[test]
fn a_write_outside_asks() {
    let input = |outside: &str| json!({"filePath": format!("{outside}/new.txt"), "content": "c"});
    check_asks("write", input, "external_directory ($OUTSIDE/*)");
}

#[test]
fn a_path_with_dots_out_of_the_project_asks() {
    check_asks("read", |_| json!({"filePath": "../outside/x.txt"}), "external_directory ($OUTSIDE/*)");
}

#[test]
fn a_link_out_of_the_project_asks() {
    check_asks("read", |_| json!({"filePath": "link/x.txt"}), "external_directory ($OUTSIDE/*)");
}

#[test]
fn a_write_through_a_link_asks() {
    let input = |_: &str| json!({"filePath": "link/new.txt", "content": "c"});
    check_asks("write", input, "external_directory ($OUTSIDE/*)");
}

#[test]
fn a_command_through_a_link_asks() {
    check_asks("bash", |_| json!({"command": "cat link/x.txt"}), "external_directory ($OUTSIDE/*)");
}

#[test]
fn an_env_file_asks() {
    check_asks("read", |_| json!({"filePath": ".env"}), "read (.env)");
}

#[test]
fn nothing_is_written_without_permission() -> Result<()> {
    let (stage, outside) = stage(|outside| {
        Script::new().turn(Turn::tools([
            ("write", json!({"filePath": format!("{outside}/new.txt"), "content": "c"})),
            (
                "edit",
                json!({"filePath": format!("{outside}/x.txt"), "oldString": "outside", "newString": "y"}),
            ),
            ("bash", json!({"command": format!("rm {outside}/x.txt")})),
        ]))
    })?;
    let done = stage.run(["do it"])?.success()?;
    assert_eq!(done.stderr.matches("auto-rejecting").count(), 3, "{}", done.stderr);
    check_has(
        &done.stderr,
        &["\u{2717}", "failed", "Error: no rule allows the call, and `run` cannot ask a user"],
    );
    assert_eq!(fs::read_to_string(format!("{outside}/x.txt"))?, "outside\n");
    assert!(!fs::exists(format!("{outside}/new.txt"))?);
    Ok(())
}

#[test]
fn a_denial_applies_with_auto_and_the_turn_continues() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([
            ("bash", json!({"command": "rm precious.txt"})),
            ("bash", json!({"command": "true && rm precious.txt"})),
            ("bash", json!({"command": "echo fine"})),
        ]))
        .text("I may not.");
    let stage = Stage::git(script)?;
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({"bash": {"*": "allow", "rm *": "deny"}});
    stage.project.write_config(&config)?;
    stage.project.write("precious.txt", "gold")?;
    let lines = stage.json(["--auto", "go"])?;
    let mut states: Vec<_> =
        of_type(&lines, "tool_use").iter().map(|line| line["part"]["state"]["status"].clone()).collect();
    states.sort_by_key(Value::to_string);
    assert_eq!(states, ["completed", "error", "error"]);
    assert_eq!(of_type(&lines, "text")[0]["part"]["text"], "I may not.");
    assert_eq!(stage.project.read("precious.txt")?, "gold");
    // The model gets the rules about the call.
    let results = stage.results(1)?;
    check_has(&results[0], &[r#""pattern":"rm *""#, r#""action":"deny""#]);
    check_has(&results[1], &[r#""action":"deny""#]);
    assert_eq!(results[2], "fine\n");
    stage.no_problems()
}

#[test]
fn a_disabled_tool_is_not_offered() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Done."))?;
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({"bash": "deny", "edit": "deny"});
    stage.project.write_config(&config)?;
    stage.run(["--auto", "hi"])?.success()?;
    let request = &stage.server.main_requests()[0];
    let names: Vec<_> =
        request.body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["glob", "grep", "read", "skill", "task", "todowrite", "webfetch"]);
    Ok(())
}

#[test]
fn the_third_identical_call_asks() -> Result<()> {
    let call = || ("bash", json!({"command": "echo again"}));
    let script = Script::new().turn(Turn::tools([call(), call(), call()]));
    let stage = Stage::plain(script)?;
    let done = stage.run(["go"])?.success()?;
    check_has(&done.stderr, &["permission requested: doom_loop (bash); auto-rejecting"]);
    Ok(())
}
