//! Reports for users: the content of a model request, and the merged configuration with its origins.

use std::sync::Arc;
use std::time::Instant;

use codewright_config::{AgentSpec, Audience, parse_model};
use codewright_llm::{Model, ToolSpec};
use codewright_proto::{CreatedTime, PromptModel, UserMessage};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Error;
use crate::extension;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::interface::Instances;
use crate::lsp;
use crate::mcp;
use crate::permission::rules::PermissionRules;
use crate::prompts::Family;
use crate::redact;
use crate::request::system::{self, Surroundings};
use crate::run::step;
use crate::run::step::prepare::{Offer, SystemSources, ToolSources};
use crate::sandbox::enforcement::announced;
use crate::sandbox::masked::is_kept_from_model;

/// The estimated bytes of a token.
const TOKEN_BYTES: usize = 4;

/// The content of the first request of a conversation, before its first prompt.
#[derive(Debug, Clone, Serialize)]
pub struct PromptReport {
    /// The agent.
    pub agent: String,
    /// The model, as `provider/model`.
    pub model: String,
    /// The family that decides the base prompt.
    pub family: &'static str,
    /// The blocks of the system text, in order.
    pub blocks: Vec<BlockReport>,
    /// The system text: the part that is the same in every session, and the rest.
    pub parts: [String; 2],
    /// The offered tools.
    pub tools: Vec<Size>,
    /// The complete system text.
    pub system: Size,
    /// The size of system text and tools, which is part of every request.
    pub total: Size,
    /// The same size with the base prompt of each family.
    pub families: Vec<Size>,
    /// The time to build the system text again, in microseconds.
    pub assembly_us: u64,
    /// Warnings about parts that were left out.
    pub warnings: Vec<String>,
}

/// A block of the system text.
#[derive(Debug, Clone, Serialize)]
pub struct BlockReport {
    /// The kind of block.
    pub name: &'static str,
    /// The file, address or part of the program that it comes from.
    pub origin: String,
    /// The size in bytes.
    pub bytes: usize,
    /// The estimated number of tokens.
    pub tokens: usize,
    /// The text.
    pub text: String,
}

/// The size of a part of a request.
#[derive(Debug, Clone, Serialize)]
pub struct Size {
    /// The name of the part.
    pub name: String,
    /// Bytes.
    pub bytes: usize,
    /// The estimated number of tokens.
    pub tokens: usize,
}

impl Size {
    fn new(name: impl Into<String>, bytes: usize) -> Self {
        Self { name: name.into(), bytes, tokens: bytes.div_ceil(TOKEN_BYTES) }
    }
}

/// A configuration value and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The path of the key, separated by dots.
    pub path: String,
    /// The value, without secrets.
    pub value: String,
    /// The file, variable or address.
    pub origin: String,
}

impl Instances<'_> {
    /// Returns the first request of a conversation with an agent and a model; by default the configured ones.
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
        mcp::host::ready(self.0, instance).await;
        let extensions = &extension::open::ready(self.0, instance).await;
        let offered = |model: &Model| {
            let (inner, rules, prompt) = (self.0, &rules, &prompt);
            let transcript = &[];
            step::prepare::offer(ToolSources {
                inner,
                instance,
                model,
                rules,
                prompt,
                transcript,
                extensions,
            })
        };
        let Offer { specs: tools, mcp, .. } = offered(&model);
        let tools = if model.capabilities.tool_call { tools } else { Vec::new() };
        let mut found = instance.instructions(&self.0.llm).await;
        found.leave_out(|path| is_kept_from_model(self.0, instance, &rules, path));
        let now = self.0.clock.now_ms();
        let surroundings = Surroundings {
            date: self.0.zone.date(now),
            tree: instance.file_tree(&prompt.session_id, &rules).await,
            errors: lsp::host::errors(self.0, instance),
        };
        let sources = SystemSources {
            prompt: &prompt,
            surroundings: &surroundings,
            model: &model,
            tools: &tools,
            rules: &rules,
            mcp: mcp.as_deref(),
            sandbox: &announced(self.0, instance, &[]),
        };
        let blocks = step::prepare::system_blocks(instance, sources, &found)?;
        let text = system::joined(&blocks);
        // Files are cached after the first time, so the second time is that of a step.
        let begun = Instant::now();
        let again = instance.instructions(&self.0.llm).await;
        drop(step::prepare::system_blocks(instance, sources, &again)?);
        let assembly_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let tool_sizes: Vec<_> = tools.iter().map(|tool| Size::new(&tool.name, tool_bytes(tool))).collect();
        let tools_bytes: usize = tool_sizes.iter().map(|size| size.bytes).sum();
        let base = blocks.iter().find(|block| block.name == "provider").map_or(0, |block| block.text.len());
        let around = text.len() - base;
        let families = Family::ALL.map(|(family, name)| {
            let tools = offered(&Model { api_id: family.sample().to_owned(), ..(*model).clone() }).specs;
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

/// Returns the bytes of a tool in a request, without the protocol's framing.
fn tool_bytes(tool: &ToolSpec) -> usize {
    tool.name.len() + tool.description.len() + tool.parameters.to_string().len()
}

/// Returns the requested model, or else the agent's, or else the configured one.
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

/// Returns an empty prompt.
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
    /// Returns one agent as clients receive it.
    pub fn agent_json(&self, name: &str) -> Result<Value, Error> {
        let mut agent = json!(self.agent(name)?);
        self.hide_in_agent(&mut agent, Audience::Owner);
        Ok(agent)
    }

    /// Returns every configuration value with its path and origin. Secrets are hidden.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let redaction = self.redaction(Audience::Owner);
        let found = self.origins.iter().map(|(path, origin)| {
            let value = match path.split_once(' ') {
                // The origins of lists name their entries.
                Some((_, entry)) => {
                    self.secrets.masked(entry, Audience::Owner).unwrap_or_else(|| entry.to_owned())
                }
                None => at(self.raw_config(), path).map_or_else(
                    || "(not used)".to_owned(),
                    |value| redaction.shown(value, path).to_string(),
                ),
            };
            let path = path.split(' ').next().unwrap_or(path);
            let value = if redact::may_be_secret(path) { redact::HIDDEN.to_owned() } else { value };
            Setting { path: path.to_owned(), value, origin: origin.to_owned() }
        });
        found.collect()
    }

    /// Returns the merged configuration, with secrets hidden.
    #[must_use]
    pub fn config_shown(&self) -> Value {
        self.config_for(Audience::Owner)
    }

    /// Returns the merged configuration as an audience sees it.
    #[must_use]
    pub fn config_for(&self, audience: Audience) -> Value {
        let mut shown = self.config_json();
        self.redaction(audience).hide(&mut shown);
        shown
    }
}

/// Returns the value at a path whose keys may contain dots.
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
