//! The plugins of one process as an extension.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codewright_plugins::{HookCall, HookFailure, HookReply, Plugins, WorkspaceAdapter};
use codewright_tools::AnyTool;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use super::configured::Configured;
use super::tool::PluginTool;
use super::wanted::Wanted;
use crate::extension::{Author, Boxed, Call, Extension, Failure, Moment, Reply};
use crate::packages::Owner;

/// The hook that receives events.
const EVENT: &str = "event";

/// How long a request waits while the plugins change the configuration.
const CHANGE_WAIT: Duration = Duration::from_secs(2);

/// The plugins of a process.
pub(crate) struct HostExtension {
    pub(crate) plugins: Plugins,
    pub(crate) wanted: Wanted,
    /// The tools of the plugins, and the number of the process that has loaded them.
    tools: Mutex<Option<(u64, Arc<Tools>)>>,
    /// The refused tools that were reported.
    reported: Mutex<BTreeSet<String>>,
    /// The state for which the plugins have changed the configuration.
    configured: Mutex<Option<Configured>>,
    /// How many requests have them change the configuration now.
    changing: watch::Sender<usize>,
}

/// The time that plugins change the configuration. Others wait for its end.
pub(crate) struct Changing<'a>(&'a HostExtension);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.changing.send_modify(|count| *count -= 1);
    }
}

/// The tools of loaded plugins.
#[derive(Default)]
struct Tools {
    all: Vec<Arc<dyn AnyTool>>,
    /// The names that are taken, with the names of their plugins.
    refused: Vec<(String, String)>,
}

impl HostExtension {
    pub(crate) fn new(plugins: Plugins, wanted: Wanted) -> Self {
        Self {
            plugins,
            wanted,
            tools: Mutex::default(),
            reported: Mutex::default(),
            configured: Mutex::default(),
            changing: watch::Sender::new(0),
        }
    }

