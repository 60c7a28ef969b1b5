//! The tools at work on real files, and calls that make no sense.

use anyhow::Result;
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, of_type};

#[test]
fn six_tools_work_on_real_files_and_the_model_hears_of_it() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([
            ("read", json!({"filePath": "src/a.txt"})),
            ("glob", json!({"pattern": "**/*.txt"})),
            ("grep", json!({"pattern": "al+pha"})),
            ("bash", json!({"command": "wc -l < src/a.txt; echo error >&2; pwd"})),
            ("write", json!({"filePath": "new/deep/b.txt", "content": "written\n"})),
            ("edit", json!({"filePath": "c.txt", "oldString": "before", "newString": "after"})),
        ]))
        .text("Done.");
    let stage = Stage::git(script)?;
    stage.project.write("src/a.txt", "alpha\nbeta\n")?;
    stage.project.write("c.txt", "it was before\n")?;
    let lines = stage.json(["work"])?;
    let calls = of_type(&lines, "tool_use");
    assert_eq!(calls.len(), 6);
    assert!(calls.iter().all(|call| call["part"]["state"]["status"] == "completed"), "{calls:#?}");
    assert_eq!(stage.project.read("new/deep/b.txt")?, "written\n");
    assert_eq!(stage.project.read("c.txt")?, "it was after\n");
    let results = stage.results(1)?;
    let path = |relative: &str| stage.project.path(relative).display().to_string();
    let read = format!(
        "<path>{}</path>\n<type>file</type>\n<content>\n1: alpha\n2: beta\n\n(End of file - total 2 lines)\n</content>",
        path("src/a.txt")
    );
    assert_eq!(results[0], read);
    check_has(&results[1], &[&path("src/a.txt"), &path("c.txt")]);
    check_has(&results[2], &["Found 1 matches", &format!("{}:", path("src/a.txt")), "  Line 1: alpha"]);
    check_has(&results[3], &["2\n", "error\n", &path("")[..path("").len() - 1]]);
    assert_eq!(results[4], "Wrote file successfully.");
    assert_eq!(results[5], "Edit applied successfully.");
    stage.no_problems()
}

#[test]
fn calls_of_one_answer_run_side_by_side() -> Result<()> {
    // Each succeeds only if it sees the other at work.
    let wait = |own: &str, other: &str| {
        let look = format!("for i in $(seq 400); do [ -e {other} ] && exit 0; sleep 0.05; done; exit 1");
        json!({"command": format!("touch {own}; {look}")})
    };
    let script =
        Script::new().turn(Turn::tools([("bash", wait("a", "b")), ("bash", wait("b", "a"))])).text("ok");
    let stage = Stage::plain(script)?;
    let lines = stage.json(["both"])?;
    let exits: Vec<_> = of_type(&lines, "tool_use")
        .iter()
        .map(|call| call["part"]["state"]["metadata"]["exit"].clone())
        .collect();
    assert_eq!(exits, [0, 0]);
    stage.no_problems()
}

#[test]
fn a_call_starts_while_the_model_still_speaks() -> Result<()> {
    // The answer goes on only when the call of its beginning has had its effect.
    let stage = Stage::plain(Script::new().turn(
        Turn::steps().tool("bash", json!({"command": "touch started"})).text("still speaking").hang(),
    ))?;
    let run = stage.program(["run", "hi"]).start()?;
    let started = stage.project.path("started");
    crate::support::wait_until("the call's effect", || started.exists())?;
    run.interrupt()?;
    assert_eq!(run.finish()?.code, Some(130));
    Ok(())
}

