//! What a model would be sent, and what the configuration says, told for people.

use std::sync::Arc;
use std::time::Instant;

use codewright_config::{AgentSpec, parse_model};
use codewright_llm::{Model, ToolSpec};
use codewright_proto::{CreatedTime, PromptModel, UserMessage};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Error;
use crate::inner::Inner;
use crate::instance::{self, Instance};
use crate::interface::Instances;
use crate::permission::rules::PermissionRules;
use crate::prompts::Family;
use crate::redact;
use crate::request::system;
use crate::run::step;

/// Bytes of a token, about: enough to compare by.
const TOKEN_BYTES: usize = 4;

/// What the first request of a conversation holds before anybody has said anything.
#[derive(Debug, Clone, Serialize)]
pub struct PromptReport {
    /// The agent.
    pub agent: String,
    /// The model, as `provider/model`.
    pub model: String,
    /// The family whose base prompt it gets.
    pub family: &'static str,
    /// The blocks of the system text, in order.
    pub blocks: Vec<BlockReport>,
    /// The system text: what is the same in every session, and what is not.
    pub parts: [String; 2],
    /// The tools it is offered.
    pub tools: Vec<Size>,
    /// The system text as it is sent.
    pub system: Size,
    /// System text and tools together: what every request costs.
    pub total: Size,
    /// What the same costs with the base prompt of each family.
    pub families: Vec<Size>,
    /// How long it took to put the system text together once more, in microseconds.
    pub assembly_us: u64,
    /// What was left out.
    pub warnings: Vec<String>,
}

/// A block of the system text.
#[derive(Debug, Clone, Serialize)]
pub struct BlockReport {
    /// What it is.
    pub name: &'static str,
    /// The file, address or part of the program that it comes from.
    pub origin: String,
    /// How long it is, in bytes.
    pub bytes: usize,
    /// How many tokens that is, about.
    pub tokens: usize,
    /// The text.
    pub text: String,
}

/// How much something adds to a request.
#[derive(Debug, Clone, Serialize)]
pub struct Size {
    /// What.
    pub name: String,
    /// Bytes.
    pub bytes: usize,
    /// Tokens, about.
    pub tokens: usize,
}

impl Size {
    fn new(name: impl Into<String>, bytes: usize) -> Self {
        Self { name: name.into(), bytes, tokens: bytes.div_ceil(TOKEN_BYTES) }
    }
}

/// A value of the configuration and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The key with those above it, separated by dots.
    pub path: String,
    /// The value, without secrets.
    pub value: String,
    /// The file, variable or address.
    pub origin: String,
}

impl Instances<'_> {
    /// What a new conversation of an agent with a model begins with; without names, the configured ones.
    pub async fn prompt_report(
        self,
        instance: &Arc<Instance>,
        agent: Option<&str>,
        model: Option<&str>,
    ) -> Result<PromptReport, Error> {
        let agent = instance.agent(&instance.agent_name(agent)?)?.clone();
        let model = chosen(instance, &agent, model)?;
        let prompt = prompt(self.0, &agent, &model);
        let rules = PermissionRules::of_agent(&agent, &[]);
        let (tools, _) = step::prepare::offer(self.0, instance, (&model, &rules), &prompt);
        let tools = if model.capabilities.tool_call { tools } else { Vec::new() };
        let found = instance.instructions(&self.0.llm).await;
        let now = self.0.clock.now_ms();
        let blocks =
            step::prepare::system_blocks(instance, (&prompt, now), (&model, &tools), &found, &rules)?;
        let text = system::joined(&blocks);
        // Files are remembered after the first time; what a step pays is the second.
        let begun = Instant::now();
        let again = instance.instructions(&self.0.llm).await;
        drop(step::prepare::system_blocks(instance, (&prompt, now), (&model, &tools), &again, &rules)?);
        let assembly_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let tool_sizes: Vec<_> = tools.iter().map(|tool| Size::new(&tool.name, tool_bytes(tool))).collect();
        let tools_bytes: usize = tool_sizes.iter().map(|size| size.bytes).sum();
        let base = blocks.iter().find(|block| block.name == "provider").map_or(0, |block| block.text.len());
        let around = text.len() - base;
        let families = Family::ALL.map(|(family, name)| {
            let (tools, _) = step::prepare::offer(
                self.0,
                instance,
                (&Model { api_id: family.sample().to_owned(), ..(*model).clone() }, &rules),
                &prompt,
            );
            let has = |tool: &str| tools.iter().any(|offered| offered.name == tool);
            let tools: usize = tools.iter().map(tool_bytes).sum();
            Size::new(name, around + family.prompt(&has).len() + tools)
        });
        Ok(PromptReport {
            agent: agent.name.clone(),
            model: format!("{}/{}", model.provider_id, model.id),
            family: instance.family(&model).name(),
            parts: system::parts(&blocks),
            blocks: blocks.into_iter().map(BlockReport::new).collect(),
            tools: tool_sizes,
            system: Size::new("system", text.len()),
            total: Size::new("total", text.len() + tools_bytes),
            families: families.into(),
            assembly_us,
            warnings: found.warnings,
        })
    }
}

