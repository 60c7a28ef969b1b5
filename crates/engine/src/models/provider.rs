//! One provider of a directory: its setup, and the models it lists.

use std::sync::{Arc, OnceLock};

use codewright_config::ProviderConfig;
use codewright_llm::catalog::{self, Catalog, ModelFacts, ProviderFacts, ProviderRow};
use codewright_llm::{Auth, Model};

use super::credentials::{Access, SignedIn};
use super::listed::Listed;
use super::vendor::{Account, Input, Key, Wire, list};
use crate::Error;

/// Words in the names of a provider's preferred models, the most preferred last.
const PREFERRED: [&str; 4] = ["gpt-5", "claude-sonnet-4", "big-pickle", "gemini-3-pro"];

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

/// The sources that a provider's models are made from.
pub(super) struct Setup {
    pub(super) id: String,
    pub(super) written: ProviderConfig,
    pub(super) row: Option<&'static ProviderRow>,
    pub(super) facts: Option<ProviderFacts>,
    /// The variables of addresses that have a value.
    pub(super) variables: Vec<(String, String)>,
    pub(super) key: Option<String>,
    /// Where the key was found, as advice for the case that a server refuses it.
    pub(super) key_source: Option<String>,
    /// The sign-in that replaces a key.
    pub(super) sign_in: Option<SignedIn>,
    /// The vendors' accounts that requests may use.
    pub(super) accounts: Vec<Box<dyn Account>>,
    pub(super) catalog: Arc<Catalog>,
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
                Listed::new(self, id, known, Some(model))
            }));
            for known in known.iter().filter(|known| written.models.get(&known.id).is_none()) {
                models.push(Listed::new(self, &known.id, Some(known), None));
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
        let model = Listed::new(self, model_id, None, None).model.map_err(Error::invalid)?;
        self.with_key(model).map(Some)
    }

    pub(super) fn listed(&self, id: &str) -> Option<&Listed> {
        self.models().iter().find(|listed| listed.facts.id == id)
    }

    /// The preferred one of the offered models that are suitable.
    pub(super) fn first(&self, is_suitable: impl Fn(&ModelFacts) -> bool) -> Option<&Listed> {
        let mut models =
            self.models().iter().filter(|listed| listed.is_offered && is_suitable(&listed.facts));
        if self.source == "local" {
            return models.next();
        }
        models.max_by_key(|listed| {
            let id = listed.facts.id.as_str();
            (PREFERRED.iter().position(|name| id.contains(name)), id.contains("latest"), id)
        })
    }

    /// The model, unless its provider needs a key that is missing.
    fn with_key(&self, model: Arc<Model>) -> Result<Arc<Model>, Error> {
        match &self.missing_key {
            Some(advice) => Err(Error::NoKey { provider: self.id.clone(), advice: advice.clone() }),
            None => Ok(model),
        }
    }
}

/// The origin of a key.
#[derive(Debug, Clone, Copy)]
enum KeySource {
    Config,
    Env,
    Stored,
    Public,
}

