//! Model servers on this machine, found on their usual ports.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use codewright_config::{Env, ProviderConfig};
use codewright_llm::Client;
use codewright_llm::catalog::{self, Catalog};

use super::credentials::{Access, Credentials};
use super::listed::Listed;
use super::provider::Provider;
use super::vendor::list::local_url;

/// The longest wait for the list of a server's models.
const DEADLINE: Duration = Duration::from_millis(400);

/// Requests models from the usual ports, and records each address in `searched`.
pub(super) async fn find(
    env: &Env,
    llm: &Client,
    catalog: &Arc<Catalog>,
    searched: &mut Vec<String>,
) -> Vec<Provider> {
    let rows = catalog::providers().iter().filter(|row| row.local);
    let requests = rows.map(|row| {
        let base_url = local_url(row, env);
        async move {
            let models = codewright_llm::list_models(llm, &base_url, None, DEADLINE).await;
            (row, base_url, models)
        }
    });
    let nothing = Access { credentials: &Credentials::default(), env: &Env::default() };
    let mut providers = Vec::new();
    for (row, base_url, models) in futures_util::future::join_all(requests).await {
        searched.push(format!("{} at {base_url}", row.name));
        let Ok(models) = models else { continue };
        let mut written = ProviderConfig::default();
        written.options.base_url = Some(base_url);
        let mut found = Provider::new(row.id, Some(&written), catalog, nothing);
        let listed: Vec<_> =
            models.iter().map(|id| Listed::new(&found.setup, &found.template, id, None, None)).collect();
        (found.source, found.models) = ("local", OnceLock::from(listed));
        providers.push(found);
    }
    providers
}
