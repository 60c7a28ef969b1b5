//! Unusual situations of everyday work.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use codewright_testkit::{Project, Run, Script, Turn};
use serde_json::json;

use crate::support::{
    Stage, check_code, check_has, is_running, lines, of_type, program, session_of, user_text, wait_until,
};

/// Much less than the default deadline of a command, but generous.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn processes_that_a_command_leaves_do_not_block_and_end_with_it() -> Result<()> {
    let own = format!("6006.{}", std::process::id());
    let command = format!("sleep {own} & echo started");
    let stage = Stage::plain(Script::new().tool("bash", json!({"command": command})).text("On."))?;
    let begun = Instant::now();
    stage.run(["hi"])?.success()?;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(stage.results(1)?[0].trim(), "started");
    wait_until("the end of what was left", || !is_running(&own))
}

#[test]
fn pipes_devices_and_link_cycles_do_not_block() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([
            ("read", json!({"filePath": "pipe"})),
            ("read", json!({"filePath": "zero"})),
            ("grep", json!({"pattern": "inside"})),
            ("glob", json!({"pattern": "**/*.txt"})),
            ("edit", json!({"filePath": "pipe", "oldString": "a", "newString": "b"})),
            ("write", json!({"filePath": "pipe", "content": "b"})),
            ("bash", json!({"command": "head -c 3000000 /dev/zero"})),
        ]))
        .text("On.");
    let stage = Stage::plain(script)?;
    let make = "mkfifo pipe; mkdir circle; ln -s .. circle/up; ln -s /dev/zero zero; ln -s absent dangling; \
                echo inside > circle/a.txt";
    Run::new("sh", &stage.project).args(["-c", make]).finish()?.success()?;
    let begun = Instant::now();
    stage.run(["--auto", "hi"])?.success()?;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let results = stage.results(1)?;
    check_has(&results[2], &["Found 1 matches", "circle/a.txt"]);
    check_has(&results[3], &["circle/a.txt"]);
    for n in [0, 1, 4, 5] {
        assert!(!results[n].contains("successfully") && results[n].len() < 1000, "{n}: {}", results[n]);
    }
    for attached in ["pipe", "zero"] {
        let done = stage.run(["hi", "-f", attached])?;
        assert!(done.code.is_some_and(|code| code <= 1), "{done:?}");
    }
    stage.no_problems()
}

#[test]
fn two_runs_of_one_session_keep_it_consistent() -> Result<()> {
    let stage = Stage::git(Script::new().default_turn(Turn::text("Done.").chunk_size(1).chunk_delay_ms(20)))?;
    let id = session_of(&stage.json(["one"])?)?;
    thread::scope(|scope| {
        let run = |prompt| {
            let (stage, id) = (&stage, id.as_str());
            scope.spawn(move || stage.run(["-s", id, prompt]))
        };
        let both = [run("two"), run("three")];
        for done in both {
            let done = done.join().unwrap()?;
            assert!(done.code.is_some_and(|code| code <= 1), "{done:?}");
        }
        Ok::<_, anyhow::Error>(())
    })?;
    stage.run(["-s", &id, "four"])?.success()?;
    check_has(&user_text(stage.server.main_requests().last().unwrap()), &["one", "two", "three", "four"]);
    stage.no_problems()
}

#[test]
fn a_run_without_a_user_rejects_permission_requests() -> Result<()> {
    let script = Script::new().default_turn(Turn::steps().tool("bash", json!({"command": "ls src | wc -l"})));
    let stage = Stage::plain(script)?;
    let mut config = Project::config(&stage.server.url());
    config["permission"] = "ask".into();
    stage.project.write_config(&config)?;
    let done = stage.run(["hi"])?.success()?;
    check_has(&done.stderr, &["permission requested: bash (ls src, wc -l); auto-rejecting"]);
    config["permission"] = json!({});
    stage.project.write_config(&config)?;
    let run = program(&stage.project, ["run", "--auto", "--format", "json", "hi"]);
    let stage_again =
        Stage::plain(Script::new().tool("bash", json!({"command": "ls"})).text("Not allowed."))?;
    stage.project.configure(&stage_again.server.url())?;
    let done = run.env("OPENCODE_PERMISSION", r#"{"bash": {"ls": "deny"}}"#).finish()?.success()?;
    let lines = lines(&done)?;
    assert_eq!(of_type(&lines, "tool_use")[0]["part"]["state"]["status"], "error");
    Ok(())
}

#[test]
fn many_calls_in_one_answer_are_all_answered() -> Result<()> {
    let calls = (0..60).map(|n| ("bash", json!({"command": format!("echo call {n}")})));
    let stage = Stage::plain(Script::new().turn(Turn::tools(calls)).text("On."))?;
    stage.run(["hi"])?.success()?;
    let results = stage.results(1)?;
    assert_eq!(results.len(), 60);
    for (n, result) in results.iter().enumerate() {
        assert_eq!(*result, format!("call {n}\n"));
    }
    stage.no_problems()
}

#[test]
fn a_turn_of_many_steps_succeeds() -> Result<()> {
    let steps = (0..40).fold(Script::new(), |script, n| {
        script.turn(
            Turn::text(format!("Step {n}.")).tool("bash", json!({"command": format!("echo {n} >> log")})),
        )
    });
    let stage = Stage::plain(steps.text("Finished."))?;
    let done = stage.run(["hi"])?;
    check_code(&done, 0);
    assert!(done.stdout.ends_with("Step 39.\nFinished.\n"));
    assert_eq!(stage.project.read("log")?.lines().count(), 40);
    assert_eq!(stage.server.main_requests().len(), 41);
    stage.no_problems()
}

#[test]
fn parallel_edits_of_one_file_are_all_applied() -> Result<()> {
    let edits = (0..20).map(|n| {
        let line = |word: &str| format!("{word} {n};");
        ("edit", json!({"filePath": "a.txt", "oldString": line("old"), "newString": line("new")}))
    });
    let stage = Stage::plain(Script::new().turn(Turn::tools(edits)).text("On."))?;
    let text = |word: &str| (0..20).map(|n| format!("{word} {n};\n")).collect::<String>();
    stage.project.write("a.txt", text("old"))?;
    stage.run(["hi"])?.success()?;
    assert_eq!(stage.project.read("a.txt")?, text("new"));
    Ok(())
}
