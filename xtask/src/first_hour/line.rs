//! The command line: without a key, with a wrong one and the right one; first prompts; mistakes; diagnosis.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use codewright_testkit::{Finished, Project, Run, Script, Turn};
use serde_json::json;

use super::provider::{KEY, Provider};
use super::{Hour, has, lacks};

/// The longest run of a command.
const DEADLINE: Duration = Duration::from_secs(120);

/// A project and the program.
struct Desk<'a> {
    program: &'a std::path::Path,
    project: Project,
}

impl Desk<'_> {
    fn run(&self, args: &[&str]) -> Result<Finished> {
        self.start(args).finish()
    }

    /// Runs a command that has to succeed. Returns both outputs.
    fn text(&self, args: &[&str]) -> Result<String> {
        let done = self.run(args)?.success()?;
        Ok(format!("{}{}", done.stdout, done.stderr))
    }

    /// Runs a command that has to fail. Returns what it reports.
    fn error(&self, args: &[&str]) -> Result<String> {
        let done = self.run(args)?;
        ensure!(done.code != Some(0), "it succeeded: {}{}", done.stdout, done.stderr);
        Ok(done.stderr)
    }

    fn start(&self, args: &[&str]) -> Run {
        let quiet = ["OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LOCAL_SERVERS"];
        let run = Run::new(self.program, &self.project).args(args).deadline(DEADLINE);
        quiet.into_iter().fold(run, |run, name| run.env(name, "1"))
    }
}

/// Plays the steps.
pub(super) fn play(hour: &mut Hour) -> Result<()> {
    let program = hour.program.clone();
    let desk = Desk { program: &program, project: Project::git()? };
    without_a_key(hour, &desk);
    let write = Turn::steps().tool("write", json!({ "filePath": "note.txt", "content": "x\n" }));
    let bash = Turn::steps().tool("bash", json!({ "command": "echo ran", "description": "d" }));
    let script = Script::new()
        .models(["coder-1", "coder-2"])
        .default_turn(Turn::text("The answer is 42."))
        .session("write a note", [write, Turn::text("Written.")])
        .session("run it", [bash, Turn::text("Then not.")]);
    let provider = Provider::start(script)?;
    keys(hour, &desk, &provider);
    prompts(hour, &desk, &provider);
    diagnosis(hour, &desk);
    Ok(())
}

fn without_a_key(hour: &mut Hour, desk: &Desk<'_>) {
    hour.step("help is in groups, everyday commands first", || {
        let help = desk.text(&["--help"])?;
        has(&help, &["Everyday:", "Set up:", "Diagnosis:", "codewright \"fix the test\""])
    });
    hour.step("a misspelt command is an error with the nearest name", || {
        has(&desk.error(&["rum", "hi"])?, &["unknown command `rum`; did you mean `run`?"])
    });
    hour.step("without a key `run` says in a few lines what to do, the command first", || {
        let error = desk.error(&["run", "hi"])?;
        has(&error, &["no model provider was found", "codewright providers login"])?;
        ensure!(error.lines().count() <= 8, "{error}");
        Ok(())
    });
    hour.step("a prompt without a command is a prompt", || {
        has(&desk.error(&["fix the test"])?, &["no model provider was found"])
    });
    hour.step("doctor names the missing key with the advice", || {
        let begun = Instant::now();
        let done = desk.run(&["doctor"])?;
        ensure!(done.code == Some(1), "{}", done.stdout);
        ensure!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        has(&done.stdout, &["FAIL  key", "codewright providers login", "ok    git"])
    });
    hour.step("an empty list of sessions says so", || {
        let done = desk.run(&["session", "list"])?.success()?;
        ensure!(done.stdout.is_empty(), "{}", done.stdout);
        has(&done.stderr, &["no sessions yet"])
    });
    hour.step("a misspelt provider is refused", || {
        let done = desk.start(&["providers", "login", "-p", "antropic"]).stdin("sk-x\n").finish()?;
        ensure!(done.code == Some(1), "{}", done.stdout);
        has(&done.stderr, &["did you mean `anthropic`?"])
    });
}

