//! The providers and models that are known without a network request.
//!
//! There are two sources. The rows of `providers.rs` describe how to connect to a provider: its
//! protocol, its URL and the variables with its key. The [`Catalog`] holds the data of models.dev:
//! names, limits and prices. If a provider is in both, the row decides about the connection and the
//! catalog about the models. Without a row, the name of the provider's library decides about the
//! connection.

use crate::{Protocol, Quirk};

mod book;
mod facts;
mod providers;
mod variants;

pub use book::{Catalog, LIMIT_BYTES};
pub use facts::{
    CostFacts, Kinds, LONG_TOKENS, LimitFacts, ModelFacts, ProviderFacts, Reach, ReasoningOption, Tier,
    TierFacts, modalities,
};
pub use variants::{Thinker, variants};

/// How to connect to a provider.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProviderRow {
    /// The name in configuration files.
    pub id: &'static str,
    /// The display name.
    pub name: &'static str,
    /// The environment variables for its key. The first one that is set is used.
    pub env: &'static [&'static str],
    /// The URL to which the protocol's path is appended; empty if each user has a different one.
    pub base_url: &'static str,
    /// The library name in configuration files.
    pub npm: &'static str,
    /// The wire protocol.
    pub protocol: Protocol,
    /// Server deviations from the protocol.
    pub quirks: &'static [Quirk],
    /// Runs on the user's machine and needs no key.
    pub local: bool,
}

/// Returns all rows, in display order.
#[must_use]
pub fn providers() -> &'static [ProviderRow] {
    providers::PROVIDERS
}

/// The providers that most users have, most used first.
const POPULAR: [&str; 14] = [
    "anthropic",
    "openai",
    "google",
    "openrouter",
    "github-copilot",
    "xai",
    "deepseek",
    "mistral",
    "groq",
    "amazon-bedrock",
    "azure",
    "google-vertex",
    "moonshotai",
    "zai",
];

/// Returns the position of a provider in lists, by use. Those that few users have share the last one.
#[must_use]
pub fn popularity(id: &str) -> usize {
    POPULAR.iter().position(|popular| *popular == id).unwrap_or(POPULAR.len())
}

/// Returns the row of the provider named `id`.
#[must_use]
pub fn provider(id: &str) -> Option<&'static ProviderRow> {
    providers().iter().find(|row| row.id == id)
}

/// Returns the quirks of a provider, from its id and the library that the configuration names.
#[must_use]
pub fn quirks(id: &str, npm: Option<&str>) -> Vec<Quirk> {
    let name = npm.map(unpinned);
    let by_id = provider(id).filter(|row| name.is_none_or(|name| name == row.npm));
    let of_library = |row: &&ProviderRow| name == Some(row.npm) && row.npm != COMPATIBLE;
    let row = by_id.or_else(|| providers().iter().find(of_library));
    // An unknown server may run any model, including small ones.
    let mut quirks = row.map_or_else(|| UNKNOWN.to_vec(), |row| row.quirks.to_vec());
    if names_litellm(id) {
        quirks.push(Quirk::NoopTool);
    }
    quirks
}

/// Reports whether the name of a provider, a model or a server names a LiteLLM proxy.
#[must_use]
pub fn names_litellm(name: &str) -> bool {
    name.to_ascii_lowercase().contains("litellm")
}

/// The library for GitLab's gateway to models.
pub const GITLAB: &str = "gitlab-ai-provider";
/// The library for Cloudflare's gateway to models.
pub const CLOUDFLARE_GATEWAY: &str = "ai-gateway-provider";
const COMPATIBLE: &str = "@ai-sdk/openai-compatible";
const UNKNOWN: &[Quirk] = &[Quirk::PrintedCalls];

/// Returns the protocol of a library that a configuration file names, if the library is supported.
#[must_use]
pub fn protocol_of_npm(npm: &str) -> Option<Protocol> {
    match unpinned(npm) {
        "@ai-sdk/anthropic" | "@ai-sdk/google-vertex/anthropic" => Some(Protocol::Anthropic),
        // The protocol of a model depends on its maker.
        GITLAB | "@gitlab/gitlab-ai-provider" => Some(Protocol::Anthropic),
        "@ai-sdk/amazon-bedrock" => Some(Protocol::Bedrock),
        "@ai-sdk/cohere" => Some(Protocol::Cohere),
        "@ai-sdk/openai" | "@ai-sdk/azure" | "@ai-sdk/xai" => Some(Protocol::OpenAiResponses),
        "@ai-sdk/google" | "@ai-sdk/google-vertex" => Some(Protocol::Gemini),
        name if CHAT_LIBRARIES.contains(&name) => Some(Protocol::OpenAiChat),
        _ => None,
    }
}