#[test]
fn calls_that_make_no_sense_are_answered_and_the_turn_goes_on() -> Result<()> {
    let script = Script::new()
        .turn(
            Turn::steps()
                .tool("nonexistent_tool", json!({}))
                .tool("read", json!({"file": "x"}))
                .tool("read", "{bad json")
                .tool("read", "[1]")
                .tool("question", json!({"questions": []})),
        )
        .text("ok");
    let stage = Stage::plain(script)?;
    let lines = stage.json(["go"])?;
    let calls: Vec<&Value> = of_type(&lines, "tool_use").iter().map(|line| &line["part"]).collect();
    let find = |fits: &dyn Fn(&Value) -> bool| {
        calls.iter().copied().find(|call| fits(call)).unwrap_or_else(|| panic!("{calls:#?}"))
    };
    let unknown = find(&|call| call["state"]["input"]["tool"] == "nonexistent_tool");
    assert_eq!((&unknown["tool"], &unknown["state"]["status"]), (&json!("invalid"), &json!("completed")));
    assert_eq!(unknown["state"]["title"], "Invalid Tool");
    let reason = "Model tried to call unavailable tool 'nonexistent_tool'. Available tools: bash, edit, glob, grep, \
                  invalid, read, todowrite, write.";
    assert_eq!(unknown["state"]["input"]["error"], reason);
    assert_eq!(
        unknown["state"]["output"],
        format!("The arguments provided to the tool are invalid: {reason}")
    );
    let broken = find(&|call| {
        call["tool"] == "invalid" && call["state"]["output"].as_str().unwrap().contains("{bad json")
    });
    assert_eq!(broken["state"]["input"]["tool"], "read");
    let mismatched = find(&|call| call["state"]["input"]["file"] == "x");
    assert_eq!(mismatched["state"]["status"], "error");
    assert_eq!(
        mismatched["state"]["error"],
        "The read tool was called with invalid arguments: SchemaError(Missing key\n  at [\"filePath\"]).\nPlease \
         rewrite the input so it satisfies the expected schema."
    );
    // Nobody can answer a question here, so it is not on offer.
    find(&|call| call["state"]["input"]["tool"] == "question" && call["tool"] == "invalid");
    assert_eq!(stage.results(1)?.len(), 5);
    assert_eq!(of_type(&lines, "text")[0]["part"]["text"], "ok");
    stage.no_problems()
}

#[test]
fn a_long_output_is_cut_for_the_model_and_kept_whole() -> Result<()> {
    let script = Script::new().tool("bash", json!({"command": "seq 100000"})).text("long");
    let stage = Stage::plain(script)?;
    stage.run(["hi"])?.success()?;
    let result = &stage.results(1)?[0];
    assert!(result.len() < 60_000 && result.ends_with("99999\n100000\n"), "{}", result.len());
    let (_, kept) = result.split_once("Full output saved to: ").unwrap();
    let kept = std::fs::read_to_string(kept.lines().next().unwrap().trim())?;
    assert!(kept.starts_with("1\n2\n") && kept.ends_with("\n100000\n"));
    Ok(())
}

#[test]
fn a_command_has_no_input_and_a_deadline() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([
            ("bash", json!({"command": "cat; echo read"})),
            ("bash", json!({"command": "echo begun; sleep 600", "timeout": 300})),
        ]))
        .text("end");
    let stage = Stage::plain(script)?;
    stage.program(["run"]).stdin("typed").finish()?.success()?;
    let results = stage.results(1)?;
    assert_eq!(results[0], "read\n");
    check_has(&results[1], &["begun\n", "<shell_metadata>", "300"]);
    Ok(())
}

#[test]
fn a_list_of_things_to_do_is_stored_announced_and_shown() -> Result<()> {
    let todo =
        |content: &str, status: &str| json!({"content": content, "status": status, "priority": "high"});
    let first = json!({"todos": [todo("Do A", "in_progress"), todo("Do B", "pending")]});
    let second = json!({"todos": [todo("Do A", "completed"), todo("Do B", "in_progress")]});
    let script = Script::new().tool("todowrite", first).tool("todowrite", second.clone()).text("ok");
    let stage = Stage::plain(script)?;
    let lines = stage.json(["go"])?;
    let titles: Vec<_> =
        of_type(&lines, "tool_use").iter().map(|call| call["part"]["state"]["title"].clone()).collect();
    assert_eq!(titles, ["2 todos", "1 todos"]);
    assert_eq!(serde_json::from_str::<Value>(&stage.results(2)?[1])?, second["todos"]);
    let (server, url) = stage.serve()?;
    let session = crate::support::session_of(&lines)?;
    assert_eq!(crate::support::get(&url, &format!("/session/{session}/todo"))?, second["todos"]);
    server.terminate()?;
    server.finish()?.success()?;
    stage.no_problems()
}
