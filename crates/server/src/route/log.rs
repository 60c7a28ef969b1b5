//! Lines that clients write into the server's log.

use axum::Json;
use axum::extract::State;
use codewright_engine::Level;
use codewright_proto::Map;
use serde::Deserialize;
use serde_json::Value;

use crate::Error;
use crate::extract::{Here, Payload};
use crate::state::App;

#[derive(Deserialize)]
pub(super) struct Line {
    service: String,
    level: Told,
    message: String,
    extra: Option<Map>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Told {
    Debug,
    Info,
    Error,
    Warn,
}

pub(super) async fn write(
    State(app): State<App>,
    _here: Here,
    Payload(line): Payload<Line>,
) -> Result<Json<bool>, Error> {
    let level = match line.level {
        Told::Debug => Level::Debug,
        Told::Info => Level::Info,
        Told::Error => Level::Error,
        Told::Warn => Level::Warn,
    };
    app.engine.log().write(level, &line.service, &line.message, line.extra.map(Value::Object)).await;
    Ok(Json(true))
}
