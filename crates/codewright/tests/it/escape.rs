//! Ways around permission rules, played through the program.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Context, Result, ensure};
use codewright_testkit::escape::{Attempt, Expected, GROUPS, Group};
use codewright_testkit::{BlockingServer, Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{
    Stage, check_code, get, lines, new_session, of_type, post, prompt, text_of, wait_until,
};

/// What is in every file that must not be shown.
const SECRET: &str = "hush-hush-hush";
/// Calls that one answer makes.
const CALLS: usize = 16;

/// A project with everything that the attempts are about.
fn project(attempts: usize) -> Result<Project> {
    let project = Project::git()?;
    let outside = project.directory().parent().context("no parent")?.join("outside");
    fs::create_dir(&outside)?;
    fs::write(outside.join("x.txt"), "outside\n")?;
    for name in [".env", ".env.local", "sub/.env", "secret.env", "secrets/key.txt"] {
        project.write(name, format!("HUSH={SECRET}\n"))?;
    }
    for name in [".env.example", "tool.txt", "script.sh", "show.py", "yarn.lock", "Makefile"] {
        project.write(name, "all:\n")?;
    }
    project.write("locked/a.txt", "kept\n")?;
    project.write("tool", "#!/bin/sh\n")?;
    fs::set_permissions(project.path("tool"), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    for (to, link) in [
        (".env", "envlink"),
        ("secrets/key.txt", "keylink"),
        ("locked/a.txt", "lockedlink"),
        ("locked", "lockeddir"),
        ("../outside", "link"),
        ("../outside/new.txt", "dangling"),
    ] {
        symlink(to, project.path(link))?;
    }
    for number in 0..attempts {
        project.write(victim(number), "gold\n")?;
    }
    Ok(project)
}

fn victim(number: usize) -> String {
    format!("victim{number}.txt")
}

fn input(project: &Project, attempt: &Attempt, number: usize) -> Result<Value> {
    let outside = project.directory().parent().context("no parent")?.join("outside");
    let text = attempt.expanded().replace("@V", &victim(number));
    let text = text.replace("@O", &outside.display().to_string());
    let text = text.replace("@P", &project.directory().display().to_string());
    let is_command = attempt.tool == "bash" && !text.starts_with("{\"command\"");
    Ok(if is_command { json!({ "command": text }) } else { serde_json::from_str(&text)? })
}

/// Returns what happened to a call according to its recorded state.
fn result(state: &Value) -> Option<Expected> {
    let error = text_of(&state["error"]);
    match state["status"].as_str()? {
        "completed" => Some(Expected::Run),
        _ if error.starts_with("A permission rule forbids this call.") => Some(Expected::Deny),
        _ if error.starts_with("The user rejected permission") => Some(Expected::Ask),
        _ => None,
    }
}

/// Plays some attempts as the calls of one answer and returns those with an unexpected result.
fn play(group: &Group, attempts: &[Attempt]) -> Result<Vec<String>> {
    let project = project(attempts.len())?;
    let inputs: Vec<Value> = attempts
        .iter()
        .enumerate()
        .map(|(number, attempt)| input(&project, attempt, number))
        .collect::<Result<_>>()?;
    let calls = attempts.iter().zip(&inputs).map(|(attempt, input)| (attempt.tool, input.clone()));
    let server = BlockingServer::start(Script::new().turn(Turn::tools(calls)).text("Done."))?;
    let mut config = Project::config(&server.url());
    config["permission"] = serde_json::from_str(group.rules)?;
    config["provider"]["mock"]["models"]["gpt-5"] =
        json!({"name": "gpt-5", "limit": {"context": 200_000, "output": 32_000}});
    project.write_config(&config)?;
    let stage = Stage { server, project };
    // The corpus is about the rules. In the sandbox fewer commands need permission, because the kernel restricts them.
    // Everyday work must need none in the sandbox, either.
    let mode = if group.name.starts_with("everyday work without rules") { "workspace" } else { "off" };
    let args = ["--format", "json", "--sandbox", mode, "--agent", group.agent, "--model", group.model, "go"];
    let done = stage.run(args)?;
    check_code(&done, 0);
    let printed = lines(&done)?;
    let mut wrong = Vec::new();
    for (number, (attempt, input)) in attempts.iter().zip(&inputs).enumerate() {
        let calls = of_type(&printed, "tool_use");
        let state = calls.iter().map(|call| &call["part"]["state"]).find(|state| state["input"] == *input);
        let Some(state) = state else {
            wrong.push(format!("{input}: was not called"));
            continue;
        };
        let is_right = match (attempt.expected, result(state)) {
            (Expected::DenyOrAsk, Some(Expected::Deny | Expected::Ask)) => true,
            (expected, result) => result == Some(expected),
        };
        if !is_right {
            let error = text_of(&state["error"]);
            wrong.push(format!(
                "{:?}: {:?} expected, {} {error}",
                attempt.input, attempt.expected, state["status"]
            ));
        }
        if attempt.expected == Expected::Run {
            continue;
        }
        if stage.project.read(victim(number)).unwrap_or_default() != "gold\n" {
            wrong.push(format!("{input}: the file is gone"));
        }
        if state.to_string().contains(SECRET) {
            wrong.push(format!("{input}: the secret is in the result"));
        }
    }
    if stage.project.read("locked/a.txt").unwrap_or_default() != "kept\n" && group.rules.contains("locked") {
        wrong.push("a locked file was changed".to_owned());
    }
    Ok(wrong)
}

fn check(names: &[&str]) -> Result<()> {
    let groups: Vec<&Group> =
        GROUPS.iter().filter(|group| names.iter().any(|name| group.name.starts_with(name))).collect();
    ensure!(!groups.is_empty(), "there is no such group");
    let mut wrong = Vec::new();
    for group in groups {
        for attempts in group.attempts.chunks(CALLS) {
            wrong.extend(play(group, attempts)?.into_iter().map(|line| format!("{}: {line}", group.name)));
        }
    }
    ensure!(wrong.is_empty(), "{} attempts:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[test]
fn no_spelling_of_a_forbidden_command_runs_it() -> Result<()> {
    check(&["a command is forbidden"])
}

#[test]
fn an_allowed_command_does_not_allow_another() -> Result<()> {
    check(&["some commands are allowed"])
}

#[test]
fn environment_files_and_outside_files_need_permission() -> Result<()> {
    check(&["without rules", "files outside"])
}

#[test]
fn commands_access_only_files_that_tools_may_access() -> Result<()> {
    check(&["files may not", "nothing may be written"])
}

#[test]
fn with_everything_allowed_no_permission_is_requested() -> Result<()> {
    check(&["only commands", "everything"])
}

#[test]
fn no_limit_of_the_analysis_hides_a_command() -> Result<()> {
    check(&["limits hide"])
}

#[test]
fn allowed_git_commands_do_not_allow_others() -> Result<()> {
    check(&["only git"])
}

#[test]
fn everyday_work_needs_no_permission() -> Result<()> {
    check(&["everyday"])
}

#[test]
fn a_subagent_cannot_bypass_the_rules() -> Result<()> {
    let calls = Turn::tools([
        ("bash", json!({"command": "sh -c 'rm kept'"})),
        ("bash", json!({"command": "echo x > locked/a.txt"})),
        ("write", json!({"filePath": "lockedlink", "content": "x"})),
    ]);
    let script = Script::new()
        .session("SUBTASK", [calls, Turn::text("Tried.")])
        .tool("task", json!({"description": "part", "prompt": "SUBTASK", "subagent_type": "general"}))
        .text("Done.");
    let server = BlockingServer::start(script)?;
    let stage = Stage { project: project(0)?, server };
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({"bash": {"rm *": "deny"}, "edit": {"locked/*": "deny"}});
    // The subagent's own rules allow everything, but its caller's rules apply too.
    config["agent"] = json!({"general": {"permission": {"*": "allow", "bash": "allow", "edit": "allow"}}});
    stage.project.write_config(&config)?;
    stage.project.write("kept", "gold\n")?;
    stage.run(["--auto", "go"])?.success()?;
    assert_eq!(
        (stage.project.read("kept")?, stage.project.read("locked/a.txt")?),
        ("gold\n".into(), "kept\n".into())
    );
    let requests = stage.server.requests().len();
    assert!(requests >= 4, "the subagent was not at work: {requests} requests");
    Ok(())
}

#[test]
fn a_link_that_changes_during_a_permission_request_needs_permission() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([("write", json!({"filePath": "place/new.txt", "content": "x"}))]))
        .text("Done.");
    let stage = Stage { server: BlockingServer::start(script)?, project: project(0)? };
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({"edit": "ask"});
    stage.project.write_config(&config)?;
    stage.project.write("place/old.txt", "x")?;
    let (server, url) = stage.serve()?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("go"))?;
    let asked = |permission: &'static str| {
        let url = url.clone();
        move || get(&url, "/permission").is_ok_and(|all| all[0]["permission"] == permission)
    };
    wait_until("the question", asked("edit"))?;
    fs::rename(stage.project.path("place"), stage.project.path("elsewhere"))?;
    symlink("../outside", stage.project.path("place"))?;
    let question = get(&url, "/permission")?[0]["id"].as_str().context("no question")?.to_owned();
    post(&url, &format!("/permission/{question}/reply"), &json!({"reply": "once"}))?;
    wait_until("the next question", asked("external_directory"))?;
    let question = get(&url, "/permission")?[0]["id"].as_str().context("no question")?.to_owned();
    post(&url, &format!("/permission/{question}/reply"), &json!({"reply": "reject"}))?;
    let path = format!("/session/{id}/message");
    wait_until("the end", || get(&url, &path).is_ok_and(|all| all[1]["info"]["time"]["completed"].is_u64()))?;
    assert!(!stage.project.path("../outside/new.txt").exists());
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

#[test]
fn the_corpus_has_every_attempt_once_and_enough_of_them() {
    let mut all: Vec<(&str, &str, &str)> = GROUPS
        .iter()
        .flat_map(|group| group.attempts.iter().map(|attempt| (group.rules, group.agent, attempt.input)))
        .collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "an attempt is there twice");
    let hostile =
        GROUPS.iter().flat_map(|group| group.attempts).filter(|attempt| attempt.expected != Expected::Run);
    assert!(hostile.count() >= 700);
    let harmless = GROUPS.iter().filter(|group| group.name.starts_with("everyday"));
    let attempts = harmless.flat_map(|group| group.attempts);
    assert!(attempts.filter(|attempt| attempt.expected == Expected::Run).count() >= 200);
}
