//! `debug snapshot`: takes a snapshot of the directory and compares it with an earlier one.

use std::process::ExitCode;
use std::sync::Arc;

use codewright_engine::Instance;
use serde_json::json;

use super::{print, print_json};
use crate::cli::SnapshotCommand;
use crate::connection::engine_error;

pub(super) async fn main(instance: Arc<Instance>, command: SnapshotCommand) -> anyhow::Result<ExitCode> {
    match command {
        SnapshotCommand::Track(_) => {
            let id = instance.track_snapshot().await.map_err(engine_error)?;
            print(&format!("{id}\n"))
        }
        SnapshotCommand::Patch { hash, .. } => {
            let files = instance.files_since(&hash).await.map_err(engine_error)?;
            print_json(&json!({"hash": hash, "files": files}))
        }
        SnapshotCommand::Diff { hash, .. } => {
            let diff = instance.diff_since(&hash).await.map_err(engine_error)?;
            print(&format!("{}\n", diff.trim_end_matches('\n')))
        }
    }
}
