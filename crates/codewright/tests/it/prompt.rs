//! The prompt, the model and the session of `run`.

use anyhow::{Context, Result};
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_code, check_has, get, of_type, session_of, user_text};

/// A model that answers every turn.
fn talker() -> Script {
    Script::new().default_turn(Turn::text("Done."))
}

/// The smallest image: one transparent pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0,
    0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63,
    0xfc, 0xcf, 0xc0, 0x50, 0x0f, 0, 4, 0x85, 1, 0x80, 0x84, 0xa9, 0x8c, 0x21, 0, 0, 0, 0, 0x49, 0x45, 0x4e,
    0x44, 0xae, 0x42, 0x60, 0x82,
];

#[test]
fn piped_input_is_added_to_the_message() -> Result<()> {
    let stage = Stage::plain(talker())?;
    stage.program(["run", "msg"]).stdin("piped data\n").finish()?.success()?;
    check_has(&user_text(&stage.server.main_requests()[0]), &["msg\npiped data\n"]);
    stage.program(["run"]).stdin("only piped").finish()?.success()?;
    check_has(&user_text(&stage.server.main_requests()[1]), &["only piped"]);
    stage.program(["run", "-c"]).stdin(b"no \xff text").finish()?.success()?;
    check_has(&user_text(&stage.server.main_requests()[2]), &["no \u{fffd} text"]);
    stage.run(["fix", "the \"test\"", "-c"])?.success()?;
    check_has(&user_text(&stage.server.main_requests()[3]), &["fix \"the \\\"test\\\"\""]);
    stage.no_problems()
}

#[test]
fn a_message_is_needed() -> Result<()> {
    let stage = Stage::plain(talker())?;
    for (message, piped) in [(None, ""), (Some(" "), ""), (None, " \n")] {
        let done = stage.program(["run"].into_iter().chain(message)).stdin(piped).finish()?;
        check_code(&done, 1);
        assert_eq!(done.stderr, "Error: You must provide a message or a command\n");
    }
    assert!(stage.server.requests().is_empty());
    Ok(())
}

#[test]
fn the_interactive_flag_changes_nothing() -> Result<()> {
    for flag in ["-i", "--interactive"] {
        let stage = Stage::plain(talker())?;
        let done = stage.run([flag, "hello"])?.success()?;
        check_has(&done.stdout, &["Done."]);
        check_has(&user_text(&stage.server.main_requests()[0]), &["hello"]);
        let missing = stage.program(["run", flag]).stdin("").finish()?;
        check_code(&missing, 1);
        assert_eq!(missing.stderr, "Error: You must provide a message or a command\n");
    }
    Ok(())
}

#[test]
fn files_and_directories_are_attached() -> Result<()> {
    let stage = Stage::plain(talker())?;
    stage.project.write("src/a b#1.txt", "first line\nsecond line\n")?;
    stage.project.write("src/z.txt", "")?;
    stage.run(["look", "-f", "src/a b#1.txt", "-f", "src"])?.success()?;
    let said = user_text(&stage.server.main_requests()[0]);
    check_has(
        &said,
        &["look", "1: first line\n2: second line\n", "<type>directory</type>", "a b#1.txt\nz.txt"],
    );
    // A user can attach files that the model cannot read.
    std::fs::write(stage.project.home().join("outside.txt"), "from outside\n")?;
    let outside = stage.project.home().join("outside.txt").display().to_string();
    let done = stage.run(["look", "-f", &outside])?.success()?;
    assert!(!done.stderr.contains("permission"), "{}", done.stderr);
    check_has(&user_text(&stage.server.main_requests()[1]), &["1: from outside\n"]);
    let done = stage.run(["look", "-f", "absent.txt"])?;
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: File not found: ", "absent.txt"]);
    stage.no_problems()
}

/// Lets the scripted model accept images.
fn accept_images(stage: &Stage) -> Result<()> {
    let mut config = Project::config(&stage.server.url());
    config["provider"]["mock"]["models"]["plain-model"]["attachment"] = true.into();
    config["provider"]["mock"]["models"]["plain-model"]["modalities"] =
        json!({"input": ["text", "image"], "output": ["text"]});
    stage.project.write_config(&config)
}

#[test]
fn an_image_is_sent_to_a_model_that_accepts_images() -> Result<()> {
    let stage = Stage::plain(talker())?;
    accept_images(&stage)?;
    stage.project.write("point.png", PNG)?;
    stage.run(["look", "-f", "point.png"])?.success()?;
    let messages = stage.messages(0)?;
    let content = messages.last().context("no message")?["content"].as_array().context("no parts")?.clone();
    let image = content.iter().find(|part| part["type"] == "image_url").context("no image")?;
    check_has(image["image_url"]["url"].as_str().unwrap(), &["data:image/png;base64,iVBORw0KGgo"]);
    stage.no_problems()
}

