//! The tools of one request: the offered ones and the ones that are only accepted.
//!
//! Models know tools of older versions and call them by older names. Such calls are accepted under the same
//! rules as any call, but the tools are not offered.

use std::collections::BTreeMap;
use std::sync::Arc;

use codewright_tools::{AnyTool, conform};
use serde_json::Value;

use crate::mcp::wrapped;

/// Tool names with their switches.
pub(crate) type Switches = BTreeMap<String, bool>;

/// The tools of a request.
#[derive(Clone, Default)]
pub(crate) struct Selection {
    /// The offered tools.
    pub(crate) offered: Vec<Arc<dyn AnyTool>>,
    /// The tools that are accepted although they are not offered.
    pub(crate) accepted: Vec<Arc<dyn AnyTool>>,
    /// The tools of servers that are called through the search tool. They are accepted too.
    pub(crate) searched: Vec<Arc<dyn AnyTool>>,
}

impl Selection {
    /// Returns the tool with a name or alias. If no name matches exactly, case is ignored, then separators and a
    /// namespace in front, as in `functions.read`, if only one tool can be meant.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<dyn AnyTool>> {
        let all = || self.offered.iter().chain(&self.accepted).chain(&self.searched);
        let is_alias = |tool: &&Arc<dyn AnyTool>| {
            tool.facts().aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
        };
        let exact = all().find(|tool| tool.name() == name);
        let similar = exact.or_else(|| all().find(|tool| tool.name().eq_ignore_ascii_case(name)));
        similar.or_else(|| all().find(is_alias)).or_else(|| self.alike(name)).cloned()
    }

    /// Returns the only tool whose name differs in nothing but separators and a namespace.
    fn alike(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        let all = || self.offered.iter().chain(&self.accepted).chain(&self.searched);
        let inner = name.rsplit(['.', ':', '/']).next().unwrap_or_default();
        [name, inner].into_iter().map(plain).filter(|wanted| !wanted.is_empty()).find_map(|wanted| {
            let mut alike = all().filter(|tool| plain(tool.name()) == wanted);
            alike.next().filter(|_| alike.next().is_none())
        })
    }

    /// Returns the name and the arguments of the tool that a call of the search tool calls. Returns `None` for any other
    /// call, and for one that cannot be made: the search tool reports the reason.
    pub(crate) fn inner_call(&self, name: &str, input: &Value) -> Option<(String, Value)> {
        if self.searched.is_empty() || !name.eq_ignore_ascii_case(wrapped::TOOL) {
            return None;
        }
        let (name, arguments) = wrapped::inner_call(input)?;
        let tool = self.searched.iter().find(|tool| tool.name().eq_ignore_ascii_case(name))?;
        // Arguments may have been guessed.
        let arguments = conform(tool.name(), &tool.parameters(), arguments).ok()?;
        Some((tool.name().to_owned(), arguments))
    }
}

/// Returns a name without case, separators and white space.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
