//! The terminal client on a pseudo-terminal.

use anyhow::{Context as _, Result};
use codewright_testkit::{Script, Terminal, TerminalOptions, Turn};
use serde_json::json;

use crate::access::send;
use crate::support::{Stage, check_has};

const PROGRAM: &str = env!("CARGO_BIN_EXE_codewright");
/// Columns and rows.
const SIZE: (u16, u16) = (110, 40);
const ENTER: &str = "\r";
const ESCAPE: &str = "\u{1b}";

/// Starts the program on a pseudo-terminal.
fn start(stage: &Stage, args: &[&str]) -> Result<Terminal> {
    start_with(stage, args, &[])
}

fn start_with(stage: &Stage, args: &[&str], variables: &[(&str, &str)]) -> Result<Terminal> {
    spawn(stage, (PROGRAM, args), variables)
}

fn spawn(stage: &Stage, (program, args): (&str, &[&str]), variables: &[(&str, &str)]) -> Result<Terminal> {
    let (program, project) = (program.as_ref(), &stage.project);
    Terminal::start(&TerminalOptions { program, args, project, variables, size: SIZE })
}

/// Starts the program under a shell that records the terminal's settings before and after it, and its process id.
fn under_a_shell(stage: &Stage) -> Result<Terminal> {
    let script = "stty -a > \"$HOME/before\"; sh -c 'echo $$ > \"$HOME/pid\"; exec \"$0\"' \"$0\"; code=$?; \
                  stty -a > \"$HOME/after\"; exit $code";
    spawn(stage, ("sh", &["-c", script, PROGRAM]), &[])
}

/// Fails unless all enabled modes were disabled again.
#[track_caller]
fn check_restored(written: &str) {
    for (on, off) in [
        ("\u{1b}[?1049h", "\u{1b}[?1049l"),
        ("\u{1b}[?2004h", "\u{1b}[?2004l"),
        ("\u{1b}[?1000h", "\u{1b}[?1000l"),
        ("\u{1b}[>1u", "\u{1b}[<1u"),
        ("\u{1b}[8l", "\u{1b}[8h"),
    ] {
        let (on_at, off_at) = (written.rfind(on), written.rfind(off));
        assert!(on_at.is_some() && on_at < off_at, "{on:?} is not followed by {off:?}");
    }
    assert!(written.rfind("\u{1b}[?25h") > written.rfind("\u{1b}[?25l"), "the cursor stays hidden");
}

#[test]
fn a_prompt_is_answered_a_call_allowed_and_the_terminal_restored() -> Result<()> {
    let script = Script::new()
        .turn(
            Turn::text("Working on it.")
                .tool("bash", json!({"command": "echo from-the-shell", "description": "x"})),
        )
        .turn(Turn::text("# Heading\n\nAll **done**, see `total.sh`.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"));
    let stage = Stage::git(script)?;
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    config["permission"] = json!({"bash": "ask"});
    stage.project.write_config(&config)?;
    let mut terminal = start(&stage, &[])?;
    let home = terminal.shows("plain-model")?;
    check_has(&home, &["Ask anything…", "Build", "Mock", "ctrl+p commands", ":main"]);
    terminal.send("please do it")?;
    terminal.shows("please do it")?;
    terminal.send(ENTER)?;
    let asked = terminal.shows("Permission required")?;
    check_has(&asked, &["Working on it.", "$ echo from-the-shell", "[Allow once]", "Allow always", "Reject"]);
    terminal.send(ENTER)?;
    // The first step also ends with a line.
    terminal.shows("│1  │2  │")?;
    let done = terminal.shows("▣  Build · plain-model ·")?;
    check_has(&done, &["please do it", "from-the-shell", "Heading", "All done, see total.sh.", "│1  │2  │"]);
    assert!(!done.contains("**") && !done.contains("Permission required"), "{done}");
    terminal.send("/exit")?;
    terminal.send(ENTER)?;
    let (code, written) = terminal.ended()?;
    assert_eq!(code, 0);
    check_restored(&written);
    let last = written.rsplit("\u{1b}[?25h").next().unwrap_or_default();
    check_has(last, &["codewright -s ses_"]);
    stage.no_problems()
}

#[test]
fn a_turn_is_interrupted_by_one_escape() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::text("Begun.\n").hang()))?;
    let mut terminal = start(&stage, &["--prompt", "go"])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.shows("Begun.")?;
    terminal.shows("esc interrupt")?;
    terminal.send(ESCAPE)?;
    terminal.shows("interrupted")?;
    // With an empty prompt the second press exits.
    terminal.send("\u{3}\u{3}")?;
    let (code, written) = terminal.ended()?;
    assert_eq!(code, 0);
    check_restored(&written);
    Ok(())
}

#[test]
fn ctrl_c_interrupts_the_turn_and_a_second_press_exits() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::text("Begun.\n").hang()))?;
    let mut terminal = start(&stage, &["--prompt", "go"])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.shows("Begun.")?;
    terminal.send("\u{3}")?;
    let screen = terminal.shows("interrupted")?;
    check_has(&screen, &["ctrl+c again to exit", "Begun."]);
    terminal.send("\u{3}")?;
    let (code, written) = terminal.ended()?;
    assert_eq!(code, 0);
    check_restored(&written);
    Ok(())
}

