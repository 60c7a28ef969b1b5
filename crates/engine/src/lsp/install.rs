//! The installation of language servers from the npm registry.
//!
//! It happens only if the user enabled it, in the background, with the checks and the sandbox of the installation of
//! plugins. No turn waits for it.

use std::sync::Arc;
use std::time::Duration;

use codewright_config::env;
use codewright_lsp::{Provided, Wanted};
use codewright_packages::{Installed, Package};
use codewright_proto::{Signal, Toast, ToastVariant};
use codewright_workspace::{ProgramSearch, Programs};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::inner::Inner;
use crate::instance::Instance;
use crate::journal::Level;
use crate::packages::Owner;
use crate::packages::install::{Group, install_with};

/// The age at which a server's newest version is looked up again, in milliseconds.
const LOOK_UP_AFTER_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// The programs that run the scripts of packages, in the order of preference.
const RUNTIMES: &[&str] = &["node", "bun"];
/// The longest time that the command line waits for installations: each has 120 seconds and waits for others.
const WAIT_LIMIT: Duration = Duration::from_secs(300);

/// Packages that belong to one server.
struct Packages {
    first: Package,
    others: Vec<Package>,
}

/// Returns an installed server, or begins its installation if the user enabled that. Reads a few files.
pub(super) fn provide(inner: &Arc<Inner>, instance: &Arc<Instance>, wanted: &Wanted<'_>) -> Provided {
    if !instance.settled.installs_servers || inner.env.is_on(env::DISABLE_LSP_DOWNLOAD) {
        return Provided::Disabled;
    }
    let mut packages = Vec::new();
    for text in wanted.packages {
        match Package::parse(text) {
            Ok(package) => packages.push(package),
            Err(error) => return Provided::Failed(error.to_string()),
        }
    }
    if packages.is_empty() {
        return Provided::Disabled;
    }
    let packages = Packages { first: packages.remove(0), others: packages };
    let installed = inner.packages.cache.installed(&packages.first);
    let is_old = |installed: &Installed| {
        let age = |at: u64| inner.clock.now_ms().saturating_sub(at);
        installed.looked_up_ms.is_some_and(|at| age(at) > LOOK_UP_AFTER_MS)
    };
    let key = key(wanted.server);
    if installed.as_ref().is_none_or(is_old) && inner.packages.begin(&key) {
        let owner = if wanted.of_repository { Owner::Repository } else { Owner::User };
        let server = wanted.server.to_owned();
        let work = install_in_background(inner.clone(), instance.clone(), Job { server, packages, owner });
        inner.tasks.spawn(work);
    }
    match (installed, inner.packages.failure(&key)) {
        (Some(installed), _) => runnable(instance, &installed, wanted.program),
        (None, Some(reason)) => Provided::Failed(reason),
        (None, None) => Provided::Installing,
    }
}

/// The name of an installation, which no plugin has.
fn key(server: &str) -> String {
    format!("language server {server}")
}

/// The command that runs the program of an installed package.
fn runnable(instance: &Instance, installed: &Installed, program: &str) -> Provided {
    let search = ProgramSearch { programs: Programs::Installed, ..instance.programs.clone() };
    let Some(runtime) = RUNTIMES.iter().find_map(|name| search.installed(name)) else {
        return Provided::Failed(format!("`{program}` needs `node` or `bun`, and neither is installed"));
    };
    let modules = installed.root.join("node_modules");
    // The link leads to a file of the package, as was checked when it was installed.
    match modules.join(".bin").join(program).canonicalize() {
        Ok(script) => {
            let words = vec![runtime.display().to_string(), script.display().to_string()];
            Provided::Ready { words, modules }
        }
        Err(_) => {
            let Installed { name, version, .. } = installed;
            Provided::Failed(format!("the package {name} {version} contains no program `{program}`"))
        }
    }
}

/// An installation.
struct Job {
    server: String,
    packages: Packages,
    owner: Owner,
}

async fn install_in_background(inner: Arc<Inner>, instance: Arc<Instance>, job: Job) {
    let Job { server, packages, owner } = job;
    let before = inner.packages.cache.installed(&packages.first);
    let group = Group { package: &packages.first, with: &packages.others };
    let installing = install_with(&inner, &instance, &group, owner);
    let result = inner.cancel.run_until_cancelled(installing).await;
    let failure = match &result {
        None => Some("the program is ending".to_owned()),
        Some(Err(reason)) => Some(reason.clone()),
        Some(Ok(_)) => None,
    };
    inner.packages.end(&key(&server), failure);
    let (variant, message) = match result {
        None => return,
        Some(Ok(installed)) if before.as_ref().map(|before| &before.version) == Some(&installed.version) => {
            return;
        }
        Some(Ok(Installed { name, version, .. })) => {
            (ToastVariant::Success, format!("Installed the language server {server} ({name} {version})."))
        }
        // The installed version is used.
        Some(Err(reason)) if before.is_some() => {
            let note = format!("cannot look up {server} again: {reason}");
            inner.journal.note(Level::Warn, "lsp", &note, None).await;
            return;
        }
        Some(Err(reason)) => {
            (ToastVariant::Error, format!("The language server {server} is missing: {reason}"))
        }
    };
    let level = if variant == ToastVariant::Error { Level::Warn } else { Level::Info };
    let about = json!({ "server": server, "directory": instance.directory_text() });
    inner.journal.note(level, "lsp", &message, Some(about)).await;
    let toast = Toast { message, variant, ..Toast::default() };
    inner.store.signal(Signal::TuiToastShow { directory: instance.directory_text(), toast });
    for servers in inner.lsp.all() {
        servers.look_again().await;
    }
}

/// Waits until no server of a list is being installed, but not forever.
pub(super) async fn installed(inner: &Inner, servers: &[String]) {
    let deadline = Instant::now() + WAIT_LIMIT;
    let mut changes = inner.packages.changes();
    for server in servers {
        while inner.packages.began(&key(server)).is_some() {
            // The sender lives as long as the engine.
            if !matches!(timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }
}
