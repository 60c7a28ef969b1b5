//! Where the sessions are stored: in a file of this machine, or in the database that the user names.
//!
//! The flag `--store` and `CODEWRIGHT_STORE` win over the key `store` of the user's configuration. A repository cannot name
//! a store. The address may have a password, so it is in no text that this module returns.

use std::path::{Path, PathBuf};

use codewright_config::{Dirs, Env, LoadInput, env};
use codewright_proto::{Clock, Ids};
use codewright_store::{Copied, Store};

use crate::Error;

/// The variable that switches the fences of leases off.
#[cfg(feature = "postgres")]
const UNFENCED: &str = "CODEWRIGHT_TEST_UNFENCED";

/// The name of the file in the data directory.
const FILE: &str = "codewright.db";

/// Copies all sessions from one place to another. A place is an address, `postgres://…`, or the path of a file.
pub async fn copy_sessions(env: &Env, [from, to]: [&str; 2]) -> Result<Copied, Error> {
    let place = |text: &str| {
        let is_address = text.starts_with("postgres://") || text.starts_with("postgresql://");
        if is_address { Database::Address(text.to_owned()) } else { Database::File(text.into()) }
    };
    let (from, to) = (place(from), place(to));
    if from == to {
        return Err(Error::invalid("the source and the target are the same"));
    }
    if let Database::File(path) = &from
        && !path.is_file()
    {
        return Err(Error::invalid(format!("there is no file `{}`", path.display())));
    }
    let clock = Clock::system().steady();
    let ids = Ids::new(clock.clone());
    let from = from.open(env, ids.clone(), clock.clone()).await?;
    let to = to.open(env, ids, clock).await?;
    let copied = codewright_store::copy(&from, &to).await;
    // After a failure, what was copied stays for the next attempt.
    let closed = (from.close().await, to.close().await);
    let copied = copied?;
    closed.0?;
    closed.1?;
    Ok(copied)
}

/// The place of the sessions.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// A file.
    File(PathBuf),
    /// The database at an address, which may have a password.
    Address(String),
}

impl Database {
    /// The place that the user has chosen.
    pub(crate) fn choose(env: &Env, dirs: &Dirs, directory: &Path) -> Self {
        let named = env.filled(env::STORE).map(str::to_owned).or_else(|| {
            let input = LoadInput { directory, worktree: directory, env, dirs };
            // A directory whose configuration cannot be read cannot be opened, so nothing is stored in the wrong place. The
            // error is reported when it is opened.
            codewright_config::store_address(input).ok().flatten()
        });
        named.map_or_else(|| Self::File(dirs.data.join(FILE)), Self::Address)
    }

    /// Opens the store.
    pub(crate) async fn open(&self, env: &Env, ids: Ids, clock: Clock) -> Result<Store, Error> {
        match self {
            Self::File(path) => Ok(Store::open(path, ids, clock).await?),
            Self::Address(url) => open_address(url, env, ids, clock).await,
        }
    }

    /// The path of the file, for commands that read it directly.
    pub(crate) fn file(&self) -> Result<PathBuf, Error> {
        match self {
            Self::File(path) => Ok(path.clone()),
            Self::Address(_) => Err(Error::invalid(
                "the sessions are in PostgreSQL, and this command reads a local database file: use `psql` for queries",
            )),
        }
    }

    /// Whether several servers can use it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Address(_))
    }

    /// The variables with credentials of the database, which commands do not get.
    pub(crate) fn secret_variables(&self) -> &'static [&'static str] {
        match self {
            Self::File(_) => &[],
            Self::Address(_) => &["PGPASSWORD", "PGPASSFILE", "PGSSLKEY"],
        }
    }
}

#[cfg(feature = "postgres")]
async fn open_address(url: &str, env: &Env, ids: Ids, clock: Clock) -> Result<Store, Error> {
    let mut variables = env.of(env::POSTGRES);
    let user = env.filled(env::USER).or_else(|| env.filled(env::LOGNAME));
    variables.extend(user.map(|user| ("USER".to_owned(), user.to_owned())));
    // Only programs of developers have the switch; see `cargo xtask fleet`.
    if cfg!(debug_assertions) {
        let unfenced = env.filled(UNFENCED).map(|value| (UNFENCED.to_owned(), value.to_owned()));
        variables.extend(unfenced);
    }
    let home = env.filled(env::HOME).map(PathBuf::from);
    let options = codewright_store::PostgresOptions { url: url.to_owned(), variables, home };
    Ok(Store::open_postgres(&options, ids, clock).await?)
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "the other variant waits")]
async fn open_address(_: &str, _: &Env, _: Ids, _: Clock) -> Result<Store, Error> {
    Err(Error::invalid(
        "this program was built without the feature `postgres`, so it cannot open a database server",
    ))
}
