//! `agent`: lists agents and creates new ones.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codewright_config::Env;
use codewright_engine::{Engine, Generated, Instance};
use serde_json::Value;

use crate::cli::{AgentArgs, AgentCommand, CreateAgentArgs};
use crate::connection::{engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

/// The largest description that is read.
const MAX_DESCRIPTION_BYTES: u64 = 64 * 1024;
/// The tools that `--permissions` accepts.
const TOOLS: [&str; 11] =
    ["bash", "read", "write", "edit", "glob", "grep", "webfetch", "task", "todowrite", "skill", "question"];

pub(crate) fn main(args: &AgentArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = open_engine(Env::from_process(), &working_directory(None)?).await?;
        let instance = engine.instance(engine.default_directory()).await.map_err(engine_error)?;
        for warning in instance.warnings() {
            style::warning(&warning);
        }
        let done = match &args.command {
            AgentCommand::List(_) => list(&instance),
            AgentCommand::Create(args) => create(&engine, &instance, args).await,
        };
        engine.close().await?;
        done
    })
}

fn list(instance: &Instance) -> anyhow::Result<ExitCode> {
    let agents = instance.agents_json();
    let mut output = Output::new();
    let mut write = || {
        for agent in agents.as_array().into_iter().flatten() {
            let text = |key: &str| crate::clean::clean_line(agent[key].as_str().unwrap_or_default());
            if std::io::stdout().is_terminal() {
                output.write(&for_people(agent))?;
                continue;
            }
            // Scripts read the rules.
            let rules = serde_json::to_string_pretty(&agent["permission"]).unwrap_or_default();
            output.write(&format!("{} ({})\n  {rules}\n", text("name"), text("mode")))?;
        }
        Ok(())
    };
    exit_code(write().and_then(|()| output.finish()))
}

/// The name and the description of an agent, and what it may not do without a question.
fn for_people(agent: &Value) -> String {
    let text = |key: &str| crate::clean::clean_line(agent[key].as_str().unwrap_or_default());
    let about = match text("description") {
        empty if empty.is_empty() => String::new(),
        about => format!("  {about}\n"),
    };
    let mut text = format!("{} ({})\n{about}", text("name"), text("mode"));
    for (action, words) in [("ask", "asks for"), ("deny", "may not")] {
        let mut names: Vec<String> = Vec::new();
        for rule in
            agent["permission"].as_array().into_iter().flatten().filter(|rule| rule["action"] == action)
        {
            let part = |key: &str| crate::clean::clean_line(rule[key].as_str().unwrap_or_default());
            let name = match part("pattern").as_str() {
                "*" => part("permission"),
                pattern => format!("{} {pattern}", part("permission")),
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if !names.is_empty() {
            text.push_str(&format!("  {words}: {}\n", names.join(", ")));
        }
    }
    text
}

async fn create(
    engine: &Engine,
    instance: &std::sync::Arc<Instance>,
    args: &CreateAgentArgs,
) -> anyhow::Result<ExitCode> {
    let denied = denied_tools(args.permissions.as_deref())?;
    let description = match &args.description {
        Some(description) => description.clone(),
        None => piped()?,
    };
    let folder = match &args.path {
        Some(path) => working_directory(Some(path))?,
        None => PathBuf::from(instance.path().directory).join(".opencode"),
    };
    let generated = engine.instances().generate_agent(instance, &description, args.model.as_deref()).await;
    let generated = generated.map_err(engine_error)?;
    let file = folder.join("agent").join(format!("{}.md", generated.identifier));
    std::fs::create_dir_all(folder.join("agent"))
        .with_context(|| format!("cannot create `{}`", folder.join("agent").display()))?;
    write_new(&file, &document(&generated, &args.mode, &denied))?;
    let mut output = Output::new();
    let written = output.write(&format!("{}\n", crate::clean::clean_line(&file.display().to_string())));
    exit_code(written.and_then(|()| output.finish()))
}

fn write_new(file: &std::path::Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
    let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write `{}`", file.display()))
}

fn piped() -> anyhow::Result<String> {
    let mut text = String::new();
    if std::io::stdin().is_terminal() {
        bail!("describe the agent with --description or on standard input");
    }
    std::io::stdin().take(MAX_DESCRIPTION_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The tools that are missing from a comma-separated list; empty without a list.
fn denied_tools(allowed: Option<&str>) -> anyhow::Result<Vec<&'static str>> {
    let Some(allowed) = allowed else { return Ok(Vec::new()) };
    let allowed: Vec<_> = allowed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = allowed.iter().find(|name| !TOOLS.contains(name)) {
        bail!("--permissions: there is no tool `{unknown}`; the tools are {}", TOOLS.join(", "));
    }
    Ok(TOOLS.into_iter().filter(|tool| !allowed.contains(tool)).collect())
}

/// The Markdown file that defines an agent.
fn document(generated: &Generated, mode: &str, denied: &[&str]) -> String {
    // A JSON string is also a quoted YAML string.
    let description = Value::from(generated.when_to_use.as_str());
    let mut text = format!("---\ndescription: {description}\nmode: {mode}\n");
    if !denied.is_empty() {
        text.push_str("permission:\n");
        for tool in denied {
            text.push_str(&format!("  {tool}: deny\n"));
        }
    }
    format!("{text}---\n\n{}\n", generated.system_prompt.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_described_for_people() {
        let agent = serde_json::json!({ "name": "plan", "mode": "primary", "description": "Reads.", "permission": [
            { "permission": "*", "pattern": "*", "action": "allow" },
            { "permission": "read", "pattern": "*.env", "action": "ask" },
            { "permission": "edit", "pattern": "*", "action": "deny" },
            { "permission": "edit", "pattern": "*", "action": "deny" },
        ]});
        assert_eq!(for_people(&agent), "plan (primary)\n  Reads.\n  asks for: read *.env\n  may not: edit\n");
    }

    #[test]
    fn the_agent_file_contains_description_mode_and_denied_tools() {
        let generated = Generated {
            identifier: "x".to_owned(),
            when_to_use: "Use this: \"now\"\nor never".to_owned(),
            system_prompt: "You test.\n---\nMore.".to_owned(),
        };
        let text = document(&generated, "subagent", &denied_tools(Some("bash, read")).unwrap());
        let (front, body, problems) = codewright_config::front_matter(&text);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(front["description"], "Use this: \"now\"\nor never");
        assert_eq!(
            (front["mode"].as_str(), front["permission"]["edit"].as_str()),
            (Some("subagent"), Some("deny"))
        );
        assert!(front["permission"].get("bash").is_none());
        assert_eq!(body, "You test.\n---\nMore.");
        assert!(denied_tools(Some("nonsense")).is_err());
    }
}
