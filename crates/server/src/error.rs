//! The errors of requests, and their mapping to HTTP statuses and bodies.

use std::net::SocketAddr;

use axum::Json;
use axum::response::{IntoResponse, Response};
use codewright_engine::{self as engine, Resource};
use codewright_proto::{ApiError, MessageId, ParseIdError, SessionId};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// The value of `WWW-Authenticate`.
const REALM: HeaderValue = HeaderValue::from_static("Basic realm=\"Secure Area\"");

/// The message of an error response, for the log.
#[derive(Debug, Clone)]
pub(crate) struct ErrorMessage(pub(crate) String);

/// The error of a request, or of starting a server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator must set a password or listen on loopback.
    #[error(
        "refusing to listen on `{address}` without a password: everyone who can connect to it could run commands"
    )]
    Open {
        /// The address to listen on.
        address: SocketAddr,
    },
    /// The operator must choose another name.
    #[error("`{domain}` is not a host name for the local network")]
    Domain {
        /// The configured name.
        domain: String,
    },
    /// The operator must tell clients the address; the server itself works.
    #[error("the server cannot be announced to the local network")]
    Announce(#[source] mdns_sd::Error),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The client must change the request.
    #[error("{message}")]
    Invalid {
        /// The problem.
        message: String,
        /// The invalid part: `Payload`, `Query`, `Params` or `Headers`.
        kind: &'static str,
    },
    /// The client must use another id.
    #[error(transparent)]
    Id(#[from] ParseIdError),
    /// The client must use another path.
    #[error("there is no route `{method} {path}`")]
    NoRoute {
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
    /// The client must use another method.
    #[error("`{path}` does not support `{method}`")]
    NoMethod {
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
    /// The client must do without the feature.
    #[error("{feature} is not supported by this version")]
    NotSupported {
        /// The feature.
        feature: &'static str,
    },
    /// The client must not sign in to this MCP server.
    #[error("MCP server {name} does not support OAuth")]
    NoSignIn {
        /// The server.
        name: String,
    },
    /// The client must use another id. The error has its own tag.
    #[error("{what} not found: {id}")]
    Missing {
        /// The `_tag` of the error.
        tag: &'static str,
        /// The key of the id.
        key: &'static str,
        /// The kind of thing that is missing.
        what: &'static str,
        /// The id in the request.
        id: String,
    },
    /// The client must use the id of another message.
    #[error("Message not found: {message}")]
    MissingMessage {
        /// The session.
        session: SessionId,
        /// The id in the request.
        message: MessageId,
    },
    /// The client must choose another id, because this one is in use.
    #[error("the id `{resource}` is already in use")]
    Conflict {
        /// The id.
        resource: String,
    },
    /// The client must start with the first page.
    #[error("{0}")]
    Cursor(&'static str),
    /// The client must change the request. The error has its own name.
    #[error("{message}")]
    Refused {
        /// The name of the error.
        name: &'static str,
        /// The problem.
        message: String,
        /// The reason, as a code for clients.
        reason: Option<&'static str>,
    },
    /// The client must sign in.
    #[error("wrong user name or password")]
    Unauthorized,
    /// The client must wait before it sends other credentials.
    #[error("too many wrong passwords")]
    TooManyAttempts {
        /// The time until the next attempt.
        retry_after_seconds: u64,
    },
    /// The client must use a host name of this machine.
    #[error("the host `{host}` is not a name of this machine; set a server password to allow all names")]
    ForeignHost {
        /// The name in the request.
        host: String,
    },
    /// The operator must allow the origin.
    #[error("web pages of another origin (`{origin}`) may not use this server")]
    ForeignOrigin {
        /// The origin of the page, as far as the browser sends it.
        origin: String,
    },
    /// The operator must set a password, and the client must sign in.
    #[error("a password is required: {why}")]
    PasswordNeeded {
        /// The reason.
        why: &'static str,
    },
    /// The user must send the request, because commands of the model may not.
    #[error("{why}")]
    OwnCommand {
        /// The reason.
        why: &'static str,
    },
    /// The user must ask an administrator or the owner.
    #[error("{why}")]
    Forbidden {
        /// The reason.
        why: &'static str,
    },
    /// The client must close connections or try again later.
    #[error("the server has too many open connections")]
    Full,
    /// The client must set a JSON content type.
    #[error("a request body must have the content type `application/json`")]
    NotJson,
    /// The client must send less.
    #[error("the request body has more than {} MiB", .limit_bytes / 1024 / 1024)]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// The client must send faster.
    #[error("the request body did not arrive in time")]
    SlowBody,
    /// The client should try again later.
    #[error("the request took too long")]
    Deadline,
    /// The other server must try another one: the work is not possible here.
    #[error("this server cannot work on `{id}` now")]
    Misdirected {
        /// The directory or session.
        id: String,
    },
    /// The client should try again later: no server can do the work now.
    #[error("{message}")]
    NoNode {
        /// The reason.
        message: String,
    },
    /// The client should look at the state: another server failed while it worked on the request.
    #[error("{message}")]
    NodeFailed {
        /// The reason.
        message: String,
    },
    /// The client should connect to another server.
    #[error("the server is stopping")]
    Closing,
    /// A bug in the server.
    #[error("unexpected server error")]
    Panic,
}

impl Error {
    /// Returns an error about an invalid query.
    pub(crate) fn query(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into(), kind: "Query" }
    }

    /// Returns an error about an invalid body.
    pub(crate) fn payload(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into(), kind: "Payload" }
    }

    /// Returns advice for the user.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Open { .. } => Some("set OPENCODE_SERVER_PASSWORD, or listen on 127.0.0.1".to_owned()),
            Self::PasswordNeeded { .. } => {
                Some("start the server with OPENCODE_SERVER_PASSWORD set, and sign in with it".to_owned())
            }
            Self::ForeignOrigin { .. } => {
                Some("allow the origin with `--cors`, and set OPENCODE_SERVER_PASSWORD".to_owned())
            }
            Self::TooManyAttempts { retry_after_seconds } => {
                Some(format!("wait {retry_after_seconds} seconds, then try again"))
            }
            Self::OwnCommand { .. } => Some("use the server from a terminal of your own".to_owned()),
            Self::Domain { .. } => Some(
                "a host name of the local network ends with `.local`, such as `opencode.local`".to_owned(),
            ),
            Self::Engine(error) => error.hint(),
            Self::Announce(_)
            | Self::Invalid { .. }
            | Self::Id(_)
            | Self::NoRoute { .. }
            | Self::NoMethod { .. }
            | Self::NotSupported { .. }
            | Self::NoSignIn { .. }
            | Self::Missing { .. }
            | Self::MissingMessage { .. }
            | Self::Conflict { .. }
            | Self::Cursor(_)
            | Self::Refused { .. }
            | Self::Unauthorized
            | Self::ForeignHost { .. }
            | Self::Forbidden { .. }
            | Self::Full
            | Self::NotJson
            | Self::TooLarge { .. }
            | Self::SlowBody
            | Self::Deadline
            | Self::Misdirected { .. }
            | Self::NoNode { .. }
            | Self::NodeFailed { .. }
            | Self::Closing
            | Self::Panic => None,
        }
    }

    /// Returns whether the error may be shown to the page that sent the request.
    pub(crate) fn is_of_allowed_page(&self) -> bool {
        !matches!(self, Self::ForeignHost { .. } | Self::ForeignOrigin { .. } | Self::OwnCommand { .. })
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Engine(engine::Error::NotFound { .. })
            | Self::NoRoute { .. }
            | Self::Missing { .. }
            | Self::MissingMessage { .. } => StatusCode::NOT_FOUND,
            Self::Engine(engine::Error::Forbidden { .. }) => StatusCode::FORBIDDEN,
            Self::Engine(engine::Error::Quota { .. }) => StatusCode::TOO_MANY_REQUESTS,
            Self::Engine(engine::Error::Busy { .. }) | Self::Conflict { .. } => StatusCode::CONFLICT,
            Self::Engine(
                engine::Error::Invalid { .. }
                | engine::Error::NoSignIn { .. }
                | engine::Error::Stale { .. }
                | engine::Error::TooMany { .. }
                | engine::Error::Aborted { .. }
                | engine::Error::Machine { .. }
                | engine::Error::NotChosen { .. },
            )
            | Self::Invalid { .. }
            | Self::Cursor(_)
            | Self::NotSupported { .. }
            | Self::NoSignIn { .. }
            | Self::Refused { .. } => StatusCode::BAD_REQUEST,
            Self::NoMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthorized | Self::PasswordNeeded { .. } => StatusCode::UNAUTHORIZED,
            Self::ForeignHost { .. }
            | Self::ForeignOrigin { .. }
            | Self::OwnCommand { .. }
            | Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::Deadline
            | Self::Closing
            | Self::Full
            | Self::NoNode { .. }
            | Self::Engine(engine::Error::Unavailable { .. }) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Engine(engine::Error::Overloaded { .. }) | Self::TooManyAttempts { .. } => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::Misdirected { .. } => StatusCode::MISDIRECTED_REQUEST,
            Self::NodeFailed { .. } => StatusCode::BAD_GATEWAY,
            Self::Id(error) if error.prefix != SessionId::PREFIX => StatusCode::BAD_REQUEST,
            // Clients expect an unknown error for an invalid session id.
            Self::Open { .. }
            | Self::Domain { .. }
            | Self::Announce(_)
            | Self::Engine(_)
            | Self::Id(_)
            | Self::Panic => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the error in the format of the API. It contains only our own messages, never those of sources, because
    /// these may quote headers, files and URLs with credentials.
    pub(crate) fn body(&self) -> Value {
        if let Self::Engine(engine::Error::NotFound { resource, id }) = self
            && let Some((tag, key)) = tag(*resource)
        {
            return json!({"_tag": tag, key: id, "message": self.to_string()});
        }
        if let Self::Engine(engine::Error::NoSignIn { provider }) = self {
            let data = json!({"providerID": provider, "message": self.to_string()});
            return json!({"name": "ProviderAuthOauthMissing", "data": data});
        }
        if let Self::NoSignIn { .. } = self {
            return json!({"error": self.to_string()});
        }
        if let Self::Missing { tag, key, id, .. } = self {
            return json!({"_tag": tag, *key: id, "message": self.to_string()});
        }
        if let Self::MissingMessage { session, message } = self {
            return json!({
                "_tag": "MessageNotFoundError", "sessionID": session, "messageID": message, "message": self.to_string(),
            });
        }
        if let Self::Conflict { resource } = self {
            return json!({"_tag": "ConflictError", "message": self.to_string(), "resource": resource});
        }
        if let Self::Cursor(message) = self {
            return json!({"_tag": "InvalidCursorError", "message": message});
        }
        if let Self::Refused { name, message, reason } = self {
            let mut data = json!({"message": message});
            if let Some(reason) = reason {
                data["reason"] = json!(reason);
            }
            return json!({"name": name, "data": data});
        }
        if let Self::Engine(engine::Error::Busy { session }) = self {
            return json!({"_tag": "SessionBusyError", "sessionID": session, "message": self.to_string()});
        }
        let name = match self.status() {
            StatusCode::NOT_FOUND => "NotFoundError",
            StatusCode::TOO_MANY_REQUESTS if self.is_quota() => "QuotaExceeded",
            StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::BAD_GATEWAY
            | StatusCode::TOO_MANY_REQUESTS => "UnknownError",
            StatusCode::FORBIDDEN => "Forbidden",
            StatusCode::UNAUTHORIZED => "Unauthorized",
            _ => "BadRequest",
        };
        let message = match self {
            // The message of a provider may repeat parts of the request.
            Self::Engine(engine::Error::Provider(_)) => "the model provider failed".to_owned(),
            other => other.to_string(),
        };
        let mut error = ApiError::new(name, message);
        match self {
            Self::Invalid { kind, .. } => drop(error.data.insert("kind".to_owned(), (*kind).into())),
            Self::Id(malformed) if malformed.prefix != SessionId::PREFIX => {
                drop(error.data.insert("kind".to_owned(), "Params".into()));
            }
            Self::Engine(
                engine::Error::Invalid { .. }
                | engine::Error::Stale { .. }
                | engine::Error::TooMany { .. }
                | engine::Error::Aborted { .. }
                | engine::Error::Machine { .. },
            ) => {
                drop(error.data.insert("kind".to_owned(), "Payload".into()));
            }
            _ => {}
        }
        if let Some(hint) = self.hint() {
            error.data.insert("hint".to_owned(), hint.into());
        }
        json!(error)
    }

    fn is_quota(&self) -> bool {
        matches!(self, Self::Engine(engine::Error::Quota { .. }))
    }

    /// Returns the status and the error in the format of the v2 API, in which every error has a tag.
    fn v2(&self) -> (StatusCode, Value) {
        let status = match self {
            Self::Id(_) => StatusCode::BAD_REQUEST,
            _ => self.status(),
        };
        if let Self::Engine(engine::Error::NotFound { resource, id }) = self
            && let Some((tag, key)) = tag_in_v2(*resource)
        {
            return (status, json!({"_tag": tag, key: id, "message": self.to_string()}));
        }
        let body = self.body();
        if body["_tag"].is_string() {
            return (status, body);
        }
        let message = body["message"].as_str().or(body["data"]["message"].as_str()).unwrap_or_default();
        let tag = match status {
            StatusCode::NOT_FOUND => "NotFoundError",
            StatusCode::INTERNAL_SERVER_ERROR => "UnknownError",
            StatusCode::TOO_MANY_REQUESTS if self.is_quota() => "QuotaExceededError",
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY | StatusCode::TOO_MANY_REQUESTS => {
                "ServiceUnavailableError"
            }
            _ => "InvalidRequestError",
        };
        let mut reply = json!({"_tag": tag, "message": message});
        // Of the ids in a path, clients know only the session id by name.
        let (kind, field) = match self {
            Self::Id(error) if error.prefix == SessionId::PREFIX => (Value::Null, json!("sessionID")),
            Self::Id(_) => (json!("Params"), Value::Null),
            _ => (body["data"]["kind"].clone(), Value::Null),
        };
        for (key, value) in [("kind", &kind), ("field", &field), ("hint", &body["data"]["hint"])] {
            if value.is_string() {
                reply[key] = value.clone();
            }
        }
        (status, reply)
    }
}

/// Returns the `_tag` of the error about a missing resource and the key of its id.
fn tag(resource: Resource) -> Option<(&'static str, &'static str)> {
    match resource {
        Resource::Permission => Some(("PermissionNotFoundError", "requestID")),
        Resource::Question => Some(("QuestionNotFoundError", "requestID")),
        Resource::Project => Some(("ProjectNotFoundError", "projectID")),
        Resource::Terminal => Some(("PtyNotFoundError", "ptyID")),
        Resource::Session
        | Resource::Message
        | Resource::Answer
        | Resource::Attempt
        | Resource::Credential => None,
    }
}

/// Returns the same for the resources whose errors have a tag only in the v2 API.
fn tag_in_v2(resource: Resource) -> Option<(&'static str, &'static str)> {
    match resource {
        Resource::Session => Some(("SessionNotFoundError", "sessionID")),
        Resource::Attempt => Some(("AttemptNotFoundError", "attemptID")),
        Resource::Credential => Some(("CredentialNotFoundError", "credentialID")),
        Resource::Message
        | Resource::Answer
        | Resource::Permission
        | Resource::Question
        | Resource::Terminal
        | Resource::Project => None,
    }
}

/// An error in the format of the v2 API. It is attached to the response until the route is known.
#[derive(Clone)]
struct V2Reply(StatusCode, Value);

/// Replaces an error response by the one of the v2 API.
pub(crate) async fn v2(response: Response) -> Response {
    match response.extensions().get::<V2Reply>().cloned() {
        Some(V2Reply(status, body)) => {
            let message = response.extensions().get::<ErrorMessage>().cloned();
            let retry_after = response.headers().get(header::RETRY_AFTER).cloned();
            let mut response = (status, Json(body)).into_response();
            response.headers_mut().extend(retry_after.map(|value| (header::RETRY_AFTER, value)));
            if let Some(message) = message {
                response.extensions_mut().insert(message);
            }
            response
        }
        None => response,
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        if matches!(self, Self::Unauthorized) {
            return (self.status(), [(header::WWW_AUTHENTICATE, REALM)]).into_response();
        }
        let body = self.body();
        let message =
            body["message"].as_str().or(body["data"]["message"].as_str()).unwrap_or_default().to_owned();
        let mut response = (self.status(), Json(body)).into_response();
        if matches!(self, Self::PasswordNeeded { .. }) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, REALM);
        }
        let is_busy = matches!(
            self,
            Self::Full
                | Self::NoNode { .. }
                | Self::Engine(engine::Error::Overloaded { .. } | engine::Error::Unavailable { .. })
        );
        if is_busy {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Self::Engine(engine::Error::Quota { retry_after_seconds, .. })
        | Self::TooManyAttempts { retry_after_seconds } = &self
        {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(*retry_after_seconds));
        }
        let (status, body) = self.v2();
        response.extensions_mut().insert(V2Reply(status, body));
        response.extensions_mut().insert(ErrorMessage(message));
        response
    }
}
