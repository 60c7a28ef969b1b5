//! Signing a browser in and out. The credentials of the request have been checked like those of any other.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, Uri, header};
use serde_json::json;

use crate::Error;
use crate::state::{App, Server};

/// Begins a sign-in. A server without a password and without users has no such route.
pub(super) async fn begin(
    State(app): State<App>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Error> {
    if app.options.password().is_none() && app.options.auth.is_none() {
        return Err(Error::NoRoute { method: method.to_string(), path: uri.path().to_owned() });
    }
    let issued = app.sign_ins.begin(&headers, app.clock.now_ms())?;
    Server::save_sign_ins(&app);
    Ok(([(header::SET_COOKIE, issued.cookie)], Json(json!({"key": issued.key}))).into_response())
}

/// Ends the sign-in of the request, if it has one.
pub(super) async fn end(State(app): State<App>, headers: HeaderMap) -> Result<Response, Error> {
    let removal = app.sign_ins.end(&headers, app.clock.now_ms())?;
    Server::save_sign_ins(&app);
    Ok(([(header::SET_COOKIE, removal)], Json(true)).into_response())
}
