//! The projects that were ever worked in.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codewright_proto::{Map, Project, ProjectId, Signal};
use serde::Deserialize;

use crate::error::Resource;
use crate::interface::{Instances, Projects};
use crate::session::fork::UNFINISHED;
use crate::{Error, Instance};

/// How long git may take to make a repository.
const INIT_DEADLINE: Duration = Duration::from_secs(10);
/// The longest name of a project.
const MAX_NAME_CHARS: usize = 200;

/// The body of `PATCH /project/{id}`: what is absent stays as it is, in a picture too.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ProjectPatch {
    /// A name for people.
    pub name: Option<String>,
    /// A picture for people.
    pub icon: Option<Map>,
    /// Commands of the project.
    pub commands: Option<Map>,
}

impl Projects<'_> {
    /// The projects, the most recently used first.
    pub async fn list(self) -> Result<Vec<Project>, Error> {
        let mut projects = self.0.store.projects().await?;
        projects.retain(|project| project.id.as_str() != UNFINISHED);
        Ok(projects)
    }

    /// One project.
    pub async fn get(self, id: &str) -> Result<Project, Error> {
        let found = self.list().await?.into_iter().find(|project| project.id.as_str() == id);
        found.ok_or_else(|| Error::not_found(Resource::Project, &id))
    }

    /// The project of a directory as it is stored now.
    pub async fn of_instance(self, instance: &Instance) -> Result<Project, Error> {
        let stored = self.0.store.project_of(&instance.path().worktree).await?;
        Ok(stored.unwrap_or_else(|| instance.project()))
    }

    /// Changes what people see of a project.
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

    /// The directories of a project; none of one that is not known.
    pub async fn directories(self, id: &str) -> Result<Vec<String>, Error> {
        match self.get(id).await {
            // What lies in no repository has no directory of its own.
            Ok(project) if project.id == ProjectId::global() => Ok(Vec::new()),
            Ok(project) => Ok(std::iter::once(project.worktree).chain(project.sandboxes).collect()),
            Err(Error::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Makes a directory a repository, if it lies in none.
    pub async fn init_git(self, instance: &Arc<Instance>) -> Result<Project, Error> {
        if instance.worktree.git {
            return self.of_instance(instance).await;
        }
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
    /// Puts a directory away; its next request opens it anew, with its files as they are then.
    pub async fn dispose(self, instance: &Instance) {
        self.0.jobs.end_in(&instance.directory);
        self.0.forget_instance(&instance.directory).await;
        self.0.store.signal(Signal::InstanceDisposed { directory: instance.path().directory });
    }

    /// Puts all directories away.
    pub async fn dispose_all(self) {
        self.0.jobs.end_all();
        self.0.forget_instances().await;
        self.0.store.signal(Signal::GlobalDisposed {});
    }
}
