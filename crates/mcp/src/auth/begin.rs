//! A sign-in from the first question to the server until its tokens.

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, OAuthClientConfig,
};
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use super::grant::Grant;
use super::guard::{Guard, Web, is_secure, sign_in_server};
use super::reason;
use crate::config::{OAuth, Remote};
use crate::error::{Failure, cut};

/// The name under which this program registers.
const CLIENT_NAME: &str = "Codewright";
/// The time limit of everything that happens before the user opens the page.
const BEGIN_DEADLINE: Duration = Duration::from_secs(60);
/// The time limit of exchanging the code for tokens.
const FINISH_DEADLINE: Duration = Duration::from_secs(30);
/// The longest address of a page.
const MAX_URL_BYTES: usize = 16 * 1024;

/// A sign-in to begin.
pub struct SignInRequest<'a> {
    pub remote: &'a Remote,
    /// The challenge of the server when it refused a request.
    pub challenge: Option<&'a str>,
    /// The address that the browser returns to.
    pub redirect: &'a str,
    pub web: Arc<dyn Web>,
}

/// A sign-in that waits for the user.
pub struct Pending {
    /// The page that the user opens. HTTPS, or on this machine.
    pub url: String,
    /// The value that the redirect must contain.
    pub state: String,
    manager: AuthorizationManager,
    guard: Arc<Guard>,
    grant: Grant,
}

/// The client that a configuration names.
struct Client<'a> {
    id: Option<&'a str>,
    secret: Option<&'a str>,
    scope: Option<&'a str>,
}

impl<'a> Client<'a> {
    /// `None` if the server needs no sign-in.
    fn of(remote: &'a Remote) -> Option<Self> {
        match &remote.oauth {
            OAuth::Off => None,
            OAuth::On { client_id, client_secret, scope, .. } => Some(Self {
                id: client_id.as_deref().filter(|id| !id.is_empty()),
                secret: client_secret.as_deref().filter(|secret| !secret.is_empty()),
                scope: scope.as_deref(),
            }),
        }
    }
}

/// Begins a sign-in: finds the sign-in server, registers this program if the configuration names no client, and returns the
/// page for the user.
///
/// # Errors
///
/// Fails with a sentence, or with [`Failure::NeedsRegistration`] if the configuration must name a client.
pub async fn begin(request: SignInRequest<'_>) -> Result<Pending, Failure> {
    let late = || Failure::failed("The sign-in server is too slow.");
    timeout(BEGIN_DEADLINE, begin_now(request)).await.unwrap_or_else(|_| Err(late()))
}

/// Reports why a sign-in to a server is impossible without a client in its configuration.
pub async fn needs_registration(request: SignInRequest<'_>) -> Option<Failure> {
    let client = Client::of(request.remote)?;
    if client.id.is_some() || !is_secure(&request.remote.url) {
        return None;
    }
    let guard = Guard::new(request.web, request.remote);
    let manager = manager(&request.remote.url, &guard).await.ok()?;
    let found = manager.resolve_metadata_from_challenge(request.challenge).await.ok()?;
    found.metadata.registration_endpoint.is_none().then(unregistered)
}

/// What a server publishes about its sign-in.
#[derive(Debug, Clone)]
pub struct Discovered {
    pub issuer: Option<String>,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub registration_endpoint: Option<String>,
    /// Whether the server published anything. Otherwise the addresses are the usual ones.
    pub is_published: bool,
}

/// Reads what a server publishes about its sign-in.
///
/// # Errors
///
/// Fails with a sentence.
pub async fn discover(request: SignInRequest<'_>) -> Result<Discovered, Failure> {
    let guard = Guard::new(request.web, request.remote);
    let manager = manager(&request.remote.url, &guard).await?;
    let found = timeout(BEGIN_DEADLINE, manager.resolve_metadata_from_challenge(request.challenge)).await;
    let found = found.map_err(|_| Failure::failed("The server is too slow."))?;
    let found = found.map_err(|error| reason::failure(&error, &guard, &[]))?;
    let is_published = found.source != AuthorizationMetadataSource::LegacyEndpointFallback;
    let metadata = found.metadata;
    Ok(Discovered {
        issuer: metadata.issuer.as_deref().map(cut),
        authorization_endpoint: cut(&metadata.authorization_endpoint),
        token_endpoint: cut(&metadata.token_endpoint),
        registration_endpoint: metadata.registration_endpoint.as_deref().map(cut),
        is_published,
    })
}

fn unregistered() -> Failure {
    Failure::NeedsRegistration(
        "The sign-in server does not register programs. Set `oauth.clientId` of this server in the configuration."
            .to_owned(),
    )
}

async fn manager(resource: &Url, guard: &Arc<Guard>) -> Result<AuthorizationManager, Failure> {
    let manager = AuthorizationManager::new_with_oauth_http_client(resource.clone(), guard.clone()).await;
    manager.map_err(|error| reason::failure(&error, guard, &[]))
}

