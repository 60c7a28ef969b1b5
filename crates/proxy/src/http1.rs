//! HTTP version 1: `CONNECT`, and requests with a whole `http` URL.
//!
//! Each request is judged by the host in its request line. The `Host` header is replaced by that host, so the server
//! sees the host that was judged. Every request to a server has its own connection.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{Outside, Refusal, RefusalKind, Stream, Target};

/// The largest head of a request or a response.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The largest number of header fields.
const MAX_HEADERS: usize = 200;
/// The bytes of a body that wait for a slow reader.
const MAX_BUFFER_BYTES: usize = 128 * 1024;
/// The port of the scheme `http`.
const HTTP_PORT: u16 = 80;
/// Headers without a constant that hold for one connection.
const OF_CONNECTION: [&str; 2] = ["proxy-connection", "keep-alive"];

type Body = Either<Full<Bytes>, Incoming>;

/// The state of one connection of a client.
pub(crate) struct Session {
    outside: Arc<dyn Outside>,
    tasks: TaskTracker,
    /// Ends the connections to servers.
    cancel: CancellationToken,
    /// The tunnel that begins once the current request is answered.
    tunnel: Mutex<Option<(OnUpgrade, Box<dyn Stream>)>>,
}

impl Session {
    pub(crate) fn new(outside: Arc<dyn Outside>, tasks: TaskTracker, cancel: CancellationToken) -> Self {
        Self { outside, tasks, cancel, tunnel: Mutex::new(None) }
    }

    /// Serves a connection to its end.
    pub(crate) async fn serve<S>(self, client: S, head_deadline: Duration) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let session = Arc::new(self);
        let service = service_fn(|request| {
            let session = Arc::clone(&session);
            async move { Ok::<_, Infallible>(session.answer(request).await) }
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(head_deadline)
            .max_headers(MAX_HEADERS)
            .max_header_size(MAX_HEAD_BYTES)
            .max_buf_size(MAX_BUFFER_BYTES)
            .half_close(true)
            .preserve_header_case(true)
            .auto_date_header(false);
        let serving = builder.serve_connection(TokioIo::new(client), service).with_upgrades();
        serving.await.map_err(io::Error::other)?;
        let tunnel = session.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((upgrade, mut server)) = tunnel {
            let client = upgrade.await.map_err(io::Error::other)?;
            copy_bidirectional(&mut TokioIo::new(client), &mut server).await?;
        }
        Ok(())
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if request.headers().contains_key(CONTENT_LENGTH) && request.headers().contains_key(TRANSFER_ENCODING)
        {
            return refuse(StatusCode::BAD_REQUEST, "the request states its length twice");
        }
        let answered = if request.method() == Method::CONNECT {
            self.connect(request).await
        } else {
            self.forward(request).await
        };
        answered.unwrap_or_else(|refused| refused)
    }

    /// Connects, and keeps the connection until the client was told.
    async fn connect(&self, mut request: Request<Incoming>) -> Result<Response<Body>, Response<Body>> {
        if request.headers().contains_key(CONTENT_LENGTH) || request.headers().contains_key(TRANSFER_ENCODING)
        {
            return Err(refuse(StatusCode::BAD_REQUEST, "a tunnel has no body"));
        }
        let authority = request.uri().authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let target = Target::of_authority(authority, None).map_err(|error| bad_request(&error))?;
        let server = self.outside.connect(target).await.map_err(|refusal| refused(&refusal))?;
        let upgrade = hyper::upgrade::on(&mut request);
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, server));
        Ok(Response::new(Either::Left(Full::default())))
    }

    /// Sends a request to its server.
    async fn forward(&self, request: Request<Incoming>) -> Result<Response<Body>, Response<Body>> {
        let (mut parts, body) = request.into_parts();
        let Some(authority) = parts.uri.authority().filter(|_| parts.uri.scheme() == Some(&Scheme::HTTP))
        else {
            return Err(refuse(
                StatusCode::BAD_REQUEST,
                "this is a proxy: send the whole `http` URL, or use CONNECT",
            ));
        };
        let target = Target::of_authority(authority.as_str(), Some(HTTP_PORT));
        let target = target.map_err(|error| bad_request(&error))?;
        let text = target.to_string();
        let host = if target.port() == HTTP_PORT { text.strip_suffix(":80").unwrap_or(&text) } else { &text };
        let host = HeaderValue::from_str(host).map_err(|error| bad_request(&error))?;
        let server = self.outside.connect(target).await.map_err(|refusal| refused(&refusal))?;
        let path = parts.uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        parts.uri = Uri::from(path);
        parts.version = Version::HTTP_11;
        remove_hops(&mut parts.headers);
        parts.headers.insert(HOST, host);
        let response = self.exchange(server, Request::from_parts(parts, body)).await;
        let mut response = response.map_err(|error| {
            let reason = format!("the server closed the connection or sent an invalid response: {error}");
            refuse(StatusCode::BAD_GATEWAY, &reason)
        })?;
        if response.status().is_informational() {
            return Err(refuse(StatusCode::BAD_GATEWAY, "the server changed the protocol"));
        }
        if response.headers().contains_key(TRANSFER_ENCODING) {
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        remove_hops(response.headers_mut());
        *response.version_mut() = Version::HTTP_11;
        Ok(response.map(Either::Right))
    }

    async fn exchange(
        &self,
        server: Box<dyn Stream>,
        request: Request<Incoming>,
    ) -> hyper::Result<Response<Incoming>> {
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder
            .max_headers(MAX_HEADERS)
            .max_header_size(MAX_HEAD_BYTES)
            .max_buf_size(MAX_BUFFER_BYTES)
            .preserve_header_case(true);
        let (mut sender, connection) = builder.handshake(TokioIo::new(server)).await?;
        let cancel = self.cancel.clone();
        // The response reports errors of the connection.
        self.tasks.spawn(async move { drop(cancel.run_until_cancelled(connection).await) });
        sender.send_request(request).await
    }
}

/// Removes the headers that hold for one connection only.
fn remove_hops(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // Without these a message has another meaning.
        .filter(|name| *name != CONTENT_LENGTH && *name != HOST)
        .collect();
    for name in listed {
        headers.remove(name);
    }
    for name in [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE]
    {
        headers.remove(name);
    }
    for name in OF_CONNECTION {
        headers.remove(name);
    }
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let status = match refusal.kind {
        RefusalKind::Forbidden => StatusCode::FORBIDDEN,
        RefusalKind::Unreachable | RefusalKind::Closed => StatusCode::BAD_GATEWAY,
        RefusalKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        RefusalKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
    };
    refuse(status, &refusal.message)
}

fn bad_request(error: &dyn std::fmt::Display) -> Response<Body> {
    refuse(StatusCode::BAD_REQUEST, &error.to_string())
}

fn refuse(status: StatusCode, message: &str) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::from(format!("{message}\n"))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
