//! The extractors of requests: location, query, ids in the path and JSON body.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path as UrlPath, Query, Request};
use codewright_engine::Instance;
use codewright_proto::{MessageId, ParseIdError, PartId, PermissionId, PtyId, QuestionId, SessionId};
use http::request::Parts;
use http::{HeaderMap, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_path_to_error::Segment;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::auth::{Who, check_directory, check_opened};
use crate::limit::Slot;
use crate::plugins::OfPlugin;
use crate::serve::Closing;
use crate::state::App;

/// The maximum length of a directory in a request.
const MAX_DIRECTORY_BYTES: usize = 4096;

/// The instance that a request works in. Its directory comes from the query, then the header, then the server's default.
pub(crate) struct Location {
    pub(crate) instance: Arc<Instance>,
    /// Whether the query contains the directory.
    pub(crate) in_query: bool,
}

/// The directory and workspace in a query; the v2 API wraps them in an object `location`.
#[derive(Deserialize)]
struct Named {
    directory: Option<String>,
    #[serde(rename = "location[directory]")]
    located: Option<String>,
    workspace: Option<String>,
    #[serde(rename = "location[workspace]")]
    located_workspace: Option<String>,
}

/// The header with what a client would like, as RFC 7240 defines it.
const PREFER: &str = "prefer";

/// The lists that plugins change. Their first answer waits for plugins that are starting.
const PLUGIN_LISTS: [&str; 15] = [
    "/agent",
    "/api/agent",
    "/api/command",
    "/api/model",
    "/api/provider",
    "/api/skill",
    "/command",
    "/config",
    "/config/providers",
    "/experimental/tool",
    "/experimental/tool/ids",
    "/mcp",
    "/provider",
    "/provider/auth",
    "/skill",
];

impl FromRequestParts<App> for Location {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let Named { workspace, located_workspace, .. } = query(&parts.uri)?;
        let header = parts.headers.get("x-opencode-workspace").and_then(|value| value.to_str().ok());
        let workspaces = [workspace.as_deref(), located_workspace.as_deref(), header];
        if workspaces.into_iter().flatten().any(|workspace| !workspace.is_empty()) {
            // Work that is meant for a workspace must not happen in the local directory.
            return Err(Error::NotSupported { feature: "working in workspaces" });
        }
        let (named, in_query) = named_directory(parts)?;
        // Relative paths are relative to the default directory of the server.
        let own = app.engine.default_directory();
        let directory = named.as_ref().map_or_else(|| own.to_owned(), |named| own.join(named));
        let long = directory.as_os_str().len() > MAX_DIRECTORY_BYTES;
        if long || directory.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(Error::query("`directory` is not the path of a directory"));
        }
        let who = Who::of(&parts.extensions, app)?;
        let mut instance = Self::open(app, &who, &directory).await?;
        // A plugin that is starting would wait for itself.
        let is_plugins = parts.extensions.get::<OfPlugin>().is_some();
        if !is_plugins && PLUGIN_LISTS.contains(&parts.uri.path()) {
            instance = app.engine.with_plugins(instance, preferred_wait(&parts.headers)).await;
        }
        Ok(Self { instance, in_query })
    }
}

/// The longest time that a client wants to wait: `Prefer: wait=2` are two seconds.
fn preferred_wait(headers: &HeaderMap) -> Option<Duration> {
    let preferences = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    let mut waits = preferences.flat_map(|value| value.split(',')).filter_map(|preference| {
        let (name, seconds) = preference.split_once('=')?;
        if name.trim().eq_ignore_ascii_case("wait") { seconds.trim().parse().ok() } else { None }
    });
    waits.next().map(Duration::from_secs)
}

impl Location {
    /// Opens a directory for the sender of a request.
    pub(crate) async fn open(app: &App, who: &Who, directory: &Path) -> Result<Arc<Instance>, Error> {
        let directory = Box::pin(check_directory(app, who, directory)).await?;
        let instance = app.engine.instance(&directory).await?;
        // A link may have been exchanged since the check.
        let path = instance.path();
        Box::pin(check_opened(app, who, Path::new(&path.directory))).await?;
        if instance.is_repository() {
            // A directory inside a repository gives access to all of it.
            Box::pin(check_opened(app, who, Path::new(&path.worktree))).await?;
        }
        Ok(instance)
    }
}

