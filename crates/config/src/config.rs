//! What the configuration says, typed.
//!
//! A value here has been checked in the document it came from, so that reading it cannot fail. Keys
//! without a field are kept as they are, in `rest`, `options` or [`Config::raw`]. `Debug` texts leave
//! out everything that may hold a secret.

use std::{fmt, path::Path, time::Duration};

use codewright_proto::{PromptModel, Rule};
use serde_json::Value;

use crate::{
    Map, Ordered,
    document::schema::{self, Shape},
    permission,
};

/// The merged configuration of one directory.
#[derive(Clone, Default, PartialEq)]
pub struct Config {
    /// The model to begin with, as `provider/model`.
    pub model: Option<String>,
    /// The model for titles and other small work, as `provider/model`.
    pub small_model: Option<String>,
    /// The agent to begin with.
    pub default_agent: Option<String>,
    /// The name of the user; that of the system without one in a file.
    pub username: Option<String>,
    /// Providers that are added or changed.
    pub provider: Ordered<ProviderConfig>,
    /// Agents that are added or changed.
    pub agent: Ordered<AgentConfig>,
    /// Commands, by name.
    pub command: Ordered<CommandConfig>,
    /// How the system text is made.
    pub prompt: PromptConfig,
    /// The user's rules, those of the older `tools` map first.
    pub permission: Vec<Rule>,
    /// Files, patterns and URLs with instructions for the model.
    pub instructions: Vec<String>,
    /// Providers that are not used.
    pub disabled_providers: Vec<String>,
    /// The only providers that are used, when there is such a list.
    pub enabled_providers: Option<Vec<String>>,
    /// Tools switched on or off by name.
    pub tools: Ordered<bool>,
    /// Whether files are saved before each step; yes without a word.
    pub snapshot: Option<bool>,
    /// Whether sessions are shared.
    pub share: Option<Share>,
    /// Keys that this room gives no meaning.
    pub rest: Map,
    /// The merged document as a client is shown it, secrets included.
    pub raw: Value,
}

/// When a session is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// On request.
    Manual,
    /// From its start.
    Auto,
    /// Never.
    Disabled,
}

/// A provider that is added, or what is changed of a known one.
#[derive(Clone, Default, PartialEq)]
pub struct ProviderConfig {
    /// The id under which the catalog knows it, when that is another.
    pub id: Option<String>,
    /// What users are shown.
    pub name: Option<String>,
    /// The package that speaks its protocol; names the protocol.
    pub npm: Option<String>,
    /// The base URL, where `options.baseURL` gives none.
    pub api: Option<String>,
    /// Variables that may hold its key.
    pub env: Vec<String>,
    /// How it is reached.
    pub options: ProviderOptions,
    /// Models that are added or changed.
    pub models: Ordered<ModelConfig>,
    /// The only models that are used, when there is such a list.
    pub whitelist: Option<Vec<String>>,
    /// Models that are not used.
    pub blacklist: Vec<String>,
    /// Further keys.
    pub rest: Map,
}

/// How a provider is reached.
#[derive(Clone, Default, PartialEq)]
pub struct ProviderOptions {
    /// Where requests go.
    pub base_url: Option<String>,
    /// The secret that pays for them.
    pub api_key: Option<String>,
    /// Headers sent along.
    pub headers: Ordered<String>,
    /// How long a whole answer may take.
    pub timeout: Option<Timeout>,
    /// How long the answer's headers may take.
    pub header_timeout: Option<Timeout>,
    /// How long the pause between two pieces of an answer may be.
    pub chunk_timeout: Option<Timeout>,
    /// Options that only the protocol understands.
    pub rest: Map,
}

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// As long as it takes.
    Never,
    /// This long.
    After(Duration),
}

/// A model that is added, or what is changed of a known one.
#[derive(Clone, Default, PartialEq)]
pub struct ModelConfig {
    /// The id the provider knows it by, when that is another.
    pub id: Option<String>,
    /// What users are shown.
    pub name: Option<String>,
    /// Whether it accepts files.
    pub attachment: Option<bool>,
    /// Whether it thinks before it answers.
    pub reasoning: Option<bool>,
    /// Whether it accepts a temperature.
    pub temperature: Option<bool>,
    /// Whether it can call tools.
    pub tool_call: Option<bool>,
    /// How much it reads and writes.
    pub limit: Limit,
    /// What a million tokens cost.
    pub cost: Option<Cost>,
    /// What it accepts and makes.
    pub modalities: Option<Modalities>,
    /// Options for each request.
    pub options: Map,
    /// Headers sent along.
    pub headers: Ordered<String>,
    /// Named sets of options.
    pub variants: Map,
    /// The field that carries its reasoning back.
    pub interleaved: Option<Value>,
    /// Further keys.
    pub rest: Map,
}

