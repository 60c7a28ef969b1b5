//! GitHub Copilot: a sign-in replaces the key, and its newer models have another protocol.

use codewright_llm::Protocol;
use codewright_llm::oauth::copilot_url;

use super::{PLAIN, Subscription, Vendor};

pub(super) const VENDOR: Vendor = Vendor {
    subscription: Some(Subscription {
        provider: "github-copilot",
        url: copilot_url,
        protocol: |model| has_responses(model).then_some(Protocol::OpenAiResponses),
        includes: |_| true,
    }),
    ..PLAIN
};

fn has_responses(model: &str) -> bool {
    let Some(version) = model.strip_prefix("gpt-") else { return false };
    let digits = version.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse::<u32>().is_ok_and(|version| version >= 5) && !model.starts_with("gpt-5-mini")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_models_have_the_responses_protocol() {
        for (model, expected) in [
            ("gpt-5", true),
            ("gpt-5.3-codex", true),
            ("gpt-5-mini", false),
            ("gpt-4.1", false),
            ("claude-sonnet-4.5", false),
            ("gpt-oss", false),
        ] {
            assert_eq!(has_responses(model), expected, "{model}");
        }
    }
}
