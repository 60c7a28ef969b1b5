//! The sandbox of MCP servers, language servers and other agents.
//!
//! A server runs in the sandbox of the user's mode. A server of the user's configuration also has the network and writes
//! the home directory, because most are started by a package manager and work on the user's files. A server of a
//! repository has neither.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codewright_config::SandboxMode;
use codewright_proto::SessionId;
use codewright_workspace::{Confined, Network};

use super::enforcement::Consent;
use super::{PACKAGES, Subject};
use crate::inner::Inner;
use crate::instance::Instance;

/// Files and directories below the home directory whose content runs later, outside of any sandbox.
const STARTED_LATER: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".config/git",
    ".gitconfig",
    ".vimrc",
    ".config/nvim",
    ".local/bin",
    ".cargo/bin",
    ".cargo/config.toml",
    "bin",
    "Library/LaunchAgents",
];
/// Programs that start a server in a container, which is a sandbox already and needs a socket that ours hides.
const CONTAINERS: &[&str] = &["docker", "podman", "nerdctl"];
/// The id that names the private directory of servers.
const SANDBOX_ID: &str = "ses_mcp00000000000000000000000";
/// The program of a server.
#[derive(Clone, Copy)]
pub(crate) struct ServerProgram<'a> {
    pub(crate) program: &'a str,
    pub(crate) args: &'a [String],
    /// Whether a repository's configuration starts it.
    pub(crate) of_repository: bool,
    /// The mode that its callers require.
    pub(crate) required: SandboxMode,
}

/// Returns the sandbox of a server. `None` if nothing restricts it. Blocks.
///
/// # Errors
///
/// Fails with a sentence if the machine cannot enforce the mode.
pub(crate) fn confine(
    inner: &Arc<Inner>,
    instance: &Arc<Instance>,
    server: ServerProgram<'_>,
) -> Result<Option<Arc<Confined>>, String> {
    let program = Path::new(server.program).file_name().unwrap_or_default();
    if !server.of_repository && CONTAINERS.iter().any(|name| program == *name) {
        return Ok(None);
    }
    // A user consented by configuring the server. A repository cannot consent.
    let consent = if server.of_repository { Consent::Missing } else { Consent::Given };
    let support = tokio::runtime::Handle::current().block_on(inner.sandbox_support());
    let id = SessionId::parse(SANDBOX_ID).map_err(|error| error.to_string())?;
    let subject = Subject { required: server.required, ..Subject::new(inner, instance, &id, &[]) };
    let restricted = subject.confine(&support, consent)?;
    let widen = |confined: Arc<Confined>| match server.required {
        _ if server.of_repository => confined,
        // Its caller must change nothing, so neither does a program that works for it.
        SandboxMode::ReadOnly => {
            let mut confined = Confined::clone(&confined);
            confined.sandbox.network = Network::Open;
            Arc::new(confined)
        }
        SandboxMode::Workspace | SandboxMode::Off => widened(&confined, inner, server.args),
    };
    Ok(restricted.map(|restricted| widen(restricted.confined)))
}

/// The sandbox of a server of the user's configuration: it has the network, and can write the home directory and the
/// paths among its arguments. Secrets stay hidden, and files that programs run later stay as they are.
fn widened(confined: &Confined, inner: &Inner, args: &[String]) -> Arc<Confined> {
    let mut confined = confined.clone();
    let home = &inner.dirs.home;
    confined.sandbox.network = Network::Open;
    // An installed language server is named by its script, which nobody changes.
    let installed = inner.dirs.cache.join(PACKAGES);
    let named = args.iter().map(PathBuf::from);
    let is_named = |path: &PathBuf| {
        path.is_absolute() && path.parent().is_some() && path.exists() && !path.starts_with(&installed)
    };
    let named = named.filter(is_named);
    confined
        .sandbox
        .write
        .extend([home.clone()].into_iter().chain(named).filter(|path| path.parent().is_some()));
    confined.sandbox.protect.extend(STARTED_LATER.iter().map(|name| home.join(name)));
    Arc::new(confined)
}
