//! Starts the other agents of a directory.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, Weak};

use codewright_acp_client::{Agents, Host, Spec};
use codewright_config::{AcpProgram, AgentSpec, SandboxMode};
use codewright_workspace::{Author, Command};
use serde_json::json;

use super::Current;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::journal::Level;
use crate::sandbox::prepared::{Origin, Prepared, Wanted, prepare};

/// The host of the agents of one directory.
struct EngineHost {
    inner: Weak<Inner>,
    current: Current,
}

/// Returns the agents of a directory.
pub(crate) fn agents(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Agents {
    let create = |current| {
        let host = EngineHost { inner: Arc::downgrade(inner), current };
        Agents::new(Arc::new(host))
    };
    let (agents, closed) = inner.acp.open(instance, inner.clock.now_ms(), create);
    if let Some(closed) = closed {
        inner.tasks.spawn(async move { closed.close().await });
    }
    agents
}

/// Returns how an agent is started for callers that require a sandbox mode.
pub(crate) fn spec(agent: &AgentSpec, program: &AcpProgram, required: SandboxMode) -> Spec {
    let (command, args) = program
        .command
        .split_first()
        .map_or((String::new(), Vec::new()), |(first, rest)| (first.clone(), rest.to_vec()));
    let text = |(id, value): (&String, &serde_json::Value)| Some((id.clone(), value.as_str()?.to_owned()));
    Spec {
        name: agent.name.clone(),
        program: command,
        args,
        environment: program.environment.clone(),
        cwd: program.cwd.as_ref().map(PathBuf::from),
        options: agent.options.iter().filter_map(text).collect(),
        of_repository: program.of_repository,
        is_read_only: required == SandboxMode::ReadOnly,
    }
}

impl EngineHost {
    fn instance(&self) -> Arc<Instance> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Host for EngineHost {
    fn command(&self, spec: &Spec) -> Result<Command, String> {
        let Some(inner) = self.inner.upgrade() else { return Err("the program is ending".to_owned()) };
        let instance = self.instance();
        let own = &instance.directory;
        let cwd = spec.cwd.as_ref().map(|cwd| own.join(cwd));
        if let Some(missing) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(format!("`cwd` names `{}`, which is not a directory", missing.display()));
        }
        let wanted = Wanted {
            program: &spec.program,
            args: &spec.args,
            cwd: cwd.as_deref(),
            directory: own,
            origin: if spec.of_repository { Origin::Repository } else { Origin::User },
            write: &[],
            required: if spec.is_read_only { SandboxMode::ReadOnly } else { SandboxMode::Off },
        };
        let Prepared { program, args, directory, mut env, env_remove, sandbox } =
            prepare(&inner, &instance, wanted)?;
        env.extend(spec.environment.iter().cloned());
        // The log names what runs, and never its variables, which contain keys.
        self.log(&spec.name, &format!("starting `{}`", spec.program));
        Ok(Command {
            program,
            args: args.into_iter().map(Into::into).collect(),
            directory,
            env,
            env_remove,
            confinement: inner.confinement.clone(),
            sandbox,
            author: Author::Model,
        })
    }

    fn version(&self) -> String {
        self.inner.upgrade().map_or("", |inner| inner.version).to_owned()
    }

    fn log(&self, agent: &str, text: &str) {
        let Some(inner) = self.inner.upgrade() else { return };
        let (journal, text) = (inner.journal.clone(), text.to_owned());
        let about = json!({ "agent": agent, "directory": self.instance().directory_text() });
        inner.tasks.spawn(async move { journal.note(Level::Info, "acp", &text, Some(about)).await });
    }
}
