//! The experimental routes: capabilities, console, tools, workspaces, copies of projects.
//!
//! Routes of features that do not exist return empty lists or an error.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use codewright_engine::SessionFilter;
use codewright_proto::{Project, Session, SessionId};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Error;
use crate::auth::Viewer;
use crate::extract::{Location, One, Params, count};
use crate::state::App;

/// The default maximum of listed sessions.
const DEFAULT_SESSIONS: usize = 100;

pub(super) async fn capabilities(State(app): State<App>, _location: Location) -> Json<Value> {
    Json(json!({"backgroundSubagents": app.engine.has_background_subagents()}))
}

pub(super) async fn console(_location: Location) -> Json<Value> {
    Json(json!({"consoleManagedProviders": [], "switchableOrgCount": 0}))
}

pub(super) async fn orgs(_location: Location) -> Json<Value> {
    Json(json!({"orgs": []}))
}

pub(super) async fn switch_org(_location: Location) -> Result<Json<bool>, Error> {
    Err(Error::NotSupported { feature: "switching between organizations" })
}

pub(super) async fn nothing(_location: Location) -> Json<[Value; 0]> {
    Json([])
}

/// The kinds of workspaces. OpenCode lists them although it creates workspaces only with a variable that is not set.
pub(super) async fn workspace_adapters(State(app): State<App>, location: Location) -> Json<Value> {
    Json(json!(app.engine.extensions().workspace_adapters(&location.instance).await))
}

pub(super) async fn done(_location: Location) -> StatusCode {
    StatusCode::NO_CONTENT
}

pub(super) async fn no_workspaces(_location: Location) -> Result<Json<Value>, Error> {
    Err(Error::NotSupported { feature: "working in workspaces" })
}

pub(super) async fn no_copies(_location: Location) -> Result<Json<Value>, Error> {
    Err(Error::NotSupported { feature: "copying projects; use `/experimental/worktree`" })
}

/// Returns false, because no turn can move to the background.
pub(super) async fn background(_location: Location, One(_): One<SessionId>) -> Json<bool> {
    Json(false)
}

pub(super) async fn tool_ids(State(app): State<App>, location: Location) -> Json<Vec<String>> {
    // Invalid calls are recorded under this name.
    let first = ["invalid".to_owned()];
    let tools = app.engine.extensions().tools(&location.instance, None).await;
    Json(first.into_iter().chain(tools.into_iter().map(|(name, ..)| name)).collect())
}

#[derive(Deserialize)]
pub(super) struct ToolsQuery {
    #[serde(rename = "provider")]
    _provider: String,
    model: String,
}

pub(super) async fn tools(
    State(app): State<App>,
    location: Location,
    Params(query): Params<ToolsQuery>,
) -> Json<Vec<Value>> {
    let convert = |(name, description, parameters): (String, String, Value)| json!({"id": name, "description": description, "parameters": parameters});
    // Invalid calls are recorded under this name. Models do not receive this tool.
    let text = json!({"type": "string"});
    let parameters = json!({
        "type": "object",
        "properties": {"tool": text, "error": text},
        "required": ["tool", "error"],
    });
    let invalid = ("invalid".to_owned(), "Represents invalid calls".to_owned(), parameters);
    let tools = app.engine.extensions().tools(&location.instance, Some(&query.model)).await;
    Json(std::iter::once(invalid).chain(tools).map(convert).collect())
}

#[derive(Deserialize)]
pub(super) struct SessionsQuery {
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

/// A session with its project's name.
#[derive(Serialize)]
struct GlobalSession {
    #[serde(flatten)]
    session: Session,
    project: Option<Value>,
}

/// Lists the sessions of all directories, the most recently changed first.
pub(super) async fn sessions(
    State(app): State<App>,
    mut viewer: Viewer,
    Params(query): Params<SessionsQuery>,
) -> Result<Response, Error> {
    let limit = query.limit.map_or(DEFAULT_SESSIONS, |limit| limit as usize);
    let filter = SessionFilter {
        directory: query.directory.filter(|directory| !directory.is_empty()),
        roots: query.roots.as_deref() == Some("true"),
        search: query.search.filter(|search| !search.is_empty()),
        start: query.start,
        before: query.cursor,
        unarchived: query.archived.as_deref() != Some("true"),
        // One more shows whether a next page exists.
        limit: viewer.sees_everything().then_some(limit.saturating_add(1)),
        ..SessionFilter::default()
    };
    let projects = app.engine.projects().list().await?;
    let found = app.engine.sessions().list(filter).await?;
    let mut found = viewer.sessions(&app.engine, found).await;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|session| session.time.updated);
    let convert = |session: Session| {
        let project = projects.iter().find(|project| project.id == session.project_id).map(summary);
        GlobalSession { session, project }
    };
    let mut response = Json(found.into_iter().map(convert).collect::<Vec<_>>()).into_response();
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

/// Returns a name for a copy of a project.
pub(super) async fn copy_name(State(app): State<App>, One(_): One<String>) -> Json<Value> {
    let id = app.ids.event();
    let tail: String = id.as_str().chars().rev().take(8).collect();
    Json(json!({"name": format!("copy-{}", tail.to_ascii_lowercase())}))
}
