//! Starts the processes of a directory's plugins.

use std::path::Path;
use std::sync::Arc;

use codewright_config::{CodeKind, env};
use codewright_plugins::{PluginEntry, Plugins, RuntimeKind, Setup, ToolEntry};

use super::extension::HostExtension;
use super::host::EngineHost;
use super::{PluginTable, Wanted};
use crate::extension::Extension;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::packages::Owner;
use crate::packages::install::{Plugin, PluginState, ready};

/// The version of the plugin interface.
const INTERFACE: &str = "1.18.33";

/// Returns the extensions of a directory's plugins, loaded. Without plugins this waits for nothing.
pub(crate) async fn extensions(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Vec<Arc<dyn Extension>> {
    let has_plugins = !instance.plugins.is_empty() || !instance.code.files.is_empty();
    if !(has_plugins || inner.plugins.has(&instance.directory)) {
        return Vec::new();
    }
    let opened = open(inner, instance).await;
    let waiting = opened.iter().map(|extension| async move {
        extension.plugins.ready().await;
        extension.report_refused();
    });
    futures_util::future::join_all(waiting).await;
    opened.into_iter().map(|extension| -> Arc<dyn Extension> { extension }).collect()
}

/// Returns the wanted processes of a directory, which may not have started yet.
async fn open(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Vec<Arc<HostExtension>> {
    let is_off = inner.plugins.is_disabled() || inner.env.is_on(env::PURE);
    let wanted = if is_off {
        Vec::new()
    } else {
        let plugins = ready(inner, instance).await;
        let all = [Owner::User, Owner::Repository].map(|owner| wanted(inner, instance, &plugins, owner));
        all.into_iter().flatten().collect()
    };
    let create = |wanted: &Wanted| {
        let host = EngineHost {
            inner: Arc::downgrade(inner),
            instance: instance.clone(),
            owner: wanted.owner,
            memory_bytes: wanted.setup.memory_bytes,
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

/// Returns the plugins of an owner, or `None` if there are none.
fn wanted(inner: &Inner, instance: &Instance, configured: &[Plugin], owner: Owner) -> Option<Wanted> {
    let is_repository = owner == Owner::Repository;
    let files = |kind: CodeKind| {
        let files = instance.code.files.iter();
        files.filter(move |file| file.kind == kind && file.is_repository == is_repository)
    };
    let entries = configured.iter().filter(|plugin| plugin.owner == owner).filter_map(entry);
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
        version: INTERFACE.to_owned(),
        cache: inner.dirs.cache.clone(),
        search: instance.programs.clone(),
        runtime,
        memory_bytes: config.memory_bytes,
        hook_limit: config.timeout,
    };
    let reserved = inner.toolbox.described(None).into_iter().map(|(name, ..)| name);
    let granting = if is_repository { Vec::new() } else { config.grant.clone() };
    let stamps = instance.code.stamps.clone();
    Some(Wanted { owner, setup, stamps, granting, reserved: reserved.collect() })
}

/// Returns a configured plugin that can be loaded now. Others are reported where they are installed.
fn entry(plugin: &Plugin) -> Option<PluginEntry> {
    let PluginState::Ready { path, .. } = &plugin.state else { return None };
    Some(PluginEntry { spec: plugin.spec.clone(), entry: path.clone(), options: plugin.options.clone() })
}
