//! Providers and models known without asking anyone.
//!
//! Two sources. The rows written here say how a provider is spoken to: its
//! protocol, its address, the variables that hold its key. The [`Catalog`] says
//! what models.dev knows of providers and models: names, limits, prices. Where
//! both speak, the row decides how and the catalog what; a provider without a
//! row is spoken to as its library's name tells.

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

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProviderRow {
    /// The name in configuration files.
    pub id: &'static str,
    /// The name shown to people.
    pub name: &'static str,
    /// Variables that may hold its key, the first one found counting.
    pub env: &'static [&'static str],
    /// The address below which its protocol lives; empty where every user has another.
    pub base_url: &'static str,
    /// The library name configuration files use for it.
    pub npm: &'static str,
    /// The wire protocol it speaks.
    pub protocol: Protocol,
    /// How its servers differ from the protocol.
    pub quirks: &'static [Quirk],
    /// Runs on the user's machine and needs no key.
    pub local: bool,
}

/// Every provider that has a row, in the order they are offered.
#[must_use]
pub fn providers() -> &'static [ProviderRow] {
    providers::PROVIDERS
}

/// The row of the provider named `id`.
#[must_use]
pub fn provider(id: &str) -> Option<&'static ProviderRow> {
    providers().iter().find(|row| row.id == id)
}

/// How the servers of a provider differ from their protocol, given its id and the library a configuration names.
#[must_use]
pub fn quirks(id: &str, npm: Option<&str>) -> Vec<Quirk> {
    let name = npm.map(unpinned);
    let by_id = provider(id).filter(|row| name.is_none_or(|name| name == row.npm));
    let of_library = |row: &&ProviderRow| name == Some(row.npm) && row.npm != COMPATIBLE;
    let row = by_id.or_else(|| providers().iter().find(of_library));
    // A server that nobody described may run any model, small ones among them.
    let mut quirks = row.map_or_else(|| UNKNOWN.to_vec(), |row| row.quirks.to_vec());
    if id.to_ascii_lowercase().contains("litellm") {
        quirks.push(Quirk::NoopTool);
    }
    quirks
}

/// The library for GitLab's gateway to models.
pub const GITLAB: &str = "gitlab-ai-provider";
/// The library for Cloudflare's gateway to models.
pub const CLOUDFLARE_GATEWAY: &str = "ai-gateway-provider";
const COMPATIBLE: &str = "@ai-sdk/openai-compatible";
const UNKNOWN: &[Quirk] = &[Quirk::PrintedCalls];

/// The protocol a library named in a configuration file speaks, if it is one of those built in.
#[must_use]
pub fn protocol_of_npm(npm: &str) -> Option<Protocol> {
    match unpinned(npm) {
        "@ai-sdk/anthropic" | "@ai-sdk/google-vertex/anthropic" => Some(Protocol::Anthropic),
        // Each of its models has a maker's protocol of its own.
        GITLAB | "@gitlab/gitlab-ai-provider" => Some(Protocol::Anthropic),
        "@ai-sdk/amazon-bedrock" => Some(Protocol::Bedrock),
        "@ai-sdk/cohere" => Some(Protocol::Cohere),
        "@ai-sdk/openai" | "@ai-sdk/azure" | "@ai-sdk/xai" => Some(Protocol::OpenAiResponses),
        "@ai-sdk/google" | "@ai-sdk/google-vertex" => Some(Protocol::Gemini),
        name if CHAT_LIBRARIES.contains(&name) => Some(Protocol::OpenAiChat),
        _ => None,
    }
}

/// A library's name without the version that may be pinned behind it.
#[must_use]
pub fn unpinned(npm: &str) -> &str {
    match npm.rfind('@') {
        // The name's own `@` comes first.
        Some(at) if at > 0 => &npm[..at],
        _ => npm,
    }
}

/// Libraries whose servers all answer chat completions at the same path.
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
    fn ids_are_unique_and_addresses_are_addresses() {
        let ids: BTreeSet<&str> = providers().iter().map(|row| row.id).collect();
        assert_eq!(ids.len(), providers().len());
        for row in providers() {
            // Only there does the address hold a name of the user's.
            if !["azure", "cloudflare-ai-gateway", "snowflake-cortex"].contains(&row.id) {
                let url = reqwest::Url::parse(row.base_url).unwrap();
                assert_eq!(url.scheme(), if row.local { "http" } else { "https" }, "{}", row.id);
            }
            assert_eq!(row.env.is_empty(), row.local, "{}", row.id);
            assert_eq!(protocol_of_npm(row.npm), Some(row.protocol), "{}", row.id);
        }
    }

    #[test]
    fn libraries_are_known_by_name() {
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
    fn local_servers_are_where_they_usually_are() {
        for (id, port) in [("ollama", 11434), ("lmstudio", 1234), ("llama.cpp", 8080), ("vllm", 8000)] {
            let row = provider(id).unwrap();
            assert!(row.local && row.base_url.contains(&format!("127.0.0.1:{port}/")), "{id}");
        }
    }
}
