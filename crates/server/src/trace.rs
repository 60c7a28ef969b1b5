//! Request ids, log lines and spans, by which the requests of a client are found in the log.
//!
//! A client may send the id of a request, otherwise the server generates one. It is in the response
//! and in all log lines about the request. Queries are never logged, because they may contain tokens.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use codewright_engine::{Level, Span, within, within_request};
use codewright_proto::Clock;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::json;

use crate::error::ErrorMessage;
use crate::state::App;

/// The header with the request id, in requests and responses.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header with the trace context of the client.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
/// The maximum length of a request id from a client.
const MAX_ID_BYTES: usize = 128;
/// The maximum length of a logged path.
const MAX_PATH_BYTES: usize = 300;

/// A generator of request ids.
pub(crate) struct RequestIds {
    /// The start time of the server, so that two servers never generate the same id.
    started: u64,
    count: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> Self {
        Self { started: Clock::system().now_ms(), count: AtomicU64::new(0) }
    }
}

impl RequestIds {
    fn next(&self) -> HeaderValue {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let id = format!("req_{:x}_{number:x}", self.started);
        HeaderValue::try_from(id).expect("hexadecimal digits are a valid header")
    }
}

/// Gives a request an id and logs its outcome: failures always, successes at level debug.
pub(crate) async fn trace(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let id = client_id(request.headers()).unwrap_or_else(|| app.request_ids.next());
    // A server that the request is passed on to logs the same id.
    if app.nodes.is_some() {
        request.headers_mut().insert(REQUEST_ID, id.clone());
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let start = Instant::now();
    let mut span = span(&app, &request);
    let name = id.to_str().unwrap_or_default().to_owned();
    let work = Box::pin(within(span.context(), next.run(request)));
    let mut response = within_request(name.clone(), work).await;
    let status = response.status();
    app.metrics.answered(status, start.elapsed());
    span.set("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.fail("server");
    }
    drop(span);
    let level = level(status);
    if app.engine.log().writes(level) {
        let message = response.extensions_mut().remove::<ErrorMessage>();
        let details = json!({
            "request": name,
            "status": status.as_u16(),
            "ms": u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
            "error": message.map(|ErrorMessage(text)| text),
        });
        let path: String = path.chars().take(MAX_PATH_BYTES).collect();
        app.engine.log().write(level, "server", &format!("{method} {path}"), Some(details)).await;
    }
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Starts the span of a request. It contains only the route, because the path may contain file names and ids.
fn span(app: &App, request: &Request) -> Span {
    let route = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str);
    let parent = request.headers().get(TRACE_PARENT).and_then(|value| value.to_str().ok());
    app.engine.request_span(request.method().as_str(), route, parent)
}

/// Returns the request id of the client, if it is safe to log and return.
fn client_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let id = headers.get(REQUEST_ID)?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    let is_valid = !id.is_empty() && id.len() <= MAX_ID_BYTES && id.as_bytes().iter().all(is_plain);
    is_valid.then(|| id.clone())
}

/// Returns the log level of a status. Missing things and invalid requests are common, so they do not matter.
fn level(status: StatusCode) -> Level {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Level::Warn,
        status if status.is_server_error() => Level::Error,
        _ => Level::Debug,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_request_ids_of_plain_characters_are_accepted() {
        let long = "a".repeat(MAX_ID_BYTES + 1);
        for (name, expected) in [
            ("abc-123_x.y:z", true),
            ("", false),
            ("two words", false),
            ("{\"a\":1}", false),
            (long.as_str(), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(name).unwrap());
            assert_eq!(client_id(&headers).is_some(), expected, "{name}");
        }
        assert!(client_id(&HeaderMap::new()).is_none());
    }

    #[test]
    fn generated_request_ids_are_unique() {
        let ids = RequestIds::default();
        assert_ne!(ids.next(), ids.next());
    }
}