async fn begin_now(request: SignInRequest<'_>) -> Result<Pending, Failure> {
    let SignInRequest { remote, challenge, redirect, web } = request;
    let Some(client) = Client::of(remote) else {
        return Err(Failure::failed("`oauth` is `false` in the configuration of this server."));
    };
    if !is_secure(&remote.url) {
        let host = cut(remote.url.host_str().unwrap_or_default());
        return Err(Failure::failed(format!(
            "A sign-in needs HTTPS, because tokens sent to `{host}` over plain HTTP could be read by others."
        )));
    }
    let guard = Guard::new(web, remote);
    let mut manager = manager(&remote.url, &guard).await?;
    let found = manager.resolve_metadata_from_challenge(challenge).await;
    let found = found.map_err(|error| reason::failure(&error, &guard, &[]))?;
    let is_published = found.source != AuthorizationMetadataSource::LegacyEndpointFallback;
    check(&found.metadata, is_published, client.id)?;
    let metadata = found.metadata.clone();
    manager.set_metadata(found.metadata);
    let scopes: Vec<String> = match client.scope {
        Some(scope) => scope.split_whitespace().map(str::to_owned).collect(),
        None => manager.select_initial_scopes(&[]).await,
    };
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let config = match client.id {
        Some(id) => {
            let mut config = OAuthClientConfig::new(id, redirect);
            if let Some(secret) = client.secret {
                config = config.with_client_secret(secret);
            }
            manager.configure_client(config.clone()).map(|()| config)
        }
        None if metadata.registration_endpoint.is_none() => return Err(unregistered()),
        None => manager.register_client(CLIENT_NAME, redirect, &scopes).await,
    };
    let config = config.map_err(|error| match is_published {
        true => reason::failure(&error, &guard, &[]),
        false => Failure::failed(
            "The server refuses requests without a sign-in, but publishes no information about how to sign in.",
        ),
    })?;
    let url = manager.get_authorization_url(&scopes).await;
    let url = page(&url.map_err(|error| reason::failure(&error, &guard, &[]))?)?;
    let state = parameter(&url, "state")
        .ok_or_else(|| Failure::failed("The address of the sign-in page contains no state."))?;
    let grant = Grant {
        server_url: remote.url.to_string(),
        access: String::new(),
        refresh: None,
        expires_ms: None,
        renew_ms: None,
        scope: None,
        client_id: config.client_id,
        client_secret: config.client_secret,
        issuer: metadata.issuer.clone(),
        resource: parameter(&url, "resource"),
        methods: methods(&metadata),
        token_endpoint: Some(metadata.token_endpoint),
        sign_in_server: sign_in_server(remote).map(Url::to_string),
    };
    Ok(Pending { url: url.into(), state, manager, guard, grant })
}

/// Refuses a sign-in server that does not say that it supports PKCE, as the protocol requires. A server that publishes
/// nothing cannot say it. One that only does not name PKCE is used if the user registered a client there: some large
/// providers support PKCE without naming it, and the challenge is sent in any case.
fn check(metadata: &AuthorizationMetadata, is_published: bool, client: Option<&str>) -> Result<(), Failure> {
    let refused = |why: &str| Err(Failure::failed(format!("The sign-in server {why}")));
    match metadata.code_challenge_methods_supported.as_deref() {
        Some(methods) if methods.iter().any(|method| method == "S256") => Ok(()),
        None if !is_published || client.is_some() => Ok(()),
        None => refused(
            "does not say that it supports PKCE, which is required. If you registered a client there, set \
             `oauth.clientId` of this server in the configuration.",
        ),
        Some(_) => refused("does not support PKCE with S256, which is required."),
    }
}

pub(super) fn methods(metadata: &AuthorizationMetadata) -> Vec<String> {
    let listed =
        metadata.additional_fields.get("token_endpoint_auth_methods_supported").and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(Value::as_str).map(cut).collect()
}

/// Checks the address that the user's browser will open.
fn page(text: &str) -> Result<Url, Failure> {
    let bad = |why: &str| Failure::failed(format!("The address of the sign-in page {why}."));
    if text.len() > MAX_URL_BYTES {
        return Err(bad("is too long"));
    }
    let url = Url::parse(text).map_err(|_| bad("is no URL"))?;
    if !is_secure(&url) {
        return Err(bad(&format!("begins with `{}:` and does not use HTTPS", cut(url.scheme()))));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("contains a user name or password"));
    }
    // A parsed address contains no control characters.
    Ok(url)
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

impl Pending {
    /// Exchanges the code of the redirect for tokens. `issuer` is the parameter `iss` of the redirect.
    ///
    /// # Errors
    ///
    /// Fails with a sentence. The sign-in must then be started again.
    pub async fn finish(self, code: &str, issuer: Option<&str>, now_ms: u64) -> Result<Grant, Failure> {
        let Self { state, manager, guard, mut grant, .. } = self;
        let exchange = manager.exchange_code_for_token_with_issuer(code, &state, issuer);
        let late = || Failure::failed("The sign-in server is too slow.");
        let answer = timeout(FINISH_DEADLINE, exchange).await.map_err(|_| late())?;
        let secrets = [code, &state, grant.client_secret.as_deref().unwrap_or_default()];
        let answer = answer.map_err(|error| reason::failure(&error, &guard, &secrets))?;
        let answer = serde_json::to_value(&answer).map_err(Failure::failed)?;
        let taken = grant.take(&answer, now_ms);
        taken.ok_or_else(|| Failure::failed("The sign-in server sent an empty token."))?;
        if grant.access.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err(Failure::failed("The sign-in server sent a token that cannot be sent in a request."));
        }
        Ok(grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_pages_are_opened() {
        assert!(page("https://h/authorize?state=1").is_ok() && page("http://127.0.0.1:1/authorize").is_ok());
        for address in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "http://h/authorize",
            "https://u:p@h/",
            "data:text/html,x",
        ] {
            assert!(page(address).is_err(), "{address}");
        }
        assert!(!page("https://h/a\u{1b}[31m\nb").unwrap().as_str().contains(char::is_control));
    }
}
