//! The models of one directory: from configuration, keys and catalog to values a request can use.
//!
//! A provider is there when the configuration names it or a key for it is found. When
//! there is none at all, servers on this machine are looked for on their usual ports.
//! A provider's models are put together when somebody first asks for one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use codewright_config::{
    Config, Env, ModelConfig, Ordered, Parts, ProviderConfig, ProviderOptions, Timeout, parse_model,
};
use codewright_llm::catalog::{self, Catalog, ModelFacts, ProviderFacts, ProviderRow};
use codewright_llm::{Auth, Model, Protocol, Secret};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::engine::Inner;

mod aws;
mod gitlab;
mod json;
mod listed;
pub(crate) mod signed_in;
pub(crate) mod source;
mod vertex;

use gitlab::Duo;
pub(crate) use listed::{Listed, prices};
use signed_in::{Credentials, SignedIn};
use vertex::{Maker, Vertex};

/// How long a server on this machine may take to say what it has.
const LOCAL_DEADLINE: Duration = Duration::from_millis(400);
/// Names offered for one that is not known.
const NEAREST: usize = 3;
/// What is assumed of a model that nobody described.
const ASSUMED_CONTEXT: u64 = 128_000;
/// Which of a provider's models is its first, the last of these before the others.
const PREFERRED: [&str; 4] = ["gpt-5", "claude-sonnet-4", "big-pickle", "gemini-3-pro"];
/// The family whose newest member does a provider's small work.
const SMALL: [(&str, &str); 3] =
    [("anthropic", "claude-haiku"), ("openai", "gpt-nano"), ("google", "gemini-flash")];
/// What a model's name says when it is not for words, or not for long.
const SPECIAL: [&str; 6] = ["latest", "preview", "live", "tts", "image", "audio"];

const AZURE: &str = "@ai-sdk/azure";
/// The variable that names a user's server at Azure.
const AZURE_RESOURCE: &str = "AZURE_RESOURCE_NAME";
/// Variables of addresses, and what the same is called beside a stored key.
const NOTES: [(&str, &str); 5] = [
    (AZURE_RESOURCE, "resourceName"),
    ("AZURE_COGNITIVE_SERVICES_RESOURCE_NAME", "resourceName"),
    (CLOUDFLARE_ACCOUNT, "accountId"),
    (CLOUDFLARE_GATEWAY, "gatewayId"),
    ("SNOWFLAKE_ACCOUNT", "account"),
];
const CLOUDFLARE_ACCOUNT: &str = "CLOUDFLARE_ACCOUNT_ID";
const CLOUDFLARE_GATEWAY: &str = "CLOUDFLARE_GATEWAY_ID";
/// The provider whose models without a price are there for everybody, and the key they are asked with.
const ZEN: (&str, &str) = ("opencode", "public");

/// The providers of a directory, in the order they are offered.
pub(crate) struct Models {
    providers: Vec<Provider>,
    catalog: Arc<Catalog>,
    choice: Choice,
    default: Option<String>,
    small: Option<String>,
    looked_for: Vec<String>,
}

/// Which providers are used at all.
struct Choice {
    disabled: Vec<String>,
    enabled: Option<Vec<String>>,
}

pub(crate) struct Provider {
    id: String,
    name: String,
    /// `config`, `env`, `api`, `local`, or `custom` for one that is signed in to or not set up.
    source: &'static str,
    env: Vec<String>,
    ground: Ground,
    /// What every model of the provider has in common; its id is empty.
    template: Result<Model, String>,
    /// What to do when a key is needed and none was found.
    missing_key: Option<String>,
    models: OnceLock<Vec<Listed>>,
    /// Whether models that are not listed may be asked as well.
    open: bool,
    /// Whether only the models without a price are there, because nobody gave a key.
    is_free: bool,
}

/// What a provider is made of.
struct Ground {
    id: String,
    written: ProviderConfig,
    row: Option<&'static ProviderRow>,
    facts: Option<ProviderFacts>,
    /// The variables of the catalog's addresses that are set.
    variables: Vec<(String, String)>,
    key: Option<String>,
    /// Where the key is, and what to do when it is refused.
    key_place: Option<String>,
    cloud: aws::Cloud,
    /// What its models are asked with instead of a key.
    signed_in: Option<SignedIn>,
    /// Where Vertex AI is, for a provider that is asked there.
    vertex: Option<Vertex>,
    /// What GitLab's gateway is asked with, for a provider behind it.
    duo: Option<Result<Duo, String>>,
    catalog: Arc<Catalog>,
}

/// The configuration of a directory: merged, and the parts it was merged from.
#[derive(Clone, Copy)]
pub(crate) struct Configs<'a> {
    pub(crate) config: &'a Config,
    pub(crate) parts: Option<&'a Parts>,
}

impl<'a> Configs<'a> {
    /// The repository's own entry of a provider, if it may send requests to an origin that is not the one of
    /// the user's configuration or the catalog.
    fn redirected(
        self,
        id: &str,
        catalog: &Arc<Catalog>,
        credentials: (&Credentials, &Env),
    ) -> Option<&'a ProviderConfig> {
        let parts = self.parts?;
        let own = parts.repository.provider.get(id)?;
        if !chooses_address(own) {
            return None;
        }
        let user = provider(id, parts.user.provider.get(id), catalog, credentials);
        let users = user.template.ok().and_then(|model| origin_of(&model.base_url));
        let plain = ProviderConfig { options: ProviderOptions::default(), api: None, ..own.clone() };
        let is_same = |url: &String| users.is_some() && origin_of(url) == users;
        let urls = || own.options.base_url.iter().chain(&own.api).filter(|url| !url.is_empty());
        // Anything but a whole address of the same origin may lead elsewhere.
        let only_urls = has_plain_options(&own.options) && !chooses_address(&plain);
        (!only_urls || !urls().all(is_same)).then_some(own)
    }
}

/// Whether an entry says anything about where a provider is, or how it is asked.
fn chooses_address(written: &ProviderConfig) -> bool {
    let ProviderConfig { id, npm, api, env, options, models, .. } = written;
    let is_elsewhere = |model: &ModelConfig| !model.headers.is_empty() || model.rest.contains_key("provider");
    id.is_some()
        || npm.is_some()
        || api.is_some()
        || !env.is_empty()
        || options.base_url.is_some()
        || !has_plain_options(options)
        || models.iter().any(|(_, model)| is_elsewhere(model))
}

/// Whether no option can become a part of the address or of the credentials.
fn has_plain_options(options: &ProviderOptions) -> bool {
    const PLAIN: [&str; 7] = [
        "includeUsage",
        "reasoningEffort",
        "reasoningSummary",
        "setCacheKey",
        "store",
        "textVerbosity",
        "useCompletionUrls",
    ];
    options.headers.is_empty() && options.rest.keys().all(|key| PLAIN.contains(&key.as_str()))
}

/// The scheme, host and port of an address.
fn origin_of(address: &str) -> Option<url::Origin> {
    url::Url::parse(address).ok().map(|url| url.origin()).filter(url::Origin::is_tuple)
}

