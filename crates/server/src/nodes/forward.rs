//! Sends a request to another server and returns its answer.
//!
//! The answer is streamed. Headers that belong to one connection are dropped, as are those that each server sets itself.

use std::path::Path;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use codewright_engine::{Member, NodeView};
use futures_util::{StreamExt as _, TryStreamExt as _, future};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::Duration;
use tokio::time::timeout;

use super::sign::Unsigned;
use super::{HEADER, LOCAL, Nodes, Passed, SENDER};
use crate::Error;
use crate::auth::Who;
use crate::limit::Slot;
use crate::serve::Closing;
use crate::state::App;

/// The deadline for the head of an answer to a short request: a little more than that of the other server.
const SHORT_TIMEOUT: Duration = Duration::from_secs(65);
/// The same for requests that wait for a model or a user.
const LONG_TIMEOUT: Duration = Duration::from_secs(900);
/// The largest answer.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024 * 1024;

/// Headers of one connection, of a page, and those that each server sets itself.
const DROPPED: &[&str] = &[
    "accept-encoding",
    "access-control-allow-origin",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "origin",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "referer",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "via",
    "x-content-type-options",
    HEADER,
    SENDER,
];

/// A request to another server.
pub(super) struct Sent<'a> {
    pub(super) parts: &'a mut Parts,
    pub(super) body: &'a Bytes,
    /// The directory of the work, for requests that do not name it.
    pub(super) directory: Option<&'a Path>,
    pub(super) has_deadline: bool,
}

/// The result of sending a request.
pub(super) enum Outcome {
    /// The other server has answered.
    Answered(Response),
    /// The other server has done nothing: it cannot be reached, or cannot work in the directory.
    NotReceived,
    /// The other server may have done something.
    Broken(Error),
}

