//! GitLab's gateway to models, and the access tokens for it.
//!
//! A GitLab instance issues short-lived access tokens for its users, and the gateway forwards
//! requests to the makers of the models. A token is kept in memory only. One request fetches it
//! while the others wait, and it is replaced before it expires or when the gateway rejects it.

use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::oauth::SignIn;
use crate::{Error, Protocol, Secret};

/// The gateway's URL, unless a company runs its own.
pub const GATEWAY: &str = "https://cloud.gitlab.com";
/// The first version of OpenAI's models that uses the Responses protocol.
const RESPONSES_SINCE: (u32, u32) = (5, 6);

/// An account that access tokens can be fetched for. Clones share the token.
#[derive(Clone)]
pub struct GitLab(Arc<Inner>);

struct Inner {
    instance: String,
    who: Who,
    features: Map<String, Value>,
    /// Locked while a token is fetched, so that concurrent requests fetch only one.
    access_token: tokio::sync::Mutex<Option<AccessToken>>,
}

/// The identity of the user.
#[derive(Debug, Clone)]
pub enum Who {
    /// A personal access token.
    Token(Secret),
    /// A sign-in to the provider of this name.
    SignedIn(SignIn, String),
}

/// An access token for the gateway.
pub(crate) struct AccessToken {
    /// The `authorization` header.
    pub(crate) bearer: HeaderValue,
    /// The other headers that the gateway needs.
    pub(crate) headers: HeaderMap,
    pub(crate) stale: Instant,
}

impl GitLab {
    /// Creates an account on an instance; `features` are the feature flags to request.
    ///
    /// # Errors
    ///
    /// Fails if the instance's URL is invalid or not secure.
    pub fn new(instance: &str, who: Who, features: Map<String, Value>) -> Result<Self, Error> {
        let instance = crate::oauth::origin(instance, "a GitLab instance")?;
        Ok(Self(Arc::new(Inner { instance, who, features, access_token: tokio::sync::Mutex::new(None) })))
    }

    /// Returns the instance's URL, without a trailing slash.
    pub(crate) fn instance(&self) -> &str {
        &self.0.instance
    }

    pub(crate) fn features(&self) -> &Map<String, Value> {
        &self.0.features
    }

    /// Returns the token that identifies the user to the instance.
    pub(crate) async fn token(&self) -> Result<Secret, Error> {
        match &self.0.who {
            Who::Token(token) => Ok(token.clone()),
            Who::SignedIn(sign_in, provider) => Ok(sign_in.tokens(provider).await?.access),
        }
    }

    /// Locks the cached access token. The caller may replace it.
    pub(crate) async fn access_token(&self) -> tokio::sync::MutexGuard<'_, Option<AccessToken>> {
        self.0.access_token.lock().await
    }

    /// Discards the cached token if it is the rejected one; another request may have replaced it.
    pub(crate) async fn forget(&self, rejected: &HeaderValue) {
        let mut cached = self.access_token().await;
        if cached.as_ref().is_some_and(|token| token.bearer == rejected) {
            *cached = None;
        }
    }
}

impl PartialEq for GitLab {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for GitLab {}

impl std::fmt::Debug for GitLab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GitLab").field(&self.0.instance).finish()
    }
}

/// How to reach a model through the gateway.
#[derive(Debug, PartialEq, Eq)]
pub struct Reached {
    /// The protocol of the model's maker.
    pub protocol: Protocol,
    /// The maker's name for the model.
    pub api_id: String,
    /// The maker's path under the gateway's URL.
    pub path: &'static str,
}

/// Returns how to reach a model. Names that GitLab does not list are passed on unchanged.
#[must_use]
pub fn reached(id: &str) -> Reached {
    let name = id.strip_prefix("duo-chat-").unwrap_or(id);
    let (protocol, path) = match name.strip_prefix("gpt-") {
        Some(version) => {
            let responses = version.contains("codex") || number(version) >= RESPONSES_SINCE;
            let protocol = if responses { Protocol::OpenAiResponses } else { Protocol::OpenAiChat };
            (protocol, "ai/v1/proxy/openai/v1")
        }
        None => (Protocol::Anthropic, "ai/v1/proxy/anthropic/v1"),
    };
    let dated = DATED.iter().find(|(name, _)| *name == id).map(|(_, dated)| (*dated).to_owned());
    let api_id = dated.unwrap_or_else(|| match (id.strip_prefix("duo-chat-"), protocol) {
        (None, _) => id.to_owned(),
        (Some(name), Protocol::Anthropic) => format!("claude-{name}"),
        (Some(name), _) => dotted(name),
    });
    Reached { protocol, api_id, path }
}

