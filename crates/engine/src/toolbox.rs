//! The built-in tools, and the selection of tools for a model.

pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod cx;
mod repair;
mod selection;
pub(crate) mod spec;

use std::sync::Arc;

use codewright_config::Env;
use codewright_config::env::{
    ENABLE_EXA, EXPERIMENTAL, EXPERIMENTAL_BACKGROUND, EXPERIMENTAL_BACKGROUND_SUBAGENTS,
    EXPERIMENTAL_LSP_TOOL, EXPERIMENTAL_PLAN_ENTER, EXPERIMENTAL_PLAN_MODE,
};
use codewright_tools::{AnyTool, Effect, Listing, ModelName, Setup, Task, Tool as _};
use serde_json::Value;

use crate::mcp::wrapped;
use crate::permission::rules::PermissionRules;
use crate::run::structured;
pub(crate) use repair::repaired;
pub(crate) use selection::{Selection, Switches};

/// The tool name of invalid calls.
const INVALID: &str = "invalid";

/// The built-in tools, sorted by name.
pub(crate) struct Toolbox {
    tools: Vec<Arc<dyn AnyTool>>,
    setup: Setup,
}

impl Toolbox {
    /// The tools that exist in this environment.
    pub(crate) fn builtin(env: &Env, year: u64) -> Self {
        let setup = setup(env, year);
        Self { tools: codewright_tools::builtin(&setup), setup }
    }

    /// Reports whether a name belongs to a built-in tool.
    pub(crate) fn has(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case(INVALID)
            || self.tools.iter().any(|tool| tool.name().eq_ignore_ascii_case(name))
    }

    /// Returns the tool with a name.
    fn find(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// Returns the tool that delegates work to subagents.
    pub(crate) fn task(&self) -> Option<Arc<dyn AnyTool>> {
        self.find(Task::NAME).cloned()
    }

    /// Returns the tools that a model can call under these rules and switches.
    pub(crate) fn select(
        &self,
        model: ModelName<'_>,
        rules: &PermissionRules,
        switches: &Switches,
    ) -> Selection {
        let mut selection = Selection::default();
        for tool in &self.tools {
            let (facts, switch) = (tool.facts(), switches.get(tool.name()).copied());
            let suits = (facts.suits)(model, &self.setup);
            if !suits || switch == Some(false) || rules.is_off(tool.permission()) {
                continue;
            }
            match facts.listing {
                Listing::Accepted if switch.is_none() => selection.accepted.push(tool.clone()),
                Listing::Optional if switch.is_none() => {}
                Listing::Offered | Listing::Accepted | Listing::Optional => {
                    selection.offered.push(tool.clone());
                }
            }
        }
        selection
    }

    /// Returns name, description and schema of all tools, or of those that a model is offered, in the API's order.
    pub(crate) fn described(&self, model: Option<&str>) -> Vec<(String, String, Value)> {
        let is_listed = |tool: &&Arc<dyn AnyTool>| {
            tool.facts().position.is_some() || tool.facts().listing == Listing::Offered
        };
        let mut tools: Vec<_> = self.tools.iter().filter(is_listed).collect();
        tools.sort_by_key(|tool| tool.facts().position.unwrap_or(u8::MAX));
        if let Some(model) = model {
            let model = ModelName { provider_id: "", api_id: model };
            let offered = self.select(model, &PermissionRules::default(), &Switches::default()).offered;
            tools.retain(|tool| offered.iter().any(|offered| offered.name() == tool.name()));
        }
        let describe =
            |tool: &Arc<dyn AnyTool>| (tool.name().to_owned(), tool.description(), tool.parameters());
        tools.into_iter().map(describe).collect()
    }
}

/// The conditions for tools in this environment.
fn setup(env: &Env, year: u64) -> Setup {
    let is_on = |experiment| env.is_on(experiment) || env.is_on(EXPERIMENTAL);
    // Other clients have no way to show a question.
    let client = env.filled(codewright_config::env::CLIENT);
    Setup {
        year,
        can_ask: client.is_none_or(|client| matches!(client, "app" | "cli" | "desktop")),
        has_plans: is_on(EXPERIMENTAL_PLAN_MODE),
        can_propose_plans: env.is_on(EXPERIMENTAL_PLAN_ENTER),
        has_background_commands: env.is_on(EXPERIMENTAL_BACKGROUND),
        has_background_tasks: has_background_tasks(env),
        has_web_search: is_on(ENABLE_EXA),
        has_language_servers: is_on(EXPERIMENTAL_LSP_TOOL),
    }
}

/// Reports whether the task tool offers to run subagents in the background.
pub(crate) fn has_background_tasks(env: &Env) -> bool {
    env.is_on(EXPERIMENTAL_BACKGROUND_SUBAGENTS) || env.is_on(EXPERIMENTAL)
}

/// The effect of a tool on files, also of one that is only recorded.
fn effect(tool: &str) -> Effect {
    match tool {
        INVALID | structured::TOOL | wrapped::TOOL => Effect::None,
        name => codewright_tools::facts(name).map_or(Effect::Unknown, |facts| facts.effect),
    }
}

/// Reports whether a tool changes nothing, so that an interrupted call can be repeated.
pub(crate) fn changes_nothing(tool: &str) -> bool {
    effect(tool) == Effect::None
}

#[cfg(test)]
mod tests {
    use codewright_proto::{Action, Rule};

    use super::*;

    fn allowed() -> PermissionRules {
        PermissionRules::of(vec![Rule::new("*", "*", Action::Allow)])
    }

    fn offered(env: &Env, model: &str, rules: &PermissionRules) -> Vec<String> {
        let model = ModelName { provider_id: "mock", api_id: model };
        let selection = Toolbox::builtin(env, 2026).select(model, rules, &Switches::new());
        selection.offered.iter().map(|tool| tool.name().to_owned()).collect()
    }

    fn plain() -> Env {
        Env::from_pairs::<String, String>([])
    }

    #[test]
    fn only_a_client_with_a_person_is_asked() {
        for (client, asks) in [
            (None, true),
            (Some("cli"), true),
            (Some("app"), true),
            (Some("desktop"), true),
            (Some("other"), false),
        ] {
            let env = Env::from_pairs(client.map(|client| ("OPENCODE_CLIENT", client)));
            let offered = offered(&env, "plain-model", &allowed());
            assert_eq!(offered.iter().any(|tool| tool == "question"), asks, "{client:?}");
        }
    }

    #[test]
    fn a_model_changes_files_by_patches_or_by_pieces() {
        for (models, patches) in [
            (&["gpt-5", "gpt-5.1", "openai/gpt-5-codex", "GPT-5.4"][..], true),
            (&["gpt-4o", "gpt-4.1", "gpt-oss-120b", "o1", "o3", "claude-sonnet-4-5", "plain-model"], false),
        ] {
            for model in models {
                let offered = offered(&plain(), model, &allowed());
                let has = |name: &str| offered.iter().any(|tool| tool == name);
                assert_eq!(
                    [has("apply_patch"), has("edit"), has("write")],
                    [patches, !patches, !patches],
                    "{model}"
                );
                assert!(has("read") && has("bash"));
            }
        }
    }

    #[test]
    fn a_rule_against_edits_hides_every_tool_that_edits() {
        let rules = [Rule::new("edit", "*", Action::Deny)];
        for model in ["gpt-5", "plain-model"] {
            let offered = offered(&plain(), model, &PermissionRules::of(rules.to_vec()));
            assert!(
                !offered.iter().any(|tool| ["apply_patch", "edit", "write"].contains(&tool.as_str())),
                "{model}"
            );
        }
    }
}
