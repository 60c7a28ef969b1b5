//! Undo and redo of changes to files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context as _, Result};
use codewright_testkit::{Project, Script, Turn};
use serde_json::json;

use crate::support::{Stage, check_code, check_has, get, post, program, serve, wait_until};

/// Every file of a project with its content and executable bit, without those of git and this program.
fn files(project: &Project) -> Result<Vec<(String, Vec<u8>, bool)>> {
    let mut found = Vec::new();
    for path in crate::support::files(project.directory())? {
        let name = path.strip_prefix(project.directory())?.display().to_string();
        if name.starts_with(".git/") || name == "opencode.json" {
            continue;
        }
        let runs = path.metadata()?.permissions().mode() & 0o100 != 0;
        found.push((name, fs::read(&path)?, runs));
    }
    Ok(found)
}

/// Two turns: one with file tools, one with a command.
fn script() -> Script {
    let command = "printf '\\0\\1\\377' > binary; rm gone.txt; mv old.txt renamed.txt; chmod +x run.sh; mkdir -p \
                   made/deep; echo x > made/deep/new.txt; printf 'a\\nb\\n' > crlf.txt";
    Script::new()
        .turn(Turn::tools([
            ("write", json!({"filePath": "new.txt", "content": "new\n"})),
            ("edit", json!({"filePath": "bom.txt", "oldString": "one", "newString": "uno"})),
        ]))
        .text("First.")
        .turn(Turn::tools([("bash", json!({"command": command}))]))
        .text("Second.")
        .text("Third.")
}

fn prepare(project: &Project) -> Result<()> {
    project.write("bom.txt", "\u{feff}one\r\ntwo\r\n")?;
    project.write("crlf.txt", "a\r\nb\r\n")?;
    project.write("binary", [0, 159, 146, 150])?;
    project.write("gone.txt", "still here\n")?;
    project.write("old.txt", "moves\n")?;
    project.write("run.sh", "#!/bin/sh\n")?;
    Ok(())
}

fn back_and_forth(stage: &Stage) -> Result<()> {
    prepare(&stage.project)?;
    let start = files(&stage.project)?;
    stage.run(["--auto", "first"])?.success()?;
    let middle = files(&stage.project)?;
    stage.run(["--auto", "-c", "second"])?.success()?;
    let end = files(&stage.project)?;
    assert!(start != middle && middle != end);
    let session = |command: &str| stage.program(["session", command]).finish()?.success();
    let done = session("undo")?;
    check_has(
        &done.stdout,
        &["Undone: second", "restored  gone.txt", "removed   renamed.txt", "restored  binary"],
    );
    assert_eq!(files(&stage.project)?, middle);
    check_has(&session("undo")?.stdout, &["Undone: first"]);
    assert_eq!(files(&stage.project)?, start);
    assert!(!stage.project.path("made").exists());
    check_code(&stage.program(["session", "undo"]).finish()?, 1);
    check_has(&session("redo")?.stdout, &["Redone: first", "Still undone"]);
    assert_eq!(files(&stage.project)?, middle);
    check_has(&session("redo")?.stdout, &["Redone: second"]);
    assert_eq!(files(&stage.project)?, end);
    let refused = stage.program(["session", "redo"]).finish()?;
    check_code(&refused, 1);
    check_has(&refused.stderr, &["has nothing to redo"]);
    session("undo")?;
    stage.run(["--auto", "-c", "third"])?.success()?;
    assert_eq!(files(&stage.project)?, middle);
    let sent = stage.messages(4)?;
    assert!(!json!(sent).to_string().contains("Second."), "the model no longer hears of it: {sent:?}");
    stage.no_problems()
}

#[test]
fn undo_and_redo_restore_every_byte_in_a_repository() -> Result<()> {
    back_and_forth(&Stage::git(script())?)
}

#[test]
fn undo_and_redo_restore_every_byte_without_a_repository() -> Result<()> {
    back_and_forth(&Stage::plain(script())?)
}

#[test]
fn later_changes_of_the_user_are_kept_unless_forced() -> Result<()> {
    let turn = Turn::tools([
        ("write", json!({"filePath": "a.txt", "content": "agent\n"})),
        ("write", json!({"filePath": "b.txt", "content": "agent\n"})),
    ]);
    let stage = Stage::git(Script::new().turn(turn).text("Done."))?;
    stage.project.write("a.txt", "start\n")?;
    stage.run(["--auto", "go"])?.success()?;
    // A commit and an edit by the user.
    stage.project.run_git(&["add", "--all"])?;
    stage.project.run_git(&["commit", "--quiet", "--message=Mine"])?;
    let head = stage.project.run_git(&["rev-parse", "HEAD"])?;
    stage.project.write("a.txt", "agent and user\n")?;
    let done = stage.program(["session", "undo"]).finish()?.success()?;
    check_has(&done.stdout, &["kept      a.txt: it was changed since", "--force"]);
    assert_eq!(stage.project.read("a.txt")?, "agent and user\n");
    assert!(!stage.project.path("b.txt").exists());
    stage.program(["session", "redo"]).finish()?.success()?;
    assert_eq!(
        (stage.project.read("a.txt")?, stage.project.read("b.txt")?),
        ("agent and user\n".into(), "agent\n".into())
    );
    stage.program(["session", "undo", "--force"]).finish()?.success()?;
    assert_eq!(stage.project.read("a.txt")?, "start\n");
    stage.program(["session", "redo"]).finish()?.success()?;
    assert_eq!(stage.project.read("a.txt")?, "agent and user\n");
    assert_eq!(stage.project.run_git(&["rev-parse", "HEAD"])?, head);
    Ok(())
}

