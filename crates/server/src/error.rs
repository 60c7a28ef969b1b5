//! What can go wrong with a request, and the one place where that becomes a status.

use std::net::SocketAddr;

use axum::Json;
use axum::response::{IntoResponse, Response};
use codewright_engine::{self as engine, Resource};
use codewright_proto::{ApiError, MessageId, ParseIdError, SessionId};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// How a client signs in.
const REALM: HeaderValue = HeaderValue::from_static("Basic realm=\"Secure Area\"");

/// What a failed request was answered, for the log.
#[derive(Debug, Clone)]
pub(crate) struct Said(pub(crate) String);

/// Why a request is not answered, or a server not started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator sets a password or listens on loopback.
    #[error(
        "refusing to listen on `{address}` without a password: everybody who reaches it could run commands"
    )]
    Open {
        /// Where it should have listened.
        address: SocketAddr,
    },
    /// The operator chooses another name.
    #[error("`{domain}` is no name for the local network")]
    Domain {
        /// The name that was wanted.
        domain: String,
    },
    /// The operator gives clients the address; the server works as it is.
    #[error("the server cannot be announced to the local network")]
    Announce(#[source] mdns_sd::Error),
    /// The engine has no answer.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The client changes the request.
    #[error("{message}")]
    Invalid {
        /// What is wrong with it.
        message: String,
        /// Where: `Payload`, `Query`, `Params` or `Headers`.
        kind: &'static str,
    },
    /// The client names another thing.
    #[error(transparent)]
    Id(#[from] ParseIdError),
    /// The client uses another path.
    #[error("there is no route `{method} {path}`")]
    NoRoute {
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
    /// The client uses another method.
    #[error("`{path}` does not take `{method}`")]
    NoMethod {
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
    /// The client does without.
    #[error("{what} is not offered by this version")]
    NotOffered {
        /// What was asked for.
        what: &'static str,
    },
    /// The client names another thing, by a kind that newer routes tell apart.
    #[error("{what} not found: {id}")]
    Missing {
        /// What clients call the error.
        tag: &'static str,
        /// What clients call the id.
        key: &'static str,
        /// What kind of thing.
        what: &'static str,
        /// What was asked for.
        id: String,
    },
    /// The client names another message.
    #[error("Message not found: {message}")]
    MissingMessage {
        /// The session.
        session: SessionId,
        /// What was asked for.
        message: MessageId,
    },
    /// The client chooses another id: this one stands for something else.
    #[error("`{resource}` is the id of something else already")]
    Conflict {
        /// The id.
        resource: String,
    },
    /// The client begins at the first page.
    #[error("{0}")]
    Cursor(&'static str),
    /// The client asks for something that fits.
    #[error("{message}")]
    Refused {
        /// What clients call the error.
        name: &'static str,
        /// What is wrong.
        message: String,
        /// What clients call the reason.
        reason: Option<&'static str>,
    },
    /// The client signs in.
    #[error("user name or password is wrong")]
    Unauthorized,
    /// The client uses a name of this machine.
    #[error("the host `{host}` is not a name of this machine; set a server password to allow any")]
    ForeignHost {
        /// The name that was used.
        host: String,
    },
    /// The operator allows the origin.
    #[error("web pages of another origin (`{origin}`) may not use this server")]
    ForeignOrigin {
        /// Where the page came from, as far as the browser says.
        origin: String,
    },
    /// The operator sets a password and the client signs in.
    #[error("a password is needed: {why}")]
    PasswordNeeded {
        /// Why the client is not known without one.
        why: &'static str,
    },
    /// The user does it instead of the model.
    #[error("{why}")]
    OwnCommand {
        /// What the client is, as far as it is known.
        why: &'static str,
    },
    /// The client closes connections, or tries again later.
    #[error("the server has too many open connections")]
    Full,
    /// The client says that the body is JSON.
    #[error("a request body must have the content type `application/json`")]
    NotJson,
    /// The client sends less.
    #[error("the request body has more than {} MiB", .limit_bytes / 1024 / 1024)]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// The client sends faster.
    #[error("the request body did not arrive in time")]
    SlowBody,
    /// The client tries again later.
    #[error("the request took too long")]
    Deadline,
    /// The client asks the next server.
    #[error("the server is stopping")]
    Closing,
    /// A bug of ours.
    #[error("unexpected server error")]
    Panic,
}

impl Error {
    /// A request whose query makes no sense.
    pub(crate) fn query(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into(), kind: "Query" }
    }

    /// A request whose body makes no sense.
    pub(crate) fn payload(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into(), kind: "Payload" }
    }

    /// What the user may try.
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
            Self::OwnCommand { .. } => Some("use the server from a terminal of your own".to_owned()),
            Self::Domain { .. } => Some("such a name ends with `.local`, as `opencode.local`".to_owned()),
            Self::Engine(error) => error.hint(),
            Self::Announce(_)
            | Self::Invalid { .. }
            | Self::Id(_)
            | Self::NoRoute { .. }
            | Self::NoMethod { .. }
            | Self::NotOffered { .. }
            | Self::Missing { .. }
            | Self::MissingMessage { .. }
            | Self::Conflict { .. }
            | Self::Cursor(_)
            | Self::Refused { .. }
            | Self::Unauthorized
            | Self::ForeignHost { .. }
            | Self::Full
            | Self::NotJson
            | Self::TooLarge { .. }
            | Self::SlowBody
            | Self::Deadline
            | Self::Closing
            | Self::Panic => None,
        }
    }

    /// Whether the request may have come from a page that is allowed, which can then read the error.
    pub(crate) fn is_of_allowed_page(&self) -> bool {
        !matches!(self, Self::ForeignHost { .. } | Self::ForeignOrigin { .. } | Self::OwnCommand { .. })
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Engine(engine::Error::NotFound { .. })
            | Self::NoRoute { .. }
            | Self::Missing { .. }
            | Self::MissingMessage { .. } => StatusCode::NOT_FOUND,
            Self::Engine(engine::Error::Busy { .. }) | Self::Conflict { .. } => StatusCode::CONFLICT,
            Self::Engine(
                engine::Error::Invalid { .. }
                | engine::Error::NoSignIn { .. }
                | engine::Error::Stale { .. }
                | engine::Error::TooMany { .. }
                | engine::Error::Aborted { .. }
                | engine::Error::Machine { .. },
            )
            | Self::Invalid { .. }
            | Self::Cursor(_)
            | Self::NotOffered { .. }
            | Self::Refused { .. } => StatusCode::BAD_REQUEST,
            Self::NoMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthorized | Self::PasswordNeeded { .. } => StatusCode::UNAUTHORIZED,
            Self::ForeignHost { .. } | Self::ForeignOrigin { .. } | Self::OwnCommand { .. } => {
                StatusCode::FORBIDDEN
            }
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::Deadline | Self::Closing | Self::Full => StatusCode::SERVICE_UNAVAILABLE,
            Self::Id(error) if error.prefix != SessionId::PREFIX => StatusCode::BAD_REQUEST,
            // Clients know a malformed id of a session as an unknown error.
            Self::Open { .. }
            | Self::Domain { .. }
            | Self::Announce(_)
            | Self::Engine(_)
            | Self::Id(_)
            | Self::Panic => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The error as clients know it. Only our own sentences get out, never the sources behind
    /// them: those may quote headers, files and addresses with credentials in them.
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
            StatusCode::INTERNAL_SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE => "UnknownError",
            StatusCode::FORBIDDEN => "Forbidden",
            StatusCode::UNAUTHORIZED => "Unauthorized",
            _ => "BadRequest",
        };
        let message = match self {
            // A provider's own words may repeat what it was sent.
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

    /// The status and the error as the newer routes tell them: every error has a tag.
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
            StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailableError",
            _ => "InvalidRequestError",
        };
        let mut told = json!({"_tag": tag, "message": message});
        // Of ids in an address clients know that of the session by name.
        let (kind, field) = match self {
            Self::Id(error) if error.prefix == SessionId::PREFIX => (Value::Null, json!("sessionID")),
            Self::Id(_) => (json!("Params"), Value::Null),
            _ => (body["data"]["kind"].clone(), Value::Null),
        };
        for (key, value) in [("kind", &kind), ("field", &field), ("hint", &body["data"]["hint"])] {
            if value.is_string() {
                told[key] = value.clone();
            }
        }
        (status, told)
    }
}

/// The `_tag` of the error about a missing resource, and the key of its id.
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

/// The same for the resources whose errors have a tag in the v2 API only.
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

/// An error as the newer routes tell it, kept with the answer until it is known which route it was.
#[derive(Clone)]
struct V2Reply(StatusCode, Value);

/// Tells the errors of the newer routes in their own shapes.
pub(crate) async fn v2(response: Response) -> Response {
    match response.extensions().get::<V2Reply>().cloned() {
        Some(V2Reply(status, body)) => {
            let said = response.extensions().get::<Said>().cloned();
            let mut response = (status, Json(body)).into_response();
            if let Some(said) = said {
                response.extensions_mut().insert(said);
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
        let said =
            body["message"].as_str().or(body["data"]["message"].as_str()).unwrap_or_default().to_owned();
        let mut response = (self.status(), Json(body)).into_response();
        if matches!(self, Self::PasswordNeeded { .. }) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, REALM);
        }
        if matches!(self, Self::Full) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        let (status, body) = self.v2();
        response.extensions_mut().insert(V2Reply(status, body));
        response.extensions_mut().insert(Said(said));
        response
    }
}