/// A session whose model writes a file and then ends.
fn writing() -> Result<Stage> {
    let edit = json!({"filePath": "note.txt", "content": "written\n"});
    Stage::git(Script::new().tool("write", edit).text("All done."))
}

#[test]
fn in_the_mode_ask_an_edit_asks_and_a_letter_allows_it() -> Result<()> {
    let stage = writing()?;
    let mut terminal = start(&stage, &["--prompt", "write a note"])?;
    terminal.shows("accept edits")?;
    terminal.send("\u{1b}[Z")?;
    terminal.shows("Plan · plain-model")?;
    terminal.send("\u{1b}[Z")?;
    terminal.shows("Build · plain-model")?;
    terminal.send(ENTER)?;
    let asked = terminal.shows("Permission required")?;
    check_has(&asked, &["← Edit note.txt", "y a n"]);
    assert!(!stage.project.path("note.txt").exists());
    terminal.send("y")?;
    terminal.shows("All done.")?;
    assert!(stage.project.path("note.txt").exists());
    Ok(())
}

#[test]
fn in_the_mode_accept_edits_a_rule_that_asks_is_answered() -> Result<()> {
    let stage = writing()?;
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    config["permission"] = json!({"edit": "ask"});
    stage.project.write_config(&config)?;
    let mut terminal = start(&stage, &["--prompt", "write a note"])?;
    terminal.shows("ask")?;
    terminal.send("\u{1b}[Z")?;
    terminal.shows("accept edits")?;
    terminal.send(ENTER)?;
    terminal.shows("All done.")?;
    assert!(stage.project.path("note.txt").exists());
    Ok(())
}

#[test]
fn a_refused_call_is_one_sentence() -> Result<()> {
    let stage = writing()?;
    let mut terminal = start(&stage, &["--agent", "plan", "--prompt", "write a note"])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    let screen = terminal.shows("All done.")?;
    check_has(&screen, &["The agent plan may not edit files."]);
    assert!(!screen.contains("\"permission\""), "{screen}");
    Ok(())
}

#[test]
fn without_the_focus_the_end_of_a_turn_rings_and_notifies() -> Result<()> {
    let stage = Stage::plain(Script::new().text("First answer.").text("Second answer."))?;
    let mut terminal = start(&stage, &["--prompt", "go"])?;
    terminal.shows("plain-model")?;
    terminal.send("\u{1b}[I")?;
    terminal.send(ENTER)?;
    terminal.shows("▣  Build")?;
    assert!(!terminal.written().contains("\u{1b}]9;"), "the terminal has the focus");
    terminal.send("more")?;
    terminal.shows("┃  more")?;
    terminal.send("\r\u{1b}[O")?;
    terminal.shows("Second answer.")?;
    terminal.until("the notification", |_| terminal.written().contains("\u{1b}]9;done: "))?;
    Ok(())
}

#[test]
fn text_that_is_selected_with_the_mouse_is_copied() -> Result<()> {
    let stage = Stage::plain(Script::new().text("The answer is 42."))?;
    let mut terminal = start(&stage, &["--prompt", "go"])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.shows("▣  Build")?;
    let screen = terminal.shows("The answer is 42.")?;
    let (row, line) =
        screen.lines().enumerate().find(|(_, line)| line.contains("The answer")).context("no row")?;
    let column = line.split("The answer").next().unwrap_or_default().chars().count() + 1;
    let at = |column: usize| format!("{column};{}", row + 1);
    let (from, to) = (at(column), at(column + 16));
    terminal.send(&format!("\u{1b}[<0;{from}M\u{1b}[<32;{to}M\u{1b}[<0;{to}m"))?;
    terminal.shows("sent to the terminal's clipboard")?;
    assert!(terminal.written().contains("\u{1b}]52;c;VGhlIGFuc3dlciBpcyA0Mi4=\u{7}"));
    Ok(())
}

#[test]
fn a_queued_prompt_is_taken_back_and_edited() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::text("Begun.\n").hang()))?;
    let mut terminal = start(&stage, &["--prompt", "go"])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.shows("Begun.")?;
    terminal.send("and then this")?;
    terminal.shows("┃  and then this")?;
    terminal.send(ENTER)?;
    terminal.shows("queued")?;
    terminal.send("\u{1b}[1;3A")?;
    terminal.hides("queued")?;
    terminal.shows("┃  and then this")?;
    let stored = stage.stored()?;
    assert!(!serde_json::to_string(&stored)?.contains("and then this"));
    Ok(())
}

#[test]
fn the_transcript_is_searched_from_the_keyboard() -> Result<()> {
    let stage = Stage::plain(Script::new().text("The needle is here.").text("Second answer."))?;
    let mut terminal = start(&stage, &["--prompt", "go"])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.shows("The needle is here.")?;
    terminal.send("\u{18}/")?;
    terminal.shows("esc close")?;
    terminal.send("NEEDLE")?;
    terminal.shows("1 of 1")?;
    terminal.send(ESCAPE)?;
    terminal.shows("Ask anything…")?;
    Ok(())
}

#[test]
fn a_question_is_answered_on_the_screen() -> Result<()> {
    let questions = json!({"questions": [{
        "question": "Which colour?", "header": "Colour",
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
    }]});
    let stage = Stage::plain(Script::new().tool("question", questions).text("Noted."))?;
    let mut terminal = start(&stage, &["--prompt", "ask me"])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    let asked = terminal.shows("Which colour?")?;
    check_has(&asked, &["1. Red", "warm", "2. Blue", "3. Type your own answer"]);
    terminal.send("2")?;
    let done = terminal.shows("Noted.")?;
    check_has(&done, &["# Questions", "Blue"]);
    check_has(&stage.results(1)?[0], &["Blue"]);
    Ok(())
}

