//! Fetches passes to GitLab's gateway, each once.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::connections::Connections;
use super::read;
use crate::Error;
use crate::error::{Failure, cut};
use crate::gitlab::{GitLab, Pass};

/// How long a pass may take in all, and its connection.
const PASS_WAIT: Duration = Duration::from_secs(30);
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// A pass is good for half an hour, and replaced before that.
const PASS_LIFE: Duration = Duration::from_secs(25 * 60);
/// Bytes an answer with a pass may have.
const PASS_LIMIT_BYTES: usize = 256 * 1024;
/// Headers a pass may come with.
const HEADERS_LIMIT: usize = 64;
/// Where an instance gives passes.
const PATH: &str = "api/v4/ai/third_party_agents/direct_access";

/// Adds a pass that is good for a while yet.
pub(super) async fn authorize(
    gitlab: &GitLab,
    headers: &mut HeaderMap,
    connections: &Connections,
) -> Result<(), Error> {
    let mut kept = gitlab.pass().await;
    if kept.as_ref().is_none_or(|pass| Instant::now() >= pass.stale) {
        // An old one must not outlive a failure to replace it.
        *kept = None;
        let fetched = timeout(PASS_WAIT, fetch(gitlab, connections)).await;
        *kept = Some(fetched.map_err(|_| {
            let seconds = PASS_WAIT.as_secs();
            Error::busy(format!("`{}` gave no access to its models within {seconds} s", gitlab.instance()))
        })??);
    }
    if let Some(pass) = kept.as_ref() {
        for (name, value) in &pass.headers {
            // What the configuration says wins, as everywhere.
            headers.entry(name).or_insert_with(|| value.clone());
        }
        headers.insert(AUTHORIZATION, pass.bearer.clone());
    }
    Ok(())
}

async fn fetch(gitlab: &GitLab, connections: &Connections) -> Result<Pass, Error> {
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
    let body = read(response, PASS_LIMIT_BYTES, fetched + PASS_WAIT).await;
    let answer: Value = serde_json::from_str(&body).unwrap_or_default();
    if !(200..300).contains(&status) {
        return Err(refused(gitlab, status, &answer, token.expose()));
    }
    let Some(text) = answer["token"].as_str().filter(|text| !text.is_empty()) else {
        let instance = gitlab.instance();
        return Err(Error::rejected(format!("the answer of `{instance}` holds no pass to its models")));
    };
    let bearer = sensitive(text, "the pass of GitLab")?;
    Ok(Pass { bearer, headers: told(&answer["headers"]), stale: fetched + PASS_LIFE })
}

/// The headers that come with a pass: GitLab's own, and none that would show another key or change the request.
fn told(written: &Value) -> HeaderMap {
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

/// What to do about an answer without a pass.
fn refused(gitlab: &GitLab, status: u16, answer: &Value, token: &str) -> Error {
    let said =
        answer.get("message").or_else(|| answer.get("error_description")).or_else(|| answer.get("error"));
    let said = said.and_then(Value::as_str).map(|said| cut(said, 300).replace(char::is_control, " "));
    let said = said.filter(|said| !said.is_empty() && !said.contains(token));
    let said = said.map_or_else(String::new, |said| format!(": {said}"));
    let instance = gitlab.instance();
    match status {
        401 => auth(format!(
            "`{instance}` does not accept the token{said}; it needs the scope `api`; run `codewright providers login gitlab`"
        )),
        403 | 404 => auth(format!(
            "`{instance}` gives this user no access to its models (status {status}){said}; GitLab Duo has to be on for the user"
        )),
        408 | 425 | 429 | 500.. => {
            Error::busy(format!("`{instance}` gave no access to its models (status {status}){said}"))
        }
        _ => Error::rejected(format!("`{instance}` refused access to its models (status {status}){said}")),
    }
}

fn auth(message: String) -> Error {
    Error::Auth { failure: Failure::new(message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_brings_the_headers_of_gitlab_alone() {
        let headers = told(&json!({
            "X-Gitlab-Realm": "saas", "x-gitlab-count": 3, "x-api-key": "k", "Authorization": "Bearer k",
            "host": "elsewhere", "x-gitlab-bad": "a\nb", "x-gitlab-list": ["a"],
        }));
        let found: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(found, [("x-gitlab-realm", "saas"), ("x-gitlab-count", "3")]);
        assert!(told(&Value::Null).is_empty());
    }
}
