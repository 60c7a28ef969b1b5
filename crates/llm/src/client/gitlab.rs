//! Fetches access tokens for GitLab's gateway.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::Error;
use crate::error::{Failure, cut};
use crate::gitlab::{AccessToken, GitLab};
use crate::transport::{Connections, read};

/// Time limits of the connection and of fetching a token.
const TOKEN_WAIT: Duration = Duration::from_secs(30);
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// GitLab's tokens are valid for 30 minutes. They are replaced earlier.
const TOKEN_LIFE: Duration = Duration::from_secs(25 * 60);
/// Limit of an answer with a token.
const TOKEN_LIMIT_BYTES: usize = 256 * 1024;
/// Limit of the headers that come with a token.
const HEADERS_LIMIT: usize = 64;
/// The path of a GitLab instance's token API.
const PATH: &str = "api/v4/ai/third_party_agents/direct_access";

/// Adds a valid access token to the headers. Fetches one if needed.
pub(super) async fn authorize(
    gitlab: &GitLab,
    headers: &mut HeaderMap,
    connections: &Connections,
) -> Result<(), Error> {
    let mut kept = gitlab.access_token().await;
    if kept.as_ref().is_none_or(|token| Instant::now() >= token.stale) {
        // If fetching a new token fails, the old one must not be used again.
        *kept = None;
        let fetched = timeout(TOKEN_WAIT, fetch(gitlab, connections)).await;
        *kept = Some(fetched.map_err(|_| {
            let seconds = TOKEN_WAIT.as_secs();
            Error::busy(format!(
                "`{}` did not grant access to its models within {seconds} s",
                gitlab.instance()
            ))
        })??);
    }
    if let Some(token) = kept.as_ref() {
        for (name, value) in &token.headers {
            // Configured headers win.
            headers.entry(name).or_insert_with(|| value.clone());
        }
        headers.insert(AUTHORIZATION, token.bearer.clone());
    }
    Ok(())
}

async fn fetch(gitlab: &GitLab, connections: &Connections) -> Result<AccessToken, Error> {
    let token = gitlab.token().await?;
    let url = format!("{}/{PATH}", gitlab.instance());
    let url = Url::parse(&url).map_err(|_| Error::rejected(format!("the address `{url}` is not valid")))?;
    let bearer = sensitive(token.expose(), "the GitLab token")?;
    let body = json!({ "feature_flags": gitlab.features() }).to_string();
    let request = connections.to(&url, CONNECT_WAIT)?.post(url.clone());
    let request = request.header(AUTHORIZATION, bearer).header(ACCEPT, "application/json");
    let sent = request.header(CONTENT_TYPE, "application/json").body(body).send();
    let response = sent.await.map_err(|why| connections.not_reached(&why, &url, CONNECT_WAIT))?;
    let fetched = Instant::now();
    let status = response.status().as_u16();
    let body = read(response, TOKEN_LIMIT_BYTES, fetched + TOKEN_WAIT).await;
    let answer: Value = serde_json::from_str(&body).unwrap_or_default();
    if !(200..300).contains(&status) {
        return Err(token_error(gitlab, status, &answer, token.expose()));
    }
    let Some(text) = answer["token"].as_str().filter(|text| !text.is_empty()) else {
        let instance = gitlab.instance();
        return Err(Error::rejected(format!(
            "the answer of `{instance}` contains no access token for its models"
        )));
    };
    let bearer = sensitive(text, "GitLab's access token")?;
    Ok(AccessToken { bearer, headers: gitlab_headers(&answer["headers"]), stale: fetched + TOKEN_LIFE })
}

/// Returns the headers that belong to a token. Ignores headers that are not GitLab's, because they
/// could add another key or change the request.
fn gitlab_headers(written: &Value) -> HeaderMap {
    let written = written.as_object().into_iter().flatten().take(HEADERS_LIMIT);
    let mut headers = HeaderMap::new();
    for (name, value) in written {
        let name = name.to_ascii_lowercase();
        let text = value.as_str().map(str::to_owned).or_else(|| value.as_number().map(ToString::to_string));
        let header = HeaderName::from_bytes(name.as_bytes()).ok().zip(text);
        if let Some((header, text)) = header.filter(|_| name.starts_with("x-gitlab-"))
            && let Ok(value) = HeaderValue::from_str(&text)
        {
            headers.insert(header, value);
        }
    }
    headers
}

fn sensitive(token: &str, what: &str) -> Result<HeaderValue, Error> {
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.map_err(|_| Error::rejected(format!("{what} cannot be sent as a header")))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the error for an answer without a token.
fn token_error(gitlab: &GitLab, status: u16, answer: &Value, token: &str) -> Error {
    let reason =
        answer.get("message").or_else(|| answer.get("error_description")).or_else(|| answer.get("error"));
    let reason = reason.and_then(Value::as_str).map(|text| cut(text, 300).replace(char::is_control, " "));
    let reason = reason.filter(|text| !text.is_empty() && !text.contains(token));
    let reason = reason.map_or_else(String::new, |text| format!(": {text}"));
    let instance = gitlab.instance();
    match status {
        401 => auth(format!(
            "`{instance}` does not accept the token{reason}; it needs the scope `api`; run `codewright providers login gitlab`"
        )),
        403 | 404 => auth(format!(
            "`{instance}` does not grant this user access to its models (status {status}){reason}; GitLab Duo must be enabled for the user"
        )),
        408 | 425 | 429 | 500.. => {
            Error::busy(format!("`{instance}` did not grant access to its models (status {status}){reason}"))
        }
        _ => Error::rejected(format!("`{instance}` refused access to its models (status {status}){reason}")),
    }
}

fn auth(message: String) -> Error {
    Error::Auth { failure: Failure::new(message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gitlabs_own_headers_are_kept() {
        let headers = gitlab_headers(&json!({
            "X-Gitlab-Realm": "saas", "x-gitlab-count": 3, "x-api-key": "k", "Authorization": "Bearer k",
            "host": "elsewhere", "x-gitlab-bad": "a\nb", "x-gitlab-list": ["a"],
        }));
        let found: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(found, [("x-gitlab-realm", "saas"), ("x-gitlab-count", "3")]);
        assert!(gitlab_headers(&Value::Null).is_empty());
    }
}
