//! Signing in to a GitLab, the public one or a company's own.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::browser::{Browser, Callback};
use super::{Begun as Waiting, Endpoints, Flow, field, origin, refused, seconds, secret};
use crate::client::exchange::Posted;
use crate::vault::Tokens;
use crate::{Client, Error};

/// The GitLab of users who name none.
pub(super) const INSTANCE: &str = "https://gitlab.com";
/// The client that sign-ins stored by OpenCode belong to; its redirect is registered.
pub(super) const CLIENT_ID: &str = "1d89f9fdb23ee96d4e603201f6861dab6e143c5c3c00469a018a2d94bdc03d4e";
const CALLBACK: Callback = Callback { host: "127.0.0.1", port: 8080, path: "/callback" };
/// What tokens last when the server does not say.
const USUAL_LIFE_SECONDS: u64 = 7200;

/// A sign-in that waits for a browser.
pub(super) struct Begun {
    pub(super) browser: Browser,
    instance: String,
    client: String,
}

pub(super) async fn browser(
    endpoints: &Endpoints,
    inputs: &BTreeMap<String, String>,
) -> Result<Waiting, Error> {
    let wanted = inputs.get("instanceUrl").map(|url| url.trim()).filter(|url| !url.is_empty());
    let instance = origin(wanted.unwrap_or(&endpoints.gitlab), "a GitLab instance")?;
    let browser = Browser::open(&CALLBACK).await?;
    let client = endpoints.gitlab_client.clone();
    let url =
        browser.url(&format!("{instance}/oauth/authorize"), &[("client_id", &client), ("scope", "api")]);
    let instructions = if browser.listens() {
        format!("Sign in to {instance} in the browser.")
    } else {
        format!(
            "Port {} is in use, so the browser cannot come back here: sign in, then paste the address it ends at.",
            CALLBACK.port
        )
    };
    let is_automatic = browser.listens();
    Ok(Waiting { url, instructions, is_automatic, flow: Flow::GitLab(Begun { browser, instance, client }) })
}

pub(super) async fn exchange(
    client: &Client,
    begun: &Begun,
    code: &str,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let Begun { browser, instance, client: client_id } = begun;
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", client_id),
        ("code", code),
        ("redirect_uri", &browser.redirect),
        ("code_verifier", browser.verifier.expose()),
    ];
    let (status, answer) = client.exchange(&format!("{instance}/oauth/token"), Posted::Form(&form)).await?;
    if status != 200 {
        return Err(refused("the sign-in", status, &answer, &[code, browser.verifier.expose()]));
    }
    let mut extra = Map::new();
    extra.insert("enterpriseUrl".to_owned(), instance.as_str().into());
    tokens(&answer, None, extra, now_ms)
}

/// New tokens for old ones, from the instance that gave those.
pub(super) async fn renew(
    client: &Client,
    endpoints: &Endpoints,
    old: &Tokens,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let stored = old.text("enterpriseUrl").or_else(|| old.text("instanceUrl"));
    let instance = origin(stored.unwrap_or(&endpoints.gitlab), "a GitLab instance")?;
    let form = [
        ("grant_type", "refresh_token"),
        ("client_id", endpoints.gitlab_client.as_str()),
        ("refresh_token", old.refresh.expose()),
    ];
    let (status, answer) = client.exchange(&format!("{instance}/oauth/token"), Posted::Form(&form)).await?;
    if status != 200 {
        return Err(refused("the renewal", status, &answer, &[old.refresh.expose(), old.access.expose()]));
    }
    tokens(&answer, Some(old), old.extra.clone(), now_ms)
}

fn tokens(
    answer: &Value,
    old: Option<&Tokens>,
    extra: Map<String, Value>,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let refresh = match (field(answer, "refresh_token"), old) {
        (Ok(refresh), _) => secret(refresh),
        (Err(_), Some(old)) => old.refresh.clone(),
        (Err(error), None) => return Err(error),
    };
    let life = seconds(answer, "expires_in").unwrap_or(USUAL_LIFE_SECONDS);
    let expires_ms = now_ms.saturating_add(life.saturating_mul(1000));
    Ok(Tokens { access: secret(field(answer, "access_token")?), refresh, expires_ms, extra })
}
