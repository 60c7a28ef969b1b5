//! Signs in with a GitHub account for Copilot. Its token does not expire.

use std::collections::BTreeMap;

use reqwest::Url;
use serde_json::{Map, Value, json};

use super::answer::{field, is_local, seconds, secret, token_error};
use super::device::{self, PollAnswer};
use super::started::Started;
use crate::transport::exchange::Payload;
use crate::vault::Tokens;
use crate::{Client, Error, File, Message, Request, UserContent};

/// OpenCode's client id, so that both programs share stored sign-ins.
const CLIENT_ID: &str = "Ov23li8tweQw6odWQebz";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// A pending sign-in with a code.
pub(super) struct Device {
    origin: String,
    /// The enterprise server, or `None` for github.com.
    enterprise: Option<String>,
    code: String,
    interval: Option<u64>,
    expires: Option<u64>,
}

pub(super) async fn device(
    client: &Client,
    inputs: &BTreeMap<String, String>,
) -> Result<Started<Device>, Error> {
    let enterprise_url = inputs.get("enterpriseUrl").map(|url| url.trim()).filter(|url| !url.is_empty());
    let is_enterprise =
        inputs.get("deploymentType").map_or(enterprise_url.is_some(), |kind| kind == "enterprise");
    let enterprise = match (is_enterprise, enterprise_url) {
        (true, None) => {
            return Err(Error::rejected("`enterpriseUrl` is missing: the domain of the enterprise"));
        }
        (true, Some(url)) => Some(domain(url)?),
        (false, _) => None,
    };
    let origin = enterprise.as_deref().map_or_else(|| "https://github.com".to_owned(), origin);
    let body = json!({"client_id": CLIENT_ID, "scope": "read:user"});
    let (status, answer) =
        client.exchange(&format!("{origin}/login/device/code"), Payload::Json(body)).await?;
    if status != 200 || answer.get("error").is_some() {
        return Err(token_error("the request for a code", status.max(400), &answer, &[]));
    }
    let user_code = field(&answer, "user_code")?;
    let url = field(&answer, "verification_uri")?;
    if !url.starts_with("https://") && !url.starts_with(&origin) {
        return Err(Error::rejected("the server names a sign-in page that is not secure"));
    }
    let device = Device {
        code: field(&answer, "device_code")?,
        interval: seconds(&answer, "interval"),
        expires: seconds(&answer, "expires_in"),
        origin,
        enterprise,
    };
    let instructions = format!("Enter code: {user_code}");
    Ok(Started { url, instructions, is_automatic: true, flow: device })
}

pub(super) async fn poll(client: &Client, device: Device) -> Result<Tokens, Error> {
    let url = format!("{}/login/oauth/access_token", device.origin);
    let token = device::poll(device.interval, device.expires, || async {
        let body = json!({"client_id": CLIENT_ID, "device_code": device.code, "grant_type": GRANT});
        let (status, answer) = client.exchange(&url, Payload::Json(body)).await?;
        if let Ok(token) = field(&answer, "access_token") {
            return Ok(PollAnswer::Done(token));
        }
        match answer.get("error").and_then(Value::as_str) {
            Some("authorization_pending") => Ok(PollAnswer::Pending),
            Some("slow_down") => Ok(PollAnswer::Slower(seconds(&answer, "interval"))),
            _ => Err(token_error("the sign-in", status.max(400), &answer, &[&device.code])),
        }
    })
    .await?;
    let mut extra = Map::new();
    if let Some(enterprise) = device.enterprise {
        extra.insert("enterpriseUrl".to_owned(), enterprise.into());
    }
    let token = secret(token);
    Ok(Tokens { access: token.clone(), refresh: token, expires_ms: 0, extra })
}

