//! The plain client: reads a prompt per line and prints the answer below it.
//!
//! For terminals that cannot position the cursor, and for pipes. It only appends text.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::bail;
use codewright_proto::{SessionId, SessionInput};
use tokio::io::AsyncBufReadExt as _;

use crate::cli::{OpenArgs, RunArgs};
use crate::command::run::{self, Lines, Signals};
use crate::connection::{Connection, client_error, interrupted};
use crate::style;

const HELP: &str = "each line is a prompt; /new starts another session, /exit quits, ctrl+c stops a turn";
const SIGTERM: u8 = 15;

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
enum Input<'a> {
    Empty,
    Help,
    New,
    Exit,
    Prompt(&'a str),
}

/// Reads and runs prompts until the input ends.
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
    let mut session = first_session(connection, open).await?;
    let mut signals = Signals::new()?;
    let mut lines: Lines = tokio::io::BufReader::new(tokio::io::stdin()).lines();
    let mut code = ExitCode::SUCCESS;
    let mut given = args.message.pop();
    loop {
        if is_terminal && given.is_none() {
            // If standard error is closed, there is no other way to report this.
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
        match parse_line(&line) {
            Input::Empty => {}
            Input::Help => style::note(HELP),
            Input::New => session = None,
            Input::Exit => break,
            Input::Prompt(text) => {
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
                    // The conversation continues. The exit code reports the failure too.
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

fn parse_line(line: &str) -> Input<'_> {
    match line.trim() {
        "" => Input::Empty,
        "/help" => Input::Help,
        "/new" | "/clear" => Input::New,
        "/exit" | "/quit" | "/q" | "exit" | "quit" => Input::Exit,
        text => Input::Prompt(text),
    }
}

/// The session that the flags select.
async fn first_session(connection: &Connection, open: &OpenArgs) -> anyhow::Result<Option<SessionId>> {
    let client = &connection.client;
    let found = match (&open.session, open.continue_last) {
        (Some(id), _) => match SessionId::parse(id) {
            Ok(id) => Some(client.session(&id).await.map_err(client_error)?.id),
            Err(_) => bail!("there is no session `{id}`"),
        },
        (None, true) => client.last_session().await.map_err(client_error)?.map(|session| session.id),
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
    fn a_line_is_a_prompt_or_a_command() {
        for (line, expected) in [
            ("  ", Input::Empty),
            (" /exit ", Input::Exit),
            ("/new", Input::New),
            ("/help", Input::Help),
            ("fix it ", Input::Prompt("fix it")),
            ("/init now", Input::Prompt("/init now")),
        ] {
            assert_eq!(parse_line(line), expected, "{line:?}");
        }
    }
}
