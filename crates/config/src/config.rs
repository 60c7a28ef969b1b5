//! The typed configuration.
//!
//! Documents are checked before they are read here, so reading cannot fail. Keys without a field are kept in `rest`,
//! `options` or [`Config::raw`]. `Debug` texts omit everything that may contain a secret.

use std::{fmt, path::Path, time::Duration};

use codewright_proto::{PromptModel, Rule};
use serde_json::Value;

use crate::{
    Map, Ordered, PluginHostConfig, SandboxConfig, SandboxMode,
    document::schema::{self, Shape},
    permission,
};

/// The merged configuration of one directory.
#[derive(Clone, Default, PartialEq)]
pub struct Config {
    /// The default model, as `provider/model`.
    pub model: Option<String>,
    /// The model for titles and other small tasks, as `provider/model`.
    pub small_model: Option<String>,
    /// The default agent.
    pub default_agent: Option<String>,
    /// The name of the user, by default the system's user name.
    pub username: Option<String>,
    /// Added or changed providers.
    pub provider: Ordered<ProviderConfig>,
    /// Added or changed agents.
    pub agent: Ordered<AgentConfig>,
    /// Commands, by name.
    pub command: Ordered<CommandConfig>,
    /// The settings of the system prompt.
    pub prompt: PromptConfig,
    /// The settings of the sandbox.
    pub sandbox: SandboxConfig,
    /// The settings of the process that runs plugins.
    pub plugin_host: PluginHostConfig,
    /// The permission rules; those of the older `tools` map are first.
    pub permission: Vec<Rule>,
    /// Files, patterns and URLs of instructions for the model.
    pub instructions: Vec<String>,
    /// Disabled providers.
    pub disabled_providers: Vec<String>,
    /// The enabled providers; `None` for all.
    pub enabled_providers: Option<Vec<String>>,
    /// Tools that are enabled or disabled by name.
    pub tools: Ordered<bool>,
    /// Whether files are saved before each step. Default: true.
    pub snapshot: Option<bool>,
    /// When sessions are shared.
    pub share: Option<Share>,
    /// Keys without a field in this struct.
    pub rest: Map,
    /// The merged document, including secrets.
    pub raw: Value,
}

/// When a session is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// On request of the user.
    Manual,
    /// From the start of the session.
    Auto,
    /// Never.
    Disabled,
}

/// An added provider, or the changes of a known one.
#[derive(Clone, Default, PartialEq)]
pub struct ProviderConfig {
    /// The id in the catalog, if it differs.
    pub id: Option<String>,
    /// The display name.
    pub name: Option<String>,
    /// The npm package, which selects the protocol.
    pub npm: Option<String>,
    /// The base URL if `options.baseURL` is missing.
    pub api: Option<String>,
    /// Environment variables that may contain the key.
    pub env: Vec<String>,
    /// The connection options.
    pub options: ProviderOptions,
    /// Added or changed models.
    pub models: Ordered<ModelConfig>,
    /// The enabled models; `None` for all.
    pub whitelist: Option<Vec<String>>,
    /// Disabled models.
    pub blacklist: Vec<String>,
    /// Other keys.
    pub rest: Map,
}

/// The connection options of a provider.
#[derive(Clone, Default, PartialEq)]
pub struct ProviderOptions {
    /// The base URL of requests.
    pub base_url: Option<String>,
    /// The API key.
    pub api_key: Option<String>,
    /// Additional request headers.
    pub headers: Ordered<String>,
    /// The time limit of a whole response.
    pub timeout: Option<Timeout>,
    /// The time limit of the response headers.
    pub header_timeout: Option<Timeout>,
    /// The time limit between two chunks of a response.
    pub chunk_timeout: Option<Timeout>,
    /// Protocol-specific options.
    pub rest: Map,
}

/// A time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// No limit.
    Never,
    /// A limit.
    After(Duration),
}

