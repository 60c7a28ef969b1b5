//! Sends a request to a server, through a socket or by calling the server in process.

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

/// The time limit for connecting.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// How long an unused connection is kept. It is shorter than a server's limit, so that no request is
/// sent on a connection that the server is closing.
const IDLE_CONNECTION: Duration = Duration::from_secs(10);
/// The silence after which TCP checks that the other machine is alive.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The body of an answer of either transport.
pub(crate) type Body = UnsyncBoxBody<Bytes, Cause>;

/// A transport to one server.
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

/// Checks the URL of a server and returns it without a trailing slash, so that paths can be appended.
pub(crate) fn base(url: &str) -> Result<String, Error> {
    // A URL with credentials is not repeated, because errors appear on screens and in logs.
    let invalid = |reason| {
        let url = if url.contains('@') { "the given URL" } else { url };
        Error::Address { url: url.to_owned(), reason }
    };
    let parsed: Uri = url.trim().parse().map_err(|_| invalid("it is not a URL"))?;
    match parsed.scheme_str() {
        Some("http") => {}
        Some("https") => return Err(invalid("only `http` is supported for now, not `https`")),
        _ => return Err(invalid("it does not start with `http://`")),
    }
    let authority = parsed.authority().ok_or_else(|| invalid("it has no host"))?;
    if authority.as_str().contains('@') {
        return Err(invalid("the user name and the password must be given separately"));
    }
    if parsed.query().is_some() {
        return Err(invalid("it has a query"));
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
    fn an_invalid_url_is_rejected_with_its_reason() {
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