impl Models {
    /// Looks at what is configured, and for local servers when that is nothing.
    pub(crate) async fn open(
        inner: &Inner,
        configs: Configs<'_>,
        (auth, env): (&Credentials, &Env),
        looked_for: &[PathBuf],
    ) -> Self {
        let config = configs.config;
        let catalog = inner.catalog.open().catalog;
        let mut looked_for: Vec<_> = looked_for.iter().map(|path| path.display().to_string()).collect();
        let variables = catalog::providers().iter().flat_map(|row| row.env).copied().collect::<Vec<_>>();
        let more = catalog.providers().filter(|facts| catalog::provider(&facts.id).is_none()).count();
        looked_for.push(format!(
            "environment variables: {}, and those of {more} more providers",
            variables.join(", ")
        ));
        looked_for.push(inner.dirs.opencode_data.join("auth.json").display().to_string());
        let choice =
            Choice { disabled: config.disabled_providers.clone(), enabled: config.enabled_providers.clone() };
        let mut models = Self {
            providers: Vec::new(),
            catalog,
            choice,
            default: config.model.clone(),
            small: config.small_model.clone(),
            looked_for,
        };
        models.providers = models.configured(configs, auth, env);
        if models.providers.iter().all(Provider::is_ambient)
            && !inner.env.is_on(codewright_config::env::DISABLE_LOCAL_SERVERS)
        {
            let ambient = std::mem::take(&mut models.providers);
            models.providers = local(inner, &models.catalog, &mut models.looked_for).await;
            models.providers.extend(ambient);
        }
        models
    }

    /// The providers that the configuration names, then those that a key was found for.
    fn configured(&self, configs: Configs<'_>, auth: &Credentials, env: &Env) -> Vec<Provider> {
        let config = configs.config;
        let mut providers: Vec<_> = config
            .provider
            .iter()
            .filter(|(id, _)| self.choice.allows(id))
            .map(|(id, written)| match configs.redirected(id, &self.catalog, (auth, env)) {
                None => provider(id, Some(written), &self.catalog, (auth, env)),
                // The repository chose where the requests go, so they carry none of the user's credentials.
                Some(own) => {
                    provider(id, Some(own), &self.catalog, (&Credentials::default(), &Env::default()))
                }
            })
            .collect();
        let rows = catalog::providers().iter().filter(|row| !row.local);
        let of_rows = rows.map(|row| (row.id, row.env.to_vec()));
        let of_catalog = self.catalog.providers().filter(|facts| catalog::provider(&facts.id).is_none());
        let of_catalog = of_catalog.map(|facts| (facts.id.as_str(), facts.key_variables().collect()));
        for (id, variables) in of_rows.chain(of_catalog) {
            let keyed = variables.iter().any(|name| env.filled(name).is_some()) || auth.has(id);
            let keyed = keyed || id == ZEN.0 || (id == aws::PROVIDER && aws::is_configured(env));
            if keyed && self.choice.allows(id) && config.provider.get(id).is_none() {
                providers.push(provider(id, None, &self.catalog, (auth, env)));
            }
        }
        providers
    }

