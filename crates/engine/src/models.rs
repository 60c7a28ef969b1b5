//! The models of one directory: from configuration, keys and catalog to values a request can use.
//!
//! A provider is there when the configuration names it or a key for it is found. When
//! there is none at all, servers on this machine are looked for on their usual ports.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codewright_config::{Config, Env, ModelConfig, Ordered, ProviderConfig, Timeout, parse_model};
use codewright_llm::catalog::{self, ModelRow, ProviderRow};
use codewright_llm::{Model, Protocol, Secret};
use serde_json::{Value, json};

use crate::Error;
use crate::engine::Inner;

pub(crate) mod signed_in;

use signed_in::Credentials;

/// How long a server on this machine may take to say what it has.
const LOCAL_DEADLINE: Duration = Duration::from_millis(400);
/// Names offered for one that is not known.
const NEAREST: usize = 3;
/// What is assumed of a model that nobody described.
const ASSUMED_CONTEXT: u64 = 128_000;

/// The providers of a directory, in the order they are offered.
pub(crate) struct Models {
    providers: Vec<Provider>,
    default: Option<String>,
    small: Option<String>,
    looked_for: Vec<String>,
}

struct Provider {
    id: String,
    name: String,
    /// `config`, `env`, `api` or `local`.
    source: &'static str,
    env: Vec<String>,
    /// What every model of the provider has in common; its id is empty.
    template: Result<Model, String>,
    models: Vec<Arc<Model>>,
    /// Whether models that are not listed may be asked as well.
    open: bool,
}

impl Models {
    /// Looks at what is configured, and for local servers when that is nothing.
    pub(crate) async fn open(
        inner: &Inner,
        config: &Config,
        auth: &Credentials,
        looked_for: &[PathBuf],
    ) -> Self {
        let mut providers = configured(config, auth, &inner.env);
        let mut looked_for: Vec<_> = looked_for.iter().map(|path| path.display().to_string()).collect();
        let variables = catalog::providers().iter().flat_map(|row| row.env).copied().collect::<Vec<_>>();
        looked_for.push(format!("environment variables: {}", variables.join(", ")));
        looked_for.push(inner.dirs.opencode_data.join("auth.json").display().to_string());
        if providers.is_empty() && !inner.env.is_on(codewright_config::env::DISABLE_LOCAL_SERVERS) {
            providers = local(inner, &mut looked_for).await;
        }
        Self { providers, default: config.model.clone(), small: config.small_model.clone(), looked_for }
    }

    /// The model of that name.
    pub(crate) fn find(&self, provider_id: &str, model_id: &str) -> Result<Arc<Model>, Error> {
        let wanted = format!("{provider_id}/{model_id}");
        let Some(provider) = self.providers.iter().find(|provider| provider.id == provider_id) else {
            if self.providers.is_empty() {
                return Err(Error::NoProvider { looked_for: self.looked_for.clone() });
            }
            return Err(self.unknown(wanted));
        };
        let template = provider.template.as_ref().map_err(|problem| Error::invalid(problem.clone()))?;
        if let Some(model) = provider.models.iter().find(|model| model.id == model_id) {
            return Ok(model.clone());
        }
        if !provider.open || model_id.is_empty() {
            return Err(self.unknown(wanted));
        }
        Ok(Arc::new(named(template, model_id)))
    }

    /// The configured model, else the first that is known by name.
    pub(crate) fn default_model(&self) -> Result<(String, String), Error> {
        if let Some(written) = &self.default {
            let model = parse_model(written).ok_or_else(|| {
                Error::invalid(format!("`model` must be written `provider/model`, found `{written}`"))
            })?;
            return Ok((model.provider_id, model.model_id));
        }
        let listed = self.providers.iter().filter(|provider| provider.template.is_ok());
        let first = listed.clone().find_map(|provider| provider.models.first());
        if let Some(model) = first {
            return Ok((model.provider_id.clone(), model.id.clone()));
        }
        match self.providers.first() {
            None => Err(Error::NoProvider { looked_for: self.looked_for.clone() }),
            Some(Provider { template: Err(problem), .. }) => Err(Error::invalid(problem.clone())),
            Some(provider) => Err(Error::invalid(format!(
                "no model is chosen: set `model` in opencode.json or pass `--model {}/…`",
                provider.id
            ))),
        }
    }

