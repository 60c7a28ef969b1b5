//! The operations of clients on the packages of plugins.

use std::path::Path;
use std::sync::Arc;

use codewright_packages::{Package, Source};
use serde_json::Value;

use super::install::{PluginState, install, plugins};
use super::{KEY, Owner, denials};
use crate::Error;
use crate::instance::Instance;
use crate::interface::{Instances, Packages};
use crate::settings::{FILE, change_list};
use crate::trust::operations::keep;

/// The access of a plugin of the user.
const ACCESS_OF_USER: &str = "network and home directory, without the files that other programs obey";
/// The access of a plugin of a repository, and of a confined one.
const ACCESS_OF_PROJECT: &str = "the project alone, without the network";

/// A plugin of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPlugin {
    /// The name of the package, or the path.
    pub name: String,
    /// The text of the configuration.
    pub spec: String,
    /// The installed version of a package.
    pub version: Option<String>,
    /// Whose configuration names it: `user` or `project`.
    pub source: &'static str,
    /// `installed`, `local`, `missing`, `installing` or `failed`.
    pub state: &'static str,
    /// The reason why it cannot be used.
    pub error: Option<String>,
    /// What it may do, in words.
    pub access: &'static str,
    /// The files that the sandbox kept from it.
    pub denied: Vec<String>,
}

/// The configuration that is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginScope {
    /// The user's.
    User,
    /// That of the project in this directory.
    Project,
}

/// A plugin that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedPlugin {
    /// The name of the package, or the path.
    pub name: String,
    /// The version of a package.
    pub version: Option<String>,
    /// Whether the configuration was changed.
    pub is_new: bool,
    /// What it may do, in words.
    pub access: &'static str,
    /// The files that the sandbox kept from it when it ran before.
    pub denied: Vec<String>,
}

/// A plugin that was looked up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatedPlugin {
    /// The name of the package.
    pub name: String,
    /// The version that was installed before.
    pub before: Option<String>,
    /// The version that is installed now.
    pub now: Result<String, String>,
    /// Whether the configuration names an exact version, which is not changed.
    pub is_pinned: bool,
}

/// What a plugin with one of these names may do, in words.
fn access(instance: &Instance, owner: Owner, names: [&str; 2]) -> &'static str {
    let is_confined = instance.plugin_host.confine.iter().any(|name| names.contains(&name.as_str()));
    match owner {
        Owner::User if !is_confined => ACCESS_OF_USER,
        Owner::User | Owner::Repository => ACCESS_OF_PROJECT,
    }
}