    /// Puts the user's choice of models back where the repository's cannot be used; says so.
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
            return Err(self.not_there(provider_id, model_id));
        };
        let problem = |problem: &String| Error::invalid(problem.clone());
        provider.template.as_ref().map_err(problem)?;
        if let Some(listed) = provider.listed(model_id) {
            let model = listed.model.as_ref().map_err(problem)?;
            return provider.paid(model.clone());
        }
        if provider.is_free && provider.is_priced(model_id) {
            let advice = key_advice(provider_id, &key_names(provider.ground.row, None));
            return Err(Error::NoKey { provider: provider_id.to_owned(), advice });
        }
        if !provider.open || model_id.is_empty() {
            return Err(self.unknown(provider_id, model_id));
        }
        let made = Listed::new((&provider.ground, &provider.template), model_id, None, None);
        provider.paid(made.model.map_err(Error::invalid)?)
    }

    /// The options of a model's variant; none if it has no such variant.
    pub(crate) fn variant(&self, model: &Model, name: &str) -> Option<&Map<String, Value>> {
        self.provider(&model.provider_id)?.listed(&model.id)?.variants.get(name)?.as_object()
    }

    /// The names of a model's variants.
    pub(crate) fn variants(&self, model: &Model) -> Vec<String> {
        let listed = self.provider(&model.provider_id).and_then(|provider| provider.listed(&model.id));
        listed.map(|listed| listed.variants.keys().cloned().collect()).unwrap_or_default()
    }

    /// The configured model, else the first provider's first that can do an agent's work.
    pub(crate) fn default_model(&self) -> Result<(String, String), Error> {
        if let Some(written) = &self.default {
            let model = parse_model(written).ok_or_else(|| {
                Error::invalid(format!("`model` must be written `provider/model`, found `{written}`"))
            })?;
            return Ok((model.provider_id, model.model_id));
        }
        // Nobody's words go to a server that nobody has chosen.
        let usable = self.providers.iter().filter(|provider| provider.template.is_ok() && !provider.is_free);
        let keyed = usable.clone().filter(|provider| provider.missing_key.is_none());
        let first =
            keyed.clone().find_map(|provider| Some((provider, provider.first(ModelFacts::is_agentic)?)));
        if let Some((provider, listed)) = first {
            return Ok((provider.id.clone(), listed.facts.id.clone()));
        }
        match (keyed.clone().next(), self.providers.iter().find(|provider| !provider.is_free)) {
            (_, None) => Err(Error::NoProvider { looked_for: self.looked_for.clone() }),
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

    /// The model for small work beside the given one.
    pub(crate) fn small(&self, provider_id: &str, model_id: &str) -> Option<Arc<Model>> {
        let configured = self.small.as_deref().and_then(parse_model);
        let small = configured.and_then(|model| self.find(&model.provider_id, &model.model_id).ok());
        small.or_else(|| self.cheap(provider_id)).or_else(|| self.find(provider_id, model_id).ok())
    }

    /// The newest of a provider's family of small models.
    fn cheap(&self, provider_id: &str) -> Option<Arc<Model>> {
        let (_, family) = SMALL.iter().find(|(provider, _)| *provider == provider_id)?;
        // A sign-in does not take every model of the family.
        let provider = self.provider(provider_id).filter(|provider| provider.ground.signed_in.is_none())?;
        let members = provider.models().iter().filter(|listed| {
            let facts = &listed.facts;
            let ordinary = !SPECIAL.iter().any(|word| facts.id.contains(word));
            listed.shown && ordinary && facts.is_agentic() && facts.family.as_deref() == Some(family)
        });
        let newest = members.max_by_key(|listed| (&listed.facts.release_date, &listed.facts.id))?;
        newest.model.as_ref().ok().cloned()
    }

    /// Listed models whose names are close to one that is not listed.
    pub(crate) fn nearest(&self, model: &Model) -> Vec<String> {
        let known =
            self.provider(&model.provider_id).is_some_and(|provider| provider.listed(&model.id).is_some());
        if known { Vec::new() } else { self.alike(&format!("{}/{}", model.provider_id, model.id)) }
    }

    fn alike(&self, wanted: &str) -> Vec<String> {
        let names = self.providers.iter().flat_map(|provider| {
            let shown = provider.models().iter().filter(|listed| listed.shown);
            shown.map(|listed| format!("{}/{}", provider.id, listed.facts.id))
        });
        let names: Vec<_> = names.collect();
        codewright_config::nearest(wanted, names.iter().map(String::as_str), NEAREST)
    }

    fn unknown(&self, provider_id: &str, model_id: &str) -> Error {
        let wanted = format!("{provider_id}/{model_id}");
        let advice = format!(
            "If the model is new, `codewright models --refresh` may know it; else describe it below \
             `provider.{provider_id}.models` in opencode.json."
        );
        Error::UnknownModel { nearest: self.alike(&wanted), wanted, advice: Some(advice) }
    }

    /// What to say of a provider that is not one of ours.
    fn not_there(&self, provider_id: &str, model_id: &str) -> Error {
        let off = |advice: &str| Error::NoKey { provider: provider_id.to_owned(), advice: advice.to_owned() };
        if self.choice.disabled.iter().any(|id| id == provider_id) {
            return off("It is switched off by `disabled_providers` in opencode.json.");
        }
        if !self.choice.allows(provider_id) {
            return off("It is not one of the `enabled_providers` in opencode.json.");
        }
        let row = catalog::provider(provider_id);
        if let Some(facts) = self.catalog.provider(provider_id).filter(|_| row.is_none_or(|row| !row.local)) {
            return off(&key_advice(provider_id, &key_names(row, Some(facts))));
        }
        if self.providers.iter().all(|provider| provider.is_free) {
            return Error::NoProvider { looked_for: self.looked_for.clone() };
        }
        let wanted = format!("{provider_id}/{model_id}");
        let mut nearest = self.alike(&wanted);
        if nearest.is_empty() {
            let ids = self.catalog.providers().map(|facts| facts.id.as_str());
            let alike = codewright_config::nearest(provider_id, ids, NEAREST);
            nearest.extend(alike.into_iter().map(|id| format!("{id}/\u{2026}")));
        }
        Error::UnknownModel { wanted, nearest, advice: None }
    }

    /// The answer to `GET /config/providers`; keys are not part of it.
    pub(crate) fn json(&self) -> Value {
        let usable = self.providers.iter().filter(|provider| provider.template.is_ok());
        let providers: Vec<_> = usable.clone().map(json::provider).collect();
        json!({ "providers": providers, "default": defaults(usable) })
    }

    /// The providers that can be used; an error if there is none.
    pub(crate) fn usable_json(&self) -> Result<Vec<Value>, Error> {
        if self.providers.is_empty() {
            return Err(Error::NoProvider { looked_for: self.looked_for.clone() });
        }
        Ok(self.providers.iter().filter(|provider| provider.template.is_ok()).map(json::provider).collect())
    }

    /// The answer to `GET /provider`: every provider there is, and which of them are set up.
    pub(crate) fn list_json(&self) -> Value {
        let nothing = (&Credentials::default(), &Env::default());
        let others = self
            .catalog
            .providers()
            .filter(|facts| self.provider(&facts.id).is_none() && self.choice.allows(&facts.id));
        let others: Vec<_> = others.map(|facts| provider(&facts.id, None, &self.catalog, nothing)).collect();
        let all = || others.iter().chain(&self.providers);
        let connected = self.providers.iter().filter(|provider| provider.template.is_ok());
        json!({
            "all": all().map(json::provider).collect::<Vec<_>>(),
            "default": defaults(all()),
            "connected": connected.map(|provider| provider.id.as_str()).collect::<Vec<_>>(),
        })
    }

    /// Every provider there is without its models: id, name, variables, and how it is connected.
    pub(crate) fn connections(&self) -> Vec<(String, String, Vec<String>, Option<&'static str>)> {
        let known = self.providers.iter().map(|provider| {
            let connected = provider.template.is_ok().then_some(provider.source);
            (provider.id.clone(), provider.name.clone(), provider.env.clone(), connected)
        });
        let others = self
            .catalog
            .providers()
            .filter(|facts| self.provider(&facts.id).is_none() && self.choice.allows(&facts.id))
            .map(|facts| (facts.id.clone(), facts.name.clone(), facts.env.clone(), None));
        let mut all: Vec<_> = known.chain(others).collect();
        all.sort();
        all
    }

    /// One provider that is set up, with its models.
    pub(crate) fn provider_json(&self, id: &str) -> Result<Value, Error> {
        match self.provider(id) {
            Some(Provider { template: Err(problem), .. }) => Err(Error::invalid(problem.clone())),
            Some(provider) => Ok(json::provider(provider)),
            None if self.catalog.provider(id).is_some() || catalog::provider(id).is_some() => {
                Err(self.not_there(id, ""))
            }
            None => {
                let known = self.catalog.providers().map(|facts| facts.id.as_str());
                let ids = self.providers.iter().map(|provider| provider.id.as_str()).chain(known);
                let ids: BTreeSet<&str> = ids.collect();
                let nearest = codewright_config::nearest(id, ids.into_iter(), NEAREST);
                Err(Error::UnknownProvider { wanted: id.to_owned(), nearest })
            }
        }
    }
}

/// Each provider's first model.
fn defaults<'a>(providers: impl Iterator<Item = &'a Provider>) -> BTreeMap<&'a str, &'a str> {
    let first =
        |provider: &'a Provider| Some((provider.id.as_str(), provider.first(|_| true)?.facts.id.as_str()));
    providers.filter_map(first).collect()
}

impl Choice {
    fn allows(&self, id: &str) -> bool {
        let disabled = self.disabled.iter().any(|disabled| disabled == id);
        !disabled && self.enabled.as_ref().is_none_or(|enabled| enabled.iter().any(|enabled| enabled == id))
    }
}

impl Provider {
    /// There only because the machine has keys that are good for much else, as many have.
    fn is_ambient(&self) -> bool {
        let of_cloud = self.id == aws::PROVIDER && self.source == "custom" && self.ground.key.is_none();
        of_cloud || (self.is_free && self.source == "custom")
    }

    /// Its models: the configuration's, then the catalog's.
    fn models(&self) -> &[Listed] {
        self.models.get_or_init(|| {
            let Ground { written, facts, catalog, .. } = &self.ground;
            let known = facts.as_ref().map(|facts| facts.id.as_str()).unwrap_or(&self.id);
            // A copy that is damaged here and not elsewhere leaves the snapshot.
            let known = catalog.models(known).or_else(|_| Catalog::embedded().models(known));
            let known = known.unwrap_or_default();
            let mut models: Vec<Listed> = Vec::with_capacity(known.len() + written.models.len());
            models.extend(written.models.iter().map(|(id, model)| {
                let api_id = model.id.as_deref().unwrap_or(id);
                let known = known.iter().find(|known| known.id == api_id);
                Listed::new((&self.ground, &self.template), id, known, Some(model))
            }));
            for known in known.iter().filter(|known| written.models.get(&known.id).is_none()) {
                models.push(Listed::new((&self.ground, &self.template), &known.id, Some(known), None));
            }
            models.retain(|listed| {
                let id = &listed.facts.id;
                let is_priced = listed.facts.cost.as_ref().is_none_or(|cost| cost.input != 0.0);
                if self.is_free && is_priced {
                    return false;
                }
                let wanted = written.whitelist.as_ref().is_none_or(|list| list.contains(id));
                wanted && !written.blacklist.contains(id)
            });
            models
        })
    }