#[test]
fn a_signal_restores_the_terminal() -> Result<()> {
    for (signal, code) in [("-TERM", 143), ("-HUP", 129), ("-INT", 130)] {
        let stage = Stage::plain(Script::new())?;
        let terminal = under_a_shell(&stage)?;
        terminal.shows("plain-model")?;
        let read = |name: &str| std::fs::read_to_string(stage.project.home().join(name));
        let pid = read("pid")?.trim().to_owned();
        std::process::Command::new("kill").args([signal, &pid]).status()?;
        let (ended, written) = terminal.ended()?;
        assert_eq!(ended, code, "{signal}");
        check_restored(&written);
        let (before, after) = (read("before")?, read("after")?);
        assert!(before.contains("icanon") && before == after, "{signal}:\n{before}\n{after}");
    }
    Ok(())
}

#[test]
fn a_client_that_was_stopped_by_a_signal_restores_its_screen() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let mut terminal = under_a_shell(&stage)?;
    terminal.shows("plain-model")?;
    let pid = std::fs::read_to_string(stage.project.home().join("pid"))?.trim().to_owned();
    let kill = |signal: &str| std::process::Command::new("kill").args([signal, &pid]).status();
    let taken = |terminal: &Terminal| terminal.written().matches("\u{1b}[?1049h").count();
    kill("-STOP")?;
    kill("-CONT")?;
    terminal.until("the terminal to be taken again", |_| taken(&terminal) == 2)?;
    terminal.send("still here")?;
    terminal.shows("┃  still here")?;
    terminal.send("\u{3}\u{3}\u{3}")?;
    let (code, written) = terminal.ended()?;
    assert_eq!(code, 0);
    check_restored(&written);
    Ok(())
}

#[test]
fn text_of_models_and_tools_cannot_control_the_terminal() -> Result<()> {
    let evil = "one\u{1b}]0;owned\u{7}two\u{1b}[2Jthree\u{9b}31m\u{202e}four";
    let script = Script::new()
        .tool("bash", json!({"command": "printf 'a\\033]52;c;aGk=\\007b\\033[2Jc'", "description": "x"}))
        .turn(Turn::text(evil));
    let stage = Stage::plain(script)?;
    let mut terminal = start(&stage, &["--prompt", "go"])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.until("the answer", |screen| screen.contains("onetwothree") && screen.contains("abc"))?;
    terminal.send("\u{3}\u{3}")?;
    let (_, written) = terminal.ended()?;
    for harmful in ["owned\u{7}", "\u{1b}]52", "\u{9b}", "\u{202e}"] {
        assert!(!written.contains(harmful), "{harmful:?} was written");
    }
    Ok(())
}

#[test]
fn a_client_attaches_to_a_server_and_continues_its_session() -> Result<()> {
    let stage = Stage::plain(Script::new().text("First answer.").text("Second answer."))?;
    let (_server, url) = stage.serve()?;
    stage.run(["--attach", &url, "hello"])?.success()?;
    let mut terminal = start(&stage, &["attach", &url, "--continue"])?;
    let screen = terminal.shows("First answer.")?;
    check_has(&screen, &["hello"]);
    terminal.send("more")?;
    terminal.send(ENTER)?;
    terminal.shows("Second answer.")?;
    terminal.send("\u{3}\u{3}")?;
    assert_eq!(terminal.ended()?.0, 0);
    Ok(())
}

#[test]
fn without_a_terminal_the_alternatives_are_printed() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let done = stage.program([]).finish()?;
    crate::support::check_code(&done, 1);
    check_has(&done.stderr, &["needs a terminal", "run \"...\""]);
    let done = stage.program(["sevre"]).finish()?;
    crate::support::check_code(&done, 1);
    check_has(&done.stderr, &["unknown command `sevre`", "did you mean `serve`?"]);
    Ok(())
}

#[test]
fn a_resized_terminal_is_redrawn() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let terminal = start(&stage, &[])?;
    terminal.shows("plain-model")?;
    terminal.resize((50, 12))?;
    terminal.until("the smaller home", |screen| {
        screen.contains("Ask anything…") && screen.lines().count() <= 12
    })?;
    Ok(())
}

#[test]
fn the_client_reconnects_to_a_restarted_server() -> Result<()> {
    let stage = Stage::plain(Script::new().text("First answer.").text("Second answer."))?;
    let (server, url) = stage.serve()?;
    let mut terminal = start(&stage, &["attach", &url])?;
    terminal.shows("plain-model")?;
    terminal.send("hello")?;
    terminal.send(ENTER)?;
    terminal.shows("First answer.")?;
    // Dropping kills it.
    drop(server);
    terminal.shows("no connection to the server")?;
    let port = url.rsplit(':').next().context("no port")?.to_owned();
    let (_server, again) =
        crate::support::serve(crate::support::program(&stage.project, ["serve", "--port", &port]))?;
    assert_eq!(again, url);
    terminal.shows("connected again")?;
    terminal.send("more")?;
    terminal.send(ENTER)?;
    let screen = terminal.shows("Second answer.")?;
    check_has(&screen, &["hello", "First answer."]);
    Ok(())
}

