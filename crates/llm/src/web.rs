//! Single requests to servers that are no providers.
//!
//! Proxies and certificates are those of the network around; nothing is followed,
//! and a request reaches the addresses that it is given or none, whatever its name
//! means a moment later.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};

use crate::Client;
use crate::error::cut;

/// How long a server may take to let itself be connected to.
const CONNECT: Duration = Duration::from_secs(10);

/// A request: a GET, or a POST of JSON.
#[derive(Debug)]
pub struct Call<'a> {
    /// Where to.
    pub url: &'a Url,
    /// The only addresses that the server may have; none leaves it to the proxy on the way.
    pub addresses: &'a [SocketAddr],
    /// What kinds of answer are wanted.
    pub accept: &'static str,
    /// JSON to post.
    pub body: Option<&'a str>,
    /// Bytes that the answer may have, with nothing compressed.
    pub limit_bytes: usize,
}

/// An answer; only the body of one of success is read.
#[derive(Debug, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// What it says it is.
    pub content_type: String,
    /// Where else it says to look.
    pub location: Option<String>,
    /// All of it.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// The answer is larger than was asked for.
    #[error("the answer is too large")]
    TooLarge,
    /// The server could not be reached, or broke off.
    #[error("{0}")]
    Unreachable(String),
}

/// Whether a proxy is named for such addresses.
#[must_use]
pub fn has_proxy(client: &Client, url: &Url) -> bool {
    client.connections.has_proxy(url)
}

/// Sends one request and reads its answer; whoever waits sets the time.
///
/// # Errors
/// When the server cannot be reached or sends more than is wanted.
pub async fn send(client: &Client, call: &Call<'_>) -> Result<Answer, Unanswered> {
    let (connections, url, pinned) = (client.connections.clone(), call.url.clone(), Pinned::new(call));
    // Reading the machine's certificates takes a while.
    let ready = tokio::task::spawn_blocking(move || connections.pinned(&url, CONNECT, pinned)).await;
    let ready = ready.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
    let http = ready.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
    let request = match call.body {
        Some(body) => {
            http.post(call.url.clone()).header(CONTENT_TYPE, "application/json").body(body.to_owned())
        }
        None => http.get(call.url.clone()),
    };
    let sent = request.header(ACCEPT, call.accept).send().await;
    let mut response = sent.map_err(|why| Unanswered::Unreachable(reason(&why)))?;
    let mut answer = Answer {
        status: response.status().as_u16(),
        content_type: header(response.headers(), &CONTENT_TYPE).unwrap_or_default(),
        location: header(response.headers(), &LOCATION),
        body: Vec::new(),
    };
    if !response.status().is_success() {
        return Ok(answer);
    }
    let told = response.content_length().and_then(|length| usize::try_from(length).ok());
    if told.is_some_and(|length| length > call.limit_bytes) {
        return Err(Unanswered::TooLarge);
    }
    while let Some(piece) = response.chunk().await.map_err(|why| Unanswered::Unreachable(reason(&why)))? {
        if answer.body.len() + piece.len() > call.limit_bytes {
            return Err(Unanswered::TooLarge);
        }
        answer.body.extend_from_slice(&piece);
    }
    Ok(answer)
}

/// Posts JSON with headers of its own: the status of the answer, which is not read.
///
/// # Errors
/// When the server cannot be reached or a header is none.
pub async fn post(
    client: &Client,
    url: &Url,
    headers: &[(String, String)],
    body: Vec<u8>,
) -> Result<u16, Unanswered> {
    let (connections, to) = (client.connections.clone(), url.clone());
    let ready = tokio::task::spawn_blocking(move || connections.to(&to, CONNECT)).await;
    let ready = ready.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
    let http = ready.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
    let mut request = http.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let sent = request.send().await.map_err(|why| Unanswered::Unreachable(reason(&why)))?;
    Ok(sent.status().as_u16())
}

fn header(headers: &HeaderMap<HeaderValue>, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?.as_bytes();
    Some(cut(&String::from_utf8_lossy(value), 8192).to_owned())
}

/// The innermost reason, which is the one that says something.
fn reason(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    cut(&inner.to_string(), 300).to_owned()
}

/// Knows one name, and asks the machine for any other: that of a proxy.
#[derive(Debug)]
pub(crate) struct Pinned {
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Pinned {
    fn new(call: &Call<'_>) -> Self {
        let host = call.url.host_str().unwrap_or_default().to_ascii_lowercase();
        Self { host, addresses: call.addresses.to_vec() }
    }
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        if name.as_str().eq_ignore_ascii_case(&self.host) {
            let addresses = self.addresses.clone();
            return Box::pin(async move {
                if addresses.is_empty() {
                    return Err("its name is not known".into());
                }
                Ok(Box::new(addresses.into_iter()) as Addrs)
            });
        }
        let name = name.as_str().to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}
