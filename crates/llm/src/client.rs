//! The HTTP client: sends a request to a model and reads the answer as model events.
//!
//! A client is cheap to create and to clone. It opens connections when they are first needed and
//! reuses them. To cancel a request, drop its future or stream. The client does not retry, with two
//! exceptions: a request whose access token had expired is sent once more with a new token, and one of
//! which the provider refused a part is sent again without it.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::classify::Answer;
use crate::error::{ERROR_BODY_LIMIT_BYTES, cut};
use crate::fit::Fitted;
use crate::protocol;
use crate::refusal::{self, MOST_REPEATS};
use crate::transport::{Client, read, redacted, to_map};
use crate::{CustomRequest, Endpoint, Error, Model, Quirk, Request, Secret};

mod auth;
mod body;
mod decode;
mod framing;
mod gitlab;
mod google;
pub(crate) mod probe;
mod stream;
mod unique;

pub use body::body;
pub use decode::decode;
pub use stream::EventStream;

/// Time limit for reading the body of an error answer.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(10);
/// Limit of a list of models.
const MODELS_LIMIT_BYTES: usize = 4 * 1024 * 1024;

impl Client {
    /// Sends a request to `model` and returns when the answer begins.
    ///
    /// # Errors
    ///
    /// Fails if the server is unreachable, rejects the request, or does not begin to answer in
    /// time.
    pub async fn stream(&self, model: &Model, request: &Request) -> Result<EventStream, Error> {
        let url = address(model, request)
            .map_err(|error| error.with_origin(&model.provider_id, cut(&model.base_url, 200)))?;
        let redacted_url = redacted(&url);
        let sent = async {
            let Fitted { request, names } = fitted(request, model).await?;
            let (response, begun) = self.send(model, &request, url).await?;
            let mut stream = EventStream::new(response, model, redacted_url.clone(), begun);
            stream.set_names(names);
            if model.quirks.contains(&Quirk::PrintedCalls) {
                stream.set_tools(&request.tools);
            }
            Ok(stream)
        };
        let sent: Result<_, Error> = sent.await;
        sent.map_err(|error| error.with_origin(&model.provider_id, &redacted_url))
    }

    /// Sends a request that obeys the rules. If the provider refuses parts of it all the same, sends it again without
    /// them, as long as each error is another one.
    async fn send(
        &self,
        model: &Model,
        request: &Request,
        url: Url,
    ) -> Result<(reqwest::Response, Instant), Error> {
        let headers = headers(model, request)?;
        let mut body = protocol::lower_fitted(request, model);
        let scope = refusal::Scope {
            refusals: &self.refusals,
            model,
            session: request.session().unwrap_or_default(),
        };
        scope.apply(&mut body);
        let mut reasons: Vec<String> = Vec::new();
        loop {
            let text = serde_json::to_vec(&body)
                .map_err(|why| Error::rejected(format!("the request cannot be written as JSON: {why}")))?;
            let outgoing = Outgoing { url: url.clone(), headers: headers.clone(), body: text };
            let error = match self.send_body(model, outgoing).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let reason = error.failure().message.clone();
            let is_new = !reasons.contains(&reason) && reasons.len() < MOST_REPEATS;
            if !is_new || !scope.repair(&mut body, &error) {
                return Err(error);
            }
            reasons.push(reason);
            let refusals = self.refusals.clone();
            // The next process asks the provider again if the file cannot be written.
            drop(tokio::task::spawn_blocking(move || refusals.save()).await);
        }
    }

    async fn send_body(
        &self,
        model: &Model,
        outgoing: Outgoing,
    ) -> Result<(reqwest::Response, Instant), Error> {
        match self.attempt(model, outgoing.clone()).await {
            Err((error, used)) if matches!(error, Error::Auth { .. }) => {
                if !auth::discard(model, used.as_ref()).await {
                    return Err(error);
                }
                self.attempt(model, outgoing).await.map_err(|(error, _)| error)
            }
            outcome => outcome.map_err(|(error, _)| error),
        }
    }

