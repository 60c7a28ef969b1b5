//! The terminal client on a pseudo-terminal.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Project, Script, Terminal, TerminalOptions, Turn};
use serde_json::{Value, json};

use super::provider::{KEY, Provider};
use super::{Hour, has, lacks};

const ENTER: &str = "\r";
const ESCAPE: &str = "\u{1b}";
const CONTROL_C: &str = "\u{3}";
const CONTROL_P: &str = "\u{10}";
const CONTROL_R: &str = "\u{12}";
const DELETE_LINE: &str = "\u{15}";
const LEADER: &str = "\u{18}";
const SHIFT_TAB: &str = "\u{1b}[Z";
const ALT_UP: &str = "\u{1b}[1;3A";
/// Columns and rows.
const SIZE: (u16, u16) = (110, 40);
/// The longest wait for a change of a file.
const FILE_DEADLINE: Duration = Duration::from_secs(20);
/// The time in which a lone escape is told from the start of a sequence.
const PAUSE: Duration = Duration::from_millis(300);

/// Plays the steps.
pub(super) fn play(hour: &mut Hour) -> Result<()> {
    let program = hour.program.clone();
    let provider = Provider::start(answers())?;
    let project = Project::git()?;
    let mut seat = Seat::sit(&program, &project, &[])?;
    without_a_model(hour, &mut seat);
    drop(seat);
    provider.describe(&project, json!({ "permission": { "bash": "ask" } }))?;
    let mut seat = Seat::sit(&program, &project, &[])?;
    connect(hour, &mut seat);
    first_prompts(hour, &mut seat, &project);
    interrupts(hour, &mut seat);
    looking(hour, &mut seat);
    undo(hour, &mut seat, &project);
    choices(hour, &mut seat);
    pages(hour, &mut seat, &project);
    leaving(hour, &mut seat);
    beside(hour, &program, &project)
}

/// What the model answers, by the words of the prompt.
fn answers() -> Script {
    let bash = |command: &str| Turn::steps().tool("bash", json!({ "command": command, "description": "d" }));
    let write = json!({ "filePath": "note.txt", "content": "written\n" });
    let finding = json!({ "summary": "Mostly fine.", "findings": [
        { "file": "odd.txt", "line": 2, "severity": "high", "title": "The second line is odd", "description": "It breaks.",
          "original": "two", "suggestion": "2" },
        { "file": "odd.txt", "line": 1, "severity": "low", "title": "The first line is short", "description": "d" },
    ]});
    let mut script = Script::new()
        .models(["coder-1", "coder-2"])
        .title("A first session")
        .session("say hello", [Turn::text("Hello from the model. The needle is here.")])
        .session("run the tests", [bash("seq 1 60; echo last-line; exit 3"), Turn::text("They fail.")])
        .session("try again", [bash("echo again"), Turn::text("Not again.")])
        .session("write a note", [Turn::steps().tool("write", write), Turn::text("Written.")])
        .session("think long", [Turn::text("Begun.\n").hang()])
        .session("Review the", [Turn::steps().tool("StructuredOutput", finding)])
        .default_turn(Turn::text("Hello."));
    for session in &mut script.sessions {
        session.repeat = true;
    }
    script
}

/// A user at a terminal.
struct Seat {
    terminal: Terminal,
}

impl Seat {
    fn sit(program: &Path, project: &Project, args: &[&str]) -> Result<Self> {
        Self::sit_with(program, project, args, &[])
    }

    fn sit_with(
        program: &Path,
        project: &Project,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        let defaults = [("COLORTERM", "truecolor"), ("TERM_PROGRAM", "WezTerm")];
        let variables: Vec<_> = defaults.iter().chain(variables).copied().collect();
        let terminal = Terminal::start(&TerminalOptions {
            program: program.as_os_str(),
            args,
            project,
            variables: &variables,
            size: SIZE,
        })?;
        Ok(Self { terminal })
    }

    /// Types a line, waits until it is on the screen, and sends it.
    fn say(&mut self, text: &str) -> Result<()> {
        self.terminal.send(text)?;
        self.terminal.shows(&format!("┃  {text}"))?;
        self.terminal.send(ENTER)
    }

    /// Waits until no turn runs.
    fn idle(&self) -> Result<String> {
        self.terminal.hides("esc interrupt")
    }

