//! Commands that start outside of the tool `bash`: templates, background commands and start commands of worktrees are in
//! the sandbox, the user's own commands and terminals are not. Without a complete mechanism the tests are skipped.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::sandbox::is_enforced;
use crate::support::{Stage, check_has, get, new_session, post, user_text, wait_until};

/// A program that writes, and that no reading of the command line can see through.
const WRITER: &str = "import sys\nfor path in sys.argv[1:]:\n  try:\n    open(path, 'w').write('changed')\n    \
                      print('wrote', path)\n  except OSError as error:\n    print(path + ':', error.strerror)\n    \
                      sys.exit(1)\n";

/// A directory outside of the project.
struct Outside(TempDir);

impl Outside {
    fn new() -> Result<Self> {
        // The sandbox replaces `/tmp`.
        Ok(Self(TempDir::new_in("/var/tmp")?))
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("file")
    }

    /// A command that writes the file, which no rule recognizes.
    fn command(&self) -> String {
        format!("python3 writer.py inside.txt {}", self.file().to_string_lossy().replace("/var", "/var/./"))
    }
}

fn stage(script: Script) -> Result<Stage> {
    let stage = Stage::git(script)?;
    stage.project.write("writer.py", WRITER)?;
    Ok(stage)
}

#[test]
fn a_shell_command_of_a_template_is_in_the_sandbox() -> Result<()> {
    let outside = Outside::new()?;
    let stage = stage(Script::new().text("Done.").text("Done."))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let commands = stage.project.home().join(".config/opencode/command");
    std::fs::create_dir_all(&commands)?;
    std::fs::write(commands.join("try.md"), format!("Result: !`{}`", outside.command()))?;
    stage.run(["--command", "try"])?.success()?;
    let requests = stage.server.main_requests();
    check_has(
        &user_text(requests.first().context("no request")?),
        &["wrote inside.txt", "Read-only file system"],
    );
    assert!(stage.project.path("inside.txt").exists() && !outside.file().exists());
    stage.run(["--sandbox", "off", "--command", "try"])?.success()?;
    assert!(outside.file().exists());
    stage.no_problems()
}

#[test]
fn a_background_command_is_in_the_sandbox_and_names_what_it_prevented() -> Result<()> {
    let outside = Outside::new()?;
    let start = json!({"action": "start", "command": outside.command()});
    let read = json!({"action": "read", "id": "job_1", "wait": 20_000});
    let script = Script::new()
        .turn(Turn::tools([("background", start)]))
        .turn(Turn::tools([("background", read)]))
        .text("Done.");
    let stage = stage(script)?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let run = stage.program(["run", "go"]).env("OPENCODE_EXPERIMENTAL_BACKGROUND_COMMANDS", "1");
    run.finish()?.success()?;
    let results = stage.results(2)?;
    let file = outside.file().to_string_lossy().into_owned();
    check_has(&results[1], &["wrote inside.txt", &file, "is read-only", "\"sandbox\": {\"write\":"]);
    assert!(!outside.file().exists());
    stage.no_problems()
}

/// Creates a worktree whose start command writes the file `end` at its end. Returns its directory.
fn worktree(url: &str, name: &str, command: &str) -> Result<PathBuf> {
    let body = json!({"name": name, "startCommand": format!("{command}; touch end")});
    let (status, reply) = post(url, "/experimental/worktree", &body)?;
    assert_eq!(status, 200, "{reply}");
    let directory = PathBuf::from(reply["directory"].as_str().context("no directory")?);
    wait_until("the end of the start command", || directory.join("end").exists())?;
    Ok(directory)
}

#[test]
fn the_start_command_of_a_worktree_is_in_the_sandbox() -> Result<()> {
    let outside = Outside::new()?;
    let stage = stage(Script::new())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let ssh = stage.project.home().join(".ssh");
    std::fs::create_dir(&ssh)?;
    std::fs::write(ssh.join("id"), "SECRET\n")?;
    let file = outside.file();
    let command = format!(
        "(echo x > new; git add new && git commit -qm new && echo committed; cat ~/.ssh/id; touch {}; \
         env | grep -c '^http_proxy=') > log 2>&1",
        file.display()
    );
    let (server, url) = stage.serve()?;
    let directory = worktree(&url, "one", &command)?;
    let log = std::fs::read_to_string(directory.join("log"))?;
    check_has(&log, &["committed", "Read-only file system", "\n1\n"]);
    assert!(!log.contains("SECRET") && !file.exists(), "{log}");
    server.terminate()?;
    server.finish()?.success()?;
    let (_server, url) = crate::support::serve(stage.program(["serve", "--sandbox", "off"]))?;
    worktree(&url, "two", &command)?;
    assert!(file.exists());
    Ok(())
}

#[test]
fn commands_and_terminals_of_the_user_are_not_in_the_sandbox() -> Result<()> {
    let stage = stage(Script::new())?;
    let (_server, url) = stage.serve()?;
    let outside = Outside::new()?;
    let id = new_session(&url)?;
    let command = format!("touch {}", outside.file().display());
    let (status, reply) =
        post(&url, &format!("/session/{id}/shell"), &json!({"agent": "build", "command": command}))?;
    assert!(status == 200 && outside.file().exists(), "{reply}");
    let outside = Outside::new()?;
    let (status, reply) = post(&url, "/pty", &json!({"command": "touch", "args": [outside.file()]}))?;
    assert_eq!(status, 200, "{reply}");
    wait_until("the file of the terminal", || outside.file().exists())?;
    // No tool opens a terminal, so every terminal is the user's.
    let tools: Value = get(&url, "/experimental/tool/ids")?;
    let names: Vec<&str> = tools.as_array().context("no list")?.iter().filter_map(Value::as_str).collect();
    assert!(names.contains(&"bash") && !names.iter().any(|name| name.contains("pty")), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("terminal")), "{names:?}");
    Ok(())
}
