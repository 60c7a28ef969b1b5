//! The installed packages of a directory, and the work in the background that changes them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codewright_packages::{Installed, Limits, Order, Package, Source};
use codewright_proto::{Signal, Toast, ToastVariant};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::runner::{PackageRunner, tools};
use super::{Owner, PackageTable, PluginEntry};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::journal::Level;

/// The age at which a range or tag is looked up again, in milliseconds.
const LOOK_UP_AFTER_MS: u64 = 24 * 60 * 60 * 1000;
/// The longest time that a turn waits for an installation, from its beginning. A prompt without a plugin that was just
/// added is not what the user wanted, so this is longer than most installations.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time after which the user sees what a turn waits for.
const NOTICE_AFTER: Duration = Duration::from_secs(2);

/// A plugin that the configuration names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plugin {
    /// The text of the entry.
    pub(crate) spec: String,
    /// The name of the package, or the path.
    pub(crate) name: String,
    /// Its options.
    pub(crate) options: Option<Value>,
    pub(crate) owner: Owner,
    pub(crate) state: PluginState,
}

/// Whether a plugin can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PluginState {
    /// The directory of an installed package, or the configured file or directory.
    Ready {
        /// The path, which exists.
        path: PathBuf,
        /// The version of a package.
        version: Option<String>,
    },
    /// It is being installed.
    Installing,
    /// It is not installed, and nothing installs it.
    Missing,
    /// It cannot be used. Holds a sentence.
    Failed(String),
}

/// Returns the plugins of a directory as they are now. Reads two files at most for each.
pub(crate) fn plugins(inner: &Inner, instance: &Instance) -> Vec<Plugin> {
    instance.plugins.iter().map(|entry| plugin(&inner.packages, entry)).collect()
}

fn plugin(table: &PackageTable, entry: &PluginEntry) -> Plugin {
    let (name, state) = match &entry.source {
        Err(reason) => (entry.spec.clone(), PluginState::Failed(reason.clone())),
        Ok(Source::Path(path)) => {
            let state = match path.exists() {
                true => PluginState::Ready { path: path.clone(), version: None },
                false => PluginState::Failed(format!("`{}` does not exist", path.display())),
            };
            (path.display().to_string(), state)
        }
        Ok(Source::Registry(package)) => {
            let state = match (table.cache.installed(package), table.failure(&entry.spec)) {
                (Some(Installed { directory, version, .. }), _) => {
                    PluginState::Ready { path: directory, version: Some(version) }
                }
                (None, _) if table.began(&entry.spec).is_some() => PluginState::Installing,
                (None, Some(reason)) => PluginState::Failed(reason),
                (None, None) => PluginState::Missing,
            };
            (package.name.clone(), state)
        }
    };
    Plugin { spec: entry.spec.clone(), name, options: entry.options.clone(), owner: entry.owner, state }
}