    /// The model for small work beside the given one.
    pub(crate) fn small(&self, provider_id: &str, model_id: &str) -> Option<Arc<Model>> {
        let configured = self.small.as_deref().and_then(parse_model);
        let small = configured.and_then(|model| self.find(&model.provider_id, &model.model_id).ok());
        small.or_else(|| self.cheap(provider_id)).or_else(|| self.find(provider_id, model_id).ok())
    }

    /// The small model of a provider that the catalog knows and the configuration leaves alone.
    fn cheap(&self, provider_id: &str) -> Option<Arc<Model>> {
        const SMALL: [(&str, &str); 2] = [("anthropic", "claude-haiku-4-5"), ("openai", "gpt-5.4-nano")];
        let (_, model_id) = SMALL.iter().find(|(provider, _)| *provider == provider_id)?;
        let provider = self.providers.iter().find(|provider| provider.id == provider_id)?;
        let row = catalog::provider(provider_id)?;
        let official = provider.template.as_ref().is_ok_and(|template| template.base_url == row.base_url);
        let model = provider.models.iter().find(|model| model.id == *model_id);
        model.filter(|_| official).cloned()
    }

    /// Listed models whose names are close to one that is not listed.
    pub(crate) fn nearest(&self, model: &Model) -> Vec<String> {
        let listed = self.providers.iter().flat_map(|provider| &provider.models);
        if listed.clone().any(|known| known.provider_id == model.provider_id && known.id == model.id) {
            return Vec::new();
        }
        match self.unknown(format!("{}/{}", model.provider_id, model.id)) {
            Error::UnknownModel { nearest, .. } => nearest,
            _ => Vec::new(),
        }
    }

    fn unknown(&self, wanted: String) -> Error {
        let names = self.providers.iter().flat_map(|provider| {
            provider.models.iter().map(|model| format!("{}/{}", model.provider_id, model.id))
        });
        let names: Vec<_> = names.collect();
        let nearest = codewright_config::nearest(&wanted, names.iter().map(String::as_str), NEAREST);
        Error::UnknownModel { wanted, nearest }
    }

    /// The answer to `GET /config/providers`; keys are not part of it.
    pub(crate) fn json(&self) -> Value {
        let defaults: BTreeMap<_, _> = self
            .providers
            .iter()
            .filter_map(|provider| Some((provider.id.clone(), provider.models.first()?.id.clone())))
            .collect();
        let providers = self.providers.iter().filter(|provider| provider.template.is_ok()).map(|provider| {
            let models = provider.models.iter().map(|model| (model.id.clone(), model_json(model)));
            json!({
                "id": provider.id,
                "name": provider.name,
                "source": provider.source,
                "env": provider.env,
                "options": {},
                "models": models.collect::<serde_json::Map<_, _>>(),
            })
        });
        json!({ "providers": providers.collect::<Vec<_>>(), "default": defaults })
    }
}

fn model_json(model: &Model) -> Value {
    let npm = match model.protocol {
        Protocol::OpenAiChat => "@ai-sdk/openai-compatible",
        Protocol::OpenAiResponses => "@ai-sdk/openai",
        Protocol::Anthropic => "@ai-sdk/anthropic",
    };
    let input = &model.capabilities.input;
    json!({
        "id": model.id,
        "providerID": model.provider_id,
        "api": { "id": model.api_id, "url": model.base_url, "npm": npm },
        "name": model.name,
        "capabilities": {
            "temperature": model.capabilities.temperature,
            "reasoning": model.capabilities.reasoning,
            "attachment": model.capabilities.attachment,
            "toolcall": model.capabilities.tool_call,
            "input": {
                "text": input.text, "audio": input.audio, "image": input.image, "video": input.video, "pdf": input.pdf,
            },
            "output": { "text": true, "audio": false, "image": false, "video": false, "pdf": false },
            "interleaved": false,
        },
        "cost": {
            "input": model.cost.input,
            "output": model.cost.output,
            "cache": { "read": model.cost.cache_read, "write": model.cost.cache_write },
        },
        "limit": { "context": model.limits.context, "output": model.limits.output },
        "status": "active",
        "options": {},
        "headers": {},
        "release_date": "",
        "variants": {},
    })
}