    /// Notes that the plugins change the configuration for a state, until the returned value is dropped. `None` if they
    /// have done so before, or are doing it.
    pub(crate) fn claim(&self, state: Configured) -> Option<Changing<'_>> {
        let mut configured = self.configured.lock().unwrap_or_else(PoisonError::into_inner);
        if configured.as_ref() == Some(&state) {
            return None;
        }
        *configured = Some(state);
        self.changing.send_modify(|count| *count += 1);
        Some(Changing(self))
    }

    /// Waits while the plugins change the configuration, but not long: a plugin that does it may have sent the request that
    /// waits.
    pub(crate) async fn settled(&self) {
        // The sender is not dropped meanwhile. After the time the present configuration counts.
        drop(timeout(CHANGE_WAIT, self.changing.subscribe().wait_for(|count| *count == 0)).await);
    }

    /// Lets the plugins change the configuration again when it is next needed.
    pub(crate) fn forget_configuration(&self) {
        *self.configured.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Reports the tools that a repository cannot have, each once.
    pub(crate) fn report_refused(&self) {
        let Some(tools) = self.loaded_tools() else { return };
        for (tool, plugin) in &tools.refused {
            let is_new = self.reported.lock().unwrap_or_else(PoisonError::into_inner).insert(tool.clone());
            if is_new {
                let message = format!(
                    "its tool `{tool}` has the name of a built-in tool, which a repository cannot replace"
                );
                self.plugins.report(plugin, &message);
            }
        }
    }

    /// Returns the tools of the plugins that are loaded now.
    fn loaded_tools(&self) -> Option<Arc<Tools>> {
        let generation = self.plugins.generation()?;
        let mut known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((of, tools)) if *of == generation => Some(tools.clone()),
            _ => {
                let tools = Arc::new(self.read_tools());
                *known = Some((generation, tools.clone()));
                Some(tools)
            }
        }
    }

    fn read_tools(&self) -> Tools {
        let mut tools = Tools::default();
        for loaded in self.plugins.loaded() {
            for tool in &loaded.tools {
                let is_reserved =
                    self.wanted.reserved.iter().any(|name| name.eq_ignore_ascii_case(&tool.name));
                if is_reserved && self.wanted.owner == Owner::Repository {
                    tools.refused.push((tool.name.clone(), loaded.name.clone()));
                    continue;
                }
                // A later plugin replaces a tool of an earlier one.
                tools.all.retain(|known| known.name() != tool.name);
                let tool = PluginTool::new(self.plugins.clone(), &loaded, tool, self.wanted.owner);
                tools.all.push(Arc::new(tool));
            }
        }
        tools
    }

    /// The failures of a call. Accesses that the sandbox denied are reported once, in another way.
    fn failures(&self, reply: HookReply) -> Vec<Failure> {
        let failures = reply.failures.into_iter();
        let failures = failures.filter(|failure| !self.plugins.is_denied(&failure.plugin, &failure.message));
        let failure = |failure: HookFailure| Failure { extension: failure.plugin, message: failure.message };
        failures.map(failure).collect()
    }

    /// Calls a hook of all plugins, and returns its answer.
    ///
    /// An error before a tool call refuses the call, and the plugins after it are not called. That a plugin cannot write
    /// one of its files is no reason to refuse a call, so they are called after all.
    async fn call_all(&self, call: &Call) -> HookReply {
        let Call { moment, input, output } = call;
        let called = HookCall { name: moment.name(), input, output, only: None };
        let mut reply = self.plugins.hook(called).await;
        if *moment != Moment::ToolBefore {
            return reply;
        }
        let mut left = self.plugins.with_hook(moment.name()).into_iter();
        while let Some(at) = reply.failures.iter().position(|failure| failure.is_thrown) {
            let HookFailure { plugin, message, .. } = &reply.failures[at];
            if !self.plugins.is_denied(plugin, message) {
                return reply;
            }
            left.by_ref().find(|(_, name)| name == plugin);
            reply.failures.remove(at);
            for (index, _) in left.by_ref() {
                let output = reply.output.take().unwrap_or_else(|| output.clone());
                let called = HookCall { name: moment.name(), input, output: &output, only: Some(index) };
                let next = self.plugins.hook(called).await;
                reply.output = next.output.or(Some(output));
                let is_over = next.failures.iter().any(|failure| failure.is_thrown);
                reply.failures.extend(next.failures);
                if is_over {
                    break;
                }
            }
        }
        reply
    }

    /// Calls a hook of all plugins.
    async fn hook(&self, call: Call) -> Reply {
        let mut reply = self.call_all(&call).await;
        let Call { moment, output, .. } = call;
        // As in OpenCode, a plugin forbids a call by throwing an error before it. A guard that does not end has not
        // allowed the call. That is a failure, so it is reported too.
        let is_refused = |failure: &&HookFailure| failure.is_thrown || failure.is_late;
        let found = reply.failures.iter().find(is_refused).filter(|_| moment == Moment::ToolBefore);
        let refusal = found.map(|failure| match failure {
            HookFailure { is_late: true, plugin, reason, .. } => {
                format!("The plugin {plugin} did not allow the call in time, so it was not made: {reason}")
            }
            HookFailure { reason, .. } => reason.clone(),
        });
        if refusal.is_some() {
            reply.failures.retain(|failure| !failure.is_thrown);
        }
        let changed = reply.output.take();
        Reply {
            output: changed.unwrap_or(output),
            refusal,
            failures: self.failures(reply),
            ..Reply::default()
        }
    }

    /// Asks each plugin about a permission request. A plugin can only make the answer stricter, unless the user's
    /// configuration lets it answer in the place of the user.
    async fn permission(&self, mut call: Call) -> Reply {
        let mut reply = Reply::default();
        for (index, name) in self.plugins.with_hook(call.moment.name()) {
            let (input, output) = (&call.input, &call.output);
            let called = HookCall { name: call.moment.name(), input, output, only: Some(index) };
            let mut answer = self.plugins.hook(called).await;
            let status = answer.output.take().and_then(|output| output["status"].as_str().map(str::to_owned));
            reply.failures.extend(self.failures(answer));
            match (status.as_deref(), call.output["status"].as_str()) {
                (Some("deny"), _) => {
                    call.output["status"] = "deny".into();
                    reply.grants = false;
                    break;
                }
                (Some("ask"), Some("allow")) => call.output["status"] = "ask".into(),
                (Some("allow"), Some("ask")) if self.wanted.granting.contains(&name) => reply.grants = true,
                _ => {}
            }
        }
        reply.output = call.output;
        reply
    }
}

impl Extension for HostExtension {
    fn takes(&self, moment: Moment) -> bool {
        self.plugins.has_hook(moment.name())
    }

    fn call(&self, call: Call) -> Boxed<'_, Reply> {
        Box::pin(async move {
            match call.moment {
                Moment::Permission => self.permission(call).await,
                _ => self.hook(call).await,
            }
        })
    }

    fn author(&self) -> Author {
        match self.wanted.owner {
            Owner::User => Author::User,
            Owner::Repository => Author::Repository,
        }
    }

    fn takes_events(&self) -> bool {
        self.plugins.has_hook(EVENT)
    }

    fn event(&self, event: &Arc<Value>) {
        self.plugins.event(event);
    }

    fn tools(&self) -> Vec<Arc<dyn AnyTool>> {
        self.loaded_tools().map(|tools| tools.all.clone()).unwrap_or_default()
    }

    fn workspaces(&self) -> Vec<WorkspaceAdapter> {
        self.plugins.loaded().into_iter().flat_map(|loaded| loaded.workspaces).collect()
    }
}