    /// Whether the catalog knows the model, which is not there because it has a price.
    fn is_priced(&self, id: &str) -> bool {
        let known = self.ground.catalog.models(ZEN.0).unwrap_or_default();
        known.iter().any(|known| known.id == id)
    }

    fn listed(&self, id: &str) -> Option<&Listed> {
        self.models().iter().find(|listed| listed.facts.id == id)
    }

    /// The first of its offered models that will do.
    fn first(&self, will_do: impl Fn(&ModelFacts) -> bool) -> Option<&Listed> {
        let models = self.models().iter().filter(|listed| listed.shown && will_do(&listed.facts));
        if self.source == "local" {
            return models.into_iter().next();
        }
        models.max_by_key(|listed| {
            let id = listed.facts.id.as_str();
            (PREFERRED.iter().position(|name| id.contains(name)), id.contains("latest"), id)
        })
    }

    /// The model, unless its provider wants a key that nobody gave.
    fn paid(&self, model: Arc<Model>) -> Result<Arc<Model>, Error> {
        match &self.missing_key {
            Some(advice) => Err(Error::NoKey { provider: self.id.clone(), advice: advice.clone() }),
            None => Ok(model),
        }
    }
}

fn provider(
    id: &str,
    written: Option<&ProviderConfig>,
    catalog: &Arc<Catalog>,
    (auth, env): (&Credentials, &Env),
) -> Provider {
    let mut source = if written.is_some() { "config" } else { "custom" };
    let written = written.cloned().unwrap_or_default();
    let known = written.id.as_deref().unwrap_or(id);
    let (row, facts) = (catalog::provider(known), catalog.provider(known));
    let names = if written.env.is_empty() { key_names(row, facts) } else { written.env.clone() };
    let key = written.options.api_key.clone().filter(|key| !key.is_empty());
    // Who signs in wants that used; only a key that is configured is meant even more.
    let signed_in = auth.signed_in(id).filter(|_| key.is_none());
    let mut found = |name: &'static str, key: Option<String>| {
        if key.is_some() && source == "custom" {
            source = name;
        }
        key
    };
    let of_env = names.iter().find_map(|name| Some((name, env.filled(name)?)));
    let key_place = match (&key, of_env) {
        (Some(_), _) => Some(format!("the key is `provider.{id}.options.apiKey` in the configuration")),
        (None, Some((name, _))) => Some(format!("the key is in the environment variable {name}")),
        (None, None) => auth.key(id).map(|_| {
            format!("the key is a stored one: `codewright providers login {id}` puts another in its place")
        }),
    };
    let key = key.or_else(|| {
        found("env", of_env.map(|(_, key)| key.to_owned())).or_else(|| found("api", auth.key(id)))
    });
    let is_free =
        known == ZEN.0 && key.is_none() && signed_in.is_none() && written.options.base_url.is_none();
    let key = key.or_else(|| is_free.then(|| ZEN.1.to_owned()));
    let names_of = facts.into_iter().flat_map(|facts| &facts.env).map(String::as_str);
    let names_of = names_of.chain(NOTES.iter().map(|(name, _)| *name));
    let variables = names_of.filter_map(|name| Some((name.to_owned(), variable(name, id, (auth, env))?)));
    let needs_key = row.is_none_or(|row| !row.local) && written.options.base_url.is_none();
    let headers = &written.options.headers;
    let shown_otherwise = ["authorization", "x-api-key", "api-key"]
        .iter()
        .any(|header| headers.keys().any(|name| name.eq_ignore_ascii_case(header)));
    let npm = written.npm.as_deref().or(row.map(|row| row.npm)).or(facts.map(|facts| facts.npm.as_str()));
    let vertex = npm.and_then(Maker::of_npm).map(|_| Vertex::find(id, &written, env));
    let duo = npm
        .filter(|npm| {
            catalog::protocol_of_npm(npm).is_some() && catalog::unpinned(npm).ends_with(catalog::GITLAB)
        })
        .and_then(|_| Duo::find(id, &written, key.as_deref(), (auth, env)));
    // Amazon's keys may be in many places, which are looked at when a request needs them.
    let is_cloud = known == aws::PROVIDER;
    let is_keyless = signed_in.is_some() || vertex.is_some() || is_cloud || shown_otherwise;
    let missing = key.is_none() && !is_keyless && needs_key && !names.is_empty();
    let name = written.name.clone().or_else(|| row.map(|row| row.name.to_owned()));
    let name = name.or_else(|| facts.map(|facts| facts.name.clone()));
    let local = row.is_some_and(|row| row.local);
    let lists = facts.is_some() || !written.models.is_empty();
    let elsewhere = row.is_some() && written.options.base_url.is_some();
    let ground = Ground {
        id: id.to_owned(),
        row,
        facts: facts.cloned(),
        variables: variables.collect(),
        key,
        key_place,
        cloud: aws::Cloud::new(&written, env),
        signed_in,
        vertex,
        duo,
        catalog: Arc::clone(catalog),
        written,
    };
    Provider {
        id: id.to_owned(),
        name: name.unwrap_or_else(|| id.to_owned()),
        source,
        missing_key: missing.then(|| key_advice(id, &names)),
        env: if ground.written.env.is_empty() { shown_env(facts, names) } else { names },
        template: ground.asked(None, None),
        // The catalog describes a provider's own server: another one, or one on this machine, may have more.
        open: (!lists || local || elsewhere || is_cloud) && ground.written.whitelist.is_none(),
        is_free,
        models: OnceLock::new(),
        ground,
    }
}

/// What an address's variable stands for: what is set, or what was noted beside the stored key.
fn variable(name: &str, id: &str, (auth, env): (&Credentials, &Env)) -> Option<String> {
    let noted = NOTES.iter().find(|(known, _)| *known == name).and_then(|(_, note)| auth.note(id, note));
    // It becomes part of an address, and nothing else of that may come with it.
    let noted = noted.map(|text| text.trim_end_matches(".snowflakecomputing.com").to_owned());
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let noted = noted.filter(|text| text.bytes().all(fits));
    let set = || env.filled(name).map(str::to_owned);
    // The resource that a key of Azure's was stored with is the one that takes it.
    if name == AZURE_RESOURCE { noted.or_else(set) } else { set().or(noted) }
}

/// The variables that may hold a provider's key, the first one found counting.
fn key_names(row: Option<&ProviderRow>, facts: Option<&ProviderFacts>) -> Vec<String> {
    match (row, facts) {
        (Some(row), _) => row.env.iter().map(|name| (*name).to_owned()).collect(),
        (None, Some(facts)) => facts.key_variables().map(str::to_owned).collect(),
        (None, None) => Vec::new(),
    }
}

/// The variables that clients are told of.
fn shown_env(facts: Option<&ProviderFacts>, names: Vec<String>) -> Vec<String> {
    facts.map(|facts| facts.env.clone()).filter(|env| !env.is_empty()).unwrap_or(names)
}

fn key_advice(id: &str, names: &[String]) -> String {
    let variables: String = names.iter().map(|name| format!("{name} or ")).collect();
    format!(
        "Set {variables}`provider.{id}.options.apiKey` in opencode.json, or run `codewright providers login {id}`."
    )
}