#[test]
fn an_image_without_a_known_extension_is_sent_too() -> Result<()> {
    for name in ["noext", "shot.png2", "notes.txt"] {
        let stage = Stage::plain(talker())?;
        accept_images(&stage)?;
        stage.project.write(name, PNG)?;
        stage.project.write("text", "BMW is a name, %PDF- is a mark, and this is text.")?;
        stage.run(["look", "-f", name, "-f", "text"])?.success()?;
        let sent = Value::from(stage.messages(0)?).to_string();
        check_has(&sent, &["data:image/png;base64,iVBORw0KGgo", "this is text."]);
        assert_eq!(sent.matches("image_url").count(), 2, "one part with one address: {sent}");
        assert!(!sent.contains("read successfully"), "{sent}");
        stage.no_problems()?;
    }
    Ok(())
}

#[test]
fn an_image_is_not_sent_to_a_model_without_image_input() -> Result<()> {
    let stage = Stage::plain(talker())?;
    stage.project.write("point.png", PNG)?;
    stage.run(["look", "-f", "point.png"])?.success()?;
    let request = &stage.server.main_requests()[0];
    assert!(!request.body.to_string().contains("iVBORw0KGgo"));
    check_has(&user_text(request), &["look", "point.png"]);
    stage.no_problems()
}

#[test]
fn sessions_are_continued_by_recency_and_by_id() -> Result<()> {
    let script =
        Script::new().text("Answer one.").text("Answer two.").text("Answer three.").text("Answer four.");
    let stage = Stage::git(script)?;
    let first = session_of(&stage.json(["one"])?)?;
    let second = session_of(&stage.json(["two"])?)?;
    assert_ne!(first, second);
    assert_eq!(session_of(&stage.json(["-c", "three"])?)?, second);
    assert_eq!(session_of(&stage.json(["--session", &first, "four"])?)?, first);
    let requests = stage.server.main_requests();
    assert_eq!(user_text(&requests[2]), "two\nthree");
    assert_eq!(user_text(&requests[3]), "one\nfour");
    let answer = &stage.messages(3)?[2];
    assert_eq!((&answer["role"], &answer["content"]), (&json!("assistant"), &json!("Answer one.")));
    stage.no_problems()
}

#[test]
fn a_fork_does_not_change_its_origin() -> Result<()> {
    let stage = Stage::git(talker())?;
    let origin = session_of(&stage.json(["one"])?)?;
    let fork = session_of(&stage.json(["-c", "--fork", "two"])?)?;
    assert_ne!(fork, origin);
    assert_eq!(user_text(&stage.server.main_requests()[1]), "one\ntwo");
    assert_eq!(session_of(&stage.json(["-s", &origin, "three"])?)?, origin);
    assert_eq!(user_text(&stage.server.main_requests()[2]), "one\nthree");
    let done = stage.run(["--fork", "hi"])?;
    check_code(&done, 1);
    check_has(&done.stderr, &["--fork", "--continue"]);
    stage.no_problems()
}

#[test]
fn a_missing_session_is_reported() -> Result<()> {
    let stage = Stage::plain(talker())?;
    for id in ["ses_nope", "ses_e002c70aeffeBmtxma5ZftT1u8", "nonsense", "../../etc"] {
        let done = stage.run(["-s", id, "hi"])?;
        check_code(&done, 1);
        assert_eq!(done.stderr, "Error: Session not found\n", "{id}");
    }
    assert!(stage.server.requests().is_empty());
    // Without a session to continue, a new one is created.
    stage.run(["-c", "hi"])?.success()?;
    Ok(())
}

#[test]
fn a_given_title_is_kept_and_none_is_requested() -> Result<()> {
    let stage = Stage::plain(talker())?;
    let given = session_of(&stage.json(["--title", "My T", "hi"])?)?;
    let short = session_of(&stage.json(["words of the prompt", "--title"])?)?;
    let long = "x".repeat(80);
    let cut = session_of(&stage.json([long.as_str(), "--title"])?)?;
    assert_eq!(stage.server.requests().len(), 3);
    let (_server, url) = stage.serve()?;
    let title = |id: &str| Ok::<Value, anyhow::Error>(get(&url, &format!("/session/{id}"))?["title"].clone());
    assert_eq!(title(&given)?, "My T");
    assert_eq!(title(&short)?, "words of the prompt");
    let cut = title(&cut)?;
    let cut = cut.as_str().unwrap();
    assert!(cut.starts_with("xxxx") && cut.chars().count() < 60, "{cut}");
    Ok(())
}

#[test]
fn an_unknown_agent_is_an_error_with_the_nearest_name() -> Result<()> {
    let stage = Stage::plain(talker())?;
    for (name, expected) in
        [("biuld", "did you mean `build`?"), ("explore", "it is a subagent"), ("xyz", "`plan`")]
    {
        let done = stage.run(["--agent", name, "hi"])?;
        check_code(&done, 1);
        check_has(&done.stderr, &[&format!("cannot use the agent `{name}`"), expected]);
    }
    assert!(stage.server.requests().is_empty());
    Ok(())
}

