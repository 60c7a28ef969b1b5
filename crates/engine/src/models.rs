//! The models of one directory, made from the configuration, the credentials and the catalog.
//!
//! A provider is listed if the configuration names it or a key for it is found. If no
//! provider is listed, servers on this machine are looked up on their usual ports.
//! A provider's models are made when they are first needed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use codewright_config::{Config, Dirs, Env, parse_model};
use codewright_llm::catalog::{self, Catalog};
use codewright_llm::{Client, CustomFetch, Model, PictureLimits};
use serde_json::{Map, Value};

use crate::Error;
use source::Source;

pub(crate) mod credentials;
pub(crate) mod json;
mod listed;
mod local;
mod merit;
pub(crate) mod options;
mod preference;
mod provider;
mod repository;
mod setup;
pub(crate) mod source;
mod subscription;
mod template;
mod vendor;

use credentials::{Access, Credentials};
pub(crate) use listed::prices;
use provider::Provider;
pub(crate) use repository::Configs;

/// The providers of a directory, in the order they are offered.
pub(crate) struct Models {
    providers: Vec<Provider>,
    catalog: Arc<Catalog>,
    choice: Choice,
    default: Option<String>,
    small: Option<String>,
    /// The places where providers and keys were searched for.
    searched: Vec<String>,
    /// The providers whose requests plugins send.
    fetches: BTreeMap<String, CustomFetch>,
    /// The user's limits for pictures.
    pictures: PictureLimits,
}

/// The services that providers are searched with.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) catalog: &'a Source,
    pub(crate) env: &'a Env,
    pub(crate) dirs: &'a Dirs,
    pub(crate) llm: &'a Client,
}

/// The providers that the configuration allows.
struct Choice {
    disabled: Vec<String>,
    enabled: Option<Vec<String>>,
}

impl Models {
    /// Sets up the configured providers, or finds local servers if there are none.
    pub(crate) async fn open(
        search: Search<'_>,
        configs: Configs<'_>,
        access: Access<'_>,
        config_files: &[PathBuf],
    ) -> Self {
        let config = configs.config;
        let catalog = search.catalog.open().catalog;
        let mut searched: Vec<_> = config_files.iter().map(|path| path.display().to_string()).collect();
        let variables: std::collections::BTreeSet<_> =
            catalog::providers().iter().flat_map(|row| row.env).copied().collect();
        let variables: Vec<_> = variables.into_iter().collect();
        let more = catalog.keyed(|_| false).filter(|(id, _)| catalog::provider(id).is_none()).count();
        searched.push(format!(
            "environment variables: {}, and those of {more} more providers",
            variables.join(", ")
        ));
        searched.push(search.dirs.opencode_data.join("auth.json").display().to_string());
        let choice =
            Choice { disabled: config.disabled_providers.clone(), enabled: config.enabled_providers.clone() };
        let mut models = Self {
            providers: Vec::new(),
            catalog,
            choice,
            default: config.model.clone(),
            small: config.small_model.clone(),
            searched,
            fetches: BTreeMap::new(),
            pictures: PictureLimits::default(),
        };
        models.providers = models.configured(configs, access);
        if models.providers.iter().all(Provider::is_ambient)
            && !search.env.is_on(codewright_config::env::DISABLE_LOCAL_SERVERS)
        {
            let ambient = std::mem::take(&mut models.providers);
            models.providers =
                local::find(search.env, search.llm, &models.catalog, &mut models.searched).await;
            models.providers.extend(ambient);
        }
        models
    }

