//! The scripts in `examples/scripts/`, run with a scripted model.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};
use codewright_testkit::{Finished, Project, Run, Script};
use serde_json::json;

use crate::support::{DEADLINE, Stage, check_code, check_has};

/// Runs an example with a program that finds `codewright` on its `PATH`.
fn example(stage: &Stage, program: &str, script: &str, args: &[&str]) -> Result<Finished> {
    let bin = stage.project.home().join("bin");
    std::fs::create_dir_all(&bin)?;
    let link = bin.join("codewright");
    if !link.exists() {
        symlink(env!("CARGO_BIN_EXE_codewright"), link)?;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scripts").join(script);
    let path = path.to_str().context("the path is not UTF-8")?;
    let run = Run::new(program, &stage.project).args([path]).args(args.iter().copied());
    let run = run.env("PATH", search_path(&stage.project, bin.as_os_str().to_owned())?);
    run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").deadline(DEADLINE).finish()
}

/// Returns the search path of a project with a directory in front.
fn search_path(project: &Project, first: OsString) -> Result<OsString> {
    let variables = project.environment();
    let path = variables.into_iter().find(|(name, _)| *name == "PATH").context("there is no PATH")?.1;
    Ok([first, path].join(&OsString::from(":")))
}

/// Plays `review.sh` with an answer of the model.
fn review(answer: &str) -> Result<Finished> {
    let stage = Stage::git(Script::new().text(answer))?;
    stage.project.run_git(&["checkout", "-q", "-b", "work"])?;
    stage.project.write("new.txt", "a change\n")?;
    stage.project.run_git(&["add", "new.txt"])?;
    stage.project.run_git(&["commit", "-q", "-m", "Change"])?;
    let done = example(&stage, "bash", "review.sh", &["HEAD~1"])?;
    let prompt = stage.messages(0)?;
    check_has(&json!(prompt).to_string(), &["Review this diff", "+a change"]);
    Ok(done)
}

#[test]
fn the_review_fails_if_it_has_findings() -> Result<()> {
    let done = review("new.txt:1: the file is empty")?;
    check_code(&done, 1);
    check_has(&done.stdout, &["new.txt:1"]);
    Ok(())
}

#[test]
fn the_review_succeeds_without_findings() -> Result<()> {
    check_code(&review("No findings")?, 0);
    Ok(())
}

#[test]
fn the_summary_contains_the_answer_and_the_changed_files() -> Result<()> {
    let script = Script::new()
        .tool("write", json!({"filePath": "new.txt", "content": "text\n"}))
        .text("The file is written.");
    let stage = Stage::git(script)?;
    let done = example(&stage, "python3", "summary.py", &["write", "a", "file"])?.success()?;
    check_has(&done.stdout, &["The file is written.", "changed: new.txt", "cost: $"]);
    assert_eq!(stage.project.read("new.txt")?, "text\n");
    stage.no_problems()
}
