//! A runtime for plugins on a machine without bun: bun, from the npm registry.
//!
//! It is installed if a plugin of the user needs it, or if there is no runtime and the user allows it. It is installed in the
//! background, with the checks and the sandbox of the installation of plugins.

use std::sync::Arc;

use codewright_packages::Package;
use codewright_plugins::{Runtime, RuntimeKind};

use crate::inner::Inner;
use crate::instance::Instance;
use crate::journal::Level;
use crate::packages::Owner;
use crate::packages::install::{install, wait_for};

/// The packages of bun by system and processor.
const PACKAGES: &[(&str, &str, &str)] = &[
    ("linux", "x86_64", "@oven/bun-linux-x64"),
    ("linux", "aarch64", "@oven/bun-linux-aarch64"),
    ("macos", "x86_64", "@oven/bun-darwin-x64"),
    ("macos", "aarch64", "@oven/bun-darwin-aarch64"),
];
/// Their version.
const VERSION: &str = "1.3.14";
/// The program in a package.
const PROGRAM: &str = "bin/bun";
/// The name of the installation, which no plugin has.
const KEY: &str = "runtime for plugins";

/// The words in the errors of the script that runs plugins, for what only bun can load.
const NEEDS_BUN: [&str; 2] = ["which only bun provides", "needs bun or Node"];

/// Whether an error of a plugin of the user is that bun is missing, and bun can be installed.
pub(crate) fn would_help(inner: &Inner, instance: &Instance, message: &str) -> bool {
    let config = &instance.plugin_host;
    NEEDS_BUN.iter().any(|words| message.contains(words))
        && config.installs_runtime != Some(false)
        && config.runtime.is_none()
        && inner.packages.failure(KEY).is_none()
        && package().is_some()
}

/// Waits for bun if a plugin needs it. Returns whether a plugin does.
pub(crate) async fn awaited(inner: &Arc<Inner>, instance: &Arc<Instance>) -> bool {
    if !inner.plugins.needs_bun() {
        return false;
    }
    fallback(inner, instance);
    wait_for(inner, instance, KEY, "Installing bun, which a plugin needs. The prompt waits for it.").await;
    true
}

/// Returns the runtime that was installed here, unless the machine has bun, or begins its installation. Reads a few
/// files.
pub(crate) fn fallback(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Option<Runtime> {
    let config = &instance.plugin_host;
    let is_named = config.runtime.as_deref().is_some_and(|name| name != RuntimeKind::Bun.name());
    let found = Runtime::find(&instance.programs, None).ok();
    let has_bun = found.as_ref().is_some_and(|found| found.kind == RuntimeKind::Bun);
    if config.installs_runtime == Some(false) || is_named || has_bun {
        return None;
    }
    let package = package()?;
    if let Some(installed) = inner.packages.cache.installed(&package) {
        let program = installed.directory.join(PROGRAM);
        let has_node = found.is_some_and(|found| found.has_node);
        return program.is_file().then_some(Runtime { kind: RuntimeKind::Bun, program, has_node });
    }
    let is_wanted = inner.plugins.needs_bun() || (found.is_none() && config.installs_runtime == Some(true));
    if !is_wanted {
        return None;
    }
    if let Some(reason) = inner.packages.failure(KEY) {
        instance.warn(&format!("the runtime for plugins cannot be installed: {reason}"));
    }
    if inner.packages.begin(KEY) {
        let (shared, of) = (inner.clone(), instance.clone());
        inner.tasks.spawn(async move {
            let installing = install(&shared, &of, &package, Owner::User);
            let result = shared.cancel.run_until_cancelled(installing).await;
            let failure = match result {
                None => Some("the program is ending".to_owned()),
                Some(Err(reason)) => {
                    let text = format!("the runtime for plugins cannot be installed: {reason}");
                    shared.journal.note(Level::Error, "plugin", &text, None).await;
                    Some(reason)
                }
                Some(Ok(_)) => None,
            };
            shared.packages.end(KEY, failure);
        });
    }
    None
}

fn package() -> Option<Package> {
    let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
    let (.., name) = PACKAGES.iter().find(|(of, on, _)| *of == system && *on == processor)?;
    Package::parse(&format!("{name}@{VERSION}")).ok()
}
