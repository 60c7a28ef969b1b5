//! Signs in with a ChatGPT account, like OpenAI's own command-line tool.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use super::answer::{field, seconds, secret, token_error};
use super::browser::{Browser, Callback};
use super::device::{self, PollAnswer};
use super::endpoints::Endpoints;
use super::started::Started;
use crate::transport::exchange::Payload;
use crate::vault::Tokens;
use crate::{Client, Error, Secret};

/// OpenAI's public client id, with its registered redirect.
const CLIENT_ID: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
const CALLBACK: Callback = Callback::to("localhost", 1455, "/auth/callback");
const SCOPE: &str = "openid profile email offline_access";
/// The lifetime of tokens if the server does not send one.
const USUAL_LIFE_SECONDS: u64 = 3600;

/// A code to exchange for tokens.
pub(super) struct Grant<'a> {
    pub(super) code: &'a str,
    pub(super) verifier: &'a Secret,
    pub(super) redirect: &'a str,
}

/// A pending sign-in with a code.
pub(super) struct Device {
    id: String,
    user_code: String,
    interval: Option<u64>,
    expires: Option<u64>,
}

pub(super) async fn browser(endpoints: &Endpoints) -> Result<Started<Browser>, Error> {
    let browser = Browser::open(&CALLBACK).await?;
    let url = browser.url(
        &format!("{}/oauth/authorize", endpoints.openai),
        &[
            ("client_id", CLIENT_ID),
            ("scope", SCOPE),
            ("id_token_add_organizations", "true"),
            ("codex_cli_simplified_flow", "true"),
            ("originator", "codewright"),
        ],
    );
    let instructions = browser.instructions("Sign in with your ChatGPT account in the browser.");
    Ok(Started { url, instructions, is_automatic: browser.listens(), flow: browser })
}

pub(super) async fn device(client: &Client, endpoints: &Endpoints) -> Result<Started<Device>, Error> {
    let url = format!("{}/api/accounts/deviceauth/usercode", endpoints.openai);
    let (status, answer) = client.exchange(&url, Payload::Json(json!({"client_id": CLIENT_ID}))).await?;
    if status == 404 {
        return Err(Error::rejected(
            "sign-in by code is disabled for this account; enable it in ChatGPT's security settings",
        ));
    }
    if status != 200 {
        return Err(token_error("the request for a code", status, &answer, &[]));
    }
    let user_code = field(&answer, "user_code").or_else(|_| field(&answer, "usercode"))?;
    let device = Device {
        id: field(&answer, "device_auth_id")?,
        interval: seconds(&answer, "interval"),
        expires: seconds(&answer, "expires_in"),
        user_code,
    };
    Ok(Started {
        url: format!("{}/codex/device", endpoints.openai),
        instructions: format!("Enter code: {}", device.user_code),
        is_automatic: true,
        flow: device,
    })
}

pub(super) async fn poll(
    client: &Client,
    endpoints: &Endpoints,
    device: Device,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let url = format!("{}/api/accounts/deviceauth/token", endpoints.openai);
    let answer = device::poll(device.interval, device.expires, || async {
        let body = json!({"device_auth_id": device.id, "user_code": device.user_code});
        let (status, answer) = client.exchange(&url, Payload::Json(body)).await?;
        match status {
            200 => Ok(PollAnswer::Done(answer)),
            403 | 404 => Ok(PollAnswer::Pending),
            429 => Ok(PollAnswer::Slower(seconds(&answer, "interval"))),
            _ => Err(token_error("the sign-in", status, &answer, &[&device.id])),
        }
    })
    .await?;
    let code = field(&answer, "authorization_code")?;
    let verifier = secret(field(&answer, "code_verifier")?);
    let redirect = format!("{}/deviceauth/callback", endpoints.openai);
    exchange(client, endpoints, &Grant { code: &code, verifier: &verifier, redirect: &redirect }, now_ms)
        .await
}

