//! The repository of a request, with its project and its linked worktrees.

use std::path::{Path, PathBuf};

use codewright_config::Worktree;
use codewright_proto::{Project, ProjectId, Session, SessionId, Signal};
use codewright_store::SessionFilter;
use codewright_workspace::git::{Git, GitDirs, Linked, Repository, git_dirs};
use codewright_workspace::normalize;

use super::{GIT_DEADLINE, failed};
use crate::Error;
use crate::error::Resource;
use crate::inner::Inner;
use crate::instance::{self, Instance};
use crate::permission::control::WORKTREES;

/// The number of files or sessions that an error names.
const MAX_NAMED: usize = 5;

/// A repository and its project.
pub(super) struct Place {
    /// The main worktree, or the one of the request if there is no main one.
    pub(super) root: PathBuf,
    pub(super) dirs: GitDirs,
    pub(super) git: Git,
    pub(super) repository: Repository,
    project: ProjectId,
    /// The directory of the worktrees that this program creates for the project.
    pub(super) folder: PathBuf,
}

impl Place {
    pub(super) async fn of(inner: &Inner, instance: &Instance) -> Result<Self, Error> {
        if !instance.is_repository() {
            return Err(Error::invalid("worktrees need a git repository"));
        }
        let own = &instance.worktree.root;
        let root = instance::main_worktree(own).unwrap_or_else(|| own.clone());
        let dirs = git_dirs(&root)
            .ok_or_else(|| Error::invalid(format!("`{}` has no usable repository", root.display())))?;
        let repository = instance.git.open(&root).await.map_err(failed)?;
        if repository.commit_of("HEAD", GIT_DEADLINE).await.is_none() {
            return Err(Error::invalid("the repository has no commit yet; a worktree starts at a commit"));
        }
        // The repository may have had no commit when the instance was opened.
        let worktree = Worktree { root: root.clone(), git: true };
        let project = instance::project(&inner.opening(), &worktree).await?.id;
        let folder = folder(inner, &project);
        Ok(Self { root, dirs, git: instance.git.clone(), repository, project, folder })
    }

    /// Returns the registered worktree at a path.
    pub(super) fn find(&self, directory: &Path) -> Option<Linked> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| normalize(path));
        // A link to a worktree is not the worktree, so only the parent is resolved.
        let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else { return None };
        let wanted = real(parent).join(name);
        self.dirs.linked().into_iter().find(|linked| {
            let parent = linked.directory.parent().map(real);
            parent.zip(linked.directory.file_name()).is_some_and(|(parent, name)| parent.join(name) == wanted)
        })
    }

    /// Changes the list of worktrees that is stored with the project.
    pub(super) async fn change_list(
        &self,
        inner: &Inner,
        change: impl FnOnce(&mut Vec<String>),
    ) -> Result<Project, Error> {
        let stored = inner.store.projects().await?.into_iter().find(|project| project.id == self.project);
        let mut project = stored.ok_or_else(|| Error::not_found(Resource::Project, &self.project))?;
        change(&mut project.sandboxes);
        project.time.updated = inner.clock.now_ms();
        inner.store.save_project(project.clone()).await?;
        inner.store.signal(Signal::ProjectUpdated(project.clone()));
        Ok(project)
    }

    /// Returns the sessions whose directory is a worktree or below it.
    pub(super) async fn sessions(&self, inner: &Inner, worktree: &Path) -> Result<Vec<SessionId>, Error> {
        let filter = SessionFilter { project: Some(self.project.clone()), ..SessionFilter::default() };
        let sessions = inner.store.sessions(filter).await?;
        let inside = |session: &Session| Path::new(&session.directory).starts_with(worktree);
        Ok(sessions.into_iter().filter(inside).map(|session| session.id).collect())
    }
}

/// Returns the directory of the worktrees that this program creates for a project. The id may come from a repository,
/// so it is reduced to a plain name.
pub(super) fn folder(inner: &Inner, project: &ProjectId) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = project.as_str().chars().map(plain).collect();
    inner.dirs.data.join(WORKTREES).join(name)
}

/// Returns the first few names of a list, and the number of the others.
pub(super) fn named(all: &[String]) -> String {
    let more = all.len().saturating_sub(MAX_NAMED);
    let shown: Vec<_> = all.iter().take(MAX_NAMED).map(|name| format!("`{name}`")).collect();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", shown.join(", "))
}
