//! What clients ask for on trial: capabilities, the console, tools, workspaces, worktrees.
//!
//! Rooms that are not built answer with what they have: nothing.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use codewright_engine::SessionFilter;
use codewright_proto::{Project, Session, SessionId};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Error;
use crate::extract::{Here, One, Params, count};
use crate::state::App;

/// How many sessions are listed when the client does not say.
const DEFAULT_SESSIONS: usize = 100;

pub(super) async fn capabilities(_here: Here) -> Json<Value> {
    Json(json!({"backgroundSubagents": false}))
}

pub(super) async fn console(_here: Here) -> Json<Value> {
    Json(json!({"consoleManagedProviders": [], "switchableOrgCount": 0}))
}

pub(super) async fn orgs(_here: Here) -> Json<Value> {
    Json(json!({"orgs": []}))
}

pub(super) async fn switch_org(_here: Here) -> Result<Json<bool>, Error> {
    Err(Error::NotOffered { what: "switching between organisations" })
}

pub(super) async fn nothing(_here: Here) -> Json<[Value; 0]> {
    Json([])
}

pub(super) async fn no_entries(_here: Here) -> Json<Value> {
    Json(json!({}))
}

pub(super) async fn done(_here: Here) -> StatusCode {
    StatusCode::NO_CONTENT
}

pub(super) async fn no_workspaces(_here: Here) -> Result<Json<Value>, Error> {
    Err(Error::NotOffered { what: "working in workspaces" })
}

pub(super) async fn no_worktrees(_here: Here) -> Result<Json<Value>, Error> {
    Err(Error::NotOffered { what: "making worktrees" })
}

/// The further worktrees of the directory's project.
pub(super) async fn worktrees(State(app): State<App>, here: Here) -> Result<Json<Vec<String>>, Error> {
    Ok(Json(app.engine.projects().of_instance(&here.place).await?.sandboxes))
}

/// No turn is moved to the background.
pub(super) async fn background(_here: Here, One(_): One<SessionId>) -> Json<bool> {
    Json(false)
}

pub(super) async fn tool_ids(State(app): State<App>, _here: Here) -> Json<Vec<String>> {
    // Calls that cannot be understood are recorded under this name.
    let first = ["invalid".to_owned()];
    Json(first.into_iter().chain(app.engine.tools(None).into_iter().map(|(name, ..)| name)).collect())
}

#[derive(Deserialize)]
pub(super) struct For {
    #[serde(rename = "provider")]
    _provider: String,
    model: String,
}

pub(super) async fn tools(State(app): State<App>, _here: Here, Params(of): Params<For>) -> Json<Vec<Value>> {
    let told = |(name, description, parameters): (String, String, Value)| json!({"id": name, "description": description, "parameters": parameters});
    // Under this name calls are recorded that cannot be understood; no model is shown it.
    let text = json!({"type": "string"});
    let parameters = json!({
        "type": "object",
        "properties": {"tool": text, "error": text},
        "required": ["tool", "error"],
    });
    let invalid = ("invalid".to_owned(), "Stands for calls that cannot be understood".to_owned(), parameters);
    Json(std::iter::once(invalid).chain(app.engine.tools(Some(&of.model))).map(told).collect())
}

#[derive(Deserialize)]
pub(super) struct Listed {
    roots: Option<String>,
    #[serde(default, deserialize_with = "count")]
    start: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cursor: Option<u64>,
    search: Option<String>,
    #[serde(default, deserialize_with = "count")]
    limit: Option<u64>,
    archived: Option<String>,
    directory: Option<String>,
}

/// A session with what people call its project.
#[derive(Serialize)]
struct Global {
    #[serde(flatten)]
    session: Session,
    project: Option<Value>,
}

/// Sessions of all directories, the most recently changed first.
pub(super) async fn sessions(
    State(app): State<App>,
    Params(listed): Params<Listed>,
) -> Result<Response, Error> {
    let limit = listed.limit.map_or(DEFAULT_SESSIONS, |limit| limit as usize);
    let (cursor, archived) = (listed.cursor, listed.archived.as_deref() == Some("true"));
    let filter = SessionFilter {
        directory: listed.directory.filter(|directory| !directory.is_empty()),
        roots: listed.roots.as_deref() == Some("true"),
        search: listed.search.filter(|search| !search.is_empty()),
        start: listed.start,
        ..SessionFilter::default()
    };
    let projects = app.engine.projects().list().await?;
    let mut found = app.engine.sessions().list(filter).await?;
    found.retain(|session| {
        cursor.is_none_or(|cursor| session.time.updated < cursor)
            && (archived || session.time.archived.is_none())
    });
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|session| session.time.updated);
    let named = |session: Session| {
        let project = projects.iter().find(|project| project.id == session.project_id).map(summary);
        Global { session, project }
    };
    let mut response = Json(found.into_iter().map(named).collect::<Vec<_>>()).into_response();
    if let Some(next) = next {
        let headers = response.headers_mut();
        let exposed = HeaderValue::from_static("X-Next-Cursor");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        headers.insert(HeaderName::from_static("x-next-cursor"), HeaderValue::from(next));
    }
    Ok(response)
}

fn summary(project: &Project) -> Value {
    let mut summary = json!({"id": project.id, "worktree": project.worktree});
    if let Some(name) = &project.name {
        summary["name"] = json!(name);
    }
    summary
}

/// A name for a copy of a project.
pub(super) async fn copy_name(State(app): State<App>, One(_): One<String>) -> Json<Value> {
    let id = app.ids.event();
    let tail: String = id.as_str().chars().rev().take(8).collect();
    Json(json!({"name": format!("copy-{}", tail.to_ascii_lowercase())}))
}