/// Exchanges a code for tokens.
pub(super) async fn exchange(
    client: &Client,
    endpoints: &Endpoints,
    grant: &Grant<'_>,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", CLIENT_ID),
        ("code", grant.code),
        ("redirect_uri", grant.redirect),
        ("code_verifier", grant.verifier.expose()),
    ];
    let url = format!("{}/oauth/token", endpoints.openai);
    let (status, answer) = client.exchange(&url, Payload::Form(&form)).await?;
    if status != 200 {
        return Err(token_error("the sign-in", status, &answer, &[grant.code, grant.verifier.expose()]));
    }
    tokens(&answer, None, now_ms)
}

/// Refreshes tokens.
pub(super) async fn refresh(
    client: &Client,
    endpoints: &Endpoints,
    old: &Tokens,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let form =
        [("grant_type", "refresh_token"), ("client_id", CLIENT_ID), ("refresh_token", old.refresh.expose())];
    let url = format!("{}/oauth/token", endpoints.openai);
    let (status, answer) = client.exchange(&url, Payload::Form(&form)).await?;
    if status != 200 {
        return Err(token_error(
            "the token refresh",
            status,
            &answer,
            &[old.refresh.expose(), old.access.expose()],
        ));
    }
    tokens(&answer, Some(old), now_ms)
}

/// Parses the server's tokens. Missing fields keep their old values.
fn tokens(answer: &Value, old: Option<&Tokens>, now_ms: u64) -> Result<Tokens, Error> {
    let access = field(answer, "access_token")?;
    let refresh = match (field(answer, "refresh_token"), old) {
        (Ok(refresh), _) => secret(refresh),
        (Err(_), Some(old)) => old.refresh.clone(),
        (Err(error), None) => return Err(error),
    };
    let life_seconds = seconds(answer, "expires_in").unwrap_or(USUAL_LIFE_SECONDS);
    let mut extra = old.map_or_else(Map::new, |old| old.extra.clone());
    let id_token = answer.get("id_token").and_then(Value::as_str);
    if let Some(account) = id_token.and_then(account).or_else(|| account(&access)) {
        extra.insert("accountId".to_owned(), account.into());
    }
    let expires_ms = now_ms.saturating_add(life_seconds.saturating_mul(1000));
    Ok(Tokens { access: secret(access), refresh, expires_ms, extra })
}

/// Returns the account of a token. The token comes directly from the server, so its signature is
/// not checked.
fn account(token: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let of_openai = claims.get("https://api.openai.com/auth");
    let account = claims
        .get("chatgpt_account_id")
        .or_else(|| of_openai?.get("chatgpt_account_id"))
        .or_else(|| claims.pointer("/organizations/0/id"));
    account?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &Value) -> String {
        format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn the_account_is_found_in_every_claim() {
        for (claims, expected) in [
            (json!({"chatgpt_account_id": "a"}), Some("a")),
            (json!({"https://api.openai.com/auth": {"chatgpt_account_id": "b"}}), Some("b")),
            (json!({"organizations": [{"id": "c"}]}), Some("c")),
            (json!({"sub": "x"}), None),
        ] {
            assert_eq!(account(&token(&claims)).as_deref(), expected, "{claims}");
        }
        for odd in ["", "a.b", "a.!.c", "sk-key"] {
            assert_eq!(account(odd), None, "{odd}");
        }
    }

    #[test]
    fn missing_fields_of_a_refresh_keep_their_values() {
        let mut extra = Map::new();
        extra.insert("accountId".to_owned(), "me".into());
        extra.insert("later".to_owned(), json!([1]));
        let old = Tokens { access: "a1".into(), refresh: "r1".into(), expires_ms: 1, extra: extra.clone() };
        let new = tokens(&json!({"access_token": "a2"}), Some(&old), 1000).unwrap();
        assert_eq!((new.access.expose(), new.refresh.expose()), ("a2", "r1"));
        assert_eq!((new.expires_ms, &new.extra), (1000 + 3_600_000, &extra));
        let error = tokens(&json!({"access_token": "a"}), None, 0).unwrap_err();
        assert!(error.to_string().contains("`refresh_token`"));
    }
}