#[test]
fn without_a_model_the_home_view_gives_advice() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    stage.project.write_config(&json!({}))?;
    let mut terminal = start(&stage, &[])?;
    // The last line of the advice: the screen may be drawn in several steps.
    let screen = terminal.shows("codewright demo")?;
    check_has(&screen, &["No model is available yet.", "/connect", "codewright providers login"]);
    // A provider without a key is offered but not selected.
    check_has(&screen, &["/models", "which receives your prompts", "no model yet"]);
    terminal.send("/connect")?;
    terminal.send(ENTER)?;
    terminal.shows("Anthropic")?;
    terminal.send("anthropic")?;
    terminal.send(ENTER)?;
    terminal.shows("Key for Anthropic")?;
    terminal.send("sk-ant-test-1234")?;
    terminal.shows("••••")?;
    terminal.send(ENTER)?;
    let screen = terminal.shows("the provider is connected")?;
    assert!(!screen.contains("No model is available yet."), "{screen}");
    assert!(!screen.contains("sk-ant-test-1234"), "{screen}");
    Ok(())
}

#[test]
fn the_users_editor_writes_the_prompt() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Read."))?;
    let editor = stage.project.write("editor.sh", "#!/bin/sh\nprintf 'from the editor\\n' > \"$1\"\n")?;
    let command = format!("sh {}", editor.display());
    let mut terminal = start_with(&stage, &[], &[("EDITOR", &command)])?;
    terminal.shows("plain-model")?;
    terminal.send("\u{18}e")?;
    terminal.shows("┃  from the editor")?;
    terminal.send(ENTER)?;
    terminal.shows("Read.")?;
    check_has(&crate::support::user_text(&stage.server.main_requests()[0]), &["from the editor"]);
    Ok(())
}

#[test]
fn a_prompt_and_its_edit_are_undone_on_the_screen() -> Result<()> {
    let edit = json!({"filePath": "note.txt", "content": "written\n"});
    let stage = Stage::git(Script::new().tool("write", edit).text("Written."))?;
    let mut terminal = start(&stage, &["--prompt", "write a note"])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.until("the end of the turn", |screen| {
        screen.contains("Written.") && !screen.contains("interrupt")
    })?;
    assert!(stage.project.path("note.txt").exists());
    terminal.send("/undo")?;
    terminal.send(ENTER)?;
    let screen = terminal.shows("1 message reverted")?;
    check_has(&screen, &["┃  write a note"]);
    crate::support::wait_until("the file to go", || !stage.project.path("note.txt").exists())?;
    terminal.send("\u{3}")?;
    terminal.send("/redo")?;
    terminal.send(ENTER)?;
    terminal.shows("Written.")?;
    crate::support::wait_until("the file to come back", || stage.project.path("note.txt").exists())?;
    Ok(())
}

#[test]
fn choices_are_kept_for_the_next_start() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let mut terminal = start(&stage, &[])?;
    terminal.shows("plain-model")?;
    terminal.send("\u{18}t")?;
    terminal.shows("Themes")?;
    terminal.send("nord")?;
    terminal.send(ENTER)?;
    terminal.send("\u{18}m")?;
    terminal.shows("Select model")?;
    terminal.send("claude-mock")?;
    terminal.send(ENTER)?;
    terminal.until("the list to go", |screen| {
        !screen.contains("Select model") && screen.contains("claude-mock")
    })?;
    terminal.send("\u{3}\u{3}")?;
    terminal.ended()?;
    let chosen = std::fs::read_to_string(stage.project.home().join(".local/state/codewright/tui.json"))?;
    check_has(&chosen, &["\"theme\": \"nord\"", "mockanth/claude-mock"]);
    let mut terminal = start(&stage, &[])?;
    terminal.shows("plain-model")?;
    terminal.send("\u{18}s")?;
    terminal.until("the theme", |screen| screen.contains("theme") && screen.contains("nord"))?;
    Ok(())
}

#[test]
fn a_shell_command_and_a_file_are_sent_with_the_prompt() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Seen."))?;
    stage.project.write("src/adder.txt", "the adder's text\n")?;
    let mut terminal = start(&stage, &[])?;
    terminal.shows("plain-model")?;
    terminal.send("!echo from-my-shell")?;
    terminal.send(ENTER)?;
    terminal.until("the command's output", |screen| screen.matches("from-my-shell").count() >= 2)?;
    terminal.send("look at @adder")?;
    terminal.shows("src/adder.txt")?;
    terminal.send(ENTER)?;
    terminal.shows("look at @src/adder.txt")?;
    terminal.send(ENTER)?;
    let screen = terminal.shows("Seen.")?;
    check_has(&screen, &["File"]);
    let sent = stage.server.main_requests()[0].body.to_string();
    check_has(&sent, &["the adder's text", "from-my-shell"]);
    Ok(())
}

