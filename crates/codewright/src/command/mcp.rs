//! `mcp`: lists and adds MCP servers, and signs in to them. Tokens are never printed.

mod add;
mod auth;

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use codewright_config::Env;
use codewright_engine::{ConfiguredServer, Engine, Instance, SignInState};
use serde_json::Value;

use crate::clean::clean_line;
use crate::cli::{McpArgs, McpAuthCommand, McpCommand};
use crate::connection::{engine_error, open_engine, working_directory};
use crate::style;

/// The longest line that is read.
const MAX_LINE_BYTES: u64 = 64 * 1024;
/// How many invalid answers are accepted before a question is cancelled.
const TRIES: usize = 3;

pub(crate) fn main(args: &McpArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        let engine = open_engine(Env::from_process(), &working_directory(None)?).await?;
        let instance = engine.instance(engine.default_directory()).await.map_err(engine_error)?;
        for warning in instance.warnings() {
            style::warning(&warning);
        }
        let done = match &args.command {
            McpCommand::Add(args) => add::main(&engine, &instance, args).await,
            McpCommand::List(_) => list(&engine, &instance).await,
            McpCommand::Auth(args) => match args.command {
                Some(McpAuthCommand::List(_)) => auth::list(&engine, &instance),
                None => auth::sign_in(&engine, &instance, args.name.as_deref()).await,
            },
            McpCommand::Logout { name, .. } => auth::sign_out(&engine, &instance, name.as_deref()).await,
            McpCommand::Debug { name, .. } => auth::debug(&engine, &instance, name).await,
        };
        engine.close().await?;
        done
    });
    // A thread may still be reading a line of the terminal.
    runtime.shutdown_background();
    done
}

async fn list(engine: &Engine, instance: &Arc<Instance>) -> anyhow::Result<ExitCode> {
    let servers = engine.mcp().configured(instance);
    let statuses = engine.mcp().status(instance).await;
    let mut text = "┌  MCP servers\n│\n".to_owned();
    for server in &servers {
        let status = statuses.get(&server.name).cloned().unwrap_or_default();
        let (mark, words) = described(&status);
        text.push_str(&format!("●  {mark} {} {words}\n", clean_line(&server.name)));
        if let Some(error) = status["error"].as_str() {
            text.push_str(&format!("│      {}\n", clean_line(error)));
        }
        if let Some(warning) = engine.mcp().warning(instance, &server.name) {
            text.push_str(&format!("│      ⚠ {}\n", clean_line(&warning)));
        }
        text.push_str(&format!("│      {}\n│\n", clean_line(&server.target)));
    }
    text.push_str(&format!("└  {}\n", counted(servers.len())));
    if servers.is_empty() {
        text.push_str(
            "\nAdd one: codewright mcp add NAME --url URL, or codewright mcp add NAME -- COMMAND\n",
        );
    }
    Ok(crate::print(&text))
}

fn counted(count: usize) -> String {
    if count == 1 { "1 server".to_owned() } else { format!("{count} servers") }
}

/// The mark and the words for a status of the API.
fn described(status: &Value) -> (&'static str, &'static str) {
    match status["status"].as_str().unwrap_or_default() {
        "connected" => ("✓", "connected"),
        "disabled" => ("○", "disabled"),
        "needs_auth" => ("⚠", "needs a sign-in"),
        "needs_client_registration" => ("✗", "needs `oauth.clientId`"),
        _ => ("✗", "failed"),
    }
}

/// The mark and the words for a sign-in.
fn sign_in_words(state: &SignInState) -> (&'static str, String) {
    match state {
        SignInState::SignedIn => ("✓", "signed in".to_owned()),
        SignInState::Expired => ("⚠", "the sign-in has expired".to_owned()),
        SignInState::SignedOut => ("✗", "not signed in".to_owned()),
        SignInState::Unreadable(why) => ("✗", clean_line(why)),
    }
}

/// Asks the user to choose a server, or fails if there is no terminal.
fn choose(servers: &[ConfiguredServer], command: &str) -> anyhow::Result<String> {
    if servers.is_empty() {
        bail!("no server of the configuration can have a sign-in");
    }
    let names = servers.iter().map(|server| clean_line(&server.name)).collect::<Vec<_>>();
    if !std::io::stdin().is_terminal() {
        bail!("missing name: use `codewright mcp {command} NAME`; servers: {}", names.join(", "));
    }
    for (index, (server, name)) in servers.iter().zip(&names).enumerate() {
        let words = server.sign_in.as_ref().map(|state| sign_in_words(state).1).unwrap_or_default();
        show(&format!("│  {:>3}. {name} ({words})\n", index + 1));
    }
    for _ in 0..TRIES {
        show("◆  Server, by number or name: ");
        let answer = line()?;
        let number = answer.parse::<usize>().ok().and_then(|number| servers.get(number.checked_sub(1)?));
        if let Some(server) = number.or_else(|| servers.iter().find(|server| server.name == answer)) {
            return Ok(server.name.clone());
        }
        show(&format!("│  Answer with a number from 1 to {}.\n", servers.len()));
    }
    bail!("nothing was selected; nothing was changed")
}

/// Reads a line of standard input.
fn line() -> anyhow::Result<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().take(MAX_LINE_BYTES).read_line(&mut line)?;
    if read == 0 {
        bail!("the input ended; nothing was changed");
    }
    Ok(line.trim().to_owned())
}

/// Writes to standard error, so that standard output can be piped.
fn show(text: &str) {
    let mut stderr = std::io::stderr();
    // If standard error is closed, there is no other way to report this.
    drop(stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()));
}
