//! The definitions of tools for a model.

use codewright_config::AgentMode;
use codewright_llm::ToolSpec;
use codewright_proto::Action;
use codewright_tools::{AnyTool, Task, Tool as _};

use crate::instance::Instance;
use crate::permission::rules::PermissionRules;

/// Returns the definition of a tool.
pub(crate) fn spec(tool: &dyn AnyTool, instance: &Instance, rules: &PermissionRules) -> ToolSpec {
    let mut description = tool.description();
    if tool.facts().lists_agents {
        description = description.replace("{agents}", &agents(instance, rules));
    }
    ToolSpec { name: tool.name().to_owned(), description, parameters: tool.parameters() }
}

/// Returns the agents that can be called under these rules, one per line.
fn agents(instance: &Instance, rules: &PermissionRules) -> String {
    let lines = instance.agents().iter().filter(|agent| {
        agent.mode != AgentMode::Primary
            && !agent.hidden
            && rules.decide(Task::NAME, &agent.name) != Action::Deny
    });
    let lines = lines.map(|agent| {
        let description = agent.description.as_deref().unwrap_or("To be called only when the user names it.");
        format!("- {}: {description}", agent.name)
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() { "(there is none at the moment)".to_owned() } else { lines.join("\n") }
}
