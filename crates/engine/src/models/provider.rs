//! One provider of a directory and the models it lists.

use std::sync::{Arc, OnceLock};

use codewright_config::ProviderConfig;
use codewright_llm::Model;
use codewright_llm::catalog::{Catalog, ProviderFacts};

use super::credentials::Access;
use super::listed::Listed;
use super::merit::merit;
use super::setup::{KeySource, Setup, key_variables};
use super::vendor::Key;
use crate::Error;

/// The model that the service with a public key itself prefers.
const PREFERRED_FREE: &str = "big-pickle";

/// A provider and its models.
pub(crate) struct Provider {
    pub(super) id: String,
    pub(super) name: String,
    /// `config`, `env`, `api`, `local`, or `custom` for a provider with a sign-in or without credentials.
    pub(super) source: &'static str,
    pub(super) env: Vec<String>,
    pub(super) setup: Setup,
    /// The part that all models have in common. Its id is empty.
    pub(super) template: Result<Model, String>,
    /// What the user can do if a key is needed and none was found.
    pub(super) missing_key: Option<String>,
    pub(super) models: OnceLock<Vec<Listed>>,
    /// Whether models that are not listed may be requested.
    pub(super) has_unlisted_models: bool,
    /// The vendor's public key, if the user has none. Only models without a price are listed then.
    pub(super) public_key: Option<&'static str>,
}

impl Provider {
    /// Sets up the provider named `id`.
    pub(super) fn new(
        id: &str,
        written: Option<&ProviderConfig>,
        catalog: &Arc<Catalog>,
        access: Access<'_>,
    ) -> Self {
        let is_written = written.is_some();
        let (setup, names, found) = Setup::new(id, written.cloned().unwrap_or_default(), catalog, access);
        let Setup { written, row, facts, .. } = &setup;
        let source = match found {
            _ if is_written => "config",
            Some(KeySource::Env) => "env",
            Some(KeySource::Stored) => "api",
            Some(KeySource::Config | KeySource::Public) | None => "custom",
        };
        let keys = || setup.accounts.iter().map(|account| account.key());
        let has_authorization = ["authorization", "x-api-key", "api-key"]
            .iter()
            .any(|header| written.options.headers.keys().any(|name| name.eq_ignore_ascii_case(header)));
        let is_keyless =
            setup.sign_in.is_some() || keys().any(|key| key == Key::Ambient) || has_authorization;
        let is_local = row.is_some_and(|row| row.local);
        let needs_key = !is_local && written.options.base_url.is_none();
        let is_key_missing = setup.key.is_none() && !is_keyless && needs_key && !names.is_empty();
        let public_key = keys().find_map(|key| match key {
            Key::Public(key) => Some(key),
            Key::Required | Key::Ambient => None,
        });
        let name = written.name.clone().or_else(|| row.map(|row| row.name.to_owned()));
        let name = name.or_else(|| facts.as_ref().map(|facts| facts.name.clone()));
        let has_list = facts.is_some() || !written.models.is_empty();
        let is_elsewhere = row.is_some() && written.options.base_url.is_some();
        let has_unlisted = setup.accounts.iter().any(|account| account.has_unlisted_models());
        Self {
            id: id.to_owned(),
            name: name.unwrap_or_else(|| id.to_owned()),
            source,
            missing_key: is_key_missing.then(|| key_advice(id, &names)),
            env: if written.env.is_empty() { listed_variables(facts.as_ref(), names) } else { names },
            template: setup.model(None, None),
            // The catalog describes a provider's own server. Another server may have more models.
            has_unlisted_models: (!has_list || is_local || is_elsewhere || has_unlisted)
                && written.whitelist.is_none(),
            public_key,
            models: OnceLock::new(),
            setup,
        }
    }

    /// Whether the user has no key of the provider, but its free models are available.
    pub(super) fn is_free(&self) -> bool {
        self.public_key.is_some()
    }

    /// Whether the configuration has an entry for the provider.
    pub(super) fn is_configured(&self) -> bool {
        self.source == "config"
    }

    /// Whether the provider is listed although nothing shows that the user wants it: many machines have credentials
    /// of a cloud for other uses, and free models are available to every user.
    pub(super) fn is_ambient(&self) -> bool {
        let has_ambient_key = || self.setup.accounts.iter().any(|account| account.key() == Key::Ambient);
        self.source == "custom" && (self.is_free() || (self.setup.key.is_none() && has_ambient_key()))
    }

