//! The files and resources that requests of users name besides their session.
//!
//! A user works with the rights of the server's account. So a prompt must not attach a file that users may not read, such as
//! the database of all sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codewright_engine::{Address, Instance, KeptFiles};
use codewright_proto::{PartInput, SessionId};
use serde_json::Value;

use super::{Who, directories};
use crate::Error;
use crate::state::App;

/// Why a file is refused that rules of the operator are about.
const KEPT: Error = Error::Forbidden { why: "the rules of this server do not let users read this file" };
/// Why a file is refused.
const OUTSIDE: Error = Error::Forbidden { why: "users may not attach files outside of their directories" };

/// Returns which files of a directory the sender of a request may not see.
///
/// # Errors
///
/// Fails if the directory has no agent, whose rules count.
pub(crate) fn kept(app: &App, who: &Who, instance: &Arc<Instance>) -> Result<KeptFiles, Error> {
    match who.limited() {
        Some(_) => Ok(app.engine.permissions().kept_from_users(instance)?),
        None => Ok(KeptFiles::none()),
    }
}

/// Checks the files and resources that a prompt attaches. Each file is resolved once, and only the place that was found is
/// read, so a link that is exchanged meanwhile leads nowhere.
///
/// # Errors
///
/// Fails if the sender may not read one of them.
pub(crate) async fn check_parts(
    app: &App,
    who: &Who,
    session: &SessionId,
    parts: &mut [PartInput],
) -> Result<(), Error> {
    let Some(caller) = who.limited() else { return Ok(()) };
    if !parts.iter().any(|part| matches!(part, PartInput::File { .. })) {
        return Ok(());
    }
    let directory = app.engine.sessions().get(session).await?.directory;
    let kept = kept(app, who, &app.engine.instance(Path::new(&directory)).await?)?;
    for part in parts {
        let PartInput::File { url, source, checked, .. } = part else { continue };
        if let Some(source) = source.as_ref().filter(|source| source["type"] == "resource") {
            check_resource(app, session, source, url).await?;
        }
        match Address::parse(url).map_err(Error::payload)? {
            Address::File(file) => {
                let real = directories::permitted(app, caller, file.path()).await.ok_or(OUTSIDE)?;
                if kept.has(&real) || kept.has(file.path()) {
                    return Err(KEPT);
                }
                *checked = Some(real);
            }
            Address::Data(_) | Address::Elsewhere => {}
        }
    }
    Ok(())
}

/// Fails if a resource is not one that its server offers. Others are read by the model's tool, which needs a permission.
async fn check_resource(app: &App, session: &SessionId, source: &Value, url: &str) -> Result<(), Error> {
    let directory = app.engine.sessions().get(session).await?.directory;
    let instance = app.engine.instance(Path::new(&directory)).await?;
    let (server, uri) = (&source["clientName"], source["uri"].as_str().unwrap_or(url));
    let offered = app.engine.mcp().resources(&instance).await;
    if offered.values().any(|resource| resource["client"] == *server && resource["uri"] == uri) {
        return Ok(());
    }
    Err(Error::Forbidden { why: "users may only attach resources that a server offers" })
}

/// Fails if the arguments of a command name a file with `@` that its sender may not read. The files that a template names
/// are checked when it is filled.
pub(crate) async fn check_arguments(
    app: &App,
    who: &Who,
    session: &SessionId,
    arguments: &str,
) -> Result<(), Error> {
    let Some(caller) = who.limited() else { return Ok(()) };
    let directory = PathBuf::from(app.engine.sessions().get(session).await?.directory);
    let kept = kept(app, who, &app.engine.instance(&directory).await?)?;
    for name in arguments.split('@').skip(1) {
        let name = name.split_whitespace().next().unwrap_or_default();
        let is_elsewhere = name.starts_with(['/', '~', '$']) || name.split('/').any(|part| part == "..");
        let path = directory.join(name);
        let exists = tokio::fs::symlink_metadata(&path).await.is_ok();
        let real = tokio::fs::canonicalize(&path).await.ok();
        if kept.has(&path) || real.is_some_and(|real| kept.has(&real)) {
            return Err(KEPT);
        }
        if is_elsewhere || (exists && directories::permitted(app, caller, &path).await.is_none()) {
            return Err(OUTSIDE);
        }
    }
    Ok(())
}