#[test]
fn a_dumb_terminal_gets_plain_lines() -> Result<()> {
    let script = Script::new()
        .turn(
            Turn::text("First answer.")
                .tool("bash", json!({"command": "echo from-the-shell", "description": "x"})),
        )
        .text("Second answer.")
        .text("Third answer.");
    let stage = Stage::plain(script)?;
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    config["permission"] = json!({"bash": "ask"});
    stage.project.write_config(&config)?;
    let mut terminal = start_with(&stage, &[], &[("TERM", "dumb")])?;
    terminal.shows("each line is a prompt")?;
    terminal.send("hello\r")?;
    terminal.shows("Allow once [y]")?;
    terminal.send("y\r")?;
    let screen = terminal.shows("Second answer.")?;
    check_has(&screen, &["First answer.", "from-the-shell"]);
    terminal.send("more\r")?;
    terminal.shows("Third answer.")?;
    terminal.send("/exit\r")?;
    let (code, written) = terminal.ended()?;
    assert_eq!(code, 0);
    assert!(!written.contains("\u{1b}[?1049h") && !written.contains("\u{1b}[2J"), "{written:?}");
    check_has(&written, &["codewright -s ses_"]);
    // Both prompts belong to one session.
    check_has(&crate::support::user_text(&stage.server.main_requests()[2]), &["hello", "more"]);
    stage.no_problems()
}

#[test]
fn with_mini_a_pipe_is_answered_line_by_line() -> Result<()> {
    let stage = Stage::plain(Script::new().text("First answer.").text("Second answer."))?;
    let done = stage.program(["--mini"]).stdin("one\n\ntwo\n").finish()?;
    crate::support::check_code(&done, 0);
    assert_eq!(done.stdout, "First answer.\nSecond answer.\n");
    check_has(&crate::support::user_text(&stage.server.main_requests()[1]), &["one", "two"]);
    Ok(())
}

#[test]
fn a_long_paste_is_summarized_and_sent_completely() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Seen."))?;
    let mut terminal = start(&stage, &[])?;
    terminal.shows("plain-model")?;
    terminal.send("\u{1b}[200~first\nsecond\nthird\nfourth\nfifth\u{1b}[201~")?;
    let screen = terminal.shows("[Pasted ~5 lines]")?;
    assert!(!screen.contains("third"), "{screen}");
    terminal.send(ENTER)?;
    terminal.shows("Seen.")?;
    check_has(
        &crate::support::user_text(&stage.server.main_requests()[0]),
        &["first\nsecond\nthird\nfourth\nfifth"],
    );
    Ok(())
}

#[test]
fn a_suspended_client_resumes_unchanged() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let mut terminal = start(&stage, &["--prompt", "half a prompt"])?;
    terminal.shows("half a prompt")?;
    let given_back = |terminal: &Terminal| terminal.written().matches("\u{1b}[?1049l").count();
    let taken = |terminal: &Terminal| terminal.written().matches("\u{1b}[?1049h").count();
    assert_eq!((taken(&terminal), given_back(&terminal)), (1, 0));
    // Without a shell the system resumes it immediately. Input before that belongs to the shell.
    terminal.send("\u{1a}")?;
    terminal.until("the terminal to be lent and taken again", |_| {
        (taken(&terminal), given_back(&terminal)) == (2, 1)
    })?;
    terminal.send(" and more")?;
    terminal.shows("half a prompt and more")?;
    terminal.send("\u{3}\u{3}\u{3}")?;
    let (code, written) = terminal.ended()?;
    assert_eq!(code, 0);
    check_restored(&written);
    Ok(())
}

#[test]
fn changes_of_the_directory_can_be_reviewed() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    stage.project.write("src/adder.rs", "fn add() {\n    1 + 1\n}\n")?;
    stage.project.write("notes/today.txt", "first\nsecond\n")?;
    let mut terminal = start(&stage, &[])?;
    terminal.shows("plain-model")?;
    terminal.send("/diff")?;
    terminal.shows("Review changes")?;
    terminal.send(ENTER)?;
    let screen = terminal.shows("today.txt")?;
    check_has(&screen, &["Diff working tree", "▾ notes", "▾ src", "adder.rs", "+ first", "? all keys"]);
    terminal.send("n")?;
    terminal.shows("1 + 1")?;
    // The tree can be folded.
    terminal.send("\t\u{1b}[D\u{1b}[D")?;
    terminal.shows("▸ src")?;
    terminal.send("q")?;
    terminal.shows("Ask anything…")?;
    terminal.send("\u{3}\u{3}")?;
    let (code, written) = terminal.ended()?;
    assert_eq!(code, 0);
    check_restored(&written);
    Ok(())
}

/// Puts a program first in the user's path.
fn with_program(stage: &Stage, name: &str, script: &str) -> Result<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = stage.project.write(format!("bin/{name}"), script)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    let directory = path.parent().context("no directory")?.display().to_string();
    let usual = stage.project.environment().into_iter().find(|(name, _)| *name == "PATH");
    let usual = usual.map(|(_, path)| path.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(format!("{directory}:{usual}"))
}

#[test]
fn an_answer_is_copied_to_the_terminal_and_to_the_desktop() -> Result<()> {
    let stage = Stage::plain(Script::new().text("The answer is 42."))?;
    let path = with_program(&stage, "xclip", "#!/bin/sh\ncat > \"$HOME/copied\"\n")?;
    let variables = [("DISPLAY", ":77"), ("PATH", path.as_str())];
    let mut terminal = start_with(&stage, &["--prompt", "go"], &variables)?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.shows("The answer is 42.")?;
    terminal.send("\u{18}y")?;
    terminal.shows("copied with xclip")?;
    assert_eq!(std::fs::read_to_string(stage.project.home().join("copied"))?, "The answer is 42.");
    terminal.send("\u{3}\u{3}")?;
    let (_, written) = terminal.ended()?;
    check_has(&written, &["\u{1b}]52;c;VGhlIGFuc3dlciBpcyA0Mi4=\u{7}"]);
    Ok(())
}