/// Returns the directory that a request names, and whether its query does.
pub(crate) fn named_directory(parts: &Parts) -> Result<(Option<String>, bool), Error> {
    let Named { directory, located, .. } = query(&parts.uri)?;
    match located.or(directory).filter(|directory| !directory.is_empty()) {
        Some(directory) => Ok((Some(directory), true)),
        None => Ok((header_directory(parts)?, false)),
    }
}

fn header_directory(parts: &Parts) -> Result<Option<String>, Error> {
    let Some(value) = parts.headers.get("x-opencode-directory").filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let bad = || Error::Invalid {
        message: "`x-opencode-directory` is not percent-encoded UTF-8".to_owned(),
        kind: "Headers",
    };
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| bad())?;
    Ok(Some(percent_decode_str(text).decode_utf8().map_err(|_| bad())?.into_owned()))
}

/// Parses the query of a URI; unknown keys are ignored.
pub(crate) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Error> {
    let read = Query::try_from_uri(uri);
    read.map(|Query(value)| value).map_err(|rejection| {
        let text = rejection.body_text();
        let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
        match text.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
            Some(field) => Error::query(format!("Missing key\n  at [\"{field}\"]")),
            None => Error::query(text),
        }
    })
}

/// Parses a count in a query. Values such as `undefined` and `NaN`, which clients send for a missing number, and
/// negative numbers count as absent.
pub(crate) fn count<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let number = String::deserialize(value)?.trim().parse::<f64>().ok();
    Ok(number.filter(|number| *number >= 0.0).map(|number| number as u64))
}

/// The connection of a request.
pub(crate) struct Connection {
    /// The slot; `None` for a request without a socket.
    pub(crate) slot: Option<Slot>,
    pub(crate) closing: CancellationToken,
}

impl FromRequestParts<App> for Connection {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Infallible> {
        let closing = parts.extensions.get::<Closing>().cloned().map(Extension);
        Ok(Self { slot: parts.extensions.get().cloned(), closing: Closing::token(closing) })
    }
}

/// The query of a request.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Params<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Error> {
        query(&parts.uri).map(Self)
    }
}

/// An id in a path.
pub(crate) trait Id: Sized {
    fn parse_id(text: &str) -> Result<Self, ParseIdError>;
}

impl Id for SessionId {
    fn parse_id(text: &str) -> Result<Self, ParseIdError> {
        Self::parse(text)
    }
}

impl Id for MessageId {
    fn parse_id(text: &str) -> Result<Self, ParseIdError> {
        Self::parse(text)
    }
}

impl Id for PartId {
    fn parse_id(text: &str) -> Result<Self, ParseIdError> {
        Self::parse(text)
    }
}

impl Id for PtyId {
    fn parse_id(text: &str) -> Result<Self, ParseIdError> {
        Self::parse(text)
    }
}

impl Id for PermissionId {
    fn parse_id(text: &str) -> Result<Self, ParseIdError> {
        Self::parse(text)
    }
}

impl Id for QuestionId {
    fn parse_id(text: &str) -> Result<Self, ParseIdError> {
        Self::parse(text)
    }
}

/// A provider id, which may be any text.
impl Id for String {
    fn parse_id(text: &str) -> Result<Self, ParseIdError> {
        Ok(text.to_owned())
    }
}

/// The only id in the path.
pub(crate) struct One<A>(pub(crate) A);

/// Both ids in the path, in order.
pub(crate) struct Two<A, B>(pub(crate) A, pub(crate) B);

/// All three ids in the path, in order.
pub(crate) struct Three<A, B, C>(pub(crate) A, pub(crate) B, pub(crate) C);

impl<A: Id> FromRequestParts<App> for One<A> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let UrlPath(id) = UrlPath::<String>::from_request_parts(parts, app).await.map_err(bad_path)?;
        Ok(Self(A::parse_id(&id)?))
    }
}

