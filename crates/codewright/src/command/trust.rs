//! `trust`: lists, adds and removes trusted directories.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use codewright_config::Env;
use codewright_engine::Engine;
use codewright_proto::{TrustChangeKind, TrustChoice, TrustInput, TrustReply, TrustStatus};

use crate::clean::clean_line;
use crate::cli::{TrustArgs, TrustCommand};
use crate::connection::{engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

pub(crate) fn main(args: &TrustArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let directory = match &args.command {
            TrustCommand::Show(args) | TrustCommand::Add(args) => {
                working_directory(args.directory.as_deref())?
            }
            TrustCommand::List(_) | TrustCommand::Remove(_) => PathBuf::from("/"),
        };
        let engine = open_engine(Env::from_process(), &directory).await?;
        let done = match &args.command {
            TrustCommand::List(args) => list(&engine, args.json),
            TrustCommand::Show(_) => show(&engine).await,
            TrustCommand::Add(_) => add(&engine).await,
            TrustCommand::Remove(args) => remove(&engine, args.directory.as_deref()).await,
        };
        engine.close().await?;
        done
    })
}

fn list(engine: &Engine, is_json: bool) -> anyhow::Result<ExitCode> {
    let records = engine.trust().decisions().map_err(engine_error)?;
    let mut output = Output::new();
    if is_json {
        return exit_code(output.write_value(&records));
    }
    let mut write = || {
        for record in &records {
            let decision = match record.decision {
                TrustChoice::Trust => "trusted   ",
                TrustChoice::Restrict => "restricted",
            };
            output.write(&format!("{decision}  {}\n", clean_line(&record.path)))?;
        }
        Ok(())
    };
    exit_code(write())
}

async fn show(engine: &Engine) -> anyhow::Result<ExitCode> {
    let instance = engine.instance(engine.default_directory()).await.map_err(engine_error)?;
    exit_code(Output::new().write(&status_text(&engine.trust().of(&instance))))
}

async fn add(engine: &Engine) -> anyhow::Result<ExitCode> {
    let instance = engine.instance(engine.default_directory()).await.map_err(engine_error)?;
    let fingerprint = engine.trust().of(&instance).fingerprint;
    let input = TrustInput { decision: TrustChoice::Trust, fingerprint };
    let reply = engine.trust().decide(&instance, input).await.map_err(engine_error)?;
    exit_code(Output::new().write(&status_text(&reply)))
}

async fn remove(engine: &Engine, directory: Option<&Path>) -> anyhow::Result<ExitCode> {
    let directory = working_directory(directory)?;
    // A directory that no longer exists is matched by its stored path.
    let path = directory.canonicalize().unwrap_or(directory);
    let mut candidates = path.ancestors().map(|above| above.display().to_string());
    let decisions = engine.trust().decisions().map_err(engine_error)?;
    let stored = candidates.find(|path| decisions.iter().any(|record| record.path == *path));
    let Some(stored) = stored else { bail!("there is no trust decision about `{}`", path.display()) };
    engine.trust().remove(&stored).await.map_err(engine_error)?;
    style::note(&format!("Removed the trust decision about `{stored}`"));
    Ok(ExitCode::SUCCESS)
}

/// The trust status of a directory as text.
fn status_text(reply: &TrustReply) -> String {
    let status = match reply.status {
        TrustStatus::Unneeded => "needs no trust: its configuration requests nothing",
        TrustStatus::Undecided => "is not trusted",
        TrustStatus::Trusted => "is trusted",
        TrustStatus::Restricted => "is not trusted, and there is no question about it",
    };
    let mut text = format!("{} {status}\n", clean_line(&reply.root));
    if let Some(limit) = &reply.limit {
        text.push_str(&format!("It cannot be trusted: {}\n", clean_line(limit)));
    }
    for request in &reply.requests {
        text.push_str(&format!("- {} ({})\n", clean_line(&request.text), clean_line(&request.source)));
    }
    for change in &reply.changes {
        let kind = match change.kind {
            TrustChangeKind::Added => "new",
            TrustChangeKind::Changed => "changed",
            TrustChangeKind::Removed => "removed",
        };
        text.push_str(&format!("{kind}: {}\n", clean_line(&change.path)));
    }
    text
}