/// An added model, or the changes of a known one.
#[derive(Clone, Default, PartialEq)]
pub struct ModelConfig {
    /// The id in requests, if it differs.
    pub id: Option<String>,
    /// The display name.
    pub name: Option<String>,
    /// Whether the model accepts files.
    pub attachment: Option<bool>,
    /// Whether the model supports reasoning.
    pub reasoning: Option<bool>,
    /// Whether the model accepts a temperature.
    pub temperature: Option<bool>,
    /// Whether the model can call tools.
    pub tool_call: Option<bool>,
    /// The token limits.
    pub limit: Limit,
    /// The prices per million tokens.
    pub cost: Option<Cost>,
    /// The input and output modalities.
    pub modalities: Option<Modalities>,
    /// Options that are added to each request.
    pub options: Map,
    /// Additional request headers.
    pub headers: Ordered<String>,
    /// The variants: named sets of options.
    pub variants: Map,
    /// The field that returns reasoning to the model.
    pub interleaved: Option<Value>,
    /// Other keys.
    pub rest: Map,
}

/// The token limits of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limit {
    /// Input and output together.
    pub context: Option<u64>,
    /// The input.
    pub input: Option<u64>,
    /// The output.
    pub output: Option<u64>,
}

/// Prices per million tokens in US dollars.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cost {
    /// Input tokens.
    pub input: Option<f64>,
    /// Output tokens.
    pub output: Option<f64>,
    /// Input tokens read from the provider's cache.
    pub cache_read: Option<f64>,
    /// Input tokens written to the provider's cache.
    pub cache_write: Option<f64>,
    /// The prices of a request with more than 200 000 tokens.
    pub context_over_200k: Option<Box<Self>>,
}

/// The modalities of a model: `text`, `image`, `pdf`, `audio`, `video`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modalities {
    /// Accepted inputs.
    pub input: Option<Vec<String>>,
    /// Produced outputs.
    pub output: Option<Vec<String>>,
}

/// An added agent, or the changes of a known one.
#[derive(Clone, Default, PartialEq)]
pub struct AgentConfig {
    /// The agent's model, as `provider/model`.
    pub model: Option<String>,
    /// The model variant.
    pub variant: Option<String>,
    /// The agent's prompt.
    pub prompt: Option<String>,
    /// When to use the agent.
    pub description: Option<String>,
    /// The callers of the agent.
    pub mode: Option<crate::AgentMode>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The `top_p` sampling parameter.
    pub top_p: Option<f64>,
    /// The maximum number of steps.
    pub steps: Option<u64>,
    /// Tools that are enabled or disabled by name; included in `permission`.
    pub tools: Ordered<bool>,
    /// The agent's permission rules.
    pub permission: Vec<Rule>,
    /// Whether the agent is removed.
    pub disable: Option<bool>,
    /// Whether the agent is omitted from lists.
    pub hidden: Option<bool>,
    /// The display colour.
    pub color: Option<String>,
    /// The sandbox that the agent requires.
    pub sandbox: Option<SandboxMode>,
    /// The program that answers the agent's prompts.
    pub program: AgentProgram,
    /// Options that are added to each request, including unknown keys of the agent.
    pub options: Map,
}

/// The keys of an agent that name another program, which answers its prompts in place of a model.
#[derive(Clone, Default, PartialEq)]
pub struct AgentProgram {
    /// The protocol that the program speaks: `acp`.
    pub protocol: Option<String>,
    /// The program, which may be followed by arguments.
    pub command: Vec<String>,
    /// Further arguments.
    pub args: Vec<String>,
    /// The variables of the program, some of which are secrets.
    pub environment: Ordered<String>,
    /// Its working directory, relative to the directory of the session.
    pub cwd: Option<String>,
}

impl AgentProgram {
    /// Reports whether none of the keys is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A command: a prompt with a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandConfig {
    /// The prompt with placeholders for arguments.
    pub template: String,
    /// A description for the user.
    pub description: Option<String>,
    /// The agent that runs it.
    pub agent: Option<String>,
    /// The model that runs it, as `provider/model`.
    pub model: Option<String>,
    /// The model variant.
    pub variant: Option<String>,
    /// Whether it runs in a separate session.
    pub subtask: Option<bool>,
}

