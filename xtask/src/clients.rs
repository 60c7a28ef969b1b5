//! Tests with clients of others: OpenCode's npm package (`sdk`) and terminal client (`tui`), unmodified, the official
//! package of the Agent Client Protocol (`acp`).
//!
//! They are not part of `.ci/run`, because npm installs the clients from the network.

mod editor;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use codewright_testkit::{BlockingServer, Project, Script, Turn};
use serde_json::json;

/// The version of the clients.
const VERSION: &str = "1.18.33";
/// The script that uses the package.
const DRIVE: &str = include_str!("clients/drive.mjs");
/// The script that uses the package of the Agent Client Protocol, and the package.
const EDIT: &str = include_str!("clients/acp.mjs");
const EDITING: (&str, &str) = ("@agentclientprotocol/sdk", "2.4.0");
/// The deadline of the package test.
const DRIVE_SECONDS: &str = "120";
/// The deadline of a change of the screen.
const SHOW: Duration = Duration::from_secs(45);
/// The interval at which the screen is read.
const POLL: Duration = Duration::from_millis(250);

/// Returns the search path.
#[expect(clippy::disallowed_methods, reason = "the started programs need the search path of this process")]
pub(crate) fn search() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Returns the program of `--bin`, or builds it.
pub(crate) fn program(rest: &[String]) -> Result<PathBuf> {
    match rest {
        [] => crate::bench::build_release(),
        [flag, path] if flag == "--bin" => Ok(fs::canonicalize(path)?),
        _ => bail!("the only flag is `--bin PATH`; see `cargo xtask --help`"),
    }
}

/// Returns the directory of an npm package, which is installed once in `target`.
pub(crate) fn package(name: &str, version: &str) -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/npm").join(name.replace('/', "-"));
    let installed = root.join("node_modules").join(name);
    if !installed.join("package.json").exists() {
        fs::create_dir_all(&root)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(&root);
        npm.arg(format!("{name}@{version}")).stdout(Stdio::null());
        if !npm.status().context("cannot start npm")?.success() {
            bail!("npm could not install {name}@{version}");
        }
    }
    Ok(fs::canonicalize(installed)?)
}

