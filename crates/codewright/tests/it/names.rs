//! Protected names: commands never create them, and what the user creates at the same time stays. Without a complete
//! mechanism on this machine the tests are skipped, with a note.

use std::process::Command;

use anyhow::{Context as _, Result};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::sandbox::is_enforced;
use crate::support::{Stage, check_has, wait_until};

/// Tries each path that it gets, as a file.
const CREATOR: &str = "import os, sys
for path in sys.argv[1:]:
    try:
        os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
        open(path, 'w').close()
        print('created', path)
    except OSError as error:
        print('refused', path, error.strerror)
";

/// The rows of the table of control files, with a name for each pattern.
pub(crate) fn rows() -> Vec<String> {
    let table = include_str!("../../../permission/src/control/table.rs");
    let rows = table
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("row(Here") || line.starts_with("row(Any"));
    let names = rows.filter_map(|line| line.split_once("&[")?.1.split_once(']')).map(|(names, _)| names);
    names.map(|names| names.replace("\", \"", "/").replace('"', "").replace('*', "x")).collect()
}

/// Runs git as the user does.
fn git(stage: &Stage, args: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(args)
        .current_dir(stage.project.path("."));
    let output = command.env("HOME", stage.project.home()).output()?;
    Ok(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn a_command_creates_no_row_of_the_table() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    stage.project.write("creator.py", CREATOR)?;
    let rows = rows();
    assert!(rows.len() > 150, "{}", rows.len());
    let mut args: Vec<&str> = vec!["sandbox", "run", "--", "python3", "creator.py"];
    args.extend(rows.iter().map(String::as_str));
    let done = stage.program(args).finish()?.success()?;
    for row in rows.iter().filter(|row| *row != ".git") {
        check_has(&done.stdout, &[&format!("refused {row} ")]);
        assert!(stage.project.path(row).symlink_metadata().is_err(), "{row}");
    }
    Ok(())
}

#[test]
fn the_model_is_told_which_name_was_refused() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([(
            "bash",
            json!({"command": "python3 -c \"import os\ntry: os.mkdir('.opencode')\nexcept OSError: pass\""}),
        )]))
        .text("Done.");
    let stage = Stage::git(script)?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    stage.run(["--auto", "go"])?.success()?;
    check_has(&stage.results(1)?[0], &["was refused", "/.opencode`", "\"write\":["]);
    assert!(!stage.project.path(".opencode").exists());
    Ok(())
}

#[test]
fn what_the_user_creates_while_a_command_runs_stays() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    git(&stage, &["checkout", "-qb", "other"])?;
    stage.project.write(".opencode/command/x.md", "the user's")?;
    git(&stage, &["add", "-A"])?;
    git(&stage, &["commit", "-qm", "x"])?;
    git(&stage, &["checkout", "-q", "-"])?;
    let line = "touch started; while [ ! -e end ]; do mkdir .opencode; echo evil > opencode.json; sleep 0.01; done 2>/dev/null; rm started";
    let running = stage.program(["sandbox", "run", "--", "sh", "-c", line]);
    let result = std::thread::scope(|scope| -> Result<String> {
        let running = scope.spawn(move || running.finish());
        let started = stage.project.path("started");
        wait_until("the command starts", || started.exists())?;
        let said = git(&stage, &["checkout", "-q", "other"])?;
        assert_eq!(said, "");
        stage.project.write("opencode.json", "{}")?;
        std::thread::sleep(std::time::Duration::from_millis(600));
        assert_eq!(stage.project.read("opencode.json")?, "{}");
        assert_eq!(stage.project.read(".opencode/command/x.md")?, "the user's");
        stage.project.write("end", "")?;
        let done = running.join().ok().context("the thread failed")??;
        Ok(format!("{}{}", done.stdout, done.stderr))
    })?;
    check_has(&result, &["could not create or change the protected"]);
    assert_eq!(stage.project.read("opencode.json")?, "{}");
    assert_eq!(git(&stage, &["status", "--short", ".opencode"])?, "");
    Ok(())
}

#[test]
fn git_of_the_user_runs_nothing_that_a_command_left() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let mark = stage.project.path("mark");
    let evil = format!("[core]\n\tfsmonitor = touch {} #\n", mark.display());
    git(&stage, &["config", "core.hooksPath", "ci/hooks"])?;
    git(&stage, &["config", "include.path", "../extra.ini"])?;
    stage.project.write("evil", &evil)?;
    for line in [
        "git init -q sub; cat evil >> sub/.git/config; git -C sub commit -q --allow-empty -m x; git add sub",
        "mkdir -p s2/.git && cp -r .git/. s2/.git; cp evil s2/.git/config; git add s2",
        "git clone -q . s3; cat evil >> s3/.git/config; git add s3",
        "cp -r .git bare; cat evil >> bare/config; mkdir s4; echo 'gitdir: ../bare' > s4/.git; git add s4",
        "cp -r .git bare2; mkdir s5; ln -s ../bare2 s5/.git; git add s5",
        "cp evil extra.ini",
        "mkdir -p ci/hooks; printf '#!/bin/sh\ntouch mark' > ci/hooks/pre-commit; chmod +x ci/hooks/pre-commit",
        "mkdir -p n/hooks; printf '#!/bin/sh\ntouch mark' > n/hooks/pre-commit; chmod +x n/hooks/pre-commit; mv n ci",
        "cat evil >> .git/config; git config core.fsmonitor evil; mkdir -p .git/modules/a/b; cp evil .git/modules/a/b/config",
    ] {
        stage.program(["sandbox", "run", "--", "sh", "-c", line]).finish()?;
        git(&stage, &["status"])?;
        git(&stage, &["commit", "-q", "--allow-empty", "-m", "x"])?;
        assert!(!mark.exists(), "{line}");
    }
    assert!(!stage.project.path(".git/modules/a/b/config").exists());
    Ok(())
}

#[test]
fn a_machine_that_cannot_compare_names_says_so_and_asks() -> Result<()> {
    let script =
        Script::new().turn(Turn::tools([("bash", json!({"command": "mkdir .opencode"}))])).text("Done.");
    let stage = Stage::git(script)?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let unchecked = |args: &[&'static str]| {
        stage.program(args.iter().copied()).env("CODEWRIGHT_SANDBOX_MECHANISM", "unchecked")
    };
    let done = unchecked(&["sandbox"]).finish()?.success()?;
    check_has(&done.stdout, &["not enforced: Commands can create control files that do not exist yet."]);
    let report: Value = serde_json::from_str(&unchecked(&["sandbox", "--json"]).finish()?.stdout)?;
    assert_eq!(report["complete"], false);
    unchecked(&["run", "go"]).finish()?;
    assert!(!stage.project.path(".opencode").exists(), "it was not asked");
    Ok(())
}
