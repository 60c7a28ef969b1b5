//! `upgrade`: replaces the program if the install script installed it, and prints the command of the package manager otherwise.
//!
//! The install script leaves a [`Receipt`] beside the program: where releases are published, and the key that signs them. A
//! release is a signed manifest with the digests of its archives. Nothing is replaced before the signature, the version, the
//! size and the digest are checked and the new program has printed its version. The old program is kept for `--rollback`.

mod method;
mod receipt;
mod release;
mod replace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use codewright_config::{Env, env};
use codewright_llm::{Client, Network};

use self::receipt::Receipt;
use self::release::Source;
use crate::cli::UpgradeArgs;
use crate::connection::VERSION;
use crate::style;

pub(crate) use self::receipt::of_program;

/// The files that the install script and upgrades leave, those that exist.
pub(crate) fn files(program: &Path) -> Vec<PathBuf> {
    let files = [replace::previous(program), receipt::path(program), program.to_owned()];
    files.into_iter().filter(|path| path.is_file()).collect()
}

pub(crate) fn main(args: &UpgradeArgs) -> anyhow::Result<ExitCode> {
    let program = program()?;
    let wanted = wanted(args);
    let receipt = of_program(&program)?.filter(|_| args.method.is_none());
    let Some(receipt) = receipt else {
        ensure!(!args.rollback, "only a program of the install script can be rolled back");
        if wanted == Some(VERSION) {
            return Ok(crate::print(&format!("version {VERSION} is installed\n")));
        }
        let named = args.method.as_deref();
        let advice = method::advice(named.unwrap_or_else(|| method::of(&program)), wanted);
        style::note(&format!(
            "{} was not installed by the install script, so it does not replace itself",
            program.display()
        ));
        crate::print(&format!("{advice}\n"));
        // A script must not take it for an upgrade.
        return Ok(ExitCode::FAILURE);
    };
    let _alone = receipt::lock(&program)?;
    if args.rollback {
        return rollback(&program, &receipt);
    }
    let network = Network { variables: Env::from_process().of(env::NETWORK) };
    let client = Client::with_network(network, &format!("codewright/{VERSION}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(upgrade(&program, receipt, &Source::new(&client), args))
}

async fn upgrade(
    program: &Path,
    receipt: Receipt,
    source: &Source<'_>,
    args: &UpgradeArgs,
) -> anyhow::Result<ExitCode> {
    let wanted = wanted(args);
    let manifest = source.manifest(&receipt, wanted).await?;
    let found = release::compare(VERSION, &manifest.version)?;
    if found.is_eq() {
        return Ok(crate::print(&format!("version {VERSION} is installed and is the newest\n")));
    }
    if found.is_gt() && wanted.is_none() {
        // An old manifest with a valid signature must not bring back old faults.
        bail!(
            "the newest published version is {}, but {VERSION} is installed\nname the version to install it anyway",
            manifest.version
        );
    }
    let file = manifest.file(&receipt.target)?;
    if args.check {
        let (size, version) = (file.size.div_ceil(1024 * 1024), &manifest.version);
        return Ok(crate::print(&format!(
            "version {version} is available ({size} MiB); {VERSION} is installed\n"
        )));
    }
    style::note(&format!("downloading {}", file.name));
    let archive = source.archive(&receipt, &manifest, file).await?;
    let new = replace::unpack(&archive, program)?;
    replace::check_version(&new, &manifest.version)?;
    replace::replace(program, new)?;
    let version = manifest.version;
    receipt::write(program, &Receipt { version: version.clone(), ..receipt })?;
    warn_of_others(program);
    style::note(
        "running servers and clients keep the old version until they are started again; their sessions stay",
    );
    Ok(crate::print(&format!("upgraded {} from {VERSION} to {version}\n", program.display())))
}

/// The version that the user names.
fn wanted(args: &UpgradeArgs) -> Option<&str> {
    args.target.as_deref().map(|target| target.trim_start_matches('v'))
}

/// Exchanges the program with the one that the last upgrade replaced.
fn rollback(program: &Path, receipt: &Receipt) -> anyhow::Result<ExitCode> {
    let version = replace::rollback(program)?;
    receipt::write(program, &Receipt { version: version.clone(), ..receipt.clone() })?;
    Ok(crate::print(&format!("rolled {} back to {version}\n", program.display())))
}

/// The file of the running program, without links.
fn program() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find the file of this program")?;
    // The file may have been replaced since the program started.
    program.canonicalize().with_context(|| format!("cannot find {}", program.display()))
}

/// Warns if the shell would start another program of the same name.
fn warn_of_others(program: &Path) {
    let Some(name) = program.file_name() else { return };
    let variables = Env::from_process();
    let directories = std::env::split_paths(variables.filled(env::PATH).unwrap_or_default());
    let first = directories.map(|directory| directory.join(name)).find(|file| file.is_file());
    if let Some(first) = first.and_then(|file| file.canonicalize().ok()).filter(|first| first != program) {
        let first = first.display();
        style::warning(&format!("`PATH` has another program of this name first: {first}"));
    }
}
