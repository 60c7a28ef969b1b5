//! The HTTP transport: connections, small requests and downloads.
//!
//! A [`Client`] is cheap to create and to clone. It opens connections when they are first needed
//! and reuses them. This module knows nothing about models and their protocols.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::{Instant, timeout_at};

use crate::error::cut;
use crate::refusal::known::Refusals;
use crate::{Error, Network};

mod connections;
pub(crate) mod exchange;
pub(crate) mod failure;
mod pinned;

pub(crate) use connections::Connections;
pub(crate) use pinned::Pinned;

/// Sends requests to models. Clones share their connections and the refused parts.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) connections: Connections,
    pub(crate) refusals: Refusals,
}

impl Client {
    /// Creates a client that sends `user_agent` to all servers. Opens no connection.
    ///
    /// # Errors
    ///
    /// Fails if `user_agent` is not a valid header value.
    pub fn new(user_agent: &str) -> Result<Self, Error> {
        Self::with_network(Network::default(), user_agent)
    }

    /// Creates a client for a network with its own proxies and certificates.
    ///
    /// # Errors
    ///
    /// Fails if `user_agent` is not a valid header value. Errors in the network settings are
    /// returned by the first request that needs them.
    pub fn with_network(network: Network, user_agent: &str) -> Result<Self, Error> {
        let user_agent = HeaderValue::from_str(user_agent).map_err(|_| {
            Error::rejected(format!("the user agent `{user_agent}` cannot be sent as a header"))
        })?;
        Ok(Self { connections: Connections::new(user_agent, network), refusals: Refusals::default() })
    }

    /// Keeps the hashes of refused parts in a file, for other processes that continue a session.
    #[must_use]
    pub fn with_refusals_in(mut self, path: PathBuf) -> Self {
        self.refusals = Refusals::in_file(path);
        self
    }

    /// Returns the HTTP client for an address, with the proxies and certificates of the network. It follows redirects
    /// within one server only. May block while the system's certificates are loaded.
    ///
    /// # Errors
    ///
    /// Fails if the network settings are invalid.
    pub fn http(&self, url: &Url) -> Result<reqwest::Client, Error> {
        /// Time limit of connecting.
        const CONNECT: Duration = Duration::from_secs(10);
        self.connections.to(url, CONNECT)
    }
}

/// Downloads a text within the limits; the model catalog uses it.
///
/// # Errors
///
/// Fails if the server is unreachable, too slow, rejects the request, or sends a longer text.
pub async fn fetch(client: &Client, url: &str, limit: usize, timeout: Duration) -> Result<String, Error> {
    fetch_with(client, url, &[], limit, timeout).await
}

/// Downloads a text like [`fetch`], with these request headers.
///
/// # Errors
///
/// Fails like [`fetch`], or if a header is not valid.
pub async fn fetch_with(
    client: &Client,
    url: &str,
    headers: &[(String, String)],
    limit: usize,
    timeout: Duration,
) -> Result<String, Error> {
    let mut header_map = HeaderMap::new();
    for (name, value) in headers {
        let header = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
        let bad =
            || Error::rejected(format!("the header `{}` cannot be sent: bad name or value", cut(name, 100)));
        let (name, mut value) = header.ok_or_else(bad)?;
        value.set_sensitive(true);
        header_map.insert(name, value);
    }
    let address = Url::parse(url)
        .map_err(|why| Error::rejected(format!("the address `{}` is not valid: {why}", cut(url, 200))))?;
    let redacted_url = redacted(&address);
    let get = async {
        let sent = client.connections.to(&address, timeout)?.get(address.clone()).headers(header_map);
        let mut response =
            sent.send().await.map_err(|why| client.connections.not_reached(&why, &address, timeout))?;
        let status = response.status();
        if !status.is_success() {
            return Err(Error::rejected(format!("the server answered {status}")));
        }
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|why| failure::broken(&why))? {
            if body.len() + bytes.len() > limit {
                return Err(Error::rejected(format!("the answer has more than {limit} bytes")));
            }
            body.extend_from_slice(&bytes);
        }
        String::from_utf8(body).map_err(|_| Error::rejected("the answer is not UTF-8"))
    };
    match tokio::time::timeout(timeout, get).await {
        Ok(result) => result.map_err(|error| error.with_origin("", &redacted_url)),
        Err(_) => {
            let seconds = timeout.as_secs_f64();
            Err(Error::busy(format!("the server did not answer within {seconds} s"))
                .with_origin("", &redacted_url))
        }
    }
}

/// Returns the URL without the parts that may be secret.
pub(crate) fn redacted(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both fail only for URLs without a host, and these URLs have one.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// Reads a body until `deadline`, at most `limit` bytes.
pub(crate) async fn read(mut response: reqwest::Response, limit: usize, deadline: Instant) -> String {
    let mut body = Vec::new();
    while body.len() < limit
        && let Ok(Ok(Some(bytes))) = timeout_at(deadline, response.chunk()).await
    {
        body.extend_from_slice(&bytes);
    }
    body.truncate(limit);
    String::from_utf8_lossy(&body).into_owned()
}

/// Returns headers as plain data, with names in lower case.
pub(crate) fn to_map(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}
