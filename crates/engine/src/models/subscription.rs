//! Sign-ins to subscriptions, and the models that a subscription pays for.

use codewright_llm::oauth::is_known;
use codewright_llm::vault::Credential;
use codewright_llm::{Auth, Cost, Model};

use super::credentials::{Credentials, SignedIn};
use super::vendor::{Subscription, list};

impl Credentials {
    /// The sign-in of a provider, if it can authorize requests.
    pub(super) fn sign_in(&self, provider: &str) -> Option<SignedIn> {
        let Some(Credential::OAuth(tokens)) = self.stored.get(provider) else { return None };
        let sign_in = self.sign_in.clone().filter(|_| is_known(provider))?;
        let url = list::subscription(provider).map(|subscription| (subscription.url)(tokens));
        Some(SignedIn { sign_in, provider: provider.to_owned(), url })
    }

    /// Whether the provider has a key or a sign-in.
    pub(super) fn has(&self, provider: &str) -> bool {
        self.key(provider).is_some() || self.sign_in(provider).is_some()
    }
}

/// Adapts one model to the subscription that pays for it.
pub(super) fn adapt(model: &mut Model) {
    let Some(subscription) = subscription(model) else { return };
    (model.cost, model.long_cost) = (Cost::default(), None);
    if let Some(protocol) = (subscription.protocol)(&model.api_id) {
        model.protocol = protocol;
    }
}

/// The subscription that pays for a model.
pub(super) fn subscription(model: &Model) -> Option<Subscription> {
    match &model.auth {
        Auth::SignIn { provider, .. } => list::subscription(provider),
        Auth::Protocol
        | Auth::Bearer
        | Auth::Header(_)
        | Auth::Aws(_)
        | Auth::Google(_)
        | Auth::GitLab(_) => None,
    }
}
