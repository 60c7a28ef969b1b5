//! The calls of subagents, as far as events have told them.

use codewright_proto::{PartId, ToolPart, ToolState};
use serde_json::Value;

use crate::clean::clean_line;

/// The number of newest calls that are kept.
const MAX_NEWEST: usize = 20;

/// The calls of a subagent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls {
    pub(crate) count: usize,
    /// The titles of the newest calls, newest last.
    pub(crate) newest: Vec<String>,
    ids: Vec<PartId>,
}

impl Calls {
    /// Adds a call, or replaces its title.
    pub(crate) fn add(&mut self, id: &PartId, title: String) {
        if let Some(at) = self.ids.iter().position(|known| known == id) {
            self.newest[at] = title;
            return;
        }
        self.count += 1;
        self.ids.push(id.clone());
        self.newest.push(title);
        if self.ids.len() > MAX_NEWEST {
            self.ids.remove(0);
            self.newest.remove(0);
        }
    }
}

/// Returns the name of a call with its most important argument.
pub(crate) fn call_title(tool: &ToolPart, directory: &str) -> String {
    const ARGUMENTS: [&str; 7] = ["command", "filePath", "pattern", "description", "url", "query", "name"];
    let input = match &tool.state {
        ToolState::Pending { .. } => None,
        ToolState::Running { input, .. }
        | ToolState::Completed { input, .. }
        | ToolState::Error { input, .. } => Some(input),
    };
    let argument =
        ARGUMENTS.iter().find_map(|key| input?.get(key).and_then(Value::as_str)).unwrap_or_default();
    let argument =
        argument.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/')).unwrap_or(argument);
    clean_line(&format!("{} {argument}", tool.tool)).trim_end().to_owned()
}
