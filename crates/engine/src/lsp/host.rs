//! Starts the language servers of a directory and publishes their events.

use std::path::Path;
use std::sync::{Arc, Weak};

use codewright_config::SandboxMode;
use codewright_lsp::{Host, Launch, Provided, Servers, Wanted};
use codewright_proto::Signal;
use codewright_workspace::{Author, Command, TreeOptions};
use serde_json::json;

use super::install;
use crate::inner::Inner;
use crate::instance::{Instance, watcher};
use crate::journal::Level;
use crate::sandbox::prepared;
use crate::sandbox::prepared::{Origin, Prepared, prepare};

/// The host of the language servers of one directory.
struct EngineHost {
    inner: Weak<Inner>,
    instance: Arc<Instance>,
}

/// Returns the language servers of a directory, or `None` if none is configured.
pub(crate) fn servers(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Option<Servers> {
    if instance.lsp.is_empty() {
        return None;
    }
    let create = || {
        let host = EngineHost { inner: Arc::downgrade(inner), instance: instance.clone() };
        Servers::new(Arc::new(host), instance.programs.clone(), instance.lsp.clone())
    };
    let (servers, closed) = inner.lsp.open(&instance.directory, &instance.lsp, inner.clock.now_ms(), create);
    for closed in closed {
        inner.tasks.spawn(async move { closed.close().await });
    }
    Some(servers)
}

/// Returns the block of the system text about errors, if the configuration wants it and there are any.
pub(crate) fn errors(inner: &Inner, instance: &Instance) -> Option<String> {
    let servers = instance.prompt.diagnostics.then(|| inner.lsp.find(&instance.directory)).flatten()?;
    Some(format!("Errors that language servers report now:\n{}", servers.summary()?))
}

impl Host for EngineHost {
    fn command(&self, launch: &Launch) -> Result<Command, String> {
        let Some(inner) = self.inner.upgrade() else { return Err("The program is ending.".to_owned()) };
        let Launch { server, program, args, root, environment, of_repository, runs_project } = launch;
        let origin = match (*of_repository, *runs_project) {
            (true, _) => Origin::Repository,
            (false, true) => Origin::Confined,
            (false, false) => Origin::User,
        };
        let wanted = prepared::Wanted {
            program,
            args,
            cwd: None,
            directory: root,
            origin,
            write: &[],
            required: SandboxMode::Off,
        };
        let Prepared { program, args, directory, mut env, env_remove, sandbox } =
            prepare(&inner, &self.instance, wanted)?;
        env.extend(environment.iter().map(|(name, value)| (name.clone(), value.clone())));
        // The log names what runs, and never its variables, which contain keys.
        self.log(server, &format!("starting `{}` in `{}`", program.display(), directory.display()));
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

    fn provide(&self, wanted: &Wanted<'_>) -> Provided {
        match self.inner.upgrade() {
            Some(inner) => install::provide(&inner, &self.instance, wanted),
            None => Provided::Disabled,
        }
    }

    fn watched(&self) -> Option<TreeOptions> {
        let inner = self.inner.upgrade()?;
        (!watcher::is_disabled(&inner.env)).then(|| watcher::options(&self.instance))
    }

    fn version(&self) -> String {
        self.inner.upgrade().map_or("", |inner| inner.version).to_owned()
    }

    fn updated(&self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.store.signal(Signal::LspUpdated { directory: self.instance.directory_text() });
        }
    }

    fn diagnosed(&self, server: &str, path: &Path) {
        if let Some(inner) = self.inner.upgrade() {
            inner.store.signal(Signal::LspDiagnostics {
                directory: self.instance.directory_text(),
                server_id: server.to_owned(),
                path: path.to_string_lossy().into_owned(),
            });
        }
    }

    fn log(&self, server: &str, text: &str) {
        let Some(inner) = self.inner.upgrade() else { return };
        let (journal, text) = (inner.journal.clone(), text.to_owned());
        let about = json!({ "server": server, "directory": self.instance.directory_text() });
        inner.tasks.spawn(async move { journal.note(Level::Info, "lsp", &text, Some(about)).await });
    }
}