impl<A: Id, B: Id> FromRequestParts<App> for Two<A, B> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let ids = UrlPath::<(String, String)>::from_request_parts(parts, app).await;
        let UrlPath((a, b)) = ids.map_err(bad_path)?;
        Ok(Self(A::parse_id(&a)?, B::parse_id(&b)?))
    }
}

impl<A: Id, B: Id, C: Id> FromRequestParts<App> for Three<A, B, C> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let ids = UrlPath::<(String, String, String)>::from_request_parts(parts, app).await;
        let UrlPath((a, b, c)) = ids.map_err(bad_path)?;
        Ok(Self(A::parse_id(&a)?, B::parse_id(&b)?, C::parse_id(&c)?))
    }
}

fn bad_path(rejection: PathRejection) -> Error {
    Error::Invalid { message: rejection.body_text(), kind: "Params" }
}

/// The JSON body of a request. An empty body counts as an empty object.
pub(crate) struct Payload<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Payload<T> {
    type Rejection = Error;

    async fn from_request(request: Request<Body>, app: &App) -> Result<Self, Error> {
        let limit_bytes = app.options.body_limit_bytes;
        let collected =
            timeout(app.options.body_deadline, Limited::new(request.into_body(), limit_bytes).collect());
        let bytes = match collected.await.map_err(|_| Error::SlowBody)? {
            Ok(collected) => collected.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(Error::TooLarge { limit_bytes }),
            Err(_) => return Err(payload_error("the request body is incomplete")),
        };
        decode(if bytes.is_empty() { b"{}" } else { &bytes }).map(Self)
    }
}

/// Parses a body. An error names the path to the invalid value.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path: String = error.path().iter().map(step).collect();
        let inner = error.into_inner();
        if !inner.is_data() {
            return payload_error(format!("the request body is not JSON: {inner}"));
        }
        let mut text = inner.to_string();
        if let Some(position) = text.rfind(" at line ") {
            text.truncate(position);
        }
        match text.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
            Some(field) => payload_error(format!("Missing key\n  at {path}[\"{field}\"]")),
            None if path.is_empty() => payload_error(text),
            None => payload_error(format!("{text}\n  at {path}")),
        }
    })?;
    json.end().map_err(|error| payload_error(format!("the request body is not JSON: {error}")))?;
    Ok(value)
}

fn payload_error(message: impl Into<String>) -> Error {
    Error::Invalid { message: message.into(), kind: "Payload" }
}

fn step(segment: &Segment) -> String {
    match segment {
        Segment::Seq { index } => format!("[{index}]"),
        Segment::Map { key } => format!("[\"{key}\"]"),
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use codewright_proto::{PermissionAnswer, PromptInput, SessionInput};

    use super::*;

    #[track_caller]
    fn check<T: DeserializeOwned>(body: &str, expected: &str) {
        let Err(error) = decode::<T>(body.as_bytes()) else { panic!("{body} is accepted") };
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn an_error_in_a_body_names_its_path() {
        check::<PromptInput>("{}", "Missing key\n  at [\"parts\"]");
        check::<PromptInput>(
            r#"{"parts":"x"}"#,
            "invalid type: string \"x\", expected a sequence\n  at [\"parts\"]",
        );
        check::<PromptInput>(
            r#"{"parts":[],"model":{"providerID":"p"}}"#,
            "Missing key\n  at [\"model\"][\"modelID\"]",
        );
        check::<SessionInput>(
            r#"{"title":5}"#,
            "invalid type: integer `5`, expected a string\n  at [\"title\"]",
        );
        check::<PermissionAnswer>(
            r#"{"reply":"zzz"}"#,
            "unknown variant `zzz`, expected one of `once`, `always`, `reject`\n  at [\"reply\"]",
        );
    }

    #[test]
    fn a_body_that_is_not_json_is_rejected() {
        check::<PromptInput>("{bad", "the request body is not JSON: key must be a string at line 1 column 2");
        check::<SessionInput>(
            "{} {}",
            "the request body is not JSON: trailing characters at line 1 column 4",
        );
        check::<SessionInput>(
            "{",
            "the request body is not JSON: EOF while parsing an object at line 1 column 1",
        );
    }
}
