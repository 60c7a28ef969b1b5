//! The event streams.

use axum::Extension;
use axum::extract::{FromRequestParts, State};
use axum::response::Response;
use codewright_proto::SessionId;
use http::HeaderMap;
use http::request::Parts;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::auth::Viewer;
use crate::extract::{Location, Params};
use crate::serve::Closing;
use crate::state::App;
use crate::stream::{EventNames, Scope, Start, open};

#[derive(Deserialize)]
pub(super) struct EventQuery {
    #[serde(rename = "sessionID")]
    session_id: Option<String>,
    names: Option<String>,
}

/// The query of a stream of all directories.
#[derive(Deserialize)]
pub(super) struct GlobalQuery {
    names: Option<String>,
}

/// The client of a stream that can be resumed.
pub(super) struct Listener {
    pub(super) viewer: Viewer,
    pub(super) closing: CancellationToken,
    /// The position of the last event that the client received.
    pub(super) after: Option<u64>,
}

impl FromRequestParts<App> for Listener {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let closing = parts.extensions.get::<Closing>().cloned().map(Extension);
        Ok(Self {
            after: last_event(&parts.headers)?,
            closing: Closing::token(closing),
            viewer: Viewer::from_request_parts(parts, app).await?,
        })
    }
}

pub(super) async fn local(
    State(app): State<App>,
    location: Location,
    Params(query): Params<EventQuery>,
    listener: Listener,
) -> Result<Response, Error> {
    let session = query.session_id.as_deref().map(SessionId::parse).transpose()?;
    let directory = location.instance.path().directory;
    let Listener { viewer, closing, after } = listener;
    let start = Start { after, names: EventNames::parse(query.names.as_deref()) };
    Ok(open(app, viewer, Scope::Directory { directory, session }, start, closing).await)
}

pub(super) async fn global(
    State(app): State<App>,
    viewer: Viewer,
    Params(query): Params<GlobalQuery>,
    closing: Option<Extension<Closing>>,
) -> Response {
    let start = Start { after: None, names: EventNames::parse(query.names.as_deref()) };
    open(app, viewer, Scope::Global, start, Closing::token(closing)).await
}

/// Streams only the `sync` events of all directories, for clients that copy sessions.
pub(super) async fn sync(
    State(app): State<App>,
    viewer: Viewer,
    closing: Option<Extension<Closing>>,
) -> Response {
    open(app, viewer, Scope::Sync, Start::default(), Closing::token(closing)).await
}

/// Streams the events of all directories in the v2 API.
pub(super) async fn v2(
    State(app): State<App>,
    viewer: Viewer,
    closing: Option<Extension<Closing>>,
) -> Response {
    open(app, viewer, Scope::V2, Start::default(), Closing::token(closing)).await
}

/// Returns the position after which a stream continues.
pub(super) fn last_event(headers: &HeaderMap) -> Result<Option<u64>, Error> {
    let Some(value) = headers.get("last-event-id").filter(|value| !value.is_empty()) else { return Ok(None) };
    let position = value.to_str().ok().and_then(|value| value.trim().parse::<u64>().ok());
    // Positions are stored as signed integers.
    position.map(|position| Some(position.min(i64::MAX as u64))).ok_or_else(|| Error::Invalid {
        message: "`Last-Event-ID` is not the id of an event of this stream".to_owned(),
        kind: "Headers",
    })
}