#[test]
fn the_planning_agent_does_not_edit() -> Result<()> {
    let script = Script::new().tool("write", json!({"filePath": "a.txt", "content": "x"})).text("A plan.");
    let stage = Stage::plain(script)?;
    let done = stage.run(["--agent", "plan", "--auto", "hi"])?.success()?;
    check_has(&done.stderr, &["> plan \u{b7} plain-model"]);
    assert!(!stage.project.path("a.txt").exists());
    stage.no_problems()
}

#[test]
fn a_custom_agent_answers_with_its_prompt_and_model() -> Result<()> {
    let stage = Stage::plain(talker())?;
    let mut config = Project::config(&stage.server.url());
    config["provider"]["mock"]["models"]["other"] = json!({});
    config["agent"] =
        json!({"critic": {"mode": "primary", "model": "mock/other", "prompt": "You are unkind."}});
    stage.project.write_config(&config)?;
    stage.run(["--agent", "critic", "hi"])?.success()?;
    let request = &stage.server.main_requests()[0];
    assert_eq!(request.body["model"], "other");
    check_has(&request.body["messages"][0].to_string(), &["You are unkind."]);
    Ok(())
}

#[test]
fn an_unknown_model_gives_similar_names() -> Result<()> {
    let stage = Stage::plain(talker())?;
    for (wanted, expected) in [
        ("mock/plain-modl", &["model not found: mock/plain-modl", "did you mean", "mock/plain-model"][..]),
        ("mok/plain-model", &["mok/plain-model", "mock/plain-model"]),
        ("nope/x", &["model not found: nope/x"]),
        ("plane-model", &["no model is named `plane-model`", "mock/plain-model"]),
        ("zzzz", &["no model is named `zzzz`", "`codewright models`"]),
    ] {
        let done = stage.run(["-m", wanted, "hi"])?;
        check_code(&done, 1);
        assert_eq!(done.stdout, "");
        check_has(&done.stderr, &["Error: "]);
        check_has(&done.stderr, expected);
    }
    assert!(stage.server.requests().is_empty());
    // A rejected prompt leaves no session.
    let (_server, url) = stage.serve()?;
    assert_eq!(get(&url, "/session")?, json!([]));
    Ok(())
}

#[test]
fn the_model_of_the_command_line_is_used() -> Result<()> {
    let stage = Stage::plain(talker())?;
    let mut config = Project::config(&stage.server.url());
    config["provider"]["mock"]["models"]["vendor/other"] = json!({});
    stage.project.write_config(&config)?;
    let done = stage.run(["-m", "mock/vendor/other", "hi"])?.success()?;
    assert_eq!(stage.server.main_requests()[0].body["model"], "vendor/other");
    check_has(&done.stderr, &["vendor/other"]);
    Ok(())
}

#[test]
fn an_unknown_flag_shows_the_usage() -> Result<()> {
    let stage = Stage::plain(talker())?;
    let done = stage.run(["--zzz", "hi"])?;
    check_code(&done, 1);
    assert_eq!(done.stdout, "");
    check_has(&done.stderr, &["--zzz", "Usage: codewright run"]);
    let done = stage.run(["--format", "xml", "hi"])?;
    check_code(&done, 1);
    check_has(&done.stderr, &["xml", "default, json"]);
    let help = stage.program(["run", "--help"]).finish()?.success()?;
    let flags = [
        "--command",
        "--continue",
        "--session",
        "--fork",
        "--model",
        "--agent",
        "--format",
        "--file",
        "--title",
        "--attach",
        "--password",
        "--username",
        "--dir",
        "--variant",
        "--thinking",
        "--auto",
        "--print-logs",
        "--log-level",
        "--pure",
    ];
    check_has(&help.stdout, &flags);
    let version = stage.program(["--version"]).finish()?.success()?;
    assert_eq!(
        version.stdout,
        format!(
            "{} (interface of OpenCode {})\n",
            env!("CARGO_PKG_VERSION"),
            codewright_proto::INTERFACE_VERSION
        )
    );
    Ok(())
}

#[test]
fn rule_files_reach_the_model() -> Result<()> {
    let stage = Stage::git(talker())?;
    stage.project.write("AGENTS.md", "Always whistle.")?;
    stage.run(["hi"])?.success()?;
    let system = stage.messages(0)?[0].to_string();
    let directory = stage.project.directory().display().to_string();
    check_has(&system, &["Always whistle.", &directory]);
    Ok(())
}

#[test]
fn a_missing_command_is_reported() -> Result<()> {
    let stage = Stage::plain(talker())?;
    let done = stage.run(["--command", "nope", "hi"])?;
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: ", "nope"]);
    let lines = stage.json(["--dir", ".", "--pure", "--log-level", "ERROR", "--port", "0", "hi"])?;
    assert_eq!(of_type(&lines, "text").len(), 1);
    Ok(())
}
