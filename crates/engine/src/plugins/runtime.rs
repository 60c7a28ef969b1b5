//! A runtime for plugins on a machine that has none: bun, from the npm registry, if the user allows it.
//!
//! It is installed in the background, with the checks and the sandbox of the installation of plugins.

use std::sync::Arc;

use codewright_packages::Package;
use codewright_plugins::{Runtime, RuntimeKind};

use crate::inner::Inner;
use crate::instance::Instance;
use crate::journal::Level;
use crate::packages::Owner;
use crate::packages::install::install;

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

/// Returns the installed runtime for a machine that has no other, or begins its installation if the user allows it.
/// Reads a few files.
pub(crate) fn fallback(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Option<Runtime> {
    let config = &instance.plugin_host;
    let is_named = config.runtime.as_deref().is_some_and(|name| name != RuntimeKind::Bun.name());
    if !config.installs_runtime || is_named || Runtime::find(&instance.programs, None).is_ok() {
        return None;
    }
    let package = package()?;
    if let Some(installed) = inner.packages.cache.installed(&package) {
        let program = installed.directory.join(PROGRAM);
        return program.is_file().then_some(Runtime { kind: RuntimeKind::Bun, program, has_node: false });
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