    /// The providers that the configuration names, then those with a key.
    fn configured(&self, configs: Configs<'_>, access: Access<'_>) -> Vec<Provider> {
        let config = configs.config;
        let nothing = Access { credentials: &Credentials::default(), env: &Env::default() };
        let mut providers: Vec<_> = config
            .provider
            .iter()
            .filter(|(id, _)| self.choice.allows(id))
            .map(|(id, written)| match configs.redirected(id, &self.catalog, access) {
                None => Provider::new(id, Some(written), &self.catalog, access),
                // The repository chose the address, so requests carry none of the user's credentials.
                Some(own) => Provider::new(id, Some(own), &self.catalog, nothing),
            })
            .collect();
        let rows = catalog::providers().iter().filter(|row| !row.local);
        let is_set = |name: &str| access.env.filled(name).is_some();
        let of_rows = rows.map(|row| (row.id, row.env.iter().any(|name| is_set(name))));
        let of_catalog = self.catalog.keyed(is_set).filter(|(id, _)| catalog::provider(id).is_none());
        for (id, has_key) in of_rows.chain(of_catalog) {
            let is_offered =
                has_key || access.credentials.has(id) || vendor::list::is_offered(id, access.env);
            if is_offered && self.choice.allows(id) && config.provider.get(id).is_none() {
                providers.push(Provider::new(id, None, &self.catalog, access));
            }
        }
        providers
    }

    /// Restores the user's choice of models if the repository's cannot be used. Returns warnings.
    pub(crate) fn keep_usable(&mut self, user: &Config) -> Vec<String> {
        let unusable = |models: &Self, chosen: &Option<String>| {
            let chosen = chosen.as_deref()?;
            let model = parse_model(chosen);
            let is_usable =
                model.is_some_and(|model| models.find(&model.provider_id, &model.model_id).is_ok());
            (!is_usable)
                .then(|| format!("the repository chooses the model `{chosen}`, which cannot be used here"))
        };
        let mut warnings = Vec::new();
        if self.default != user.model
            && let Some(warning) = unusable(self, &self.default)
        {
            self.default.clone_from(&user.model);
            warnings.push(warning);
        }
        if self.small != user.small_model
            && let Some(warning) = unusable(self, &self.small)
        {
            self.small.clone_from(&user.small_model);
            warnings.push(warning);
        }
        warnings
    }

    fn provider(&self, id: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    /// The model of that name.
    pub(crate) fn find(&self, provider_id: &str, model_id: &str) -> Result<Arc<Model>, Error> {
        let Some(provider) = self.provider(provider_id) else {
            return Err(self.missing_provider(provider_id, model_id));
        };
        let model = provider.find(model_id)?.ok_or_else(|| self.unknown_model(provider_id, model_id))?;
        let fetch = self.fetches.get(provider_id).cloned();
        if fetch.is_none() && self.pictures == model.pictures {
            return Ok(model);
        }
        Ok(Arc::new(Model { fetch, pictures: self.pictures, ..Model::clone(&model) }))
    }

    /// Sets the user's limits for pictures.
    pub(crate) fn set_pictures(&mut self, pictures: PictureLimits) {
        self.pictures = pictures;
    }

    /// Sets the providers whose requests plugins send.
    pub(crate) fn set_fetches(&mut self, fetches: BTreeMap<String, CustomFetch>) {
        // The plugin adds the credentials to each request, so its provider needs no key.
        for provider in self.providers.iter_mut().filter(|provider| fetches.contains_key(&provider.id)) {
            provider.missing_key = None;
        }
        self.fetches = fetches;
    }

    /// The options of a model's variant, if it has one of that name.
    pub(crate) fn variant(&self, model: &Model, name: &str) -> Option<&Map<String, Value>> {
        self.provider(&model.provider_id)?.listed(&model.id)?.variants.get(name)?.as_object()
    }

    /// The names of a model's variants.
    pub(crate) fn variants(&self, model: &Model) -> Vec<String> {
        let listed = self.provider(&model.provider_id).and_then(|provider| provider.listed(&model.id));
        listed.map(|listed| listed.variants.keys().cloned().collect()).unwrap_or_default()
    }
}

impl Choice {
    fn allows(&self, id: &str) -> bool {
        let disabled = self.disabled.iter().any(|disabled| disabled == id);
        !disabled && self.enabled.as_ref().is_none_or(|enabled| enabled.iter().any(|enabled| enabled == id))
    }
}

#[cfg(test)]
pub(super) mod tests;
