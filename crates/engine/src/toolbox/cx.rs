//! The part of a tool's context that does not depend on the call.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codewright_tools::tags::neutralize;
use codewright_tools::{
    Effects, Judged, KnownFiles, LoadedInstructions, NoHost, Opening, OwnJobs, PermissionRequests, Progress,
    Read, ReadRules, Tool as _, ToolCx,
};
use codewright_workspace::hold_at;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::inner::Inner;
use crate::instance::Instance;
use crate::request::history::shown_output;

pub(crate) fn tool_cx(
    inner: &Inner,
    instance: &Instance,
    cancel: CancellationToken,
    progress: Progress,
) -> ToolCx {
    let ids = inner.ids.clone();
    inner.outputs.sweep_now_and_then(&inner.tasks, inner.clock.now_ms());
    ToolCx {
        directory: instance.directory.clone(),
        worktree: instance.worktree.root.clone(),
        judged: Judged::default(),
        opening: Opening::default(),
        documents: None,
        home: Some(inner.dirs.home.clone()),
        bounds: instance.settled.bounds,
        output_dir: inner.dirs.tool_output(),
        new_output_id: Arc::new(move || ids.tool_output().to_string()),
        cancel,
        background: inner.tasks.clone(),
        effects: Effects::none(),
        progress,
        permission_requests: PermissionRequests::none(),
        read_rules: ReadRules::open(),
        web: inner.web.clone(),
        skills: Arc::default(),
        todos: Arc::default(),
        engine: inner.search.clone(),
        known: KnownFiles::default(),
        jobs: OwnJobs::default(),
        instructions: LoadedInstructions::default(),
        env: inner.child_environment(instance),
        locks: inner.locks.clone(),
        shell: instance.settled.shell.clone().unwrap_or_else(|| inner.shell.clone()),
        host: Arc::new(NoHost),
        confinement: inner.confinement.clone(),
        sandbox: None,
        can_delegate: false,
    }
}

/// A file of a prompt.
pub(crate) struct UserFile {
    /// The arguments of the `read` tool.
    pub(crate) input: Value,
    /// The only place that is read, if the user did not choose the file.
    pub(crate) checked: Option<PathBuf>,
}

/// Reads a file for a user with the `read` tool. No permission is needed. Tags in the text are escaped for the model.
pub(crate) async fn read(
    inner: &Arc<Inner>,
    instance: &Arc<Instance>,
    file: UserFile,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let tool = inner.toolbox.find(Read::NAME);
    let tool = tool.ok_or_else(|| "there is no read tool".to_owned())?;
    let cx = tool_cx(inner, instance, cancel.clone(), Progress::none());
    let shown = |error: &dyn std::fmt::Display| neutralize(&error.to_string()).into_owned();
    if let (Some(checked), Some(path)) = (file.checked, file.input["filePath"].as_str()) {
        cx.judged.keep(path, hold_at(Path::new(path), &checked).map_err(|error| shown(&error))?);
    }
    let output = tool.run(file.input, &cx).await.map_err(|error| shown(&error))?;
    Ok(shown_output(tool.name(), &output.output, &output.metadata))
}
