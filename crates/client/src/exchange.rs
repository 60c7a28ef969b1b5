//! One HTTP exchange with the server: builds the request, waits for the answer and reads it.
//!
//! Every wait has a limit, and every answer that is not a success becomes an [`Error`].

use std::time::Duration;

use bytes::Bytes;
use codewright_proto::ApiError;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::Error;
use crate::error::Cause;
use crate::query::{escape, with_query};
use crate::transport::{Body, Transport};

/// The time limit of an ordinary call.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);
/// The longest time that the server may be silent while a prompt is answered.
const SILENCE: Duration = Duration::from_secs(60);
/// The maximum size of an answer.
const MAX_REPLY_BYTES: usize = 256 * 1024 * 1024;
/// How many characters of an invalid answer an error repeats.
const EXCERPT_CHARS: usize = 200;

/// A server and the parameters that every request to it has.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) transport: Transport,
    /// The URL that paths are appended to. It is empty in process.
    pub(crate) base: String,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) directory: Option<String>,
    /// The value of the header `Prefer`.
    pub(crate) preference: Option<HeaderValue>,
}

/// A request, without the parts that depend on the server.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

/// The time limit of an exchange.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    /// For the whole answer.
    Total(Duration),
    /// For the next bytes of the answer.
    Silence(Duration),
}

/// An answer that was read to its end.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Call {
    pub(crate) fn new(method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), query: Vec::new(), body: None }
    }

    pub(crate) fn with_body(mut self, body: &impl Serialize) -> Self {
        // Serializing fails only for maps with keys that are not strings, and no request has one.
        self.body = Some(serde_json::to_vec(body).expect("every request is valid JSON"));
        self
    }
}

