//! Single HTTP requests to servers that are not model providers.
//!
//! Requests use the configured proxies and certificates and follow no redirects. A request connects
//! only to the given addresses, even if the DNS answer for its host changes.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};

use crate::Client;
use crate::error::cut;
use crate::transport::Pinned;

/// Time limit of connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// A GET request, or a POST request with JSON.
#[derive(Debug)]
pub struct Call<'a> {
    /// The URL.
    pub url: &'a Url,
    /// The addresses that may be connected to. If empty, only a proxy can reach the server.
    pub addresses: &'a [SocketAddr],
    /// The `accept` header.
    pub accept: &'static str,
    /// JSON to post.
    pub body: Option<&'a str>,
    /// Limit of the answer's body after decompression.
    pub limit_bytes: usize,
}

/// An answer. The body is read only if the status is a success.
#[derive(Debug, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The `content-type` header.
    pub content_type: String,
    /// The `location` header.
    pub location: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The answer exceeds the limit.
    #[error("the answer is too large")]
    TooLarge,
    /// The server is unreachable, or closed the connection early.
    #[error("{0}")]
    Unreachable(String),
}

/// Returns whether a proxy is configured for `url`.
#[must_use]
pub fn has_proxy(client: &Client, url: &Url) -> bool {
    client.connections.has_proxy(url)
}

/// Sends a request and reads the answer. The caller sets the time limit.
///
/// # Errors
///
/// Fails if the server is unreachable or the answer exceeds the limit.
pub async fn send(client: &Client, call: &Call<'_>) -> Result<Answer, Error> {
    let (connections, url, pinned) =
        (client.connections.clone(), call.url.clone(), Pinned::new(call.url, call.addresses));
    // Loading the system's certificates blocks for a while.
    let ready = tokio::task::spawn_blocking(move || connections.pinned(&url, CONNECT, pinned)).await;
    let ready = ready.map_err(|error| Error::Unreachable(error.to_string()))?;
    let http = ready.map_err(|error| Error::Unreachable(error.to_string()))?;
    let request = match call.body {
        Some(body) => {
            http.post(call.url.clone()).header(CONTENT_TYPE, "application/json").body(body.to_owned())
        }
        None => http.get(call.url.clone()),
    };
    let sent = request.header(ACCEPT, call.accept).send().await;
    let mut response = sent.map_err(|why| Error::Unreachable(reason(&why)))?;
    let mut answer = Answer {
        status: response.status().as_u16(),
        content_type: header(response.headers(), &CONTENT_TYPE).unwrap_or_default(),
        location: header(response.headers(), &LOCATION),
        body: Vec::new(),
    };
    if !response.status().is_success() {
        return Ok(answer);
    }
    let length = response.content_length().and_then(|length| usize::try_from(length).ok());
    if length.is_some_and(|length| length > call.limit_bytes) {
        return Err(Error::TooLarge);
    }
    while let Some(piece) = response.chunk().await.map_err(|why| Error::Unreachable(reason(&why)))? {
        if answer.body.len() + piece.len() > call.limit_bytes {
            return Err(Error::TooLarge);
        }
        answer.body.extend_from_slice(&piece);
    }
    Ok(answer)
}

/// Posts JSON with extra headers and returns the status. Does not read the answer.
///
/// # Errors
///
/// Fails if the server is unreachable or a header is invalid.
pub async fn post(
    client: &Client,
    url: &Url,
    headers: &[(String, String)],
    body: Vec<u8>,
) -> Result<u16, Error> {
    let (connections, to) = (client.connections.clone(), url.clone());
    let ready = tokio::task::spawn_blocking(move || connections.to(&to, CONNECT)).await;
    let ready = ready.map_err(|error| Error::Unreachable(error.to_string()))?;
    let http = ready.map_err(|error| Error::Unreachable(error.to_string()))?;
    let mut request = http.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let sent = request.send().await.map_err(|why| Error::Unreachable(reason(&why)))?;
    Ok(sent.status().as_u16())
}

/// Sends any request and reads the whole answer, whatever its status. Like [`send`], it follows no redirect and connects
/// only to the given addresses. The caller sets the time limit.
///
/// # Errors
///
/// Fails if the server is unreachable or the answer exceeds the limit.
pub async fn exchange(
    client: &Client,
    request: http::Request<Vec<u8>>,
    addresses: &[SocketAddr],
    limit_bytes: usize,
) -> Result<http::Response<Vec<u8>>, Error> {
    let request = reqwest::Request::try_from(request).map_err(|why| Error::Unreachable(reason(&why)))?;
    let (connections, url) = (client.connections.clone(), request.url().clone());
    let pinned = Pinned::new(&url, addresses);
    let ready = tokio::task::spawn_blocking(move || connections.pinned(&url, CONNECT, pinned)).await;
    let ready = ready.map_err(|error| Error::Unreachable(error.to_string()))?;
    let client = ready.map_err(|error| Error::Unreachable(error.to_string()))?;
    let mut response = client.execute(request).await.map_err(|why| Error::Unreachable(reason(&why)))?;
    let mut answer = http::Response::new(Vec::new());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = response.headers().clone();
    while let Some(piece) = response.chunk().await.map_err(|why| Error::Unreachable(reason(&why)))? {
        if answer.body().len() + piece.len() > limit_bytes {
            return Err(Error::TooLarge);
        }
        answer.body_mut().extend_from_slice(&piece);
    }
    Ok(answer)
}

fn header(headers: &HeaderMap<HeaderValue>, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?.as_bytes();
    Some(cut(&String::from_utf8_lossy(value), 8192).to_owned())
}

/// Returns the innermost error, which is the most specific.
fn reason(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    cut(&inner.to_string(), 300).to_owned()
}
