//! What operators read of a server: whether it is ready, and its metrics.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use serde_json::json;

use crate::Error;
use crate::extract::Connection;
use crate::state::App;

/// The content type of the text format of Prometheus.
const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Returns whether the server can take work: 200, or 503 with the reason.
pub(super) async fn ready(State(app): State<App>, connection: Connection) -> Response {
    let reason = match connection.closing.is_cancelled() {
        true => Some("the server is stopping"),
        false if app.engine.nodes().is_draining() => Some("the server drains"),
        false => app.readiness.check(&app.engine).await.err(),
    };
    let status = if reason.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut body = json!({"ready": reason.is_none()});
    if let Some(reason) = reason {
        body["reason"] = reason.into();
    }
    (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

/// Returns the metrics, unless they are off.
pub(super) async fn metrics(State(app): State<App>, method: Method, uri: Uri) -> Result<Response, Error> {
    if app.options.metrics.is_none() {
        return Err(Error::NoRoute { method: method.to_string(), path: uri.path().to_owned() });
    }
    let text = app.metrics.text(&app.engine);
    Ok(([(header::CONTENT_TYPE, PROMETHEUS)], text).into_response())
}
