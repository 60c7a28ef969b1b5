//! Signing in to a GitLab, the public one or a company's own.

use std::collections::BTreeMap;

use serde_json::Map;

use super::browser::{Browser, Callback};
use super::standard::{self, Grant, Server};
use super::{Begun as Waiting, Endpoints, Flow, origin};
use crate::vault::Tokens;
use crate::{Client, Error};

/// The GitLab of users who name none.
pub(super) const INSTANCE: &str = "https://gitlab.com";
/// The client that sign-ins stored by OpenCode belong to; its redirect is registered.
pub(super) const CLIENT_ID: &str = "1d89f9fdb23ee96d4e603201f6861dab6e143c5c3c00469a018a2d94bdc03d4e";
const CALLBACK: Callback = Callback::to("127.0.0.1", 8080, "/callback");
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
    let instructions = browser.instructions(&format!("Sign in to {instance} in the browser."));
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
    let mut extra = Map::new();
    extra.insert("enterpriseUrl".to_owned(), instance.as_str().into());
    let grant = Grant { code, verifier: &browser.verifier, redirect: &browser.redirect };
    standard::exchange(client, &server(instance, client_id), &grant, extra, now_ms).await
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
    standard::renew(client, &server(&instance, &endpoints.gitlab_client), old, now_ms).await
}

fn server(instance: &str, client_id: &str) -> Server {
    Server {
        url: format!("{instance}/oauth/token"),
        client_id: client_id.to_owned(),
        client_secret: None,
        life_seconds: USUAL_LIFE_SECONDS,
    }
}
