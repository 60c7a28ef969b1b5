//! The tools of one request: the offered ones and the ones that are only accepted.
//!
//! Models know tools of older versions and call them by older names. Such calls are accepted under the same
//! rules as any call, but the tools are not offered.

use std::collections::BTreeMap;
use std::sync::Arc;

use codewright_tools::AnyTool;

/// Tool names with their switches.
pub(crate) type Switches = BTreeMap<String, bool>;

/// The tools of a request.
#[derive(Clone, Default)]
pub(crate) struct Selection {
    /// The offered tools.
    pub(crate) offered: Vec<Arc<dyn AnyTool>>,
    /// The tools that are accepted although they are not offered.
    pub(crate) accepted: Vec<Arc<dyn AnyTool>>,
}

impl Selection {
    /// Returns the tool with a name or alias. Case is ignored if no name matches exactly.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<dyn AnyTool>> {
        let all = || self.offered.iter().chain(&self.accepted);
        let is_alias = |tool: &&Arc<dyn AnyTool>| {
            tool.facts().aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
        };
        let exact = all().find(|tool| tool.name() == name);
        let similar = exact.or_else(|| all().find(|tool| tool.name().eq_ignore_ascii_case(name)));
        similar.or_else(|| all().find(is_alias)).cloned()
    }
}