/// How much a model reads and writes, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limit {
    /// Question and answer together.
    pub context: Option<u64>,
    /// The question.
    pub input: Option<u64>,
    /// The answer.
    pub output: Option<u64>,
}

/// What a million tokens cost, in dollars.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cost {
    /// Read.
    pub input: Option<f64>,
    /// Written.
    pub output: Option<f64>,
    /// Read from the provider's cache.
    pub cache_read: Option<f64>,
    /// Put into the provider's cache.
    pub cache_write: Option<f64>,
    /// The prices of a request with more than 200 000 tokens.
    pub context_over_200k: Option<Box<Self>>,
}

/// What a model accepts and makes: `text`, `image`, `pdf`, `audio`, `video`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modalities {
    /// What it accepts.
    pub input: Option<Vec<String>>,
    /// What it makes.
    pub output: Option<Vec<String>>,
}

/// An agent that is added, or what is changed of a known one.
#[derive(Clone, Default, PartialEq)]
pub struct AgentConfig {
    /// Its own model, as `provider/model`.
    pub model: Option<String>,
    /// The named set of that model's options.
    pub variant: Option<String>,
    /// What it is told before everything else.
    pub prompt: Option<String>,
    /// When it is the right one.
    pub description: Option<String>,
    /// Whether users or other agents call it.
    pub mode: Option<crate::AgentMode>,
    /// How freely it chooses its words.
    pub temperature: Option<f64>,
    /// How many of the likely words it chooses from.
    pub top_p: Option<f64>,
    /// How many steps it may take.
    pub steps: Option<u64>,
    /// Tools switched on or off by name; also part of `permission`.
    pub tools: Ordered<bool>,
    /// Its own rules.
    pub permission: Vec<Rule>,
    /// Whether it is removed.
    pub disable: Option<bool>,
    /// Whether it is left out of lists.
    pub hidden: Option<bool>,
    /// The colour it is shown in.
    pub color: Option<String>,
    /// Options for each request, unknown keys of the agent among them.
    pub options: Map,
}

/// A command: a prompt with a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandConfig {
    /// The prompt, with places for arguments.
    pub template: String,
    /// What it does.
    pub description: Option<String>,
    /// Who does it.
    pub agent: Option<String>,
    /// With which model, as `provider/model`.
    pub model: Option<String>,
    /// The named set of that model's options.
    pub variant: Option<String>,
    /// Whether it is done in a session of its own.
    pub subtask: Option<bool>,
}

/// How the system text is made; our own section `prompt`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptConfig {
    /// Whether base prompts are chosen as older versions did.
    pub legacy: bool,
    /// Whether blocks stand in the exact order of older versions.
    pub strict: bool,
    /// A text before everything else.
    pub header: Option<String>,
    /// A text behind everything but the prompt's own.
    pub system: Option<String>,
    /// Whether the project's `.claude` memory and commands are used.
    pub claude: bool,
    /// How instruction files are read.
    pub instructions: InstructionRules,
}

/// How instruction files and addresses are read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InstructionRules {
    /// The most bytes of one.
    pub max_bytes: Option<u64>,
    /// Whether links out of the worktree are followed.
    pub follow_symlinks: bool,
    /// Whether addresses without encryption are fetched.
    pub http: bool,
    /// The only hosts that are asked, when there is such a list; a leading dot takes in those below.
    pub hosts: Option<Vec<String>>,
}

/// The provider and the model of `provider/model`; what follows the first slash is the model.
#[must_use]
pub fn parse_model(written: &str) -> Option<PromptModel> {
    let (provider, model) = written.split_once('/')?;
    let filled = !provider.is_empty() && !model.is_empty();
    filled.then(|| PromptModel {
        provider_id: provider.to_owned(),
        model_id: model.to_owned(),
        variant: None,
    })
}

