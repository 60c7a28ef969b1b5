//! `debug file` and `debug rg`: files as the API and the tools see them.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use codewright_engine::{Instance, KeptFiles};
use serde_json::json;

use super::{print, print_json};
use crate::cli::{FileCommand, RgCommand};
use crate::connection::engine_error;

/// The maximum number of found names and directories.
const MAX_NAMES: usize = 50;
/// The maximum number of files and lines without `--limit`.
const MAX_RESULTS: usize = 100_000;

/// Runs a command of `debug file`.
pub(super) async fn file(instance: Arc<Instance>, command: FileCommand) -> anyhow::Result<ExitCode> {
    match command {
        FileCommand::Read { path, .. } => {
            let file = instance.file_base64(&path).await.map_err(engine_error)?;
            let file = file.with_context(|| format!("`{path}` does not exist"))?;
            let mime = file.mime_type.unwrap_or_else(|| "text/plain".to_owned());
            print_json(&json!({"content": file.content, "encoding": file.encoding, "mime": mime}))
        }
        FileCommand::List { path, .. } => {
            let nodes = instance.list_files(&path).await.map_err(engine_error)?;
            let entries = nodes.into_iter().map(|node| json!({"path": node.path, "type": node.kind}));
            print_json(&entries.collect::<Vec<_>>())
        }
        FileCommand::Search { query, .. } => {
            let names = instance.find_files(&query, None, MAX_NAMES).await.map_err(engine_error)?;
            print_lines(&names)
        }
    }
}

/// Runs a command of `debug rg`.
pub(super) async fn search(instance: Arc<Instance>, command: RgCommand) -> anyhow::Result<ExitCode> {
    match command {
        RgCommand::Files { query, glob, limit, .. } => {
            let limit = checked(limit)?;
            let globs = glob.into_iter().collect();
            let names = instance.files_matching(globs, query.as_deref(), limit).await;
            print_lines(&names.map_err(engine_error)?)
        }
        RgCommand::Search { pattern, glob, limit, .. } => {
            let lines = instance.find_text(&pattern, glob, checked(limit)?, &KeptFiles::none()).await;
            print_json(&lines.map_err(engine_error)?)
        }
    }
}

fn checked(limit: Option<usize>) -> anyhow::Result<usize> {
    match limit.unwrap_or(MAX_RESULTS) {
        limit @ 1..=MAX_RESULTS => Ok(limit),
        other => bail!("--limit is a number from 1 to {MAX_RESULTS}, not {other}"),
    }
}

/// Prints a name per line, without control characters.
fn print_lines(names: &[String]) -> anyhow::Result<ExitCode> {
    let lines = names.iter().map(|name| format!("{}\n", crate::clean::clean_line(name)));
    print(&lines.collect::<String>())
}