impl Nodes {
    /// Sends a request to another server.
    pub(super) async fn forward(&self, app: &App, view: &NodeView, to: &Member, sent: Sent<'_>) -> Outcome {
        let Sent { parts, body, directory, has_deadline } = sent;
        let (Some(connected), Some(address)) = (&self.connected, &to.address) else {
            return Outcome::NotReceived;
        };
        let mut headers = passed(&parts.headers);
        if let Some(directory) = directory
            && !names_directory(parts)
        {
            let text = utf8_percent_encode(&directory.to_string_lossy(), NON_ALPHANUMERIC).to_string();
            headers.extend(HeaderValue::try_from(text).ok().map(|value| (DIRECTORY, value)));
        }
        if matches!(parts.extensions.get::<Who>(), Some(Who::Local)) {
            headers.insert(SENDER, HeaderValue::from_static(LOCAL));
        }
        let is_upgrade = parts.headers.contains_key(header::UPGRADE);
        if is_upgrade {
            headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        let unsigned =
            Unsigned { method: &parts.method, uri: &parts.uri, headers: &headers, to: &to.id, body };
        let Some(signature) = connected.secret.sign(&unsigned, view) else { return Outcome::NotReceived };
        headers.insert(HEADER, signature);
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let request = connected.client.request(parts.method.clone(), format!("{address}{target}"));
        let sending = request.headers(headers).body(body.clone()).send();
        let limit = if has_deadline { SHORT_TIMEOUT } else { LONG_TIMEOUT };
        let answer = match timeout(limit, sending).await {
            Ok(Ok(answer)) => answer,
            // Nothing was sent.
            Ok(Err(error)) if error.is_connect() => return Outcome::NotReceived,
            Ok(Err(_)) | Err(_) => return Outcome::Broken(broken(to)),
        };
        match answer.status() {
            StatusCode::MISDIRECTED_REQUEST => Outcome::NotReceived,
            StatusCode::SWITCHING_PROTOCOLS => Outcome::Answered(marked(switch(app, parts, answer))),
            StatusCode::UNAUTHORIZED if answer.headers().get(header::WWW_AUTHENTICATE).is_some() => {
                Outcome::Broken(Error::NodeFailed {
                    message: format!(
                        "the server `{}` rejects the signature: its `node.secret` differs",
                        to.name
                    ),
                })
            }
            _ => Outcome::Answered(marked(stream(answer))),
        }
    }
}

/// Marks the answer as that of another server.
fn marked(mut answer: Response) -> Response {
    answer.extensions_mut().insert(Passed);
    answer
}

/// The header with the directory of a request.
pub(super) const DIRECTORY: HeaderName = HeaderName::from_static("x-opencode-directory");

fn broken(to: &Member) -> Error {
    Error::NodeFailed {
        message: format!(
            "the server `{}` ended or did not answer while it worked on the request; another server continues a prompt that was stored",
            to.name
        ),
    }
}

fn names_directory(parts: &Parts) -> bool {
    let query = parts.uri.query().unwrap_or_default();
    let in_query = query.split('&').any(|pair| {
        let key = pair.split('=').next().unwrap_or_default();
        matches!(key, "directory" | "location[directory]" | "location%5Bdirectory%5D")
    });
    in_query || parts.headers.contains_key(DIRECTORY)
}

/// Returns the headers that reach the other side.
fn passed(headers: &HeaderMap) -> HeaderMap {
    let listed: Vec<_> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let is_passed = |name: &HeaderName| {
        let name = name.as_str();
        !DROPPED.contains(&name)
            && !listed.iter().any(|listed| listed == name)
            && !name.starts_with("sec-fetch-")
            && !name.starts_with("x-forwarded-")
            && !name.starts_with("access-control-")
    };
    headers
        .iter()
        .filter(|(name, _)| is_passed(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Returns the answer of another server as it arrives.
fn stream(answer: reqwest::Response) -> Response {
    let (status, mut headers) = (answer.status(), passed(answer.headers()));
    headers.extend(answer.content_length().map(|length| (header::CONTENT_LENGTH, length.into())));
    let mut left = MAX_ANSWER_BYTES;
    let pieces = answer.bytes_stream().map_err(axum::Error::new).and_then(move |piece| {
        let is_short = piece.len() <= left;
        left = left.saturating_sub(piece.len());
        future::ready(if is_short { Ok(piece) } else { Err(axum::Error::new("the answer is too long")) })
    });
    let mut response = Response::new(Body::from_stream(pieces.fuse()));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Joins the connection of the client with the one to the other server.
fn switch(app: &App, parts: &mut Parts, answer: reqwest::Response) -> Response {
    let Some(client) = parts.extensions.remove::<OnUpgrade>() else {
        return Error::payload("the connection cannot change its protocol").into_response();
    };
    let mut headers = passed(answer.headers());
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let closing = Closing::token(parts.extensions.get::<Closing>().cloned().map(axum::Extension));
    // After the upgrade the server no longer tracks the connection, but it still counts as active.
    let busy = parts.extensions.get::<Slot>().map(Slot::begin);
    app.options.tasks.spawn(async move {
        let _busy = busy;
        let copied = async {
            let (client, mut server) =
                tokio::try_join!(async { client.await.map_err(std::io::Error::other) }, async {
                    answer.upgrade().await.map_err(std::io::Error::other)
                },)?;
            tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut server).await
        };
        // A broken connection needs no handling: both ends see that it is closed.
        drop(closing.run_until_cancelled(copied).await);
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_connection_are_dropped() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, X-Private"),
            ("x-private", "1"),
            ("host", "a"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("origin", "http://a"),
            ("sec-fetch-site", "same-origin"),
            ("x-forwarded-for", "1.2.3.4"),
            ("x-codewright-node", "forged"),
            ("x-codewright-sender", "local"),
            ("cookie", "a=b"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        assert_eq!(passed(&headers).len(), 0);
        headers.insert("last-event-id", HeaderValue::from_static("7"));
        headers.insert("sec-websocket-key", HeaderValue::from_static("k"));
        assert_eq!(passed(&headers).len(), 2);
    }
}