#[test]
fn undo_in_a_subdirectory_does_not_change_the_rest_of_the_repository() -> Result<()> {
    let turn = Turn::tools([("bash", json!({"command": "echo agent > here.txt"}))]);
    let stage = Stage::git(Script::new().turn(turn).text("Done."))?;
    stage.project.write("packages/one/here.txt", "start\n")?;
    stage.project.write("packages/two/there.txt", "start\n")?;
    let inside = |args: &[&'static str]| {
        let run = program(&stage.project, args.iter().copied()).directory(stage.project.path("packages/one"));
        run.finish()?.success()
    };
    inside(&["run", "--auto", "go"])?;
    assert_eq!(stage.project.read("packages/one/here.txt")?, "agent\n");
    stage.project.write("packages/two/there.txt", "user\n")?;
    inside(&["session", "undo"])?;
    assert_eq!(stage.project.read("packages/one/here.txt")?, "start\n");
    assert_eq!(stage.project.read("packages/two/there.txt")?, "user\n");
    Ok(())
}

#[test]
fn an_undo_that_was_killed_is_finished_by_repeating_it() -> Result<()> {
    // In PostgreSQL the session belongs to the killed server for some seconds.
    if !codewright_testkit::is_default_store() {
        return Ok(());
    }
    const FILES: usize = 400;
    let command = format!("for i in $(seq {FILES}); do echo agent > f$i; done");
    let stage =
        Stage::plain(Script::new().turn(Turn::tools([("bash", json!({"command": command}))])).text("Done."))?;
    for n in 1..=FILES {
        stage.project.write(format!("f{n}"), "start\n")?;
    }
    let start = files(&stage.project)?;
    stage.run(["--auto", "go"])?.success()?;
    let end = files(&stage.project)?;
    let (server, url) = serve(program(&stage.project, ["serve"]))?;
    let sessions = get(&url, "/session")?;
    let id = sessions[0]["id"].as_str().context("no session")?.to_owned();
    let message = get(&url, &format!("/session/{id}/message"))?[0]["info"]["id"].clone();
    let body = json!({"messageID": message});
    let path = format!("/session/{id}/revert");
    let (server_url, request) = (url.clone(), (path.clone(), body.clone()));
    // There is no response, because the server is killed.
    let caller = std::thread::spawn(move || drop(post(&server_url, &request.0, &request.1)));
    let first = stage.project.path("f1");
    wait_until("the first file", || fs::read(&first).is_ok_and(|bytes| bytes == b"start\n"))?;
    // Dropping a program kills it with SIGKILL.
    drop(server);
    drop(caller.join());
    let (server, url) = serve(program(&stage.project, ["serve"]))?;
    let (status, session) = post(&url, &path, &body)?;
    assert_eq!(status, 200, "{session}");
    assert_eq!(session["revert"]["messageID"], message);
    assert_eq!(session["revert"].get("kept"), None, "{session}");
    assert!(files(&stage.project)? == start, "every file is back, and nothing else is there");
    let (_, session) = post(&url, &format!("/session/{id}/unrevert"), &json!({}))?;
    assert_eq!((session.get("revert"), session.get("kept")), (None, None));
    assert!(files(&stage.project)? == end);
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

#[test]
fn a_patch_is_undone_and_redone() -> Result<()> {
    let patch = "*** Begin Patch\n*** Add File: made/new.txt\n+new\n*** Update File: old.txt\n*** Move to: moved.txt\n\
                 @@\n-moves\n+moved\n*** Delete File: gone.txt\n*** End Patch";
    let script = Script::new().tool("apply_patch", json!({"patchText": patch})).text("Patched.");
    let stage = Stage::git(script)?;
    // Models with this name get the patch tool instead of edits.
    let mut config = Project::config(&stage.server.url());
    config["model"] = json!("mock/gpt-5-mock");
    config["provider"]["mock"]["models"]["gpt-5-mock"] =
        json!({"limit": {"context": 200_000, "output": 32_000}});
    stage.project.write_config(&config)?;
    prepare(&stage.project)?;
    let start = files(&stage.project)?;
    stage.run(["--auto", "patch it"])?.success()?;
    let end = files(&stage.project)?;
    assert!(stage.project.path("moved.txt").exists() && !stage.project.path("gone.txt").exists());
    let session = |command: &str| stage.program(["session", command]).finish()?.success();
    check_has(&session("undo")?.stdout, &["Undone: patch it"]);
    assert_eq!(files(&stage.project)?, start);
    assert!(!stage.project.path("made").exists());
    check_has(&session("redo")?.stdout, &["Redone: patch it"]);
    assert_eq!(files(&stage.project)?, end);
    stage.no_problems()
}
