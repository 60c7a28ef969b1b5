//! The sandbox of package managers.
//!
//! It does not depend on the mode: a package manager writes the directories of the installation and connects to the
//! registries, and nothing else, even if commands of the model are not restricted.

use std::path::PathBuf;

use codewright_config::SandboxMode;
use codewright_proto::SessionId;
use codewright_workspace::{Below, Confined, Mechanism, Network};

use super::Subject;
use super::enforcement::{Enforcement, has_outer, mode};
use crate::inner::Inner;
use crate::instance::Instance;

/// The id that names the private directory.
const SANDBOX_ID: &str = "ses_packages00000000000000000";

/// What a package manager needs.
pub(crate) struct Installation {
    /// The directories that it writes.
    pub(crate) write: Vec<PathBuf>,
    /// Whether a repository's configuration names the package.
    pub(crate) of_repository: bool,
}

/// Returns the sandbox of a package manager, with the network of the machine. `None` if the machine can restrict
/// nothing and the user accepts that.
///
/// # Errors
///
/// Fails with a sentence if the sandbox cannot be prepared, or the machine enforces nothing and the package is a
/// repository's.
pub(crate) async fn confine(
    inner: &Inner,
    instance: &Instance,
    installation: &Installation,
) -> Result<Option<Confined>, String> {
    let support = inner.sandbox_support().await;
    if support.mechanism == Mechanism::Nothing {
        let mode = mode(inner, instance, SandboxMode::Off);
        return match Enforcement::of(mode, &support, has_outer(inner, instance)) {
            Enforcement::Lacking(reason) if installation.of_repository => Err(reason),
            Enforcement::Lacking(_) | Enforcement::Off | Enforcement::Outer | Enforcement::Whole => Ok(None),
        };
    }
    let id = SessionId::parse(SANDBOX_ID).map_err(|error| error.to_string())?;
    let subject = Subject { configured: SandboxMode::ReadOnly, ..Subject::new(inner, instance, &id, &[]) };
    let prepared = subject.sandbox();
    let mut sandbox =
        prepared.map_err(|error| format!("The sandbox could not be prepared: {error}"))?.sandbox;
    sandbox.write.clone_from(&installation.write);
    sandbox.guarded.clear();
    sandbox.below = Below::default();
    sandbox.network = Network::Open;
    Ok(Some(Confined { sandbox, mechanism: support.mechanism, connections: None }))
}
