//! Agents and commands from files, and the resulting prompts.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{
    Stage, check_code, check_has, get, new_session, of_type, post, prompt, text_of, user_text,
};

/// A file of the project.
fn write(stage: &Stage, path: &str, text: &str) -> Result<()> {
    let path = stage.project.path(path);
    fs::create_dir_all(path.parent().context("no folder")?)?;
    Ok(fs::write(path, text)?)
}

fn system(stage: &Stage, n: usize) -> Result<String> {
    Ok(text_of(&stage.messages(n)?[0]["content"]))
}

#[test]
fn an_agent_in_a_markdown_file_answers_with_its_own_prompt() -> Result<()> {
    let stage = Stage::git(Script::new().text("Arr."))?;
    let agent = "---\ndescription: Talks\nmode: primary\ntemperature: 0.25\ntools:\n  bash: false\n---\nYou talk like a pirate.\n";
    write(&stage, ".opencode/agents/fun/pirate.md", agent)?;
    let done = stage.run(["--agent", "fun/pirate", "hello"])?.success()?;
    assert_eq!(done.stdout, "Arr.\n");
    let request = &stage.server.main_requests()[0].body;
    assert!(system(&stage, 0)?.starts_with("You talk like a pirate.\n"), "{request}");
    assert_eq!(request["temperature"], json!(0.25));
    assert!(!request["tools"].to_string().contains("\"bash\""));
    stage.no_problems()
}

#[test]
fn a_command_is_run_by_its_name() -> Result<()> {
    let stage = Stage::git(Script::new().text("Done.").text("Again."))?;
    write(
        &stage,
        ".opencode/command/greet.md",
        "---\ndescription: greets\n---\nGreet $1, then $2. It is !`echo noon`.\n",
    )?;
    let done = stage.run(["--command", "greet", "Ann", "Bob and Eve"])?.success()?;
    assert_eq!(done.stdout, "Done.\n");
    assert_eq!(user_text(&stage.server.main_requests()[0]), "Greet Ann, then Bob and Eve. It is noon\n.");
    let json = stage.json(["--command", "greet", "X"])?;
    assert_eq!(of_type(&json, "text")[0]["part"]["text"], "Again.");
    let unknown = stage.run(["--command", "nope"])?;
    check_code(&unknown, 1);
    check_has(
        &unknown.stderr,
        &["command `nope` not found; there are init, review, greet, customize-opencode"],
    );
    stage.no_problems()
}

#[test]
fn a_skill_is_called_by_its_name_and_its_text_is_unchanged() -> Result<()> {
    let stage = Stage::git(Script::new().text("Sailed."))?;
    let skill =
        "---\nname: sail\ndescription: sailing\n---\nHoist $1 as !`echo told` says. See @README.md.\n";
    write(&stage, ".opencode/skill/sail/SKILL.md", skill)?;
    write(&stage, ".opencode/skill/init/SKILL.md", "---\nname: init\ndescription: i\n---\nNever.\n")?;
    let (server, url) = stage.serve()?;
    let commands = get(&url, "/command")?;
    let shown = commands.as_array().context("no list")?.iter();
    let shown: Vec<_> = shown.map(|command| json!([command["name"], command["source"]])).collect();
    let (skill, command) = ("skill", "command");
    assert_eq!(
        json!(shown),
        json!([["init", command], ["review", command], ["customize-opencode", skill], ["sail", skill]])
    );
    assert_eq!((&commands[3]["description"], &commands[3]["hints"]), (&json!("sailing"), &json!([])));
    let id = new_session(&url)?;
    let body = json!({"command": "sail", "arguments": "to the $1 port"});
    let (status, answer) = post(&url, &format!("/session/{id}/command"), &body)?;
    assert_eq!(status, 200, "{answer}");
    let asked = user_text(&stage.server.main_requests()[0]);
    assert!(asked.starts_with("Hoist $1 as !`echo told` says. See @README.md.\n\n"), "{asked}");
    assert!(asked.ends_with("\n\nto the $1 port"), "{asked}");
    check_has(&asked, &[".opencode/skill/sail, from which"]);
    server.terminate()?;
    server.finish()?.success()?;
    stage.no_problems()
}

#[test]
fn the_server_lists_commands_and_runs_them() -> Result<()> {
    let stage = Stage::git(Script::new().text("Written.").text("Again."))?;
    let (server, url) = stage.serve()?;
    let commands = get(&url, "/command")?;
    assert_eq!((commands[0]["name"].as_str(), commands[1]["name"].as_str()), (Some("init"), Some("review")));
    let id = new_session(&url)?;
    let body = json!({"command": "init", "arguments": "focus on tests"});
    let (status, answer) = post(&url, &format!("/session/{id}/command"), &body)?;
    assert_eq!((status, answer["info"]["role"].as_str()), (200, Some("assistant")), "{answer}");
    let asked = user_text(&stage.server.main_requests()[0]);
    check_has(&asked, &["AGENTS.md", "focus on tests"]);
    let body = json!({"providerID": "mock", "modelID": "plain-model", "messageID": "msg_ffffffffffff00000000000000"});
    let (status, done) = post(&url, &format!("/session/{id}/init"), &body)?;
    assert_eq!((status, &done), (200, &json!(true)));
    let asked = &stage.server.main_requests()[1];
    check_has(&user_text(asked), &["AGENTS.md"]);
    let message = get(&url, &format!("/session/{id}/message/msg_ffffffffffff00000000000000"))?;
    assert_eq!(message["info"]["role"], "user");
    let (status, refused) =
        post(&url, &format!("/session/{id}/command"), &json!({"command": "x", "arguments": ""}))?;
    assert_eq!(status, 400, "{refused}");
    server.terminate()?;
    server.finish()?.success()?;
    stage.no_problems()
}

