//! One model of a provider: the catalog's facts with the configuration's changes.
//!
//! The configuration replaces single fields, so a configured price does not remove the others.

use std::sync::Arc;

use codewright_config::ModelConfig;
use codewright_llm::catalog::{self, CostFacts, ModelFacts, Thinker};
use codewright_llm::{Cost, Model};
use serde_json::{Map, Value};

use super::options::{merge, pairs};
use super::setup::Setup;
use super::subscription;
use super::template::{Route, with_noop_tool};

/// The context assumed of a model without a description, in tokens.
const ASSUMED_CONTEXT: u64 = 128_000;

/// A model that a provider lists.
#[derive(Clone)]
pub(crate) struct Listed {
    pub(crate) facts: ModelFacts,
    /// The model that requests use, or the reason why it cannot be used.
    pub(crate) model: Result<Arc<Model>, String>,
    /// The library that speaks its protocol.
    pub(crate) npm: String,
    /// The address that the catalog or the configuration gives for it; empty if the library has its own.
    pub(crate) api: String,
    /// Named sets of options.
    pub(crate) variants: Map<String, Value>,
    /// Whether lists contain it. Other models can only be used by name.
    pub(crate) is_offered: bool,
}

impl Listed {
    /// The model `id` of a provider. `template` is the part that all models of the provider have in common.
    pub(super) fn new(
        setup: &Setup,
        template: &Result<Model, String>,
        id: &str,
        known: Option<&ModelFacts>,
        written: Option<&ModelConfig>,
    ) -> Self {
        let mut facts = facts(id, known, written);
        let own = facts.provider.as_ref();
        let npm = own.and_then(|own| own.npm.as_deref()).unwrap_or_else(|| setup.library());
        let api = own.and_then(|own| own.api.as_deref()).unwrap_or_else(|| setup.named_address());
        let api_id = written.and_then(|written| written.id.as_deref()).unwrap_or(id);
        let library = setup.accounts.iter().find_map(|account| account.library(api_id));
        let thinker = Thinker {
            npm: library.unwrap_or(catalog::unpinned(npm)),
            api_id,
            options: known.filter(|known| known.reasoning).map(|known| known.reasoning_options.as_slice()),
            output_limit: facts.limit.output,
        };
        let mut variants = if facts.reasoning { catalog::variants(thinker) } else { Map::new() };
        if let Some(written) = written {
            merge(&mut variants, &written.variants);
            variants.retain(|_, options| options["disabled"] != true);
        }
        let template = match own.filter(|own| own.npm.is_some() || own.api.is_some()) {
            Some(_) => setup.model(Some(Route { library: npm, address: api }), written),
            None => template.clone(),
        };
        let refused = setup.accounts.iter().find_map(|account| account.refusal(api_id));
        let model = refused.map_or(template, Err).map(|template| {
            let mut model = template;
            id.clone_into(&mut model.id);
            api_id.clone_into(&mut model.api_id);
            facts.name.clone_into(&mut model.name);
            model.limits = facts.limits();
            model.cost = facts.cost();
            model.long_cost = facts.long_cost();
            model.capabilities = facts.capabilities();
            model.thought_field = facts.thought_field().map(str::to_owned);
            if let Some(written) = written {
                model.headers.extend(pairs(&written.headers));
                merge(&mut model.options, &written.options);
            }
            let declared = setup.written.options.rest.get("litellmProxy").and_then(Value::as_bool);
            if declared != Some(false) && catalog::names_litellm(api_id) {
                with_noop_tool(&mut model);
            }
            subscription::adapt(&mut model);
            for account in &setup.accounts {
                account.adapt(&mut model);
            }
            Arc::new(model)
        });
        let (npm, api) = (npm.to_owned(), api.to_owned());
        let subscription = model.as_ref().ok().and_then(|model| subscription::subscription(model));
        if subscription.is_some() {
            facts.cost = None;
        }
        let is_included = subscription.is_none_or(|subscription| (subscription.includes)(api_id));
        let is_offered = written.is_some() || (facts.is_current() && is_included);
        Self { is_offered, model, npm, api, variants, facts }
    }
}

/// The catalog's facts with the configured fields replaced.
fn facts(id: &str, known: Option<&ModelFacts>, written: Option<&ModelConfig>) -> ModelFacts {
    let mut facts = known.cloned().unwrap_or_else(|| unknown(id));
    id.clone_into(&mut facts.id);
    let Some(written) = written else { return facts };
    let set = |field: &mut bool, written: Option<bool>| *field = written.unwrap_or(*field);
    if let Some(name) = &written.name {
        name.clone_into(&mut facts.name);
    } else if known.is_none_or(|known| known.id != id) {
        id.clone_into(&mut facts.name);
    }
    set(&mut facts.attachment, written.attachment);
    set(&mut facts.reasoning, written.reasoning);
    set(&mut facts.tool_call, written.tool_call);
    facts.temperature = written.temperature.or(facts.temperature);
    facts.limit.context = written.limit.context.unwrap_or(facts.limit.context);
    facts.limit.output = written.limit.output.unwrap_or(facts.limit.output);
    facts.limit.input = written.limit.input.or(facts.limit.input);
    facts.interleaved = written.interleaved.clone().or(facts.interleaved);
    let text = |key: &str| written.rest.get(key).and_then(Value::as_str).map(str::to_owned);
    facts.family = text("family").or(facts.family);
    facts.status = text("status").or(facts.status);
    facts.release_date = text("release_date").unwrap_or(facts.release_date);
    if let Some(reach) = written.rest.get("provider") {
        let own = facts.provider.get_or_insert_default();
        let text = |key: &str| reach.get(key).and_then(Value::as_str).map(str::to_owned);
        own.npm = text("npm").or_else(|| own.npm.take());
        own.api = text("api").or_else(|| own.api.take());
    }
    if let Some(kinds) = &written.modalities {
        facts.modalities.input = kinds.input.clone().unwrap_or(facts.modalities.input);
        facts.modalities.output = kinds.output.clone().unwrap_or(facts.modalities.output);
    } else if facts.attachment && known.is_none() {
        facts.modalities.input.push("image".to_owned());
    }
    if let Some(cost) = &written.cost {
        price(facts.cost.get_or_insert_default(), cost);
    }
    facts
}

/// The facts assumed of a model without a description.
fn unknown(id: &str) -> ModelFacts {
    let mut facts =
        ModelFacts { name: id.to_owned(), tool_call: true, temperature: Some(true), ..ModelFacts::default() };
    facts.limit.context = ASSUMED_CONTEXT;
    facts.modalities.input = vec!["text".to_owned()];
    facts.modalities.output = vec!["text".to_owned()];
    facts
}

fn price(cost: &mut CostFacts, written: &codewright_config::Cost) {
    cost.input = written.input.unwrap_or(cost.input);
    cost.output = written.output.unwrap_or(cost.output);
    cost.cache_read = written.cache_read.or(cost.cache_read);
    cost.cache_write = written.cache_write.or(cost.cache_write);
    if let Some(long) = &written.context_over_200k {
        // A configured tier replaces all others.
        cost.tiers.clear();
        price(cost.context_over_200k.get_or_insert_default(), long);
    }
}

/// The prices of a request, in US dollars per million tokens. Long requests may have their own.
pub(crate) fn prices(model: &Model, request_tokens: u64) -> &Cost {
    match &model.long_cost {
        Some((from, cost)) if request_tokens > *from => cost,
        _ => &model.cost,
    }
}
