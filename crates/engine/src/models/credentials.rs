//! The credentials of providers: stored keys, and sign-ins that replace a key.

use codewright_config::Env;
use codewright_llm::gitlab::Who;
use codewright_llm::oauth::SignIn;
use codewright_llm::vault::{Credential, Stored};
use codewright_llm::{Auth, Model};

/// The stored credentials of all providers.
#[derive(Default)]
pub(crate) struct Credentials {
    pub(crate) stored: Stored,
    /// Without it, stored sign-ins are not used.
    pub(crate) sign_in: Option<SignIn>,
}

/// The two places that keys are read from.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) credentials: &'a Credentials,
    pub(crate) env: &'a Env,
}

/// A sign-in that authorizes requests to a provider.
#[derive(Debug, Clone)]
pub(super) struct SignedIn {
    pub(super) sign_in: SignIn,
    pub(super) provider: String,
    /// The address that belongs to the sign-in.
    pub(super) url: Option<String>,
}

impl Credentials {
    /// The stored key of a provider.
    pub(super) fn key(&self, provider: &str) -> Option<String> {
        match self.stored.get(provider)? {
            Credential::Api { key, .. } => Some(key.expose().to_owned()),
            Credential::OAuth(_) | Credential::WellKnown { .. } => None,
        }
    }

    /// A setting that is stored with a key or a sign-in, such as an account.
    ///
    /// The first of `sign_in_fields` with a text is used for a sign-in.
    pub(super) fn note(&self, provider: &str, key_field: &str, sign_in_fields: &[&str]) -> Option<String> {
        let note = match self.stored.get(provider)? {
            Credential::Api { extra, .. } => extra.get("metadata")?.get(key_field)?.as_str(),
            Credential::OAuth(tokens) => sign_in_fields.iter().find_map(|field| tokens.text(field)),
            Credential::WellKnown { .. } => None,
        };
        note.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

impl SignedIn {
    /// The user, for GitLab's gateway.
    pub(super) fn who(self) -> Who {
        Who::SignedIn(self.sign_in, self.provider)
    }

    /// Authorizes requests to a provider with the sign-in. A configured address is kept.
    pub(super) fn apply(&self, template: &mut Model, is_address_configured: bool) {
        if let Some(url) = self.url.as_ref().filter(|_| !is_address_configured) {
            template.base_url.clone_from(url);
        }
        template.api_key = None;
        template.auth = Auth::SignIn { sign_in: self.sign_in.clone(), provider: self.provider.clone() };
    }
}