/// Returns the URL of Copilot's models.
pub(super) fn base_url(enterprise: Option<&str>) -> String {
    match enterprise.map(origin) {
        None => "https://api.githubcopilot.com".to_owned(),
        Some(origin) => match origin.strip_prefix("https://") {
            Some(domain) => format!("https://copilot-api.{domain}"),
            None => origin,
        },
    }
}

/// Returns headers with the initiator of the request, for billing, and whether it contains images.
pub(super) fn notes(request: &Request) -> Vec<(&'static str, String)> {
    let by_user = matches!(request.messages.last(), Some(Message::User(_)));
    let is_image = |file: &File| file.mime.starts_with("image/");
    let has_image = request.messages.iter().any(|message| match message {
        Message::User(content) => {
            content.iter().any(|part| matches!(part, UserContent::File(file) if is_image(file)))
        }
        Message::Tool(results) => results.iter().any(|result| result.attachments.iter().any(is_image)),
        Message::Assistant(_) => false,
    });
    let mut notes = vec![
        ("openai-intent", "conversation-edits".to_owned()),
        ("x-initiator", if by_user { "user" } else { "agent" }.to_owned()),
    ];
    if has_image {
        notes.push(("copilot-vision-request", "true".to_owned()));
    }
    notes
}

/// Parses the domain of a URL. A server on this machine keeps its `http` scheme, because it has no
/// certificate.
fn domain(written: &str) -> Result<String, Error> {
    let with_scheme = if written.contains("://") { written.to_owned() } else { format!("https://{written}") };
    let url = Url::parse(&with_scheme).ok().filter(|url| url.has_host() && url.username().is_empty());
    let wrong = || {
        Error::rejected(format!(
            "`{written}` is not the domain of a GitHub Enterprise, such as company.ghe.com"
        ))
    };
    let url = url.ok_or_else(wrong)?;
    let host = url.host_str().unwrap_or_default();
    let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    match (url.scheme(), is_local(host)) {
        ("https", _) => Ok(authority),
        ("http", true) => Ok(format!("http://{authority}")),
        _ => Err(wrong()),
    }
}

fn origin(domain: &str) -> String {
    let bare = domain.trim_start_matches("https://").trim_end_matches('/');
    if bare.starts_with("http://") { bare.to_owned() } else { format!("https://{bare}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_the_initiator_and_images() {
        let user = |content| Message::User(vec![content]);
        let picture =
            File { mime: "image/png".into(), filename: None, data: crate::FileData::Base64(String::new()) };
        let text = UserContent::Text("hi".into());
        let image = UserContent::File(picture);
        let answered = Message::Tool(Vec::new());
        for (messages, initiator, has_image) in [
            (vec![user(text.clone())], "user", false),
            (vec![user(image), answered], "agent", true),
            (Vec::new(), "agent", false),
        ] {
            let notes = notes(&Request { messages, ..Request::default() });
            assert!(notes.contains(&("x-initiator", initiator.to_owned())));
            assert_eq!(notes.iter().any(|(name, _)| *name == "copilot-vision-request"), has_image);
        }
    }

    #[test]
    fn an_enterprise_is_named_by_domain_or_address() {
        for (written, stored, models) in [
            ("company.ghe.com", "company.ghe.com", "https://copilot-api.company.ghe.com"),
            ("https://company.ghe.com/", "company.ghe.com", "https://copilot-api.company.ghe.com"),
            ("http://127.0.0.1:9", "http://127.0.0.1:9", "http://127.0.0.1:9"),
        ] {
            assert_eq!(domain(written).unwrap(), stored);
            assert_eq!(base_url(Some(stored)), models);
        }
        for written in ["", "http://company.ghe.com", "ftp://x", "https://me:key@x.com", "a b"] {
            assert!(domain(written).unwrap_err().to_string().contains("is not the domain"), "{written}");
        }
        assert_eq!(base_url(None), "https://api.githubcopilot.com");
        assert_eq!(base_url(Some("https://x.ghe.com/")), "https://copilot-api.x.ghe.com");
    }
}
