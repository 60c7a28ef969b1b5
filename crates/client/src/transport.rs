//! How a request reaches its server: through a socket, or by calling it.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

use crate::Error;
use crate::error::Cause;

/// How long a connection may take to be made.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// How long an unused connection is kept: less than a server does, so that no
/// request is sent into a connection that is just being closed.
const IDLE_CONNECTION: Duration = Duration::from_secs(10);
/// After how much silence the other machine is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The body of an answer, wherever it comes from.
pub(crate) type Body = UnsyncBoxBody<Bytes, Cause>;

/// The way to one server.
#[derive(Clone)]
pub(crate) enum Transport {
    Http(Box<hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>>),
    InProcess(BoxCloneSyncService<Request<Full<Bytes>>, Response<Body>, Infallible>),
}

impl Transport {
    pub(crate) fn http() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_DEADLINE));
        connector.set_keepalive(Some(KEEPALIVE));
        let pool = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_CONNECTION)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self::Http(Box::new(pool))
    }

    pub(crate) fn in_process<S, B>(service: S) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Cause>,
    {
        let boxed = service.map_response(|response| {
            response.map(|body| body.map_err(|error| -> Cause { error.into() }).boxed_unsync())
        });
        Self::InProcess(BoxCloneSyncService::new(boxed))
    }

    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Body>, Cause> {
        match self {
            Self::Http(pool) => {
                let response = pool.request(request).await?;
                Ok(response.map(|body| body.map_err(|error| -> Cause { error.into() }).boxed_unsync()))
            }
            Self::InProcess(service) => {
                request.headers_mut().insert(header::HOST, HeaderValue::from_static("localhost"));
                match service.clone().oneshot(request).await {
                    Ok(response) => Ok(response),
                    Err(never) => match never {},
                }
            }
        }
    }
}

/// Checks the address of a server and brings it into the form that paths are appended to.
pub(crate) fn base(url: &str) -> Result<String, Error> {
    // Credentials in an address would end up in messages and logs, so it is not repeated.
    let refused = |reason| {
        let url = if url.contains('@') { "the given address" } else { url };
        Error::Address { url: url.to_owned(), reason }
    };
    let parsed: Uri = url.trim().parse().map_err(|_| refused("it is not a URL"))?;
    match parsed.scheme_str() {
        Some("http") => {}
        Some("https") => return Err(refused("only `http` is supported for now, not `https`")),
        _ => return Err(refused("it does not start with `http://`")),
    }
    let authority = parsed.authority().ok_or_else(|| refused("it names no host"))?;
    if authority.as_str().contains('@') {
        return Err(refused("user name and password are given separately"));
    }
    if parsed.query().is_some() {
        return Err(refused("it has a query"));
    }
    Ok(format!("http://{authority}{}", parsed.path().trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_has_no_trailing_slash() {
        assert_eq!(base("http://127.0.0.1:4096/").unwrap(), "http://127.0.0.1:4096");
        assert_eq!(base("http://[::1]:1/code//").unwrap(), "http://[::1]:1/code");
    }

    #[test]
    fn an_unusable_address_is_refused_with_its_reason() {
        for (url, reason) in [
            ("https://host", "https"),
            ("host:80", "http://"),
            ("ftp://host", "http://"),
            ("http://u:secret@host", "separately"),
            ("http://host/?a=b", "query"),
            ("http://a b", "not a URL"),
            ("", "not a URL"),
        ] {
            let error = base(url).unwrap_err().to_string();
            assert!(error.contains(reason), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
