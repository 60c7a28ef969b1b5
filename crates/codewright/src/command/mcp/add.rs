//! `mcp add`: adds a server to the user's or the project's `codewright.json`, whose other content is kept.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use codewright_engine::{Engine, Instance};
use serde_json::{Map, Value, json};
use url::Url;

use super::{line, show};
use crate::clean::clean_line;
use crate::cli::McpAddArgs;
use crate::connection::engine_error;

/// The name of the file that is changed.
const FILE: &str = "codewright.json";

pub(super) async fn main(
    engine: &Engine,
    instance: &Arc<Instance>,
    args: &McpAddArgs,
) -> anyhow::Result<ExitCode> {
    let is_terminal = std::io::stdin().is_terminal();
    let name = match &args.name {
        Some(name) => name.clone(),
        None if is_terminal => ask("Name of the server")?,
        None => bail!(
            "missing name: use `codewright mcp add NAME --url URL` or `codewright mcp add NAME -- COMMAND`"
        ),
    };
    let name = name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        bail!("the name of a server is one line and not empty");
    }
    if engine.mcp().configured(instance).iter().any(|server| server.name == name) {
        bail!("`{}` is already configured; choose another name, or edit the configuration", clean_line(name));
    }
    let entry = match (&args.url, args.command.as_slice()) {
        (Some(_), [_, ..]) => bail!("a server has either `--url` or a command after `--`"),
        (Some(url), []) => remote(url, args)?,
        (None, words @ [_, ..]) => local(words, args)?,
        (None, []) if is_terminal => {
            let answer = ask("Address, or command of a local server")?;
            match answer.contains("://") {
                true => remote(&answer, args)?,
                false => {
                    let words = answer.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                    local(&words, args)?
                }
            }
        }
        (None, []) => bail!("missing server: use `--url URL`, or a command after `--`"),
    };
    let change = json!({"mcp": {name: entry}});
    let (changed, place) = if args.project {
        (engine.settings().change(instance, change).await.map(drop), format!("{FILE} of this project"))
    } else {
        (engine.settings().change_global(change).await.map(drop), format!("{FILE} of your configuration"))
    };
    changed.map_err(engine_error)?;
    Ok(crate::print(&format!("◆  Added the MCP server \"{}\" to {}\n", clean_line(name), clean_line(&place))))
}

fn remote(text: &str, args: &McpAddArgs) -> anyhow::Result<Value> {
    if !args.env.is_empty() {
        bail!("`--env` is for local servers; a remote one has `--header`");
    }
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    if url.is_none_or(|url| url.host_str().is_none()) {
        bail!("`{}` is not a URL that begins with http:// or https://", clean_line(text));
    }
    let mut entry = json!({"type": "remote", "url": text});
    if !args.header.is_empty() {
        entry["headers"] = pairs(&args.header, "--header")?;
    }
    Ok(entry)
}

fn local(words: &[String], args: &McpAddArgs) -> anyhow::Result<Value> {
    if !args.header.is_empty() {
        bail!("`--header` is for remote servers; a local one has `--env`");
    }
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        bail!("the command is empty");
    }
    let mut entry = json!({"type": "local", "command": words});
    if !args.env.is_empty() {
        entry["environment"] = pairs(&args.env, "--env")?;
    }
    Ok(entry)
}

fn pairs(texts: &[String], option: &str) -> anyhow::Result<Value> {
    let mut pairs = Map::new();
    for text in texts {
        // The value may be a secret, so the error does not contain it.
        let (name, value) = text
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .with_context(|| format!("`{option}` must have the form KEY=VALUE"))?;
        pairs.insert(name.to_owned(), value.into());
    }
    Ok(Value::Object(pairs))
}

fn ask(question: &str) -> anyhow::Result<String> {
    show(&format!("◆  {question}: "));
    line()
}
