//! A terminal client's remote control: what is asked here reaches it as events.

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
use crate::extract::{Here, Payload};
use crate::serve::Closing;
use crate::state::App;

/// How long a program that asks for the next request waits for one.
const CONTROL_WAIT: Duration = Duration::from_secs(3600);
/// The longest text that is put into a prompt.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Names of commands that older programs use, and what they are called now.
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

/// What may be published by name.
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
    here: Here,
    Payload(append): Payload<Append>,
) -> Result<Json<bool>, Error> {
    publish(&app, &here, Published::Append(append)).await
}

pub(super) async fn execute(
    State(app): State<App>,
    here: Here,
    Payload(execute): Payload<Execute>,
) -> Result<Json<bool>, Error> {
    publish(&app, &here, Published::Execute(execute)).await
}

pub(super) async fn toast(
    State(app): State<App>,
    here: Here,
    Payload(toast): Payload<Toast>,
) -> Result<Json<bool>, Error> {
    publish(&app, &here, Published::Toast(toast)).await
}

pub(super) async fn select(
    State(app): State<App>,
    here: Here,
    Payload(select): Payload<Select>,
) -> Result<Json<bool>, Error> {
    publish(&app, &here, Published::Select(select)).await
}

pub(super) async fn published(
    State(app): State<App>,
    here: Here,
    Payload(published): Payload<Published>,
) -> Result<Json<bool>, Error> {
    publish(&app, &here, published).await
}

pub(super) async fn open_help(State(app): State<App>, here: Here) -> Result<Json<bool>, Error> {
    command(&app, &here, "help.show").await
}

pub(super) async fn open_sessions(State(app): State<App>, here: Here) -> Result<Json<bool>, Error> {
    command(&app, &here, "session.list").await
}

pub(super) async fn open_themes(State(app): State<App>, here: Here) -> Result<Json<bool>, Error> {
    command(&app, &here, "theme.list").await
}

pub(super) async fn open_models(State(app): State<App>, here: Here) -> Result<Json<bool>, Error> {
    command(&app, &here, "model.list").await
}

pub(super) async fn submit(State(app): State<App>, here: Here) -> Result<Json<bool>, Error> {
    command(&app, &here, "prompt.submit").await
}

pub(super) async fn clear(State(app): State<App>, here: Here) -> Result<Json<bool>, Error> {
    command(&app, &here, "prompt.clear").await
}

/// Requests are handed to terminal clients as events, so none ever waits to be fetched; who
/// asks is kept, as programs written for this route expect. A blank now and then shows that
/// the server lives.
pub(super) async fn next(State(app): State<App>, closing: Option<Extension<Closing>>) -> Response {
    let (closing, beat) = (Closing::token(closing), app.options.heartbeat);
    let until = Instant::now() + CONTROL_WAIT;
    let blanks = stream::unfold((), move |()| {
        let closing = closing.clone();
        async move {
            let lives = Instant::now() < until;
            let beaten = closing.run_until_cancelled(sleep(beat)).await;
            beaten.filter(|()| lives).map(|()| (Ok::<_, Infallible>(Bytes::from_static(b" ")), ()))
        }
    });
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, Body::from_stream(blanks)).into_response()
}

/// Nobody waits for the answer to a request that was never handed out.
pub(super) async fn response(_here: Here, Payload(_): Payload<Value>) -> Json<bool> {
    Json(true)
}

async fn command(app: &App, here: &Here, command: &str) -> Result<Json<bool>, Error> {
    publish(app, here, Published::Execute(Execute { command: command.to_owned() })).await
}

async fn publish(app: &App, here: &Here, published: Published) -> Result<Json<bool>, Error> {
    let directory = here.place.path().directory;
    let signal = match published {
        Published::Append(Append { text }) if text.len() > MAX_TEXT_BYTES => {
            return Err(Error::payload("the text is too long for a prompt"));
        }
        Published::Append(Append { text }) => Signal::TuiPromptAppend { directory, text },
        Published::Execute(Execute { command }) => {
            let known = COMMANDS.iter().find(|(old, _)| *old == command);
            let command = known.map_or(command, |(_, now)| (*now).to_owned());
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
