//! Draws the pictures of docs/tui.md: screens of the terminal client.
//!
//! The screens depend only on the scripted model and a temporary project, and durations and spinners are
//! replaced by constants, so the pictures change only if the client changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use codewright_testkit::{BlockingServer, Project, Script, Terminal, TerminalOptions, Turn};
use serde_json::json;

mod svg;

const ENTER: &str = "\r";
const ESCAPE: &str = "\u{1b}";
const PALETTE: &str = "\u{10}";
const LEADER: &str = "\u{18}";
const MODEL: &str = "plain-model";

const CALC: &str = "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n\npub fn mul(a: i32, b: i32) -> i32 {\n    a * b\n}\n\n\
                    #[test]\nfn adds() {\n    assert_eq!(add(2, 2), 4);\n}\n";
const ANSWER: &str = "## The test passes\n\n`add` **subtracted**: a minus had crept in.\n\n- `src/calc.rs` adds again\n- the test \
                      that failed is green\n\n| test | before | after |\n|---|---|---|\n| `adds` | failed | ok |\n\n```rust\n\
                      assert_eq!(add(2, 2), 4); // as it should be\n```\n";

/// The title of the session.
const TITLE: &str = "Fix the test of add";
/// The end of the answer.
const ANSWER_END: &str = "// as it should be";

/// Draws all pictures.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let program = match rest {
        [] => crate::bench::build_release()?,
        [flag, path] if flag == "--bin" => {
            fs::canonicalize(path).with_context(|| format!("cannot find `{path}`"))?
        }
        _ => bail!("the only flag of `pictures` is `--bin PATH`"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in the workspace")?;
    let studio = Studio { program, folder: root.join("docs/pictures") };
    fs::create_dir_all(&studio.folder)?;
    studio.large()?;
    studio.light()?;
    studio.question()?;
    studio.mini()?;
    Ok(ExitCode::SUCCESS)
}

/// The program and the folder of the pictures.
struct Studio {
    program: PathBuf,
    folder: PathBuf,
}

/// A project and its model.
struct Stage {
    project: Project,
    _server: BlockingServer,
}

impl Studio {
    fn start(
        &self,
        stage: &Stage,
        args: &[&str],
        variables: &[(&str, &str)],
        size: (u16, u16),
    ) -> Result<Terminal> {
        let project = &stage.project;
        // With the parent as home, the project's path starts with `~` and does not show the temporary directory.
        let home = project
            .directory()
            .parent()
            .and_then(Path::to_str)
            .context("the project has no parent directory")?;
        // Neither the network nor servers of this machine change the list of models.
        let alone = [("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_LOCAL_SERVERS", "1")];
        let defaults = [("HOME", home), ("COLORTERM", "truecolor"), ("TZ", "UTC"), alone[0], alone[1]];
        let variables: Vec<_> = defaults.iter().chain(variables).copied().collect();
        Terminal::start(&TerminalOptions {
            program: self.program.as_os_str(),
            args,
            project,
            variables: &variables,
            size,
        })
    }

    fn keep(&self, name: &str, terminal: &Terminal) -> Result<()> {
        let picture = svg::draw(&terminal.settled(svg::freeze)?);
        let path = self.folder.join(name).with_extension("svg");
        fs::write(&path, picture).with_context(|| format!("cannot write `{}`", path.display()))
    }

    /// Draws a session and most dialogs.
    fn large(&self) -> Result<()> {
        let stage = stage(fix_script())?;
        let mut terminal = self.start(&stage, &[], &[], (118, 40))?;
        terminal.shows(MODEL)?;
        self.keep("home", &terminal)?;
        terminal.send("The test of add fails. Fix @calc")?;
        terminal.shows("src/calc.rs")?;
        terminal.send(ENTER)?;
        terminal.shows("@src/calc.rs ")?;
        terminal.send(ENTER)?;
        terminal.shows("[Allow once]")?;
        self.keep("permission", &terminal)?;
        terminal.send(ENTER)?;
        wait_for_answer(&terminal)?;
        terminal.resize((132, 60))?;
        terminal.shows(TITLE)?;
        self.keep("session", &terminal)?;
        terminal.resize((118, 40))?;
        terminal.send(PALETTE)?;
        terminal.shows("Commands")?;
        self.keep("palette", &terminal)?;
        terminal.send(ESCAPE)?;
        terminal.hides("Suggested")?;
        terminal.send(LEADER)?;
        terminal.send("m")?;
        terminal.shows("Select model")?;
        self.keep("models", &terminal)?;
        terminal.send(ESCAPE)?;
        terminal.hides("Select model")?;
        terminal.resize((136, 32))?;
        terminal.send("/diff")?;
        terminal.shows("Review changes")?;
        terminal.send(ENTER)?;
        terminal.shows("working tree")?;
        terminal.shows("a + b")?;
        self.keep("diff", &terminal)
    }

