//! The known projects.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codewright_proto::{Map, Project, ProjectId, Signal};
use codewright_workspace::git::{Linked, git_dirs};
use serde::Deserialize;

use crate::error::Resource;
use crate::interface::{Instances, Projects};
use crate::session::fork::UNFINISHED;
use crate::{Error, Instance};

/// The deadline of `git init`.
const INIT_DEADLINE: Duration = Duration::from_secs(10);
/// The longest name of a project.
const MAX_NAME_CHARS: usize = 200;

/// The body of `PATCH /project/{id}`. Missing fields stay unchanged, also inside `icon`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ProjectPatch {
    /// A display name.
    pub name: Option<String>,
    /// A display icon.
    pub icon: Option<Map>,
    /// Commands of the project.
    pub commands: Option<Map>,
}

/// A directory of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectDirectory {
    /// The absolute path.
    pub directory: String,
    /// Whether it is a linked worktree of the project's repository.
    pub is_linked: bool,
}

impl Projects<'_> {
    /// Returns the projects, most recently used first.
    pub async fn list(self) -> Result<Vec<Project>, Error> {
        let mut projects = self.0.store.projects().await?;
        projects.retain(|project| project.id.as_str() != UNFINISHED);
        Ok(projects)
    }

    /// Returns one project.
    pub async fn get(self, id: &str) -> Result<Project, Error> {
        let found = self.list().await?.into_iter().find(|project| project.id.as_str() == id);
        found.ok_or_else(|| Error::not_found(Resource::Project, &id))
    }

    /// Returns the stored project of a directory.
    pub async fn of_instance(self, instance: &Instance) -> Result<Project, Error> {
        let stored = self.0.store.project_of(&instance.project.worktree).await?;
        Ok(stored.unwrap_or_else(|| instance.project()))
    }

    /// Changes the display data of a project.
    pub async fn update(self, id: &str, patch: ProjectPatch) -> Result<Project, Error> {
        let mut project = self.get(id).await?;
        if patch.name.as_ref().is_some_and(|name| name.chars().count() > MAX_NAME_CHARS) {
            return Err(Error::invalid(format!("a name has at most {MAX_NAME_CHARS} characters")));
        }
        project.name = patch.name.or(project.name);
        if let Some(icon) = patch.icon {
            project.icon.get_or_insert_default().extend(icon);
        }
        project.commands = patch.commands.or(project.commands);
        project.time.updated = self.0.clock.now_ms();
        self.0.store.save_project(project.clone()).await?;
        self.0.store.signal(Signal::ProjectUpdated(project.clone()));
        Ok(project)
    }

    /// Returns the directories of a project: its linked worktrees, and the main worktree last. The list is empty if the
    /// project is unknown.
    pub async fn directories(self, id: &str) -> Result<Vec<ProjectDirectory>, Error> {
        let project = match self.get(id).await {
            // Directories outside a repository are not recorded.
            Ok(project) if project.id == ProjectId::global() => return Ok(Vec::new()),
            Err(Error::NotFound { .. }) => return Ok(Vec::new()),
            found => found?,
        };
        let linked = git_dirs(Path::new(&project.worktree)).map(|dirs| dirs.linked()).unwrap_or_default();
        let linked = linked.into_iter().filter(Linked::is_intact).map(|linked| ProjectDirectory {
            directory: linked.directory.to_string_lossy().into_owned(),
            is_linked: true,
        });
        let main = ProjectDirectory { directory: project.worktree, is_linked: false };
        Ok(linked.chain([main]).collect())
    }

    /// Initializes a repository in a directory that is in none.
    pub async fn init_git(self, instance: &Arc<Instance>) -> Result<Project, Error> {
        if instance.worktree.git {
            return self.of_instance(instance).await;
        }
        Instances(self.0).end_processes(&instance.directory).await;
        let made = instance.git.init(&instance.directory, INIT_DEADLINE).await;
        made.map_err(|error| Error::machine(format!("git could not make a repository: {error}")))?;
        let directory = instance.path().directory;
        Instances(self.0).dispose(instance).await;
        let instance = self.0.instance(Path::new(&directory)).await?;
        let project = instance.project();
        self.0.store.signal(Signal::ProjectUpdated(project.clone()));
        Ok(project)
    }
}

impl Instances<'_> {
    /// Closes a directory. Its next request opens it again with its current files.
    pub async fn dispose(self, instance: &Instance) {
        self.0.tasks.spawn(self.end_processes(&instance.directory));
        self.0.forget_instance(&instance.directory).await;
        self.0.store.signal(Signal::InstanceDisposed { directory: instance.path().directory });
    }

    /// Begins to end the processes of a directory. The result waits for them, but not without end.
    ///
    /// This program calls it before it creates a control file in the directory, and waits: a running process could write into a
    /// new directory whose mount it does not have.
    pub(crate) fn end_processes(self, directory: &Path) -> impl Future<Output = ()> + Send + use<> {
        self.0.jobs.end_in(directory);
        let (mcp, lsp) = (self.0.mcp.close(directory), self.0.lsp.close(directory));
        let (plugins, acp) = (self.0.plugins.close(directory), self.0.acp.close(directory));
        async move {
            tokio::join!(mcp, lsp, plugins, acp);
        }
    }

    /// Returns the open directories, at most 64.
    pub async fn directories(self) -> Vec<String> {
        self.0.instances.directories().await.into_iter().collect()
    }

    /// Closes all directories.
    pub async fn dispose_all(self) {
        self.0.jobs.end_all();
        self.0.mcp.close_all(&self.0.tasks);
        self.0.lsp.close_all(&self.0.tasks);
        self.0.plugins.close_all().await;
        self.0.acp.close_all(&self.0.tasks);
        self.0.forget_instances().await;
        self.0.store.signal(Signal::GlobalDisposed {});
    }
}