impl Packages<'_> {
    /// Returns the plugins of a directory, without looking anything up.
    #[must_use]
    pub fn list(self, instance: &Instance) -> Vec<ListedPlugin> {
        let listed = plugins(self.0, instance).into_iter().map(|plugin| {
            let (state, version, error) = match plugin.state {
                PluginState::Ready { version: Some(version), .. } => ("installed", Some(version), None),
                PluginState::Ready { version: None, .. } => ("local", None, None),
                PluginState::Installing => ("installing", None, None),
                PluginState::Missing => ("missing", None, None),
                PluginState::Failed(error) => ("failed", None, Some(error)),
            };
            let source = match plugin.owner {
                Owner::User => "user",
                Owner::Repository => "project",
            };
            let access = access(instance, plugin.owner, [&plugin.name, &plugin.spec]);
            let denied = denials::stored(&self.0.dirs, &plugin.name);
            ListedPlugin {
                name: plugin.name,
                spec: plugin.spec,
                version,
                source,
                state,
                error,
                access,
                denied,
            }
        });
        listed.collect()
    }

    /// Installs a plugin and adds it to a configuration. Another version of the same package is replaced.
    ///
    /// # Errors
    ///
    /// Fails if the plugin cannot be installed or does not exist. The configuration is not changed then.
    pub async fn add(
        self,
        instance: &Arc<Instance>,
        spec: &str,
        scope: PluginScope,
    ) -> Result<AddedPlugin, Error> {
        let home = &self.0.dirs.home;
        let invalid = |error: codewright_packages::Error| Error::invalid(error.to_string());
        let source = Source::parse(spec, &instance.directory, home).map_err(invalid)?;
        let (name, version, written) = match &source {
            Source::Registry(package) => {
                let installed =
                    install(self.0, instance, package, Owner::User).await.map_err(Error::machine)?;
                (installed.name, Some(installed.version), spec.to_owned())
            }
            Source::Path(path) if !path.exists() => {
                return Err(Error::invalid(format!("`{}` does not exist", path.display())));
            }
            Source::Path(path) => {
                let shown = path.display().to_string();
                // A relative path would start at the directory of the user's configuration.
                let written = if scope == PluginScope::User { shown.clone() } else { spec.to_owned() };
                (shown, None, written)
            }
        };
        let (directory, home) = (self.directory(instance, scope), home.clone());
        let is_new = self
            .change(instance, scope, move |items| {
                let is_same = |item: &Value| is_same(item, &source, &directory, &home);
                match items.iter_mut().find(|item| is_same(item)) {
                    Some(Value::Array(parts)) if !parts.is_empty() => parts[0] = written.into(),
                    Some(item) => *item = written.into(),
                    None => items.push(written.into()),
                }
            })
            .await?;
        let owner = match scope {
            PluginScope::User => Owner::User,
            PluginScope::Project => Owner::Repository,
        };
        let access = access(instance, owner, [&name, spec]);
        let denied = denials::stored(&self.0.dirs, &name);
        Ok(AddedPlugin { name, version, is_new, access, denied })
    }

    /// Removes a plugin from the user's and the project's `codewright.json`. Returns in which of them it was.
    ///
    /// # Errors
    ///
    /// Fails if neither contains it.
    pub async fn remove(self, instance: &Arc<Instance>, name: &str) -> Result<Vec<PluginScope>, Error> {
        let mut removed = Vec::new();
        for scope in [PluginScope::User, PluginScope::Project] {
            let directory = self.directory(instance, scope);
            if !directory.join(FILE).exists() {
                continue;
            }
            let (home, name) = (self.0.dirs.home.clone(), name.to_owned());
            let source = Source::parse(&name, &instance.directory, &home).ok();
            let edit = move |items: &mut Vec<Value>| {
                let is_named = |item: &Value| {
                    let same = |source: &Source| is_same(item, source, &directory, &home);
                    spec_of(item) == Some(&name) || source.as_ref().is_some_and(same)
                };
                items.retain(|item| !is_named(item));
            };
            if self.change(instance, scope, edit).await? {
                removed.push(scope);
            }
        }
        if !removed.is_empty() {
            return Ok(removed);
        }
        let of = |plugin: &ListedPlugin| plugin.name == name || plugin.spec == name;
        let origin = self.list(instance).into_iter().find(of).and_then(|plugin| {
            let item = Value::from(plugin.spec).to_string();
            let mut origins = instance.origins.iter();
            origins
                .find(|(path, _)| path.starts_with(KEY) && path.contains(&item))
                .map(|(_, origin)| origin.to_owned())
        });
        Err(Error::invalid(match origin {
            Some(origin) => {
                format!("`{name}` is configured in `{origin}`, which this command does not change")
            }
            None => format!("no plugin named `{name}` is configured; `plugin list` shows all"),
        }))
    }

    /// Looks up one or all packages again and installs new versions.
    ///
    /// # Errors
    ///
    /// Fails if no package has the name.
    pub async fn update(
        self,
        instance: &Arc<Instance>,
        name: Option<&str>,
    ) -> Result<Vec<UpdatedPlugin>, Error> {
        let mut updated = Vec::new();
        for entry in instance.plugins.iter() {
            let Ok(Source::Registry(package)) = &entry.source else { continue };
            if name.is_some_and(|name| name != package.name && name != entry.spec) {
                continue;
            }
            let before = self.0.packages.cache.installed(package).map(|installed| installed.version);
            let now = install(self.0, instance, package, entry.owner).await;
            updated.push(UpdatedPlugin {
                name: package.name.clone(),
                before,
                now: now.map(|installed| installed.version),
                is_pinned: package.version().is_some(),
            });
        }
        match name {
            Some(name) if updated.is_empty() => {
                Err(Error::invalid(format!("no installable plugin named `{name}` is configured")))
            }
            _ => Ok(updated),
        }
    }

    fn directory(self, instance: &Instance, scope: PluginScope) -> std::path::PathBuf {
        match scope {
            PluginScope::User => self.0.dirs.own_config.clone(),
            PluginScope::Project => instance.directory.clone(),
        }
    }

    /// Changes the list of a configuration. Returns whether it is different now.
    async fn change(
        self,
        instance: &Arc<Instance>,
        scope: PluginScope,
        edit: impl FnOnce(&mut Vec<Value>) + Send + 'static,
    ) -> Result<bool, Error> {
        let path = self.directory(instance, scope).join(FILE);
        if !path.exists() {
            Instances(self.0).end_processes(&instance.directory).await;
        }
        let is_changed = change_list(path.clone(), KEY, edit).await?;
        match scope {
            PluginScope::User => Instances(self.0).dispose_all().await,
            PluginScope::Project => {
                Instances(self.0).dispose(instance).await;
                keep(self.0, instance, &path).await?;
            }
        }
        Ok(is_changed)
    }
}

/// The text of an item of the list.
fn spec_of(item: &Value) -> Option<&String> {
    match item {
        Value::String(spec) => Some(spec),
        Value::Array(items) => items.first().and_then(spec_of),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Whether an item names the same package or path.
fn is_same(item: &Value, source: &Source, base: &Path, home: &Path) -> bool {
    match (spec_of(item).and_then(|spec| Source::parse(spec, base, home).ok()), source) {
        (Some(Source::Registry(Package { ref name, .. })), Source::Registry(package)) => {
            *name == package.name
        }
        (Some(Source::Path(one)), Source::Path(other)) => one == *other,
        _ => false,
    }
}
