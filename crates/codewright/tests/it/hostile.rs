//! Control sequences in external text never reach the terminal.

use anyhow::Result;
use codewright_testkit::{Script, Turn};
use serde_json::json;

use crate::support::{Stage, check_harmless, check_has};

/// Sequences that set the title, write the clipboard, move the cursor, overwrite the line, ring, and reverse text.
const EVIL: &str =
    "a\u{1b}]0;owned\u{7}b\u{1b}]52;c;aGk=\u{1b}\\c\u{1b}[2J\u{1b}[1;1Hd\u{9b}31me\rf\u{8}\u{202e}g\u{7f}";

#[test]
fn a_model_cannot_control_the_terminal() -> Result<()> {
    let script = Script::new()
        // Split so that every sequence is in several chunks.
        .turn(Turn::steps().reasoning(EVIL).text(format!("{EVIL}\n")).chunk_size(1).tool(EVIL, json!({})))
        .turn(Turn::tools([
            ("bash", json!({"command": format!("echo '{EVIL}' >/dev/null")})),
            ("read", json!({"filePath": format!("{EVIL}.txt")})),
            ("grep", json!({"pattern": format!("nothing{EVIL}")})),
            ("glob", json!({"pattern": format!("nothing{EVIL}")})),
        ]))
        .text("end");
    let stage = Stage::plain(script)?;
    let done = stage.run(["--thinking", "hi"])?.success()?;
    check_harmless(&done.stdout);
    check_harmless(&done.stderr);
    check_has(&done.stdout, &["owned", "end\n"]);
    stage.no_problems()
}

#[test]
fn a_program_and_a_file_name_cannot_control_the_terminal() -> Result<()> {
    let printf = r"printf 'x\033]52;c;aGk=\007\033[31m\r\302\233y\342\200\256z\n'";
    let script = Script::new()
        .turn(Turn::tools([
            ("bash", json!({"command": printf})),
            ("read", json!({"filePath": "evil\u{1b}[31m\r.txt"})),
            (
                "edit",
                json!({"filePath": "evil\u{1b}[31m\r.txt", "oldString": "x", "newString": "\u{1b}[2Jy"}),
            ),
            ("write", json!({"filePath": "new\u{1b}]0;t\u{7}.txt", "content": "c"})),
            ("read", json!({"filePath": "/nowhere/\u{1b}[31m"})),
        ]))
        .text("end");
    let stage = Stage::plain(script)?;
    stage.project.write("evil\u{1b}[31m\r.txt", "x\u{1b}[31m\n")?;
    let done = stage.run(["hi"])?.success()?;
    check_harmless(&done.stdout);
    check_harmless(&done.stderr);
    check_has(&done.stderr, &["Read ", "/evil .txt", "Write ", "permission requested: external_directory"]);
    stage.no_problems()
}

#[test]
fn a_provider_error_cannot_control_the_terminal() -> Result<()> {
    let error = Turn::http_error(400).body(json!({"error": {"message": EVIL}}));
    let stage = Stage::plain(Script::new().turn(error))?;
    let done = stage.run(["hi"])?;
    assert_eq!(done.code, Some(1));
    check_harmless(&done.stderr);
    check_has(&done.stderr, &["Error:"]);
    Ok(())
}

#[test]
fn json_lines_contain_no_raw_escape() -> Result<()> {
    let stage = Stage::plain(Script::new().text(EVIL))?;
    let done = stage.run(["--format", "json", "hi"])?.success()?;
    assert!(!done.stdout.contains('\u{1b}') && !done.stdout.contains('\r'), "{:?}", done.stdout);
    Ok(())
}
