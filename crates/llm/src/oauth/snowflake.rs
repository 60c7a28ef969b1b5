//! Signing in to a Snowflake account, as its integration for local applications allows.

use std::collections::BTreeMap;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Map;

use super::browser::{Browser, Callback};
use super::standard::{self, Grant, Server};
use super::{Begun as Waiting, Endpoints, Flow};
use crate::vault::Tokens;
use crate::{Client, Error};

/// Every account knows this client, whose secret is its name.
const CLIENT: &str = "LOCAL_APPLICATION";
const CALLBACK: Callback = Callback::to("127.0.0.1", 0, "/");
/// What tokens last when the server does not say.
const USUAL_LIFE_SECONDS: u64 = 600;
const ACCOUNT_LIMIT_BYTES: usize = 200;

/// A sign-in that waits for a browser.
pub(super) struct Begun {
    pub(super) browser: Browser,
    account: String,
}

pub(super) async fn browser(
    endpoints: &Endpoints,
    inputs: &BTreeMap<String, String>,
) -> Result<Waiting, Error> {
    let written = inputs.get("account").map(String::as_str).unwrap_or_default();
    let account = account(written).ok_or_else(|| {
        Error::rejected(format!(
            "`{}` is not the identifier of a Snowflake account, such as myorg-myaccount",
            crate::error::cut(written, 100)
        ))
    })?;
    let role = inputs.get("role").map(|role| role.trim()).filter(|role| !role.is_empty());
    let scope =
        role.map_or_else(|| "refresh_token".to_owned(), |role| format!("refresh_token {}", of_role(role)));
    let browser = Browser::open(&CALLBACK).await?;
    let page = format!("{}/oauth/authorize", address(endpoints, &account));
    let url = browser.url(&page, &[("client_id", CLIENT), ("scope", &scope)]);
    let instructions = format!("Sign in to the Snowflake account {account} in the browser.");
    Ok(Waiting { url, instructions, is_automatic: true, flow: Flow::Snowflake(Begun { browser, account }) })
}

pub(super) async fn exchange(
    client: &Client,
    endpoints: &Endpoints,
    begun: &Begun,
    code: &str,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let Begun { browser, account } = begun;
    let mut extra = Map::new();
    extra.insert("accountId".to_owned(), account.as_str().into());
    let grant = Grant { code, verifier: &browser.verifier, redirect: &browser.redirect };
    standard::exchange(client, &server(endpoints, account), &grant, extra, now_ms).await
}

pub(super) async fn renew(
    client: &Client,
    endpoints: &Endpoints,
    old: &Tokens,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let stored = old.text("accountId").and_then(account);
    let account = stored.ok_or_else(|| super::sign_in("snowflake-cortex", "does not say its account"))?;
    standard::renew(client, &server(endpoints, &account), old, now_ms).await
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

/// An account's identifier, also from its address; it becomes part of one, so nothing else may be in it.
pub(super) fn account(written: &str) -> Option<String> {
    let name = written.trim().trim_start_matches("https://");
    let name = name.split('/').next().unwrap_or_default();
    let name = name.strip_suffix(".snowflakecomputing.com").unwrap_or(name);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_name = !name.is_empty() && name.len() <= ACCOUNT_LIMIT_BYTES && name.bytes().all(fits);
    is_name.then(|| name.to_owned())
}

/// How a role is asked for; one with unusual letters is encoded once more.
fn of_role(role: &str) -> String {
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
    fn accounts_and_roles_are_written_as_snowflake_wants_them() {
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
        assert_eq!(of_role("SYS_ADMIN"), "session:role:SYS_ADMIN");
        assert_eq!(of_role("SYS ADMIN"), "session:role-encoded:SYS%20ADMIN");
    }
}