/// Tests the package, which starts the program as `opencode` and calls it with both clients.
pub(crate) fn sdk(rest: &[String]) -> Result<ExitCode> {
    let program = program(rest)?;
    let package = package("@opencode-ai/sdk", VERSION)?;
    let model = BlockingServer::start(Script::new().text("Hello.").repeat())?;
    let project = Project::git()?;
    project.configure(&model.url())?;
    let names = project.home().join("names");
    fs::create_dir_all(&names)?;
    std::os::unix::fs::symlink(&program, names.join("opencode"))?;
    let drive = project.home().join("drive.mjs");
    fs::write(&drive, DRIVE)?;
    let search = std::env::join_paths(std::iter::once(names).chain(std::env::split_paths(&search())))?;
    let mut node = Command::new("timeout");
    node.args([DRIVE_SECONDS, "node"]).arg(&drive).arg(&package).arg(project.directory());
    node.env_clear().envs(project.environment()).env("PATH", search).current_dir(project.directory());
    let driven = node.status().context("cannot start node")?;
    Ok(if driven.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a line.
fn say(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// Tests `acp` with the official clients of the Agent Client Protocol as the editor, twice: once the program answers, and
/// once it is the client of another process of the program, which answers.
pub(crate) fn acp(rest: &[String]) -> Result<ExitCode> {
    let program = program(rest)?;
    let package = package(EDITING.0, EDITING.1)?;
    for mode in ["build", "other"] {
        say(&format!("-- the agent `{mode}`, with the TypeScript client"))?;
        let scene = EditorScene::new(&program, mode)?;
        let project = &scene.project;
        let drive = project.home().join("drive.mjs");
        fs::write(&drive, EDIT)?;
        let mut node = Command::new("timeout");
        node.args([DRIVE_SECONDS, "node"]).arg(&drive).arg(&package).arg(&program).arg(project.directory());
        node.arg(mode);
        node.env_clear().envs(project.environment()).env("PATH", search()).current_dir(project.directory());
        if !node.status().context("cannot start node")?.success() {
            return Ok(ExitCode::FAILURE);
        }
        say(&format!("-- the agent `{mode}`, with the Rust client"))?;
        let scene = EditorScene::new(&program, mode)?;
        let count = editor::drive(&program, &scene.project, mode)?;
        say(&format!("{count} of {count}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A project for an editor, and its model.
struct EditorScene {
    project: Project,
    _model: BlockingServer,
}

impl EditorScene {
    fn new(program: &Path, mode: &str) -> Result<Self> {
        let model = BlockingServer::start(script())?;
        let project = Project::git()?;
        let mut config = Project::config(&model.url());
        config["permission"] = json!({"bash": "ask"});
        // The sandbox of the agent lets it write the home directory of its user.
        let home = project.home().join("agent");
        fs::create_dir_all(home.join(".config/opencode"))?;
        fs::write(home.join(".config/opencode/opencode.json"), config.to_string())?;
        let environment = json!({
            "HOME": home, "XDG_CONFIG_HOME": home.join(".config"), "XDG_DATA_HOME": home.join(".local/share"),
            "XDG_STATE_HOME": home.join(".local/state"), "XDG_CACHE_HOME": home.join(".cache"),
            "CODEWRIGHT_SANDBOX_OUTER": "1",
        });
        config["agent"] = json!({"other": {
            "type": "acp", "command": [program, "acp"], "environment": environment, "description": "Another agent",
        }});
        config["default_agent"] = json!(mode);
        project.write_config(&config)?;
        project.write("src/util.py", "def add(a, b):\n    return a + b\n")?;
        Ok(Self { project, _model: model })
    }
}

/// Keys to type, and texts that must appear. A text that begins with `-` must disappear.
struct Act {
    name: &'static str,
    keys: &'static [&'static str],
    shows: &'static [&'static str],
}

const fn act(name: &'static str, keys: &'static [&'static str], shows: &'static [&'static str]) -> Act {
    Act { name, keys, shows }
}

/// A session of a user. Keys have the names of tmux; a key that begins with `=` is a text to type.
const ACTS: &[Act] = &[
    act("home", &[], &["Ask anything", "Build", "Mock"]),
    act("prompt and thought", &["=say hello", "Enter"], &["Thought", "Hello from the model"]),
    act("edit with its difference", &["=EDIT it", "Enter"], &["Edit src/util.py", "a + b + 0", "Edited it."]),
    act("undo", &["C-x", "u"], &["message reverted"]),
    act("redo", &["C-x", "r"], &["Edited it."]),
    act("permission dialog", &["C-u", "=RUN it", "Enter"], &["Permission required", "Allow once"]),
    act("permission given", &["Enter"], &["from-bash", "Ran it."]),
    act("permission for always", &["=KEEP it", "Enter"], &["Permission required", "Allow always"]),
    act("confirmation of always", &["Right", "Enter"], &["Always allow", "until OpenCode is restarted"]),
    act("permission kept", &["Enter"], &["kept-one", "Kept it."]),
    act("no second question", &["=KEEP it", "Enter"], &["kept-two", "Kept it again."]),
    act("permission refused", &["=DENY it", "Enter"], &["Permission required", "Reject"]),
    act("refused with a word", &["Right", "Right", "Enter", "=rather not", "Enter"], &["Denied then."]),
    act("question", &["=QUIZ me", "Enter"], &["Which color?", "Red", "Type your own answer"]),
    act("second question", &["Enter"], &["Pick many", "[ ] A"]),
    act("review of answers", &["Enter", "Tab"], &["Review", "Color: Red", "Many: A"]),
    act("questions answered", &["Enter"], &["# Questions", "Quizzed."]),
    act("things to do", &["=PLAN it", "Enter"], &["first thing", "[•] second thing", "Planned it."]),
    act("shell mode", &["=!"], &["Shell", "exit shell mode"]),
    act("shell command", &["=echo from-shell-$((40+2))", "Enter"], &["from-shell-42"]),
    act("own command", &["=/greet big world", "Enter"], &["greet all=[big world] two=[world]"]),
    act("subagent", &["=HAND over", "Enter"], &["General Task", "Sub work", "Handed over."]),
    act("subagent's session", &["C-x", "Down"], &["Sub said this.", "General (1 of 1)"]),
    act("back to its caller", &["Up"], &["Handed over."]),
    act("failed request", &["=BREAK it", "Enter"], &["the model is out of order"]),
    act("file completion", &["=look at @ut"], &["src/util.py"]),
    act("file chosen", &["Enter", "Enter"], &["File", "Hello from the model"]),
    act("agent completion", &["=ask @gen"], &["@general"]),
    act("models", &["C-u", "C-x", "m"], &["Select model"]),
    act("agents", &["Escape", "C-x", "a"], &["Select agent", "plan"]),
    act("sessions", &["Escape", "C-x", "l"], &["Sessions", "Scripted title"]),
    act("status", &["Escape", "C-x", "s"], &["Status", "No MCP Servers"]),
    act("timeline", &["Escape", "C-x", "g"], &["Timeline", "EDIT it"]),
    act("skills", &["Escape", "=/skills", "Enter"], &["Skills", "customize"]),
    act("diff viewer", &["Escape", "=/diff", "Enter"], &["Diff", "util.py", "a + b + 0"]),
    act("palette", &["Escape", "C-p"], &["Commands"]),
    act("rename", &["Escape", "=/rename", "Enter"], &["Rename Session"]),
    act("renamed", &["= again", "Enter"], &["Scripted title again"]),
    act("compact", &["C-x", "c"], &["Compaction"]),
    act("fork", &["=/fork", "Enter"], &["Fork session"]),
    act("forked", &["Enter"], &["(fork #1)"]),
    act("interrupt", &["=WAIT for it", "Enter"], &["one two"]),
    act("interrupted", &["Escape", "Escape"], &["interrupted"]),
    act("new session", &["C-x", "n"], &["Ask anything"]),
    act("sessions again", &["C-x", "l"], &["Sessions", "(fork #1)"]),
    act("session deleted", &["C-d", "C-d"], &["Sessions", "Scripted title again", "-(fork #1)"]),
];

/// A command of the project.
const COMMAND: (&str, &str) = (
    ".opencode/command/greet.md",
    "---\ndescription: Greets somebody\n---\ngreet all=[$ARGUMENTS] two=[$2]\n",
);

/// Tests the terminal client with a session in tmux.
pub(crate) fn tui(rest: &[String]) -> Result<ExitCode> {
    let program = program(rest)?;
    let client = package("opencode-linux-x64-baseline", VERSION)?.join("bin/opencode");
    let model = BlockingServer::start(script())?;
    let project = Project::git()?;
    let mut config = Project::config(&model.url());
    config["permission"] = json!({"bash": "ask"});
    project.write_config(&config)?;
    project.write("src/util.py", "def add(a, b):\n    return a + b\n")?;
    project.write(COMMAND.0, COMMAND.1)?;
    let server = Served::start(&program, &project, &[])?;
    let screen = Screen::open(&client, &server.url, &project)?;
    let mut failed = 0;
    let mut out = std::io::stdout();
    for Act { name, keys, shows } in ACTS {
        screen.press(keys)?;
        match screen.wait(shows)? {
            None => writeln!(out, "ok    {name}")?,
            Some(shown) => {
                failed += 1;
                writeln!(out, "FAIL  {name}: {shows:?} is not on the screen\n{shown}")?;
            }
        }
    }
    writeln!(out, "{} of {} acts as expected", ACTS.len() - failed, ACTS.len())?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn script() -> Script {
    let call = |tool: &str, input: serde_json::Value| Turn::steps().tool(tool, input);
    let bash = |command: &str| call("bash", json!({"command": command, "description": "say it"}));
    let text = |text: &str| Turn::steps().text(text);
    let edited = json!({"filePath": "src/util.py", "oldString": "a + b", "newString": "a + b + 0"});
    let edit = [call("read", json!({"filePath": "src/util.py"})), call("edit", edited), text("Edited it.")];
    let quiz = json!({"questions": [
        {"question": "Which color?", "header": "Color", "options": [
            {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]},
        {"question": "Pick many", "header": "Many", "multiple": true, "options": [
            {"label": "A", "description": "a"}, {"label": "B", "description": "b"}]},
    ]});
    let plan = json!({"todos": [
        {"content": "first thing", "status": "completed", "priority": "high"},
        {"content": "second thing", "status": "in_progress", "priority": "low"},
    ]});
    let task = json!({"description": "Sub work", "prompt": "BELOW it", "subagent_type": "general"});
    let kept = [bash("echo kept-one"), text("Kept it."), bash("echo kept-two"), text("Kept it again.")];
    let slow = text("one two three four five six seven eight nine ten eleven twelve");
    let broken: Turn =
        Turn::http_error(400).body(json!({"error": {"message": "the model is out of order"}})).into();
    let answer = Turn::steps().reasoning("hmm").text("Hello from the model");
    // Every request contains the earlier prompts of its session, so the latest prompt must match first.
    Script::new()
        .title("Scripted title")
        .session("WAIT for it", [slow.chunk_size(8).chunk_delay_ms(1500)])
        .session("BREAK it", [broken])
        .session("BELOW it", [text("Sub said this.")])
        .session("HAND over", [call("task", task), text("Handed over.")])
        .session("PLAN it", [call("todowrite", plan), text("Planned it.")])
        .session("QUIZ me", [call("question", quiz), text("Quizzed.")])
        .session("DENY it", [bash("printf denied"), text("Denied then.")])
        .session("KEEP it", kept)
        .session("RUN it", [bash("echo from-bash"), text("Ran it.")])
        .session("EDIT it", edit)
        .default_turn(answer)
}

/// A server of the program, killed when dropped.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(program: &Path, project: &Project, variables: &[(&str, &str)]) -> Result<Self> {
        let mut serve = Command::new(program);
        serve.args(["serve", "--port", "0"]).env_clear().envs(project.environment());
        serve.env("PATH", search()).envs(variables.iter().copied());
        serve.current_dir(project.directory()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = serve.spawn().context("cannot start the program")?;
        let stdout = child.stdout.take().context("the program has no output")?;
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line)?;
        let url = line.split(" on ").nth(1).context("the program does not print its address")?;
        Ok(Self { url: url.trim().to_owned(), child })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A tmux session.
struct Screen {
    name: String,
}

impl Screen {
    fn open(client: &Path, url: &str, project: &Project) -> Result<Self> {
        let screen = Self { name: format!("codewright-{}", std::process::id()) };
        let home = project.home().join("client");
        fs::create_dir_all(&home)?;
        let path = search().to_string_lossy().into_owned();
        let command = format!(
            "env -i PATH='{path}' HOME='{}' TERM=xterm-256color '{}' attach {url} --dir '{}'; sleep 60",
            home.display(),
            client.display(),
            project.directory().display(),
        );
        screen.tmux(&["new-session", "-d", "-s", "s", "-x", "150", "-y", "60", &command])?;
        Ok(screen)
    }

    fn tmux(&self, args: &[&str]) -> Result<Output> {
        let output = Command::new("tmux").args(["-L", &self.name]).args(args).output();
        let output = output.context("cannot start tmux")?;
        if !output.status.success() {
            bail!("tmux: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output)
    }

    fn press(&self, keys: &[&str]) -> Result<()> {
        for key in keys {
            match key.strip_prefix('=') {
                Some(text) => self.tmux(&["send-keys", "-t", "s", "-l", text])?,
                None => self.tmux(&["send-keys", "-t", "s", key])?,
            };
            // Keys that arrive too fast would count as pasted text.
            sleep(POLL * 2);
        }
        Ok(())
    }

    /// Waits for texts. Returns the screen if they do not appear.
    fn wait(&self, texts: &[&str]) -> Result<Option<String>> {
        let until = Instant::now() + SHOW;
        loop {
            let screen = self.tmux(&["capture-pane", "-p", "-t", "s"])?.stdout;
            let screen = String::from_utf8_lossy(&screen).into_owned();
            if texts.iter().all(|text| fits(&screen, text)) {
                return Ok(None);
            }
            if Instant::now() > until {
                return Ok(Some(screen));
            }
            sleep(POLL);
        }
    }
}

fn fits(screen: &str, text: &str) -> bool {
    text.strip_prefix('-').map_or_else(|| screen.contains(text), |gone| !screen.contains(gone))
}

impl Drop for Screen {
    fn drop(&mut self) {
        // An error means that the session has ended.
        Command::new("tmux").args(["-L", &self.name, "kill-server"]).output().ok();
    }
}
