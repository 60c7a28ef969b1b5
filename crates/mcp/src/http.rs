//! The transport over streamable HTTP: requests of the SDK through the program's own HTTP client.
//!
//! Each request gets the current token of the user's sign-in. The last failure is kept, because the SDK ends a
//! connection without saying why.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::config::{OAuth, Remote};
use crate::error::{Failure, cut};
use crate::host::Host;

/// The error of a page that is not MCP.
pub(crate) const WEB_PAGE: &str =
    "The address answers with a web page, so it is not the address of an MCP server.";

/// The type of the server-sent events of the SDK.
type Events = BoxStream<'static, Result<sse_stream::Sse, sse_stream::Error>>;
/// A failed request.
type HttpError = StreamableHttpError<reqwest::Error>;

/// The HTTP client of a server.
#[derive(Clone)]
pub(crate) struct Http {
    pub(crate) client: reqwest::Client,
    pub(crate) server: Arc<str>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) url: Url,
    pub(crate) signs_in: bool,
    /// The reason of the last failure.
    pub(crate) failure: Arc<Mutex<Option<Failure>>>,
    /// Cancelled when the server no longer accepts the sign-in.
    pub(crate) closed: CancellationToken,
}

impl Http {
    pub(crate) fn new(
        server: &Arc<str>,
        host: &Arc<dyn Host>,
        remote: &Remote,
        client: reqwest::Client,
    ) -> Self {
        let has_header = remote.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        Self {
            client,
            server: server.clone(),
            host: host.clone(),
            url: remote.url.clone(),
            signs_in: remote.oauth != OAuth::Off && !has_header,
            failure: Arc::default(),
            closed: CancellationToken::new(),
        }
    }

    /// The transport of this client.
    pub(crate) fn transport(
        &self,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> StreamableHttpClientTransport<Self> {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .custom_headers(headers)
            .max_sse_event_size(crate::stdio::MAX_MESSAGE_BYTES)
            .max_json_response_size(crate::stdio::MAX_MESSAGE_BYTES);
        StreamableHttpClientTransport::with_client(self.clone(), config)
    }

    /// The token of the user's sign-in, another one than `rejected`.
    pub(crate) async fn token(&self, rejected: Option<&str>) -> Result<Option<String>, Failure> {
        if !self.signs_in {
            return Ok(None);
        }
        let token = self.host.token(&self.server, &self.url, rejected).await;
        token.map_err(|why| {
            self.note(Failure::failed(&why));
            Failure::failed(why)
        })
    }

    async fn header(&self, configured: Option<String>) -> Result<Option<String>, HttpError> {
        match self.token(None).await {
            Ok(token) => Ok(token.or(configured)),
            Err(failure) => Err(StreamableHttpError::UnexpectedServerResponse(failure.to_string().into())),
        }
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn take_failure(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn note(&self, failure: Failure) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }

    /// A sign-in does not help if the configuration has its own key or switches sign-ins off.
    pub(crate) fn of_configuration(&self, failure: Failure) -> Failure {
        match failure {
            Failure::NeedsAuth { .. } if !self.signs_in => Failure::failed(
                "The server answered 401 Unauthorized: it does not accept the `headers` of its configuration.",
            ),
            other => other,
        }
    }

    /// Keeps the failure of a request. The connection ends if the server no longer accepts the sign-in.
    pub(crate) fn note_last(&self, failure: Failure) -> Failure {
        let failure = self.of_configuration(failure);
        self.note(failure.clone());
        if matches!(failure, Failure::NeedsAuth { .. }) {
            self.closed.cancel();
        }
        failure
    }

    fn noted<T>(&self, result: Result<T, HttpError>) -> Result<T, HttpError> {
        if let Err(error) = &result {
            self.note_last(failure(error));
        }
        result
    }
}

/// The headers of a configuration.
///
/// # Errors
///
/// Fails with a sentence if a header cannot be sent.
pub(crate) fn headers(remote: &Remote) -> Result<HashMap<HeaderName, HeaderValue>, Failure> {
    let header = |(name, value): (&String, &String)| {
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
        let (name, mut value) =
            parsed.ok_or_else(|| Failure::failed(format!("The header `{}` cannot be sent.", cut(name))))?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    remote.headers.iter().map(header).collect()
}

/// The failure in one sentence.
fn failure(error: &HttpError) -> Failure {
    match error {
        StreamableHttpError::AuthRequired(required) => {
            Failure::NeedsAuth { challenge: Some(required.www_authenticate_header.clone()) }
        }
        StreamableHttpError::InsufficientScope(required) => {
            Failure::NeedsAuth { challenge: Some(required.www_authenticate_header.clone()) }
        }
        StreamableHttpError::UnexpectedContentType(kind) => of_type(kind.as_deref()),
        StreamableHttpError::Client(error) => unreachable(error),
        StreamableHttpError::HttpStatus(error) => Failure::failed(format!("The server answered: {error}.")),
        StreamableHttpError::UnexpectedServerResponse(text) => of_answer(text),
        other => Failure::failed(format!("{}.", cut(&other.to_string()).trim_end_matches('.'))),
    }
}

/// The failure of a server that cannot be reached.
pub(crate) fn unreachable(error: &reqwest::Error) -> Failure {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    let host = error.url().and_then(Url::host_str).unwrap_or("the server");
    Failure::failed(format!("Cannot reach {host}: {}.", cut(&inner.to_string()).trim_end_matches('.')))
}

/// The failure of an answer with the wrong type.
pub(crate) fn of_type(kind: Option<&str>) -> Failure {
    match kind.map(str::to_ascii_lowercase) {
        Some(kind) if kind.contains("html") => Failure::failed(WEB_PAGE),
        Some(kind) => {
            Failure::failed(format!("The server answered with the type `{}`, which is not MCP.", cut(&kind)))
        }
        None => Failure::failed("The server answered without a type, so it is not an MCP server."),
    }
}

fn of_answer(text: &str) -> Failure {
    let lower = text.to_ascii_lowercase();
    if lower.contains("401") && (lower.contains("unauthorized") || lower.contains("http 401")) {
        return Failure::NeedsAuth { challenge: None };
    }
    if lower.contains("<html") || lower.contains("<!doctype") {
        return Failure::failed(WEB_PAGE);
    }
    let text: String = text.chars().take(200).collect();
    Failure::failed(format!("The server answered unexpectedly: {}.", cut(&text).trim_end_matches('.')))
}

impl StreamableHttpClient for Http {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, auth_header, custom_headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let token = self.header(auth_header).await?;
        let post = |token, message, headers| {
            let (uri, session_id, limits) = (uri.clone(), session_id.clone(), limits);
            self.client.post_message_with_response_limits(uri, message, session_id, token, headers, limits)
        };
        let mut posted = post(token.clone(), message.clone(), custom_headers.clone()).await;
        // The server may have ended the token early. It did nothing, so the message is sent again.
        if matches!(posted, Err(StreamableHttpError::AuthRequired(_)))
            && let Some(old) = token
            && let Ok(Some(new)) = self.token(Some(&old)).await
        {
            posted = post(Some(new), message, custom_headers).await;
        }
        self.noted(posted)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let token = self.header(auth_header).await?;
        self.client.delete_session(uri, session_id, token, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, HttpError> {
        let limit = crate::stdio::MAX_MESSAGE_BYTES;
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            limit,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<Events, HttpError> {
        let token = self.header(auth_header).await?;
        let client = &self.client;
        client
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                token,
                custom_headers,
                max_sse_event_size,
            )
            .await
    }
}
