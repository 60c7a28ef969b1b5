//! Moves a session to another directory of its project.
//!
//! The session continues there with the configuration, the trust and the stored permissions of that directory. Its
//! earlier file changes belong to the old directory: undo keeps them and names them, until the session is moved back.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use codewright_proto::{LocationRef, Session, SessionId, Signal};
use codewright_store::SessionFilter;

use super::locks::Exclusive;
use super::relative;
use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::interface::Sessions;

/// The number of subagent sessions that move with a session.
const MAX_FAMILY: usize = 1000;

/// What happens to uncommitted changes when a session is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// They stay in the old directory.
    Stay,
    /// They move to the new worktree.
    Move,
}

impl Sessions<'_> {
    /// Moves an idle session and its subagents to another directory of its project.
    pub async fn relocate(self, id: &SessionId, to: &Path, changes: Changes) -> Result<Session, Error> {
        let inner = self.0;
        if !to.is_absolute() {
            return Err(Error::invalid(format!("`{}` is not an absolute path", to.display())));
        }
        let first = inner.session(id).await?;
        if first.parent_id.is_some() {
            return Err(Error::invalid("a subagent moves with the session that started it"));
        }
        if inner.worktrees.is_preparing(to) {
            return Err(Error::invalid(format!("`{}` is still being created", to.display())));
        }
        let instance = inner.instance(to).await?;
        // A directory that was moved, perhaps out of its repository, has no project any more.
        if instance.project.id != first.project_id && Path::new(&first.directory).is_dir() {
            return Err(Error::invalid(format!("`{}` belongs to another project", to.display())));
        }
        let (family, _idle) = locked_family(inner, first).await?;
        // The session may have changed before it was locked.
        let session = inner.session(id).await?;
        let directory = instance.path().directory;
        if session.directory == directory {
            return Ok(session);
        }
        if session.revert.is_some() {
            return Err(Error::invalid(
                "the session has undone messages; redo them, or send a prompt to remove them, before it is moved",
            ));
        }
        if changes == Changes::Move {
            transfer(inner, &session, &instance).await?;
        }
        let old = session.directory.clone();
        let mut moved = session;
        for member in family {
            if member.directory == old {
                let updated = relocated(inner, &member.id, &instance).await?;
                if member.id == *id {
                    moved = updated;
                }
            }
        }
        Ok(moved)
    }
}

/// Returns a session and its subagents, all locked.
async fn locked_family(inner: &Inner, first: Session) -> Result<(Vec<Session>, Vec<Exclusive>), Error> {
    let (mut family, mut locks) = (vec![first], Vec::new());
    let mut known: HashSet<_> = family.iter().map(|session| session.id.clone()).collect();
    let mut at = 0;
    while let Some(parent) = family.get(at).map(|session| session.id.clone()) {
        locks.push(inner.session_locks.exclusive(&inner.runs, &inner.store, &parent).await?);
        let filter = SessionFilter { parent: Some(parent), ..SessionFilter::default() };
        let young = inner.store.sessions(filter).await?;
        family.extend(young.into_iter().filter(|child| known.insert(child.id.clone())));
        if family.len() > MAX_FAMILY {
            return Err(Error::too_many(format!("the session has more than {MAX_FAMILY} subagents")));
        }
        at += 1;
    }
    Ok((family, locks))
}

async fn relocated(inner: &Inner, id: &SessionId, instance: &Instance) -> Result<Session, Error> {
    let now = inner.clock.now_ms();
    let directory = instance.path().directory;
    let subdirectory = relative(&instance.directory, &instance.worktree.root);
    let change = |session: &mut Session| {
        session.directory.clone_from(&directory);
        session.path = Some(subdirectory.clone());
        session.project_id = instance.project.id.clone();
        session.time.updated = now;
    };
    let updated = inner.update_session(id, change).await?;
    let location = LocationRef { directory };
    inner.store.signal(Signal::SessionMoved {
        timestamp: now,
        session_id: id.clone(),
        location,
        subdirectory,
    });
    Ok(updated)
}

/// Moves the uncommitted changes of a session's worktree to another one. They are either moved completely or stay.
async fn transfer(inner: &Inner, session: &Session, to: &Arc<Instance>) -> Result<(), Error> {
    let from = inner.instance(Path::new(&session.directory)).await?;
    if from.worktree == to.worktree {
        return Ok(());
    }
    let patch = from.vcs_raw().await?;
    if patch.is_empty() {
        return Ok(());
    }
    if !to.vcs_apply(&patch).await? {
        return Err(Error::invalid(
            "the uncommitted changes cannot be applied in the new directory, because its files differ; the session \
             was not moved",
        ));
    }
    if from.vcs_unapply(&patch).await? {
        return Ok(());
    }
    // A file was changed in the meantime. The old directory still has everything.
    let is_clean = to.vcs_unapply(&patch).await?;
    let rest = if is_clean { "" } else { "; the new directory has a copy of the changes" };
    Err(Error::invalid(format!(
        "the uncommitted changes cannot be removed from the old directory; the session was not moved{rest}"
    )))
}
