//! Providers and models as clients list them, without keys.

use std::collections::BTreeMap;

use codewright_config::Env;
use codewright_llm::Cost;
use codewright_llm::catalog::{self, LONG_TOKENS, ModelFacts, modalities};
use serde_json::{Map, Value, json};

use super::Models;
use super::credentials::{Access, Credentials};
use super::listed::Listed;
use super::provider::Provider;
use crate::{Error, redact};

/// A provider without its models.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connection {
    /// The id.
    pub id: String,
    /// The name for users.
    pub name: String,
    /// The environment variables that may hold its key.
    pub variables: Vec<String>,
    /// The source of its credentials, if it is connected.
    pub source: Option<&'static str>,
}

impl Models {
    /// The response to `GET /config/providers`.
    pub(crate) fn json(&self) -> Value {
        let usable = self.providers.iter().filter(|provider| provider.template.is_ok());
        let providers: Vec<_> = usable.clone().map(provider_json).collect();
        json!({ "providers": providers, "default": defaults(usable), "model": self.choice_json() })
    }

    /// The model of a prompt that names none, and whether it is a guess; null if there is none.
    fn choice_json(&self) -> Value {
        let Ok((provider, model)) = self.default_model() else { return Value::Null };
        json!({ "providerID": provider, "modelID": model, "guessed": self.default.is_none() })
    }

    /// The providers that can be used. Fails if no provider is configured or found.
    pub(crate) fn usable_json(&self) -> Result<Vec<Value>, Error> {
        if self.providers.is_empty() {
            return Err(Error::NoProvider);
        }
        Ok(self.providers.iter().filter(|provider| provider.template.is_ok()).map(provider_json).collect())
    }

    /// The response to `GET /provider`: every provider of the catalog, and those that are set up.
    pub(crate) fn list_json(&self) -> Value {
        let nothing = Access { credentials: &Credentials::default(), env: &Env::default() };
        let others = self
            .catalog
            .providers()
            .filter(|facts| self.provider(&facts.id).is_none() && self.choice.allows(&facts.id));
        let others: Vec<_> =
            others.map(|facts| Provider::new(&facts.id, None, &self.catalog, nothing)).collect();
        let mut all: Vec<_> = others.iter().chain(&self.providers).collect();
        all.sort_by_key(|provider| (catalog::popularity(&provider.id), provider.name.to_lowercase()));
        let all = || all.iter().copied();
        let connected = self.providers.iter().filter(|provider| provider.template.is_ok());
        json!({
            "all": all().map(provider_json).collect::<Vec<_>>(),
            "default": defaults(all()),
            "connected": connected.map(|provider| provider.id.as_str()).collect::<Vec<_>>(),
        })
    }

    /// Every provider without its models, ordered by id.
    pub(crate) fn connections(&self) -> Vec<Connection> {
        let known = self.providers.iter().map(|provider| Connection {
            id: provider.id.clone(),
            name: provider.name.clone(),
            variables: provider.env.clone(),
            source: provider.template.is_ok().then_some(provider.source),
        });
        let others = self
            .catalog
            .providers()
            .filter(|facts| self.provider(&facts.id).is_none() && self.choice.allows(&facts.id))
            .map(|facts| Connection {
                id: facts.id.clone(),
                name: facts.name.clone(),
                variables: facts.env.clone(),
                source: None,
            });
        let mut all: Vec<_> = known.chain(others).collect();
        all.sort();
        all
    }

    /// One model of a provider, or null if there is none.
    pub(crate) fn model_json(&self, provider: &str, id: &str) -> Value {
        let listed = self
            .provider(provider)
            .and_then(|provider| provider.models().iter().find(|listed| listed.facts.id == id));
        listed.map_or(Value::Null, |listed| model(provider, listed))
    }

    /// One provider that is set up, with its models.
    pub(crate) fn provider_json(&self, id: &str) -> Result<Value, Error> {
        match self.provider(id) {
            Some(Provider { template: Err(problem), .. }) => Err(Error::invalid(problem.clone())),
            Some(provider) => Ok(provider_json(provider)),
            None if self.catalog.provider(id).is_some() || catalog::provider(id).is_some() => {
                Err(self.missing_provider(id, ""))
            }
            None => Err(self.unknown_provider(id)),
        }
    }
}

/// The preferred model of each provider.
fn defaults<'a>(providers: impl Iterator<Item = &'a Provider>) -> BTreeMap<&'a str, &'a str> {
    let preferred =
        |provider: &'a Provider| Some((provider.id.as_str(), provider.preferred()?.facts.id.as_str()));
    providers.filter_map(preferred).collect()
}

/// A provider with the models it offers.
fn provider_json(provider: &Provider) -> Value {
    let offered = provider.models().iter().filter(|listed| listed.is_offered);
    let models = offered.map(|listed| (listed.facts.id.clone(), model(&provider.id, listed)));
    // Clients recognize by the public key that the user has none.
    let options = provider.public_key.map_or_else(|| json!({}), |key| json!({ "apiKey": key }));
    json!({
        "id": provider.id,
        "name": provider.name,
        "source": provider.source,
        "env": provider.env,
        "options": options,
        "models": models.collect::<Map<_, _>>(),
    })
}

fn model(provider_id: &str, listed: &Listed) -> Value {
    let facts = &listed.facts;
    let model = listed.model.as_ref().ok();
    json!({
        "id": facts.id,
        "providerID": provider_id,
        "api": {
            "id": model.map_or(facts.id.as_str(), |model| model.api_id.as_str()),
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

/// `true`, `false`, or an object that names the field in which reasoning is sent back.
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

/// Prices as JavaScript writes them: whole numbers without a fraction.
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
