//! Signing in to DigitalOcean, whose browser brings a token itself and not a code for one.

use serde_json::{Map, json};

use super::browser::{Brought, Browser, Callback};
use super::{Begun, Endpoints, Flow, secret};
use crate::Error;
use crate::vault::Credential;

/// The client that sign-ins stored by OpenCode belong to; its redirect is registered.
const CLIENT_ID: &str = "b1a6c5158156caac821fd1b30253ca8acb52454a48fa744420e41889cb589f82";
const CALLBACK: Callback = Callback::with_token("localhost", 1456, "/auth/callback");
const SCOPE: &str = "genai:read inference:query";
/// What a token lasts when the server does not say.
const USUAL_LIFE_SECONDS: u64 = 30 * 24 * 3600;

pub(super) async fn browser(endpoints: &Endpoints) -> Result<Begun, Error> {
    let browser = Browser::open(&CALLBACK).await?;
    let url = browser.url(&endpoints.digitalocean_page, &[("client_id", CLIENT_ID), ("scope", SCOPE)]);
    let instructions = browser.instructions("Sign in to DigitalOcean in the browser.");
    let is_automatic = browser.listens();
    Ok(Begun { url, instructions, is_automatic, flow: Flow::DigitalOcean(browser) })
}

/// The token is used as a key; what OpenCode notes beside it is noted too.
pub(super) fn credential(brought: Brought, now_ms: u64) -> Credential {
    let life = brought.life_seconds.filter(|life| *life > 0).unwrap_or(USUAL_LIFE_SECONDS);
    let expires_ms = now_ms.saturating_add(life.saturating_mul(1000));
    let mut extra = Map::new();
    let notes = json!({
        "oauth_access": brought.text,
        "oauth_expires": expires_ms.to_string(),
        "oauth_scopes": SCOPE,
    });
    extra.insert("metadata".to_owned(), notes);
    Credential::Api { key: secret(brought.text), extra }
}
