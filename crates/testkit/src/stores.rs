//! Databases in PostgreSQL for the programs under test.
//!
//! If `CODEWRIGHT_TEST_STORE` is `postgres`, every [`Project`](crate::Project) has a database of its own in a server that all
//! tests of a process share, so that the tests of the default store run on this one as well.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::Postgres;

/// The variable that switches.
const SWITCH: &str = "CODEWRIGHT_TEST_STORE";

/// The server, which ends with this process.
static SERVER: LazyLock<Option<Mutex<Postgres>>> = LazyLock::new(|| {
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
    let store = std::env::var(SWITCH).unwrap_or_default();
    (store == "postgres").then(Postgres::start).flatten().map(Mutex::new)
});

/// Whether programs under test use the default store. Tests of its files have nothing to do otherwise.
pub fn is_default_store() -> bool {
    SERVER.is_none()
}

/// A database. It is deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct Store {
    name: String,
    /// Its address.
    pub(crate) url: String,
}

impl Store {
    /// Creates a database, unless the tests use the default store.
    pub(crate) fn create() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let url = SERVER.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).url(&name, "");
        assert!(order(&format!("CREATE DATABASE {name}")), "a database is created");
        Some(Self { name, url })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The server ends anyway.
        order(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

/// Gives an order to the server. Returns whether it was carried out.
fn order(sql: &str) -> bool {
    let Some(server) = SERVER.as_ref() else { return false };
    let url = server.lock().unwrap_or_else(PoisonError::into_inner).url("postgres", "");
    let mut command = Command::new("psql");
    command.args(["-XAtq", "-d", &url, "-c", sql]).stdin(Stdio::null()).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
