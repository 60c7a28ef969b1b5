//! The directories that users may work in. Administrators may work in all of them.

use std::path::{Path, PathBuf};

use codewright_proto::Project;

use super::{Caller, Role, Who};
use crate::Error;
use crate::state::App;

/// Why a directory is refused.
const ELSEWHERE: Error = Error::Forbidden { why: "users may not work in this directory" };

/// Returns the directory that the sender of a request is to work in. For users its links are followed here, once.
///
/// # Errors
///
/// Fails if the sender may not work there.
pub(crate) async fn check_directory(app: &App, who: &Who, directory: &Path) -> Result<PathBuf, Error> {
    match who {
        Who::Local => Ok(directory.to_owned()),
        Who::Ticket => Err(ELSEWHERE),
        Who::User(caller) if caller.role == Role::Admin => Ok(directory.to_owned()),
        Who::User(caller) => permitted(app, caller, directory).await.ok_or(ELSEWHERE),
    }
}

/// Fails if the sender of a request may not work in a directory that was opened. No link is followed: what was opened
/// counts, whatever its name leads to by now.
pub(crate) async fn check_opened(app: &App, who: &Who, directory: &Path) -> Result<(), Error> {
    match who.limited() {
        Some(_) if !is_listed(app, directory).await => Err(ELSEWHERE),
        Some(_) | None => Ok(()),
    }
}

/// Whether the sender of a request may know of a project: administrators of each, users of those in their directories.
pub(crate) fn shows(app: &App, who: &Who, project: &Project) -> bool {
    who.limited().is_none() || is_inside(app, Path::new(&project.worktree))
}

fn is_inside(app: &App, path: &Path) -> bool {
    let auth = app.options.auth.as_ref();
    auth.is_none_or(|auth| auth.directories.iter().any(|directory| path.starts_with(directory)))
}

/// Whether a user may use a path. Links are followed first, and a path that does not exist is not permitted.
pub(super) async fn permits(app: &App, caller: &Caller, path: &Path) -> bool {
    caller.role == Role::Admin || permitted(app, caller, path).await.is_some()
}

/// Returns a path without links, if a user may use it.
pub(super) async fn permitted(app: &App, caller: &Caller, path: &Path) -> Option<PathBuf> {
    let real = tokio::fs::canonicalize(path).await.ok()?;
    let is_permitted = caller.role == Role::Admin || is_listed(app, &real).await;
    is_permitted.then_some(real)
}

/// Whether users may use a path without links.
async fn is_listed(app: &App, path: &Path) -> bool {
    if is_inside(app, path) {
        return true;
    }
    // Worktrees that the program created for a permitted project are elsewhere.
    let Ok(projects) = app.engine.projects().list().await else { return false };
    let permitted = projects.iter().filter(|project| is_inside(app, Path::new(&project.worktree)));
    permitted.flat_map(|project| &project.sandboxes).any(|worktree| path.starts_with(worktree))
}