    /// Closes what is open, and clears the prompt.
    fn close(&mut self) -> Result<()> {
        for key in [ESCAPE, ESCAPE, DELETE_LINE] {
            self.terminal.send(key)?;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Opens a new session.
    fn fresh(&mut self) -> Result<()> {
        self.close()?;
        self.say("/new")?;
        self.terminal.shows("tab agents").map(drop)
    }
}

impl Hour {
    /// Plays a step at a terminal. After a failure, dialogs are closed.
    fn at(&mut self, seat: &mut Seat, name: &str, play: impl FnOnce(&mut Seat) -> Result<()>) {
        let result = play(seat);
        if result.is_err() {
            // The next step reports a client that has ended.
            seat.close().unwrap_or_default();
        }
        self.step(name, || result);
    }
}

fn without_a_model(hour: &mut Hour, seat: &mut Seat) {
    hour.at(seat, "without a key the first view says what to do", |seat| {
        let screen = seat.terminal.shows("codewright demo")?;
        has(
            &screen,
            &["No model is available yet.", "/connect", "codewright providers login", "no model yet"],
        )
    });
    hour.at(seat, "a prompt without a model is not sent, and stays", |seat| {
        seat.say("hello")?;
        has(&seat.terminal.shows("no model is available yet")?, &["┃  hello"])?;
        seat.close()
    });
}

fn connect(hour: &mut Hour, seat: &mut Seat) {
    let enter = |seat: &mut Seat, key: &str| -> Result<()> {
        seat.say("/connect")?;
        seat.terminal.shows("Connect a provider")?;
        seat.terminal.send("Mine")?;
        seat.terminal.until("the provider alone", |screen| screen.contains("› Mine"))?;
        seat.terminal.send(ENTER)?;
        seat.terminal.shows("Key for Mine")?;
        seat.terminal.send(key)?;
        seat.terminal.shows("••••")?;
        seat.terminal.send(ENTER)
    };
    hour.at(seat, "a wrong key is reported when it is entered", |seat| {
        enter(seat, "sk-wrong")?;
        let screen = seat.terminal.shows("refuses the key")?;
        lacks(&screen, &["sk-wrong"])?;
        seat.close()
    });
    hour.at(seat, "the right key is accepted, and the models are offered", |seat| {
        enter(seat, KEY)?;
        let screen = seat.terminal.shows("Select model")?;
        has(&screen, &["accepts the key", "Coder 1", "Coder 2"])?;
        seat.terminal.send("Coder 1")?;
        seat.terminal.hides("Coder 2  ")?;
        seat.terminal.send(ENTER)?;
        seat.terminal.shows("Build · Coder 1").map(drop)
    });
}

fn first_prompts(hour: &mut Hour, seat: &mut Seat, project: &Project) {
    hour.at(seat, "the first prompt is answered", |seat| {
        seat.say("say hello")?;
        seat.terminal.shows("Hello from the model.")?;
        has(&seat.idle()?, &["▣  Build · Coder 1"])
    });
    hour.at(seat, "the title of the terminal is the session's", |seat| {
        seat.terminal.until("the title", |_| seat.terminal.written().contains("A first session")).map(drop)
    });
    hour.at(seat, "a command asks with its reason, and a letter allows it", |seat| {
        seat.fresh()?;
        seat.say("run the tests")?;
        let screen = seat.terminal.shows("Permission required")?;
        has(&screen, &["$ seq 1 60", "[Allow once]", "Reject", "y a n"])?;
        std::thread::sleep(Duration::from_secs(1));
        seat.terminal.send("y")?;
        seat.terminal.shows("They fail.").map(drop)
    });
    hour.at(seat, "a finished command shows its last lines and its exit code", |seat| {
        let screen = seat.idle()?;
        has(&screen, &["last-line", "exit 3"])?;
        lacks(&screen, &["\n  11\n"])
    });
    hour.at(seat, "a letter rejects, and people get one sentence", |seat| {
        seat.fresh()?;
        seat.say("try again")?;
        seat.terminal.shows("Permission required")?;
        std::thread::sleep(Duration::from_secs(1));
        seat.terminal.send("n")?;
        seat.terminal
            .until("the end or a field for the reason", |screen| !screen.contains("[Allow once]"))?;
        seat.terminal.send(ENTER)?;
        let screen = seat.idle()?;
        lacks(&screen, &["\"permission\""])
    });
    hour.at(seat, "a file is written, and shown as a diff", |seat| {
        seat.fresh()?;
        seat.say("write a note")?;
        seat.terminal.shows("Written.")?;
        seat.idle()?;
        wait_for(&project.path("note.txt"), Wanted::Present)?;
        has(&seat.terminal.screen().contents(), &["note.txt", "written"])
    });
}

fn interrupts(hour: &mut Hour, seat: &mut Seat) {
    hour.at(seat, "a running turn shows its time and the key that interrupts it", |seat| {
        seat.fresh()?;
        seat.say("think long")?;
        seat.terminal.shows("Begun.")?;
        seat.terminal.shows("esc interrupt")?;
        let is_timed =
            |screen: &str| screen.lines().any(|line| line.contains("esc interrupt") && line.contains("s "));
        seat.terminal.until("the elapsed time", is_timed).map(drop)
    });
    hour.at(seat, "a queued prompt has a mark, and is taken back", |seat| {
        seat.say("and then this")?;
        seat.terminal.shows("queued")?;
        seat.terminal.send(ALT_UP)?;
        seat.terminal.hides("queued")?;
        seat.terminal.shows("┃  and then this")?;
        seat.terminal.send(DELETE_LINE)?;
        seat.terminal.hides("┃  and then this").map(drop)
    });
    hour.at(seat, "one escape interrupts", |seat| {
        seat.terminal.send(ESCAPE)?;
        seat.terminal.shows("interrupted")?;
        seat.idle().map(drop)
    });
    hour.at(seat, "ctrl+c interrupts, and says how to leave", |seat| {
        seat.fresh()?;
        seat.say("think long")?;
        seat.terminal.shows("Begun.")?;
        seat.terminal.send(CONTROL_C)?;
        seat.terminal.shows("ctrl+c again to exit")?;
        seat.terminal.shows("interrupted")?;
        seat.terminal.hides("ctrl+c again to exit")?;
        seat.terminal.shows("Ask anything…").map(drop)
    });
    hour.at(seat, "without the focus the end of a turn notifies", |seat| {
        seat.fresh()?;
        seat.terminal.send("say hello")?;
        seat.terminal.shows("┃  say hello")?;
        seat.terminal.send("\u{1b}[O\r")?;
        seat.terminal.shows("Hello from the model.")?;
        seat.terminal.until("the notification", |_| seat.terminal.written().contains("\u{1b}]9;done: "))?;
        seat.terminal.send("\u{1b}[I")
    });
}

fn looking(hour: &mut Hour, seat: &mut Seat) {
    hour.at(seat, "the transcript is searched", |seat| {
        seat.idle()?;
        seat.terminal.send(LEADER)?;
        seat.terminal.send("/")?;
        seat.terminal.shows("esc close")?;
        seat.terminal.send("NEEDLE")?;
        seat.terminal.shows("1 of 1")?;
        seat.terminal.send(ESCAPE)?;
        seat.terminal.hides("1 of 1").map(drop)
    });
    hour.at(seat, "text that is selected with the mouse is copied", |seat| {
        let screen = seat.terminal.shows("Hello from the model.")?;
        let found = screen.lines().enumerate().find(|(_, line)| line.contains("Hello from"));
        let (row, line) = found.context("no row")?;
        let column = line.split("Hello from").next().unwrap_or_default().chars().count() + 1;
        let at = |column: usize| format!("{column};{}", row + 1);
        let (from, to) = (at(column), at(column + 4));
        seat.terminal.send(&format!("\u{1b}[<0;{from}M\u{1b}[<32;{to}M\u{1b}[<0;{to}m"))?;
        // `Hello` in base64.
        seat.terminal
            .until("the copy", |_| seat.terminal.written().contains("\u{1b}]52;c;SGVsbG8="))
            .map(drop)
    });
    hour.at(seat, "ctrl+r searches earlier prompts", |seat| {
        seat.terminal.send(CONTROL_R)?;
        seat.terminal.shows("run the tests")?;
        seat.terminal.send("write a")?;
        seat.terminal.hides("run the tests")?;
        seat.terminal.send(ENTER)?;
        seat.terminal.shows("┃  write a note")?;
        seat.close()
    });
    hour.at(seat, "`?` shows the keys of the moment", |seat| {
        seat.terminal.send("?")?;
        has(&seat.terminal.shows("Keys of the moment")?, &["y a n, or 1 2 3"])?;
        seat.close()
    });
    hour.at(seat, "the palette finds commands", |seat| {
        seat.terminal.send(CONTROL_P)?;
        seat.terminal.shows("Suggested")?;
        seat.terminal.send("thinking")?;
        seat.terminal.shows("Show or hide thinking")?;
        seat.close()
    });
    hour.at(seat, "an unknown slash command is an error with the nearest name", |seat| {
        seat.say("/modle")?;
        seat.terminal.shows("unknown command `/modle`: did you mean `/mode`")?;
        seat.close()
    });
}

/// Whether a file must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Present,
    Absent,
}

fn wait_for(path: &Path, wanted: Wanted) -> Result<()> {
    let until = Instant::now() + FILE_DEADLINE;
    while path.exists() != (wanted == Wanted::Present) {
        ensure!(Instant::now() < until, "`{}` did not change", path.display());
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn undo(hour: &mut Hour, seat: &mut Seat, project: &Project) {
    let note: PathBuf = project.path("note.txt");
    hour.at(seat, "an edit is undone with its files, and the prompt can be edited", |seat| {
        if note.exists() {
            std::fs::remove_file(&note)?;
        }
        seat.fresh()?;
        seat.say("write a note")?;
        seat.terminal.shows("Written.")?;
        seat.idle()?;
        wait_for(&note, Wanted::Present)?;
        seat.say("/undo")?;
        has(&seat.terminal.shows("1 message reverted")?, &["┃  write a note"])?;
        wait_for(&note, Wanted::Absent)
    });
    hour.at(seat, "and done again", |seat| {
        seat.terminal.send(DELETE_LINE)?;
        seat.terminal.hides("┃  write a note")?;
        seat.say("/redo")?;
        seat.terminal.shows("Written.")?;
        wait_for(&note, Wanted::Present)
    });
}

fn choices(hour: &mut Hour, seat: &mut Seat) {
    hour.at(seat, "shift+tab changes the permission mode, which is shown", |seat| {
        seat.fresh()?;
        let modes = ["ask", "accept edits", "plan"];
        let shown = |screen: &str| modes.iter().position(|mode| screen.contains(&format!("{mode} · ")));
        let before = shown(&seat.terminal.screen().contents());
        seat.terminal.send(SHIFT_TAB)?;
        seat.terminal.until("another mode", |screen| shown(screen).is_some() && shown(screen) != before)?;
        seat.terminal.send(SHIFT_TAB)?;
        std::thread::sleep(PAUSE);
        seat.terminal.send(SHIFT_TAB)?;
        seat.terminal.until("the first mode", |screen| shown(screen) == before).map(drop)
    });
    hour.at(seat, "a model is chosen by a part of its name", |seat| {
        seat.say("/model r-2")?;
        seat.terminal.shows("Build · Coder 2").map(drop)
    });
    hour.at(seat, "a misspelt model is an error with the nearest name", |seat| {
        seat.say("/model codr-1")?;
        seat.terminal.shows("did you mean `coder-1`")?;
        seat.close()
    });
    hour.at(seat, "the list of models has them all", |seat| {
        seat.say("/models")?;
        has(&seat.terminal.shows("Select model")?, &["Coder 1", "Coder 2"])?;
        seat.close()
    });
    hour.at(seat, "a theme is chosen by its name", |seat| {
        seat.say("/theme nord")?;
        seat.say("/status")?;
        has(&seat.terminal.shows("colours")?, &["theme", "nord"])?;
        seat.close()
    });
}

fn pages(hour: &mut Hour, seat: &mut Seat, project: &Project) {
    for (name, command, expected) in [
        ("help lists commands and keys", "/help", &["Help", "commands", "files and agents"][..]),
        (
            "without servers for tools the list says how to add one",
            "/mcps",
            &["MCP servers", "codewright mcp add"],
        ),
    ] {
        hour.at(seat, name, |seat| {
            seat.say(command)?;
            has(&seat.terminal.shows(expected[expected.len() - 1])?, expected)?;
            seat.close()
        });
    }
    hour.at(seat, "cost and context are explained", |seat| {
        seat.say("say hello")?;
        seat.terminal.shows("Hello from the model.")?;
        seat.idle()?;
        seat.say("/cost")?;
        seat.terminal.shows("input tokens")?;
        seat.close()?;
        seat.say("/context")?;
        seat.terminal.shows("tools")?;
        seat.close()
    });
    hour.at(seat, "a review is a list of findings, whose changes are applied", |seat| {
        project.write("odd.txt", "one\ntwo\n")?;
        seat.say("/review")?;
        seat.terminal.shows("Findings of the review")?;
        has(&seat.terminal.shows("The first line is short")?, &["The second line is odd", "high"])?;
        seat.terminal.send(ENTER)?;
        seat.terminal.shows("It breaks.")?;
        seat.terminal.send("a")?;
        seat.terminal.shows("the change is applied")?;
        ensure!(project.read("odd.txt")? == "one\n2\n", "the file has not changed");
        seat.close()
    });
    hour.at(seat, "a report of a bug is a file, with where to send it", |seat| {
        seat.say("/bug")?;
        has(&seat.terminal.shows("The report is in")?, &["codewright-bug-", "attach the file"])?;
        seat.close()
    });
    hour.at(seat, "the line below the prompt fits every width", |seat| {
        for width in [40, 60, 80, 120, 160, 200] {
            seat.terminal.resize((width, 40))?;
            let screen = seat.terminal.settled(str::to_owned)?.contents();
            ensure!(
                screen.lines().all(|line| line.chars().count() <= usize::from(width)),
                "{width}: {screen}"
            );
            lacks(&screen, &["interruptctrl", "commandsctrl"])?;
        }
        seat.terminal.resize(SIZE)
    });
}

fn leaving(hour: &mut Hour, seat: &mut Seat) {
    hour.at(seat, "a first ctrl+c asks, a second one leaves", |seat| {
        seat.close()?;
        seat.terminal.send(CONTROL_C)?;
        seat.terminal.shows("ctrl+c again to exit")?;
        seat.terminal.send(CONTROL_C)?;
        seat.terminal
            .until("how to continue", |_| seat.terminal.written().contains("codewright -s ses_"))
            .map(drop)
    });
}

fn beside(hour: &mut Hour, program: &Path, project: &Project) -> Result<()> {
    let mut seat = Seat::sit(program, project, &["--continue"])?;
    hour.at(&mut seat, "the last session is continued", |seat| {
        seat.terminal.shows("Coder 2")?;
        seat.terminal.shows("review").map(drop)
    });
    drop(seat);
    let variables: [(&str, &str); 2] = [("NO_COLOR", "1"), ("LANG", "C")];
    let mut seat = Seat::sit_with(program, project, &["--prompt", "say hello"], &variables)?;
    hour.at(&mut seat, "without colours and UTF-8 the screen is plain", |seat| {
        seat.terminal.shows("Coder 2")?;
        seat.terminal.send(ENTER)?;
        seat.terminal.shows("Hello from the model.")?;
        let screen = seat.idle()?;
        ensure!(screen.is_ascii(), "{screen}");
        Ok(())
    });
    drop(seat);
    untrusted(hour, program, project)
}

/// A repository that wants to start programs.
fn untrusted(hour: &mut Hour, program: &Path, known: &Project) -> Result<()> {
    let config: Value =
        serde_json::from_str(&super::read(&known.home().join(".config/opencode/opencode.json"))?)?;
    let project = Project::git()?;
    project.write_config(&config)?;
    project
        .write("opencode.json", r#"{"mcp": {"evil": {"type": "local", "command": ["touch", "evil"]}}}"#)?;
    let mut seat = Seat::sit_with(program, &project, &[], &[("CODEWRIGHT_TRUST", "ask")])?;
    hour.at(
        &mut seat,
        "a repository that wants to start programs is asked about, with nothing chosen",
        |seat| {
            has(&seat.terminal.shows("Trust this repository")?, &["evil", "opencode.json"])?;
            ensure!(!project.path("evil").exists(), "the program was started");
            Ok(())
        },
    );
    Ok(())
}
