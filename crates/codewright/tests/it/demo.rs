//! The demonstration, without keys and configuration.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};
use codewright_testkit::{Project, Run};

use crate::support::{check_code, check_harmless, check_has, files, lines, of_type};

/// The program without a key, with an empty home, and with only these commands.
fn demo(project: &Project, commands: &[&str], args: &[&str]) -> Result<Run> {
    let bin = project.path("bin");
    fs::create_dir_all(&bin)?;
    for command in commands {
        let found = ["/bin", "/usr/bin", "/usr/local/bin"].map(|dir| Path::new(dir).join(command));
        let found = found.into_iter().find(|path| path.exists()).context("no such command")?;
        if !bin.join(command).exists() {
            symlink(found, bin.join(command))?;
        }
    }
    let temporary = project.path("tmp");
    fs::create_dir_all(&temporary)?;
    let run = Run::new(env!("CARGO_BIN_EXE_codewright"), project).args(["demo"]).args(args);
    Ok(run.env("PATH", bin).env("TMPDIR", temporary))
}

#[test]
fn the_demo_fixes_its_project_and_leaves_no_files() -> Result<()> {
    let project = Project::plain()?;
    fs::write(project.home().join("untouched"), "mine")?;
    let before = files(project.home())?;
    let done = demo(&project, &["sh", "git"], &[])?.finish()?.success()?;
    check_has(&done.stdout, &["The test passes now."]);
    check_has(
        &done.stderr,
        &["script", "Edit total.sh", "FAILED: total of 2 3", "ok: total of 20 20 2 is 42"],
    );
    check_harmless(&done.stdout);
    check_harmless(&done.stderr);
    assert_eq!(files(project.home())?, before);
    assert_eq!(files(&project.path("tmp"))?, [""; 0].map(std::path::PathBuf::from));
    Ok(())
}

#[test]
fn the_kept_project_passes_its_test() -> Result<()> {
    let project = Project::plain()?;
    let done = demo(&project, &["sh", "git"], &["--keep"])?.finish()?.success()?;
    let kept = done.stderr.lines().find_map(|line| line.strip_prefix("The project is kept in "));
    let kept = Path::new(kept.context("it is not said where")?.trim());
    Run::new("sh", &project).args(["test.sh"]).directory(kept).finish()?.success()?;
    let git = |args: &[&str]| {
        Ok::<_, anyhow::Error>(
            Run::new("git", &project).args(args).directory(kept).finish()?.success()?.stdout,
        )
    };
    assert_eq!(git(&["status", "--porcelain"])?, " M total.sh\n");
    Ok(())
}

#[test]
fn the_demo_works_without_git_and_with_a_broken_configuration() -> Result<()> {
    let project = Project::plain()?;
    project.write("opencode.json", "{ broken")?;
    let global = project.home().join(".config/opencode");
    fs::create_dir_all(&global)?;
    fs::write(global.join("opencode.json"), "{ broken")?;
    let run = demo(&project, &["sh"], &["--format", "json"])?;
    let done =
        run.env("OPENCODE_CONFIG_CONTENT", "{ broken").env("HTTP_PROXY", "http://127.0.0.1:1").finish()?;
    check_code(&done, 0);
    let lines = lines(&done)?;
    let calls = of_type(&lines, "tool_use");
    let tools: Vec<_> = calls.iter().map(|call| call["part"]["tool"].as_str().unwrap()).collect();
    assert_eq!(tools.iter().filter(|tool| **tool == "bash").count(), 2);
    assert!(tools.contains(&"edit") && tools.contains(&"glob") && tools.contains(&"read"), "{tools:?}");
    assert!(calls.iter().all(|call| call["part"]["state"]["status"] == "completed"), "{calls:#?}");
    Ok(())
}
