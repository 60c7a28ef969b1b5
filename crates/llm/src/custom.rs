//! Requests that something else sends, such as a plugin with the sign-in of a provider.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use reqwest::Body;

use crate::Error;

/// A request for a provider.
#[derive(Debug, Clone)]
pub struct CustomRequest {
    /// The address.
    pub url: String,
    /// The headers. Their values may be secret.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The answer to a request for a provider.
pub struct CustomResponse {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The pieces of the body.
    pub body: BoxStream<'static, Result<Bytes, String>>,
}

type Answering = Pin<Box<dyn Future<Output = Result<CustomResponse, String>> + Send>>;

/// Sends the requests of a provider. Clones share it.
#[derive(Clone)]
pub struct CustomFetch(Arc<dyn Fn(CustomRequest) -> Answering + Send + Sync>);

impl fmt::Debug for CustomFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomFetch")
    }
}

impl CustomFetch {
    /// Calls `send` for each request. It fails with a sentence.
    pub fn new<F>(send: impl Fn(CustomRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<CustomResponse, String>> + Send + 'static,
    {
        Self(Arc::new(move |request| Box::pin(send(request))))
    }

    /// Sends a request.
    pub(crate) async fn send(&self, request: CustomRequest) -> Result<reqwest::Response, Error> {
        let sent = (self.0)(request).await;
        let CustomResponse { status, headers, body } = sent.map_err(Error::busy)?;
        let mut response = http::Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(name, value);
        }
        let response = response.body(Body::wrap_stream(body_of(body)));
        response
            .map(reqwest::Response::from)
            .map_err(|why| Error::rejected(format!("the answer is invalid: {why}")))
    }
}

fn body_of(
    body: BoxStream<'static, Result<Bytes, String>>,
) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    futures_util::StreamExt::map(body, |piece| piece.map_err(std::io::Error::other))
}
