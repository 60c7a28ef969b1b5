//! `debug`: prints paths, configuration, files, snapshots, skills, agents and prompts.

mod files;
mod process;
mod snapshot;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::bail;
use codewright_config::{Dirs, Env};
use codewright_engine::{Engine, Instance, PromptReport};
use serde::Serialize;

use crate::cli::{DebugArgs, DebugCommand, LspCommand};
use crate::connection::{engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

pub(crate) fn main(args: &DebugArgs, started: Instant) -> anyhow::Result<ExitCode> {
    match args.command.clone() {
        DebugCommand::Paths(_) => paths(),
        DebugCommand::Config { origins, .. } => {
            let view = if origins { ConfigView::Origins } else { ConfigView::Values };
            in_directory(move |_, instance| async move { config(&instance, view) })
        }
        DebugCommand::Skill(_) => {
            in_directory(|_, instance| async move { print_json(&instance.skills_json()) })
        }
        DebugCommand::Agent { tool: Some(_), .. } => {
            bail!("tools run only in a session: use `codewright run`");
        }
        DebugCommand::Agent { name, .. } => in_directory(move |_, instance| async move {
            print_json(&instance.agent_json(&name).map_err(engine_error)?)
        }),
        DebugCommand::Prompt { agent, model, json, .. } => in_directory(move |engine, instance| async move {
            prompt(&engine, &instance, Prompt { agent, model, json }).await
        }),
        DebugCommand::File(command) => in_directory(|_, instance| files::file(instance, command)),
        DebugCommand::Rg(command) => in_directory(|_, instance| files::search(instance, command)),
        DebugCommand::Snapshot(command) => in_directory(|_, instance| snapshot::main(instance, command)),
        DebugCommand::Lsp(command) => {
            in_directory(|engine, instance| async move { lsp(&engine, &instance, command).await })
        }
        DebugCommand::Providers(_) => in_directory(|_, instance| async move {
            print(
                &instance
                    .searched_for_providers()
                    .iter()
                    .map(|place| format!("{place}\n"))
                    .collect::<String>(),
            )
        }),
        DebugCommand::Scrap(_) => in_directory(|engine, _| async move {
            print_json(&engine.projects().list().await.map_err(engine_error)?)
        }),
        DebugCommand::V2(_) => {
            in_directory(|_, instance| async move { print_json(&instance.catalog_json()) })
        }
        DebugCommand::Info(_) => print(&process::info(&Env::from_process())),
        DebugCommand::Startup(_) => in_directory(move |_, _| async move {
            print(&format!("{:.6}\n", started.elapsed().as_secs_f64() * 1000.0))
        }),
        DebugCommand::Wait(_) => in_directory(|_, _| process::wait()),
    }
}

/// Queries language servers.
async fn lsp(engine: &Engine, instance: &Arc<Instance>, command: LspCommand) -> anyhow::Result<ExitCode> {
    let servers = engine.lsp();
    match command {
        LspCommand::Diagnostics { file, .. } => {
            prepare(engine, instance, Path::new(&file)).await?;
            print_json(&servers.diagnostics(instance, Path::new(&file)).await.map_err(engine_error)?)
        }
        LspCommand::Symbols { query, .. } => {
            print_json(&servers.symbols_if_enabled(instance, &query).await.map_err(engine_error)?)
        }
        LspCommand::DocumentSymbols { uri, .. } => {
            let path = uri.strip_prefix("file://").unwrap_or(&uri);
            prepare(engine, instance, Path::new(path)).await?;
            let symbols = servers.document_symbols(instance, Path::new(path)).await.map_err(engine_error)?;
            print_json(&symbols)
        }
    }
}

/// Waits for the installation of a file's servers, and reports the servers that do not work.
async fn prepare(engine: &Engine, instance: &Arc<Instance>, path: &Path) -> anyhow::Result<()> {
    let servers = engine.lsp();
    let installing = servers.prepare(instance, path).await.map_err(engine_error)?;
    if !installing.is_empty() {
        style::note(&format!("Installing {} …", installing.join(", ")));
        servers.installed(&installing).await;
        servers.prepare(instance, path).await.map_err(engine_error)?;
    }
    for (server, reason) in servers.problems(instance) {
        style::warning(&format!("{server}: {reason}"));
    }
    Ok(())
}

/// The arguments of `debug prompt`.
struct Prompt {
    agent: Option<String>,
    model: Option<String>,
    json: bool,
}

async fn prompt(engine: &Engine, instance: &Arc<Instance>, args: Prompt) -> anyhow::Result<ExitCode> {
    let report =
        engine.instances().prompt_report(instance, args.agent.as_deref(), args.model.as_deref()).await;
    let report = report.map_err(engine_error)?;
    for warning in &report.warnings {
        style::warning(warning);
    }
    if args.json { print_json(&report) } else { print(&table(&report)) }
}

/// How the configuration is printed.
enum ConfigView {
    /// As one JSON object.
    Values,
    /// A line for each value, with the file that sets it.
    Origins,
}

/// Opens the engine in the working directory, prints its warnings, and runs `work`.
fn in_directory<F>(work: impl FnOnce(Engine, Arc<Instance>) -> F) -> anyhow::Result<ExitCode>
where
    F: Future<Output = anyhow::Result<ExitCode>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = open_engine(Env::from_process(), &working_directory(None)?).await?;
        let instance = engine.instance(engine.default_directory()).await.map_err(engine_error)?;
        for warning in instance.warnings() {
            style::warning(&warning);
        }
        let done = work(engine.clone(), instance).await;
        engine.close().await?;
        done
    })
}

