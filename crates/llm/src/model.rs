//! A model: its provider, address, protocol, capabilities and limits.
//!
//! Plain data. The caller builds it from the configuration and the catalog; this crate looks
//! nothing up.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::gitlab::GitLab;
use crate::oauth::SignIn;
use crate::{Aws, CustomFetch, GoogleCredentials, Quirk, Secret};

/// The format of request bodies and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// OpenAI Chat Completions and its imitations.
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

/// How a request is authenticated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Auth {
    /// The key in the header that the protocol's own servers expect.
    #[default]
    Protocol,
    /// The key as `authorization: Bearer …`.
    Bearer,
    /// The key in a header of this name, such as `api-key`.
    Header(&'static str),
    /// The key as a bearer token if there is one, otherwise a signature with AWS keys.
    Aws(Aws),
    /// The token of a sign-in, refreshed when needed.
    SignIn {
        /// The store of the tokens.
        sign_in: SignIn,
        /// The name under which the tokens are stored.
        provider: String,
    },
    /// An access token from Google's credentials, as `authorization: Bearer …`. The key is not
    /// used.
    Google(GoogleCredentials),
    /// An access token for GitLab's gateway, as `authorization: Bearer …`. The key is not used.
    GitLab(GitLab),
}

/// The path under the base URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Endpoint {
    /// The protocol's path.
    #[default]
    Protocol,
    /// Azure: the protocol's path under `v1`, with the API version in the query.
    Azure {
        /// The version, such as `v1` or `2025-04-01-preview`.
        api_version: String,
    },
    /// Vertex AI with another maker's protocol: the model is in the path and not in the body.
    Vertex,
}

/// A model with everything that a request needs.
#[derive(Debug, Clone)]
pub struct Model {
    /// The provider's id; errors contain it.
    pub provider_id: String,
    /// The model's name in the configuration.
    pub id: String,
    /// The model's name on the wire.
    pub api_id: String,
    /// The display name.
    pub name: String,
    /// The wire protocol.
    pub protocol: Protocol,
    /// The URL to which the protocol's path is appended, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The path under the base URL.
    pub endpoint: Endpoint,
    /// The key, if the provider needs one.
    pub api_key: Option<Secret>,
    /// How requests are authenticated.
    pub auth: Auth,
    /// Extra headers. They replace the protocol's, except that `anthropic-beta` lists are joined.
    pub headers: Vec<(String, String)>,
    /// Merged into each request body last; `null` removes a field. `Request::options` describes the
    /// spellings.
    pub options: Map<String, Value>,
    /// The field of a chat message for reasoning, if it is not the usual one.
    pub thought_field: Option<String>,
    /// Advice for the user when the credentials are rejected, appended to the server's message.
    pub auth_advice: Option<String>,
    /// Server deviations from the protocol.
    pub quirks: Vec<Quirk>,
    /// Token limits; zero means unknown.
    pub limits: Limits,
    /// The model's capabilities.
    pub capabilities: Capabilities,
    /// The user's limits for pictures.
    pub pictures: PictureLimits,
    /// The price.
    pub cost: Cost,
    /// The price of requests with more tokens than this.
    pub long_cost: Option<(u64, Cost)>,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// Sends the requests, if this program does not do it itself.
    pub fetch: Option<CustomFetch>,
}

impl Model {
    /// Creates a text model with default limits and one name for all purposes.
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
            auth_advice: None,
            quirks: Vec::new(),
            limits: Limits::default(),
            capabilities: Capabilities::default(),
            pictures: PictureLimits::default(),
            cost: Cost::default(),
            long_cost: None,
            timeouts: Timeouts::default(),
            fetch: None,
        }
    }
}

impl Model {
    /// Returns whether requests use a ChatGPT account.
    ///
    /// OpenAI's server for these accounts expects the system prompt as `instructions` and accepts
    /// no system messages.
    #[must_use]
    pub fn is_codex(&self) -> bool {
        matches!(&self.auth, Auth::SignIn { provider, .. } if provider == "openai")
    }
}

/// The token limits of a model; zero means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of a conversation.
    pub context: u64,
    /// Tokens of one answer.
    pub output: u64,
    /// Tokens of one request, if that limit is lower than `context`.
    pub input: u64,
}

/// The capabilities of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Accepts a sampling temperature.
    pub temperature: bool,
    /// Reasons before it answers.
    pub reasoning: bool,
    /// Accepts files.
    pub attachment: bool,
    /// Calls tools.
    pub tool_call: bool,
    /// The types of content that it accepts.
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

/// The user's limits for pictures. The provider's may be lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureLimits {
    /// Whether larger pictures are made smaller. Otherwise they are left out.
    pub resize: bool,
    /// The largest width in pixels.
    pub width: u32,
    /// The largest height in pixels.
    pub height: u32,
    /// The largest size in base64.
    pub base64_bytes: usize,
}

impl Default for PictureLimits {
    fn default() -> Self {
        Self { resize: true, width: 2000, height: 2000, base64_bytes: 5 * 1024 * 1024 }
    }
}

/// Types of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modalities {
    /// Text.
    pub text: bool,
    /// Images.
    pub image: bool,
    /// PDF documents.
    pub pdf: bool,
    /// Audio.
    pub audio: bool,
    /// Video.
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

/// The timeouts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Connecting, including TLS.
    pub connect: Duration,
    /// From sending the request to the answer's headers.
    pub first_byte: Duration,
    /// Between two pieces of the answer, including keep-alives.
    pub idle: Duration,
    /// The whole answer.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    /// Reasoning models may send nothing for minutes, so the idle timeout is five minutes. The
    /// total of one hour only stops servers that send keep-alives without end.
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
