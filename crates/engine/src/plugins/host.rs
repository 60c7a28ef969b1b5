//! The services of the engine for a process of plugins.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use codewright_config::SandboxMode;
use codewright_llm::vault;
use codewright_plugins::{ApiRequest, ApiResponse, Boxed, Host, Level as HostLevel, Runtime};
use codewright_proto::{SessionId, Signal, Toast, ToastVariant};
use codewright_workspace::{Author, Command, Confined, physical};
use serde_json::{Value, json};

use super::access::{self, Reads, Restricted};
use super::runtime::would_help;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::journal::Level;
use crate::packages::denials::{Denial, Denials};
use crate::packages::{Owner, PACKAGES};
use crate::permission::rules::PermissionRules;
use crate::sandbox::masked::{is_kept_from_model, keeps_any};
use crate::sandbox::prepared::{Origin, Prepared, Wanted, prepare};

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
    pub(crate) denials: Denials,
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

    /// Shows a message about a plugin to the user.
    fn show(&self, level: Level, plugin: &str, message: &str) {
        let text = format!("{plugin}: {message}");
        self.note(level, Some(plugin), &text);
        self.instance.warn(&format!("the plugin {text}"));
        if let Some(inner) = self.inner.upgrade() {
            let variant = if level == Level::Warn { ToastVariant::Warning } else { ToastVariant::Error };
            let toast = Toast {
                title: Some(plugin.to_owned()),
                message: message.chars().take(MAX_SHOWN_CHARS).collect(),
                variant,
                duration: None,
            };
            let directory = self.instance.directory_text();
            inner.store.signal(Signal::TuiToastShow { directory, toast });
        }
    }

    /// Refuses the content of files that commands of the model cannot read either.
    fn check_reads(&self, inner: &Inner, reads: Reads) -> Result<(), String> {
        let instance = &self.instance;
        let agent = instance.agent_name(None).and_then(|name| instance.agent(&name));
        let rules =
            agent.map(|agent| PermissionRules::of_agent(agent, &[])).map_err(|error| error.to_string())?;
        match reads {
            Reads::Nothing => Ok(()),
            Reads::File(path) => {
                let named = instance.directory.join(&path);
                let real = physical(&named).map_err(|error| error.to_string())?;
                let is_hidden = instance.sandbox.hide.iter().any(|hidden| real.starts_with(hidden));
                let is_kept = [&real, &named].iter().any(|path| is_kept_from_model(inner, instance, &rules, path));
                if is_hidden || is_kept {
                    return Err(format!("a plugin of a repository cannot read `{path}`: the user's rules do not allow it"));
                }
                Ok(())
            }
            Reads::Everything if keeps_any(inner, instance, &rules) => Err(
                "a plugin of a repository cannot search the directory, because the user's rules deny some of its files"
                    .to_owned(),
            ),
            Reads::Everything => Ok(()),
        }
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
        let home = &inner.dirs.home;
        let below_home =
            |path: &String| path.strip_prefix("~/").map_or_else(|| path.into(), |rest| home.join(rest));
        let write: Vec<PathBuf> = self.instance.plugin_host.write.iter().map(below_home).collect();
        let wanted = Wanted {
            program: &program,
            // Without arguments, because the user's sandbox lets a server write the paths among them.
            args: &[],
            cwd: Some(Runtime::directory()),
            directory: &self.instance.directory,
            origin: match self.owner {
                Owner::User => Origin::User,
                Owner::Repository => Origin::Repository,
            },
            write: &write,
            required: SandboxMode::Off,
        };
        let Prepared { mut env, env_remove, sandbox, .. } = prepare(&inner, &self.instance, wanted)?;
        let sandbox = sandbox.map(|confined| self.with_code(&confined, script, &inner));
        self.denials.set_sandbox(sandbox.clone());
        self.note(Level::Info, None, &format!("starting `{program}` for plugins"));
        // The script changes to this directory before a plugin is loaded.
        env.push(("PWD".to_owned(), self.instance.directory_text()));
        env.extend(runtime.variables().iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Ok(Command {
            program: runtime.program.clone(),
            args: runtime.args(script, self.memory_bytes),
            directory: Runtime::directory().to_owned(),
            env,
            env_remove,
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
                    let Restricted { request, session, reads } = access::restrict(&request, &directory)?;
                    self.check_reads(&inner, reads)?;
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

    fn is_denied(&self, plugin: &str, message: &str) -> bool {
        let Some(Denial { path, is_new }) = self.denials.find(plugin, message) else { return false };
        if is_new {
            let path = self.denials.shown(&path);
            let reason = match self.owner {
                Owner::User => format!(
                    "cannot write `{path}`, because this file or directory is not its own. `\"plugin_host\": \
                     {{\"write\": [\"{path}\"]}}` in your configuration permits it."
                ),
                Owner::Repository => {
                    format!(
                        "cannot use `{path}`: a plugin of a repository, or a confined one, has the project alone."
                    )
                }
            };
            self.show(Level::Warn, plugin, &reason);
        }
        true
    }

    fn failed(&self, plugin: &str, message: &str) {
        if self.owner == Owner::User
            && let Some(inner) = self.inner.upgrade()
            && would_help(&inner, &self.instance, message)
        {
            inner.plugins.need_bun();
            self.note(Level::Info, Some(plugin), &format!("{plugin}: {message}"));
            return;
        }
        // What would permit an access is reported, too.
        self.is_denied(plugin, message);
        self.show(Level::Error, plugin, message);
    }
}
