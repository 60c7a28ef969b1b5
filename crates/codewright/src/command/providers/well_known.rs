//! Sign-in at an organisation's address.
//!
//! The address returns a command that prints a token. The command runs as the user, so it is displayed exactly and runs
//! only after the user has typed "yes".

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codewright_config::{Dirs, Env, LoadInput};
use codewright_llm::Client;
use codewright_llm::oauth::well_known::{WellKnown, ask};
use codewright_llm::vault::Credential;
use tokio::io::AsyncReadExt as _;

use super::{KEY_LIMIT_BYTES, line, print_prompt};
use crate::clean::clean_line;

/// How long the command may take; it may open a browser and wait for the user.
const COMMAND_WAIT: Duration = Duration::from_secs(5 * 60);

/// Returns the address and the token that its command prints.
pub(super) async fn sign_in(client: &Client, url: &str, env: &Env) -> anyhow::Result<(String, Credential)> {
    let offer = ask(client, url).await?;
    let WellKnown { url, command, variable } = &offer;
    if codewright_config::env::is_steering(variable) {
        bail!(
            "`{url}` wants to set `{variable}`, which controls programs and is not a token; nothing was changed"
        );
    }
    let quoted = quote(command).with_context(|| {
        format!("the command of `{url}` contains characters that a terminal may display differently; it was not run")
    })?;
    print_prompt(&format!(
        "│  {} wants to run this command on this machine as your user. Its output is stored as {variable}:\n│\n│    {quoted}\n│\n\
         ◆  Run it? Only \"yes\" runs it: ",
        clean_line(url)
    ));
    let answer = tokio::task::spawn_blocking(line).await?;
    if !answer.is_ok_and(|answer| answer.eq_ignore_ascii_case("yes")) {
        bail!("the command was not run; nothing was changed");
    }
    let token = token(command, env).await?;
    let credential = Credential::WellKnown { key: variable.clone(), token: token.as_str().into() };
    Ok((offer.url.clone(), credential))
}

/// The command with shell quotes. `None` if it has characters that a terminal may display differently.
fn quote(command: &[String]) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@,+%".contains(&byte);
    let words = command.iter().map(|word| {
        // The user must be able to recognize every character, so only ASCII is accepted.
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

/// Returns the variables that the user's configuration uses as secrets.
fn configured_secrets(env: &Env) -> anyhow::Result<Vec<String>> {
    let dirs = Dirs::new(env)?;
    let directory = std::path::Path::new("/");
    let input = LoadInput { directory, worktree: directory, env, dirs: &dirs };
    Ok(codewright_config::secret_variables(input)?)
}

/// Runs the command without the keys of other providers, and returns its output.
async fn token(command: &[String], env: &Env) -> anyhow::Result<String> {
    let (program, arguments) = command.split_first().context("the command is empty")?;
    let mut child = tokio::process::Command::new(program);
    child.args(arguments).stdin(Stdio::inherit()).stdout(Stdio::piped()).kill_on_drop(true);
    for name in env.child_removals() {
        child.env_remove(name);
    }
    for name in configured_secrets(env)? {
        child.env_remove(name);
    }
    let mut child = child.spawn().with_context(|| format!("cannot run `{program}`"))?;
    let stdout = child.stdout.take().context("the command has no output")?;
    let mut printed = Vec::new();
    let work = async {
        stdout.take(KEY_LIMIT_BYTES + 1).read_to_end(&mut printed).await?;
        child.wait().await
    };
    let status = tokio::select! {
        done = tokio::time::timeout(COMMAND_WAIT, work) => match done {
            Ok(status) => status.with_context(|| format!("cannot run `{program}`"))?,
            Err(_) => bail!("`{program}` did not end within 5 minutes; nothing was changed"),
        },
        _ = tokio::signal::ctrl_c() => bail!("the sign-in was cancelled; nothing was changed"),
    };
    // A command that prints more than the limit was killed by a closed pipe, which is not its failure.
    if !status.success() && printed.len() as u64 <= KEY_LIMIT_BYTES {
        bail!("`{program}` ended with {status}; nothing was changed");
    }
    let token = String::from_utf8(printed).ok().map(|printed| printed.trim().to_owned());
    let fits = |token: &String| {
        !token.is_empty() && token.len() as u64 <= KEY_LIMIT_BYTES && !token.chars().any(char::is_control)
    };
    token.filter(fits).with_context(|| {
        format!("`{program}` did not print a token (one line of at most 64 KiB); nothing was changed")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_or_rejected() {
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
            assert_eq!(quote(&command).as_deref(), expected, "{command:?}");
        }
    }
}
