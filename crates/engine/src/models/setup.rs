//! The setup of one provider: its configuration, its catalog entry, its key and its accounts.

use std::sync::Arc;

use codewright_config::ProviderConfig;
use codewright_llm::catalog::{self, Catalog, ModelFacts, ProviderFacts, ProviderRow};
use codewright_llm::{Auth, Model};

use super::credentials::{Access, SignedIn};
use super::vendor::{Account, Input, Key, Wire, list};

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

/// The origin of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeySource {
    Config,
    Env,
    Stored,
    Public,
}

impl Setup {
    /// Finds the key and the accounts of the provider named `id`.
    ///
    /// Returns the variables that may hold the key, and the origin of the key, as well.
    pub(super) fn new(
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
    pub(super) fn catalog_models(&self) -> Vec<ModelFacts> {
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