/// The settings of the system prompt: Codewright's own section `prompt`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptConfig {
    /// Whether to choose base prompts as older versions did.
    pub legacy: bool,
    /// Whether to use the exact block order of older versions.
    pub strict: bool,
    /// Whether the system text lists the files of the project.
    pub tree: bool,
    /// Whether the system text contains the errors that language servers reported.
    pub diagnostics: bool,
    /// A text before all other blocks.
    pub header: Option<String>,
    /// A text after all other blocks except the prompt's own system text.
    pub system: Option<String>,
    /// Whether to use the project's `.claude` instructions and commands.
    pub claude: bool,
    /// Limits for instruction files.
    pub instructions: InstructionRules,
}

/// Limits for instruction files and URLs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InstructionRules {
    /// The maximum size of one in bytes.
    pub max_bytes: Option<u64>,
    /// Whether to follow links out of the worktree.
    pub follow_symlinks: bool,
    /// Whether to fetch unencrypted URLs.
    pub http: bool,
    /// The allowed hosts; `None` for all. A leading dot includes subdomains.
    pub hosts: Option<Vec<String>>,
}

/// Parses `provider/model`. The model is the text after the first slash.
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
    /// Reads a checked document.
    pub(crate) fn read(raw: Map, home: &Path) -> Self {
        let fields = Fields(&raw);
        Self {
            model: fields.non_empty("model"),
            small_model: fields.non_empty("small_model"),
            default_agent: fields.non_empty("default_agent"),
            username: fields.non_empty("username"),
            provider: fields.each("provider", |value| ProviderConfig::read(&value)),
            agent: fields.each("agent", |value| AgentConfig::read(&value, home)),
            command: fields.each("command", |value| CommandConfig::read(&value)),
            prompt: fields.object("prompt").map(|prompt| PromptConfig::read(&prompt)).unwrap_or_default(),
            sandbox: fields.object("sandbox").map(|own| SandboxConfig::read(own.0, home)).unwrap_or_default(),
            plugin_host: fields
                .object("plugin_host")
                .map(|own| PluginHostConfig::read(own.0))
                .unwrap_or_default(),
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
            id: fields.non_empty("id"),
            name: fields.text("name"),
            npm: fields.non_empty("npm"),
            api: fields.non_empty("api"),
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
            base_url: fields.non_empty("baseURL"),
            api_key: fields.non_empty("apiKey"),
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
            id: fields.non_empty("id"),
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
            model: fields.non_empty("model"),
            variant: fields.non_empty("variant"),
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
            color: fields.non_empty("color"),
            sandbox: fields.text("sandbox").as_deref().and_then(SandboxMode::parse),
            program: AgentProgram {
                protocol: fields.non_empty("type"),
                command: fields.one_or_more("command"),
                args: fields.texts("args").unwrap_or_default(),
                environment: fields.named_texts("environment"),
                cwd: fields.non_empty("cwd"),
            },
            options: fields.map("options"),
        }
    }
}

impl CommandConfig {
    fn read(fields: &Fields<'_>) -> Self {
        Self {
            template: fields.text("template").unwrap_or_default(),
            description: fields.text("description"),
            agent: fields.non_empty("agent"),
            model: fields.non_empty("model"),
            variant: fields.non_empty("variant"),
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
            tree: on("tree"),
            diagnostics: on("diagnostics"),
            header: fields.non_empty("header"),
            system: fields.non_empty("system"),
            claude: on("claude"),
            instructions: fields
                .object("instructions")
                .map(|rules| rules.instruction_rules())
                .unwrap_or_default(),
        }
    }
}

/// Reads the fields of a checked object. A field of another type counts as missing.
struct Fields<'a>(&'a Map);

impl<'a> Fields<'a> {
    fn text(&self, key: &str) -> Option<String> {
        self.0.get(key)?.as_str().map(str::to_owned)
    }

    /// A text that is not empty. An unset variable leaves an empty text.
    fn non_empty(&self, key: &str) -> Option<String> {
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
        // JSON has one number type, so `2e5` is accepted like `200000`.
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

    /// A text, or a list of texts.
    fn one_or_more(&self, key: &str) -> Vec<String> {
        self.texts(key).unwrap_or_else(|| self.non_empty(key).into_iter().collect())
    }

    fn headers(&self) -> Ordered<String> {
        self.named_texts("headers")
    }

    fn named_texts(&self, key: &str) -> Ordered<String> {
        let entries = self.0.get(key).and_then(Value::as_object).into_iter().flatten();
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
