//! The requests of a sign-in, and which of them may be sent.
//!
//! Addresses come from the metadata of a server, which is hostile. Each request uses HTTPS or stays on this machine, has a
//! deadline and a limited answer, and a sign-in sends a limited number of them. Redirects are not followed here; the SDK
//! follows those of metadata within one origin, as new requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::Value;
use tokio::time::timeout;
use url::{Host, Url, form_urlencoded};

use crate::config::{OAuth, Remote};
use crate::error::cut;
use crate::host::Boxed;

/// The longest body of an answer.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// The time limit of one request.
const REQUEST_DEADLINE: Duration = Duration::from_secs(20);
/// The limit of requests of one sign-in, so that metadata cannot cause endless ones.
const MAX_REQUESTS: usize = 40;

/// Sends the requests of sign-ins.
pub trait Web: Send + Sync + 'static {
    /// Sends one request. Follows no redirect, and reads at most [`MAX_BODY_BYTES`]. Connects to this machine or a local
    /// network only if the request is for the host of an address in `own`.
    fn send<'a>(
        &'a self,
        request: Request<Vec<u8>>,
        own: &'a [Url],
    ) -> Boxed<'a, Result<Response<Vec<u8>>, String>>;
}

/// The requests of one sign-in to one server.
pub(super) struct Guard {
    web: Arc<dyn Web>,
    /// The address of the server, and that of the sign-in server if the configuration has one.
    own: Vec<Url>,
    /// The resource in requests for tokens, exactly as the server wrote it. The SDK adds a slash to some.
    resource: Option<String>,
    count: AtomicUsize,
    last: Mutex<Last>,
}

/// The result of the last request.
#[derive(Debug, Clone, Default)]
pub(super) struct Last {
    /// Why there was no answer.
    pub(super) failure: Option<String>,
    pub(super) status: Option<StatusCode>,
    /// The error code in the answer, such as `invalid_grant`.
    pub(super) code: Option<String>,
}

impl Guard {
    pub(super) fn new(web: Arc<dyn Web>, remote: &Remote) -> Arc<Self> {
        let own = std::iter::once(&remote.url).chain(sign_in_server(remote));
        Self::with_resource(web, own.cloned().collect(), None)
    }

    /// Sends this resource in requests for tokens.
    pub(super) fn with_resource(web: Arc<dyn Web>, own: Vec<Url>, resource: Option<String>) -> Arc<Self> {
        Arc::new(Self { web, own, resource, count: AtomicUsize::new(0), last: Mutex::default() })
    }

    pub(super) fn last(&self) -> Last {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, last: Last) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }

    fn with_own_resource(&self, request: Request<Vec<u8>>) -> Request<Vec<u8>> {
        let Some(resource) = &self.resource else { return request };
        request.map(|body| {
            let pairs = form_urlencoded::parse(&body);
            let pairs = pairs.map(
                |(name, value)| if name == "resource" { (name, resource.into()) } else { (name, value) },
            );
            form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().into_bytes()
        })
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, String> {
        let url =
            Url::parse(&request.uri().to_string()).map_err(|why| format!("an address is no URL: {why}"))?;
        let shown = cut(url.host_str().unwrap_or_default());
        if self.count.fetch_add(1, Ordering::Relaxed) >= MAX_REQUESTS {
            return Err(format!("the sign-in needs more than {MAX_REQUESTS} requests"));
        }
        if !is_secure(&url) {
            return Err(format!("`{shown}` is not reached over HTTPS"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!("the address of `{shown}` contains a user name or password"));
        }
        let sent = timeout(REQUEST_DEADLINE, self.web.send(request, &self.own)).await;
        let late = || format!("`{shown}` did not answer within {} s", REQUEST_DEADLINE.as_secs());
        let answer = sent.map_err(|_| late())??;
        if answer.body().len() > MAX_BODY_BYTES {
            return Err(format!("the answer of `{shown}` has more than {} KiB", MAX_BODY_BYTES / 1024));
        }
        Ok(answer)
    }
}

impl OAuthHttpClient for Guard {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            match self.send(self.with_own_resource(request.request)).await {
                Ok(answer) => {
                    let body = serde_json::from_slice::<Value>(answer.body()).unwrap_or_default();
                    let code = body.get("error").and_then(Value::as_str).map(cut);
                    self.note(Last { failure: None, status: Some(answer.status()), code });
                    Ok(with_whole_seconds(answer, body))
                }
                Err(failure) => {
                    self.note(Last { failure: Some(failure.clone()), ..Last::default() });
                    Err(failure.into())
                }
            }
        })
    }
}

/// The sign-in server that the configuration names.
pub(super) fn sign_in_server(remote: &Remote) -> Option<&Url> {
    match &remote.oauth {
        OAuth::Off => None,
        OAuth::On { server, .. } => server.as_deref(),
    }
}

/// Makes the life of a token a whole number, because some servers send a text or a fraction, which the SDK refuses.
fn with_whole_seconds(answer: Response<Vec<u8>>, mut body: Value) -> Response<Vec<u8>> {
    let life = body.get("expires_in");
    let seconds = life.and_then(|life| life.as_f64().or_else(|| life.as_str()?.trim().parse().ok()));
    let Some(seconds) = seconds.filter(|_| life.is_some_and(|life| !life.is_u64())) else { return answer };
    // A conversion of a float to an integer saturates.
    body["expires_in"] = (seconds.max(0.0) as u64).into();
    answer.map(|old| serde_json::to_vec(&body).unwrap_or(old))
}

/// Whether the host of an address is this machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether nobody on the network can read what is sent to an address.
#[must_use]
pub fn is_secure(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(url),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_https_and_this_machine_are_secure() {
        for (address, expected) in [
            ("https://h/", true),
            ("http://127.0.0.1:1/", true),
            ("http://localhost/", true),
            ("http://[::1]/", true),
            ("http://h/", false),
            ("http://10.0.0.1/", false),
            ("http://localhost.evil/", false),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
        ] {
            assert_eq!(is_secure(&Url::parse(address).unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn the_life_of_a_token_becomes_a_whole_number() {
        for (life, expected) in [
            (json!(3600), json!(3600)),
            (json!(1.9), json!(1)),
            (json!("60"), json!(60)),
            (json!("x"), json!("x")),
        ] {
            let body = json!({ "expires_in": life });
            let answer = with_whole_seconds(Response::new(body.to_string().into_bytes()), body);
            let read: Value = serde_json::from_slice(answer.body()).unwrap();
            assert_eq!(read["expires_in"], expected);
        }
    }
}