impl Config {
    /// Reads a document that has been checked.
    pub(crate) fn read(raw: Map, home: &Path) -> Self {
        let fields = Fields(&raw);
        Self {
            model: fields.filled("model"),
            small_model: fields.filled("small_model"),
            default_agent: fields.filled("default_agent"),
            username: fields.filled("username"),
            provider: fields.each("provider", |value| ProviderConfig::read(&value)),
            agent: fields.each("agent", |value| AgentConfig::read(&value, home)),
            command: fields.each("command", |value| CommandConfig::read(&value)),
            prompt: fields.object("prompt").map(|prompt| PromptConfig::read(&prompt)).unwrap_or_default(),
            permission: raw.get("permission").map(|value| permission::rules(value, home)).unwrap_or_default(),
            instructions: fields.texts("instructions").unwrap_or_default(),
            disabled_providers: fields.texts("disabled_providers").unwrap_or_default(),
            enabled_providers: fields.texts("enabled_providers"),
            tools: fields.switches("tools"),
            snapshot: fields.switch("snapshot"),
            share: fields.text("share").and_then(|written| match written.as_str() {
                "manual" => Some(Share::Manual),
                "auto" => Some(Share::Auto),
                "disabled" => Some(Share::Disabled),
                _ => None,
            }),
            rest: fields.without(schema::CONFIG_KEYS, &["$schema", "command", "plugin", "autoupdate"]),
            raw: Value::Object(raw),
        }
    }
}

impl ProviderConfig {
    fn read(fields: &Fields<'_>) -> Self {
        Self {
            id: fields.filled("id"),
            name: fields.text("name"),
            npm: fields.filled("npm"),
            api: fields.filled("api"),
            env: fields.texts("env").unwrap_or_default(),
            options: fields
                .object("options")
                .map(|options| ProviderOptions::read(&options))
                .unwrap_or_default(),
            models: fields.each("models", |model| ModelConfig::read(&model)),
            whitelist: fields.texts("whitelist"),
            blacklist: fields.texts("blacklist").unwrap_or_default(),
            rest: fields.without(schema::PROVIDER_KEYS, &[]),
        }
    }
}

impl ProviderOptions {
    fn read(fields: &Fields<'_>) -> Self {
        Self {
            base_url: fields.filled("baseURL"),
            api_key: fields.filled("apiKey"),
            headers: fields.headers(),
            timeout: fields.timeout("timeout"),
            header_timeout: fields.timeout("headerTimeout"),
            chunk_timeout: fields.timeout("chunkTimeout"),
            rest: fields.without(schema::OPTION_KEYS, &[]),
        }
    }
}

impl ModelConfig {
    fn read(fields: &Fields<'_>) -> Self {
        Self {
            id: fields.filled("id"),
            name: fields.text("name"),
            attachment: fields.switch("attachment"),
            reasoning: fields.switch("reasoning"),
            temperature: fields.switch("temperature"),
            tool_call: fields.switch("tool_call"),
            limit: fields.object("limit").map(|limit| limit.limit()).unwrap_or_default(),
            cost: fields.object("cost").map(|cost| cost.cost()),
            modalities: fields
                .object("modalities")
                .map(|kinds| Modalities { input: kinds.texts("input"), output: kinds.texts("output") }),
            options: fields.map("options"),
            headers: fields.headers(),
            variants: fields.map("variants"),
            interleaved: fields.0.get("interleaved").cloned(),
            rest: fields.without(schema::MODEL_KEYS, &[]),
        }
    }
}

impl AgentConfig {
    fn read(fields: &Fields<'_>, home: &Path) -> Self {
        Self {
            model: fields.filled("model"),
            variant: fields.filled("variant"),
            prompt: fields.text("prompt"),
            description: fields.text("description"),
            mode: fields.text("mode").and_then(|written| crate::AgentMode::parse(&written)),
            temperature: fields.number("temperature"),
            top_p: fields.number("top_p"),
            steps: fields.count("steps").or_else(|| fields.count("maxSteps")),
            tools: fields.switches("tools"),
            permission: fields
                .0
                .get("permission")
                .map(|value| permission::rules(value, home))
                .unwrap_or_default(),
            disable: fields.switch("disable"),
            hidden: fields.switch("hidden"),
            color: fields.filled("color"),
            options: fields.map("options"),
        }
    }
}

