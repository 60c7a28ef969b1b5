//! Signs in to a Snowflake account with its integration for local applications.

use std::collections::BTreeMap;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Map;

use super::browser::{Browser, Callback};
use super::endpoints::Endpoints;
use super::standard::{self, Grant, Server};
use super::started::Started;
use crate::vault::Tokens;
use crate::{Client, Error};

/// The client id that exists in every account. Its secret equals its id.
const CLIENT: &str = "LOCAL_APPLICATION";
const CALLBACK: Callback = Callback::to("127.0.0.1", 0, "/");
/// The lifetime of tokens if the server does not send one.
const USUAL_LIFE_SECONDS: u64 = 600;
const ACCOUNT_LIMIT_BYTES: usize = 200;

/// A sign-in that waits for a browser.
pub(super) struct Pending {
    pub(super) browser: Browser,
    account: String,
}

pub(super) async fn browser(
    endpoints: &Endpoints,
    inputs: &BTreeMap<String, String>,
) -> Result<Started<Pending>, Error> {
    let written = inputs.get("account").map(String::as_str).unwrap_or_default();
    let account = account(written).ok_or_else(|| {
        Error::rejected(format!(
            "`{}` is not the identifier of a Snowflake account, such as myorg-myaccount",
            crate::error::cut(written, 100)
        ))
    })?;
    let role = inputs.get("role").map(|role| role.trim()).filter(|role| !role.is_empty());
    let scope =
        role.map_or_else(|| "refresh_token".to_owned(), |role| format!("refresh_token {}", role_scope(role)));
    let browser = Browser::open(&CALLBACK).await?;
    let page = format!("{}/oauth/authorize", address(endpoints, &account));
    let url = browser.url(&page, &[("client_id", CLIENT), ("scope", &scope)]);
    let instructions = format!("Sign in to the Snowflake account {account} in the browser.");
    Ok(Started { url, instructions, is_automatic: true, flow: Pending { browser, account } })
}

pub(super) async fn exchange(
    client: &Client,
    endpoints: &Endpoints,
    pending: &Pending,
    code: &str,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let Pending { browser, account } = pending;
    let mut extra = Map::new();
    extra.insert("accountId".to_owned(), account.as_str().into());
    let grant = Grant { code, verifier: &browser.verifier, redirect: &browser.redirect };
    standard::exchange(client, &server(endpoints, account), &grant, extra, now_ms).await
}

pub(super) async fn refresh(
    client: &Client,
    endpoints: &Endpoints,
    old: &Tokens,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let stored = old.text("accountId").and_then(account);
    let account = stored.ok_or_else(|| super::answer::sign_in("snowflake-cortex", "has no account"))?;
    standard::refresh(client, &server(endpoints, &account), old, now_ms).await
}

fn server(endpoints: &Endpoints, account: &str) -> Server {
    Server {
        url: format!("{}/oauth/token-request", address(endpoints, account)),
        client_id: CLIENT.to_owned(),
        client_secret: Some(CLIENT),
        life_seconds: USUAL_LIFE_SECONDS,
    }
}

fn address(endpoints: &Endpoints, account: &str) -> String {
    endpoints.snowflake.replace("{account}", account)
}

/// Parses an account's identifier or URL. The result becomes part of a URL, so other characters are
/// rejected.
pub(super) fn account(written: &str) -> Option<String> {
    let name = written.trim().trim_start_matches("https://");
    let name = name.split('/').next().unwrap_or_default();
    let name = name.strip_suffix(".snowflakecomputing.com").unwrap_or(name);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_name = !name.is_empty() && name.len() <= ACCOUNT_LIMIT_BYTES && name.bytes().all(fits);
    is_name.then(|| name.to_owned())
}

/// Returns the OAuth scope of a role. Unusual names are encoded twice.
fn role_scope(role: &str) -> String {
    if role.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        format!("session:role:{role}")
    } else {
        format!("session:role-encoded:{}", utf8_percent_encode(role, NON_ALPHANUMERIC))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_and_roles_use_snowflakes_spelling() {
        for (written, expected) in [
            ("myorg-acc", Some("myorg-acc")),
            (" https://MyOrg-Acc.snowflakecomputing.com/ ", Some("MyOrg-Acc")),
            ("xy12345.us-east-1", Some("xy12345.us-east-1")),
            ("", None),
            ("a b", None),
            ("evil.example#", None),
            ("me@evil", None),
        ] {
            assert_eq!(account(written).as_deref(), expected, "{written}");
        }
        assert_eq!(role_scope("SYS_ADMIN"), "session:role:SYS_ADMIN");
        assert_eq!(role_scope("SYS ADMIN"), "session:role-encoded:SYS%20ADMIN");
    }
}
