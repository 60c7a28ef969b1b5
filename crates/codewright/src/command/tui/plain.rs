//! The plain client: a line is a prompt, and what comes of it is printed below.
//!
//! For terminals that cannot draw, and for pipes: nothing is cleared, moved or coloured that a
//! plain text would not have.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::bail;
use codewright_client::SessionQuery;
use codewright_proto::{SessionId, SessionInput};
use tokio::io::AsyncBufReadExt as _;

use crate::cli::{OpenArgs, RunArgs};
use crate::command::run::{self, Lines, Signals};
use crate::connection::{Connection, client_error, interrupted};
use crate::style;

const HELP: &str = "a line is a prompt; /new begins another session, /exit leaves; ctrl+c stops a turn";
const SIGTERM: u8 = 15;

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked<'a> {
    Nothing,
    Help,
    New,
    Exit,
    Prompt(&'a str),
}

/// Reads prompts until there are no more.
pub(super) async fn converse(
    connection: &Connection,
    open: &OpenArgs,
    mut args: RunArgs,
) -> anyhow::Result<ExitCode> {
    let is_terminal = std::io::stdin().is_terminal();
    if is_terminal {
        style::note(HELP);
    } else {
        run::warn_and_dismiss_trust(&connection.client).await;
    }
    let mut session = first(connection, open).await?;
    let mut signals = Signals::new()?;
    let mut lines: Lines = tokio::io::BufReader::new(tokio::io::stdin()).lines();
    let mut code = ExitCode::SUCCESS;
    let mut given = args.message.pop();
    loop {
        if is_terminal && given.is_none() {
            // Nobody is left to be told when this fails.
            drop(write!(std::io::stderr(), "\n› "));
        }
        let line = match given.take() {
            Some(given) => Some(given),
            None => tokio::select! {
                line = lines.next_line() => line?,
                signal = signals.next() => return Ok(interrupted(signal)),
            },
        };
        let Some(line) = line else { break };
        match asked(&line) {
            Asked::Nothing => {}
            Asked::Help => style::note(HELP),
            Asked::New => session = None,
            Asked::Exit => break,
            Asked::Prompt(text) => {
                let id = match session.take() {
                    Some(id) => id,
                    None => {
                        connection
                            .client
                            .create_session(&SessionInput::default())
                            .await
                            .map_err(client_error)?
                            .id
                    }
                };
                args.session = Some(id.to_string());
                session = Some(id);
                let ended = run::turn(connection, &args, text.to_owned(), Some(&mut lines)).await;
                match ended {
                    Ok(ended) if ended == interrupted(SIGTERM) => return Ok(ended),
                    Ok(ended) if ended == ExitCode::SUCCESS => {}
                    Ok(_) => code = ExitCode::FAILURE,
                    // The conversation goes on; what went wrong is told, and remembered by the exit code.
                    Err(error) => {
                        style::error(&error);
                        code = ExitCode::FAILURE;
                    }
                }
            }
        }
    }
    if let Some(id) = session.filter(|_| is_terminal) {
        style::note(&format!("codewright -s {id}"));
    }
    Ok(code)
}

fn asked(line: &str) -> Asked<'_> {
    match line.trim() {
        "" => Asked::Nothing,
        "/help" => Asked::Help,
        "/new" | "/clear" => Asked::New,
        "/exit" | "/quit" | "/q" | "exit" | "quit" => Asked::Exit,
        text => Asked::Prompt(text),
    }
}

/// The session that the flags name.
async fn first(connection: &Connection, open: &OpenArgs) -> anyhow::Result<Option<SessionId>> {
    let client = &connection.client;
    let found = match (&open.session, open.continue_last) {
        (Some(id), _) => match SessionId::parse(id) {
            Ok(id) => Some(client.session(&id).await.map_err(client_error)?.id),
            Err(_) => bail!("there is no session `{id}`"),
        },
        (None, true) => {
            let query = SessionQuery { roots: true, limit: Some(1), ..SessionQuery::default() };
            client.sessions(&query).await.map_err(client_error)?.into_iter().next().map(|session| session.id)
        }
        (None, false) => None,
    };
    match found {
        Some(id) if open.fork => Ok(Some(client.fork(&id, None).await.map_err(client_error)?.id)),
        other => Ok(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_prompt_or_one_of_a_few_words() {
        for (line, expected) in [
            ("  ", Asked::Nothing),
            (" /exit ", Asked::Exit),
            ("/new", Asked::New),
            ("/help", Asked::Help),
            ("fix it ", Asked::Prompt("fix it")),
            ("/init now", Asked::Prompt("/init now")),
        ] {
            assert_eq!(asked(line), expected, "{line:?}");
        }
    }
}
