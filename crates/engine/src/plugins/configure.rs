//! Lets plugins change the configuration of a directory: the hook `config`, and the sign-ins that they provide.
//!
//! The changes are kept beside the documents and applied when the directory is opened again. They end with the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use codewright_config::{Audience, Overlay};
use codewright_llm::vault;
use codewright_llm::{CustomFetch, CustomRequest, CustomResponse};
use codewright_plugins::{FetchRequest, HookCall, Loaded, Plugins};
use codewright_proto::{INTERFACE_VERSION, Map};
use serde_json::{Value, json};

use super::changes::{ListedModels, changes, provider_changes, provider_models, removed_models};
use super::configured::Configured;
use super::extension::HostExtension;
use super::transform::transform;
use super::{Changed, NamedFetch};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::packages::Owner;

/// The header with the name of the program.
const USER_AGENT: &str = "user-agent";
/// The hook that changes the configuration.
const CONFIG: &str = "config";
/// The size of the changes of a process.
const MAX_CHANGE_BYTES: usize = 1024 * 1024;
/// The time limit of a sign-in that provides options, in addition to that of a hook.
const LOADER_GRACE: Duration = Duration::from_secs(2);

/// Calls the plugins that were loaded, or whose credentials have changed, since the last call.
pub(crate) async fn configure(inner: &Arc<Inner>, instance: &Arc<Instance>, opened: &[Arc<HostExtension>]) {
    let directory = &instance.directory;
    let credentials = inner.sign_in.vault().stamp();
    let state = |extension: &HostExtension| {
        let generation = extension.plugins.generation()?;
        Some(Configured { generation, credentials })
    };
    let (mut new, mut others, mut changing) = (Vec::new(), Vec::new(), Vec::new());
    for extension in opened {
        match state(extension).and_then(|state| extension.claim(state)) {
            Some(claim) => {
                new.push(extension);
                changing.push(claim);
            }
            None => others.push(extension),
        }
    }
    if new.is_empty() {
        // Another request has them change the configuration, which this one needs too.
        futures_util::future::join_all(others.iter().map(|extension| extension.settled())).await;
    }
    let before = inner.plugins.changes(directory);
    let has = |owner: Owner| opened.iter().any(|extension| extension.wanted.owner == owner);
    let mut overlay = Overlay::clone(&before.overlay);
    let mut changed = Changed { overlay: Arc::default(), ..before.clone() };
    if !has(Owner::User) {
        (overlay.user, overlay.agents) = Default::default();
        (changed.fetches, changed.providers) = Default::default();
    }
    if !has(Owner::Repository) {
        overlay.repository = Map::new();
    }
    for extension in new {
        let (part, order) = config(instance, extension).await;
        match extension.wanted.owner {
            Owner::Repository => overlay.repository = part,
            Owner::User => {
                (overlay.user, overlay.agents) = (part, order);
                sign_ins(inner, instance, extension, &mut overlay.user, &mut changed).await;
                models(inner, instance, extension, &before.overlay.user, &mut overlay.user).await;
            }
        }
        transform(inner, instance, extension, &mut overlay).await;
    }
    changed.overlay = Arc::new(overlay);
    let is_new = changed.overlay != before.overlay || !names(&changed).eq(names(&before));
    inner.plugins.set_changes(directory, changed);
    if is_new {
        inner.forget_instance(directory).await;
    }
    drop(changing);
}

/// The names of the functions that send the requests of providers.
fn names(changed: &Changed) -> impl Iterator<Item = (&str, &str)> {
    changed.fetches.iter().map(|(provider, named)| (provider.as_str(), named.name.as_str()))
}

/// Calls the hook `config`. Returns what it changed, and the order of the agents that a plugin chose.
async fn config(instance: &Instance, extension: &HostExtension) -> (Map, Vec<String>) {
    let plugins = &extension.plugins;
    if !plugins.has_hook(CONFIG) {
        return Default::default();
    }
    let mut config = instance.base_config().clone();
    if extension.wanted.owner == Owner::Repository {
        instance.redaction(Audience::Others).hide(&mut config);
    }
    let nothing = json!({});
    let call = HookCall { name: CONFIG, input: &config, output: &nothing, only: None };
    let reply = plugins.hook(call).await;
    for failure in reply.failures {
        plugins.report(&failure.plugin, &failure.message);
    }
    let changes = reply.input.map(|after| changes(&config, &after)).unwrap_or_default();
    let bytes = serde_json::to_vec(&(&changes, &reply.agents)).map(|bytes| bytes.len());
    if bytes.is_ok_and(|bytes| bytes <= MAX_CHANGE_BYTES) {
        return (changes, reply.agents);
    }
    plugins.report("plugins", "their changes of the configuration are larger than 1 MiB and are ignored");
    Default::default()
}