fn config(instance: &Instance, view: ConfigView) -> anyhow::Result<ExitCode> {
    match view {
        ConfigView::Values => print_json(&instance.config_shown()),
        ConfigView::Origins => {
            let settings = instance.settings();
            let lines = settings.iter().map(|setting| {
                let line = format!("{} = {}  ({})", setting.path, setting.value, setting.origin);
                format!("{}\n", crate::clean::clean_line(&line))
            });
            print(&lines.collect::<String>())
        }
    }
}

/// A table of the parts of a prompt and their sizes.
fn table(report: &PromptReport) -> String {
    let mut lines = vec![
        format!("agent {}, model {}, family {}", report.agent, report.model, report.family),
        String::new(),
        format!("{:<18} {:>7} {:>7}  from", "block", "bytes", "tokens"),
    ];
    let row = |name: &str, bytes: usize, tokens: usize| format!("{name:<18} {bytes:>7} {tokens:>7}");
    for block in &report.blocks {
        lines.push(format!("{}  {}", row(block.name, block.bytes, block.tokens), block.origin));
    }
    lines
        .extend(report.tools.iter().map(|tool| row(&format!("tool {}", tool.name), tool.bytes, tool.tokens)));
    let total = &report.total;
    lines.extend([row("total", total.bytes, total.tokens), String::new()]);
    lines.push("the total with each model family's prompt and tools:".to_owned());
    lines.extend(report.families.iter().map(|family| row(&family.name, family.bytes, family.tokens)));
    lines.iter().map(|line| format!("{}\n", crate::clean::clean_line(line))).collect()
}

fn print_json(value: &impl Serialize) -> anyhow::Result<ExitCode> {
    let mut output = Output::new();
    exit_code(output.write_value(value).and_then(|()| output.finish()))
}

fn print(text: &str) -> anyhow::Result<ExitCode> {
    let mut output = Output::new();
    exit_code(output.write(text).and_then(|()| output.finish()))
}

fn paths() -> anyhow::Result<ExitCode> {
    let dirs = Dirs::new(&Env::from_process())?;
    let mut output = Output::new();
    let lines = [
        ("home", &dirs.home),
        ("data", &dirs.data),
        ("cache", &dirs.cache),
        ("config", &dirs.own_config),
        ("state", &dirs.state),
        ("tmp", &dirs.tmp),
    ];
    let mut write = || {
        for (name, path) in lines {
            output
                .write(&format!("{name:<10} {}\n", crate::clean::clean_line(&path.display().to_string())))?;
        }
        // OpenCode's configuration directory is read too.
        output.write(&format!(
            "{:<10} {}\n",
            "opencode",
            crate::clean::clean_line(&dirs.config.display().to_string())
        ))
    };
    exit_code(write().and_then(|()| output.finish()))
}
