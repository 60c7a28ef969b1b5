//! Providers and models as clients are shown them; keys are not part of it.

use codewright_llm::Cost;
use codewright_llm::catalog::{LONG_TOKENS, ModelFacts, modalities};
use serde_json::{Map, Value, json};

use super::{Listed, Provider, ZEN};
use crate::redact;

/// A provider with the models it offers.
pub(super) fn provider(provider: &Provider) -> Value {
    let shown = provider.models().iter().filter(|listed| listed.shown);
    let models = shown.map(|listed| (listed.facts.id.clone(), model(&provider.id, listed)));
    json!({
        "id": provider.id,
        "name": provider.name,
        "source": provider.source,
        "env": provider.env,
        // That key is everybody's; it tells clients that nobody gave one.
        "options": if provider.is_free { json!({ "apiKey": ZEN.1 }) } else { json!({}) },
        "models": models.collect::<Map<_, _>>(),
    })
}

fn model(provider_id: &str, listed: &Listed) -> Value {
    let facts = &listed.facts;
    let made = listed.model.as_ref().ok();
    json!({
        "id": facts.id,
        "providerID": provider_id,
        "api": {
            "id": made.map_or(facts.id.as_str(), |model| model.api_id.as_str()),
            "url": redact::shown(&json!(listed.api), ""),
            "npm": listed.npm,
        },
        "name": facts.name,
        "family": facts.family.as_deref().unwrap_or_default(),
        "capabilities": {
            "temperature": facts.temperature.unwrap_or(false),
            "reasoning": facts.reasoning,
            "attachment": facts.attachment,
            "toolcall": facts.tool_call,
            "input": kinds(&facts.modalities.input),
            "output": kinds(&facts.modalities.output),
            "interleaved": interleaved(facts),
        },
        "cost": cost(facts),
        "limit": limit(facts),
        "status": facts.status.as_deref().unwrap_or("active"),
        "options": {},
        "headers": {},
        "release_date": facts.release_date,
        "variants": listed.variants,
    })
}

fn kinds(names: &[String]) -> Value {
    let kinds = modalities(names);
    json!({
        "text": kinds.text,
        "audio": kinds.audio,
        "image": kinds.image,
        "video": kinds.video,
        "pdf": kinds.pdf,
    })
}

/// `true`, `false` or the field in which thought goes back; a field alone is written as one.
fn interleaved(facts: &ModelFacts) -> Value {
    match facts.thought_field() {
        Some(field) => json!({ "field": field }),
        None => Value::Bool(facts.interleaved == Some(Value::Bool(true))),
    }
}

fn limit(facts: &ModelFacts) -> Value {
    match facts.limit.input {
        Some(input) => {
            json!({ "context": facts.limit.context, "input": input, "output": facts.limit.output })
        }
        None => json!({ "context": facts.limit.context, "output": facts.limit.output }),
    }
}

fn cost(facts: &ModelFacts) -> Value {
    let mut value = prices(&facts.cost());
    let Some((size, long)) = facts.long_cost() else { return value };
    let mut tier = prices(&long);
    if size != LONG_TOKENS || facts.cost.as_ref().is_some_and(|cost| !cost.tiers.is_empty()) {
        tier["tier"] = json!({ "type": "context", "size": size });
        value["tiers"] = json!([tier]);
    }
    value["experimentalOver200K"] = prices(&long);
    value
}

/// Whole numbers are written without a fraction, as JavaScript writes them.
fn prices(cost: &Cost) -> Value {
    let number = |price: f64| {
        if price.fract() == 0.0 && price.abs() < 1e15 { json!(price as i64) } else { json!(price) }
    };
    json!({
        "input": number(cost.input),
        "output": number(cost.output),
        "cache": { "read": number(cost.cache_read), "write": number(cost.cache_write) },
    })
}
