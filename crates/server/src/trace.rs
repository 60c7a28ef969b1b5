//! The name of a request, by which a client's trouble is found again in the log.
//!
//! A client may bring one; else the server gives it one. It stands in the answer and in every
//! line about the request. Addresses are written without what follows their path: tokens stand there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use codewright_engine::{Level, Span, within};
use codewright_proto::Clock;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::json;

use crate::error::Said;
use crate::state::App;

/// The header, in requests and answers.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header by which a client says what its request belongs to.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
/// The longest name that is taken from a client.
const MAX_ID_BYTES: usize = 128;
/// What is written of a path at most.
const MAX_PATH_BYTES: usize = 300;

/// Names for requests that bring none.
pub(crate) struct Names {
    /// When the server began, so that no two servers give the same.
    begun: u64,
    given: AtomicU64,
}

impl Default for Names {
    fn default() -> Self {
        Self { begun: Clock::system().now_ms(), given: AtomicU64::new(0) }
    }
}

impl Names {
    fn next(&self) -> HeaderValue {
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        let name = format!("req_{:x}_{number:x}", self.begun);
        HeaderValue::try_from(name).expect("hexadecimal digits make a header")
    }
}

/// Names a request, and writes down how it ended: failures always, others where everything is.
pub(crate) async fn trace(State(app): State<App>, request: Request, next: Next) -> Response {
    let id = brought(request.headers()).unwrap_or_else(|| app.names.next());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let begun = Instant::now();
    let mut span = span(&app, &request);
    let mut response = within(span.context(), next.run(request)).await;
    let status = response.status();
    span.set("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.fail("server");
    }
    drop(span);
    let level = level(status);
    if app.engine.log().writes(level) {
        let said = response.extensions_mut().remove::<Said>();
        let about = json!({
            "request": id.to_str().unwrap_or_default(),
            "status": status.as_u16(),
            "ms": u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            "error": said.map(|Said(text)| text),
        });
        let path: String = path.chars().take(MAX_PATH_BYTES).collect();
        app.engine.log().write(level, "server", &format!("{method} {path}"), Some(about)).await;
    }
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Tells of the request by its route alone: names of files and ids stand in its address.
fn span(app: &App, request: &Request) -> Span {
    let route = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str);
    let parent = request.headers().get(TRACE_PARENT).and_then(|value| value.to_str().ok());
    app.engine.request_span(request.method().as_str(), route, parent)
}

/// The name that a client brought, if it is one: it is repeated and written down.
fn brought(headers: &HeaderMap) -> Option<HeaderValue> {
    let id = headers.get(REQUEST_ID)?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    let is_name = !id.is_empty() && id.len() <= MAX_ID_BYTES && id.as_bytes().iter().all(is_plain);
    is_name.then(|| id.clone())
}

/// How much the end of a request matters. That something is not there, or was asked in a way
/// that is refused, is everyday.
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
    fn only_plain_names_are_taken() {
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
            assert_eq!(brought(&headers).is_some(), expected, "{name}");
        }
        assert!(brought(&HeaderMap::new()).is_none());
    }

    #[test]
    fn no_name_is_given_twice() {
        let names = Names::default();
        assert_ne!(names.next(), names.next());
    }
}
