//! Fetches access tokens from Google.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::classify::{self, Answer, ErrorDetails};
use crate::error::{Failure, cut};
use crate::google::{GoogleCredentials, Source, Token};
use crate::transport::{Connections, read, to_map};
use crate::{Error, Secret};

/// Time limits of the connection and of fetching a token.
const TOKEN_WAIT: Duration = Duration::from_secs(30);
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// Time limit for the metadata server to answer. Machines outside Google's cloud never answer.
const PROBE_WAIT: Duration = Duration::from_secs(1);
/// Tokens are replaced this long before they expire, so that none expires during a request.
const MARGIN: Duration = Duration::from_secs(60);
/// The lifetime of a token if the server does not send one, and the longest lifetime that is
/// accepted.
const LIFE_SECONDS: u64 = 3600;
const LONGEST_LIFE_SECONDS: u64 = 24 * 3600;
/// Limit of an answer with a token.
const TOKEN_LIMIT_BYTES: usize = 64 * 1024;
const FLAVOR: HeaderName = HeaderName::from_static("metadata-flavor");
const TOKEN_PATH: &str = "computeMetadata/v1/instance/service-accounts/default/token";

/// Returns a valid access token. Fetches one if needed.
pub(super) async fn token(
    credentials: &GoogleCredentials,
    connections: &Connections,
) -> Result<Secret, Error> {
    let mut kept = credentials.token().await;
    if let Some(token) = kept.as_ref().filter(|token| Instant::now() < token.stale) {
        return Ok(token.text.clone());
    }
    let fetched = timeout(TOKEN_WAIT, fetch(credentials, connections)).await;
    let token = fetched.map_err(|_| {
        let seconds = TOKEN_WAIT.as_secs();
        Error::busy(format!("Google gave no access token within {seconds} s"))
    })??;
    let text = token.text.clone();
    *kept = Some(token);
    Ok(text)
}

async fn fetch(credentials: &GoogleCredentials, connections: &Connections) -> Result<Token, Error> {
    match credentials.source() {
        Source::Key { name, key } => {
            let url = address(key.token_uri())?;
            let form = key.form(credentials.now_seconds())?;
            let request = connections
                .to(&url, CONNECT_WAIT)?
                .post(url.clone())
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(encoded(&form));
            request_token(connections, request, &url, &format!("the credentials in `{name}`")).await
        }
        Source::Machine { host } => {
            probe(host, connections).await?;
            let url = address(&format!("http://{host}/{TOKEN_PATH}"))?;
            let request = connections.to(&url, CONNECT_WAIT)?.get(url.clone()).headers(flavor());
            request_token(connections, request, &url, "this machine's service account").await
        }
    }
}

/// Checks that a metadata server answers, so that other machines do not wait for the full timeout.
async fn probe(host: &str, connections: &Connections) -> Result<(), Error> {
    let url = address(&format!("http://{host}/"))?;
    let sent = connections.to(&url, PROBE_WAIT)?.get(url.clone()).headers(flavor()).send();
    let is_there = match timeout(PROBE_WAIT, sent).await {
        Ok(Ok(response)) => response.headers().get(FLAVOR).is_some_and(|value| value == "Google"),
        Ok(Err(_)) | Err(_) => false,
    };
    if is_there { Ok(()) } else { Err(no_credentials(host)) }
}

/// Returns the error for missing credentials.
fn no_credentials(host: &str) -> Error {
    let message = format!(
        "no Google credentials were found: set GOOGLE_APPLICATION_CREDENTIALS to a service account's key file, \
         or run `gcloud auth application-default login`; no metadata server answered at `{host}` either"
    );
    Error::Auth { failure: Failure::new(message) }
}

async fn request_token(
    connections: &Connections,
    request: reqwest::RequestBuilder,
    url: &Url,
    whose: &str,
) -> Result<Token, Error> {
    let response = request.send().await.map_err(|why| connections.not_reached(&why, url, CONNECT_WAIT))?;
    let fetched = Instant::now();
    let status = response.status().as_u16();
    let headers = to_map(response.headers());
    let body = read(response, TOKEN_LIMIT_BYTES, fetched + TOKEN_WAIT).await;
    let answer: Value = serde_json::from_str(&body).unwrap_or_default();
    if !(200..300).contains(&status) {
        return Err(token_error(&Answer { status, headers: &headers, body: &body }, &answer, whose));
    }
    let Some(text) = answer["access_token"].as_str().filter(|text| !text.is_empty()) else {
        // The body may contain another kind of token, so the message does not include it.
        return Err(Error::rejected(format!("Google's answer for {whose} contains no `access_token`")));
    };
    let life = answer["expires_in"].as_u64().unwrap_or(LIFE_SECONDS).min(LONGEST_LIFE_SECONDS);
    let stale = fetched + Duration::from_secs(life).saturating_sub(MARGIN);
    Ok(Token { text: text.into(), stale })
}

/// Returns the error for an answer without a token.
fn token_error(answer: &Answer, body: &Value, whose: &str) -> Error {
    let code = body["error"].as_str().unwrap_or_default();
    let reason = body["error_description"].as_str().unwrap_or(code);
    let reason =
        if reason.is_empty() { classify::describe(answer.status, answer.body) } else { reason.to_owned() };
    let message = format!("Google refused {whose}: {}", cut(reason.trim_end_matches('.'), 500));
    let message = match code {
        // The user's sign-in has expired.
        "invalid_grant" | "invalid_rapt" => {
            format!("{message}; run `gcloud auth application-default login` or renew the key file")
        }
        _ => message,
    };
    let details = ErrorDetails { message: Some(message), ..ErrorDetails::default() };
    match classify::answer(answer, details) {
        // A token server rejects nothing but credentials.
        Error::Rejected { failure } | Error::Overflow { failure } => Error::Auth { failure },
        other => other,
    }
}

fn flavor() -> HeaderMap {
    HeaderMap::from_iter([(FLAVOR, HeaderValue::from_static("Google"))])
}

fn address(text: &str) -> Result<Url, Error> {
    let named = cut(text, 200);
    Url::parse(text).map_err(|why| Error::rejected(format!("Google's address `{named}` is not valid: {why}")))
}

fn encoded(form: &[(&str, String)]) -> String {
    let mut url = Url::parse("http://form/").expect("a fixed and valid address");
    url.query_pairs_mut().extend_pairs(form);
    url.query().unwrap_or_default().to_owned()
}