    fn light(&self) -> Result<()> {
        let stage = stage(fix_script())?;
        let variables = [("COLORFGBG", "0;15")];
        let args = ["--auto", "--prompt", "The test of add fails. Fix it."];
        let mut terminal = self.start(&stage, &args, &variables, (118, 50))?;
        terminal.shows(MODEL)?;
        terminal.send(ENTER)?;
        wait_for_answer(&terminal)?;
        self.keep("light", &terminal)
    }

    fn question(&self) -> Result<()> {
        let questions = json!({"questions": [
            {"question": "Which database shall the service use?", "header": "Database", "options": [
                {"label": "SQLite", "description": "one file, nothing to run"},
                {"label": "PostgreSQL", "description": "a server, many writers"}]},
            {"question": "What shall be logged?", "header": "Log", "multiple": true, "options": [
                {"label": "Requests", "description": "one line each"},
                {"label": "Queries", "description": "with their times"}]},
        ]});
        let stage = stage(Script::new().title("A service").tool("question", questions))?;
        let mut terminal = self.start(&stage, &["--prompt", "Set up the service."], &[], (118, 34))?;
        terminal.shows(MODEL)?;
        terminal.send(ENTER)?;
        terminal.shows("Which database")?;
        self.keep("question", &terminal)
    }

    fn mini(&self) -> Result<()> {
        let stage = stage(fix_script())?;
        let args = ["--mini", "--auto", "--prompt", "The test of add fails. Fix it."];
        let mut terminal = self.start(&stage, &args, &[], (100, 44))?;
        terminal.shows(MODEL)?;
        terminal.send(ENTER)?;
        wait_for_answer(&terminal)?;
        terminal.send("And now mul")?;
        terminal.shows("And now mul")?;
        self.keep("mini", &terminal)
    }
}

/// Waits for the end of the turn. The last line alone is not enough, because every step ends with one.
fn wait_for_answer(terminal: &Terminal) -> Result<()> {
    terminal.shows(ANSWER_END)?;
    terminal.hides("esc interrupt")?;
    terminal.shows("Build · plain-model ·").map(drop)
}

/// Returns a turn that finds and fixes a mistake.
fn fix_script() -> Script {
    let edit = json!({"filePath": "src/calc.rs", "oldString": "    a - b\n", "newString": "    a + b\n"});
    let todos = json!({"todos": [
        {"content": "find the mistake", "status": "completed", "priority": "high"},
        {"content": "mend it", "status": "completed", "priority": "high"},
        {"content": "run the tests", "status": "in_progress", "priority": "medium"},
    ]});
    Script::new()
        .title(TITLE)
        .turn(Turn::steps().reasoning("The test adds, so look at `add`.").text("I'll look at the function first.").tool("read", json!({"filePath": "src/calc.rs"})))
        .turn(Turn::steps().tool("todowrite", todos))
        .turn(Turn::text("It subtracts.").tool("edit", edit))
        .turn(Turn::steps().tool("bash", json!({"command": "echo 'test adds ... ok'; echo 'test result: ok. 1 passed'", "description": "Run the tests"})))
        .text(ANSWER)
}

fn stage(script: Script) -> Result<Stage> {
    let server = BlockingServer::start(script)?;
    let project = Project::git()?;
    project.write("src/calc.rs", CALC)?;
    project.write("Cargo.toml", "[package]\nname = \"calc\"\nversion = \"0.1.0\"\n")?;
    project.run_git(&["add", "--all"])?;
    project.run_git(&["commit", "--quiet", "--message=Calculate"])?;
    project.write("notes/ideas.md", "# Ideas\n\n- divide, too\n")?;
    let mut config = Project::config(&server.url());
    config["permission"] = json!({"edit": "ask"});
    project.write_config(&config)?;
    Ok(Stage { project, _server: server })
}