#[test]
fn without_a_desktop_the_terminal_gets_the_text() -> Result<()> {
    let stage = Stage::plain(Script::new().text("The answer is 42."))?;
    let mut terminal = start_with(&stage, &["--prompt", "go"], &[("STY", "1.tty")])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.shows("The answer is 42.")?;
    terminal.send("\u{18}y")?;
    terminal.shows("sent to the terminal's clipboard")?;
    terminal.send("\u{16}")?;
    terminal.shows("no desktop clipboard is available here")?;
    terminal.send("\u{3}\u{3}")?;
    let (_, written) = terminal.ended()?;
    check_has(&written, &["\u{1b}P\u{1b}]52;c;VGhlIGFuc3dlciBpcyA0Mi4=\u{7}\u{1b}\\"]);
    Ok(())
}

#[test]
fn an_image_of_the_clipboard_is_sent_with_the_prompt() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Seen."))?;
    let script = "#!/bin/sh\ncase \"$*\" in *image/png*) printf '\\211PNG\\r\\n\\032\\nrest';; *) printf text;; esac\n";
    let path = with_program(&stage, "wl-paste", script)?;
    let variables = [("WAYLAND_DISPLAY", "wayland-7"), ("PATH", path.as_str())];
    let mut terminal = start_with(&stage, &[], &variables)?;
    terminal.shows("plain-model")?;
    terminal.send("what is this? ")?;
    terminal.send("\u{16}")?;
    terminal.shows("what is this? [Image 1]")?;
    terminal.send(ENTER)?;
    terminal.shows("plain-model cannot see pictures")?;
    terminal.send("\t\r")?;
    let screen = terminal.shows("Seen.")?;
    check_has(&screen, &["Image"]);
    let stored = stage.stored()?;
    check_has(&stored[0].to_string(), &["data:image/png;base64,iVBORw0KGgpyZXN0", "image-1.png"]);
    Ok(())
}

#[test]
fn what_is_not_supported_is_not_offered() -> Result<()> {
    let stage = Stage::git(Script::new().text("Done."))?;
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    config["mcp"] = json!({"helper": {"type": "local", "command": ["/nonexistent"], "enabled": false}});
    stage.project.write_config(&config)?;
    let mut terminal = start(&stage, &["--prompt", "go"])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.shows("Done.")?;
    terminal.send("/mcps")?;
    terminal.send(ENTER)?;
    // The list is filled when the server has answered.
    let is_filled = |screen: &str| ["MCP servers", "helper", "disabled"].iter().all(|it| screen.contains(it));
    terminal.until("the list of servers", is_filled)?;
    terminal.send(ESCAPE)?;
    terminal.until("the list to go", |screen| !screen.contains("MCP servers"))?;
    // What the server does not have is not offered.
    terminal.send("/share")?;
    terminal.shows("┃  /share")?;
    terminal.send(ENTER)?;
    terminal.shows("unknown command `/share`")?;
    Ok(())
}

#[test]
fn the_small_client_keeps_messages_in_the_scrollback() -> Result<()> {
    let script = Script::new()
        .turn(
            Turn::text("Working on it.")
                .tool("bash", json!({"command": "echo from-the-shell", "description": "x"})),
        )
        .text("All **done**.")
        .text("Second answer.");
    let stage = Stage::plain(script)?;
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    config["permission"] = json!({"bash": "ask"});
    stage.project.write_config(&config)?;
    let mut terminal = start(&stage, &["--mini"])?;
    let screen = terminal.shows("plain-model")?;
    check_has(&screen, &["Codewright", "› Ask anything…", "BUILD", "cmd"]);
    terminal.send("please do it")?;
    terminal.send(ENTER)?;
    terminal.shows("[Allow once]")?;
    terminal.send(ENTER)?;
    terminal.shows("▣  Build · plain-model ·")?;
    terminal.send("\u{10}")?;
    terminal.shows("Commands")?;
    terminal.send("model")?;
    terminal.send(ENTER)?;
    terminal.shows("Select model")?;
    terminal.send(ESCAPE)?;
    terminal.until("the list to go", |screen| !screen.contains("Select model"))?;
    terminal.send("more")?;
    terminal.send(ENTER)?;
    let screen = terminal.until("the end of the turn", |screen| screen.matches('▣').count() == 2)?;
    check_has(&screen, &["please do it", "Working on it.", "from-the-shell", "All done.", "Second answer."]);
    assert_eq!(screen.matches("Working on it.").count(), 1, "{screen}");
    terminal.send("/exit")?;
    terminal.send(ENTER)?;
    terminal.shows("codewright -s ses_")?;
    let screen = terminal.screen().contents();
    assert!(screen.contains("Second answer.") && !screen.contains("Ask anything"), "{screen}");
    let (code, written) = terminal.ended()?;
    assert_eq!(code, 0);
    for never in ["\u{1b}[?1049", "\u{1b}[?1000h", "\u{1b}[2J", "\u{1b}[6n"] {
        assert!(!written.contains(never), "{never:?} was written");
    }
    assert!(written.rfind("\u{1b}[?2004h") < written.rfind("\u{1b}[?2004l"));
    assert!(written.rfind("\u{1b}[?25h") > written.rfind("\u{1b}[?25l"));
    stage.no_problems()
}