/// A client that did not receive the answer to its request sends it again.
#[test]
fn a_prompt_that_is_sent_twice_is_answered_once() -> Result<()> {
    let stage = Stage::git(Script::new().text("Once.").text("Twice."))?;
    let (server, url) = stage.serve()?;
    let id = new_session(&url)?;
    let path = format!("/session/{id}/message");
    let mut sent = prompt("hi");
    sent["messageID"] = json!("msg_0123456789ab00000000000000");
    for _ in 0..2 {
        let (status, answer) = post(&url, &path, &sent)?;
        ensure!(status == 200 && answer.to_string().contains("Once."), "{status}: {answer}");
    }
    assert_eq!(post(&url, &format!("/session/{id}/prompt_async"), &sent)?.0, 204);
    let stored = get(&url, &path)?;
    let lengths: Vec<_> = stored.as_array().into_iter().flatten().map(|one| one["parts"].clone()).collect();
    assert_eq!((lengths.len(), lengths[0].as_array().map(Vec::len)), (2, Some(1)), "{stored}");
    // The id of an answer is not one of a prompt.
    sent["messageID"] = stored[1]["info"]["id"].clone();
    let (status, refused) = post(&url, &path, &sent)?;
    assert_eq!(status, 400, "{refused}");
    check_has(&refused.to_string(), &["is used by another message"]);
    assert_eq!(stage.server.main_requests().len(), 1);
    server.terminate()?;
    server.finish()?.success()?;
    stage.no_problems()
}

#[test]
fn the_prompt_and_the_configuration_are_shown_with_their_origins() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    write(&stage, "AGENTS.md", "Use tabs.\n")?;
    write(&stage, ".opencode/agent/x.md", "---\ndescription: d\n---\nBody\n")?;
    let rules = stage.project.path("AGENTS.md").display().to_string();
    let table = stage.program(["debug", "prompt"]).finish()?.success()?.stdout;
    check_has(
        &table,
        &[
            "agent build, model",
            "provider",
            "family `default`",
            "environment",
            &rules,
            "tool bash",
            "total",
            "claude",
        ],
    );
    let report: Value = serde_json::from_str(
        &stage.program(["debug", "prompt", "--agent", "x", "--json"]).finish()?.success()?.stdout,
    )?;
    assert_eq!(
        (report["blocks"][0]["text"].as_str(), report["blocks"][0]["origin"].as_str()),
        (Some("Body"), Some("agent `x`"))
    );
    let origins = stage.program(["debug", "config", "--origins"]).finish()?.success()?.stdout;
    let file = stage.project.path(".opencode/agent/x.md").display().to_string();
    check_has(&origins, &[&format!("agent.x.prompt = \"Body\"  ({file})"), "options.apiKey = (hidden)"]);
    let config: Value =
        serde_json::from_str(&stage.program(["debug", "config"]).finish()?.success()?.stdout)?;
    assert_eq!(config["agent"]["x"]["prompt"], "Body");
    let agent: Value =
        serde_json::from_str(&stage.program(["debug", "agent", "x"]).finish()?.success()?.stdout)?;
    assert_eq!((agent["name"].as_str(), agent["description"].as_str()), (Some("x"), Some("d")));
    let unknown = stage.program(["debug", "agent", "y"]).finish()?;
    check_code(&unknown, 1);
    Ok(())
}

#[test]
fn the_date_is_that_of_the_users_time_zone() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    let date = |zone: &str| -> Result<String> {
        let shown = stage.program(["debug", "prompt", "--json"]).env("TZ", zone).finish()?.success()?.stdout;
        let report: Value = serde_json::from_str(&shown)?;
        let system = report["parts"][1].as_str().context("no text")?;
        let line = system.lines().find(|line| line.contains("Today's date: ")).context("no date")?;
        Ok(line.trim().to_owned())
    };
    // The two ends of the day are 26 hours apart, so it is never the same date in both.
    let (east, west) = (date("<+14>-14")?, date("<-12>12")?);
    assert_ne!(east, west);
    // What cannot be read is UTC.
    assert!([&east, &west, &date("UTC0")?].contains(&&date("/no/such/zone")?));
    Ok(())
}

