//! The session that the flags `-c`, `-s` and `--dir` select.

use std::path::Path;

use anyhow::{Context as _, bail};
use codewright_client::Client;
use codewright_proto::{Session, SessionId};

use crate::cli::RunArgs;
use crate::connection::{client_error, working_directory};
use crate::style;

/// Returns the session to continue, or `None` for a new one.
///
/// A session works in its own directory. If that directory no longer exists, `--dir` moves the session.
pub(super) async fn continued(client: &Client, args: &RunArgs) -> anyhow::Result<Option<Session>> {
    let session = match (&args.session, args.continue_last) {
        (Some(id), _) => named(client, id).await?,
        (None, true) => return client.last_session().await.map_err(client_error),
        (None, false) => return Ok(None),
    };
    // A server may be on another machine, so only it can say whether a directory exists.
    if args.attach.is_some() {
        return Ok(Some(session));
    }
    let is_missing = !Path::new(&session.directory).is_dir();
    let Some(directory) = args.dir.as_deref() else {
        if is_missing {
            bail!(
                "the directory `{}` of the session no longer exists\nif it was moved, continue with `--dir DIRECTORY`; \
                 `codewright export {}` prints the session",
                session.directory,
                session.id
            );
        }
        return Ok(Some(session));
    };
    let directory = working_directory(Some(directory))?;
    let directory =
        directory.canonicalize().with_context(|| format!("cannot work in `{}`", directory.display()))?;
    if is_missing {
        let directory = directory.to_str().context("the directory's name is not valid UTF-8")?;
        client.move_session(&session.id, directory).await.map_err(client_error)?;
        return named(client, session.id.as_str()).await.map(Some);
    }
    if directory != Path::new(&session.directory) {
        style::warning(&format!("the session works in `{}`, so `--dir` has no effect", session.directory));
    }
    Ok(Some(session))
}

async fn named(client: &Client, id: &str) -> anyhow::Result<Session> {
    let id = SessionId::parse(id).map_err(|_| anyhow::anyhow!("Session not found"))?;
    match client.session(&id).await {
        Err(error) if error.is_not_found() => bail!("Session not found"),
        other => other.map_err(client_error),
    }
}
