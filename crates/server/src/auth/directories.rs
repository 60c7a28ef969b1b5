//! The directories that users may work in. Administrators may work in all of them.

use std::path::{Path, PathBuf};

use super::{Caller, Role, Who};
use crate::Error;
use crate::state::App;

/// Fails if the sender of a request may not work in a directory.
pub(crate) async fn check_directory(app: &App, who: &Who, directory: &Path) -> Result<(), Error> {
    let is_permitted = match who {
        Who::Local => true,
        Who::Ticket => false,
        Who::User(caller) => permits(app, caller, directory).await,
    };
    if is_permitted { Ok(()) } else { Err(Error::Forbidden { why: "users may not work in this directory" }) }
}

/// Whether a user may use a path. Links are followed first, and a path that does not exist is not permitted.
pub(super) async fn permits(app: &App, caller: &Caller, path: &Path) -> bool {
    if caller.role == Role::Admin {
        return true;
    }
    let Some(auth) = &app.options.auth else { return true };
    let Some(path) = resolved(path).await else { return false };
    let is_inside = |path: &Path| auth.directories.iter().any(|directory| path.starts_with(directory));
    if is_inside(&path) {
        return true;
    }
    // Worktrees that the program created for a permitted project are elsewhere.
    let Ok(projects) = app.engine.projects().list().await else { return false };
    let permitted = projects.iter().filter(|project| is_inside(Path::new(&project.worktree)));
    permitted.flat_map(|project| &project.sandboxes).any(|worktree| path.starts_with(worktree))
}

async fn resolved(path: &Path) -> Option<PathBuf> {
    tokio::fs::canonicalize(path).await.ok()
}
