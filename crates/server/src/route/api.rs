//! The routes of the v2 API, under `/api`.
//!
//! They read and change the same data as the other routes, in other schemas.

use axum::Json;
use axum::extract::State;
use codewright_engine::{PluginDraft, SessionFilter};
use codewright_proto::{ParseIdError, Session, SessionId};
use page::{Anchor, Direction, Order};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::auth::Viewer;
use crate::extract::{Location, One, Params};
use crate::state::App;

pub(super) mod history;
pub(super) mod integration;
pub(super) mod message;
mod page;
pub(super) mod pending;
pub(super) mod revert;
pub(super) mod session;
mod shape;
pub(super) mod terminal;

/// The default size of a page of sessions.
const DEFAULT_SESSIONS: usize = 50;
/// The maximum size of a page of sessions.
const MAX_SESSIONS: u64 = 1_000_000;

/// Returns a reply with the location that it is about.
pub(in crate::route) fn with_location(location: &Location, data: Value) -> Json<Value> {
    Json(json!({"location": location_json(location), "data": data}))
}

fn location_json(location: &Location) -> Value {
    let (path, project) = (location.instance.path(), location.instance.project());
    json!({
        "directory": path.directory,
        "project": {"id": project.id, "directory": path.worktree},
    })
}

pub(super) async fn health() -> Json<Value> {
    Json(json!({"healthy": true}))
}

pub(super) async fn location(location: Location) -> Json<Value> {
    Json(location_json(&location))
}

pub(super) async fn agents(location: Location, viewer: Viewer) -> Json<Value> {
    let agents = location.instance.agents_for(viewer.audience());
    with_location(&location, agents.as_array().into_iter().flatten().map(shape::agent).collect())
}

/// Returns the lists that plugins of the v2 form change.
pub(crate) fn lists(draft: &PluginDraft) -> Value {
    let PluginDraft { agents, commands, skills, providers: known, config } = draft;
    let of = |list: &Value, convert: fn(&Value) -> Value| -> Value {
        list.as_array().into_iter().flatten().map(convert).collect()
    };
    let models = shape::providers(known).flat_map(|provider| {
        let models = provider["models"].as_object().into_iter().flatten();
        models.map(|(_, model)| shape::model(model))
    });
    let providers = shape::providers(known).map(shape::provider);
    let mut lists = json!({
        "agents": of(agents, shape::agent),
        "commands": of(commands, shape::command),
        "providers": providers.collect::<Value>(),
        "models": models.collect::<Value>(),
        "skills": of(skills, |skill| json!({"type": "embedded", "skill": skill})),
    });
    if let Some(agent) = config["default_agent"].as_str() {
        lists["defaultAgent"] = agent.into();
    }
    if let Some((provider, model)) = config["model"].as_str().and_then(|model| model.split_once('/')) {
        lists["defaultModel"] = json!({"providerID": provider, "modelID": model});
    }
    lists
}

pub(super) async fn models(location: Location) -> Json<Value> {
    let providers = location.instance.providers_json();
    let models = shape::providers(&providers).flat_map(|provider| {
        let models = provider["models"].as_object().into_iter().flatten();
        models.map(|(_, model)| shape::model(model)).collect::<Vec<_>>()
    });
    with_location(&location, models.collect())
}

pub(super) async fn providers(location: Location) -> Json<Value> {
    let providers = location.instance.providers_json();
    with_location(&location, shape::providers(&providers).map(shape::provider).collect())
}

pub(super) async fn provider(location: Location, One(id): One<String>) -> Result<Json<Value>, Error> {
    let providers = location.instance.providers_json();
    let found = shape::providers(&providers).find(|provider| provider["id"] == *id).map(shape::provider);
    let missing = || Error::Missing { tag: "ProviderNotFoundError", key: "providerID", what: "Provider", id };
    Ok(with_location(&location, found.ok_or_else(missing)?))
}

pub(super) async fn commands(location: Location, viewer: Viewer) -> Json<Value> {
    let mut commands = location.instance.commands_json();
    location.instance.mask(&mut commands, viewer.audience());
    with_location(&location, commands.as_array().into_iter().flatten().map(shape::command).collect())
}

