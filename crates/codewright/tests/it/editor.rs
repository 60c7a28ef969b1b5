//! The terminal client in the terminal of an editor: it opens files there, and reads the editor's selection.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::Result;
use codewright_testkit::{Script, Terminal, TerminalOptions, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, user_text, wait_until};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const ENTER: &str = "\r";

fn start(stage: &Stage, variables: &[(&str, &str)]) -> Result<Terminal> {
    let (program, project) = (env!("CARGO_BIN_EXE_codewright").as_ref(), &stage.project);
    Terminal::start(&TerminalOptions { program, args: &[], project, variables, size: (110, 40) })
}

/// An editor with a channel, and the requests that it has received.
struct Channel {
    value: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Channel {
    fn start(selected: &Path) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let value = format!("vscode:{}:{TOKEN}", listener.local_addr()?.port());
        let requests = Arc::<Mutex<Vec<Value>>>::default();
        let (received, path) = (requests.clone(), selected.to_owned());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok(mut output) = stream.try_clone() else { return };
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let request: Value = serde_json::from_str(&line).unwrap_or_default();
                    let result = match request["method"].as_str() {
                        Some("selection") => json!({"path": path, "text": "let answer = 42;\u{1b}[2J\n",
                            "start": {"line": 6, "character": 0}, "end": {"line": 7, "character": 0}}),
                        _ => json!({}),
                    };
                    if let Ok(mut received) = received.lock() {
                        received.push(request.clone());
                    }
                    if writeln!(output, "{}", json!({"id": request["id"], "result": result})).is_err() {
                        break;
                    }
                }
            }
        });
        Ok(Self { value, requests })
    }

    fn received(&self, method: &str) -> Vec<Value> {
        let requests = self.requests.lock().map(|requests| requests.clone()).unwrap_or_default();
        requests.into_iter().filter(|request| request["method"] == method).collect()
    }
}

#[test]
fn the_selection_of_the_editor_is_attached_to_a_prompt() -> Result<()> {
    let show = json!({"command": "echo \"[$CODEWRIGHT_EDITOR]\"", "description": "x"});
    let script = Script::new().turn(Turn::steps().tool("bash", show)).turn(Turn::text("I see it."));
    let stage = Stage::git(script)?;
    let file = stage.project.write("src/main.rs", "fn main() {}\n")?;
    let channel = Channel::start(&file)?;
    let mut terminal = start(&stage, &[("TERM_PROGRAM", "vscode"), ("CODEWRIGHT_EDITOR", &channel.value)])?;
    terminal.shows("plain-model")?;
    terminal.send("what is @selec")?;
    terminal.shows("the selected text in the editor")?;
    terminal.send(ENTER)?;
    terminal.shows("[main.rs:7]")?;
    terminal.send(ENTER)?;
    terminal.shows("I see it.")?;
    let sent = user_text(&stage.server.main_requests()[0]);
    check_has(&sent, &["The selection in `src/main.rs`, lines 7:", "let answer = 42;"]);
    assert!(!sent.contains('\u{1b}'), "{sent:?}");
    assert_eq!(channel.received("hello")[0]["params"]["token"], TOKEN);
    // Commands of the model do not learn the token.
    check_has(&stage.results(1)?[0], &["[]"]);
    Ok(())
}

#[test]
fn a_changed_file_is_shown_and_opened_in_the_editor() -> Result<()> {
    let edit = json!({"filePath": "a.txt", "oldString": "one", "newString": "two"});
    let script = Script::new().turn(Turn::steps().tool("edit", edit)).turn(Turn::text("Done."));
    let stage = Stage::git(script)?;
    stage.project.write("a.txt", "one\nmore\n")?;
    stage.project.run_git(&["add", "."])?;
    stage.project.run_git(&["commit", "-qm", "start"])?;
    let channel = Channel::start(&stage.project.path("a.txt"))?;
    let mut terminal = start(&stage, &[("CODEWRIGHT_EDITOR", &channel.value)])?;
    terminal.shows("plain-model")?;
    terminal.send("change it")?;
    terminal.send(ENTER)?;
    terminal.shows("Done.")?;
    terminal.send("/diff")?;
    terminal.send(ENTER)?;
    terminal.until("the changes", |screen| screen.contains(" Diff ") && screen.contains("1 file "))?;
    terminal.send("o")?;
    wait_until("the change in the editor", || !channel.received("diff").is_empty())?;
    let shown = &channel.received("diff")[0]["params"];
    assert_eq!((&shown["before"], &shown["after"]), (&json!("one\nmore\n"), &json!("two\nmore\n")));
    Ok(())
}

#[test]
fn a_program_of_the_editor_opens_a_file_without_a_channel() -> Result<()> {
    let stage = Stage::git(Script::new().turn(Turn::text("See src/main.rs:3 there.")))?;
    stage.project.write("src/main.rs", "1\n2\n3\n")?;
    let programs = stage.project.home().join("programs");
    let (code, opened) = (programs.join("code"), stage.project.home().join("opened"));
    std::fs::create_dir_all(&programs)?;
    std::fs::write(&code, format!("#!/bin/sh\necho \"$@\" > {}\n", opened.display()))?;
    std::fs::set_permissions(&code, std::fs::Permissions::from_mode(0o755))?;
    // A program of the project is not used.
    let own = stage.project.write("bin/code", "#!/bin/sh\ntouch owned\n")?;
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:{}:/usr/bin:/bin", stage.project.path("bin").display(), programs.display());
    let mut terminal = start(&stage, &[("TERM_PROGRAM", "vscode"), ("PATH", &path)])?;
    terminal.shows("plain-model")?;
    terminal.send("where is it")?;
    terminal.send(ENTER)?;
    let screen = terminal.shows("See src/main.rs:3 there.")?;
    terminal.shows("▣  Build · plain-model ·")?;
    let screen = terminal.settled(|screen| screen.to_owned()).map(|found| found.contents()).unwrap_or(screen);
    let row = screen.lines().position(|line| line.contains("See src/main.rs:3")).unwrap_or(0);
    let line = screen.lines().nth(row).unwrap_or_default();
    let column = line.chars().take_while(|c| *c != 'S').count() + 5;
    // A click with the left button.
    for end in ['M', 'm'] {
        terminal.send(&format!("\u{1b}[<0;{};{}{end}", column + 1, row + 1))?;
    }
    wait_until("the start of the editor", || opened.exists())?;
    let args = std::fs::read_to_string(&opened)?;
    check_has(&args, &["--goto", "src/main.rs:3:1"]);
    assert!(!stage.project.path("owned").exists());
    Ok(())
}
