//! Tests with published plugins of npm, unmodified: each alone, and all together.
//!
//! They are not part of `.ci/run`, because npm installs the plugins from the network. They run with the runtime that the
//! program finds.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{BlockingServer, Project, Run, Script};
use serde_json::json;

use crate::bench::wire::Connection;
use crate::clients::{package, program};

/// The deadline of the program.
const DEADLINE: Duration = Duration::from_secs(300);
/// The answer of the model.
const ANSWER: &str = "The plugins let me answer.";

/// What a plugin visibly does.
#[derive(Clone, Copy)]
enum Work {
    /// It adds these tools.
    Tools(&'static [&'static str]),
    /// It signs in to a provider, with this method.
    SignIn(&'static str, &'static str),
    /// It writes this text into the log.
    Log(&'static str),
}

/// The plugins with their versions and what they do.
const PLUGINS: &[(&str, &str, Work)] = &[
    ("oh-my-opencode", "4.19.4", Work::Tools(&["session_list", "call_omo_agent", "look_at"])),
    ("oh-my-opencode-slim", "2.2.24", Work::Tools(&["task_status", "ast_grep_search"])),
    ("@tarquinen/opencode-dcp", "3.1.14", Work::Tools(&["compress"])),
    ("opencode-orchestrator", "1.7.22", Work::Tools(&["delegate_task", "file_stats"])),
    ("opencode-swarm", "5.1.0", Work::Tools(&["detect_domains", "extract_code_blocks"])),
    ("@sureshsankaran/opencode-destructive-check", "1.0.5", Work::Tools(&["destructive-check-status"])),
    ("opencode-antigravity-auth", "1.6.0", Work::SignIn("google", "OAuth with Google (Antigravity)")),
    ("opencode-google-antigravity-auth", "0.2.15", Work::Tools(&["google_search"])),
    ("opencode-gemini-auth", "1.3.8", Work::SignIn("google", "OAuth with Google (Gemini CLI)")),
    ("opencode-anthropic-auth", "0.0.13", Work::SignIn("anthropic", "Claude Pro/Max")),
    ("opencode-qwencode-auth", "1.3.0", Work::SignIn("qwen-code", "Qwen Code (qwen.ai OAuth)")),
    ("opencode-qwen-cli-auth", "1.0.2", Work::SignIn("alibaba", "Qwen Account (OAuth)")),
    ("opencode-cursor-auth", "1.0.16", Work::SignIn("cursor", "Login via cursor-agent (opens browser)")),
    ("opencode-lmstudio", "0.3.0", Work::Log("LM Studio plugin initialized")),
];

/// Plays all plugins.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let program = program(rest)?;
    let packages: Vec<PathBuf> =
        PLUGINS.iter().map(|(name, version, _)| package(name, version)).collect::<Result<_>>()?;
    let mut passed = 0;
    for (package, plugin) in packages.iter().zip(PLUGINS) {
        let result = play(&program, std::slice::from_ref(package), std::slice::from_ref(plugin));
        passed += usize::from(report(plugin.0, &result)?);
    }
    // Of several plugins for a provider the last one counts, so the methods of the others are missing.
    let together: Vec<_> =
        PLUGINS.iter().filter(|(_, _, work)| !matches!(work, Work::SignIn("google", _))).copied().collect();
    let all = play(&program, &packages, &together);
    passed += usize::from(report("all together", &all)?);
    passed += usize::from(report("types of @opencode-ai/plugin", &types())?);
    let count = PLUGINS.len() + 2;
    writeln!(std::io::stdout(), "{passed} of {count}")?;
    Ok(if passed == count { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(name: &str, result: &Result<()>) -> Result<bool> {
    let mut out = std::io::stdout();
    match result {
        Ok(()) => writeln!(out, "passed  {name}")?,
        Err(error) => writeln!(out, "FAILED  {name}: {error:#}")?,
    }
    Ok(result.is_ok())
}

/// Runs a turn with plugins and checks what they do.
fn play(program: &Path, packages: &[PathBuf], plugins: &[(&str, &str, Work)]) -> Result<()> {
    let model = BlockingServer::start(Script::new().text(ANSWER).repeat())?;
    let project = Project::git()?;
    let mut config = Project::config(&model.url());
    config["plugin"] = packages.iter().map(|path| json!(path)).collect();
    project.write_config(&config)?;
    let run = Run::new(program, &project).args(["serve", "--sandbox", "off"]).deadline(DEADLINE);
    let run = run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
    let mut server = run.start()?;
    let line = server.line_that(|line| line.contains("listening on"))?;
    let address = line.split_once("http://").context("no address")?.1.trim().to_owned();
    let mut connection = Connection::new(&address)?;
    let ids = connection.request("GET", "/experimental/tool/ids", None)?;
    let methods = connection.request("GET", "/provider/auth", None)?;
    let session = connection.request("POST", "/session", Some(&json!({})))?;
    let id = session["id"].as_str().context("no session")?;
    let prompt = json!({"parts": [{"type": "text", "text": "go"}]});
    let answer = connection.request("POST", &format!("/session/{id}/message"), Some(&prompt))?;
    ensure!(answer.to_string().contains(ANSWER), "no answer: {answer:.300}");
    let log = connection.request("GET", "/log?limit=1000", None)?.to_string();
    for (name, _, work) in plugins {
        match work {
            Work::Tools(tools) => {
                let has = |tool: &&&str| ids.as_array().is_some_and(|ids| ids.contains(&json!(tool)));
                let missing: Vec<_> = tools.iter().filter(|tool| !has(tool)).collect();
                ensure!(missing.is_empty(), "{name}: {missing:?} are missing in {ids}");
            }
            Work::SignIn(provider, label) => {
                let methods = methods[provider].as_array().cloned().unwrap_or_default();
                let has = methods.iter().any(|method| method["label"] == *label);
                ensure!(has, "{name}: `{label}` is missing in {methods:?}");
            }
            Work::Log(text) => ensure!(log.contains(text), "{name}: `{text}` is not in the log"),
        }
    }
    ensure!(!log.contains("left out until"), "a plugin was left out: {log:.2000}");
    server.terminate()?;
    server.finish()?;
    Ok(())
}

/// Checks the types of the fixtures against the official package.
fn types() -> Result<()> {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-host");
    let npm = |args: &[&str]| -> Result<()> {
        let mut npm = Command::new("npm");
        let done = npm.args(args).current_dir(&host).stdout(Stdio::null()).status();
        ensure!(done.context("cannot start npm")?.success(), "npm {args:?} failed");
        Ok(())
    };
    npm(&["ci", "--no-audit", "--no-fund", "--ignore-scripts"])?;
    npm(&["run", "--silent", "check"])
}