/// Models whose names at their makers contain a date.
const DATED: [(&str, &str); 8] = [
    ("duo-chat-opus-4-5", "claude-opus-4-5-20251101"),
    ("duo-chat-sonnet-4-5", "claude-sonnet-4-5-20250929"),
    ("duo-chat-haiku-4-5", "claude-haiku-4-5-20251001"),
    ("duo-chat-gpt-5-1", "gpt-5.1-2025-11-13"),
    ("duo-chat-gpt-5-2", "gpt-5.2-2025-12-11"),
    ("duo-chat-gpt-5-4", "gpt-5.4-2026-03-05"),
    ("duo-chat-gpt-5-5", "gpt-5.5-2026-04-23"),
    ("duo-chat-gpt-5-mini", "gpt-5-mini-2025-08-07"),
];

/// Parses the major and minor version of `5-4-mini`.
fn number(version: &str) -> (u32, u32) {
    let mut words = version.split(['-', '.']).map(|word| word.parse().ok());
    (words.next().flatten().unwrap_or(0), words.next().flatten().unwrap_or(0))
}

/// Converts `gpt-5-4-mini` to OpenAI's spelling.
fn dotted(name: &str) -> String {
    let words: Vec<&str> = name.splitn(4, '-').collect();
    match words[..] {
        [gpt, major, minor, ref rest @ ..] if minor.parse::<u32>().is_ok() => {
            let rest: String = rest.iter().map(|word| format!("-{word}")).collect();
            format!("{gpt}-{major}.{minor}{rest}")
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_model_maps_to_its_makers_name() {
        let models = crate::catalog::Catalog::embedded().models("gitlab").unwrap();
        assert!(models.len() > 20);
        for model in models {
            let reached = reached(&model.id);
            let is_claude = model.name.contains("Claude");
            assert_eq!(reached.protocol == Protocol::Anthropic, is_claude, "{}", model.id);
            let maker = if is_claude { "claude-" } else { "gpt-" };
            assert!(reached.api_id.starts_with(maker), "{}: {}", model.id, reached.api_id);
        }
    }

    #[test]
    fn names_and_protocols_are_those_of_the_makers() {
        use Protocol::{Anthropic, OpenAiChat, OpenAiResponses};
        for (id, protocol, api_id) in [
            ("duo-chat-sonnet-4-5", Anthropic, "claude-sonnet-4-5-20250929"),
            ("duo-chat-opus-4-7", Anthropic, "claude-opus-4-7"),
            ("duo-chat-sonnet-5", Anthropic, "claude-sonnet-5"),
            ("duo-chat-gpt-5-1", OpenAiChat, "gpt-5.1-2025-11-13"),
            ("duo-chat-gpt-5-4-mini", OpenAiChat, "gpt-5.4-mini"),
            ("duo-chat-gpt-5-codex", OpenAiResponses, "gpt-5-codex"),
            ("duo-chat-gpt-5-3-codex", OpenAiResponses, "gpt-5.3-codex"),
            ("duo-chat-gpt-5-6-luna", OpenAiResponses, "gpt-5.6-luna"),
            ("gpt-4o", OpenAiChat, "gpt-4o"),
            ("claude-opus-4-6", Anthropic, "claude-opus-4-6"),
        ] {
            let found = reached(id);
            assert_eq!((found.protocol, found.api_id.as_str()), (protocol, api_id), "{id}");
        }
    }

    #[test]
    fn an_instance_must_be_secure_and_its_token_is_not_printed() {
        let who = || Who::Token("glpat-canary".into());
        let gitlab = GitLab::new("https://git.example.org/group/", who(), Map::new()).unwrap();
        assert_eq!(gitlab.instance(), "https://git.example.org");
        assert!(!format!("{gitlab:?} {:?}", who()).contains("canary"));
        for bad in ["http://git.example.org", "git", "ftp://x", "https://me:glpat-canary@x"] {
            let error = GitLab::new(bad, who(), Map::new()).unwrap_err().to_string();
            assert!(error.contains("GitLab instance") && !error.contains("canary"), "{bad}: {error}");
        }
        GitLab::new("http://127.0.0.1:9", who(), Map::new()).unwrap();
    }
}
