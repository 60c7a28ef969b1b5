//! The context of a tool call: everything that the tool may use.

use std::sync::Arc;

use codewright_proto::{Span, ToolRef, ToolState};
use codewright_tools::tags::neutralize;
use codewright_tools::{
    AnyTool, Effects, Facts, KnownFiles, LoadedInstructions, NoHost, OwnJobs, PermissionRequests, Progress,
    Read, ReadRules, Task, TodoAccess, Tool as _, ToolCx, ToolError,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::call::{CallCx, Failure};
use super::grant::gate;
use super::host::CallHost;
use crate::engine::Inner;
use crate::instance::Instance;
use crate::permission::approval::Scope;
use crate::permission::gate::Asker;
use crate::permission::reading::read_rules;
use crate::request::history::shown_output;
use crate::run::files::Files;
use crate::run::recorder::{Call, CallUpdate};

impl CallCx {
    /// Requests permissions that the call turns out to need while it runs.
    fn permission_requests(&self, tool: ToolRef) -> PermissionRequests {
        let (inner, session_id, caller) =
            (Arc::clone(&self.inner), self.session_id.clone(), Arc::clone(&self.caller));
        let (instance, cancel) = (Arc::clone(&self.instance), self.cancel.clone());
        PermissionRequests::new(move |ask| {
            let (inner, session_id, caller) = (Arc::clone(&inner), session_id.clone(), Arc::clone(&caller));
            let (instance, cancel, tool) = (Arc::clone(&instance), cancel.clone(), Some(tool.clone()));
            async move {
                let rules = &caller.rules;
                let asker =
                    Asker { session_id: &session_id, instance: &instance, rules, tool, cancel: &cancel };
                gate(&inner, &ask, &asker).await.map(drop).map_err(|failure| match failure {
                    Failure::Message(message) => ToolError::Model(message),
                    Failure::Aborted => ToolError::Cancelled(None),
                })
            }
        })
    }

    /// Reports the progress of a call.
    pub(super) fn progress(
        &self,
        call: &Call,
        tool: &Arc<dyn AnyTool>,
        input: &Value,
        start: u64,
    ) -> Progress {
        let (updates, call_id, name, input) =
            (self.updates.clone(), call.id.clone(), tool.name().to_owned(), input.clone());
        Progress::new(move |metadata, title| {
            let time = Span { start, end: None };
            let state = ToolState::Running { input: input.clone(), title, metadata: Some(metadata), time };
            let update = CallUpdate { call_id: call_id.clone(), tool: name.clone(), state, stored: None };
            // Progress is dropped if the step is busy. The end of a call is always reported.
            drop(updates.try_send(update));
        })
    }

    /// Creates the context for a call.
    pub(super) async fn call_cx(
        &self,
        call: &Call,
        tool: &Arc<dyn AnyTool>,
        progress: Progress,
    ) -> Result<ToolCx, Failure> {
        let host = Arc::new(CallHost {
            inner: self.inner.clone(),
            instance: self.instance.clone(),
            caller: self.caller.clone(),
            progress: progress.clone(),
            session_id: self.session_id.clone(),
            tool: self.tool_ref(call),
            cancel: self.cancel.clone(),
        });
        let effects = self.files.as_ref().map_or_else(Effects::none, Files::effects);
        let permission_requests = self.permission_requests(self.tool_ref(call));
        let has_todos = tool.facts().todos == TodoAccess::Read;
        let todos = if has_todos { self.todos().await? } else { Arc::default() };
        let skills = self.instance.skills(&self.caller.rules).into();
        let known = self.inner.known.of(&self.session_id);
        let read_rules = self.read_rules(tool.facts()).await?;
        let can_delegate = self.selection.offered.iter().any(|tool| tool.name() == Task::NAME);
        Ok(ToolCx {
            effects,
            permission_requests,
            read_rules,
            skills,
            todos,
            known,
            jobs: self.inner.jobs.of(self.session_id.as_str(), &self.instance.directory),
            instructions: self.instructions.clone(),
            host,
            can_delegate,
            ..tool_cx(&self.inner, &self.instance, self.cancel.clone(), progress)
        })
    }

    /// The rules that filter the files which a tool finds.
    async fn read_rules(&self, facts: &Facts) -> Result<ReadRules, Failure> {
        if !facts.finds_files {
            return Ok(ReadRules::open());
        }
        let approvals = self.inner.gate.approvals(&Scope::of(&self.instance)).await;
        let approvals = approvals
            .map_err(|error| Failure::Message(format!("The saved permissions could not be read: {error}")))?;
        Ok(read_rules(&self.caller.rules, approvals))
    }

    /// The session's todo list.
    async fn todos(&self) -> Result<Arc<[Value]>, Failure> {
        let failed =
            |error: &dyn std::fmt::Display| Failure::Message(format!("The list could not be read: {error}"));
        let todos = self.inner.store.todos(&self.session_id).await.map_err(|error| failed(&error))?;
        match serde_json::to_value(todos) {
            Ok(Value::Array(todos)) => Ok(todos.into()),
            Ok(_) => Ok(Arc::default()),
            Err(error) => Err(failed(&error)),
        }
    }
}

/// Reads a file for a user, with the tool that a model uses, but without requesting permission. The text is
/// neutralized for models.
pub(crate) async fn read(
    inner: &Arc<Inner>,
    instance: &Arc<Instance>,
    input: Value,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let tool = inner.toolbox.find(Read::NAME);
    let tool = tool.ok_or_else(|| "there is no read tool".to_owned())?;
    let cx = tool_cx(inner, instance, cancel.clone(), Progress::none());
    let output = tool.run(input, &cx).await.map_err(|error| neutralize(&error.to_string()).into_owned())?;
    Ok(shown_output(tool.name(), &output.output, &output.metadata))
}

/// The context of a call outside a session.
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
        env: inner.child_env.clone(),
        locks: inner.locks.clone(),
        shell: instance.settled.shell.clone().unwrap_or_else(|| inner.shell.clone()),
        host: Arc::new(NoHost),
        confinement: inner.confinement.clone(),
        can_delegate: false,
    }
}
