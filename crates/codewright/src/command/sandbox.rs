//! `sandbox`: shows what the sandbox enforces, and runs a command in it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use codewright_config::Env;
use codewright_engine::{End, Engine, SandboxMode, SandboxReport};
use serde_json::json;

use crate::cli::{SandboxArgs, SandboxCommand};
use crate::connection::{configure, engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

/// The shells' exit code after a time limit.
const TIMED_OUT: u8 = 124;

pub(crate) fn main(args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let engine = open_engine(Env::from_process(), &working_directory(None)?).await?;
        configure(&engine, &args.common);
        let done = match &args.command {
            None => show(&engine, args.json).await,
            Some(SandboxCommand::Run { command }) => run(&engine, command).await,
        };
        engine.close().await?;
        done
    })
}

async fn show(engine: &Engine, is_json: bool) -> anyhow::Result<ExitCode> {
    let instance = engine.instance(engine.default_directory()).await.map_err(engine_error)?;
    for warning in instance.warnings() {
        style::warning(&warning);
    }
    let report = engine.sandboxes().report(&instance).await.map_err(engine_error)?;
    let mut output = Output::new();
    exit_code(if is_json { output.write_value(&value(&report)) } else { output.write(&text(&report)?) })
}

fn value(report: &SandboxReport) -> serde_json::Value {
    json!({
        "mode": report.mode.name(),
        "mechanism": report.support.mechanism.name(),
        "complete": report.support.mechanism.is_complete(),
        "gaps": report.support.mechanism.gaps(),
        "reasons": report.support.reasons,
        "container": report.support.in_container,
        "outer": report.has_outer,
        "network": report.network.name(),
        "write": report.write,
        "hidden": report.hidden,
    })
}

fn text(report: &SandboxReport) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    writeln!(text, "mode        {}", report.mode)?;
    writeln!(text, "mechanism   {}", report.support.mechanism.name())?;
    for reason in &report.support.reasons {
        writeln!(text, "            {reason}")?;
    }
    if report.mode == SandboxMode::Off {
        writeln!(text, "Commands of the model can do everything that you can do.")?;
        writeln!(text, "Set `sandbox.mode` in the configuration, or start with `--sandbox workspace`.")?;
        return Ok(text);
    }
    for gap in report.support.mechanism.gaps() {
        writeln!(text, "not enforced: {gap}")?;
    }
    if report.support.in_container && !report.has_outer && !report.support.mechanism.is_complete() {
        writeln!(text, "This is a container. If it is a sandbox already, set `sandbox.outer` to `true`.")?;
    }
    writeln!(text, "network     {}", report.network.name())?;
    for (name, paths) in [("writable", &report.write), ("hidden", &report.hidden)] {
        for (index, path) in paths.iter().enumerate() {
            writeln!(text, "{:<11} {path}", if index == 0 { name } else { "" })?;
        }
    }
    writeln!(text, "Everything else can be read and not written.")?;
    Ok(text)
}

async fn run(engine: &Engine, command: &[OsString]) -> anyhow::Result<ExitCode> {
    let instance = engine.instance(engine.default_directory()).await.map_err(engine_error)?;
    let (ended, notes) =
        engine.sandboxes().run(&instance, command.to_vec(), &mut |_| {}).await.map_err(engine_error)?;
    exit_code(Output::new().write(&ended.output.text()))?;
    for note in &notes {
        style::warning(note);
    }
    for path in &ended.refused_names {
        style::warning(&format!("the command could not create or change the protected `{}`", path.display()));
    }
    for refused in &ended.refused {
        let rule =
            refused.rule.as_ref().map(|rule| format!("; this rule allows it: {rule}")).unwrap_or_default();
        style::warning(&format!("no connection to {}: {}{rule}", refused.host, refused.reason));
    }
    Ok(match ended.end {
        End::Exited(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        End::TimedOut => ExitCode::from(TIMED_OUT),
        End::Cancelled => ExitCode::FAILURE,
    })
}