#[test]
fn a_terminal_without_utf_8_gets_ascii_only() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Na\u{ef}ve \u{6f22}\u{5b57} and a list:\n\n- one\n"))?;
    let mut terminal = start_with(&stage, &["--prompt", "go"], &[("LANG", "C")])?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    let screen = terminal.shows("#  Build : plain-model")?;
    check_has(&screen, &["Na?ve ???? and a list:", "- one"]);
    terminal.send("\u{3}\u{3}")?;
    let (code, written) = terminal.ended()?;
    assert_eq!(code, 0);
    // After the end the title is printed unchanged.
    let drawn = written.split("\u{1b}[?1049l").next().unwrap_or_default();
    assert!(drawn.is_ascii(), "{:?}", drawn.chars().filter(|c| !c.is_ascii()).collect::<String>());
    Ok(())
}

#[test]
fn a_shell_has_its_terminal_while_the_client_is_stopped() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let mut terminal = spawn(&stage, ("sh", &["-i"]), &[("PS1", "shell> ")])?;
    terminal.shows("shell>")?;
    terminal.send(&format!("{} --prompt 'half a prompt'\r", env!("CARGO_BIN_EXE_codewright")))?;
    terminal.shows("half a prompt")?;
    terminal.shows("plain-model")?;
    terminal.send("\u{1a}")?;
    terminal.shows("Stopped")?;
    // The output follows the echoed command.
    terminal.send("stty -a | grep -o -w -e -icanon -e icanon | tr c k\r")?;
    let screen = terminal.shows("ikanon")?;
    assert!(!screen.contains("-ikanon"), "{screen}");
    terminal.send("fg\r")?;
    terminal.shows("┃  half a prompt")?;
    terminal.send(" and more")?;
    terminal.shows("half a prompt and more")?;
    terminal.send("\u{3}\u{3}\u{3}")?;
    terminal.until("the shell", |screen| screen.contains("ikanon") && !screen.contains('┃'))?;
    terminal.send("exit\r")?;
    let (_, written) = terminal.ended()?;
    check_restored(&written);
    Ok(())
}

#[test]
fn with_a_port_other_clients_can_use_the_same_sessions() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Seen by both."))?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let url = format!("http://127.0.0.1:{port}");
    let mut terminal = start(&stage, &["--port", &port, "--cors", "https://page.example"])?;
    let home = terminal.shows("plain-model")?;
    check_has(&home, &[&format!("listening on {url}"), "OPENCODE_SERVER_PASSWORD is not set"]);
    let done = stage.run(["--attach", &url, "hi"])?.success()?;
    check_has(&done.stdout, &["Seen by both."]);
    for (origin, is_allowed) in [("https://page.example", true), ("https://other.example", false)] {
        let answer = send(&url, "GET /global/health", &[&format!("Origin: {origin}")])?;
        let allows = answer.to_ascii_lowercase().contains(&format!("access-control-allow-origin: {origin}"));
        assert_eq!(allows, is_allowed, "{answer}");
    }
    terminal.send("/exit")?;
    terminal.send(ENTER)?;
    let (code, written) = terminal.ended()?;
    assert_eq!(code, 0);
    check_restored(&written);
    assert!(std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_err(), "the port is still open");
    stage.no_problems()
}

#[test]
fn without_a_flag_no_port_is_opened() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    config["server"] = json!({"port": port});
    stage.project.write_config(&config)?;
    let terminal = start(&stage, &[])?;
    terminal.shows("plain-model")?;
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "the configuration opened a port");
    Ok(())
}

#[test]
fn a_client_that_listens_for_other_machines_needs_a_password() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    for args in [&["--hostname", "0.0.0.0"][..], &["--mdns"], &["--port", "0", "--mdns"]] {
        let (code, written) = start(&stage, args)?.ended()?;
        assert_eq!(code, 1, "{args:?}");
        check_has(&written, &["0.0.0.0", "without a password", "OPENCODE_SERVER_PASSWORD"]);
        assert!(!written.contains("\u{1b}[?1049h"), "{args:?} opened the screen");
    }
    let variables = [("OPENCODE_SERVER_PASSWORD", "secret")];
    let args = ["--port", "0", "--hostname", "127.0.0.1", "--mdns"];
    let terminal = start_with(&stage, &args, &variables)?;
    let home = terminal.shows("listening on http://127.0.0.1:")?;
    check_has(&home, &["only be reached from this machine"]);
    let url = home.split("listening on ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let url = url.context("no address")?.to_owned();
    let refused = stage.run(["--attach", &url, "hi"])?;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    Ok(())
}

/// Installs a program that records its arguments, outside the project. Returns `PATH` with its directory.
fn with_editor(stage: &Stage, name: &str) -> Result<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = stage.project.home().join("programs");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(name);
    std::fs::write(
        &path,
        "#!/bin/sh\nprintf '%s\\n' \"$0\" \"$@\" \"password=$OPENCODE_SERVER_PASSWORD\" > \"$HOME/opened\"\n",
    )?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    let usual = stage.project.environment().into_iter().find(|(name, _)| *name == "PATH");
    let usual = usual.map(|(_, path)| path.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(format!("{}:{usual}", directory.display()))
}

/// Clicks on a text of the screen.
fn click_on(terminal: &mut Terminal, text: &str) -> Result<()> {
    let screen = terminal.shows(text)?;
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains(text)).context("no row")?;
    let column = line.split(text).next().unwrap_or_default().chars().count();
    let at = format!("{};{}", column + 1, row + 1);
    terminal.send(&format!("\u{1b}[<0;{at}M\u{1b}[<0;{at}m"))
}