/// Returns the name of a library without a pinned version.
#[must_use]
pub fn unpinned(npm: &str) -> &str {
    match npm.rfind('@') {
        // The first `@` belongs to the name.
        Some(at) if at > 0 => &npm[..at],
        _ => npm,
    }
}

/// Libraries whose servers use the chat completions protocol and its usual path.
const CHAT_LIBRARIES: &[&str] = &[
    "@ai-sdk/openai-compatible",
    "@ai-sdk/github-copilot",
    "@ai-sdk/alibaba",
    "@ai-sdk/cerebras",
    "@ai-sdk/deepinfra",
    "@ai-sdk/deepseek",
    "@ai-sdk/fireworks",
    "@ai-sdk/gateway",
    "@ai-sdk/groq",
    "@ai-sdk/mistral",
    "@ai-sdk/moonshotai",
    "@ai-sdk/perplexity",
    "@ai-sdk/togetherai",
    "@ai-sdk/vercel",
    "@aihubmix/ai-sdk-provider",
    "ai-gateway-provider",
    "@openrouter/ai-sdk-provider",
    "ai-sdk-ollama",
    "ollama-ai-provider",
    "ollama-ai-provider-v2",
    "venice-ai-sdk-provider",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_urls_are_valid() {
        let ids: BTreeSet<&str> = providers().iter().map(|row| row.id).collect();
        assert_eq!(ids.len(), providers().len());
        for row in providers() {
            // Only these URLs contain a name of the user's.
            if !["azure", "cloudflare-ai-gateway", "snowflake-cortex"].contains(&row.id) {
                let url = reqwest::Url::parse(row.base_url).unwrap();
                assert_eq!(url.scheme(), if row.local { "http" } else { "https" }, "{}", row.id);
            }
            assert_eq!(row.env.is_empty(), row.local, "{}", row.id);
            assert_eq!(protocol_of_npm(row.npm), Some(row.protocol), "{}", row.id);
        }
    }

    #[test]
    fn protocols_are_found_by_library_name() {
        for (npm, expected) in [
            ("@ai-sdk/openai-compatible", Some(Protocol::OpenAiChat)),
            ("@ai-sdk/openai", Some(Protocol::OpenAiResponses)),
            ("@ai-sdk/azure", Some(Protocol::OpenAiResponses)),
            ("@ai-sdk/xai", Some(Protocol::OpenAiResponses)),
            ("@ai-sdk/anthropic", Some(Protocol::Anthropic)),
            ("@ai-sdk/anthropic@2.0.1", Some(Protocol::Anthropic)),
            ("@openrouter/ai-sdk-provider", Some(Protocol::OpenAiChat)),
            ("@ai-sdk/amazon-bedrock", Some(Protocol::Bedrock)),
            ("@ai-sdk/cohere", Some(Protocol::Cohere)),
            ("@ai-sdk/google", Some(Protocol::Gemini)),
            ("@ai-sdk/google-vertex@3.0.1", Some(Protocol::Gemini)),
            ("@ai-sdk/google-vertex/anthropic", Some(Protocol::Anthropic)),
            ("@ai-sdk/unheard-of", None),
            ("", None),
        ] {
            assert_eq!(protocol_of_npm(npm), expected, "{npm}");
        }
    }

    #[test]
    fn quirks_come_from_the_row_or_the_library() {
        use Quirk::{MistralIds, MistralMessages, NoopTool, PrintedCalls, ReasoningDetails, ReasoningField};
        for (id, npm, expected) in [
            ("mistral", None, &[MistralIds, MistralMessages][..]),
            ("mine", Some("@ai-sdk/mistral@2.0.0"), &[MistralIds, MistralMessages]),
            ("mistral", Some(COMPATIBLE), &[PrintedCalls]),
            ("openrouter", None, &[ReasoningField, ReasoningDetails]),
            ("groq", None, &[ReasoningField]),
            ("deepseek", None, &[]),
            ("openai", None, &[]),
            ("ollama", None, &[PrintedCalls]),
            ("mine", Some(COMPATIBLE), &[PrintedCalls]),
            ("my-LiteLLM", Some(COMPATIBLE), &[PrintedCalls, NoopTool]),
        ] {
            assert_eq!(quirks(id, npm), expected, "{id} {npm:?}");
        }
    }

    #[test]
    fn local_servers_use_their_default_ports() {
        for (id, port) in [("ollama", 11434), ("lmstudio", 1234), ("llama.cpp", 8080), ("vllm", 8000)] {
            let row = provider(id).unwrap();
            assert!(row.local && row.base_url.contains(&format!("127.0.0.1:{port}/")), "{id}");
        }
    }
}