impl Setup {
    /// Finds the key and the accounts of the provider named `id`.
    ///
    /// Returns the variables that may hold the key, and the origin of the key, as well.
    fn new(
        id: &str,
        written: ProviderConfig,
        catalog: &Arc<Catalog>,
        access: Access<'_>,
    ) -> (Self, Vec<String>, Option<KeySource>) {
        let Access { credentials, env } = access;
        let catalog_id = written.id.clone().unwrap_or_else(|| id.to_owned());
        let (row, facts) = (catalog::provider(&catalog_id), catalog.provider(&catalog_id));
        let names = if written.env.is_empty() { key_variables(row, facts) } else { written.env.clone() };
        let configured = written.options.api_key.clone().filter(|key| !key.is_empty());
        // A sign-in is preferred to any key except a configured one.
        let sign_in = credentials.sign_in(id).filter(|_| configured.is_none());
        let of_env = || names.iter().find_map(|name| Some((name, env.filled(name)?)));
        let mut found = None;
        let (mut key, mut key_source) = (None, None);
        if let Some(configured) = configured {
            (found, key) = (Some(KeySource::Config), Some(configured));
            key_source = Some(format!("the key is `provider.{id}.options.apiKey` in the configuration"));
        } else if let Some((name, of_env)) = of_env() {
            (found, key) = (Some(KeySource::Env), Some(of_env.to_owned()));
            key_source = Some(format!("the key is in the environment variable {name}"));
        } else if let Some(stored) = credentials.key(id) {
            (found, key) = (Some(KeySource::Stored), Some(stored));
            key_source =
                Some(format!("the key is stored: replace it with `codewright providers login {id}`"));
        }
        let variables = variables(id, facts, access);
        let of_row = row.map(|row| row.npm);
        let library = written.npm.as_deref().or(of_row).or(facts.map(|facts| facts.npm.as_str()));
        let accounts = list::accounts(&Input {
            id,
            catalog_id: &catalog_id,
            written: &written,
            library,
            key: key.as_deref(),
            sign_in: sign_in.as_ref(),
            variables: &variables,
            access,
        });
        for account in &accounts {
            if let Key::Public(public) = account.key() {
                (found, key) = (Some(KeySource::Public), Some(public.to_owned()));
            }
        }
        let facts = facts.cloned();
        let (id, catalog) = (id.to_owned(), Arc::clone(catalog));
        let setup = Self { id, written, row, facts, variables, key, key_source, sign_in, accounts, catalog };
        (setup, names, found)
    }

    /// The catalog's models of the provider.
    fn catalog_models(&self) -> Vec<ModelFacts> {
        let known = self.facts.as_ref().map(|facts| facts.id.as_str()).unwrap_or(&self.id);
        // The downloaded copy may be damaged in this entry only; the embedded one is not.
        let known = self.catalog.models(known).or_else(|_| Catalog::embedded().models(known));
        known.unwrap_or_default()
    }

    /// The account that answers for a library and protocol.
    pub(super) fn account(&self, wire: Wire<'_>) -> Option<&dyn Account> {
        self.accounts.iter().find(|account| account.serves(wire)).map(|account| &**account)
    }

    /// What the user can do if a server refuses the credentials of a model.
    pub(super) fn refusal_advice(&self, model: &Model) -> Option<String> {
        if let Auth::SignIn { .. } = &model.auth {
            return Some(format!("sign in again with `codewright providers login {}`", self.id));
        }
        let advice = self.accounts.iter().find_map(|account| account.advice(model));
        advice.or_else(|| self.key_source.clone())
    }
}

/// The variables of addresses that have a value for the provider named `id`.
fn variables(id: &str, facts: Option<&ProviderFacts>, access: Access<'_>) -> Vec<(String, String)> {
    let of_catalog = facts.into_iter().flat_map(|facts| &facts.env).map(String::as_str);
    let names = of_catalog.chain(list::notes().map(|note| note.variable));
    names.filter_map(|name| Some((name.to_owned(), variable(name, id, access)?))).collect()
}

/// The value of an address's variable: from the environment, or stored next to the key.
fn variable(name: &str, id: &str, access: Access<'_>) -> Option<String> {
    let from_env = || access.env.filled(name).map(str::to_owned);
    let Some(note) = list::notes().find(|note| note.variable == name) else { return from_env() };
    let stored = access.credentials.note(id, note.key_field, &[note.sign_in_field]);
    let stored = stored.map(|text| match note.domain {
        Some(domain) => text.trim_end_matches(domain).to_owned(),
        None => text,
    });
    // The value becomes a part of an address, and must not be able to change the host.
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let stored = stored.filter(|text| text.bytes().all(fits));
    if note.is_preferred { stored.or_else(from_env) } else { from_env().or(stored) }
}

/// The variables that may hold a provider's key. The first one with a value is used.
pub(super) fn key_variables(row: Option<&ProviderRow>, facts: Option<&ProviderFacts>) -> Vec<String> {
    match (row, facts) {
        (Some(row), _) => row.env.iter().map(|name| (*name).to_owned()).collect(),
        (None, Some(facts)) => facts.key_variables().map(str::to_owned).collect(),
        (None, None) => Vec::new(),
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
