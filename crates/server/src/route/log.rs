//! The log file: lines from clients, and its newest lines without secrets.

use axum::Json;
use axum::extract::State;
use codewright_engine::{Level, LogFilter, MAX_LOG_LINES};
use codewright_proto::Map;
use serde::Deserialize;
use serde_json::Value;

use crate::Error;
use crate::extract::{Location, Params, Payload, count};
use crate::state::App;

/// The default number of returned lines.
const DEFAULT_LINES: usize = 200;

#[derive(Deserialize)]
pub(super) struct Line {
    service: String,
    level: LineLevel,
    message: String,
    extra: Option<Map>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LineLevel {
    Debug,
    Info,
    Error,
    Warn,
}

impl From<LineLevel> for Level {
    fn from(level: LineLevel) -> Self {
        match level {
            LineLevel::Debug => Self::Debug,
            LineLevel::Info => Self::Info,
            LineLevel::Error => Self::Error,
            LineLevel::Warn => Self::Warn,
        }
    }
}

pub(super) async fn write(
    State(app): State<App>,
    _location: Location,
    Payload(line): Payload<Line>,
) -> Result<Json<bool>, Error> {
    let extra = line.extra.map(Value::Object);
    app.engine.log().write(line.level.into(), &line.service, &line.message, extra).await;
    Ok(Json(true))
}

#[derive(Deserialize)]
pub(super) struct Lines {
    #[serde(default, deserialize_with = "count")]
    limit: Option<u64>,
    level: Option<LineLevel>,
}

/// Returns the newest lines of the log, oldest first.
pub(super) async fn read(
    State(app): State<App>,
    location: Location,
    Params(query): Params<Lines>,
) -> Result<Json<Vec<Value>>, Error> {
    let limit = query.limit.map_or(DEFAULT_LINES, |limit| limit.min(MAX_LOG_LINES as u64) as usize);
    let filter = LogFilter { limit, least: query.level.map_or(Level::Debug, Level::from) };
    let config = location.instance.config_json();
    let inserted = location.instance.inserted_secrets();
    let own: Vec<&str> = app.options.password().into_iter().chain(inserted).collect();
    Ok(Json(app.engine.log().tail(filter, &config, &own).await?))
}