/// A library and an address that hold for one model of a provider.
type Other<'a> = (&'a str, &'a str);

impl Ground {
    /// The template, asked with the sign-in if there is one; `of_model` is what is written of the one model.
    fn asked(&self, other: Option<Other<'_>>, of_model: Option<&ModelConfig>) -> Result<Model, String> {
        let mut model = self.template(other)?;
        if let Some(duo) = &self.duo {
            duo.as_ref().map_err(Clone::clone)?.apply(&mut model);
        } else if let Some(signed_in) = &self.signed_in {
            let of_model = of_model.and_then(|written| written.rest.get("provider")?.get("api")?.as_str());
            let provider = [&self.written.options.base_url, &self.written.api];
            let addresses = provider.into_iter().flatten().map(String::as_str).chain(of_model);
            let is_address_configured = addresses.into_iter().any(|url| !url.is_empty());
            signed_in.apply(&mut model, is_address_configured);
        }
        model.auth_advice = self.refused(&model);
        Ok(model)
    }

    /// What to do when a server refuses what a model is asked with.
    fn refused(&self, model: &Model) -> Option<String> {
        let id = &self.id;
        match &model.auth {
            // A sign-in goes before a key of the environment; GitLab's gateway takes either.
            Auth::SignIn { .. } => Some(format!("sign in again with `codewright providers login {id}`")),
            Auth::GitLab(_) if self.signed_in.is_some() || self.key_place.is_none() => {
                Some(format!("sign in again with `codewright providers login {id}`"))
            }
            Auth::Google(_) => Some(
                "sign in again with `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS"
                    .to_owned(),
            ),
            Auth::Aws(_) if self.key.is_none() => Some(format!(
                "the keys are those of Amazon's tools: check `provider.{id}.options.profile`, AWS_PROFILE or AWS_ACCESS_KEY_ID"
            )),
            Auth::Protocol
            | Auth::Bearer
            | Auth::Header(_)
            | Auth::Aws(_)
            | Auth::GitLab(_) => self.key_place.clone(),
        }
    }

    /// What the provider's models have in common, or what is wrong with its configuration.
    fn template(&self, other: Option<Other<'_>>) -> Result<Model, String> {
        let Self { id, written, row, .. } = self;
        let protocol = self.protocol(other.map(|(npm, _)| npm))?;
        let protocol = match written.options.rest.get("useCompletionUrls") {
            Some(Value::Bool(true)) if protocol == Protocol::OpenAiResponses => Protocol::OpenAiChat,
            _ => protocol,
        };
        let npm = written.npm.as_deref().or(other.map(|(npm, _)| npm));
        let is_azure = npm.or(row.map(|row| row.npm)).map(catalog::unpinned) == Some(AZURE);
        let vertex = self.vertex.as_ref().zip(npm.or(row.map(|row| row.npm)).and_then(Maker::of_npm));
        let base_url = match vertex {
            Some((vertex, maker)) if !self.is_addressed() => vertex.base_url(maker)?,
            Some(_) | None => self.base_url(protocol, other.map(|(_, api)| api), is_azure)?,
        };
        codewright_llm::check_url(&base_url).map_err(|error| {
            format!("provider `{id}`: `provider.{id}.options.baseURL` cannot be used: {error}")
        })?;
        let mut model = Model::new(id, "", protocol, base_url.trim_end_matches('/'));
        if protocol == Protocol::Bedrock {
            model.auth = Auth::Aws(self.cloud.account().clone());
        }
        model.api_key = self.key.clone().map(Secret::from);
        if let Some((vertex, maker)) = vertex {
            vertex.reach(maker, &mut model)?;
        }
        if self.is_cloudflare() {
            // The usual header is for the key of whom the gateway asks, if it does not have that itself.
            model.auth = Auth::Header("cf-aig-authorization");
            model.api_key = self.key.as_ref().map(|key| Secret::from(format!("Bearer {key}")));
        }
        model.headers = pairs(&written.options.headers);
        model.quirks = catalog::quirks(id, npm);
        if let Some(asked) = written.options.rest.get("setCacheKey") {
            model.options.insert("setCacheKey".to_owned(), asked.clone());
        }
        if is_azure {
            model.auth = Auth::Header("api-key");
            let api_version = self.option("apiVersion").unwrap_or("v1").to_owned();
            model.endpoint = codewright_llm::Endpoint::Azure { api_version };
        }
        let set = |place: &mut Duration, written: Option<Timeout>| match written {
            Some(Timeout::After(time)) => *place = time,
            // "Never" still ends some day: nothing waits without a deadline.
            Some(Timeout::Never) => *place = Duration::from_secs(24 * 60 * 60),
            None => {}
        };
        set(&mut model.timeouts.first_byte, written.options.header_timeout);
        set(&mut model.timeouts.idle, written.options.chunk_timeout);
        let mut total = model.timeouts.total.unwrap_or(Duration::from_secs(60 * 60));
        set(&mut total, written.options.timeout);
        model.timeouts.total = Some(total);
        Ok(model)
    }

    /// Whether the configuration gives the address.
    fn is_addressed(&self) -> bool {
        let written = [&self.written.options.base_url, &self.written.api];
        written.into_iter().flatten().any(|url| !url.is_empty())
    }

    /// Where the protocol lives: as written, by an Azure resource, for one model, by the row, by the catalog.
    fn base_url(&self, protocol: Protocol, of_model: Option<&str>, is_azure: bool) -> Result<String, String> {
        let Self { id, written, row, .. } = self;
        let written_url = [&written.options.base_url, &written.api];
        if let Some(url) = written_url.into_iter().flatten().find(|url| !url.is_empty()) {
            return Ok(url.clone());
        }
        if protocol == Protocol::Bedrock {
            return Ok(self.option("endpoint").map_or_else(|| self.cloud.bedrock_url(), str::to_owned));
        }
        if is_azure && let Some(resource) = self.named("resourceName", AZURE_RESOURCE) {
            return Ok(format!("https://{resource}.openai.azure.com/openai"));
        }
        if self.is_cloudflare() {
            return self.cloudflare();
        }
        let of_facts = self.facts.as_ref().and_then(|facts| facts.api.as_deref());
        let mut known = [of_model, row.map(|row| row.base_url), of_facts].into_iter().flatten();
        if let Some(url) = known.find(|url| !url.is_empty()) {
            return if row.is_some_and(|row| row.base_url == url) {
                Ok(url.to_owned())
            } else {
                self.filled_in(url)
            };
        }
        match protocol {
            Protocol::Anthropic => Ok("https://api.anthropic.com/v1".to_owned()),
            Protocol::Gemini => Ok("https://generativelanguage.googleapis.com/v1beta".to_owned()),
            Protocol::OpenAiResponses if written.npm.as_deref() == Some("@ai-sdk/openai") => {
                Ok("https://api.openai.com/v1".to_owned())
            }
            Protocol::Cohere => Ok("https://api.cohere.com/v2".to_owned()),
            Protocol::OpenAiChat | Protocol::OpenAiResponses | Protocol::Bedrock => {
                let resource = if is_azure {
                    format!(" or `provider.{id}.options.resourceName`")
                } else {
                    String::new()
                };
                Err(format!(
                    "provider `{id}` has no address: set `provider.{id}.options.baseURL`{resource} in opencode.json"
                ))
            }
        }
    }