    /// Sends a request once. An error comes with the `authorization` header that was sent.
    async fn attempt(
        &self,
        model: &Model,
        mut outgoing: Outgoing,
    ) -> Result<(reqwest::Response, Instant), (Error, Option<HeaderValue>)> {
        let begun = Instant::now();
        let wait = model.timeouts.total.unwrap_or(model.timeouts.first_byte).min(model.timeouts.first_byte);
        let connect = model.timeouts.connect;
        let mut used = None;
        let sent = async {
            auth::authorize(model, &mut outgoing, &self.connections).await?;
            if let Some(fetch) = &model.fetch {
                return fetch.send(outgoing.into()).await;
            }
            let Outgoing { url, headers, body } = outgoing;
            used = headers.get(AUTHORIZATION).cloned();
            let sent = self.connections.to(&url, connect)?.post(url.clone()).headers(headers).body(body);
            sent.send().await.map_err(|why| self.connections.not_reached(&why, &url, connect))
        };
        let response = match timeout_at(begun + wait, sent).await {
            Ok(response) => response.map_err(|error| (error, None))?,
            Err(_) => {
                let seconds = wait.as_secs_f64();
                let late = Error::busy(format!("the server did not begin to answer within {seconds} s"));
                return Err((late, None));
            }
        };
        if response.status().is_success() {
            return Ok((response, begun));
        }
        let error = with_advice(error_answer(response, model).await, model);
        Err((error, used))
    }
}

/// Returns a request that obeys the provider's rules. Pictures are converted on another thread, because that takes long.
async fn fitted(request: &Request, model: &Model) -> Result<Fitted, Error> {
    if !request.has_files() {
        return Ok(protocol::fitted(request, model));
    }
    let (request, model) = (request.clone(), model.clone());
    let fitted = tokio::task::spawn_blocking(move || protocol::fitted(&request, &model));
    fitted.await.map_err(|why| Error::rejected(format!("the pictures could not be converted: {why}")))
}

/// Appends the model's advice about credentials to the server's message.
fn with_advice(error: Error, model: &Model) -> Error {
    match (error, &model.auth_advice) {
        (Error::Auth { mut failure }, Some(advice)) => {
            failure.message = format!("{} ({advice})", failure.message);
            Error::Auth { failure }
        }
        (error, _) => error,
    }
}