pub(super) async fn skills(location: Location) -> Json<Value> {
    let skills = location.instance.skills_json();
    with_location(&location, skills)
}

pub(super) async fn nothing(location: Location) -> Json<Value> {
    with_location(&location, json!([]))
}

#[derive(Deserialize)]
pub(super) struct SessionsQuery {
    limit: Option<String>,
    cursor: Option<String>,
    #[serde(flatten)]
    list: ListQuery,
}

/// The selection and order of the listed sessions.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ListQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<Order>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
}

/// The session at the edge of a page, and the query of the list.
#[derive(Debug, Serialize, Deserialize)]
struct Cursor {
    #[serde(flatten)]
    list: ListQuery,
    anchor: Anchor,
}

/// Lists the sessions of all directories, by default the newest first.
pub(super) async fn sessions(
    State(app): State<App>,
    mut viewer: Viewer,
    Params(query): Params<SessionsQuery>,
) -> Result<Json<Value>, Error> {
    let limit = history::number("limit", query.limit.as_deref(), 1..=MAX_SESSIONS)?;
    let limit = limit.map_or(DEFAULT_SESSIONS, |limit| limit as usize);
    // The query of the first page also applies to the following ones.
    let (list, anchor) = match query.cursor.as_deref() {
        None => (query.list, None),
        Some(text) => {
            let Cursor { list, anchor } = page::decode(text)?;
            (list, Some(anchor))
        }
    };
    let non_empty = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let filter = SessionFilter {
        directory: non_empty(&list.directory),
        search: non_empty(&list.search),
        ..SessionFilter::default()
    };
    let sessions = app.engine.sessions().list(filter).await?;
    let mut sessions = viewer.sessions(&app.engine, sessions).await;
    if let Some(project) = &list.project {
        sessions.retain(|session| session.project_id.as_str() == project);
    }
    sessions.sort_by(|a, b| (a.time.created, &a.id).cmp(&(b.time.created, &b.id)));
    let keys: Vec<_> = sessions.iter().map(|session| (session.time.created, session.id.as_str())).collect();
    let order = list.order.unwrap_or(Order::Desc);
    let (start, end) = page::window(&keys, order, anchor.as_ref(), limit);
    let mut found: Vec<_> = sessions[start.min(end)..end].iter().collect();
    if order == Order::Desc {
        found.reverse();
    }
    let edge = |session: Option<&&Session>, direction| {
        let session = session?;
        let (id, time) = (session.id.to_string(), session.time.created);
        let anchor = Anchor { id, time, direction };
        Some(page::encode(&Cursor { list: list.clone(), anchor }))
    };
    let cursor = json!({
        "previous": edge(found.first(), Direction::Previous),
        "next": edge(found.last(), Direction::Next),
    });
    let data: Value = found.into_iter().map(shape::session).collect();
    Ok(Json(json!({"data": data, "cursor": cursor})))
}

pub(super) async fn session(State(app): State<App>, One(id): One<SessionId>) -> Result<Json<Value>, Error> {
    Ok(Json(json!({"data": shape::session(&find_session(&app, &id).await?)})))
}

/// Checks an id in a body. The types of bodies contain ids as plain text, so that the error can name the key.
fn parse_id<T>(key: &str, id: Result<T, ParseIdError>) -> Result<T, Error> {
    id.map_err(|error| Error::Invalid { message: format!("{error}\n  at [\"{key}\"]"), kind: "Payload" })
}

/// Returns a session, or the error of the v2 API about a missing session.
async fn find_session(app: &App, id: &SessionId) -> Result<Session, Error> {
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

pub(super) async fn active(State(app): State<App>, mut viewer: Viewer) -> Json<Value> {
    let busy = app.engine.sessions().statuses().into_keys().collect();
    let busy = viewer.filter(&app.engine, busy, |id| id).await;
    let data: Map<_, _> = busy.into_iter().map(|id| (id.to_string(), json!({"type": "running"}))).collect();
    Json(json!({"data": data}))
}
