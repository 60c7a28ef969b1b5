//! The models that are used when the user chooses none, and suggestions for unknown names.

use std::sync::Arc;

use codewright_config::parse_model;
use codewright_llm::Model;
use codewright_llm::catalog;

use super::Models;
use super::provider::{Provider, key_advice};
use super::setup::key_variables;
use crate::Error;

/// The number of suggestions for an unknown name.
const NEAREST: usize = 3;
/// The family whose newest model does small work, for each provider.
const SMALL: [(&str, &str); 3] =
    [("anthropic", "claude-haiku"), ("openai", "gpt-nano"), ("google", "gemini-flash")];
/// Words in the names of models that are not for text, or may soon be withdrawn.
const SPECIAL: [&str; 6] = ["latest", "preview", "live", "tts", "image", "audio"];

impl Models {
    /// The configured model, else the preferred agentic model of the first provider.
    pub(crate) fn default_model(&self) -> Result<(String, String), Error> {
        if let Some(written) = &self.default {
            let model = parse_model(written).ok_or_else(|| {
                Error::invalid(format!("`model` must be written `provider/model`, found `{written}`"))
            })?;
            return Ok((model.provider_id, model.model_id));
        }
        // A prompt must not be sent to a server that the user has not chosen.
        let usable =
            self.providers.iter().filter(|provider| provider.template.is_ok() && !provider.is_free());
        let keyed = usable.filter(|provider| provider.missing_key.is_none());
        let first = keyed.clone().find_map(|provider| Some((provider, provider.preferred()?)));
        if let Some((provider, listed)) = first {
            return Ok((provider.id.clone(), listed.facts.id.clone()));
        }
        match (keyed.clone().next(), self.providers.iter().find(|provider| !provider.is_free())) {
            (_, None) => Err(Error::NoProvider),
            (Some(provider), _) => Err(Error::invalid(format!(
                "no model is chosen: set `model` in opencode.json or pass `--model {}/…`",
                provider.id
            ))),
            (None, Some(Provider { template: Err(problem), .. })) => Err(Error::invalid(problem.clone())),
            (None, Some(provider)) => Err(Error::NoKey {
                provider: provider.id.clone(),
                advice: provider.missing_key.clone().unwrap_or_default(),
            }),
        }
    }

    /// Returns a model of a provider, or the chosen one: its address and key are those of the provider.
    pub(crate) fn representative(&self, provider: Option<&str>) -> Result<Arc<Model>, Error> {
        let Some(id) = provider else {
            let (provider, model) = self.default_model()?;
            return self.find(&provider, &model);
        };
        let Some(found) = self.provider(id) else { return Err(self.missing_provider(id, "")) };
        let model = found.preferred().or_else(|| found.models().first());
        let model = model.map(|listed| listed.facts.id.clone()).unwrap_or_default();
        self.find(id, &model)
    }

    /// Returns the places where providers and keys were searched for.
    pub(crate) fn searched(&self) -> &[String] {
        &self.searched
    }

    /// Reports whether the user gave the provider a key, or the configuration names it. Free models of a service are
    /// available to every user, so only a choice may send prompts there.
    pub(crate) fn is_chosen(&self, provider_id: &str) -> bool {
        let names = |written: &Option<String>| {
            written.as_deref().and_then(parse_model).is_some_and(|model| model.provider_id == provider_id)
        };
        let is_unasked = |provider: &Provider| {
            provider.id == provider_id && provider.is_free() && !provider.is_configured()
        };
        !self.providers.iter().any(is_unasked) || names(&self.default) || names(&self.small)
    }

    /// The model for small work, such as titles, in a session that uses the given model.
    pub(crate) fn small(&self, provider_id: &str, model_id: &str) -> Option<Arc<Model>> {
        let small = self.configured_small();
        small.or_else(|| self.cheap(provider_id)).or_else(|| self.find(provider_id, model_id).ok())
    }

    /// The usable model of `small_model`.
    pub(crate) fn configured_small(&self) -> Option<Arc<Model>> {
        let model = self.small.as_deref().and_then(parse_model)?;
        self.find(&model.provider_id, &model.model_id).ok()
    }

