//! `mcp auth`, `mcp logout` and `mcp debug`: the sign-ins to remote servers.

use std::io::{BufRead as _, IsTerminal as _, Read as _};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use codewright_config::Env;
use codewright_engine::{ConfiguredServer, Engine, Instance, SignInState};
use serde_json::Value;

use super::{MAX_LINE_BYTES, choose, counted, described, show, sign_in_words};
use crate::clean::clean_line;
use crate::connection::engine_error;

/// The servers that can have a sign-in.
fn servers(engine: &Engine, instance: &Arc<Instance>) -> Vec<ConfiguredServer> {
    let all = engine.mcp().configured(instance).into_iter();
    all.filter(|server| server.sign_in.is_some()).collect()
}

pub(super) fn list(engine: &Engine, instance: &Arc<Instance>) -> anyhow::Result<ExitCode> {
    let servers = servers(engine, instance);
    let mut text = "┌  Sign-ins to MCP servers\n│\n".to_owned();
    for ConfiguredServer { name, target, sign_in } in &servers {
        let Some(state) = sign_in else { continue };
        let (mark, words) = sign_in_words(state);
        text.push_str(&format!("●  {mark} {} {words}\n│      {}\n│\n", clean_line(name), clean_line(target)));
    }
    text.push_str(&format!("└  {} with sign-in\n", counted(servers.len())));
    Ok(crate::print(&text))
}

/// The named server, or the one that the user chooses.
fn chosen(
    name: Option<&str>,
    command: &str,
    servers: impl FnOnce() -> Vec<ConfiguredServer>,
) -> anyhow::Result<String> {
    name.map_or_else(|| choose(&servers(), command), |name| Ok(name.to_owned()))
}

pub(super) async fn sign_in(
    engine: &Engine,
    instance: &Arc<Instance>,
    name: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let name = chosen(name, "auth", || servers(engine, instance))?;
    check(engine, instance, &name)?;
    let shown = clean_line(&name);
    let page = engine.mcp().begin_sign_in(instance, &name).await.map_err(engine_error)?;
    show(&format!("┌  Sign in to {shown}\n│\n│  Go to: {}\n", clean_line(&page.url)));
    crate::browser::open(&Env::from_process(), &page.url);
    if page.listens {
        show("│  No browser on this machine? Open the address elsewhere and paste the final address here.\n");
    } else {
        show("│  Sign in, then paste the address that the browser ends at, or the code.\n");
        if !std::io::stdin().is_terminal() {
            show("│  It is read from standard input.\n");
        }
    }
    show("│  Waiting …\n");
    let status = loop {
        tokio::select! {
            status = engine.mcp().wait_for_sign_in(instance, &name) => break status.map_err(engine_error)?,
            Some(text) = pasted() => match engine.mcp().paste_sign_in(instance, &name, &text).await {
                Ok(status) => break status,
                Err(error) => show(&format!("│  {}\n", clean_line(&error.to_string()))),
            },
            _ = tokio::signal::ctrl_c() => bail!("the sign-in was cancelled; nothing was changed"),
        }
    };
    match status["status"].as_str() {
        Some("connected") => Ok(crate::print(&format!("└  Signed in to {shown}\n"))),
        _ => bail!("cannot sign in to `{shown}`: {}", reason(&status)),
    }
}

/// A line of standard input. `None` if it has ended, when the browser may still finish the sign-in.
async fn pasted() -> Option<String> {
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().take(MAX_LINE_BYTES).read_line(&mut line).map(|_| line)
    });
    let line = line.await.ok()?.ok()?;
    Some(line).filter(|line| !line.trim().is_empty())
}

fn reason(status: &Value) -> String {
    let words = described(status).1;
    clean_line(status["error"].as_str().unwrap_or(words)).trim_end_matches('.').to_owned()
}

/// Fails if a server cannot have a sign-in.
fn check(engine: &Engine, instance: &Arc<Instance>, name: &str) -> anyhow::Result<()> {
    let name = clean_line(name);
    match engine.mcp().can_sign_in(instance, &name) {
        Some(true) => Ok(()),
        Some(false) => bail!("`{name}` is not a remote server with sign-in"),
        None => {
            let known = engine.mcp().configured(instance);
            let known = known.iter().map(|server| clean_line(&server.name)).collect::<Vec<_>>();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            bail!("there is no MCP server named `{name}`; configured servers: {known}")
        }
    }
}

pub(super) async fn sign_out(
    engine: &Engine,
    instance: &Arc<Instance>,
    name: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let name = chosen(name, "logout", || {
        let mut signed_in = servers(engine, instance);
        signed_in.retain(|server| server.sign_in != Some(SignInState::SignedOut));
        signed_in
    })?;
    let shown = clean_line(&name);
    match engine.mcp().sign_out(instance, &name).await.map_err(engine_error)? {
        Some(true) => Ok(crate::print(&format!("└  Signed out of {shown}\n"))),
        Some(false) => bail!("there is no sign-in to `{shown}`"),
        None => check(engine, instance, &name).map(|()| ExitCode::FAILURE),
    }
}

pub(super) async fn debug(engine: &Engine, instance: &Arc<Instance>, name: &str) -> anyhow::Result<ExitCode> {
    let configured = engine.mcp().configured(instance);
    let Some(server) = configured.into_iter().find(|server| server.name == name) else {
        return check(engine, instance, name).map(|()| ExitCode::FAILURE);
    };
    let Some(state) = &server.sign_in else {
        bail!("`{}` is not a remote server with sign-in", clean_line(name))
    };
    let mut lines = vec![
        ("Server", name.to_owned()),
        ("Address", server.target.clone()),
        ("Sign-in", sign_in_words(state).1),
    ];
    let status = engine.mcp().status(instance).await.remove(name).unwrap_or_default();
    lines.push(("Status", described(&status).1.to_owned()));
    if let Some(error) = status["error"].as_str() {
        lines.push(("Error", error.to_owned()));
    }
    if let Some((challenge, found)) = engine.mcp().inspect_sign_in(instance, name).await {
        lines.extend(challenge.map(|challenge| ("Challenge", challenge)));
        match found {
            Ok(found) if found.is_published => {
                lines.extend(found.issuer.map(|issuer| ("Sign-in server", issuer)));
                lines.push(("Page", found.authorization_endpoint));
                lines.push(("Tokens", found.token_endpoint));
                let registration = found.registration_endpoint.unwrap_or_else(|| "not supported".to_owned());
                lines.push(("Registration", registration));
            }
            Ok(_) => lines.push(("Sign-in server", "the server publishes nothing".to_owned())),
            Err(why) => lines.push(("Sign-in server", why)),
        }
    }
    let lines = lines.iter().map(|(label, text)| format!("●  {label}: {}\n", clean_line(text)));
    Ok(crate::print(&format!("┌  Sign-in to an MCP server\n│\n{}└  Done\n", lines.collect::<String>())))
}
