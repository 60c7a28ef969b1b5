//! `users`: makes tokens for the users of a server, and prints the audit log.

use std::process::ExitCode;

use codewright_config::Env;
use codewright_engine::{Audited, Engine};
use serde_json::json;

use crate::clean::clean_line;
use crate::cli::{ListFormat, UsersArgs, UsersCommand};
use crate::connection::{engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

pub(crate) fn main(args: &UsersArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        UsersCommand::Token { .. } => token(),
        UsersCommand::Audit { limit, before, format, .. } => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let engine = open_engine(Env::from_process(), &working_directory(None)?).await?;
                let done = audit(&engine, *before, *limit, *format).await;
                engine.close().await?;
                done
            })
        }
    }
}

/// Prints a new token and its hash. Neither is stored.
fn token() -> anyhow::Result<ExitCode> {
    let (token, hash) = codewright_server::new_token()?;
    style::note("The user signs in with the first line. The second line belongs in `auth.users.NAME.token`.");
    let mut output = Output::new();
    exit_code(output.write(&format!("{token}\n{hash}\n")).and_then(|()| output.finish()))
}

async fn audit(
    engine: &Engine,
    before: Option<u64>,
    limit: usize,
    format: ListFormat,
) -> anyhow::Result<ExitCode> {
    let mut entries = engine.users().audited(before, limit).await.map_err(engine_error)?;
    entries.reverse();
    let mut output = Output::new();
    let written = match format {
        ListFormat::Json => {
            let entries: Vec<_> = entries.iter().map(entry).collect();
            output.write_value(&entries)
        }
        ListFormat::Table if entries.is_empty() => {
            style::note("The audit log is empty");
            Ok(())
        }
        ListFormat::Table => output.write(&entries.iter().map(line).collect::<String>()),
    };
    exit_code(written.and_then(|()| output.finish()))
}

fn entry(entry: &Audited) -> serde_json::Value {
    json!({
        "id": entry.id, "time": entry.time, "user": entry.account, "action": entry.action, "target": entry.target,
        "detail": entry.detail, "request": entry.request,
    })
}

fn line(entry: &Audited) -> String {
    let Audited { id, time, account, action, target, detail, request, .. } = entry;
    format!("{}\n", clean_line(&format!("{id} {time} {account} {action} {target} {detail} {request}")))
}
