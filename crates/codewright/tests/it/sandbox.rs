//! Commands of the model in the sandbox. Without a complete mechanism on this machine they are skipped, with a note.

use anyhow::{Context as _, Result};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has};

/// Whether this machine can enforce the sandbox. Reports the reason if it cannot.
#[expect(clippy::print_stderr, reason = "the results must show that the test was skipped")]
pub(crate) fn is_enforced(stage: &Stage) -> Result<bool> {
    let done = stage.program(["sandbox", "--json"]).finish()?.success()?;
    let report: Value = serde_json::from_str(&done.stdout).context("not JSON")?;
    assert_eq!(report["mode"], "workspace");
    let is_complete = report["complete"] == true;
    if !is_complete {
        eprintln!("skipped: the sandbox is not complete here: {}", report["reasons"]);
    }
    Ok(is_complete)
}

/// A program that writes, and that no reading of the command line can see through.
const WRITER: &str = "import sys\nfor path in sys.argv[1:]:\n  try:\n    open(path, 'w').write('changed')\n    \
                      print('wrote', path)\n  except OSError as error:\n    print('failed', path, error.strerror)\n";

fn stage(command: &str) -> Result<Stage> {
    let script = Script::new().turn(Turn::tools([("bash", json!({"command": command}))])).text("Done.");
    let stage = Stage::git(script)?;
    stage.project.write("writer.py", WRITER)?;
    Ok(stage)
}

#[test]
fn a_command_writes_the_worktree_and_nothing_else() -> Result<()> {
    let outside = tempfile::TempDir::new_in("/var/tmp")?;
    let target = outside.path().join("file");
    let command = format!(
        "python3 writer.py inside.txt {} .git/config .mcp.json /tmp/private; git add -A && git commit -qm x && echo committed",
        target.to_string_lossy().replace("/var", "/var/./")
    );
    let stage = stage(&command)?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let config = stage.project.read(".git/config")?;
    stage.run(["--auto", "go"])?.success()?;
    let results = stage.results(1)?;
    check_has(
        &results[0],
        &[
            "wrote inside.txt",
            "failed .git/config",
            "wrote /tmp/private",
            "failed .mcp.json",
            "and was refused",
            "/.mcp.json`",
        ],
    );
    assert_eq!(stage.project.read("inside.txt")?, "changed");
    assert_eq!(stage.project.read(".git/config")?, config);
    assert!(!target.exists() && !stage.project.path(".mcp.json").exists(), "{}", results[0]);
    assert!(results[0].contains("committed"), "{}", results[0]);
    stage.no_problems()
}

#[test]
fn the_plan_agent_writes_nothing() -> Result<()> {
    let stage = stage("python3 writer.py inside.txt /tmp/private")?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    stage.run(["--auto", "--agent", "plan", "go"])?.success()?;
    let results = stage.results(1)?;
    check_has(&results[0], &["failed inside.txt", "wrote /tmp/private"]);
    assert!(!stage.project.path("inside.txt").exists());
    Ok(())
}

#[test]
fn a_command_can_be_tried_in_the_sandbox() -> Result<()> {
    let stage = stage("true")?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let tried = ["sandbox", "--sandbox", "read-only", "run", "--", "python3", "writer.py", "inside.txt"];
    let done = stage.program(tried).finish()?.success()?;
    assert_eq!(done.stdout, "failed inside.txt Read-only file system\n");
    Ok(())
}

#[test]
fn a_repository_cannot_switch_the_sandbox_on_or_off() -> Result<()> {
    let stage = stage("true")?;
    stage.project.write(".opencode/opencode.json", r#"{"sandbox": {"mode": "off", "outer": true}}"#)?;
    let done = stage.program(["sandbox", "--json"]).finish()?.success()?;
    let report: Value = serde_json::from_str(&done.stdout)?;
    assert_eq!(report["mode"], "workspace");
    Ok(())
}

#[test]
fn an_invalid_path_is_a_located_error() -> Result<()> {
    let stage = stage("true")?;
    let config = |value: Value| -> Result<_> {
        let mut config = codewright_testkit::Project::config(&stage.server.url());
        config["sandbox"] = value;
        stage.project.write_config(&config)?;
        stage.program(["sandbox"]).finish()
    };
    for (value, key) in [
        (json!({"write": ["relative"]}), "sandbox.write[0]"),
        (json!({"write": ["/srv", "~"]}), "sandbox.write[1]"),
        (json!({"write": ["/"]}), "sandbox.write[0]"),
        (json!({"write": ["~/../x"]}), "sandbox.write[0]"),
        (json!({"hide": ["~/x/*"]}), "sandbox.hide[0]"),
        (json!({"mode": "none"}), "sandbox.mode"),
    ] {
        let done = config(value.clone())?;
        assert_ne!(done.code, Some(0), "{value}");
        check_has(&done.stderr, &["opencode.json", key]);
    }
    // Contradictions have a rule.
    let done = config(json!({"write": ["/srv", "/srv/missing"], "hide": ["/srv"]}))?.success()?;
    check_has(&done.stderr, &["`/srv`; it is hidden"]);
    Ok(())
}

#[test]
fn the_home_directory_as_worktree_is_not_writable() -> Result<()> {
    let stage = stage("true")?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let home = stage.project.home();
    std::fs::write(home.join("writer.py"), WRITER)?;
    let tried = ["sandbox", "run", "--", "python3", "writer.py", "mine.txt"];
    let done = stage.program(tried).directory(home).finish()?.success()?;
    assert_eq!(done.stdout, "failed mine.txt Read-only file system\n");
    // A link to a project is the project.
    let link = home.join("link");
    std::os::unix::fs::symlink(stage.project.directory(), &link)?;
    let done = stage.program(tried).directory(&link).finish()?.success()?;
    assert_eq!(done.stdout, "wrote mine.txt\n");
    Ok(())
}
