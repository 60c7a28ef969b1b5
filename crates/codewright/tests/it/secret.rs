//! Keys stay where they belong.

use anyhow::Result;
use codewright_testkit::{Project, Script, Turn};
use serde_json::json;

use crate::support::{Stage, check_code, check_has, files, holds_bytes, lines, of_type};

const KEY: &str = "sk-0123456789-very-secret-key";

#[test]
fn a_refused_key_shows_nowhere() -> Result<()> {
    let stage = Stage::git(Script::new().turn(Turn::http_error(401)).turn(Turn::http_error(401)).text("x"))?;
    let mut config = Project::config(&stage.server.url());
    config["provider"]["mock"]["options"]["apiKey"] = "{env:MY_KEY}".into();
    // Some people have it in the address.
    config["provider"]["mock"]["options"]["baseURL"] = format!("{}/v1?key={KEY}", stage.server.url()).into();
    stage.project.write_config(&config)?;
    for format in ["default", "json"] {
        let args = ["run", "--format", format, "--print-logs", "--log-level", "DEBUG", "hi"];
        let done = stage.program(args).env("MY_KEY", KEY).finish()?;
        check_code(&done, 1);
        assert!(!done.stdout.contains(KEY) && !done.stderr.contains(KEY), "{}{}", done.stdout, done.stderr);
    }
    let header = format!("Bearer {KEY}");
    assert_eq!(stage.server.main_requests()[0].headers.get("authorization"), Some(header.as_str()));
    let kept = files(stage.project.home())?;
    assert!(kept.iter().any(|path| path.ends_with("codewright.db")), "{kept:?}");
    // The user has written it there.
    for path in kept.iter().filter(|path| !path.ends_with(".config/opencode/opencode.json")) {
        assert!(!holds_bytes(&std::fs::read(path)?, KEY), "{}", path.display());
    }
    Ok(())
}

#[test]
fn commands_do_not_see_the_keys() -> Result<()> {
    let stage = Stage::plain(Script::new().tool("bash", json!({"command": "env"})).text("Done."))?;
    let run = stage.program(["run", "--format", "json", "hi"]);
    let secret = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "OPENCODE_SERVER_PASSWORD"];
    let run = secret.iter().fold(run, |run, name| run.env(name, KEY));
    let done = run.env("GITHUB_TOKEN", "needed-by-gh").env("MY_WORD", "kept").finish()?.success()?;
    let lines = lines(&done)?;
    let output = of_type(&lines, "tool_use")[0]["part"]["state"]["output"].as_str().unwrap();
    assert!(!output.contains(KEY) && !output.contains("API_KEY"), "{output}");
    check_has(
        output,
        &["AGENT=1\n", "OPENCODE=1\n", "OPENCODE_PID=", "PATH=", "HOME=", "MY_WORD=kept", "GITHUB_TOKEN="],
    );
    Ok(())
}