fn keys(hour: &mut Hour, desk: &Desk<'_>, provider: &Provider) {
    hour.step("a server that was not started fails soon, with the advice to start it", || {
        desk.project.configure("http://127.0.0.1:1")?;
        let begun = Instant::now();
        has(&desk.error(&["run", "hi"])?, &["start the server"])?;
        ensure!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        Ok(())
    });
    let login = |key: &str| -> Result<String> {
        provider.describe(&desk.project, json!({}))?;
        let done = desk.start(&["providers", "login", "-p", "mine"]).stdin(format!("{key}\n")).finish()?;
        lacks(&done.stdout, &[key])?;
        Ok(done.success()?.stdout)
    };
    hour.step("a wrong key is reported when it is entered", || {
        has(&login("sk-wrong")?, &["refuses the credential"])
    });
    hour.step("a prompt with the wrong key names the provider's reason", || {
        has(&desk.error(&["run", "hi"])?, &["Incorrect API key provided"])
    });
    hour.step("the right key is accepted, and its model is named", || {
        has(&login(KEY)?, &["accepts the credential", "mine/coder-2"])
    });
    hour.step("the models of the provider are listed", || {
        has(&desk.text(&["models", "mine"])?, &["mine/coder-1", "mine/coder-2"])
    });
}

fn prompts(hour: &mut Hour, desk: &Desk<'_>, provider: &Provider) {
    hour.step("the first prompt is answered by the newest coding model, which is named", || {
        let done = desk.run(&["run", "hi"])?.success()?;
        has(&done.stdout, &["The answer is 42."])?;
        has(&done.stderr, &["no model was chosen: using mine/coder-2", "--model"])
    });
    hour.step("a unique part of a name is a model", || {
        desk.text(&["run", "-m", "r-1", "hi"])?;
        let requests = provider.model.main_requests();
        let model = requests.last().map(|request| request.body["model"].clone()).unwrap_or_default();
        ensure!(model == "coder-1", "{model}");
        Ok(())
    });
    hour.step("a misspelt model is an error with the nearest names", || {
        has(&desk.error(&["run", "-m", "mine/coder-3", "hi"])?, &["did you mean", "mine/coder-"])
    });
    hour.step("a misspelt agent is an error with the nearest name", || {
        has(&desk.error(&["run", "--agent", "paln", "hi"])?, &["did you mean", "plan"])
    });
    hour.step("a misspelt key of the configuration is an error with the nearest name", || {
        provider.describe(&desk.project, json!({ "modle": "mine/coder-2" }))?;
        let error = desk.error(&["run", "hi"]);
        provider.describe(&desk.project, json!({ "model": "mine/coder-2" }))?;
        has(&error?, &["modle", "did you mean `model`?"])
    });
    hour.step("an unknown slash command is an error, and no prompt", || {
        let before = provider.model.requests().len();
        has(&desk.error(&["run", "/inti"])?, &["did you mean `/init`?"])?;
        ensure!(provider.model.requests().len() == before, "it was sent");
        Ok(())
    });
    hour.step("a file is written, and undone by a command", || {
        desk.text(&["run", "write a note"])?;
        ensure!(desk.project.path("note.txt").exists(), "nothing was written");
        desk.text(&["session", "undo"])?;
        ensure!(!desk.project.path("note.txt").exists(), "the file is still there");
        desk.text(&["session", "redo"])?;
        ensure!(desk.project.path("note.txt").exists(), "the file did not come back");
        Ok(())
    });
    hour.step("a rejected permission has its own exit code with --strict", || {
        provider
            .describe(&desk.project, json!({ "model": "mine/coder-2", "permission": { "bash": "ask" } }))?;
        let done = desk.run(&["run", "--strict", "run it"])?;
        ensure!(done.code == Some(2), "{:?} {}", done.code, done.stderr);
        Ok(())
    });
    hour.step("sessions are listed with 24 hours", || {
        let list = desk.text(&["session", "list"])?;
        has(&list, &["Session ID", "ses_"])?;
        lacks(&list, &[" AM", " PM"])
    });
    hour.step("stats shows tokens and cost", || has(&desk.text(&["stats"])?, &["Total Cost", "Sessions"]));
}

fn diagnosis(hour: &mut Hour, desk: &Desk<'_>) {
    hour.step("doctor is content, and shows no secret", || {
        let report = desk.text(&["doctor"])?;
        has(&report, &["ok    model        mine/coder-2", "ok    key"])?;
        lacks(&report, &[KEY, "FAIL"])
    });
    hour.step("a report of a bug is a file without secrets", || {
        has(&desk.text(&["bug", "-o", "report.md"])?, &["report.md", "issue"])?;
        let report = super::read(&desk.project.path("report.md"))?;
        std::fs::remove_file(desk.project.path("report.md"))?;
        has(&report, &["## codewright doctor"])?;
        lacks(&report, &[KEY])
    });
    hour.step("a server for tools is added and listed", || {
        has(&desk.text(&["mcp", "list"])?, &["codewright mcp add"])?;
        desk.text(&["mcp", "add", "helper", "--", "/nonexistent"])?;
        has(&desk.text(&["mcp", "list"])?, &["helper"])
    });
    hour.step("sandbox says what commands may do", || {
        has(&desk.text(&["sandbox"])?, &["mode", "workspace", "mechanism"])
    });
}