    /// The listed models: the configuration's, then the catalog's.
    pub(super) fn models(&self) -> &[Listed] {
        self.models.get_or_init(|| {
            let written = &self.setup.written;
            let known = self.setup.catalog_models();
            let mut models: Vec<Listed> = Vec::with_capacity(known.len() + written.models.len());
            models.extend(written.models.iter().map(|(id, model)| {
                let api_id = model.id.as_deref().unwrap_or(id);
                let known = known.iter().find(|known| known.id == api_id);
                Listed::new(&self.setup, &self.template, id, known, Some(model))
            }));
            for known in known.iter().filter(|known| written.models.get(&known.id).is_none()) {
                models.push(Listed::new(&self.setup, &self.template, &known.id, Some(known), None));
            }
            models.retain(|listed| {
                let id = &listed.facts.id;
                let has_price = listed.facts.cost.as_ref().is_none_or(|cost| cost.input != 0.0);
                if self.is_free() && has_price {
                    return false;
                }
                let is_allowed = written.whitelist.as_ref().is_none_or(|list| list.contains(id));
                is_allowed && !written.blacklist.contains(id)
            });
            models
        })
    }

    /// The model of that name.
    pub(super) fn find(&self, model_id: &str) -> Result<Option<Arc<Model>>, Error> {
        let problem = |problem: &String| Error::invalid(problem.clone());
        self.template.as_ref().map_err(problem)?;
        if let Some(listed) = self.listed(model_id) {
            let model = listed.model.as_ref().map_err(problem)?;
            return self.with_key(model.clone()).map(Some);
        }
        if self.is_free() && self.setup.catalog_models().iter().any(|known| known.id == model_id) {
            let advice = key_advice(&self.id, &key_variables(self.setup.row, None));
            return Err(Error::NoKey { provider: self.id.clone(), advice });
        }
        if let Some(refused) = self.setup.accounts.iter().find_map(|account| account.refusal(model_id)) {
            return Err(Error::invalid(refused));
        }
        if !self.has_unlisted_models || model_id.is_empty() {
            return Ok(None);
        }
        let model =
            Listed::new(&self.setup, &self.template, model_id, None, None).model.map_err(Error::invalid)?;
        self.with_key(model).map(Some)
    }

    pub(super) fn listed(&self, id: &str) -> Option<&Listed> {
        self.models().iter().find(|listed| listed.facts.id == id)
    }

    /// The model for a user who chooses none: the best of the models that can be agents.
    ///
    /// Models that the configuration or a server on this machine lists are the user's choice. Of the others, those that
    /// are reduced or a preview are never chosen.
    pub(super) fn preferred(&self) -> Option<&Listed> {
        let offered = self.models().iter().filter(|listed| listed.is_offered);
        let is_local = self.source == "local";
        let is_listed =
            |listed: &Listed| is_local || self.setup.written.models.get(&listed.facts.id).is_some();
        let judged = offered.filter_map(|listed| {
            let merit = merit(&listed.facts)?;
            (merit.is_unasked() || is_listed(listed)).then_some((merit, listed))
        });
        let mut judged: Vec<_> = judged.collect();
        let free = judged.iter().find(|(_, listed)| self.is_free() && listed.facts.id == PREFERRED_FREE);
        if let Some((_, free)) = free {
            return Some(free);
        }
        if is_local {
            return judged.first().map(|(_, listed)| *listed);
        }
        judged.sort_by(|(a, _), (b, _)| a.cmp(b));
        judged.pop().map(|(_, listed)| listed)
    }

    /// The model, unless its provider needs a key that is missing.
    fn with_key(&self, model: Arc<Model>) -> Result<Arc<Model>, Error> {
        match &self.missing_key {
            Some(advice) => Err(Error::NoKey { provider: self.id.clone(), advice: advice.clone() }),
            None => Ok(model),
        }
    }
}

/// The variables that clients list.
fn listed_variables(facts: Option<&ProviderFacts>, names: Vec<String>) -> Vec<String> {
    facts.map(|facts| facts.env.clone()).filter(|env| !env.is_empty()).unwrap_or(names)
}

/// How a user gives the provider a key.
pub(super) fn key_advice(id: &str, names: &[String]) -> String {
    let variables: String = names.iter().map(|name| format!("{name} or ")).collect();
    format!(
        "Set {variables}`provider.{id}.options.apiKey` in opencode.json, or run `codewright providers login {id}`."
    )
}