    /// A part of an address: an option, or a variable.
    fn named(&self, option: &str, variable: &str) -> Option<&str> {
        let variable = || self.variables.iter().find(|(name, _)| name == variable);
        self.option(option).or_else(|| variable().map(|(_, value)| value.as_str()))
    }

    /// Whether the provider is Cloudflare's gateway to others.
    fn is_cloudflare(&self) -> bool {
        catalog::unpinned(self.npm()) == catalog::CLOUDFLARE_GATEWAY
    }

    /// The address of a user's gateway at Cloudflare.
    fn cloudflare(&self) -> Result<String, String> {
        let id = &self.id;
        let part = |option: &str, variable: &str| {
            self.named(option, variable).ok_or_else(|| {
                format!(
                    "provider `{id}`: set {variable}, or `provider.{id}.options.{option}` in opencode.json"
                )
            })
        };
        let account = part("accountId", CLOUDFLARE_ACCOUNT)?;
        let gateway = part("gatewayId", CLOUDFLARE_GATEWAY)?;
        Ok(format!("https://gateway.ai.cloudflare.com/v1/{account}/{gateway}/compat"))
    }

    /// An option that only the protocol understands.
    fn option(&self, name: &str) -> Option<&str> {
        self.written.options.rest.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    fn protocol(&self, of_model: Option<&str>) -> Result<Protocol, String> {
        let Self { id, written, row, facts, .. } = self;
        let of_library = |npm: &str, from: &str| {
            catalog::protocol_of_npm(npm).ok_or_else(|| {
                format!(
                    "provider `{id}`: {from} names `{npm}`, whose protocol is not supported yet; \
                     `@ai-sdk/openai-compatible` and `@ai-sdk/anthropic` are, if its server speaks one of them: \
                     set `provider.{id}.npm` in opencode.json"
                )
            })
        };
        match (&written.npm, of_model, row, facts) {
            (Some(npm), ..) => of_library(npm, "`npm`"),
            (None, Some(npm), ..) if !npm.is_empty() => of_library(npm, "the catalog"),
            (None, _, Some(row), _) => Ok(row.protocol),
            (None, _, None, Some(facts)) => of_library(&facts.npm, "the catalog"),
            (None, _, None, None) => Ok(Protocol::OpenAiChat),
        }
    }

    /// The library that is spoken, as clients are told.
    fn npm(&self) -> &str {
        let of_row = self.row.map(|row| row.npm);
        let of_facts = self.facts.as_ref().map(|facts| facts.npm.as_str());
        self.written.npm.as_deref().or(of_facts).or(of_row).unwrap_or("@ai-sdk/openai-compatible")
    }

    /// The address that the configuration or the catalog names, as clients are told.
    fn api(&self) -> &str {
        let of_facts = self.facts.as_ref().and_then(|facts| facts.api.as_deref());
        self.written.api.as_deref().or(of_facts).unwrap_or_default()
    }

    /// An address of the catalog with its variables in place.
    fn filled_in(&self, url: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = url;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else { break };
            filled.push_str(before);
            let found = self.variables.iter().find(|(known, _)| known == name);
            let (_, value) = found.ok_or_else(|| {
                let id = &self.id;
                format!("provider `{id}`: set {name}, or `provider.{id}.options.baseURL` in opencode.json")
            })?;
            filled.push_str(value);
            rest = behind;
        }
        filled.push_str(rest);
        // Keys go there, and the catalog came over a network: only this machine may be asked in the clear.
        let near = ["http://127.0.0.1:", "http://localhost:"].iter().any(|near| filled.starts_with(near));
        if near || filled.starts_with("https://") {
            return Ok(filled);
        }
        Err(format!("provider `{}`: the catalog's address `{filled}` does not begin with https://", self.id))
    }
}

/// Lays `over` over `under`: objects are merged, anything else replaces.
pub(crate) fn merge(under: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (name, value) in over {
        match (under.get_mut(name), value) {
            (Some(Value::Object(under)), Value::Object(over)) => merge(under, over),
            (Some(there), value) => *there = value.clone(),
            (None, value) => drop(under.insert(name.clone(), value.clone())),
        }
    }
}

fn pairs(headers: &Ordered<String>) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

/// Servers on this machine that answer on their usual ports.
async fn local(inner: &Inner, catalog: &Arc<Catalog>, looked_for: &mut Vec<String>) -> Vec<Provider> {
    let rows = catalog::providers().iter().filter(|row| row.local);
    let asked = rows.map(|row| {
        let base_url = local_url(row, &inner.env);
        async move {
            let models = codewright_llm::list_models(&inner.llm, &base_url, None, LOCAL_DEADLINE).await;
            (row, base_url, models)
        }
    });
    let mut providers = Vec::new();
    for (row, base_url, models) in futures_util::future::join_all(asked).await {
        looked_for.push(format!("{} at {base_url}", row.name));
        let Ok(models) = models else { continue };
        let mut written = ProviderConfig::default();
        written.options.base_url = Some(base_url);
        let mut found = provider(row.id, Some(&written), catalog, (&Credentials::default(), &Env::default()));
        let listed: Vec<_> =
            models.iter().map(|id| Listed::new((&found.ground, &found.template), id, None, None)).collect();
        (found.source, found.models) = ("local", OnceLock::from(listed));
        providers.push(found);
    }
    providers
}

