//! OpenAI: ChatGPT accounts can be used instead of a key.

use codewright_llm::Protocol;

use super::{PLAIN, Subscription, Vendor};

/// The address for ChatGPT accounts.
const CODEX_URL: &str = "https://chatgpt.com/backend-api/codex";

pub(super) const VENDOR: Vendor = Vendor {
    subscription: Some(Subscription {
        provider: "openai",
        url: |_| CODEX_URL.to_owned(),
        protocol: |_| Some(Protocol::OpenAiResponses),
        includes,
    }),
    ..PLAIN
};

/// Whether ChatGPT accounts include a model: those of OpenAI's own agent, which are GPT-5.2 and later except the
/// ones that only the API offers.
fn includes(model: &str) -> bool {
    const API_ONLY: [&str; 3] = ["pro", "nano", "chat"];
    let Some(name) = model.strip_prefix("gpt-") else { return false };
    let mut words = name.split('-');
    let (major, minor) = words.next().and_then(|version| version.split_once('.')).unwrap_or_default();
    let version = major.parse::<u32>().ok().zip(minor.parse::<u32>().ok());
    version.is_some_and(|version| version >= (5, 2)) && !words.any(|word| API_ONLY.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chatgpt_accounts_include_the_models_of_an_agent() {
        for (model, expected) in [
            ("gpt-5.2", true),
            ("gpt-5.3-codex", true),
            ("gpt-5.4-mini", true),
            ("gpt-5.10-sol", true),
            ("gpt-5.4-nano", false),
            ("gpt-5.5-pro", false),
            ("gpt-5.3-chat-latest", false),
            ("gpt-5", false),
            ("gpt-4.1", false),
            ("o3", false),
        ] {
            assert_eq!(includes(model), expected, "{model}");
        }
    }
}
