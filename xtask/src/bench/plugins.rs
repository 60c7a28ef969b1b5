//! Measures what plugins cost: the start of their process, a call of a hook, and the process at rest.
//!
//! The start and the rest are measured for each runtime that is installed, the call of a hook for the first one.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result};
use codewright_testkit::Script;
use nix::unistd::Pid;
use serde_json::json;

use super::abort::request;
use super::mcp::{SETTLE, Stage, wake_ups};
use super::spread::Spread;
use super::{Plan, report};

/// The name on the command line.
pub(super) const NAME: &str = "plugins";
/// A plugin with a tool, and with a hook for each definition of a tool if `HOOK` is replaced.
const PLUGIN: &str = "export const P = async () => ({ HOOK tool: { one: { description: 'One', args: {}, execute: async () => '1' } } });";
const HOOK: &str = "'tool.definition': async (input, output) => { output.description += '.'; },";
/// The same in TypeScript, with the schemas that the host provides.
const TYPED: &str = "import { tool } from '@opencode-ai/plugin';
export const P = async (): Promise<Record<string, unknown>> => ({
  tool: { one: tool({ description: 'One', args: { a: tool.schema.string() }, execute: async () => '1' }) },
});";
/// The runtimes, with the limits for the CPU time of their start in milliseconds, if they have one.
const RUNTIMES: [(&str, Option<f64>); 3] = [("bun", Some(60.0)), ("node", Some(150.0)), ("deno", None)];
/// The turns of one comparison.
const TURNS: usize = 20;

/// The limits.
const CALL_MS: f64 = 1.0;
const MEMORY_MIB: f64 = 45.0;
const WAKE_UPS: f64 = 0.0;

/// Measures and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let binary = plan.program()?;
    let mut text = format!("\n{NAME}: one plugin, compared with none\n");
    let mut row = |name: &str, unit: &str, value: f64, limit: Option<f64>| {
        report::row(&mut text, name, unit, value, limit)
    };
    let none = start(&binary, &Setting::default())?;
    let size = |stage: &Stage| {
        Ok::<_, anyhow::Error>(
            stage.model.main_requests().first().context("no request")?.body.to_string().len(),
        )
    };
    let files = none.project.home().join(".cache/codewright/plugin-host").exists();
    row(
        "without plugins: processes and files",
        "",
        f64::from(u8::from(host(none.pid()).is_some() || files)),
        Some(0.0),
    )?;
    let bytes = size(&none)?;
    none.end()?;
    let stage = start(&binary, &Setting::plugin(""))?;
    let added = size(&stage)?.saturating_sub(bytes);
    stage.end()?;
    for (runtime, limit) in RUNTIMES.into_iter().filter(|(runtime, _)| is_installed(runtime)) {
        for (language, file, text) in [
            ("JavaScript", "bench.js", PLUGIN.replace("HOOK", "")),
            ("TypeScript", "bench.ts", TYPED.to_owned()),
        ] {
            let runs = (0..plan.runs).map(|_| {
                let stage =
                    start(&binary, &Setting { runtime: Some(runtime), file, text: Some(text.clone()) })?;
                let cpu = cpu_ms(host(stage.pid()).context("no process runs the plugins")?);
                stage.end()?;
                cpu
            });
            let cpu = Spread::of(runs.collect::<Result<Vec<_>>>()?).context("no runs")?;
            row(&format!("{runtime}, {language}: start, CPU"), "ms", cpu.median, limit)?;
        }
        let setting = Setting { runtime: Some(runtime), file: "bench.ts", text: Some(TYPED.to_owned()) };
        let stage = start(&binary, &setting)?;
        let pid = host(stage.pid()).context("no process runs the plugins")?;
        thread::sleep(SETTLE);
        row(&format!("{runtime}: memory at rest"), "MiB", memory_mib(pid)?, Some(MEMORY_MIB))?;
        row(&format!("{runtime}: wake-ups at rest in 20 s"), "", wake_ups(pid)?, Some(WAKE_UPS))?;
        stage.end()?;
    }
    let calls = (0..plan.runs).map(|_| call(&binary)).collect::<Result<Vec<_>>>()?;
    let calls = Spread::of(calls).context("no runs")?;
    row("a call of a hook: time", "ms", calls.median, Some(CALL_MS))?;
    writeln!(text, "  {:<46} {:.2} to {:.2} ms", "its range", calls.least, calls.most)?;
    writeln!(text, "  {:<46} {added} bytes", "the tool of the plugin in a request")?;
    Ok(text)
}

/// The plugin of a program.
#[derive(Default)]
struct Setting {
    runtime: Option<&'static str>,
    file: &'static str,
    text: Option<String>,
}

impl Setting {
    /// The plugin with a hook.
    fn plugin(hook: &str) -> Self {
        Self { runtime: None, file: "bench.js", text: Some(PLUGIN.replace("HOOK", hook)) }
    }
}

/// Reports whether a runtime is installed.
fn is_installed(runtime: &str) -> bool {
    std::process::Command::new(runtime).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Starts the program with a plugin, and sends a first prompt.
fn start(binary: &Path, setting: &Setting) -> Result<Stage> {
    let directory = tempfile::tempdir()?;
    let mut config = json!({"sandbox": {"mode": "off"}});
    if let Some(text) = &setting.text {
        let path = directory.keep().join(setting.file);
        fs::write(&path, text)?;
        config["plugin"] = json!([path]);
    }
    if let Some(runtime) = setting.runtime {
        config["plugin_host"] = json!({"runtime": runtime});
    }
    Stage::start(binary, &config, Script::new().text("Done.").repeat())
}

/// Returns the time of a call of a hook: the difference of turns with and without one for each tool.
fn call(binary: &Path) -> Result<f64> {
    let time = |hook: &str| -> Result<(f64, usize)> {
        let stage = start(binary, &Setting::plugin(hook))?;
        let tools = request(&stage.address, "GET", "/experimental/tool/ids", None)?;
        let tools = tools.as_array().map_or(1, Vec::len);
        let begun = Instant::now();
        for _ in 0..TURNS {
            stage.prompt()?;
        }
        let time = begun.elapsed().as_secs_f64() * 1000.0 / TURNS as f64;
        stage.end()?;
        Ok((time, tools))
    };
    let ((without, _), (with, tools)) = (time("")?, time(HOOK)?);
    Ok((with - without).max(0.0) / tools as f64)
}

/// Returns the process that runs the plugins of a server.
fn host(server: Pid) -> Option<Pid> {
    let mut waiting = vec![server];
    while let Some(id) = waiting.pop() {
        let tasks = fs::read_dir(format!("/proc/{id}/task")).ok().into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let children = lists
            .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<i32>>());
        for child in children.collect::<Vec<_>>() {
            let command = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command);
            if command.contains("/plugin-host/") && !command.contains("__supervise") {
                return Some(Pid::from_raw(child));
            }
            waiting.push(Pid::from_raw(child));
        }
    }
    None
}

/// Returns the CPU time of all threads of a process.
fn cpu_ms(process: Pid) -> Result<f64> {
    let mut nanoseconds = 0.0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
        let stat = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        nanoseconds +=
            stat.split_whitespace().next().and_then(|time| time.parse::<f64>().ok()).unwrap_or_default();
    }
    Ok(nanoseconds / 1e6)
}

/// Returns the private memory of a process.
fn memory_mib(process: Pid) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("no memory")?;
    let kibibytes: f64 = line.split_whitespace().next().context("no number")?.parse()?;
    Ok(kibibytes / 1024.0)
}
