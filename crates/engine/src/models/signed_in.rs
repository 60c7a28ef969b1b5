//! What stands in for a key: the stored credentials, and sign-ins that a provider is used by.

use codewright_llm::gitlab::Who;
use codewright_llm::oauth::{SignIn, copilot_url, is_known};
use codewright_llm::vault::{Credential, Stored};
use codewright_llm::{Auth, Cost, Model, Protocol};

/// Where OpenAI takes ChatGPT accounts.
const CODEX_URL: &str = "https://chatgpt.com/backend-api/codex";

/// The credentials that models are opened with.
#[derive(Default)]
pub(crate) struct Credentials {
    pub(crate) stored: Stored,
    /// Without it, sign-ins are as good as not there.
    pub(crate) sign_in: Option<SignIn>,
}

/// A sign-in that a provider's models are asked with.
#[derive(Debug, Clone)]
pub(crate) struct SignedIn {
    sign_in: SignIn,
    provider: String,
    /// The address that comes with the sign-in.
    url: Option<String>,
}

impl Credentials {
    /// A key that a user gave when signing in.
    pub(super) fn key(&self, provider: &str) -> Option<String> {
        match self.stored.get(provider)? {
            Credential::Api { key, .. } => Some(key.expose().to_owned()),
            Credential::OAuth(_) | Credential::WellKnown { .. } => None,
        }
    }

    /// What was noted when a key was stored or somebody signed in, such as an account.
    pub(super) fn note(&self, provider: &str, name: &str) -> Option<String> {
        let noted = match self.stored.get(provider)? {
            Credential::Api { extra, .. } => extra.get("metadata")?.get(name)?.as_str(),
            Credential::OAuth(tokens) if name == "account" => tokens.text("accountId"),
            Credential::OAuth(tokens) if name == "instanceUrl" => {
                tokens.text("enterpriseUrl").or_else(|| tokens.text(name))
            }
            Credential::OAuth(tokens) => tokens.text(name),
            Credential::WellKnown { .. } => None,
        };
        noted.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A sign-in that requests to the provider can be sent with.
    pub(super) fn signed_in(&self, provider: &str) -> Option<SignedIn> {
        let Some(Credential::OAuth(tokens)) = self.stored.get(provider) else { return None };
        let sign_in = self.sign_in.clone().filter(|_| is_known(provider))?;
        let url = match provider {
            "openai" => Some(CODEX_URL.to_owned()),
            "github-copilot" => Some(copilot_url(tokens)),
            _ => None,
        };
        Some(SignedIn { sign_in, provider: provider.to_owned(), url })
    }

    pub(super) fn has(&self, provider: &str) -> bool {
        self.key(provider).is_some() || self.signed_in(provider).is_some()
    }
}

impl SignedIn {
    /// Who asks GitLab's gateway.
    pub(super) fn who(self) -> Who {
        Who::SignedIn(self.sign_in, self.provider)
    }

    /// Makes what a provider's models have in common ask with the sign-in. An address that was
    /// configured stays.
    pub(super) fn apply(&self, template: &mut Model, is_address_configured: bool) {
        if let Some(url) = self.url.as_ref().filter(|_| !is_address_configured) {
            template.base_url.clone_from(url);
        }
        template.api_key = None;
        template.auth = Auth::SignIn { sign_in: self.sign_in.clone(), provider: self.provider.clone() };
        if self.provider == "openai" {
            template.protocol = Protocol::OpenAiResponses;
        }
    }
}

/// Makes one model fit the sign-in it is asked with: what a subscription pays for costs nothing
/// more, and Copilot has its newer models behind another protocol.
pub(super) fn fit(model: &mut Model) {
    if is_paid_for(model) {
        (model.cost, model.long_cost) = (Cost::default(), None);
    }
    if account(model) == Some("github-copilot") && copilot_wants_responses(&model.api_id) {
        model.protocol = Protocol::OpenAiResponses;
    }
}

/// Whether a subscription pays for what the model is asked.
pub(super) fn is_paid_for(model: &Model) -> bool {
    matches!(account(model), Some("openai" | "github-copilot"))
}

/// Whether the model is one that the sign-in it is asked with can be expected to take.
pub(super) fn takes(model: &Model) -> bool {
    account(model) != Some("openai") || chatgpt_takes(&model.api_id)
}

/// The provider whose account the model is asked with.
fn account(model: &Model) -> Option<&str> {
    match &model.auth {
        Auth::SignIn { provider, .. } => Some(provider),
        Auth::Protocol
        | Auth::Bearer
        | Auth::Header(_)
        | Auth::Aws(_)
        | Auth::Google(_)
        | Auth::GitLab(_) => None,
    }
}

/// ChatGPT accounts take the models of OpenAI's own agent, which are GPT-5.2 and newer but for
/// those that only the API sells.
fn chatgpt_takes(model: &str) -> bool {
    const API_ONLY: [&str; 3] = ["pro", "nano", "chat"];
    let Some(name) = model.strip_prefix("gpt-") else { return false };
    let mut words = name.split('-');
    let (major, minor) = words.next().and_then(|version| version.split_once('.')).unwrap_or_default();
    let version = major.parse::<u32>().ok().zip(minor.parse::<u32>().ok());
    version.is_some_and(|version| version >= (5, 2)) && !words.any(|word| API_ONLY.contains(&word))
}

fn copilot_wants_responses(model: &str) -> bool {
    let Some(version) = model.strip_prefix("gpt-") else { return false };
    let digits = version.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse::<u32>().is_ok_and(|version| version >= 5) && !model.starts_with("gpt-5-mini")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chatgpt_accounts_take_the_models_of_an_agent() {
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
            assert_eq!(chatgpt_takes(model), expected, "{model}");
        }
    }

    #[test]
    fn copilot_has_its_newer_models_behind_responses() {
        for (model, expected) in [
            ("gpt-5", true),
            ("gpt-5.3-codex", true),
            ("gpt-5-mini", false),
            ("gpt-4.1", false),
            ("claude-sonnet-4.5", false),
            ("gpt-oss", false),
        ] {
            assert_eq!(copilot_wants_responses(model), expected, "{model}");
        }
    }
}
