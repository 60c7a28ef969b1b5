//! The operations of clients on plugins.

use std::sync::Arc;

use codewright_plugins::WorkspaceAdapter;
use serde_json::Value;

use super::{PluginApi, PluginLists};
use crate::extension;
use crate::instance::Instance;
use crate::interface::Extensions;

impl Extensions<'_> {
    /// Sets the function that answers the requests of plugins to the API.
    pub fn serve_api(self, api: PluginApi) {
        self.0.plugins.set_api(api);
    }

    /// Sets the function that converts drafts for plugins of the v2 form.
    pub fn serve_lists(self, lists: PluginLists) {
        self.0.plugins.set_lists(lists);
    }

    /// Sets the address on which the API listens, for plugins that show or use it.
    pub fn set_url(self, url: String) {
        self.0.plugins.set_url(url);
    }

    /// Runs no plugins from now on.
    pub fn disable(self) {
        self.0.plugins.disable();
    }

    /// Returns the names of all tools, and for a model the definitions that it receives: the built-in ones, and those of
    /// plugins and tool files, which are started first if necessary.
    pub async fn tools(self, instance: &Arc<Instance>, model: Option<&str>) -> Vec<(String, String, Value)> {
        let extensions = extension::open::ready(self.0, instance).await;
        let mut tools = self.0.toolbox.described(model);
        for tool in extensions.tools() {
            tools.retain(|(name, ..)| name != tool.name());
            tools.push((tool.name().to_owned(), tool.description(), tool.parameters()));
        }
        tools
    }

    /// Returns the kinds of workspaces: that of OpenCode, and those that plugins have registered, which are started first if
    /// necessary. A later one replaces an earlier one of the same type. No workspace can be created.
    pub async fn workspace_adapters(self, instance: &Arc<Instance>) -> Vec<WorkspaceAdapter> {
        let extensions = extension::open::ready(self.0, instance).await;
        let mut adapters = vec![WorkspaceAdapter {
            kind: "worktree".to_owned(),
            name: "Worktree".to_owned(),
            description: "Create a git worktree".to_owned(),
        }];
        for adapter in extensions.workspaces() {
            match adapters.iter_mut().find(|known| known.kind == adapter.kind) {
                Some(known) => *known = adapter,
                None => adapters.push(adapter),
            }
        }
        adapters
    }
}
