//! Log lines from clients.

use axum::Json;
use axum::extract::State;
use codewright_engine::Level;
use codewright_proto::Map;
use serde::Deserialize;
use serde_json::Value;

use crate::Error;
use crate::extract::{Location, Payload};
use crate::state::App;

#[derive(Deserialize)]
pub(super) struct Line {
    service: String,
    level: LineLevel,
    message: String,
    extra: Option<Map>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum LineLevel {
    Debug,
    Info,
    Error,
    Warn,
}

pub(super) async fn write(
    State(app): State<App>,
    _location: Location,
    Payload(line): Payload<Line>,
) -> Result<Json<bool>, Error> {
    let level = match line.level {
        LineLevel::Debug => Level::Debug,
        LineLevel::Info => Level::Info,
        LineLevel::Error => Level::Error,
        LineLevel::Warn => Level::Warn,
    };
    app.engine.log().write(level, &line.service, &line.message, line.extra.map(Value::Object)).await;
    Ok(Json(true))
}