/// Where a local server is: on its usual port, or where Ollama's own variable says.
fn local_url(row: &ProviderRow, env: &Env) -> String {
    let host = env.filled(codewright_config::env::OLLAMA_HOST).filter(|_| row.id == "ollama");
    let Some(host) = host else { return row.base_url.to_owned() };
    let host = host.trim_end_matches('/');
    let scheme = if host.contains("://") { "" } else { "http://" };
    let authority = host.rsplit("://").next().unwrap_or(host);
    let port = if authority.contains(':') { "" } else { ":11434" };
    format!("{scheme}{}{port}/v1", host.replace("0.0.0.0", "127.0.0.1"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn ollama_is_where_its_variable_says() {
        let row = catalog::provider("ollama").unwrap();
        for (host, expected) in [
            ("", "http://localhost:11434/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("10.0.0.2:4000", "http://10.0.0.2:4000/v1"),
            ("https://ollama.example/", "https://ollama.example:11434/v1"),
            ("http://127.0.0.1:9", "http://127.0.0.1:9/v1"),
        ] {
            let env = Env::from_pairs([("OLLAMA_HOST", host)]);
            let found = local_url(row, &env).replace("127.0.0.1:11434", "localhost:11434");
            assert_eq!(found, expected.replace("127.0.0.1:11434", "localhost:11434"), "{host}");
        }
    }

    /// The provider of a configuration, as a file would say it, with these variables set.
    pub(super) fn set_up(id: &str, config: Value, env: &[(&str, &str)]) -> Provider {
        set_up_with(id, config, env, &Credentials::default())
    }

    fn set_up_with(id: &str, config: Value, env: &[(&str, &str)], auth: &Credentials) -> Provider {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        let config = json!({ "provider": { id: config } }).to_string();
        let env = Env::from_pairs(
            env.iter().copied().chain([("HOME", home), ("OPENCODE_CONFIG_CONTENT", &config)]),
        );
        let dirs = codewright_config::Dirs::new(&env).unwrap();
        let input = codewright_config::LoadInput {
            directory: folder.path(),
            worktree: folder.path(),
            env: &env,
            dirs: &dirs,
        };
        let config = codewright_config::load(input).unwrap().config;
        provider(id, config.provider.get(id), &Arc::new(Catalog::embedded()), (auth, &env))
    }

    pub(super) fn models(providers: Vec<Provider>) -> Models {
        Models {
            providers,
            catalog: Arc::new(Catalog::embedded()),
            choice: Choice { disabled: vec!["groq".to_owned()], enabled: None },
            default: None,
            small: None,
            looked_for: Vec::new(),
        }
    }

    const KEY: &[(&str, &str)] = &[("ANTHROPIC_API_KEY", "k")];

    #[test]
    fn configuration_is_laid_over_the_catalog_field_by_field() {
        let config = json!({ "models": {
            "claude-sonnet-4-5": {
                "name": "Mine", "limit": { "output": 7 },
                "cost": { "output": 1.5 },
                "options": { "thinking": { "type": "enabled", "budgetTokens": 5 } },
                "variants": { "high": { "thinking": { "budgetTokens": 9 } }, "max": { "disabled": true }, "own": { "x": 1 } },
            },
            "alias": { "id": "claude-opus-4-6" },
            "new": { "limit": { "context": 5, "output": 4 } },
        } });
        let provider = set_up("anthropic", config, KEY);
        let listed = provider.listed("claude-sonnet-4-5").unwrap();
        let model = listed.model.as_ref().unwrap();
        assert_eq!((model.name.as_str(), model.limits.context, model.limits.output), ("Mine", 1_000_000, 7));
        assert_eq!((model.cost.input, model.cost.output, model.cost.cache_read), (3.0, 1.5, 0.3));
        assert_eq!(model.options["thinking"]["budgetTokens"], 5);
        assert!(model.capabilities.input.image && model.capabilities.reasoning);
        assert_eq!(listed.variants["high"], json!({ "thinking": { "type": "enabled", "budgetTokens": 9 } }));
        assert_eq!(listed.variants.keys().collect::<Vec<_>>(), ["high", "own"]);
        let alias = provider.listed("alias").unwrap().model.clone().unwrap();
        assert_eq!(
            (alias.api_id.as_str(), alias.name.as_str(), alias.limits.output),
            ("claude-opus-4-6", "alias", 128_000)
        );
        assert_eq!(provider.listed("new").unwrap().facts.limit.context, 5);
        assert!(provider.listed("claude-opus-4-6").is_some());
    }

    #[test]
    fn lists_choose_models() {
        let only = set_up("anthropic", json!({ "whitelist": ["claude-opus-4-6"] }), KEY);
        assert_eq!(only.models().len(), 1);
        let without = set_up("anthropic", json!({ "blacklist": ["claude-opus-4-6"] }), KEY);
        assert!(without.listed("claude-opus-4-6").is_none() && without.models().len() > 5);
    }

    #[test]
    fn the_first_model_is_the_preferred_one() {
        let provider = set_up("anthropic", json!({}), KEY);
        assert_eq!(provider.first(|_| true).unwrap().facts.id, "claude-sonnet-4-6");
        let models = models(vec![provider]);
        assert_eq!(models.default_model().unwrap(), ("anthropic".into(), "claude-sonnet-4-6".into()));
        assert_eq!(models.small("anthropic", "claude-opus-4-6").unwrap().id, "claude-haiku-4-5-20251001");
    }

    #[test]
    fn what_cannot_be_used_says_what_to_do() {
        let models = models(vec![set_up("anthropic", json!({}), &[]), set_up("sap-ai-core", json!({}), &[])]);
        for (provider, model, expected) in [
            ("anthropic", "claude-opus-4-6", "ANTHROPIC_API_KEY or `provider.anthropic.options.apiKey`"),
            ("anthropic", "claude-opus-4.6", "anthropic/claude-opus-4-6"),
            ("openai", "gpt-5", "OPENAI_API_KEY"),
            ("groq", "x", "disabled_providers"),
            ("sap-ai-core", "x", "@jerome-benoit/sap-ai-provider-v2"),
            ("antropic", "claude-opus-4-6", "anthropic/claude-opus-4-6"),
        ] {
            let error = models.find(provider, model).unwrap_err();
            let said = format!("{error} {}", error.hint().unwrap_or_default());
            assert!(said.contains(expected), "{provider}/{model}: {said}");
        }
    }

    #[test]
    fn who_is_refused_is_told_where_the_credentials_are() {
        let configured = json!({ "options": { "apiKey": "k" } });
        let said = |provider: Provider| provider.template.unwrap().auth_advice.unwrap_or_default();
        for (found, expected) in [
            (set_up("anthropic", configured.clone(), KEY), "`provider.anthropic.options.apiKey`"),
            (set_up("anthropic", json!({}), KEY), "ANTHROPIC_API_KEY"),
            (signed_in("openai", json!({}), &[]), "`codewright providers login openai`"),
            (
                set_up("amazon-bedrock", json!({}), &[("AWS_PROFILE", "x")]),
                "`provider.amazon-bedrock.options.profile`",
            ),
            (
                set_up("amazon-bedrock", json!({}), &[("AWS_BEARER_TOKEN_BEDROCK", "x")]),
                "AWS_BEARER_TOKEN_BEDROCK",
            ),
        ] {
            let said = said(found);
            assert!(said.contains(expected), "{said}");
        }
        let key = json!({ "type": "api", "key": "k" });
        let said = said(stored("groq", &key, json!({}), &[]));
        assert!(said.contains("`codewright providers login groq`"), "{said}");
        let own = set_up("mine", json!({ "options": { "baseURL": "http://127.0.0.1:9" } }), &[]);
        assert_eq!(own.template.unwrap().auth_advice, None);
    }

    #[test]
    fn a_bad_address_names_its_key() {
        for url in ["localhost:1/v1", "ftp://x", "http://", "/v1"] {
            let provider = set_up("mine", json!({ "options": { "baseURL": url } }), &[]);
            let problem = provider.template.unwrap_err();
            assert!(problem.contains("provider.mine.options.baseURL") && problem.contains(url), "{problem}");
        }
    }

    #[test]
    fn an_address_may_need_a_variable() {
        let key = ("CLOUDFLARE_API_KEY", "k");
        let problem = set_up("cloudflare-workers-ai", json!({}), &[key]).template.unwrap_err();
        assert!(problem.contains("set CLOUDFLARE_ACCOUNT_ID"), "{problem}");
        let account = ("CLOUDFLARE_ACCOUNT_ID", "me");
        let template = set_up("cloudflare-workers-ai", json!({}), &[key, account]).template.unwrap();
        assert_eq!(template.base_url, "https://api.cloudflare.com/client/v4/accounts/me/ai/v1");
    }

    #[test]
    fn a_model_may_be_reached_another_way() {
        let provider = set_up("opencode", json!({}), &[("OPENCODE_API_KEY", "k")]);
        let claude = provider.listed("claude-sonnet-4-5").unwrap().model.clone().unwrap();
        assert_eq!(
            (claude.protocol, claude.base_url.as_str()),
            (Protocol::Anthropic, "https://opencode.ai/zen/v1")
        );
    }

    #[test]
    fn what_was_noted_beside_a_key_takes_part_in_the_address() {
        let cloudflare = "https://api.cloudflare.com/client/v4/accounts/";
        let key = |notes: Value| json!({ "type": "api", "key": "k", "metadata": notes });
        for (id, entry, env, url) in [
            (
                "azure",
                key(json!({ "resourceName": "noted" })),
                vec![],
                "https://noted.openai.azure.com/openai",
            ),
            (
                "azure",
                key(json!({ "resourceName": "noted" })),
                vec![("AZURE_RESOURCE_NAME", "set")],
                "https://noted.openai.azure.com/openai",
            ),
            (
                "cloudflare-workers-ai",
                key(json!({ "accountId": "me" })),
                vec![],
                &format!("{cloudflare}me/ai/v1"),
            ),
            (
                "cloudflare-workers-ai",
                key(json!({ "accountId": "me" })),
                vec![("CLOUDFLARE_ACCOUNT_ID", "set")],
                &format!("{cloudflare}set/ai/v1"),
            ),
            (
                "cloudflare-ai-gateway",
                key(json!({ "accountId": "me", "gatewayId": "gate" })),
                vec![],
                "https://gateway.ai.cloudflare.com/v1/me/gate/compat",
            ),
            (
                "snowflake-cortex",
                key(json!({ "account": "org-me.snowflakecomputing.com" })),
                vec![],
                "https://org-me.snowflakecomputing.com/api/v2/cortex/v1",
            ),
            (
                "snowflake-cortex",
                json!({ "type": "oauth", "access": "a", "refresh": "r", "expires": 0, "accountId": "org-me" }),
                vec![],
                "https://org-me.snowflakecomputing.com/api/v2/cortex/v1",
            ),
        ] {
            let template = stored(id, &entry, json!({}), &env).template.unwrap();
            assert_eq!(template.base_url, url, "{id} {entry}");
            assert_eq!(template.api_key.is_some(), entry["type"] == "api");
        }
        // What is no name cannot lead the key elsewhere.
        let entry = key(json!({ "resourceName": "evil.example/#" }));
        stored("azure", &entry, json!({}), &[]).template.unwrap_err();
        let entry = key(json!({ "accountId": "me", "gatewayId": "gate" }));
        let template = stored("cloudflare-ai-gateway", &entry, json!({}), &[]).template.unwrap();
        assert_eq!(template.auth, Auth::Header("cf-aig-authorization"));
        assert_eq!(template.api_key.unwrap().expose(), "Bearer k");
    }

    #[test]
    fn the_free_models_of_zen_need_no_key_and_are_never_chosen() {
        let free = set_up("opencode", json!({}), &[]);
        let shown: Vec<_> = free.models().iter().filter(|listed| listed.shown).collect();
        assert!(
            !shown.is_empty() && shown.iter().all(|listed| listed.model.as_ref().unwrap().cost.input == 0.0)
        );
        let model = free.listed("big-pickle").unwrap().model.clone().unwrap();
        assert_eq!(model.api_key.as_ref().unwrap().expose(), "public");
        let models = models(vec![free]);
        assert!(matches!(models.default_model(), Err(Error::NoProvider { .. })));
        assert!(matches!(models.find("opencode", "claude-opus-5"), Err(Error::NoKey { .. })));
        assert!(matches!(models.find("opencode", "no-such"), Err(Error::UnknownModel { .. })));
        let keyed = set_up("opencode", json!({}), &[("OPENCODE_API_KEY", "k")]);
        assert!(keyed.listed("claude-opus-5").is_some() && !keyed.is_free);
    }

    /// The provider of a configuration, as one who is signed in to it has it.
    fn signed_in(id: &str, config: Value, env: &[(&str, &str)]) -> Provider {
        let tokens = json!({ "type": "oauth", "access": "a", "refresh": "r", "expires": 0 });
        stored(id, &tokens, config, env)
    }

    /// The provider of a configuration, with this entry in `auth.json`.
    fn stored(id: &str, tokens: &Value, config: Value, env: &[(&str, &str)]) -> Provider {
        let nowhere = PathBuf::from("/nowhere");
        let given = json!({ id: tokens }).to_string();
        let vault = codewright_llm::vault::Vault::new(nowhere.clone(), nowhere, Some(given));
        let stored = vault.read().unwrap();
        let client = codewright_llm::Client::new("test").unwrap();
        let sign_in = codewright_llm::oauth::SignIn::new(client, vault, || 0);
        set_up_with(id, config, env, &Credentials { stored, sign_in: Some(sign_in) })
    }

    #[test]
    fn a_sign_in_stands_in_for_a_key() {
        let provider = signed_in("github-copilot", json!({}), &[]);
        assert!(provider.missing_key.is_none() && provider.models().len() > 20);
        assert_eq!(provider.first(ModelFacts::is_agentic).unwrap().facts.id, "claude-sonnet-4.6");
        for (id, protocol) in [("gpt-4.1", Protocol::OpenAiChat), ("gpt-5.4", Protocol::OpenAiResponses)] {
            let model = provider.listed(id).unwrap().model.clone().unwrap();
            assert_eq!(
                (model.protocol, model.base_url.as_str()),
                (protocol, "https://api.githubcopilot.com")
            );
            assert!(model.cost.input == 0.0 && model.long_cost.is_none() && model.api_key.is_none());
        }
        let provider = signed_in("openai", json!({}), &[("OPENAI_API_KEY", "k")]);
        let model = provider.listed("gpt-5.4").unwrap().model.clone().unwrap();
        assert!(model.is_codex() && model.api_key.is_none());
        assert_eq!(model.base_url, "https://chatgpt.com/backend-api/codex");
        assert!(!provider.listed("gpt-5.4-nano").unwrap().shown);
        let models = models(vec![provider]);
        assert_eq!(models.small("openai", "gpt-5.4").unwrap().id, "gpt-5.4");
    }

    #[test]
    fn what_is_configured_goes_before_a_sign_in() {
        let keyed = signed_in("openai", json!({ "options": { "apiKey": "k" } }), &[]);
        let model = keyed.listed("gpt-5.4").unwrap().model.clone().unwrap();
        assert!(!model.is_codex() && model.api_key.is_some() && model.cost.input > 0.0);
        let near = "http://127.0.0.1:9/v1";
        let of_model = json!({ "models": { "gpt-5.4": { "provider": { "api": near } } } });
        for config in [json!({ "options": { "baseURL": near } }), json!({ "api": near }), of_model] {
            let provider = signed_in("openai", config.clone(), &[]);
            let model = provider.listed("gpt-5.4").unwrap().model.clone().unwrap();
            assert!(model.is_codex() && model.base_url == near, "{config}: {}", model.base_url);
        }
    }

    #[test]
    fn a_long_request_has_its_own_price() {
        let provider = set_up("openai", json!({}), &[("OPENAI_API_KEY", "k")]);
        let model = provider.listed("gpt-5.4").unwrap().model.clone().unwrap();
        assert_eq!(prices(&model, 272_000).input, 2.5);
        assert_eq!(prices(&model, 272_001).input, 5.0);
    }
}
