//! GitLab's gateway to models: a pass that an instance gives for its user's token.
//!
//! The instance says who may ask, the gateway asks the makers' own servers. A pass is kept in
//! memory only, fetched by one request while the others wait for it, replaced before its end, and
//! dropped when the gateway refuses it.

use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::oauth::SignIn;
use crate::{Error, Protocol, Secret};

/// Where the gateway is, unless a company runs its own.
pub const GATEWAY: &str = "https://cloud.gitlab.com";
/// From this version on OpenAI's models are asked by Responses.
const RESPONSES_SINCE: (u32, u32) = (5, 6);

/// What passes are had for; clones share them.
#[derive(Clone)]
pub struct GitLab(Arc<Inner>);

struct Inner {
    instance: String,
    who: Who,
    features: Map<String, Value>,
    /// Held while a pass is fetched, so that requests beside each other fetch one.
    pass: tokio::sync::Mutex<Option<Pass>>,
}

/// Who asks for a pass.
#[derive(Debug, Clone)]
pub enum Who {
    /// The holder of a personal access token.
    Token(Secret),
    /// Who signed in to the provider of this name.
    SignedIn(SignIn, String),
}

/// What opens the gateway, and when it is to be replaced.
pub(crate) struct Pass {
    /// The token, as it is sent.
    pub(crate) bearer: HeaderValue,
    /// What the gateway wants to be told besides.
    pub(crate) headers: HeaderMap,
    pub(crate) stale: Instant,
}

impl GitLab {
    /// Passes of an instance for a user; `features` are the instance's switches to ask for.
    ///
    /// # Errors
    /// When the instance's address is not secure, or not one.
    pub fn new(instance: &str, who: Who, features: Map<String, Value>) -> Result<Self, Error> {
        let instance = crate::oauth::origin(instance, "a GitLab instance")?;
        Ok(Self(Arc::new(Inner { instance, who, features, pass: tokio::sync::Mutex::new(None) })))
    }

    /// The instance's address, without a slash at its end.
    pub(crate) fn instance(&self) -> &str {
        &self.0.instance
    }

    pub(crate) fn features(&self) -> &Map<String, Value> {
        &self.0.features
    }

    /// The token that the instance knows the user by.
    pub(crate) async fn token(&self) -> Result<Secret, Error> {
        match &self.0.who {
            Who::Token(token) => Ok(token.clone()),
            Who::SignedIn(sign_in, provider) => Ok(sign_in.tokens(provider).await?.access),
        }
    }

    /// The kept pass; whoever holds it decides whether to fetch another.
    pub(crate) async fn pass(&self) -> tokio::sync::MutexGuard<'_, Option<Pass>> {
        self.0.pass.lock().await
    }

    /// Drops the kept pass if it is the refused one; another request may have replaced it already.
    pub(crate) async fn forget(&self, refused: &HeaderValue) {
        let mut pass = self.pass().await;
        if pass.as_ref().is_some_and(|pass| pass.bearer == refused) {
            *pass = None;
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

/// A model as the gateway knows it.
#[derive(Debug, PartialEq, Eq)]
pub struct Reached {
    /// The protocol of its maker.
    pub protocol: Protocol,
    /// Its maker's name for it.
    pub api_id: String,
    /// The folder of its maker below the gateway.
    pub path: &'static str,
}

/// How the gateway reaches a model of GitLab's list; another name is taken for its maker's own.
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
    let known = DATED.iter().find(|(known, _)| *known == id).map(|(_, dated)| (*dated).to_owned());
    let api_id = known.unwrap_or_else(|| match (id.strip_prefix("duo-chat-"), protocol) {
        (None, _) => id.to_owned(),
        (Some(name), Protocol::Anthropic) => format!("claude-{name}"),
        (Some(name), _) => dotted(name),
    });
    Reached { protocol, api_id, path }
}

/// Models that their makers know by a day.
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

/// Major and minor of `5-4-mini`.
fn number(version: &str) -> (u32, u32) {
    let mut words = version.split(['-', '.']).map(|word| word.parse().ok());
    (words.next().flatten().unwrap_or(0), words.next().flatten().unwrap_or(0))
}

/// `gpt-5-4-mini` as OpenAI writes it.
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
    fn every_model_of_the_list_is_its_makers() {
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
    fn an_instance_must_be_secure_and_its_token_stays_unseen() {
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
