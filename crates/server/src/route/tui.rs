//! The remote control of a terminal client. The client receives the requests as events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use codewright_proto::{SessionId, Signal, Toast};
use futures_util::stream;
use http::{HeaderValue, header};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::Error;
use crate::extract::{Location, Payload};
use crate::serve::Closing;
use crate::state::App;

/// How long `GET /tui/control/next` waits for a request.
const CONTROL_WAIT: Duration = Duration::from_secs(3600);
/// The maximum length of a text for the prompt.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Former names of commands, and the current ones.
const COMMANDS: [(&str, &str); 14] = [
    ("session_new", "session.new"),
    ("session_list", "session.list"),
    ("session_share", "session.share"),
    ("session_interrupt", "session.interrupt"),
    ("session_compact", "session.compact"),
    ("messages_page_up", "session.page.up"),
    ("messages_page_down", "session.page.down"),
    ("messages_line_up", "session.line.up"),
    ("messages_line_down", "session.line.down"),
    ("messages_half_page_up", "session.half.page.up"),
    ("messages_half_page_down", "session.half.page.down"),
    ("messages_first", "session.first"),
    ("messages_last", "session.last"),
    ("agent_cycle", "agent.cycle"),
];

#[derive(Deserialize)]
pub(super) struct Append {
    text: String,
}

#[derive(Deserialize)]
pub(super) struct Execute {
    command: String,
}

#[derive(Deserialize)]
pub(super) struct Select {
    #[serde(rename = "sessionID")]
    session_id: String,
}

/// The body of `POST /tui/publish`.
#[derive(Deserialize)]
#[serde(tag = "type", content = "properties")]
pub(super) enum Published {
    #[serde(rename = "tui.prompt.append")]
    Append(Append),
    #[serde(rename = "tui.command.execute")]
    Execute(Execute),
    #[serde(rename = "tui.toast.show")]
    Toast(Toast),
    #[serde(rename = "tui.session.select")]
    Select(Select),
}

pub(super) async fn append(
    State(app): State<App>,
    location: Location,
    Payload(append): Payload<Append>,
) -> Result<Json<bool>, Error> {
    publish(&app, &location, Published::Append(append)).await
}

pub(super) async fn execute(
    State(app): State<App>,
    location: Location,
    Payload(execute): Payload<Execute>,
) -> Result<Json<bool>, Error> {
    publish(&app, &location, Published::Execute(execute)).await
}

pub(super) async fn toast(
    State(app): State<App>,
    location: Location,
    Payload(toast): Payload<Toast>,
) -> Result<Json<bool>, Error> {
    publish(&app, &location, Published::Toast(toast)).await
}

pub(super) async fn select(
    State(app): State<App>,
    location: Location,
    Payload(select): Payload<Select>,
) -> Result<Json<bool>, Error> {
    publish(&app, &location, Published::Select(select)).await
}

pub(super) async fn published(
    State(app): State<App>,
    location: Location,
    Payload(published): Payload<Published>,
) -> Result<Json<bool>, Error> {
    publish(&app, &location, published).await
}

pub(super) async fn open_help(State(app): State<App>, location: Location) -> Result<Json<bool>, Error> {
    command(&app, &location, "help.show").await
}

pub(super) async fn open_sessions(State(app): State<App>, location: Location) -> Result<Json<bool>, Error> {
    command(&app, &location, "session.list").await
}

pub(super) async fn open_themes(State(app): State<App>, location: Location) -> Result<Json<bool>, Error> {
    command(&app, &location, "theme.list").await
}

pub(super) async fn open_models(State(app): State<App>, location: Location) -> Result<Json<bool>, Error> {
    command(&app, &location, "model.list").await
}

pub(super) async fn submit(State(app): State<App>, location: Location) -> Result<Json<bool>, Error> {
    command(&app, &location, "prompt.submit").await
}

pub(super) async fn clear(State(app): State<App>, location: Location) -> Result<Json<bool>, Error> {
    command(&app, &location, "prompt.clear").await
}

/// Waits without ever returning a request, because terminal clients receive requests as events. Programs that use this
/// route expect it to wait. A space per heartbeat keeps the connection alive.
pub(super) async fn next(State(app): State<App>, closing: Option<Extension<Closing>>) -> Response {
    let (closing, beat) = (Closing::token(closing), app.options.heartbeat);
    let until = Instant::now() + CONTROL_WAIT;
    let spaces = stream::unfold((), move |()| {
        let closing = closing.clone();
        async move {
            let is_open = Instant::now() < until;
            let elapsed = closing.run_until_cancelled(sleep(beat)).await;
            elapsed.filter(|()| is_open).map(|()| (Ok::<_, Infallible>(Bytes::from_static(b" ")), ()))
        }
    });
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, Body::from_stream(spaces)).into_response()
}

/// Ignores the body, because no request is ever returned by `GET /tui/control/next`.
pub(super) async fn response(_location: Location, Payload(_): Payload<Value>) -> Json<bool> {
    Json(true)
}

async fn command(app: &App, location: &Location, command: &str) -> Result<Json<bool>, Error> {
    publish(app, location, Published::Execute(Execute { command: command.to_owned() })).await
}

async fn publish(app: &App, location: &Location, published: Published) -> Result<Json<bool>, Error> {
    let directory = location.instance.path().directory;
    let signal = match published {
        Published::Append(Append { text }) if text.len() > MAX_TEXT_BYTES => {
            return Err(Error::payload("the text is too long for a prompt"));
        }
        Published::Append(Append { text }) => Signal::TuiPromptAppend { directory, text },
        Published::Execute(Execute { command }) => {
            let renamed = COMMANDS.iter().find(|(old, _)| *old == command);
            let command = renamed.map_or(command, |(_, new)| (*new).to_owned());
            Signal::TuiCommandExecute { directory, command }
        }
        Published::Toast(toast) => Signal::TuiToastShow { directory, toast },
        Published::Select(Select { session_id }) => {
            let session_id =
                SessionId::parse(&session_id).map_err(|error| Error::payload(error.to_string()))?;
            app.engine.sessions().get(&session_id).await?;
            Signal::TuiSessionSelect { session_id }
        }
    };
    app.engine.events().signal(signal);
    Ok(Json(true))
}
