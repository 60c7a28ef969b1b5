//! The newer routes under `/api`.
//!
//! They show and change the same things as the routes beside them, in other shapes.

use axum::Json;
use axum::extract::State;
use codewright_engine::SessionFilter;
use codewright_proto::{ParseIdError, Session, SessionId};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Error;
use crate::extract::{Here, One, Params};
use crate::state::App;

pub(super) mod history;
pub(super) mod integration;
pub(super) mod message;
pub(super) mod revert;
pub(super) mod session;
mod shape;
pub(super) mod terminal;
pub(super) mod waiting;

/// How many sessions are listed when the client does not say.
const DEFAULT_SESSIONS: usize = 50;

/// An answer with the place it holds for.
pub(in crate::route) fn located(here: &Here, data: Value) -> Json<Value> {
    Json(json!({"location": place(here), "data": data}))
}

fn place(here: &Here) -> Value {
    let (path, project) = (here.place.path(), here.place.project());
    json!({
        "directory": path.directory,
        "project": {"id": project.id, "directory": path.worktree},
    })
}

pub(super) async fn health() -> Json<Value> {
    Json(json!({"healthy": true}))
}

pub(super) async fn location(here: Here) -> Json<Value> {
    Json(place(&here))
}

pub(super) async fn agents(here: Here) -> Json<Value> {
    let agents = here.place.agents_json();
    located(&here, agents.as_array().into_iter().flatten().map(shape::agent).collect())
}

pub(super) async fn models(here: Here) -> Json<Value> {
    let providers = here.place.providers_json();
    let models = shape::providers(&providers).flat_map(|provider| {
        let models = provider["models"].as_object().into_iter().flatten();
        models.map(|(_, model)| shape::model(model)).collect::<Vec<_>>()
    });
    located(&here, models.collect())
}

pub(super) async fn providers(here: Here) -> Json<Value> {
    let providers = here.place.providers_json();
    located(&here, shape::providers(&providers).map(shape::provider).collect())
}

pub(super) async fn provider(here: Here, One(id): One<String>) -> Result<Json<Value>, Error> {
    let providers = here.place.providers_json();
    let found = shape::providers(&providers).find(|provider| provider["id"] == *id).map(shape::provider);
    let missing = || Error::Missing { tag: "ProviderNotFoundError", key: "providerID", what: "Provider", id };
    Ok(located(&here, found.ok_or_else(missing)?))
}

pub(super) async fn commands(here: Here) -> Json<Value> {
    let commands = here.place.commands_json();
    located(&here, commands.as_array().into_iter().flatten().map(shape::command).collect())
}

pub(super) async fn skills(here: Here) -> Json<Value> {
    let skills = here.place.skills_json();
    located(&here, skills)
}

pub(super) async fn nothing(here: Here) -> Json<Value> {
    located(&here, json!([]))
}

#[derive(Deserialize)]
pub(super) struct Listed {
    limit: Option<usize>,
    order: Option<String>,
    search: Option<String>,
    directory: Option<String>,
    project: Option<String>,
}

/// Sessions of all directories, the newest first unless asked otherwise.
pub(super) async fn sessions(
    State(app): State<App>,
    Params(listed): Params<Listed>,
) -> Result<Json<Value>, Error> {
    let filter = SessionFilter {
        directory: listed.directory.filter(|directory| !directory.is_empty()),
        search: listed.search.filter(|search| !search.is_empty()),
        ..SessionFilter::default()
    };
    let mut sessions = app.engine.sessions(filter).await?;
    if let Some(project) = listed.project {
        sessions.retain(|session| session.project_id.as_str() == project);
    }
    sessions.sort_by(|a, b| (b.time.created, &b.id).cmp(&(a.time.created, &a.id)));
    if listed.order.as_deref() == Some("asc") {
        sessions.reverse();
    }
    sessions.truncate(listed.limit.unwrap_or(DEFAULT_SESSIONS));
    let data: Value = sessions.iter().map(shape::session).collect();
    Ok(Json(json!({"data": data, "cursor": {"previous": null, "next": null}})))
}

pub(super) async fn session(State(app): State<App>, One(id): One<SessionId>) -> Result<Json<Value>, Error> {
    Ok(Json(json!({"data": shape::session(&known(&app, &id).await?)})))
}

/// An id of a body, which is text to the vocabulary.
fn given<T>(key: &str, id: Result<T, ParseIdError>) -> Result<T, Error> {
    id.map_err(|error| Error::Invalid { message: format!("{error}\n  at [\"{key}\"]"), kind: "Payload" })
}

/// A session, or the error by which newer routes say that there is none.
async fn known(app: &App, id: &SessionId) -> Result<Session, Error> {
    app.engine.session(id).await.map_err(|error| match error {
        codewright_engine::Error::NotFound { .. } => Error::Missing {
            tag: "SessionNotFoundError",
            key: "sessionID",
            what: "Session",
            id: id.to_string(),
        },
        other => other.into(),
    })
}

pub(super) async fn active(State(app): State<App>) -> Json<Value> {
    let busy = app.engine.statuses().into_keys();
    let data: Map<_, _> = busy.map(|id| (id.to_string(), json!({"type": "running"}))).collect();
    Json(json!({"data": data}))
}
