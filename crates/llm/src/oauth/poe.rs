//! Signs in to Poe, which issues a key that may expire and cannot be refreshed.

use serde_json::Map;

use super::answer::{field, seconds, secret, token_error};
use super::browser::{Browser, Callback};
use super::endpoints::Endpoints;
use super::started::Started;
use crate::transport::exchange::Payload;
use crate::vault::Tokens;
use crate::{Client, Error};

/// OpenCode's client id. Poe accepts any redirect to this machine.
const CLIENT_ID: &str = "client_728290227fc048cc9262091a1ea197ea";
const CALLBACK: Callback = Callback::to("127.0.0.1", 0, "/callback");

pub(super) async fn browser(endpoints: &Endpoints) -> Result<Started<Browser>, Error> {
    let browser = Browser::open(&CALLBACK).await?;
    let url = browser.url(&endpoints.poe_page, &[("client_id", CLIENT_ID), ("scope", "apikey:create")]);
    let instructions = "Connect your Poe account in the browser.".to_owned();
    Ok(Started { url, instructions, is_automatic: true, flow: browser })
}

pub(super) async fn exchange(
    client: &Client,
    endpoints: &Endpoints,
    browser: &Browser,
    code: &str,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", CLIENT_ID),
        ("code", code),
        ("redirect_uri", &browser.redirect),
        ("code_verifier", browser.verifier.expose()),
    ];
    let (status, answer) = client.exchange(&endpoints.poe_token, Payload::Form(&form)).await?;
    if status != 200 {
        return Err(token_error("the sign-in", status, &answer, &[code, browser.verifier.expose()]));
    }
    let key = secret(field(&answer, "api_key")?);
    let life = seconds(&answer, "api_key_expires_in");
    let expires_ms = life.map_or(0, |life| now_ms.saturating_add(life.saturating_mul(1000)));
    Ok(Tokens { access: key.clone(), refresh: key, expires_ms, extra: Map::new() })
}