impl BlockReport {
    fn new(block: system::Block) -> Self {
        let system::Block { name, origin, text, .. } = block;
        let bytes = text.len();
        Self { name, origin, bytes, tokens: bytes.div_ceil(TOKEN_BYTES), text }
    }
}

/// The bytes of a tool in a request, without what a protocol puts around it.
fn tool_bytes(tool: &ToolSpec) -> usize {
    tool.name.len() + tool.description.len() + tool.parameters.to_string().len()
}

/// The wanted model, else the agent's, else the configured one.
pub(crate) fn chosen(
    instance: &Instance,
    agent: &AgentSpec,
    wanted: Option<&str>,
) -> Result<Arc<Model>, Error> {
    let own = || agent.model.as_ref().map(|model| (model.provider_id.clone(), model.model_id.clone()));
    let (provider, id) = match wanted {
        Some(written) => {
            parse_model(written).map(|model| (model.provider_id, model.model_id)).ok_or_else(|| {
                Error::invalid(format!("the model `{written}` does not have the form provider/model"))
            })?
        }
        None => match own() {
            Some(own) => own,
            None => instance.models.default_model()?,
        },
    };
    instance.models.find(&provider, &id)
}

/// The prompt of a conversation that has not begun.
fn prompt(inner: &Inner, agent: &AgentSpec, model: &Model) -> UserMessage {
    UserMessage {
        id: inner.ids.message(),
        session_id: inner.ids.session(),
        time: CreatedTime { created: inner.clock.now_ms() },
        format: None,
        summary: None,
        agent: agent.name.clone(),
        model: PromptModel {
            provider_id: model.provider_id.clone(),
            model_id: model.id.clone(),
            variant: None,
        },
        system: None,
        tools: None,
    }
}

impl Instance {
    /// One agent, as it is shown to clients.
    pub fn agent_json(&self, name: &str) -> Result<Value, Error> {
        let mut agent = json!(self.agent(name)?);
        instance::hide_options(&mut agent);
        Ok(agent)
    }

    /// Every value of the configuration, by path, and where it came from; what may be secret is not shown.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let found = self.origins.iter().map(|(path, origin)| {
            let value = match path.split_once(' ') {
                // The origins of lists name their entries.
                Some((_, entry)) => entry.to_owned(),
                None => at(self.raw_config(), path)
                    .map_or_else(|| "(not used)".to_owned(), |value| redact::shown(value, path).to_string()),
            };
            let path = path.split(' ').next().unwrap_or(path);
            let value = if redact::may_be_secret(path) { redact::HIDDEN.to_owned() } else { value };
            Setting { path: path.to_owned(), value, origin: origin.to_owned() }
        });
        found.collect()
    }

    /// The merged configuration without what may be secret.
    #[must_use]
    pub fn config_shown(&self) -> Value {
        let mut shown = self.config_json();
        redact::hide(&mut shown);
        shown
    }
}

/// The value at a path whose keys may hold dots themselves.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let map = value.as_object()?;
    if let Some(found) = map.get(path) {
        return Some(found);
    }
    map.iter().find_map(|(key, value)| at(value, path.strip_prefix(key.as_str())?.strip_prefix('.')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_though_keys_hold_dots() {
        let config = json!({"provider": {"x": {"models": {"m-1.5": {"name": "N"}}}}});
        assert_eq!(at(&config, "provider.x.models.m-1.5.name"), Some(&json!("N")));
        assert_eq!(at(&config, "provider.y"), None);
    }
}
