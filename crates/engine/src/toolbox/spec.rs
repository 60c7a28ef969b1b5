//! The definitions of tools for a model.

use codewright_config::AgentMode;
use codewright_llm::ToolSpec;
use codewright_proto::Action;
use codewright_tools::{AnyTool, Bash, Bounds, LoadSkill, Task, Tool as _};

use crate::instance::Instance;
use crate::permission::rules::PermissionRules;
use crate::request::skills;

/// The words of the `bash` description that name the directory of its commands.
const PROJECT_DIRECTORY: &str = "the project directory,";

/// Returns the definition of a tool.
pub(crate) fn spec(tool: &dyn AnyTool, instance: &Instance, rules: &PermissionRules) -> ToolSpec {
    let mut description = tool.description();
    if tool.facts().lists_agents {
        description = description.replace("{agents}", &agents(instance, rules));
    }
    if tool.name() == Bash::NAME {
        let named = format!("`{}`, the project directory,", instance.directory.display());
        description = description.replacen(PROJECT_DIRECTORY, &named, 1);
    }
    let bounds = instance.settled.bounds;
    if tool.name() == Bash::NAME && bounds != Bounds::default() {
        description = description.replace(&Bounds::default().to_string(), &bounds.to_string());
    }
    // In this mode the system text does not list the skills.
    if instance.prompt.strict
        && tool.name() == LoadSkill::NAME
        && let Some(listed) = skills::block(&instance.skills(rules))
    {
        description = format!("{}\n\n{listed}", description.trim_end());
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
