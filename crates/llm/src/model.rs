//! Whom to ask: a model, where it lives and what it can do.
//!
//! Plain data. The caller builds it from configuration and catalog; nothing
//! here is looked up or filled in later.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::gitlab::GitLab;
use crate::oauth::SignIn;
use crate::{Aws, GoogleCredentials, Quirk};

/// What the body of a request and the stream of an answer mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// OpenAI Chat Completions, and everything that imitates it.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Amazon Bedrock's ConverseStream.
    Bedrock,
    /// Cohere's chat, second version.
    Cohere,
    /// Gemini's `generateContent`.
    Gemini,
}

/// How a request proves who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Auth {
    /// The key where the protocol's own servers look for it.
    #[default]
    Protocol,
    /// The key as `authorization: Bearer …`.
    Bearer,
    /// The key in a header of this name, such as `api-key`.
    Header(&'static str),
    /// The key as a bearer where there is one, else a signature with Amazon's keys.
    Aws(Aws),
    /// A token of a sign-in, renewed when it has to be.
    SignIn {
        /// Who has the tokens.
        sign_in: SignIn,
        /// The name they are stored under.
        provider: String,
    },
    /// A token that Google's credentials are good for, as `authorization: Bearer …`; a key is not used.
    Google(GoogleCredentials),
    /// A pass to GitLab's gateway, as `authorization: Bearer …`; a key is not used.
    GitLab(GitLab),
}

/// Where below the base URL a request goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Endpoint {
    /// The protocol's own path.
    #[default]
    Protocol,
    /// Azure's: the protocol's path below `v1`, with the version of the interface as a query.
    Azure {
        /// The version, such as `v1` or `2025-04-01-preview`.
        api_version: String,
    },
    /// Vertex AI's for another maker's protocol: the model stands in the path and not in the body.
    Vertex,
}

/// A model as one request needs it.
#[derive(Debug, Clone)]
pub struct Model {
    /// The provider's id; errors carry it.
    pub provider_id: String,
    /// The model's name in the configuration.
    pub id: String,
    /// The model's name on the wire.
    pub api_id: String,
    /// The name shown to people.
    pub name: String,
    /// Which protocol folder speaks to it.
    pub protocol: Protocol,
    /// The address below which the protocol's path lives, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// Where below it requests go.
    pub endpoint: Endpoint,
    /// The key, if the provider wants one.
    pub api_key: Option<Secret>,
    /// How the key, or what stands in for one, is shown to the server.
    pub auth: Auth,
    /// Extra headers; they win over the protocol's own, except that `anthropic-beta` lists are joined.
    pub headers: Vec<(String, String)>,
    /// Merged into every body last; `null` removes a field. See `Request::options` for the spellings.
    pub options: Map<String, Value>,
    /// The field of a chat message in which thought goes back, where it is not the usual one.
    pub thought_field: Option<String>,
    /// What a user can do when the credentials are refused; said behind the server's words.
    pub refused: Option<String>,
    /// How its server differs from what the protocol's inventors meant.
    pub quirks: Vec<Quirk>,
    /// Token limits; zero means unknown.
    pub limits: Limits,
    /// What it accepts.
    pub capabilities: Capabilities,
    /// What it costs.
    pub cost: Cost,
    /// What it costs when a request has more tokens than this.
    pub long_cost: Option<(u64, Cost)>,
    /// How long each wait may last.
    pub timeouts: Timeouts,
}

impl Model {
    /// A text model with default limits, named the same everywhere; change the fields that differ.
    #[must_use]
    pub fn new(provider_id: &str, id: &str, protocol: Protocol, base_url: &str) -> Self {
        Self {
            provider_id: provider_id.to_owned(),
            id: id.to_owned(),
            api_id: id.to_owned(),
            name: id.to_owned(),
            protocol,
            base_url: base_url.to_owned(),
            endpoint: Endpoint::default(),
            api_key: None,
            auth: Auth::default(),
            headers: Vec::new(),
            options: Map::new(),
            thought_field: None,
            refused: None,
            quirks: Vec::new(),
            limits: Limits::default(),
            capabilities: Capabilities::default(),
            cost: Cost::default(),
            long_cost: None,
            timeouts: Timeouts::default(),
        }
    }
}

impl Model {
    /// Whether it is asked with a ChatGPT account, which only OpenAI's own agent server takes.
    ///
    /// That server wants the words for the agent as `instructions` and nothing said by the system.
    #[must_use]
    pub fn is_codex(&self) -> bool {
        matches!(&self.auth, Auth::SignIn { provider, .. } if provider == "openai")
    }
}

/// A key that no log, error or debug print shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key; surrounding white space, which files and shells add, is not part of it.
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// The key itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(key: &str) -> Self {
        Self::new(key)
    }
}

impl From<String> for Secret {
    fn from(key: String) -> Self {
        Self::new(&key)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl std::fmt::Display for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Token limits of a model; zero means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of a whole conversation.
    pub context: u64,
    /// Tokens of one answer.
    pub output: u64,
    /// Tokens of one request, where that is less than the conversation's.
    pub input: u64,
}

/// What a model accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Takes a sampling temperature.
    pub temperature: bool,
    /// Thinks before it answers.
    pub reasoning: bool,
    /// Takes files.
    pub attachment: bool,
    /// Calls tools.
    pub tool_call: bool,
    /// Kinds of content it reads.
    pub input: Modalities,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            temperature: true,
            reasoning: false,
            attachment: false,
            tool_call: true,
            input: Modalities::default(),
        }
    }
}

/// Kinds of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modalities {
    /// Words.
    pub text: bool,
    /// Pictures.
    pub image: bool,
    /// PDF documents.
    pub pdf: bool,
    /// Sound.
    pub audio: bool,
    /// Moving pictures.
    pub video: bool,
}

impl Default for Modalities {
    fn default() -> Self {
        Self { text: true, image: false, pdf: false, audio: false, video: false }
    }
}

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Uncached input.
    pub input: f64,
    /// Output, reasoning included.
    pub output: f64,
    /// Input read from a cache.
    pub cache_read: f64,
    /// Input written to a cache.
    pub cache_write: f64,
}

/// How long each wait of a request may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands, TLS included.
    pub connect: Duration,
    /// From sending the request to the head of the answer.
    pub first_byte: Duration,
    /// Between two pieces of the answer, keep-alives included.
    pub idle: Duration,
    /// For the whole answer.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    /// Reasoning models stay silent for minutes, so silence is given five; an
    /// hour for a whole answer only stops servers that send keep-alives for ever.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(300),
            total: Some(Duration::from_secs(3600)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        let mut model = Model::new("openai", "gpt", Protocol::OpenAiChat, "https://x/v1");
        model.api_key = Some("sk-very-secret\n".into());
        let key = model.api_key.clone().unwrap();
        assert_eq!(key.expose(), "sk-very-secret");
        assert!(!format!("{model:?} {key} {key:?}").contains("very"));
    }
}