/// Asks the plugins with a sign-in for the options of their providers, if the user is signed in.
async fn sign_ins(
    inner: &Arc<Inner>,
    instance: &Instance,
    extension: &HostExtension,
    overlay: &mut Map,
    changed: &mut Changed,
) {
    changed.fetches.clear();
    let loaded = extension.plugins.loaded();
    let with_auth = loaded.iter().filter_map(|loaded| Some((loaded, loaded.auth.as_ref()?)));
    let with_auth: Vec<_> = with_auth.collect();
    changed.providers = with_auth.iter().map(|(_, auth)| auth.provider.clone()).collect();
    if with_auth.is_empty() {
        return;
    }
    inner.plugins.allow(&instance.directory, changed.providers.clone());
    // An unreadable file is reported when the directory is opened.
    let stored = inner.sign_in.vault().read().unwrap_or_default();
    let signed_in: BTreeSet<String> = stored.iter().map(|(provider, ..)| provider.to_owned()).collect();
    for (loaded, auth) in with_auth {
        if !auth.loader || !signed_in.contains(&auth.provider) {
            continue;
        }
        let provider = known_provider(instance, &auth.provider);
        match loader(extension, loaded, &provider).await {
            Ok(answer) => {
                let after = answer.get("provider").unwrap_or(&provider);
                let part = provider_changes(&answer["options"], &provider, after);
                if !part.is_empty() {
                    add(overlay, &auth.provider, part);
                }
                if let Some(handle) = answer["fetch"].as_str() {
                    let fetch = fetch(extension.plugins.clone(), loaded.index, handle.to_owned());
                    let generation = extension.plugins.generation().unwrap_or_default();
                    let name = format!("{generation}/{}/{handle}", loaded.index);
                    changed.fetches.insert(auth.provider.clone(), NamedFetch { name, fetch });
                }
            }
            Err(reason) => extension.plugins.report(&loaded.name, &reason),
        }
    }
}

/// Asks the plugins with models for those of their providers. Each gets the models that the one before it returned.
async fn models(
    inner: &Arc<Inner>,
    instance: &Instance,
    extension: &HostExtension,
    before: &Map,
    overlay: &mut Map,
) {
    let loaded = extension.plugins.loaded();
    let mut changed: BTreeMap<String, Value> = BTreeMap::new();
    for (loaded, id) in loaded.iter().filter_map(|loaded| Some((loaded, &loaded.provider.as_ref()?.id))) {
        let provider = changed.get(id).cloned().unwrap_or_else(|| known_provider(instance, id));
        let may_read = inner.plugins.may_read(&instance.directory, id);
        let stored = inner.sign_in.vault().read().unwrap_or_default();
        let credential = stored.iter().find(|(name, ..)| may_read && name == id);
        let auth = credential.map(|(_, credential, _)| vault::json(credential)).unwrap_or_default();
        let params = json!({ "index": loaded.index, "provider": provider, "auth": auth });
        let limit = extension.wanted.setup.hook_limit + LOADER_GRACE;
        match extension.plugins.request(loaded.index, "provider.models", &params, limit).await {
            Ok(mut answer) => {
                let models = answer["models"].take();
                if models.as_object().is_some_and(|models| !models.is_empty()) {
                    changed.insert(id.clone(), with_models(provider, models));
                }
            }
            Err(failure) => {
                extension.plugins.report(&loaded.name, &format!("its list of models failed: {failure}"));
            }
        }
    }
    for (id, provider) in changed {
        let mut part = Map::new();
        // The plugins do not see models that they removed before, so these stay removed.
        let removed = removed_models(&ListedModels {
            known: &known_provider(instance, &id)["models"],
            after: &provider["models"],
            configured: &instance.base_config()["provider"][&id],
            removed_before: before.get("provider").map_or(&Value::Null, |all| &all[&id]["blacklist"]),
        });
        if !removed.is_empty() {
            part.insert("blacklist".to_owned(), json!(removed));
        }
        part.insert("models".to_owned(), Value::Object(provider_models(&provider["models"])));
        add(overlay, &id, part);
    }
}

fn with_models(mut provider: Value, models: Value) -> Value {
    provider["models"] = models;
    provider
}

async fn loader(extension: &HostExtension, loaded: &Loaded, provider: &Value) -> Result<Value, String> {
    let params = json!({ "index": loaded.index, "provider": provider });
    let limit = extension.wanted.setup.hook_limit + LOADER_GRACE;
    let answer = extension.plugins.request(loaded.index, "auth.loader", &params, limit).await;
    answer.map_err(|failure| format!("its sign-in failed: {failure}"))
}

/// Returns a provider as the API shows it, also if it is not connected.
fn known_provider(instance: &Instance, id: &str) -> Value {
    instance.models.provider_json(id).unwrap_or_else(|_| {
        let listed = instance.models.list_json();
        let all = listed["all"].as_array().into_iter().flatten();
        let found = all.into_iter().find(|provider| provider["id"] == id).cloned();
        found.unwrap_or_else(|| json!({ "id": id, "name": id, "models": {} }))
    })
}

/// Adds the part of a provider to the changes of a configuration.
fn add(overlay: &mut Map, id: &str, part: Map) {
    let providers = overlay.entry("provider").or_insert_with(|| json!({}));
    let Some(providers) = providers.as_object_mut() else { return };
    let known = providers.entry(id).or_insert_with(|| json!({}));
    if let Some(known) = known.as_object_mut() {
        for (key, value) in part {
            match (known.get_mut(&key).and_then(Value::as_object_mut), value) {
                (Some(known), Value::Object(value)) => known.extend(value),
                (_, value) => drop(known.insert(key, value)),
            }
        }
    }
}

/// Returns a function that sends the requests of a provider through a plugin.
fn fetch(plugins: Plugins, index: usize, handle: String) -> CustomFetch {
    CustomFetch::new(move |request: CustomRequest| {
        let (plugins, handle) = (plugins.clone(), handle.clone());
        async move {
            let CustomRequest { url, mut headers, body } = request;
            // Plugins pass the headers on, and some of their servers only know OpenCode.
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(USER_AGENT)) {
                headers.push((USER_AGENT.to_owned(), format!("opencode/{INTERFACE_VERSION}")));
            }
            let request =
                FetchRequest { handle: &handle, url: &url, method: "POST", headers: &headers, body: &body };
            let answer = plugins.fetch(index, &request).await.map_err(|failure| failure.to_string())?;
            Ok(CustomResponse { status: answer.status, headers: answer.headers, body: answer.body })
        }
    })
}
