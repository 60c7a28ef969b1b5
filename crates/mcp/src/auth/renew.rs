//! New tokens for old ones.
//!
//! A refresh token is sent to the server that issued it, never to another one that the metadata names later.

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialStore as _, InMemoryCredentialStore,
    OAuthClientConfig, StoredCredentials,
};
use serde_json::json;
use tokio::time::timeout;
use url::Url;

use super::begin::methods;
use super::grant::Grant;
use super::guard::{Guard, Web};
use super::reason;
use crate::error::Failure;

/// The time limit of a renewal.
pub(super) const RENEW_DEADLINE: Duration = Duration::from_secs(40);
/// The codes with which a server says that renewing again is useless.
const FINAL_CODES: [&str; 4] = ["invalid_grant", "invalid_client", "unauthorized_client", "invalid_scope"];

/// Why tokens were not renewed. The text is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum RenewError {
    /// The user must sign in again.
    #[error("{0}")]
    Refused(Failure),
    /// It may work later.
    #[error("{0}")]
    Unavailable(Failure),
}

/// Renews the tokens of a sign-in.
///
/// # Errors
///
/// Fails if the server refuses, or is not available.
pub async fn renew(web: Arc<dyn Web>, grant: &Grant, now_ms: u64) -> Result<Grant, RenewError> {
    let late =
        || RenewError::Unavailable(Failure::failed("The sign-in cannot be renewed: the server is too slow."));
    timeout(RENEW_DEADLINE, renew_now(web, grant, now_ms)).await.unwrap_or_else(|_| Err(late()))
}

async fn renew_now(web: Arc<dyn Web>, grant: &Grant, now_ms: u64) -> Result<Grant, RenewError> {
    let refused = |text: &str| RenewError::Refused(Failure::failed(text));
    let Some(refresh) = grant.refresh.as_deref() else {
        return Err(refused("The sign-in has expired."));
    };
    let server = Url::parse(&grant.server_url).map_err(|_| refused("The sign-in is damaged."))?;
    let named = grant.sign_in_server.as_deref().and_then(|named| Url::parse(named).ok());
    let own = std::iter::once(server.clone()).chain(named).collect();
    let guard = Guard::with_resource(web, own, grant.resource.clone());
    let secrets = [refresh, &grant.access, grant.client_secret.as_deref().unwrap_or_default()];
    let failed = |error: &AuthError| {
        let failure = reason::failure(error, &guard, &secrets);
        let is_final = match error {
            AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired => true,
            _ => guard.last().code.is_some_and(|code| FINAL_CODES.contains(&code.as_str())),
        };
        if is_final { RenewError::Refused(failure) } else { RenewError::Unavailable(failure) }
    };
    let mut renewed = grant.clone();
    let manager = manager(&mut renewed, &server, &guard).await.map_err(|error| failed(&error))?;
    let token = json!({"access_token": grant.access, "token_type": "bearer", "refresh_token": refresh});
    let token = serde_json::from_value(token).map_err(|_| refused("The sign-in is damaged."))?;
    let store = InMemoryCredentialStore::new();
    let stored = StoredCredentials::new(grant.client_id.clone(), Some(token), Vec::new(), None);
    store.save(stored).await.map_err(|error| failed(&error))?;
    let mut manager = manager;
    manager.set_credential_store(store);
    let answer = manager.refresh_token().await.map_err(|error| failed(&error))?;
    let answer = serde_json::to_value(&answer).map_err(|_| refused("The sign-in is damaged."))?;
    match renewed.take(&answer, now_ms) {
        Some(()) if renewed.access.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(renewed),
        Some(()) | None => Err(refused("The sign-in server sent an unusable token.")),
    }
}

/// The manager with the server that issued the tokens. Where another program stored the tokens, this server is searched.
async fn manager(
    grant: &mut Grant,
    server: &Url,
    guard: &Arc<Guard>,
) -> Result<AuthorizationManager, AuthError> {
    let resource = grant.resource.as_deref().and_then(|resource| Url::parse(resource).ok());
    let base = resource.unwrap_or_else(|| server.clone());
    let mut manager = AuthorizationManager::new_with_oauth_http_client(base, guard.clone()).await?;
    let metadata = match &grant.token_endpoint {
        Some(endpoint) => {
            let mut metadata = AuthorizationMetadata::default();
            // The page for the user is not needed.
            metadata.authorization_endpoint.clone_from(endpoint);
            metadata.token_endpoint.clone_from(endpoint);
            metadata.issuer.clone_from(&grant.issuer);
            let methods = json!(grant.methods);
            metadata.additional_fields.insert("token_endpoint_auth_methods_supported".to_owned(), methods);
            metadata
        }
        None => {
            let found = manager.resolve_metadata_from_challenge(None).await?.metadata;
            grant.issuer.clone_from(&found.issuer);
            grant.methods = methods(&found);
            grant.token_endpoint = Some(found.token_endpoint.clone());
            found
        }
    };
    manager.set_metadata(metadata);
    let mut config = OAuthClientConfig::new(grant.client_id.clone(), server.as_str());
    if let Some(secret) = &grant.client_secret {
        config = config.with_client_secret(secret.clone());
    }
    manager.configure_client(config)?;
    Ok(manager)
}
