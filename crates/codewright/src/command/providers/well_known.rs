//! Signing in at an organisation's address, which names a command that prints a token.
//!
//! The command runs as the user, so it is shown exactly and run only after a yes.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codewright_config::Env;
use codewright_llm::Client;
use codewright_llm::oauth::well_known::{WellKnown, ask};
use codewright_llm::vault::Credential;
use tokio::io::AsyncReadExt as _;

use super::{KEY_LIMIT_BYTES, line, say};
use crate::clean::clean_line;

/// How long the command may take; it may open a browser and wait for the user.
const COMMAND_WAIT: Duration = Duration::from_secs(5 * 60);

/// The address, and the token that its command prints.
pub(super) async fn sign_in(client: &Client, url: &str, env: &Env) -> anyhow::Result<(String, Credential)> {
    let asked = ask(client, url).await?;
    let WellKnown { url, command, variable } = &asked;
    if codewright_config::env::is_steering(variable) {
        bail!(
            "`{url}` wants to set `{variable}`, which decides what programs do and is no token; nothing was changed"
        );
    }
    let shown = shown(command).with_context(|| {
        format!("the command that `{url}` names cannot be shown as it is, so it is not run")
    })?;
    say(&format!(
        "│  {} wants to run this command here, as you; what it prints is kept as {variable}:\n│\n│    {shown}\n│\n\
         ◆  Run it? Only \"yes\" runs it: ",
        clean_line(url)
    ));
    let answer = tokio::task::spawn_blocking(line).await?;
    if !answer.is_ok_and(|answer| answer.eq_ignore_ascii_case("yes")) {
        bail!("the command was not run; nothing was changed");
    }
    let token = token(command, env).await?;
    let credential = Credential::WellKnown { key: variable.clone(), token: token.as_str().into() };
    Ok((asked.url.clone(), credential))
}

/// The command as a shell would take it; nothing when a terminal would show something else.
fn shown(command: &[String]) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@,+%".contains(&byte);
    let words = command.iter().map(|word| {
        // Whoever reads must be able to tell every letter, so nothing but plain ones will do.
        if !word.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return None;
        }
        if !word.is_empty() && word.bytes().all(plain) {
            return Some(word.clone());
        }
        Some(format!("'{}'", word.replace('\'', "'\\''")))
    });
    words.collect::<Option<Vec<_>>>().map(|words| words.join(" "))
}

/// What the command prints; keys of other providers are not its business.
async fn token(command: &[String], env: &Env) -> anyhow::Result<String> {
    let (program, arguments) = command.split_first().context("the command is empty")?;
    let mut child = tokio::process::Command::new(program);
    child.args(arguments).stdin(Stdio::inherit()).stdout(Stdio::piped()).kill_on_drop(true);
    for name in env.child_removals() {
        child.env_remove(name);
    }
    let mut child = child.spawn().with_context(|| format!("`{program}` cannot be run"))?;
    let stdout = child.stdout.take().context("the command has no output")?;
    let mut printed = Vec::new();
    let work = async {
        stdout.take(KEY_LIMIT_BYTES + 1).read_to_end(&mut printed).await?;
        child.wait().await
    };
    let status = tokio::select! {
        done = tokio::time::timeout(COMMAND_WAIT, work) => match done {
            Ok(status) => status.with_context(|| format!("`{program}` cannot be run"))?,
            Err(_) => bail!("`{program}` did not end within 5 minutes; nothing was changed"),
        },
        _ = tokio::signal::ctrl_c() => bail!("the sign-in was given up; nothing was changed"),
    };
    // One that prints without an end is ended by that.
    if !status.success() && printed.len() as u64 <= KEY_LIMIT_BYTES {
        bail!("`{program}` ended with {status}; nothing was changed");
    }
    let token = String::from_utf8(printed).ok().map(|printed| printed.trim().to_owned());
    let fits = |token: &String| {
        !token.is_empty() && token.len() as u64 <= KEY_LIMIT_BYTES && !token.chars().any(char::is_control)
    };
    token.filter(fits).with_context(|| {
        format!("`{program}` printed no token, which is one line of at most 64 KiB; nothing was changed")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_is_or_not_at_all() {
        for (command, expected) in [
            (&["acme", "login", "--print"][..], Some("acme login --print")),
            (&["sh", "-c", "echo 'a' | b"], Some(r"sh -c 'echo '\''a'\'' | b'")),
            (&["a", ""], Some("a ''")),
            (&["a\u{1b}[2K"], None),
            (&["a\u{202e}b"], None),
            (&["a\nb"], None),
            (&["lоgin"], None),
        ] {
            let command: Vec<_> = command.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(shown(&command).as_deref(), expected, "{command:?}");
        }
    }
}
