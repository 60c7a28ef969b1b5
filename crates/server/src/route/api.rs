//! The newer routes under `/api`.
//!
//! They show and change the same things as the routes beside them, in other shapes.

use axum::Json;
use axum::extract::State;
use codewright_engine::SessionFilter;
use codewright_proto::{ParseIdError, Session, SessionId};
use page::{Anchor, Direction, Order};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::extract::{Here, One, Params};
use crate::state::App;

pub(super) mod history;
pub(super) mod integration;
pub(super) mod message;
mod page;
pub(super) mod revert;
pub(super) mod session;
mod shape;
pub(super) mod terminal;
pub(super) mod waiting;

/// How many sessions are listed when the client does not say.
const DEFAULT_SESSIONS: usize = 50;
/// The most sessions of one page.
const MAX_SESSIONS: u64 = 1_000_000;

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
    limit: Option<String>,
    cursor: Option<String>,
    #[serde(flatten)]
    wanted: Wanted,
}

/// Which sessions are listed, and in which order.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Wanted {
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<Order>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
}

/// A session at the edge of a page, and what the list is of.
#[derive(Debug, Serialize, Deserialize)]
struct Cursor {
    #[serde(flatten)]
    wanted: Wanted,
    anchor: Anchor,
}

/// Sessions of all directories, the newest first unless asked otherwise.
pub(super) async fn sessions(
    State(app): State<App>,
    Params(listed): Params<Listed>,
) -> Result<Json<Value>, Error> {
    let limit = history::number("limit", listed.limit.as_deref(), 1..=MAX_SESSIONS)?;
    let limit = limit.map_or(DEFAULT_SESSIONS, |limit| limit as usize);
    // What a list is of is said by its first page.
    let (wanted, anchor) = match listed.cursor.as_deref() {
        None => (listed.wanted, None),
        Some(text) => {
            let Cursor { wanted, anchor } = page::read(text)?;
            (wanted, Some(anchor))
        }
    };
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let filter = SessionFilter {
        directory: filled(&wanted.directory),
        search: filled(&wanted.search),
        ..SessionFilter::default()
    };
    let mut sessions = app.engine.sessions().list(filter).await?;
    if let Some(project) = &wanted.project {
        sessions.retain(|session| session.project_id.as_str() == project);
    }
    sessions.sort_by(|a, b| (a.time.created, &a.id).cmp(&(b.time.created, &b.id)));
    let keys: Vec<_> = sessions.iter().map(|session| (session.time.created, session.id.as_str())).collect();
    let order = wanted.order.unwrap_or(Order::Desc);
    let (start, end) = page::window(&keys, order, anchor.as_ref(), limit);
    let mut found: Vec<_> = sessions[start.min(end)..end].iter().collect();
    if order == Order::Desc {
        found.reverse();
    }
    let edge = |session: Option<&&Session>, direction| {
        let session = session?;
        let (id, time) = (session.id.to_string(), session.time.created);
        let anchor = Anchor { id, time, direction };
        Some(page::written(&Cursor { wanted: wanted.clone(), anchor }))
    };
    let cursor = json!({
        "previous": edge(found.first(), Direction::Previous),
        "next": edge(found.last(), Direction::Next),
    });
    let data: Value = found.into_iter().map(shape::session).collect();
    Ok(Json(json!({"data": data, "cursor": cursor})))
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
    app.engine.sessions().get(id).await.map_err(|error| match error {
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
    let busy = app.engine.sessions().statuses().into_keys();
    let data: Map<_, _> = busy.map(|id| (id.to_string(), json!({"type": "running"}))).collect();
    Json(json!({"data": data}))
}
