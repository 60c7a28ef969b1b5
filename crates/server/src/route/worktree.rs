//! The worktrees of a project, and moving a session to another directory.

use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::State;
use codewright_engine::{self as engine, Changes};
use codewright_proto::{MoveSessionInput, Worktree, WorktreeCreateInput, WorktreeDirectory};
use http::StatusCode;

use crate::Error;
use crate::auth::{Level, Viewer, on_session};
use crate::extract::{Location, Payload};
use crate::state::App;

/// Lists the worktrees that were created for the project.
pub(super) async fn list(State(app): State<App>, location: Location) -> Result<Json<Vec<String>>, Error> {
    let listed = app.engine.worktrees().list(&location.instance).await;
    listed.map(Json).map_err(|error| refused("WorktreeListFailedError", error.into()))
}

/// Creates a worktree. Its files are created in the background.
pub(super) async fn create(
    State(app): State<App>,
    location: Location,
    Payload(input): Payload<WorktreeCreateInput>,
) -> Result<Json<Worktree>, Error> {
    in_repository(&location)?;
    let engine = app.engine.clone();
    let created = app.finish(async move { engine.worktrees().create(&location.instance, input).await }).await;
    created.map(Json).map_err(|error| match error {
        Error::Engine(engine::Error::TooMany { .. }) => refused("WorktreeNameGenerationFailedError", error),
        error => refused("WorktreeCreateFailedError", error),
    })
}

/// Removes a worktree.
pub(super) async fn remove(
    State(app): State<App>,
    location: Location,
    Payload(input): Payload<WorktreeDirectory>,
) -> Result<Json<bool>, Error> {
    in_repository(&location)?;
    let (engine, directory) = (app.engine.clone(), PathBuf::from(input.directory));
    let work = async move { engine.worktrees().remove(&location.instance, &directory).await };
    let removed = app.finish(work).await;
    removed.map(Json).map_err(|error| refused("WorktreeRemoveFailedError", error))
}

/// Moves the branch of a worktree to the default branch.
pub(super) async fn reset(
    State(app): State<App>,
    location: Location,
    Payload(input): Payload<WorktreeDirectory>,
) -> Result<Json<bool>, Error> {
    in_repository(&location)?;
    let (engine, directory) = (app.engine.clone(), PathBuf::from(input.directory));
    let work = async move { engine.worktrees().reset(&location.instance, &directory).await };
    let reset = app.finish(work).await;
    reset.map(Json).map_err(|error| refused("WorktreeResetFailedError", error))
}

/// Moves a session to another directory of its project.
pub(super) async fn move_session(
    State(app): State<App>,
    mut viewer: Viewer,
    Payload(input): Payload<MoveSessionInput>,
) -> Result<StatusCode, Error> {
    let MoveSessionInput { session_id, destination, move_changes } = input;
    on_session(&app, &mut viewer, Some(session_id.as_str()), Level::Full).await?;
    // What others name is opened once and checked. The owner gets the errors of the move itself.
    let destination = match viewer.who().limited() {
        Some(_) => {
            let named = Path::new(&destination.directory);
            Location::open(&app, viewer.who(), named).await?.path().directory
        }
        None => destination.directory,
    };
    let changes = if move_changes == Some(true) { Changes::Move } else { Changes::Stay };
    let (engine, id) = (app.engine.clone(), session_id.clone());
    let work = async move { engine.sessions().relocate(&id, Path::new(&destination), changes).await };
    let moved = app.finish(work).await;
    app.directories.forget(&session_id);
    moved.map(|_| StatusCode::NO_CONTENT).map_err(|error| refused("MoveSessionError", error))
}

fn in_repository(location: &Location) -> Result<(), Error> {
    if location.instance.is_repository() {
        return Ok(());
    }
    let message = "worktrees need a git repository".to_owned();
    Err(Error::Refused { name: "WorktreeNotGitError", message, reason: None })
}

/// Gives an error the name that clients know. Faults of the server keep theirs.
fn refused(name: &'static str, error: Error) -> Error {
    match error {
        Error::Engine(
            engine::Error::NotFound { .. }
            | engine::Error::Busy { .. }
            | engine::Error::Invalid { .. }
            | engine::Error::TooMany { .. }
            | engine::Error::Machine { .. },
        ) => Error::Refused { name, message: error.to_string(), reason: None },
        error => error,
    }
}