/// A request just before it is sent. A signature covers all fields.
#[derive(Debug, Clone)]
struct Outgoing {
    url: Url,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl From<Outgoing> for CustomRequest {
    fn from(Outgoing { url, headers, body }: Outgoing) -> Self {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        Self { url: url.into(), headers, body }
    }
}

/// Returns the names of the models that a chat server offers, within `timeout`. Used to find local
/// servers.
///
/// # Errors
///
/// Fails if the server is unreachable, too slow, rejects the request, or sends no readable list.
pub async fn list_models(
    client: &Client,
    base_url: &str,
    api_key: Option<&Secret>,
    timeout: Duration,
) -> Result<Vec<String>, Error> {
    let url = endpoint(base_url, "models")?;
    let redacted_url = redacted(&url);
    let list = async {
        let mut request = client.connections.to(&url, timeout)?.get(url.clone());
        if let Some(key) = api_key {
            request = request.bearer_auth(key.expose());
        }
        let response =
            request.send().await.map_err(|why| client.connections.not_reached(&why, &url, timeout))?;
        let status = response.status().as_u16();
        let headers = to_map(response.headers());
        let body = read(response, MODELS_LIMIT_BYTES, Instant::now() + timeout).await;
        if !(200..300).contains(&status) {
            let answer = Answer { status, headers: &headers, body: cut(&body, ERROR_BODY_LIMIT_BYTES) };
            return Err(protocol::classify(crate::Protocol::OpenAiChat, &answer));
        }
        names(&body)
            .ok_or_else(|| Error::rejected(format!("the server lists no models: {}", cut(body.trim(), 200))))
    };
    match tokio::time::timeout(timeout, list).await {
        Ok(result) => result.map_err(|error| error.with_origin("", &redacted_url)),
        Err(_) => {
            let ms = timeout.as_millis();
            Err(Error::busy(format!("the server did not list its models within {ms} ms"))
                .with_origin("", &redacted_url))
        }
    }
}

/// Checks that requests can be sent to a base URL.
///
/// # Errors
///
/// Fails if it is not a URL, or its scheme is not HTTP or HTTPS.
pub fn check_url(base_url: &str) -> Result<(), Error> {
    endpoint(base_url, "").map(|_| ())
}

/// Reads `{"data": [{"id"}]}`, `{"models": [{"id" | "name"}]}` or a bare list.
fn names(body: &str) -> Option<Vec<String>> {
    let body: Value = serde_json::from_str(body).ok()?;
    let list = body.get("data").or_else(|| body.get("models")).unwrap_or(&body).as_array()?;
    let name = |model: &Value| {
        let name = model.get("id").or_else(|| model.get("name")).unwrap_or(model);
        name.as_str().map(str::to_owned)
    };
    Some(list.iter().filter_map(name).collect())
}

/// Returns the URL of a request.
fn address(model: &Model, request: &Request) -> Result<Url, Error> {
    let path = protocol::path(request, model);
    match &model.endpoint {
        Endpoint::Protocol | Endpoint::Vertex => endpoint(&model.base_url, &path),
        Endpoint::Azure { api_version } => {
            let mut url = endpoint(&model.base_url, &format!("v1/{path}"))?;
            url.query_pairs_mut().append_pair("api-version", api_version);
            Ok(url)
        }
    }
}

/// Returns the URL of `path` under `base`. Keeps the queries of both.
fn endpoint(base: &str, path: &str) -> Result<Url, Error> {
    let named = cut(base, 200);
    let mut url = Url::parse(base.trim())
        .map_err(|why| Error::rejected(format!("the base URL `{named}` is not valid: {why}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(Error::rejected(format!("the base URL `{named}` must begin with http:// or https://")));
    }
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    // The protocol has already escaped its path.
    url.set_path(&format!("{}/{path}", url.path().trim_end_matches('/')));
    if let Some(query) = query {
        let whole = url.query().map_or_else(|| query.to_owned(), |given| format!("{given}&{query}"));
        url.set_query(Some(&whole));
    }
    Ok(url)
}

/// Returns the headers of the protocol, the credentials, the model and the request. Later ones
/// replace earlier ones.
fn headers(model: &Model, request: &Request) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    let own = protocol::headers(request, model).into_iter().chain(auth::header(model));
    let own: Vec<_> = own.chain(auth::notes(model, request)).collect();
    let own = own.iter().map(|(name, value)| (*name, value.as_str()));
    let given =
        model.headers.iter().chain(&request.headers).map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.chain(given) {
        let bad =
            || Error::rejected(format!("the header `{}` cannot be sent: bad name or value", cut(name, 100)));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let value = match headers.get("anthropic-beta").and_then(|old| old.to_str().ok()) {
            // The value is a list, and the user's entries must not remove the ones that the
            // protocol needs.
            Some(old) if key == "anthropic-beta" => HeaderValue::from_str(&format!("{old},{value}")),
            _ => HeaderValue::from_str(value),
        };
        let mut value = value.map_err(|_| bad())?;
        value.set_sensitive(auth::is_secret(key.as_str()));
        headers.insert(key, value);
    }
    Ok(headers)
}

/// Reads an error answer and returns its error.
async fn error_answer(response: reqwest::Response, model: &Model) -> Error {
    let status = response.status();
    let headers = to_map(response.headers());
    if status.is_redirection() {
        let to = headers.get("location").map_or("another address", String::as_str);
        return Error::rejected(format!(
            "the server redirects ({status}) to `{}`; give that as the base URL if it is right",
            cut(to, 300)
        ));
    }
    let body = read(response, ERROR_BODY_LIMIT_BYTES, Instant::now() + ERROR_BODY_WAIT).await;
    protocol::classify(model.protocol, &Answer { status: status.as_u16(), headers: &headers, body: &body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;

    #[test]
    fn the_path_is_appended_to_the_base_url() {
        for (base, expected) in [
            ("http://127.0.0.1:8199/v1", "http://127.0.0.1:8199/v1/chat/completions"),
            ("http://h/v1/", "http://h/v1/chat/completions"),
            ("https://h", "https://h/chat/completions"),
            ("https://h/d?api-version=1", "https://h/d/chat/completions?api-version=1"),
        ] {
            assert_eq!(endpoint(base, "chat/completions").unwrap().as_str(), expected);
        }
        let found = endpoint("https://h/v1beta?x=1", "models/g:stream?alt=sse").unwrap();
        assert_eq!(found.as_str(), "https://h/v1beta/models/g:stream?x=1&alt=sse");
    }

    #[test]
    fn azure_gets_its_api_version() {
        let mut model = Model::new("azure", "m", Protocol::OpenAiChat, "https://r.openai.azure.com/openai");
        model.endpoint = Endpoint::Azure { api_version: "v1".into() };
        let found = address(&model, &Request::default()).unwrap();
        assert_eq!(found.as_str(), "https://r.openai.azure.com/openai/v1/chat/completions?api-version=v1");
    }

    #[test]
    fn a_bad_base_url_is_named() {
        for base in ["", "localhost:1234/v1", "/v1", "ftp://h/v1", "http://"] {
            let error = endpoint(base, "models").unwrap_err();
            assert!(error.to_string().contains(&format!("`{base}`")), "{error}");
        }
    }

    #[test]
    fn secrets_in_a_url_are_removed() {
        let url = Url::parse("https://user:pass@h/v1/x?key=k#f").unwrap();
        assert_eq!(redacted(&url), "https://h/v1/x");
    }

    #[test]
    fn later_headers_win_and_betas_are_joined() {
        let mut model = Model::new("anthropic", "m", Protocol::Anthropic, "https://h");
        model.api_key = Some("k".into());
        model.headers = vec![("X-Api-Key".into(), "other".into()), ("anthropic-beta".into(), "mine".into())];
        let tool = crate::ToolSpec { name: "t".into(), description: "d".into(), parameters: Value::Null };
        let request = Request {
            tools: vec![tool],
            headers: vec![("x-session-id".into(), "ses_1".into())],
            ..Request::default()
        };
        let found = to_map(&headers(&model, &request).unwrap());
        let expected = [
            ("anthropic-beta", "structured-outputs-2025-11-13,mine"),
            ("anthropic-version", "2023-06-01"),
            ("content-type", "application/json"),
            ("x-api-key", "other"),
            ("x-session-id", "ses_1"),
        ];
        assert_eq!(found.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_named_without_its_value() {
        let mut model = Model::new("p", "m", Protocol::OpenAiChat, "https://h");
        model.api_key = Some("a\nb".into());
        let error = headers(&model, &Request::default()).unwrap_err().to_string();
        assert!(error.contains("`authorization`") && !error.contains("a\nb"), "{error}");
    }

    #[test]
    fn lists_of_models_are_read() {
        for body in [
            r#"{"object":"list","data":[{"id":"a"},{"id":"b"}]}"#,
            r#"{"models":[{"name":"a"},{"id":"b"}]}"#,
            r#"["a","b"]"#,
        ] {
            assert_eq!(names(body), Some(vec!["a".to_owned(), "b".to_owned()]));
        }
        assert_eq!(names("<html>"), None);
        assert_eq!(names(r#"{"data":3}"#), None);
    }
}