    /// The newest model of a provider's small family.
    fn cheap(&self, provider_id: &str) -> Option<Arc<Model>> {
        let (_, family) = SMALL.iter().find(|(provider, _)| *provider == provider_id)?;
        // A subscription may not include every model of the family.
        let provider = self.provider(provider_id).filter(|provider| provider.setup.sign_in.is_none())?;
        let members = provider.models().iter().filter(|listed| {
            let facts = &listed.facts;
            let is_ordinary = !SPECIAL.iter().any(|word| facts.id.contains(word));
            listed.is_offered && is_ordinary && facts.is_agentic() && facts.family.as_deref() == Some(family)
        });
        let newest = members.max_by_key(|listed| (&listed.facts.release_date, &listed.facts.id))?;
        self.find(provider_id, &newest.facts.id).ok()
    }

    /// Offered models with names like that of a model that is not listed.
    pub(crate) fn nearest(&self, model: &Model) -> Vec<String> {
        let is_listed =
            self.provider(&model.provider_id).is_some_and(|provider| provider.listed(&model.id).is_some());
        if is_listed { Vec::new() } else { self.similar(&format!("{}/{}", model.provider_id, model.id)) }
    }

    fn similar(&self, name: &str) -> Vec<String> {
        let names = self.providers.iter().flat_map(|provider| {
            let offered = provider.models().iter().filter(|listed| listed.is_offered);
            offered.map(|listed| format!("{}/{}", provider.id, listed.facts.id))
        });
        let names: Vec<_> = names.collect();
        codewright_config::nearest(name, names.iter().map(String::as_str), NEAREST)
    }

    /// The error for a model that its provider does not list.
    pub(super) fn unknown_model(&self, provider_id: &str, model_id: &str) -> Error {
        let wanted = format!("{provider_id}/{model_id}");
        let advice = format!(
            "If the model is new, `codewright models --refresh` may know it; else describe it below \
             `provider.{provider_id}.models` in opencode.json."
        );
        Error::UnknownModel { nearest: self.similar(&wanted), wanted, advice: Some(advice) }
    }

    /// The error for a provider that is not set up.
    pub(super) fn missing_provider(&self, provider_id: &str, model_id: &str) -> Error {
        let off = |advice: &str| Error::NoKey { provider: provider_id.to_owned(), advice: advice.to_owned() };
        if self.choice.disabled.iter().any(|id| id == provider_id) {
            return off("It is switched off by `disabled_providers` in opencode.json.");
        }
        if !self.choice.allows(provider_id) {
            return off("It is not one of the `enabled_providers` in opencode.json.");
        }
        let row = catalog::provider(provider_id);
        if let Some(facts) = self.catalog.provider(provider_id).filter(|_| row.is_none_or(|row| !row.local)) {
            return off(&key_advice(provider_id, &key_variables(row, Some(facts))));
        }
        if self.providers.iter().all(Provider::is_free) {
            return Error::NoProvider;
        }
        let wanted = format!("{provider_id}/{model_id}");
        let mut nearest = self.similar(&wanted);
        if nearest.is_empty() {
            let ids = self.catalog.providers().map(|facts| facts.id.as_str());
            let similar = codewright_config::nearest(provider_id, ids, NEAREST);
            nearest.extend(similar.into_iter().map(|id| format!("{id}/\u{2026}")));
        }
        Error::UnknownModel { wanted, nearest, advice: None }
    }

    /// The error for a provider that neither the configuration nor the catalog names.
    pub(super) fn unknown_provider(&self, id: &str) -> Error {
        let known = self.catalog.providers().map(|facts| facts.id.as_str());
        let ids = self.providers.iter().map(|provider| provider.id.as_str()).chain(known);
        let ids: std::collections::BTreeSet<&str> = ids.collect();
        let nearest = codewright_config::nearest(id, ids.into_iter(), NEAREST);
        Error::UnknownProvider { wanted: id.to_owned(), nearest }
    }
}
