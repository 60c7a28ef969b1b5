//! The limits of a repository's configuration: it may not send the user's credentials elsewhere.

use std::sync::Arc;

use codewright_config::{Config, ModelConfig, Parts, ProviderConfig, ProviderOptions};
use codewright_llm::catalog::Catalog;

use super::credentials::Access;
use super::provider::Provider;

/// The configuration of a directory: the merged one, and the parts it was merged from.
#[derive(Clone, Copy)]
pub(crate) struct Configs<'a> {
    pub(crate) config: &'a Config,
    pub(crate) parts: Option<&'a Parts>,
}

impl<'a> Configs<'a> {
    /// The repository's own entry of a provider, if it may send requests to another origin than the one of
    /// the user's configuration or the catalog.
    pub(super) fn redirected(
        self,
        id: &str,
        catalog: &Arc<Catalog>,
        access: Access<'_>,
    ) -> Option<&'a ProviderConfig> {
        let parts = self.parts?;
        let own = parts.repository.provider.get(id)?;
        if !chooses_address(own) {
            return None;
        }
        let user = Provider::new(id, parts.user.provider.get(id), catalog, access);
        let origin = user.template.ok().and_then(|model| origin_of(&model.base_url));
        let plain = ProviderConfig { options: ProviderOptions::default(), api: None, ..own.clone() };
        let is_same = |url: &String| origin.is_some() && origin_of(url) == origin;
        let urls = || own.options.base_url.iter().chain(&own.api).filter(|url| !url.is_empty());
        // Only a whole address of the same origin is known to be harmless.
        let has_only_urls = has_plain_options(&own.options) && !chooses_address(&plain);
        (!has_only_urls || !urls().all(is_same)).then_some(own)
    }
}

/// Whether an entry affects a provider's address or how requests are sent to it.
fn chooses_address(written: &ProviderConfig) -> bool {
    let ProviderConfig { id, npm, api, env, options, models, .. } = written;
    let is_elsewhere = |model: &ModelConfig| !model.headers.is_empty() || model.rest.contains_key("provider");
    id.is_some()
        || npm.is_some()
        || api.is_some()
        || !env.is_empty()
        || options.base_url.is_some()
        || !has_plain_options(options)
        || models.iter().any(|(_, model)| is_elsewhere(model))
}

/// Whether no option can become a part of the address or of the credentials.
fn has_plain_options(options: &ProviderOptions) -> bool {
    const PLAIN: [&str; 7] = [
        "includeUsage",
        "reasoningEffort",
        "reasoningSummary",
        "setCacheKey",
        "store",
        "textVerbosity",
        "useCompletionUrls",
    ];
    options.headers.is_empty() && options.rest.keys().all(|key| PLAIN.contains(&key.as_str()))
}

/// The scheme, host and port of an address.
fn origin_of(address: &str) -> Option<url::Origin> {
    url::Url::parse(address).ok().map(|url| url.origin()).filter(url::Origin::is_tuple)
}