#[test]
fn a_model_writes_an_agent() -> Result<()> {
    let answer = r#"{"identifier": "test-runner", "whenToUse": "Use this agent when tests are to be run.", "systemPrompt": "You run tests."}"#;
    let stage = Stage::git(Script::new().default_turn(Turn::text(format!("Here:\n{answer}"))))?;
    let create = [
        "agent",
        "create",
        "--description",
        "runs tests",
        "--mode",
        "subagent",
        "--permissions",
        "bash,read",
    ];
    let done = stage.program(create).finish()?.success()?;
    let file = stage.project.path(".opencode/agent/test-runner.md");
    assert_eq!(done.stdout, format!("{}\n", file.canonicalize()?.display()));
    check_has(&fs::read_to_string(&file)?, &["mode: subagent", "  edit: deny", "You run tests."]);
    let listed = stage.program(["agent", "list"]).finish()?.success()?;
    check_has(&listed.stdout, &["build (primary)", "test-runner (subagent)"]);
    // The name is now in use.
    let again = stage.program(create).finish()?;
    check_code(&again, 1);
    check_has(&again.stderr, &["there is an agent `test-runner` already"]);
    Ok(())
}

#[test]
fn broken_files_are_reported_and_the_others_work() -> Result<()> {
    let stage = Stage::git(Script::new().text("Fine."))?;
    write(
        &stage,
        ".opencode/agent/broken.md",
        "---\ndescription: [never closed\nmode: sideways\n---\nText\n",
    )?;
    write(&stage, "codewright.json", r#"{"autoshare": true, "instructions": ["missing.md"]}"#)?;
    let done = stage.run(["hello"])?.success()?;
    assert_eq!(done.stdout, "Fine.\n");
    check_has(
        &done.stderr,
        &[
            "broken.md` line 2: `description` has a bracket",
            "broken.md`: `mode` must be one of",
            "`autoshare` has no effect in this version",
            "`instructions`: there is no file `missing.md`",
        ],
    );
    stage.no_problems()
}

#[test]
fn missing_agents_and_models_are_reported_with_their_source() -> Result<()> {
    let stage = Stage::git(Script::new().text("Fine."))?;
    write(&stage, ".opencode/agent/a.md", "---\nmodel: no/where\n---\nText\n")?;
    write(&stage, ".opencode/command/c.md", "---\nagent: nobody\nmodel: no/where\n---\nText\n")?;
    write(&stage, "codewright.json", r#"{"default_agent": "biuld"}"#)?;
    let done = stage.run(["hello"])?.success()?;
    check_has(
        &done.stderr,
        &[
            "agent/a.md`: `agent.a.model` names `no/where`",
            "command/c.md`: `command.c.agent` names `nobody`, which is no agent",
            "command/c.md`: `command.c.model` names `no/where`",
            "`default_agent`: the agent `biuld` does not exist; did you mean `build`?; `build` begins instead",
        ],
    );
    stage.no_problems()
}

#[test]
fn the_projects_claude_files_are_only_used_if_configured() -> Result<()> {
    let stage = Stage::git(Script::new().text("fixed").text("plain"))?;
    stage.project.write(".claude/CLAUDE.md", "MEMORY of another program")?;
    stage.project.write(".claude/commands/fix.md", "---\ndescription: Fixes\n---\nFix issue $ARGUMENTS.")?;
    let fix = || stage.program(["run", "--command", "fix", "12"]);
    let refused = fix().finish()?;
    check_code(&refused, 1);
    check_has(&refused.stderr, &["command `fix` not found"]);
    let mut config = Project::config(&stage.server.url());
    config["prompt"] = json!({"claude": true});
    stage.project.write_config(&config)?;
    fix().finish()?.success()?;
    let messages = stage.messages(0)?;
    check_has(&messages[0]["content"].to_string(), &["MEMORY of another program", "- /fix: Fixes"]);
    check_has(&messages[1]["content"].to_string(), &["Fix issue 12."]);
    stage.no_problems()
}

#[test]
fn the_model_knows_the_directory_and_the_sandbox_of_commands() -> Result<()> {
    for (sandbox, expected) in [
        (
            json!({}),
            "mode `workspace`): they can write the project and a private temporary directory, and reach only",
        ),
        (json!({"mode": "read-only", "network": "off"}), "mode `read-only`): they can write only a private"),
        (json!({"mode": "off"}), "Commands run without a sandbox (mode `off`)."),
    ] {
        let stage = Stage::git(Script::new().text("one").text("two"))?;
        let mut config = Project::config(&stage.server.url());
        config["sandbox"] = sandbox;
        stage.project.write_config(&config)?;
        stage.run(["first"])?.success()?;
        stage.run(["-c", "second"])?.success()?;
        let requests = stage.server.main_requests();
        let system: Vec<&Value> = requests.iter().map(|request| &request.body["messages"][0]).collect();
        check_has(&system[0].to_string(), &[expected]);
        assert_eq!(system[0], system[1], "the system text is the same in the whole session");
        let tools = requests[0].body["tools"].to_string();
        check_has(&tools, &[&format!("`{}`, the project directory", stage.project.directory().display())]);
    }
    Ok(())
}
