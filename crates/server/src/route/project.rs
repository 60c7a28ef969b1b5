//! The projects: all repositories that have been opened.

use axum::Json;
use axum::extract::State;
use codewright_engine::{ProjectDirectory, ProjectPatch};
use codewright_proto::Project;
use serde_json::{Value, json};

use crate::Error;
use crate::auth::{Who, shows};
use crate::extract::{Location, One, Payload};
use crate::state::App;

pub(super) async fn list(
    State(app): State<App>,
    who: Who,
    location: Location,
) -> Result<Json<Vec<Project>>, Error> {
    // Opening the directory has stored its project.
    let mut projects = app.engine.projects().list().await?;
    // The sender was permitted the directory of the request.
    let here = location.instance.project().id;
    projects.retain(|project| project.id == here || shows(&app, &who, project));
    Ok(Json(projects))
}

pub(super) async fn current(State(app): State<App>, location: Location) -> Result<Json<Project>, Error> {
    Ok(Json(app.engine.projects().of_instance(&location.instance).await?))
}

pub(super) async fn update(
    State(app): State<App>,
    One(id): One<String>,
    Payload(patch): Payload<ProjectPatch>,
) -> Result<Json<Project>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.projects().update(&id, patch).await }).await.map(Json)
}

pub(super) async fn init_git(State(app): State<App>, location: Location) -> Result<Json<Project>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.projects().init_git(&location.instance).await }).await.map(Json)
}

pub(super) async fn directories(
    State(app): State<App>,
    who: Who,
    One(id): One<String>,
) -> Result<Json<Vec<Value>>, Error> {
    if who.limited().is_some() && !shows(&app, &who, &app.engine.projects().get(&id).await?) {
        return Err(Error::Forbidden { why: "the project is not in a directory of users" });
    }
    let directories = app.engine.projects().directories(&id).await?;
    let entry = |ProjectDirectory { directory, is_linked }| match is_linked {
        true => json!({"directory": directory, "strategy": "git_worktree"}),
        false => json!({"directory": directory}),
    };
    Ok(Json(directories.into_iter().map(entry).collect()))
}
