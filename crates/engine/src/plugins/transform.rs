//! Lets plugins of the v2 form change the agents, commands, providers and skills of a directory.
//!
//! The process applies their callbacks to the lists of the directory without those changes, and returns the differences
//! as a part of the configuration.

use std::sync::Arc;

use codewright_config::{Audience, Overlay};
use codewright_plugins::HookCall;
use codewright_proto::Map;
use serde_json::{Value, json};

use super::PluginDraft;
use super::changes::allowed;
use super::extension::HostExtension;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::packages::Owner;

/// The hook that applies the callbacks. Only the process itself provides it.
const TRANSFORM: &str = "v2.transform";
/// The size of the changes of a process.
const MAX_CHANGE_BYTES: usize = 1024 * 1024;

/// Adds the changes of a process to those that its plugins have made in another way.
pub(crate) async fn transform(
    inner: &Arc<Inner>,
    instance: &Instance,
    extension: &HostExtension,
    overlay: &mut Overlay,
) {
    let plugins = &extension.plugins;
    let Some(lists) = inner.plugins.lists().filter(|_| plugins.has_hook(TRANSFORM)) else { return };
    let of_repository = extension.wanted.owner == Owner::Repository;
    let mut base = overlay.clone();
    if !of_repository {
        // The user's plugins do not see what a repository has changed.
        base.repository = Map::new();
    }
    let opening = inner.opening();
    let opened = Instance::open_with(&opening, instance.directory.clone(), &base);
    let draft = match Box::pin(opened).await {
        Ok(draft) => draft,
        Err(error) => {
            return plugins.report("plugins", &format!("the configuration cannot be read: {error}"));
        }
    };
    let audience = if of_repository { Audience::Others } else { Audience::Owner };
    let mut config = draft.config_json();
    let mut commands = draft.commands_json();
    if of_repository {
        draft.redaction(audience).hide(&mut config);
        draft.mask(&mut commands, audience);
    }
    let draft = PluginDraft {
        agents: draft.agents_for(audience),
        commands,
        skills: draft.skills_json(),
        providers: draft.providers_json(),
        config,
    };
    let input = json!({ "lists": lists(&draft), "config": draft.config });
    let output = json!({ "config": {} });
    let reply = plugins.hook(HookCall { name: TRANSFORM, input: &input, output: &output, only: None }).await;
    for failure in reply.failures {
        plugins.report(&failure.plugin, &failure.message);
    }
    let changed = reply.output.map(|mut output| output["config"].take()).unwrap_or_default();
    let Value::Object(changed) = changed else { return };
    if !serde_json::to_vec(&changed).is_ok_and(|bytes| bytes.len() <= MAX_CHANGE_BYTES) {
        plugins.report("plugins", "their changes of the configuration are larger than 1 MiB and are ignored");
        return;
    }
    merge(if of_repository { &mut overlay.repository } else { &mut overlay.user }, allowed(changed));
}

/// Adds values to others. Objects are combined, and everything else is replaced.
fn merge(into: &mut Map, from: Map) {
    for (key, value) in from {
        match (into.get_mut(&key).and_then(Value::as_object_mut), value) {
            (Some(known), Value::Object(value)) => merge(known, value),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}