#[test]
fn references_are_links_and_a_click_opens_the_editor_of_the_terminal() -> Result<()> {
    let answer = "Look at `src/add.rs:3:7`, https://example.com/add, missing/x.rs and ../secret.rs now.\n\n\
                  \u{1b}]8;;https://evil.example/\u{7}safe text\u{1b}]8;;\u{7}\n";
    let stage = Stage::plain(Script::new().text(answer))?;
    let file = stage.project.write("src/add.rs", "fn add() {}\n")?.canonicalize()?;
    let path = with_editor(&stage, "cursor")?;
    let askpass = "/opt/Cursor/resources/app/extensions/git/dist/askpass.sh";
    let variables = [
        ("TERM_PROGRAM", "vscode"),
        ("GIT_ASKPASS", askpass),
        ("PATH", path.as_str()),
        ("OPENCODE_SERVER_PASSWORD", "secret"),
    ];
    let mut terminal = start_with(&stage, &["--prompt", "go"], &variables)?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.shows("safe text")?;
    terminal.shows("▣  Build")?;
    click_on(&mut terminal, "src/add.rs:3:7")?;
    let opened = stage.project.home().join("opened");
    crate::support::wait_until("the editor", || {
        std::fs::read_to_string(&opened).is_ok_and(|text| text.contains("password="))
    })?;
    let expected = format!("--goto\n{}:3:7\npassword=\n", file.display());
    let recorded = std::fs::read_to_string(&opened)?;
    assert!(recorded.ends_with(&expected), "{recorded}");
    terminal.send("\u{3}\u{3}")?;
    let (_, written) = terminal.ended()?;
    check_has(
        &written,
        &[";https://example.com/add\u{1b}\\", &format!(";file://{}#3\u{1b}\\", file.display())],
    );
    assert!(!written.contains("evil.example") && !written.contains("missing/x.rs\u{1b}\\"), "{written:?}");
    assert!(!written.contains("secret.rs\u{1b}\\"), "{written:?}");
    Ok(())
}

#[test]
fn a_terminal_without_links_gets_none_and_a_click_opens_the_users_editor() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Look at src/add.rs:3 and https://example.com/add now."))?;
    let file = stage.project.write("src/add.rs", "fn add() {}\n")?.canonicalize()?;
    let path = with_editor(&stage, "vim")?;
    let variables = [("EDITOR", "vim -n"), ("PATH", path.as_str())];
    let mut terminal = start_with(&stage, &["--prompt", "go"], &variables)?;
    terminal.shows("plain-model")?;
    terminal.send(ENTER)?;
    terminal.shows("▣  Build")?;
    click_on(&mut terminal, "src/add.rs:3")?;
    let opened = stage.project.home().join("opened");
    crate::support::wait_until("the editor", || {
        std::fs::read_to_string(&opened).is_ok_and(|text| text.contains("password="))
    })?;
    let recorded = std::fs::read_to_string(&opened)?;
    check_has(&recorded, &[&format!("-n\n+3\n{}\n", file.display())]);
    // The screen is drawn again after the editor.
    terminal.shows("Look at src/add.rs:3")?;
    terminal.send("\u{3}\u{3}")?;
    let (_, written) = terminal.ended()?;
    check_restored(&written);
    assert!(!written.contains("\u{1b}]8;"), "{written:?}");
    Ok(())
}

#[test]
fn a_review_is_a_list_whose_changes_are_applied() -> Result<()> {
    let answer = json!({ "summary": "Mostly fine.", "findings": [
        { "file": "a.txt", "line": 2, "severity": "high", "title": "The second line is wrong", "description": "It breaks.",
          "original": "two", "suggestion": "2" },
        { "file": "a.txt", "line": 1, "severity": "low", "title": "The first is odd", "description": "d" },
    ]});
    let stage = Stage::git(Script::new().tool("StructuredOutput", answer))?;
    std::fs::write(stage.project.path("a.txt"), "one\ntwo\n")?;
    let mut terminal = start(&stage, &[])?;
    terminal.shows("plain-model")?;
    terminal.send("/review")?;
    terminal.shows("Let the model review changes")?;
    terminal.send(ENTER)?;
    terminal.shows("Findings of the review")?;
    terminal.shows("The first is odd")?;
    terminal.send(ENTER)?;
    terminal.shows("It breaks.")?;
    terminal.send("a")?;
    terminal.shows("the change is applied")?;
    assert_eq!(std::fs::read_to_string(stage.project.path("a.txt"))?, "one\n2\n");
    terminal.send(ESCAPE)?;
    terminal.until("the list to go", |screen| !screen.contains("Findings of the review"))?;
    terminal.send("/bug")?;
    terminal.shows("Bug report")?;
    terminal.send(ENTER)?;
    let screen = terminal.shows("The report is in")?;
    check_has(&screen, &["codewright-bug-", "attach the file"]);
    let written = std::fs::read_dir(stage.project.directory())?.flatten();
    let report =
        written.map(|file| file.path()).find(|path| path.to_string_lossy().contains("codewright-bug-"));
    let report = std::fs::read_to_string(report.context("there is no report")?)?;
    check_has(&report, &["## codewright doctor", "mock/plain-model"]);
    Ok(())
}
