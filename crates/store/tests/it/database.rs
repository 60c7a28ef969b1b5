//! Databases for tests, on one private server of this test binary.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use codewright_store::{PostgresOptions, Store};
use tokio_postgres::{Client, NoTls};

use crate::server::Postgres;
use crate::support::*;

/// A schema of the shared server: a database of its own for a store.
pub(crate) struct Database {
    /// Its address.
    pub(crate) url: String,
    /// A connection of the test.
    pub(crate) client: Client,
}

/// Uses the shared server, which is started once.
pub(crate) fn with_server<T>(ask: impl FnOnce(&Postgres) -> T) -> Option<T> {
    static SERVER: OnceLock<Option<Mutex<Postgres>>> = OnceLock::new();
    let server = SERVER.get_or_init(|| Postgres::start().map(Mutex::new)).as_ref()?;
    Some(ask(&server.lock().expect("no panic")))
}

/// A connection of a test.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("it connects");
    tokio::runtime::Handle::current().spawn(connection);
    client
}

impl Database {
    /// An empty one. `None` if there is no server program.
    pub(crate) async fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let schema = format!("s{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let more = format!("&options=-csearch_path%3D{schema}");
        let url = tokio::task::spawn_blocking(move || with_server(|server| server.url("postgres", &more)));
        let url = url.await.expect("no panic")?;
        let client = connect(&url).await;
        let name = url.rsplit("%3D").next().expect("a schema");
        client.batch_execute(&format!("CREATE SCHEMA {name}")).await.expect("created");
        Some(Self { url, client })
    }

    /// Opens the store, as another process would.
    pub(crate) async fn open(&self) -> Store {
        open_url(&self.url).await.expect("the store opens")
    }
}

pub(crate) async fn open_url(url: &str) -> Result<Store, codewright_store::Error> {
    let (ids, clock) = stamps();
    let options = PostgresOptions { url: url.to_owned(), ..PostgresOptions::default() };
    let store = Store::open_postgres(&options, ids, clock).await?;
    store.save_project(project("p1")).await?;
    Ok(store)
}
