//! Starts the user's package manager for an installation.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codewright_config::{NetworkAccess, env};
use codewright_packages::{Job, MAX_SETTINGS_BYTES, Ran, Registries, Runner, Running, Tools};
use codewright_workspace::{Author, Command, End, Limits, ProgramSearch, Programs};
use tokio_util::sync::CancellationToken;

use super::Owner;
use crate::hosts::{FixedHost, only};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::sandbox::installer::{Installation, confine};

/// The output that is kept.
const OUTPUT_LINES: usize = 200;
/// See [`OUTPUT_LINES`].
const OUTPUT_BYTES: usize = 32 * 1024;
/// The variables of the user that a package manager gets.
const PASSED: &[&str] = &["LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// Starts package managers in the sandbox of an installation.
pub(crate) struct PackageRunner<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) instance: &'a Instance,
    /// Whose configuration names the package.
    pub(crate) owner: Owner,
}

impl Runner for PackageRunner<'_> {
    fn run<'a>(&'a self, job: Job<'a>) -> Running<'a> {
        Box::pin(async move {
            let Self { inner, instance, owner } = *self;
            let of_repository = owner == Owner::Repository;
            let write = vec![job.directory.to_owned(), job.home.to_owned()];
            let confined = confine(inner, instance, &Installation { write, of_repository }).await?;
            let is_open = instance.sandbox.network == NetworkAccess::Open;
            let confined = match confined {
                // Other mechanisms cannot isolate the network.
                Some(confined) if confined.mechanism.is_complete() && !is_open => {
                    Some(only(inner, &hosts(job.registries), confined)?)
                }
                confined => confined,
            };
            let has_proxy = confined.as_ref().is_some_and(|confined| confined.connections.is_some());
            let command = Command {
                program: job.program.to_owned(),
                args: job.args.iter().map(Into::into).collect(),
                directory: job.directory.to_owned(),
                env: variables(inner, instance, job.home),
                env_remove: removed(inner, has_proxy),
                confinement: inner.confinement.clone(),
                sandbox: confined.map(Arc::new),
                author: Author::Model,
            };
            let limits = Limits {
                timeout: job.timeout,
                lines: OUTPUT_LINES,
                bytes: OUTPUT_BYTES,
                // Only the beginning is used, which has room for an error.
                spill: job.home.join("output"),
            };
            let ended =
                codewright_workspace::run(command, limits, &CancellationToken::new(), &mut |_| {}).await;
            let ended = ended.map_err(|error| error.to_string())?;
            let code = match ended.end {
                End::Exited(code) => Some(code),
                End::TimedOut | End::Cancelled => None,
            };
            let mut output = ended.output.text().to_owned();
            for refused in ended.refused {
                output.push_str(&format!("\n{} was not reached: {}", refused.host, refused.reason));
            }
            Ok(Ran { code, output })
        })
    }
}

fn hosts(registries: &Registries) -> Vec<FixedHost> {
    let host = |host: &codewright_packages::Host| FixedHost {
        name: host.name.clone(),
        port: host.port,
        is_configured: host.is_configured,
    };
    registries.hosts.iter().map(host).collect()
}

/// The variables of a package manager.
fn variables(inner: &Inner, instance: &Instance, home: &Path) -> Vec<(String, String)> {
    let path = std::env::split_paths(inner.env.get(env::PATH).unwrap_or_default());
    let root = instance.programs.root();
    // Programs of a repository must not take the place of the user's.
    let path: Vec<PathBuf> = path.filter(|path| path.is_absolute() && !path.starts_with(root)).collect();
    let path = std::env::join_paths(path).unwrap_or_default();
    vec![
        ("PATH".to_owned(), path.to_string_lossy().into_owned()),
        ("HOME".to_owned(), home.display().to_string()),
        ("CI".to_owned(), "1".to_owned()),
    ]
}

/// The variables of the user that a package manager does not get: almost all.
fn removed(inner: &Inner, has_proxy: bool) -> Vec<String> {
    let is_passed = |name: &str| PASSED.contains(&name) || (!has_proxy && env::NETWORK.contains(&name));
    let certificates = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];
    let names = inner.env.names().filter(|name| !is_passed(name) && !certificates.contains(name));
    names.map(str::to_owned).collect()
}

/// Finds the package managers and reads the user's registries.
///
/// # Errors
///
/// Fails with a sentence if the user's settings cannot be read.
pub(crate) fn tools(inner: &Inner, instance: &Instance) -> Result<Tools, String> {
    let search = ProgramSearch { programs: Programs::Installed, ..instance.programs.clone() };
    let first = |names: &[&str]| names.iter().find_map(|name| inner.env.filled(name).map(str::to_owned));
    let settings = first(env::NPM_SETTINGS).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = settings.unwrap_or_else(|| inner.dirs.home.join(".npmrc"));
    let text = read(&settings)?;
    let variable = |name: &str| inner.env.get(name).map(str::to_owned);
    Ok(Tools {
        npm: search.installed("npm"),
        bun: search.installed("bun"),
        registries: Registries::read(&text, first(env::NPM_REGISTRY).as_deref(), &variable),
    })
}

/// Reads the settings of npm. A missing file is empty.
fn read(path: &Path) -> Result<String, String> {
    use std::io::Read as _;
    let cannot = |why: &dyn std::fmt::Display| format!("cannot read `{}`: {why}", path.display());
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(cannot(&error)),
    };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(cannot(&"it is not a file"));
    }
    let mut text = String::new();
    let limit = u64::try_from(MAX_SETTINGS_BYTES).unwrap_or(u64::MAX);
    file.take(limit + 1).read_to_string(&mut text).map_err(|error| cannot(&error))?;
    if text.len() > MAX_SETTINGS_BYTES {
        return Err(cannot(&"it is larger than 64 KiB"));
    }
    Ok(text)
}
