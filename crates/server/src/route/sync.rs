//! Sessions that go from one machine to another, event by event.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use codewright_engine::{Incoming, Logged};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Error;
use crate::extract::{Here, Payload};
use crate::state::App;

#[derive(Deserialize)]
pub(super) struct Replay {
    directory: String,
    events: Vec<Incoming>,
}

/// Takes over the events of one session; those that are known already are skipped.
pub(super) async fn replay(
    State(app): State<App>,
    here: Here,
    Payload(replay): Payload<Replay>,
) -> Result<Json<Value>, Error> {
    let Some(session) = replay.events.first().map(|event| event.aggregate_id.clone()) else {
        return Err(Error::Invalid { message: "`events` is empty".to_owned(), kind: "Payload" });
    };
    let engine = app.engine.clone();
    let directory = here.place.path().directory;
    app.finish(async move {
        // Its project has to be known before a session in it can be.
        engine.instance(&std::path::Path::new(&directory).join(replay.directory)).await?;
        engine.replay_foreign(replay.events).await
    })
    .await?;
    Ok(Json(json!({"sessionID": session})))
}

/// The events behind those that the client names as known, oldest first.
///
/// A long history is told in pieces: the client asks again with what it has.
pub(super) async fn history(
    State(app): State<App>,
    Payload(known): Payload<HashMap<String, u64>>,
) -> Result<Json<Vec<Logged>>, Error> {
    Ok(Json(app.engine.history(known).await?))
}

/// There are no workspaces to keep in step, so all of them are.
pub(super) async fn start(_here: Here) -> Json<bool> {
    Json(true)
}
