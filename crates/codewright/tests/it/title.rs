//! The session's title, which does not block anything.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use anyhow::Result;
use codewright_testkit::{Kind, Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_code, get};

/// The longest wait for a title at the end of a run, on a loaded machine.
const LIMIT: Duration = Duration::from_secs(3 + 7);

fn title(stage: &Stage) -> Result<String> {
    let (_server, url) = stage.serve()?;
    Ok(get(&url, "/session")?[0]["title"].as_str().unwrap_or_default().to_owned())
}

/// A stage whose small model has another address.
fn stage_with_small_model(url: &str) -> Result<Stage> {
    let stage = Stage::plain(Script::new().text("Done."))?;
    let mut config = Project::config(&stage.server.url());
    let mut small: Value = config["provider"]["mock"].clone();
    small["options"]["baseURL"] = format!("{url}/v1").into();
    config["provider"]["small"] = small;
    config["small_model"] = json!("small/plain-model");
    stage.project.write_config(&config)?;
    Ok(stage)
}

#[test]
fn a_session_gets_its_title_once() -> Result<()> {
    let script = Script::new().title("Fix the login page").default_turn(Turn::text("Done."));
    let stage = Stage::plain(script)?;
    stage.run(["please fix it"])?.success()?;
    assert_eq!(title(&stage)?, "Fix the login page");
    stage.run(["-c", "more"])?.success()?;
    let requests = stage.server.requests();
    assert_eq!(requests.iter().filter(|request| request.kind == Kind::Title).count(), 1);
    stage.no_problems()
}

#[test]
fn a_failed_title_does_not_fail_the_run() -> Result<()> {
    let stage = stage_with_small_model("http://127.0.0.1:1")?;
    let begun = Instant::now();
    let done = stage.run(["hi"])?;
    check_code(&done, 0);
    assert_eq!(done.stdout, "Done.\n");
    assert!(!done.stderr.contains("Error"), "{}", done.stderr);
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    assert!(title(&stage)?.starts_with("New session - "));
    Ok(())
}

#[test]
fn a_hanging_title_does_not_block_the_run() -> Result<()> {
    // Connections are accepted and never answered.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let stage = stage_with_small_model(&format!("http://{}", silent.local_addr()?))?;
    let begun = Instant::now();
    let done = stage.run(["hi"])?;
    check_code(&done, 0);
    assert_eq!(done.stdout, "Done.\n");
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    assert!(title(&stage)?.starts_with("New session - "));
    Ok(())
}
