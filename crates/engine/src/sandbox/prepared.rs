//! The parts of a command that starts an MCP server, a language server, a plugin, a hook or another agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codewright_config::SandboxMode;
use codewright_tools::Environment;
use codewright_workspace::{Confined, ProgramSearch, Programs};

use super::server::{Rights, ServerProgram, confine};
use super::start::{Plan, Start, Surroundings, neutral, plan};
use super::variables::{Changes, changes};
use crate::inner::Inner;
use crate::instance::Instance;

/// Whose configuration starts a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The user's.
    User,
    /// The user's, and the program has no more rights than a command of the model: the user wants that, or it loads code
    /// of the project.
    Confined,
    /// A repository's, which the user trusts.
    Repository,
    /// The same, and the user agreed that it has the network.
    RepositoryWithNetwork,
}

/// A program to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) program: &'a str,
    pub(crate) args: &'a [String],
    /// The directory that the configuration names.
    pub(crate) cwd: Option<&'a Path>,
    /// The directory of the project that it works for.
    pub(crate) directory: &'a Path,
    pub(crate) origin: Origin,
    /// More paths that it can write, also protected ones.
    pub(crate) write: &'a [PathBuf],
    /// The mode that its callers require.
    pub(crate) required: SandboxMode,
}

/// A program that can be started.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) directory: PathBuf,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) env_remove: Vec<String>,
    pub(crate) sandbox: Option<Arc<Confined>>,
}

/// Decides where a program starts, with which variables and in which sandbox. Blocks.
///
/// # Errors
///
/// Fails with a sentence if it must not start.
pub(crate) fn prepare(
    inner: &Arc<Inner>,
    instance: &Arc<Instance>,
    wanted: Wanted<'_>,
) -> Result<Prepared, String> {
    let root = instance.programs.root();
    let neutral = neutral(&inner.dirs, root);
    let around = Surroundings::new(instance, wanted.directory, &inner.dirs, &neutral);
    let plan = planned(wanted, around)?;
    let (program, rights) = (wanted.program, plan.rights);
    let server =
        ServerProgram { program, args: &plan.args, rights, write: wanted.write, required: wanted.required };
    let restricted = confine(inner, instance, server)?;
    // A program in the project's directory belongs to a project that the user trusts.
    let is_apart = rights == Rights::User || plan.directory == neutral;
    let changes = if is_apart { changes(&inner.env, root, &plan.directory) } else { Changes::default() };
    let variables = restricted.iter().flat_map(|restricted| restricted.variables.iter().cloned());
    let Environment { set, remove } = inner.child_environment(instance);
    let set = set.into_iter().chain(changes.set);
    Ok(Prepared {
        program: resolved(instance, program, is_apart),
        env: set.chain(variables).collect(),
        env_remove: remove.into_iter().chain(changes.remove).collect(),
        sandbox: restricted.map(|restricted| match rights {
            Rights::User => restricted.confined,
            Rights::Project | Rights::ProjectWithNetwork => visible(&restricted.confined, &neutral),
        }),
        args: plan.args,
        directory: plan.directory,
    })
}

fn planned(wanted: Wanted<'_>, around: Surroundings<'_>) -> Result<Plan, String> {
    let in_project = |rights| {
        let directory = wanted.cwd.unwrap_or(wanted.directory).to_owned();
        Plan { directory, args: wanted.args.to_vec(), rights }
    };
    let start = Start { program: wanted.program, args: wanted.args, cwd: wanted.cwd };
    match wanted.origin {
        Origin::User => plan(start, around),
        Origin::Confined if around.is_trusted => Ok(in_project(Rights::Project)),
        Origin::Confined => Ok(Plan { rights: Rights::Project, ..plan(start, around)? }),
        Origin::Repository => Ok(in_project(Rights::Project)),
        Origin::RepositoryWithNetwork => Ok(in_project(Rights::ProjectWithNetwork)),
    }
}

/// The path of a program that is named without one, outside of the project if the program has no part of it.
fn resolved(instance: &Instance, program: &str, is_apart: bool) -> PathBuf {
    if !is_apart || program.contains('/') {
        return PathBuf::from(program);
    }
    let search = ProgramSearch { programs: Programs::Installed, ..instance.programs.clone() };
    search.installed(program).unwrap_or_else(|| PathBuf::from(program))
}

/// Makes the neutral directory visible, which may be in one that the sandbox replaces.
pub(crate) fn visible(confined: &Confined, neutral: &Path) -> Arc<Confined> {
    let mut confined = Confined::clone(confined);
    if neutral.parent().is_some() {
        confined.sandbox.show.push(neutral.to_owned());
    }
    Arc::new(confined)
}
