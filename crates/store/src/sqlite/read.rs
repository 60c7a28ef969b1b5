//! The reading connections.
//!
//! A query runs in one read transaction: on the caller's thread if a connection is open and the answer comes within
//! a moment (see [`Quick`]), otherwise on a blocking thread. A store in memory has one connection only, so its
//! queries run on the writer's thread.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::quick::Quick;
use super::{QUEUE_TIMEOUT, Sqlite, open};
use crate::Error;
use crate::error::Fault;

/// How many connections read at the same time.
const MAX_READERS: usize = 2;

/// The connections that are open and not in use.
pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    quick: Quick,
    /// One permit for each query that runs.
    permits: Arc<Semaphore>,
}

impl Sqlite {
    /// Runs queries in one read transaction.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        run: impl Fn(&Connection) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        let Some(readers) = &self.0.readers else {
            return self.on_writer(move |connection| run(connection)).await;
        };
        if self.0.commands.is_closed() {
            return Err(Error::Closed);
        }
        let permits = Arc::clone(&readers.permits);
        let permit = match Arc::clone(&permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => timeout(QUEUE_TIMEOUT, permits.acquire_owned())
                .await
                .map_err(|_| self.busy())?
                .map_err(|_| Error::Closed)?,
        };
        if let Some(answer) = readers.read_quickly(&run) {
            return self.0.remember_damage(answer.map_err(|fault| fault.at(&self.0.path)));
        }
        let inner = Arc::clone(&self.0);
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let readers = inner.readers.as_ref().ok_or(Error::Closed)?;
            inner.remember_damage(readers.read(&inner.path, run).map_err(|fault| fault.at(&inner.path)))
        });
        match reading.await {
            Ok(answer) => answer,
            Err(error) if error.is_panic() => {
                Err(Error::Failed { path: self.0.path.clone(), source: Arc::new(error) })
            }
            // The runtime is shutting down.
            Err(_) => Err(Error::Closed),
        }
    }
}

impl Readers {
    pub(super) fn new() -> Self {
        let permits = Arc::new(Semaphore::new(MAX_READERS));
        Self { idle: Mutex::default(), quick: Quick::default(), permits }
    }

    /// Closes the idle connections. Later queries fail with [`Error::Closed`].
    pub(super) fn close(&self) {
        self.permits.close();
        self.idle().clear();
    }

    /// Runs queries on an open connection and gives up when they take too long for the caller's thread.
    fn read_quickly<T>(&self, run: impl FnOnce(&Connection) -> Result<T, Fault>) -> Option<Result<T, Fault>> {
        let mut connection = self.idle().pop()?;
        let answer = self.quick.read(&mut connection, |connection| in_transaction(connection, run));
        self.put_back(connection);
        answer
    }

    fn read<T>(&self, path: &Path, run: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open::reader(path)?,
        };
        let value = in_transaction(&connection, run);
        self.put_back(connection);
        value
    }

    /// Runs queries on an open connection that is not in use, if there is one.
    pub(super) fn read_if_idle<T>(
        &self,
        run: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Option<Result<T, Fault>> {
        let connection = self.idle().pop()?;
        let value = in_transaction(&connection, run);
        self.put_back(connection);
        Some(value)
    }

    fn put_back(&self, connection: Connection) {
        if !self.permits.is_closed() {
            self.idle().push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        // A list of connections is consistent after any panic.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads one state of the file.
fn in_transaction<T>(
    connection: &Connection,
    run: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let transaction = connection.unchecked_transaction()?;
    // Nothing is written, so the rollback when it is dropped loses nothing.
    run(&transaction)
}
