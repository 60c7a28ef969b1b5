//! Copying sessions between machines, event by event.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use codewright_engine::{Incoming, Logged};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Error;
use crate::extract::{Location, Payload};
use crate::state::App;

#[derive(Deserialize)]
pub(super) struct Replay {
    directory: String,
    events: Vec<Incoming>,
}

/// Stores the events of one session. Events that are already stored are skipped.
pub(super) async fn replay(
    State(app): State<App>,
    location: Location,
    Payload(replay): Payload<Replay>,
) -> Result<Json<Value>, Error> {
    let Some(session) = replay.events.first().map(|event| event.aggregate_id.clone()) else {
        return Err(Error::Invalid { message: "`events` is empty".to_owned(), kind: "Payload" });
    };
    let engine = app.engine.clone();
    let directory = location.instance.path().directory;
    app.finish(async move {
        // The project must be stored before its session.
        engine.instance(&std::path::Path::new(&directory).join(replay.directory)).await?;
        engine.events().replay_foreign(replay.events).await
    })
    .await?;
    Ok(Json(json!({"sessionID": session})))
}

/// Returns the events after those that the client has, oldest first.
///
/// A long history has several pages: the client repeats the request with the events that it has.
pub(super) async fn history(
    State(app): State<App>,
    Payload(positions): Payload<HashMap<String, u64>>,
) -> Result<Json<Vec<Logged>>, Error> {
    Ok(Json(app.engine.events().history(positions).await?))
}

/// Returns true: there are no workspaces that need synchronization.
pub(super) async fn start(_location: Location) -> Json<bool> {
    Json(true)
}
