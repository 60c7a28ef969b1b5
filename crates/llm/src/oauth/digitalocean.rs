//! Signs in to DigitalOcean, whose redirect carries a token instead of a code.

use serde_json::{Map, json};

use super::answer::secret;
use super::browser::{Browser, Callback};
use super::endpoints::Endpoints;
use super::loopback::RedirectResult;
use super::started::Started;
use crate::Error;
use crate::vault::Credential;

/// OpenCode's client id, with its registered redirect.
const CLIENT_ID: &str = "b1a6c5158156caac821fd1b30253ca8acb52454a48fa744420e41889cb589f82";
const CALLBACK: Callback = Callback::with_token("localhost", 1456, "/auth/callback");
const SCOPE: &str = "genai:read inference:query";
/// The lifetime of a token if the server does not send one.
const USUAL_LIFE_SECONDS: u64 = 30 * 24 * 3600;

pub(super) async fn browser(endpoints: &Endpoints) -> Result<Started<Browser>, Error> {
    let browser = Browser::open(&CALLBACK).await?;
    let url = browser.url(&endpoints.digitalocean_page, &[("client_id", CLIENT_ID), ("scope", SCOPE)]);
    let instructions = browser.instructions("Sign in to DigitalOcean in the browser.");
    let is_automatic = browser.listens();
    Ok(Started { url, instructions, is_automatic, flow: browser })
}

/// Returns the credential: the token is used as a key, with the same metadata as OpenCode.
pub(super) fn credential(result: RedirectResult, now_ms: u64) -> Credential {
    let life = result.life_seconds.filter(|life| *life > 0).unwrap_or(USUAL_LIFE_SECONDS);
    let expires_ms = now_ms.saturating_add(life.saturating_mul(1000));
    let mut extra = Map::new();
    let notes = json!({
        "oauth_access": result.text,
        "oauth_expires": expires_ms.to_string(),
        "oauth_scopes": SCOPE,
    });
    extra.insert("metadata".to_owned(), notes);
    Credential::Api { key: secret(result.text), extra }
}
