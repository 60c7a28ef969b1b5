//! Signs in with an xAI account, with a code entered on any device.

use serde_json::{Map, Value};

use super::answer::{field, seconds, token_error};
use super::device::{self, PollAnswer};
use super::endpoints::Endpoints;
use super::standard::{self, Server};
use super::started::Started;
use crate::transport::exchange::Payload;
use crate::vault::Tokens;
use crate::{Client, Error};

/// xAI's public client id.
const CLIENT_ID: &str = "b1a00492-073a-47ea-816f-4c329264a828";
const SCOPE: &str = "openid profile email offline_access grok-cli:access api:access";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The lifetime of tokens if the server does not send one.
const USUAL_LIFE_SECONDS: u64 = 3600;

/// A pending sign-in with a code.
pub(super) struct Device {
    code: String,
    interval: Option<u64>,
    expires: Option<u64>,
}

pub(super) async fn device(client: &Client, endpoints: &Endpoints) -> Result<Started<Device>, Error> {
    let form = [("client_id", CLIENT_ID), ("scope", SCOPE), ("referrer", "codewright")];
    let url = format!("{}/oauth2/device/code", endpoints.xai);
    let (status, answer) = client.exchange(&url, Payload::Form(&form)).await?;
    if status != 200 {
        return Err(token_error("the request for a code", status, &answer, &[]));
    }
    let user_code = field(&answer, "user_code")?;
    let page = field(&answer, "verification_uri_complete").or_else(|_| field(&answer, "verification_uri"))?;
    if !page.starts_with("https://") && !page.starts_with(&endpoints.xai) {
        return Err(Error::rejected("the server names a sign-in page that is not secure"));
    }
    let device = Device {
        code: field(&answer, "device_code")?,
        interval: seconds(&answer, "interval"),
        expires: seconds(&answer, "expires_in"),
    };
    let instructions = format!("Enter code: {user_code}");
    Ok(Started { url: page, instructions, is_automatic: true, flow: device })
}

pub(super) async fn poll(
    client: &Client,
    endpoints: &Endpoints,
    device: Device,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let server = server(endpoints);
    let form = [("grant_type", GRANT), ("client_id", CLIENT_ID), ("device_code", device.code.as_str())];
    let answer = device::poll(device.interval, device.expires, || async {
        let (status, answer) = client.exchange(&server.url, Payload::Form(&form)).await?;
        match (status, answer.get("error").and_then(Value::as_str)) {
            (200, _) => Ok(PollAnswer::Done(answer)),
            (_, Some("authorization_pending")) => Ok(PollAnswer::Pending),
            (_, Some("slow_down")) => Ok(PollAnswer::Slower(seconds(&answer, "interval"))),
            (status, _) => Err(token_error("the sign-in", status, &answer, &[&device.code])),
        }
    })
    .await?;
    server.tokens(&answer, None, Map::new(), now_ms)
}

pub(super) async fn refresh(
    client: &Client,
    endpoints: &Endpoints,
    old: &Tokens,
    now_ms: u64,
) -> Result<Tokens, Error> {
    standard::refresh(client, &server(endpoints), old, now_ms).await
}

fn server(endpoints: &Endpoints) -> Server {
    Server {
        url: format!("{}/oauth2/token", endpoints.xai),
        client_id: CLIENT_ID.to_owned(),
        client_secret: None,
        life_seconds: USUAL_LIFE_SECONDS,
    }
}