impl CommandConfig {
    fn read(fields: &Fields<'_>) -> Self {
        Self {
            template: fields.text("template").unwrap_or_default(),
            description: fields.text("description"),
            agent: fields.filled("agent"),
            model: fields.filled("model"),
            variant: fields.filled("variant"),
            subtask: fields.switch("subtask"),
        }
    }
}

impl PromptConfig {
    fn read(fields: &Fields<'_>) -> Self {
        let on = |key| fields.switch(key).unwrap_or(false);
        Self {
            legacy: fields.text("profile").as_deref() == Some("legacy"),
            strict: on("strict"),
            header: fields.filled("header"),
            system: fields.filled("system"),
            claude: on("claude"),
            instructions: fields
                .object("instructions")
                .map(|rules| rules.instruction_rules())
                .unwrap_or_default(),
        }
    }
}

/// Reads the fields of a checked object; one of another type is as good as absent.
struct Fields<'a>(&'a Map);

impl<'a> Fields<'a> {
    fn text(&self, key: &str) -> Option<String> {
        self.0.get(key)?.as_str().map(str::to_owned)
    }

    /// A text that means absence when it is empty, as a variable that is not set leaves it.
    fn filled(&self, key: &str) -> Option<String> {
        self.text(key).filter(|text| !text.is_empty())
    }

    fn switch(&self, key: &str) -> Option<bool> {
        self.0.get(key)?.as_bool()
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64()
    }

    fn count(&self, key: &str) -> Option<u64> {
        let value = self.0.get(key)?;
        // JSON has one kind of number: `2e5` counts as well as `200000`.
        value.as_u64().or_else(|| value.as_f64().map(|number| number as u64))
    }

    fn timeout(&self, key: &str) -> Option<Timeout> {
        if self.switch(key) == Some(false) {
            return Some(Timeout::Never);
        }
        self.count(key).map(|ms| Timeout::After(Duration::from_millis(ms)))
    }

    fn texts(&self, key: &str) -> Option<Vec<String>> {
        let entries = self.0.get(key)?.as_array()?;
        Some(entries.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    fn map(&self, key: &str) -> Map {
        self.0.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    fn object(&self, key: &str) -> Option<Self> {
        self.0.get(key)?.as_object().map(Self)
    }

    fn each<T>(&self, key: &str, read: impl Fn(Self) -> T) -> Ordered<T> {
        let entries = self.0.get(key).and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(name, value)| Some((name.clone(), read(Self(value.as_object()?))))).collect()
    }

    fn switches(&self, key: &str) -> Ordered<bool> {
        let entries = self.0.get(key).and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(name, value)| Some((name.clone(), value.as_bool()?))).collect()
    }

    fn headers(&self) -> Ordered<String> {
        let entries = self.0.get("headers").and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    }

    fn instruction_rules(&self) -> InstructionRules {
        InstructionRules {
            max_bytes: self.count("max_bytes"),
            follow_symlinks: self.switch("follow_symlinks").unwrap_or(false),
            http: self.switch("http").unwrap_or(false),
            hosts: self.texts("hosts"),
        }
    }

    fn limit(&self) -> Limit {
        Limit { context: self.count("context"), input: self.count("input"), output: self.count("output") }
    }

    fn cost(&self) -> Cost {
        Cost {
            input: self.number("input"),
            output: self.number("output"),
            cache_read: self.number("cache_read"),
            cache_write: self.number("cache_write"),
            context_over_200k: self.object("context_over_200k").map(|tier| Box::new(tier.cost())),
        }
    }

    fn without(&self, known: &[(&str, Shape)], kept: &[&str]) -> Map {
        let unknown = |key: &str| kept.contains(&key) || known.iter().all(|(name, _)| *name != key);
        self.0
            .iter()
            .filter(|(key, _)| unknown(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("model", &self.model)
            .field("provider", &self.provider)
            .field("agent", &self.agent)
            .field("permission", &self.permission)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("npm", &self.npm)
            .field("options", &self.options)
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ProviderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderOptions")
            .field("has_key", &self.api_key.is_some())
            .field("headers", &self.headers)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelConfig")
            .field("id", &self.id)
            .field("limit", &self.limit)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AgentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentConfig")
            .field("model", &self.model)
            .field("mode", &self.mode)
            .field("permission", &self.permission)
            .finish_non_exhaustive()
    }
}
