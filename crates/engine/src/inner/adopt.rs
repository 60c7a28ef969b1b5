//! Moves sessions to the project of their directory when the project of that directory has changed.
//!
//! The id of a project is the first commit of its repository. It changes with the first commit, with a rewritten
//! history, and when `.git` appears or disappears. Sessions belong to a directory, so they follow it. For example, the
//! sessions of a directory stay listed after `git init` and the first commit.

use std::path::Path;

use codewright_config::Worktree;
use codewright_proto::ProjectId;
use codewright_store::SessionFilter;

use super::Inner;
use crate::Error;

/// A directory with its present project.
pub(super) struct Home<'a> {
    pub(super) directory: &'a Path,
    pub(super) worktree: &'a Worktree,
    pub(super) project: &'a ProjectId,
}

/// Adopts the sessions of a directory tree that have another project.
///
/// In a repository these are the sessions of its worktree, without those of nested repositories. Outside of one they are
/// the sessions of exactly this directory.
pub(super) async fn adopt(inner: &Inner, home: Home<'_>) -> Result<(), Error> {
    let mut filter = SessionFilter { outside: Some(home.project.clone()), ..SessionFilter::default() };
    if home.worktree.git {
        filter.below = Some(home.worktree.root.to_string_lossy().into_owned());
    } else {
        filter.directory = Some(home.directory.to_string_lossy().into_owned());
    }
    for session in inner.store.sessions(filter).await? {
        // A nested repository has its own project.
        if codewright_config::find_worktree(Path::new(&session.directory)) == *home.worktree {
            inner.update_session(&session.id, |session| session.project_id = home.project.clone()).await?;
        }
    }
    Ok(())
}
