//! Signs in to GitLab, on gitlab.com or a company's own instance.

use std::collections::BTreeMap;

use serde_json::Map;

use super::answer::origin;
use super::browser::{Browser, Callback};
use super::endpoints::Endpoints;
use super::standard::{self, Grant, Server};
use super::started::Started;
use crate::vault::Tokens;
use crate::{Client, Error};

const CALLBACK: Callback = Callback::to("127.0.0.1", 8080, "/callback");
/// The lifetime of tokens if the server does not send one.
const USUAL_LIFE_SECONDS: u64 = 7200;

/// A sign-in that waits for a browser.
pub(super) struct Pending {
    pub(super) browser: Browser,
    instance: String,
    client: String,
}

pub(super) async fn browser(
    endpoints: &Endpoints,
    inputs: &BTreeMap<String, String>,
) -> Result<Started<Pending>, Error> {
    let instance_url = inputs.get("instanceUrl").map(|url| url.trim()).filter(|url| !url.is_empty());
    let instance = origin(instance_url.unwrap_or(&endpoints.gitlab), "a GitLab instance")?;
    let browser = Browser::open(&CALLBACK).await?;
    let client = endpoints.gitlab_client.clone();
    let url =
        browser.url(&format!("{instance}/oauth/authorize"), &[("client_id", &client), ("scope", "api")]);
    let instructions = browser.instructions(&format!("Sign in to {instance} in the browser."));
    let is_automatic = browser.listens();
    Ok(Started { url, instructions, is_automatic, flow: Pending { browser, instance, client } })
}

pub(super) async fn exchange(
    client: &Client,
    pending: &Pending,
    code: &str,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let Pending { browser, instance, client: client_id } = pending;
    let mut extra = Map::new();
    extra.insert("enterpriseUrl".to_owned(), instance.as_str().into());
    let grant = Grant { code, verifier: &browser.verifier, redirect: &browser.redirect };
    standard::exchange(client, &server(instance, client_id), &grant, extra, now_ms).await
}

/// Refreshes tokens at the instance that issued them.
pub(super) async fn refresh(
    client: &Client,
    endpoints: &Endpoints,
    old: &Tokens,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let stored = old.text("enterpriseUrl").or_else(|| old.text("instanceUrl"));
    let instance = origin(stored.unwrap_or(&endpoints.gitlab), "a GitLab instance")?;
    standard::refresh(client, &server(&instance, &endpoints.gitlab_client), old, now_ms).await
}

fn server(instance: &str, client_id: &str) -> Server {
    Server {
        url: format!("{instance}/oauth/token"),
        client_id: client_id.to_owned(),
        client_secret: None,
        life_seconds: USUAL_LIFE_SECONDS,
    }
}
