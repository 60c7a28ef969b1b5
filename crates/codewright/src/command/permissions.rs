//! `permissions`: lists and revokes permissions that were granted with "always".

use std::process::ExitCode;

use anyhow::bail;
use codewright_config::Env;
use codewright_engine::{Engine, SavedPermission, approval_giver};
use codewright_proto::ProjectId;
use serde_json::json;

use crate::clean::clean_line;
use crate::cli::{ListFormat, PermissionsArgs, PermissionsCommand};
use crate::connection::{engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

/// Longer patterns are cut in the table.
const PATTERN_CHARS: usize = 60;

pub(crate) fn main(args: &PermissionsArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = open_engine(Env::from_process(), &working_directory(None)?).await?;
        let done = match &args.command {
            PermissionsCommand::List { all, format, .. } => list(&engine, *all, *format).await,
            PermissionsCommand::Revoke { id: Some(id), .. } => revoke(&engine, id).await,
            PermissionsCommand::Revoke { id: None, .. } => revoke_all(&engine).await,
        };
        engine.close().await?;
        done
    })
}

async fn list(engine: &Engine, all: bool, format: ListFormat) -> anyhow::Result<ExitCode> {
    let saved = if all {
        engine.permissions().saved(None).await.map_err(engine_error)?
    } else {
        of_this_project(engine).await?
    };
    let mut output = Output::new();
    let written = match format {
        ListFormat::Json => {
            let saved: Vec<_> = saved.iter().map(entry).collect();
            output.write_value(&saved)
        }
        ListFormat::Table if saved.is_empty() => {
            let scope = if all { "" } else { " in this project" };
            style::note(&format!("No permissions are saved{scope}"));
            Ok(())
        }
        ListFormat::Table => output.write(&table(&saved)),
    };
    exit_code(written.and_then(|()| output.finish()))
}

/// The permissions that can apply in the working directory.
async fn of_this_project(engine: &Engine) -> anyhow::Result<Vec<SavedPermission>> {
    let directory = engine.default_directory();
    let project = engine.transfer().project_of(directory).await.map_err(engine_error)?.id;
    let mut saved = engine.permissions().saved(Some(project.clone())).await.map_err(engine_error)?;
    if project == ProjectId::global() {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        saved.retain(|one| directory.to_string_lossy() == one.directory);
    }
    Ok(saved)
}

fn entry(one: &SavedPermission) -> serde_json::Value {
    json!({
        "id": one.id,
        "projectID": one.project_id,
        "directory": one.directory,
        "action": one.action,
        "resource": one.resource,
        "created": one.created_ms,
        "by": approval_giver(one),
    })
}

fn table(saved: &[SavedPermission]) -> String {
    let rows: Vec<[String; 4]> = saved
        .iter()
        .map(|one| {
            let pattern = clean_line(&one.resource);
            let shown: String = pattern.chars().take(PATTERN_CHARS).collect();
            let mark = if pattern.chars().count() > PATTERN_CHARS { "…" } else { "" };
            let shown = format!("{shown}{mark}");
            [clean_line(&one.id), clean_line(&one.action), shown, clean_line(&one.directory)]
        })
        .collect();
    let head = ["ID", "Permission", "Pattern", "Directory"];
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.max().unwrap_or(0).max(head[at].len())
    };
    let [id, action, pattern] = [width(0), width(1), width(2)];
    let line =
        |row: [&str; 4]| format!("{:<id$}  {:<action$}  {:<pattern$}  {}\n", row[0], row[1], row[2], row[3]);
    let rows = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    std::iter::once(line(head)).chain(rows).collect()
}

async fn revoke(engine: &Engine, id: &str) -> anyhow::Result<ExitCode> {
    if !engine.permissions().revoke(id).await.map_err(engine_error)? {
        bail!(
            "there is no saved permission `{}`; `codewright permissions list --all` lists the ids",
            clean_line(id)
        );
    }
    style::note(&format!("Permission {} revoked", clean_line(id)));
    Ok(ExitCode::SUCCESS)
}

async fn revoke_all(engine: &Engine) -> anyhow::Result<ExitCode> {
    let mut count = 0;
    for one in of_this_project(engine).await? {
        count += usize::from(engine.permissions().revoke(&one.id).await.map_err(engine_error)?);
    }
    let noun = if count == 1 { "permission" } else { "permissions" };
    style::note(&format!("{count} {noun} revoked in this project"));
    Ok(ExitCode::SUCCESS)
}
