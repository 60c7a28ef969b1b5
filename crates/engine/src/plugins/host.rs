//! The services of the engine for a process of plugins.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use codewright_config::SandboxMode;
use codewright_llm::vault;
use codewright_plugins::{ApiRequest, ApiResponse, Boxed, Host, Level as HostLevel, Runtime};
use codewright_proto::{SessionId, Signal, Toast, ToastVariant};
use codewright_workspace::{Author, Command, Confined};
use serde_json::{Value, json};

use super::access::{self, Restricted};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::journal::Level;
use crate::packages::{Owner, PACKAGES};
use crate::sandbox;
use crate::sandbox::server::ServerProgram;

/// The characters of a failure that are shown.
const MAX_SHOWN_CHARS: usize = 400;

/// The host of one process.
pub(crate) struct EngineHost {
    pub(crate) inner: Weak<Inner>,
    pub(crate) instance: Arc<Instance>,
    pub(crate) owner: Owner,
    pub(crate) memory_bytes: u64,
    /// The files and directories that contain the code.
    pub(crate) code: Vec<PathBuf>,
    pub(crate) reload: Reload,
}

/// Lets the plugins of a process change the configuration again.
pub(crate) type Reload = Box<dyn Fn() -> Boxed<'static, Result<(), String>> + Send + Sync>;

impl EngineHost {
    /// Makes the script and the code of plugins visible, which may be in a hidden directory such as `/tmp`.
    fn with_code(&self, confined: &Confined, script: &Path, inner: &Inner) -> Arc<Confined> {
        let home = &inner.dirs.home;
        let of_code = self.code.iter().map(|path| match path.parent() {
            // What a file imports is beside it.
            Some(above) if path.is_file() && above.parent().is_some() && above != home => above.to_owned(),
            _ => path.clone(),
        });
        let own = script.parent().map(Path::to_owned).into_iter();
        let packages = inner.dirs.cache.join(PACKAGES);
        let shown = own.chain([packages]).chain(of_code).filter(|path| path.exists());
        let mut confined = confined.clone();
        confined.sandbox.show.extend(shown);
        Arc::new(confined)
    }

    fn note(&self, level: Level, plugin: Option<&str>, text: &str) {
        let Some(inner) = self.inner.upgrade() else { return };
        let (journal, text) = (inner.journal.clone(), text.to_owned());
        let mut about = json!({ "directory": self.instance.directory_text() });
        if let Some(plugin) = plugin {
            about["plugin"] = plugin.into();
        }
        inner.tasks.spawn(async move { journal.note(level, "plugin", &text, Some(about)).await });
    }
}

/// Fails if a session does not work in a directory. One of another directory is like one that does not exist.
async fn check_session(inner: &Inner, id: &SessionId, directory: &str) -> Result<(), String> {
    match inner.session(id).await {
        Ok(session) if session.directory == directory => Ok(()),
        Ok(_) | Err(_) => Err(format!("there is no session `{id}` in the directory of the repository")),
    }
}

impl Host for EngineHost {
    fn command(&self, runtime: &Runtime, script: &Path) -> Result<Command, String> {
        let Some(inner) = self.inner.upgrade() else { return Err("The program is ending.".to_owned()) };
        let program = runtime.program.to_string_lossy().into_owned();
        // Without arguments, because the user's sandbox lets a server write the paths among them.
        let of_repository = self.owner == Owner::Repository;
        let required = SandboxMode::Off;
        let sandboxed = ServerProgram { program: &program, args: &[], of_repository, required };
        let sandbox = sandbox::server::confine(&inner, &self.instance, sandboxed)?;
        let sandbox = sandbox.map(|confined| self.with_code(&confined, script, &inner));
        self.note(Level::Info, None, &format!("starting `{program}` for plugins"));
        let mut env = inner.child_env.set.clone();
        env.extend(runtime.variables().iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Ok(Command {
            program: runtime.program.clone(),
            args: runtime.args(script, self.memory_bytes),
            directory: Runtime::directory().to_owned(),
            env,
            env_remove: inner.child_env.remove.clone(),
            confinement: inner.confinement.clone(),
            sandbox,
            author: Author::Model,
        })
    }

    fn api(&self, request: ApiRequest) -> Boxed<'_, Result<ApiResponse, String>> {
        Box::pin(async move {
            let inner = self.inner.upgrade().ok_or("the program is ending")?;
            let directory = self.instance.directory_text();
            let request = match self.owner {
                Owner::User => {
                    let mut request = request;
                    access::complete(&mut request, &directory);
                    request
                }
                Owner::Repository => {
                    let Restricted { request, session } = access::restrict(&request, &directory)?;
                    if let Some(session) = session {
                        check_session(&inner, &session, &directory).await?;
                    }
                    request
                }
            };
            let api = inner.plugins.api().ok_or("the API is not available")?;
            drop(inner);
            api(request).await
        })
    }

    fn credential<'a>(&'a self, provider: &'a str) -> Boxed<'a, Value> {
        Box::pin(async move {
            let Some(inner) = self.inner.upgrade() else { return Value::Null };
            let may_read = inner.plugins.may_read(&self.instance.directory, provider);
            if self.owner == Owner::Repository || !may_read {
                return Value::Null;
            }
            // An unreadable file is reported when a directory is opened.
            let stored = inner.sign_in.vault().read().unwrap_or_default();
            let found = stored.iter().find(|(name, ..)| *name == provider);
            found.map(|(_, credential, _)| vault::json(credential)).unwrap_or_default()
        })
    }

    fn reload(&self) -> Boxed<'_, Result<(), String>> {
        (self.reload)()
    }

    fn log(&self, level: HostLevel, plugin: Option<&str>, text: &str) {
        let level = match level {
            HostLevel::Debug => Level::Debug,
            HostLevel::Info => Level::Info,
            HostLevel::Warn => Level::Warn,
            HostLevel::Error => Level::Error,
        };
        self.note(level, plugin, text);
    }

    fn failed(&self, plugin: &str, message: &str) {
        let text = format!("{plugin}: {message}");
        self.note(Level::Error, Some(plugin), &text);
        self.instance.warn(&format!("the plugin {text}"));
        if let Some(inner) = self.inner.upgrade() {
            let toast = Toast {
                title: Some(plugin.to_owned()),
                message: message.chars().take(MAX_SHOWN_CHARS).collect(),
                variant: ToastVariant::Error,
                duration: None,
            };
            let directory = self.instance.directory_text();
            inner.store.signal(Signal::TuiToastShow { directory, toast });
        }
    }
}
