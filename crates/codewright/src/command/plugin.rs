//! `plugin`: lists, adds, updates and removes plugins.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use codewright_config::Env;
use codewright_engine::{Engine, Instance, ListedPlugin, PluginScope};
use serde_json::json;

use crate::clean::clean_line;
use crate::cli::{ListFormat, PluginArgs, PluginCommand};
use crate::connection::{engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

/// The file that is changed.
const FILE: &str = "codewright.json";

pub(crate) fn main(args: &PluginArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = open_engine(Env::from_process(), &working_directory(None)?).await?;
        let done = command(&engine, args).await;
        engine.close().await?;
        done
    })
}

async fn command(engine: &Engine, args: &PluginArgs) -> anyhow::Result<ExitCode> {
    let instance = engine.instance(engine.default_directory()).await.map_err(engine_error)?;
    for warning in instance.warnings() {
        style::warning(&warning);
    }
    match (&args.command, &args.module) {
        (Some(PluginCommand::List { format, .. }), _) => list(&engine.packages().list(&instance), *format),
        (Some(PluginCommand::Add { spec, project, .. }), _) => {
            let scope = if *project { PluginScope::Project } else { PluginScope::User };
            add(engine, &instance, spec, scope).await
        }
        (Some(PluginCommand::Remove { name, .. }), _) => remove(engine, &instance, name).await,
        (Some(PluginCommand::Update { name, .. }), _) => update(engine, &instance, name.as_deref()).await,
        (None, Some(module)) => {
            let scope = if args.global { PluginScope::User } else { PluginScope::Project };
            add(engine, &instance, module, scope).await
        }
        (None, None) => bail!("missing command: use `codewright plugin list`, `add`, `update` or `remove`"),
    }
}

fn list(plugins: &[ListedPlugin], format: ListFormat) -> anyhow::Result<ExitCode> {
    let mut output = Output::new();
    let written = match format {
        ListFormat::Json => {
            let entries: Vec<_> = plugins.iter().map(entry).collect();
            output.write_value(&entries)
        }
        ListFormat::Table if plugins.is_empty() => {
            style::note("No plugins are configured. Add one: codewright plugin add NAME");
            Ok(())
        }
        ListFormat::Table => output.write(&table(plugins)),
    };
    exit_code(written.and_then(|()| output.finish()))
}

fn entry(plugin: &ListedPlugin) -> serde_json::Value {
    json!({
        "name": plugin.name,
        "spec": plugin.spec,
        "version": plugin.version,
        "source": plugin.source,
        "state": plugin.state,
        "error": plugin.error,
        "access": plugin.access,
        "denied": plugin.denied,
    })
}

fn table(plugins: &[ListedPlugin]) -> String {
    let mut text = "┌  Plugins\n│\n".to_owned();
    for plugin in plugins {
        let mark = match plugin.state {
            "installed" | "local" => "✓",
            "failed" => "✗",
            _ => "○",
        };
        let version = plugin.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let name = clean_line(&plugin.name);
        text.push_str(&format!("●  {mark} {name}{} {}\n", clean_line(&version), plugin.state));
        text.push_str(&format!("│      {} ({})\n", clean_line(&plugin.spec), plugin.source));
        for line in plugin.error.iter().flat_map(|error| error.lines()) {
            text.push_str(&format!("│      {}\n", clean_line(line)));
        }
        text.push_str(&access(plugin.access, &plugin.denied));
        text.push_str("│\n");
    }
    let count = plugins.len();
    text.push_str(&format!("└  {count} {}\n", if count == 1 { "plugin" } else { "plugins" }));
    text
}

/// What a plugin may use, and what was kept from it.
fn access(may: &str, denied: &[String]) -> String {
    let denied = denied.iter().map(|path| format!("│      was denied: {}\n", clean_line(path)));
    format!("│      may use: {may}\n") + &denied.collect::<String>()
}

async fn add(
    engine: &Engine,
    instance: &Arc<Instance>,
    spec: &str,
    scope: PluginScope,
) -> anyhow::Result<ExitCode> {
    style::note(&format!("Installing {} …", clean_line(spec)));
    let added = engine.packages().add(instance, spec, scope).await.map_err(engine_error)?;
    let version = added.version.map(|version| format!(" {version}")).unwrap_or_default();
    let name = clean_line(&format!("{}{version}", added.name));
    let place = place(scope);
    let mut text = if added.is_new {
        format!("◆  Added the plugin {name} to {place}\n")
    } else {
        format!("◆  The plugin {name} is already in {place}\n")
    };
    text.push_str(&access(added.access, &added.denied));
    if scope == PluginScope::User {
        let confine = serde_json::json!({ "plugin_host": { "confine": [clean_line(&added.name)] } });
        text.push_str(&format!("│      to confine it further, in your configuration: {confine}\n"));
    }
    Ok(crate::print(&text))
}

fn place(scope: PluginScope) -> String {
    match scope {
        PluginScope::User => format!("{FILE} of your configuration"),
        PluginScope::Project => format!("{FILE} of this project"),
    }
}

async fn remove(engine: &Engine, instance: &Arc<Instance>, name: &str) -> anyhow::Result<ExitCode> {
    let scopes = engine.packages().remove(instance, name).await.map_err(engine_error)?;
    let name = clean_line(name);
    let lines =
        scopes.into_iter().map(|scope| format!("◆  Removed the plugin {name} from {}\n", place(scope)));
    Ok(crate::print(&lines.collect::<String>()))
}

async fn update(engine: &Engine, instance: &Arc<Instance>, name: Option<&str>) -> anyhow::Result<ExitCode> {
    let updated = engine.packages().update(instance, name).await.map_err(engine_error)?;
    let (mut text, mut has_failed) = (String::new(), false);
    for plugin in &updated {
        let name = clean_line(&plugin.name);
        let line = match (&plugin.now, &plugin.before) {
            (Err(reason), _) => {
                has_failed = true;
                style::warning(reason);
                continue;
            }
            (Ok(now), _) if plugin.is_pinned => {
                format!("{name} {now} is the version that the configuration names")
            }
            (Ok(now), Some(before)) if now == before => format!("{name} {now} is up to date"),
            (Ok(now), Some(before)) => format!("Updated {name} from {before} to {now}"),
            (Ok(now), None) => format!("Installed {name} {now}"),
        };
        text.push_str(&format!("◆  {}\n", clean_line(&line)));
    }
    if updated.is_empty() {
        style::note("No plugins of a registry are configured");
    }
    let code = crate::print(&text);
    Ok(if has_failed { ExitCode::FAILURE } else { code })
}
