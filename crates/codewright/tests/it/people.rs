//! The text output of `run`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use codewright_testkit::{Finished, Flood, Run, Script, Turn, Usage};
use serde_json::json;

use crate::support::{Stage, check_code, check_harmless, check_has, wait_until};

#[test]
fn stdout_is_the_answer_and_stderr_the_rest() -> Result<()> {
    let script = Script::new()
        .turn(Turn::text("I will look.").tool("read", json!({"filePath": "a.txt"})))
        .turn(
            Turn::text("Now the edit.")
                .tool("edit", json!({"filePath": "a.txt", "oldString": "two", "newString": "zwei"})),
        )
        .tool("bash", json!({"command": "echo from-bash; exit 3"}))
        .turn(Turn::text("All **done**.").usage(Usage { input: 1000, output: 7, ..Usage::default() }));
    let stage = Stage::git(script)?;
    stage.project.write("a.txt", "one\ntwo\nthree\n")?;
    let done = stage.run(["do it"])?.success()?;
    assert_eq!(done.stdout, "I will look.\nNow the edit.\nAll **done**.\n");
    let lines: Vec<_> = done.stderr.lines().collect();
    assert_eq!(lines[0], "> build \u{b7} plain-model");
    let line = |start: &str| {
        let line = lines.iter().find(|line| line.starts_with(start));
        line.with_context(|| format!("no line `{start}` in {lines:#?}"))
    };
    check_has(line("\u{2192} Read a.txt")?, &["3 lines"]);
    check_has(line("\u{2190} Edit a.txt")?, &["+1 -1"]);
    check_has(line("$ echo from-bash; exit 3")?, &["exit 3"]);
    check_has(&done.stderr, &["\n  -two\n", "\n  +zwei\n", "\n  from-bash\n"]);
    // Three answers of 100 and 20 tokens each, and the last one.
    check_has(lines.last().context("nothing was said")?, &["1300 tokens in", "67 out"]);
    check_harmless(&done.stdout);
    check_harmless(&done.stderr);
    assert_eq!(stage.project.read("a.txt")?, "one\nzwei\nthree\n");
    stage.no_problems()
}

#[test]
fn text_is_printed_before_the_answer_ends() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::text("First line.\n").hang()))?;
    let mut run = stage.program(["run", "hi"]).start()?;
    assert_eq!(run.line()?.as_deref(), Some("First line."));
    run.interrupt()?;
    check_code(&run.finish()?, 130);
    Ok(())
}

#[test]
fn reasoning_is_only_printed_with_the_flag_as_text() -> Result<()> {
    let answer = || Turn::steps().reasoning("Deep thought.").text("Said.");
    let stage = Stage::plain(Script::new().turn(answer()).turn(answer()))?;
    let quiet = stage.run(["hi"])?.success()?;
    assert!(!quiet.stderr.contains("Deep thought.") && !quiet.stdout.contains("Deep thought."));
    let loud = stage.run(["--thinking", "hi"])?.success()?;
    check_has(&loud.stderr, &["Deep thought."]);
    assert_eq!(loud.stdout, "Said.\n");
    Ok(())
}

#[test]
fn the_cost_is_printed_if_the_model_has_prices() -> Result<()> {
    let usage = Usage { input: 1_000_000, output: 100_000, ..Usage::default() };
    let stage = Stage::plain(Script::new().turn(Turn::text("Dear.").usage(usage)))?;
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    config["provider"]["mock"]["models"]["plain-model"]["cost"] = json!({"input": 3, "output": 15});
    stage.project.write_config(&config)?;
    let done = stage.run(["hi"])?.success()?;
    check_has(done.stderr.lines().last().context("nothing was said")?, &["$4.5"]);
    Ok(())
}

/// The program on a pseudo-terminal; `None` if that is not possible.
#[expect(clippy::print_stderr, reason = "the results must show that the test was skipped")]
fn on_a_terminal(stage: &Stage, arguments: &str) -> Result<Option<Finished>> {
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no `script` program to make a terminal with");
        return Ok(None);
    }
    let program = format!("{} {arguments}", env!("CARGO_BIN_EXE_codewright"));
    let run = Run::new("script", &stage.project).args(["-qec", &program, "/dev/null"]);
    Ok(Some(run.env("SHELL", "/bin/sh").env("TERM", "xterm").finish()?))
}

#[test]
fn a_terminal_gets_only_own_colours() -> Result<()> {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[35mpink";
    let script = Script::new()
        .turn(Turn::text(evil).tool("bash", json!({"command": format!("echo '{evil}'; exit 1")})))
        .text("Done.");
    let stage = Stage::plain(script)?;
    let Some(done) = on_a_terminal(&stage, "run hi")? else { return Ok(()) };
    check_code(&done, 0);
    check_has(&done.stdout, &["\u{1b}[90m> build", "\u{1b}[31m", "\r\nDone.\r\n"]);
    for foreign in ["\u{1b}]", "\u{1b}[2J", "\u{1b}[35m", "\u{7}"] {
        assert!(!done.stdout.contains(foreign), "{:?}", done.stdout);
    }
    Ok(())
}

#[test]
fn on_a_terminal_piped_input_is_not_awaited() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let Some(done) = on_a_terminal(&stage, "run")? else { return Ok(()) };
    check_code(&done, 1);
    check_has(&done.stdout, &["You must provide a message or a command"]);
    Ok(())
}

#[test]
fn a_large_output_is_complete_and_in_order() -> Result<()> {
    let flood = Flood { bytes: 2_000_000, deltas: 40_000 };
    let stage = Stage::plain(Script::new().turn(Turn::steps().flood(flood.bytes, flood.deltas)))?;
    let done = stage.run(["hi"])?.success()?;
    assert!(done.stdout.trim_end() == flood.text().trim_end(), "{} bytes", done.stdout.len());
    Ok(())
}

#[test]
fn a_closed_pipe_ends_the_run_quietly() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::text("First\n").flood(2_000_000, 4_000).hang()))?;
    for format in ["default", "json"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_codewright"))
            .args(["run", "--format", format, "hi"])
            .env_clear()
            .envs(stage.project.environment())
            .current_dir(stage.project.directory())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdout = child.stdout.take().context("no stdout")?;
        let mut stderr = child.stderr.take().context("no stderr")?;
        std::io::Read::read_exact(&mut stdout, &mut [0; 6])?;
        drop(stdout);
        let child = std::sync::Mutex::new(child);
        let ended = || child.lock().unwrap().try_wait().unwrap();
        wait_until("the end of the run", || ended().is_some()).inspect_err(|_| {
            // The test has already failed.
            child.lock().unwrap().kill().unwrap_or_default();
        })?;
        let mut said = String::new();
        std::io::Read::read_to_string(&mut stderr, &mut said)?;
        assert!(!said.contains("panicked"), "{said}");
        assert_ne!(ended().and_then(|status| status.code()), Some(101), "{said}");
    }
    Ok(())
}

#[test]
fn a_very_long_prompt_and_answer_are_complete() -> Result<()> {
    let long = "x\u{e4}".repeat(500_000);
    let stage = Stage::plain(Script::new().turn(Turn::text(long.clone()).chunk_size(4096)))?;
    let done = stage.program(["run"]).stdin(long.clone()).finish()?.success()?;
    assert!(done.stdout.trim_end() == long, "{} bytes", done.stdout.len());
    assert!(crate::support::user_text(&stage.server.main_requests()[0]).contains(&long));
    stage.no_problems()
}