impl Server {
    /// Sends a call and decodes its answer, within the time limit of an ordinary call.
    pub(crate) async fn value<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        self.value_within(call, DEADLINE).await
    }

    /// Sends a call and decodes its answer, within a time limit.
    pub(crate) async fn value_within<T: DeserializeOwned>(
        &self,
        call: Call,
        limit: Duration,
    ) -> Result<T, Error> {
        let name = format!("{} {}", call.method, call.path);
        let answer = self.exchange(call, Limit::Total(limit)).await?;
        serde_json::from_slice(&answer.bytes).map_err(|error| self.invalid(&name, &answer, &error))
    }

    /// Sends a call that is answered after a turn, and decodes its answer.
    ///
    /// It takes as long as the server shows that it is alive. A server that has begun to answer can no
    /// longer change the status, so an error may come in the body of a success.
    pub(crate) async fn late_value<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        let answer = self.exchange(call, Limit::Silence(SILENCE)).await?;
        serde_json::from_slice(&answer.bytes).map_err(|error| match api_error(&answer.bytes) {
            Some(error) => Error::Api { status: StatusCode::INTERNAL_SERVER_ERROR, error },
            None => self.invalid("the answer to the prompt", &answer, &error),
        })
    }

    /// Sends a call and returns its answer if it is a success.
    pub(crate) async fn exchange(&self, call: Call, limit: Limit) -> Result<Answer, Error> {
        let request = self.request(call)?;
        let after = limit.duration();
        let deadline = Instant::now() + after;
        let response = self.send(request, deadline, after).await?;
        self.accept(self.read(response, limit, deadline).await?)
    }

    pub(crate) fn request(&self, mut call: Call) -> Result<Request<Full<Bytes>>, Error> {
        // GET requests name the directory in the query, as OpenCode's clients do, because some proxies
        // cache by URL alone.
        let reads = call.method == Method::GET;
        let named = call.query.iter().any(|(name, _)| *name == "directory");
        let directory = self.directory.as_deref().filter(|_| !named);
        if let Some(directory) = directory.filter(|_| reads) {
            call.query.push(("directory", directory.to_owned()));
        }
        let address = format!("{}{}", self.base, with_query(&call.path, &call.query));
        let mut request = Request::builder().method(call.method).uri(address);
        if let Some(directory) = directory.filter(|_| !reads) {
            request = request.header("x-opencode-directory", escape(directory));
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        if let Some(preference) = &self.preference {
            request = request.header("prefer", preference.clone());
        }
        if call.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request
            .body(Full::new(call.body.map(Bytes::from).unwrap_or_default()))
            .map_err(|error| self.unreachable(error.into()))
    }

    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        deadline: Instant,
        after: Duration,
    ) -> Result<Response<Body>, Error> {
        let sent = timeout_at(deadline, self.transport.send(request)).await;
        sent.map_err(|_| self.timeout(after))?.map_err(|source| self.connection_error(source))
    }

    pub(crate) async fn read(
        &self,
        response: Response<Body>,
        limit: Limit,
        mut deadline: Instant,
    ) -> Result<Answer, Error> {
        let (head, mut body) = response.into_parts();
        let mut bytes = Vec::new();
        loop {
            let arrived = timeout_at(deadline, body.frame()).await;
            let Some(frame) = arrived.map_err(|_| self.timeout(limit.duration()))? else { break };
            let frame = frame.map_err(|source| self.connection_error(source))?;
            let Some(data) = frame.data_ref() else { continue };
            if bytes.len() + data.len() > MAX_REPLY_BYTES {
                let max = MAX_REPLY_BYTES / 1024 / 1024;
                return Err(self.protocol(format!("it is larger than {max} MiB")));
            }
            bytes.extend_from_slice(data);
            if let Limit::Silence(silence) = limit {
                deadline = Instant::now() + silence;
            }
        }
        Ok(Answer { status: head.status, headers: head.headers, bytes })
    }

    /// Returns the answer if it is a success, and an error otherwise.
    pub(crate) fn accept(&self, answer: Answer) -> Result<Answer, Error> {
        if answer.status == StatusCode::UNAUTHORIZED {
            return Err(Error::Unauthorized);
        }
        let kind = answer.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        if kind.is_some_and(|kind| kind.starts_with(b"text/html")) {
            return Err(self.protocol("it is a web page"));
        }
        if answer.status.is_success() {
            return Ok(answer);
        }
        let error = api_error(&answer.bytes).unwrap_or_else(|| {
            let reason = answer.status.canonical_reason().unwrap_or("unknown status");
            ApiError::new(
                "UnknownError",
                format!("{} {reason} {}", answer.status.as_u16(), excerpt(&answer.bytes)),
            )
        });
        Err(Error::Api { status: answer.status, error })
    }

    pub(crate) fn invalid(&self, name: &str, answer: &Answer, error: &serde_json::Error) -> Error {
        self.protocol(format!("{name}: {error} in `{}`", excerpt(&answer.bytes)))
    }

    /// Returns the error of a connection that failed. An answer that is not HTTP is a protocol error.
    fn connection_error(&self, source: Cause) -> Error {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(source.as_ref());
        while let Some(error) = cause {
            if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
                return self.protocol("it is not HTTP");
            }
            cause = error.source();
        }
        self.unreachable(source)
    }

    pub(crate) fn unreachable(&self, source: Cause) -> Error {
        Error::Unreachable { url: self.name(), source }
    }

    pub(crate) fn protocol(&self, reason: impl Into<String>) -> Error {
        Error::Protocol { url: self.name(), reason: reason.into() }
    }

    pub(crate) fn timeout(&self, after: Duration) -> Error {
        Error::Timeout { url: self.name(), after }
    }

    fn name(&self) -> String {
        if self.base.is_empty() { "this process".to_owned() } else { self.base.clone() }
    }
}

impl Limit {
    fn duration(self) -> Duration {
        match self {
            Self::Total(duration) | Self::Silence(duration) => duration,
        }
    }
}

/// Parses the body of an error: `{name, data}`, or `{_tag, message, …}`, which a few routes use.
fn api_error(bytes: &[u8]) -> Option<ApiError> {
    if let Ok(error) = serde_json::from_slice(bytes) {
        return Some(error);
    }
    let Ok(Value::Object(mut data)) = serde_json::from_slice(bytes) else { return None };
    let Some(Value::String(name)) = data.remove("_tag") else { return None };
    Some(ApiError { name, data })
}

/// Returns the beginning of an answer, for an error.
fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_CHARS * 4)])
        .chars()
        .take(EXCERPT_CHARS)
        .collect()
}