/// The providers that the configuration names, then those that a key was found for.
fn configured(config: &Config, auth: &Credentials, env: &Env) -> Vec<Provider> {
    let used = |id: &str| {
        let enabled = config.enabled_providers.as_ref();
        !config.disabled_providers.iter().any(|disabled| disabled == id)
            && enabled.is_none_or(|enabled| enabled.iter().any(|enabled| enabled == id))
    };
    let mut providers: Vec<_> = config
        .provider
        .iter()
        .filter(|(id, _)| used(id))
        .map(|(id, written)| provider(id, Some(written), auth, env))
        .collect();
    for row in catalog::providers().iter().filter(|row| used(row.id) && !row.local) {
        let known = providers.iter().any(|provider| provider.id == row.id);
        let keyed = row.env.iter().any(|name| env.filled(name).is_some()) || auth.has(row.id);
        if !known && keyed {
            providers.push(provider(row.id, None, auth, env));
        }
    }
    providers
}

fn provider(id: &str, written: Option<&ProviderConfig>, auth: &Credentials, env: &Env) -> Provider {
    let nothing = ProviderConfig::default();
    let source = if written.is_some() { "config" } else { "env" };
    let written = written.unwrap_or(&nothing);
    let row = catalog::provider(written.id.as_deref().unwrap_or(id));
    let names: Vec<String> = if written.env.is_empty() {
        row.map(|row| row.env.iter().map(|name| (*name).to_owned()).collect()).unwrap_or_default()
    } else {
        written.env.clone()
    };
    let key = written.options.api_key.clone().filter(|key| !key.is_empty());
    // Who signs in wants that used; only a key that is configured is meant even more.
    let signed_in = auth.signed_in(id).filter(|_| key.is_none());
    let key = key.or_else(|| names.iter().find_map(|name| env.filled(name)).map(str::to_owned));
    let key = key.or_else(|| auth.key(id));
    let mut template = template(id, written, row, key, env);
    if let (Ok(template), Some(signed_in)) = (&mut template, signed_in) {
        signed_in.apply(template, written.options.base_url.is_some());
    }
    let mut models: Vec<Arc<Model>> = Vec::new();
    if let Ok(template) = &template {
        let rows = row.map(|row| row.models).unwrap_or_default();
        models.extend(written.models.iter().map(|(id, model)| {
            let known = rows.iter().find(|row| row.id == model.id.as_deref().unwrap_or(id));
            Arc::new(described(template, id, known, Some(model)))
        }));
        for row in rows.iter().filter(|row| written.models.get(row.id).is_none()) {
            models.push(Arc::new(described(template, row.id, Some(row), None)));
        }
        models.retain(|model| {
            let listed = written.whitelist.as_ref().is_none_or(|list| list.contains(&model.id));
            listed && !written.blacklist.contains(&model.id)
        });
    }
    let name = written.name.clone().or_else(|| row.map(|row| row.name.to_owned()));
    Provider {
        id: id.to_owned(),
        name: name.unwrap_or_else(|| id.to_owned()),
        source,
        env: names,
        template,
        // The catalog's lists are short: a model that is not on them may exist all the same.
        open: (models.is_empty() || row.is_some()) && written.whitelist.is_none(),
        models,
    }
}

/// What the provider's models have in common, or what is wrong with its configuration.
fn template(
    id: &str,
    written: &ProviderConfig,
    row: Option<&ProviderRow>,
    key: Option<String>,
    env: &Env,
) -> Result<Model, String> {
    let protocol = match &written.npm {
        Some(npm) => catalog::protocol_of_npm(npm).ok_or_else(|| {
            format!(
                "provider `{id}`: `npm` names `{npm}`, whose protocol is not supported yet; `@ai-sdk/openai-compatible` \
                 and `@ai-sdk/anthropic` are"
            )
        })?,
        None => row.map_or(Protocol::OpenAiChat, |row| row.protocol),
    };
    let protocol = match written.options.rest.get("useCompletionUrls") {
        Some(Value::Bool(true)) if protocol == Protocol::OpenAiResponses => Protocol::OpenAiChat,
        _ => protocol,
    };
    let fallback = match protocol {
        Protocol::Anthropic => Some("https://api.anthropic.com/v1"),
        Protocol::OpenAiResponses if written.npm.as_deref() == Some("@ai-sdk/openai") => {
            Some("https://api.openai.com/v1")
        }
        Protocol::OpenAiChat | Protocol::OpenAiResponses => None,
    };
    let is_azure = written.npm.as_deref().or(row.map(|row| row.npm)) == Some(AZURE);
    let resource = option(written, "resourceName").or_else(|| env.filled("AZURE_RESOURCE_NAME"));
    let resource = resource.map(azure_url).filter(|_| is_azure);
    let row_url = row.map(|row| row.base_url).filter(|url| !url.is_empty());
    let base_url = written.options.base_url.as_deref().or(written.api.as_deref()).or(resource.as_deref());
    let base_url = base_url.filter(|url| !url.is_empty()).or(row_url).or(fallback);
    let base_url = base_url.ok_or_else(|| {
        let or = if is_azure { format!(" or `provider.{id}.options.resourceName`") } else { String::new() };
        format!("provider `{id}` has no address: set `provider.{id}.options.baseURL`{or} in opencode.json")
    })?;
    if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
        return Err(format!(
            "provider `{id}`: `options.baseURL` must begin with http:// or https://, found `{base_url}`"
        ));
    }
    let mut model = Model::new(id, "", protocol, base_url.trim_end_matches('/'));
    model.api_key = key.map(Secret::from);
    model.headers = pairs(&written.options.headers);
    model.quirks = catalog::quirks(id, written.npm.as_deref());
    if let Some(asked) = written.options.rest.get("setCacheKey") {
        model.options.insert("setCacheKey".to_owned(), asked.clone());
    }
    if is_azure {
        model.auth = codewright_llm::Auth::Header("api-key");
        let api_version = option(written, "apiVersion").unwrap_or("v1").to_owned();
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

const AZURE: &str = "@ai-sdk/azure";

fn azure_url(resource: &str) -> String {
    format!("https://{resource}.openai.azure.com/openai")
}

/// An option of a provider that only its protocol understands.
fn option<'a>(written: &'a ProviderConfig, name: &str) -> Option<&'a str> {
    written.options.rest.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn named(template: &Model, id: &str) -> Model {
    described(template, id, None, None)
}