/// Returns the plugins of a directory. Missing packages are installed in the background; the first two minutes of an
/// installation are waited for, with a notice. [`PackageTable::changes`] reports the end of later ones.
pub(crate) async fn ready(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Vec<Plugin> {
    installed(inner, instance).await;
    plugins(inner, instance)
}

/// Installs missing packages in the background, and waits as [`ready`] does.
pub(crate) async fn installed(inner: &Arc<Inner>, instance: &Arc<Instance>) {
    for spec in refresh(inner, instance) {
        let message = format!("Installing the plugin {spec}. The prompt waits for it.");
        wait_for(inner, instance, &spec, &message).await;
    }
}

/// Waits for the end of an installation, but not long. A longer one is announced with a message.
pub(crate) async fn wait_for(inner: &Inner, instance: &Instance, spec: &str, message: &str) {
    if is_over(inner, spec, NOTICE_AFTER).await {
        return;
    }
    // Prompts and lists wait together, and the user needs one notice.
    if inner.packages.announce(spec) {
        show(inner, instance, message.to_owned(), ToastVariant::Info);
    }
    is_over(inner, spec, PATIENCE).await;
}

/// Waits for the end of an installation, for a time from its beginning. Returns whether it has ended.
async fn is_over(inner: &Inner, spec: &str, patience: Duration) -> bool {
    let mut changes = inner.packages.changes();
    while let Some(began) = inner.packages.began(spec) {
        // The sender lives as long as the engine.
        if !matches!(timeout_at(began + patience, changes.changed()).await, Ok(Ok(()))) {
            return inner.packages.began(spec).is_none();
        }
    }
    true
}

/// Shows a message in the clients of a directory.
fn show(inner: &Inner, instance: &Instance, message: String, variant: ToastVariant) {
    let toast = Toast { message, variant, ..Toast::default() };
    inner.store.signal(Signal::TuiToastShow { directory: instance.directory_text(), toast });
}

/// Starts the installation of what is missing and the look-up of what is old. Returns the missing entries.
fn refresh(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Vec<String> {
    let mut missing = Vec::new();
    for entry in instance.plugins.iter() {
        let Ok(Source::Registry(package)) = &entry.source else { continue };
        let installed = inner.packages.cache.installed(package);
        let is_old = |installed: &Installed| {
            let age = |at: u64| inner.clock.now_ms().saturating_sub(at);
            installed.looked_up_ms.is_some_and(|at| age(at) > LOOK_UP_AFTER_MS)
        };
        if installed.as_ref().is_some_and(|installed| !is_old(installed)) {
            continue;
        }
        if installed.is_none() {
            missing.push(entry.spec.clone());
        }
        if inner.packages.begin(&entry.spec) {
            let work = install_in_background(inner.clone(), instance.clone(), entry.clone(), package.clone());
            inner.tasks.spawn(work);
        }
    }
    missing
}

async fn install_in_background(
    inner: Arc<Inner>,
    instance: Arc<Instance>,
    entry: PluginEntry,
    package: Package,
) {
    let before = inner.packages.cache.installed(&package);
    let began = Instant::now();
    let installing = install(&inner, &instance, &package, entry.owner);
    let result = inner.cancel.run_until_cancelled(installing).await;
    let failure = match &result {
        None => Some("the program is ending".to_owned()),
        Some(Err(reason)) => Some(reason.clone()),
        Some(Ok(_)) => None,
    };
    inner.packages.end(&entry.spec, failure);
    let (variant, message) = match result {
        None => return,
        Some(Ok(installed)) if before.as_ref().map(|before| &before.version) == Some(&installed.version) => {
            return;
        }
        Some(Ok(installed)) => {
            (ToastVariant::Success, format!("Installed the plugin {} {}.", installed.name, installed.version))
        }
        // The installed version is used.
        Some(Err(reason)) if before.is_some() => {
            let note = format!("cannot look up `{}` again: {reason}", entry.spec);
            inner.journal.note(Level::Warn, "plugin", &note, None).await;
            return;
        }
        Some(Err(reason)) => (ToastVariant::Error, reason),
    };
    let level = if variant == ToastVariant::Error { Level::Warn } else { Level::Info };
    inner.journal.note(level, "plugin", &message, None).await;
    if variant == ToastVariant::Error {
        instance.warn(&message);
    }
    // A result that came soon needs no notice, unless it is a failure.
    if variant == ToastVariant::Error || began.elapsed() > NOTICE_AFTER {
        show(&inner, &instance, message, variant);
    }
}

/// Looks a package up and installs it unless this version is installed.
///
/// # Errors
///
/// Fails with a sentence for the user.
pub(crate) async fn install(
    inner: &Inner,
    instance: &Instance,
    package: &Package,
    owner: Owner,
) -> Result<Installed, String> {
    install_with(inner, instance, &Group { package, with: &[] }, owner).await
}

/// A package, and others that are installed next to it.
pub(crate) struct Group<'a> {
    pub(crate) package: &'a Package,
    pub(crate) with: &'a [Package],
}

/// Looks packages up and installs them unless this version of the first is installed.
///
/// # Errors
///
/// Fails with a sentence for the user.
pub(crate) async fn install_with(
    inner: &Inner,
    instance: &Instance,
    group: &Group<'_>,
    owner: Owner,
) -> Result<Installed, String> {
    let Group { package, with } = *group;
    let _turn = inner.packages.turn.lock().await;
    let tools = tools(inner, instance)?;
    let runner = PackageRunner { inner, instance, owner };
    let now_ms = inner.clock.now_ms();
    let order = Order { package, with, tools: &tools, limits: Limits::default(), now_ms };
    inner.packages.cache.install(&runner, &order).await.map_err(|error| error.to_string())
}
