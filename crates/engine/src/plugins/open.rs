//! Starts the processes of a directory's plugins.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codewright_config::{CodeKind, env};
use codewright_packages::Source;
use codewright_plugins::{PluginEntry, Plugins, RuntimeKind, Setup, ToolEntry};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::PluginTable;
use super::configure::configure;
use super::extension::HostExtension;
use super::host::{EngineHost, Reload};
use super::runtime::{awaited, fallback};
use super::wanted::Wanted;
use crate::extension::Extension;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::packages::denials::Denials;
use crate::packages::install::{Plugin, PluginState, ready};
use crate::packages::{Owner, PluginEntry as PluginSource};

/// The time between the first use of a directory and the start of its plugins, if no prompt needs them earlier.
const START_DELAY: Duration = Duration::from_millis(500);
/// The least time between two changes of the configuration that plugins request.
const RELOAD_EVERY: Duration = Duration::from_secs(1);

/// Returns the extensions of a directory's plugins, loaded. Without plugins this waits for nothing.
pub(crate) async fn extensions(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Vec<Arc<dyn Extension>> {
    if !(instance.has_plugins() || inner.plugins.has(&instance.directory)) {
        return Vec::new();
    }
    let mut opened = loaded(inner, instance).await;
    if awaited(inner, instance).await {
        // With bun the processes are others.
        opened = loaded(inner, instance).await;
    }
    configure(inner, instance, &opened).await;
    opened.into_iter().map(|extension| -> Arc<dyn Extension> { extension }).collect()
}

/// Returns the processes of a directory, which have loaded their plugins.
async fn loaded(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Vec<Arc<HostExtension>> {
    let opened = open(inner, instance).await;
    let waiting = opened.iter().map(|extension| async move {
        extension.plugins.ready().await;
        extension.report_refused();
    });
    futures_util::future::join_all(waiting).await;
    opened
}

/// Starts the plugins of a directory soon, so that the first prompt does not wait for them. Not at once, because a client
/// may be drawing its first picture.
pub(crate) fn start_soon(inner: &Arc<Inner>, instance: &Arc<Instance>) {
    if !instance.has_plugins() || inner.plugins.is_disabled() || !inner.plugins.wake(&instance.directory) {
        return;
    }
    let (weak, instance, ending) = (Arc::downgrade(inner), instance.clone(), inner.plugins.ending.clone());
    inner.tasks.spawn(async move {
        let start = async {
            tokio::time::sleep(START_DELAY).await;
            if let Some(inner) = weak.upgrade() {
                extensions(&inner, &instance).await;
            }
        };
        ending.run_until_cancelled(start).await;
    });
}

/// Returns the wanted processes of a directory, which may not have started yet.
async fn open(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Vec<Arc<HostExtension>> {
    let is_off = inner.plugins.is_disabled() || inner.env.is_on(env::PURE);
    let wanted = if is_off {
        Vec::new()
    } else {
        let plugins = ready(inner, instance).await;
        warn_of_unusable(instance, &plugins);
        let fallback = fallback(inner, instance);
        let all = [Owner::User, Owner::Repository].map(|owner| {
            let mut wanted = wanted(inner, instance, &plugins, owner)?;
            wanted.setup.fallback.clone_from(&fallback);
            Some(wanted)
        });
        all.into_iter().flatten().collect()
    };
    let create = |wanted: &Wanted| {
        let host = EngineHost {
            inner: Arc::downgrade(inner),
            instance: instance.clone(),
            owner: wanted.owner,
            memory_bytes: wanted.setup.memory_bytes,
            code: code(&wanted.setup),
            reload: reload(inner, instance, wanted.owner),
            denials: Denials::new(&inner.dirs),
        };
        Plugins::new(Arc::new(host), wanted.setup.clone())
    };
    let table: &PluginTable = &inner.plugins;
    let (opened, closed) = table.open(&instance.directory, wanted, inner.clock.now_ms(), create);
    for extension in closed {
        inner.tasks.spawn(async move { extension.plugins.close().await });
    }
    opened
}

/// Returns a function that lets the plugins of an owner change the configuration again. Calls wait for each other.
fn reload(inner: &Arc<Inner>, instance: &Instance, owner: Owner) -> Reload {
    let (weak, directory) = (Arc::downgrade(inner), instance.directory.clone());
    let last = Arc::new(Mutex::new(None::<Instant>));
    Box::new(move || {
        let (weak, directory, last) = (weak.clone(), directory.clone(), last.clone());
        Box::pin(async move {
            let mut last = last.lock().await;
            if let Some(last) = *last {
                sleep_until(last + RELOAD_EVERY).await;
            }
            let inner = weak.upgrade().ok_or("the program is ending")?;
            let instance = inner.instance(&directory).await.map_err(|error| error.to_string())?;
            let found = inner.plugins.find(&directory);
            found.iter().filter(|extension| extension.wanted.owner == owner).for_each(|extension| {
                extension.forget_configuration();
            });
            extensions(&inner, &instance).await;
            *last = Some(Instant::now());
            Ok(())
        })
    })
}

/// Returns the plugins of an owner, or `None` if the owner has no plugins.
fn wanted(inner: &Inner, instance: &Instance, configured: &[Plugin], owner: Owner) -> Option<Wanted> {
    let is_repository = owner == Owner::Repository;
    let confine = &instance.plugin_host.confine;
    let files = |kind: CodeKind| {
        let files = instance.code.files.iter();
        files.filter(move |file| {
            let name = file.path.file_stem().unwrap_or_default();
            let is_confined = confine.iter().any(|confined| name == confined.as_str());
            file.kind == kind && (file.is_repository || is_confined) == is_repository
        })
    };
    // A plugin that the user confines runs like one of a repository.
    let owner_of = |plugin: &Plugin| {
        let is_confined = confine.iter().any(|name| *name == plugin.name || *name == plugin.spec);
        if is_confined { Owner::Repository } else { plugin.owner }
    };
    let entries = configured.iter().filter(|plugin| owner_of(plugin) == owner).filter_map(entry);
    let of_files = files(CodeKind::Plugin).map(|file| PluginEntry {
        spec: file.path.display().to_string(),
        entry: file.path.clone(),
        options: None,
    });
    let plugins: Vec<_> = entries.chain(of_files).collect();
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let tools =
        files(CodeKind::Tool).map(|file| ToolEntry { file: file.path.clone(), name: name(&file.path) });
    let tools: Vec<_> = tools.collect();
    if plugins.is_empty() && tools.is_empty() {
        return None;
    }
    let config = &instance.plugin_host;
    let runtime = RuntimeKind::ALL.into_iter().find(|kind| config.runtime.as_deref() == Some(kind.name()));
    let setup = Setup {
        plugins,
        tools,
        directory: instance.directory.clone(),
        worktree: instance.worktree.root.clone(),
        // Plain data always has a JSON form.
        project: serde_json::to_value(&instance.project).unwrap_or_default(),
        server_url: inner.plugins.url(),
        version: codewright_proto::INTERFACE_VERSION.to_owned(),
        cache: inner.dirs.cache.clone(),
        search: instance.programs.clone(),
        runtime,
        fallback: None,
        memory_bytes: config.memory_bytes,
        hook_limit: config.timeout,
    };
    let reserved = inner.toolbox.described(None).into_iter().map(|(name, ..)| name);
    let granting = if is_repository { Vec::new() } else { config.grant.clone() };
    let stamps = instance.code.stamps.clone();
    Some(Wanted { owner, setup, stamps, granting, reserved: reserved.collect() })
}

/// Returns the files and directories that contain the code of plugins.
fn code(setup: &Setup) -> Vec<PathBuf> {
    let plugins = setup.plugins.iter().map(|plugin| &plugin.entry);
    plugins.chain(setup.tools.iter().map(|tool| &tool.file)).cloned().collect()
}

/// Warns of entries that name no usable plugin. An installation that fails is reported where it runs.
fn warn_of_unusable(instance: &Instance, plugins: &[Plugin]) {
    let is_package = |entry: &PluginSource| matches!(entry.source, Ok(Source::Registry(_)));
    for (plugin, _) in plugins.iter().zip(instance.plugins.iter()).filter(|(_, entry)| !is_package(entry)) {
        if let PluginState::Failed(reason) = &plugin.state {
            instance.warn(&format!("the plugin {}: {reason}", plugin.spec));
        }
    }
}

/// Returns a configured plugin that can be loaded now. Others are reported where they are installed.
fn entry(plugin: &Plugin) -> Option<PluginEntry> {
    let PluginState::Ready { path, .. } = &plugin.state else { return None };
    Some(PluginEntry { spec: plugin.spec.clone(), entry: path.clone(), options: plugin.options.clone() })
}