/// A model from what the catalog knows and the configuration says of it.
fn described(template: &Model, id: &str, row: Option<&ModelRow>, written: Option<&ModelConfig>) -> Model {
    let nothing = ModelConfig::default();
    let written = written.unwrap_or(&nothing);
    let mut model = template.clone();
    id.clone_into(&mut model.id);
    model.api_id = written.id.clone().unwrap_or_else(|| id.to_owned());
    model.name =
        written.name.clone().or_else(|| row.map(|row| row.name.to_owned())).unwrap_or_else(|| id.to_owned());
    if let Some(row) = row {
        model.limits = row.limits;
        model.cost = row.cost;
        model.capabilities = row.capabilities;
    } else {
        model.limits.context = ASSUMED_CONTEXT;
    }
    model.limits.context = written.limit.context.unwrap_or(model.limits.context);
    model.limits.output = written.limit.output.unwrap_or(model.limits.output);
    let capabilities = &mut model.capabilities;
    capabilities.attachment = written.attachment.unwrap_or(capabilities.attachment);
    capabilities.reasoning = written.reasoning.unwrap_or(capabilities.reasoning);
    capabilities.temperature = written.temperature.unwrap_or(capabilities.temperature);
    capabilities.tool_call = written.tool_call.unwrap_or(capabilities.tool_call);
    if let Some(kinds) = written.modalities.as_ref().and_then(|modalities| modalities.input.as_ref()) {
        let has = |kind: &str| kinds.iter().any(|listed| listed == kind);
        let input = &mut capabilities.input;
        (input.text, input.image, input.pdf) = (has("text"), has("image"), has("pdf"));
        (input.audio, input.video) = (has("audio"), has("video"));
    } else if capabilities.attachment && row.is_none() {
        capabilities.input.image = true;
    }
    if let Some(cost) = &written.cost {
        model.cost.input = cost.input.unwrap_or(model.cost.input);
        model.cost.output = cost.output.unwrap_or(model.cost.output);
        model.cost.cache_read = cost.cache_read.unwrap_or(model.cost.cache_read);
        model.cost.cache_write = cost.cache_write.unwrap_or(model.cost.cache_write);
    }
    model.headers.extend(pairs(&written.headers));
    model.options.extend(written.options.clone());
    signed_in::fit(&mut model);
    model
}

fn pairs(headers: &Ordered<String>) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

/// Servers on this machine that answer on their usual ports.
async fn local(inner: &Inner, looked_for: &mut Vec<String>) -> Vec<Provider> {
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
        let template = Model::new(row.id, "", row.protocol, &base_url);
        providers.push(Provider {
            id: row.id.to_owned(),
            name: row.name.to_owned(),
            source: "local",
            env: Vec::new(),
            models: models.iter().map(|id| Arc::new(named(&template, id))).collect(),
            template: Ok(template),
            open: true,
        });
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
mod tests {
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
}
