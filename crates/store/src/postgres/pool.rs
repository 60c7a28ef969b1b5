//! The reading connections.
//!
//! A query takes a connection that is not in use, or opens one. A connection whose query failed or was cancelled is
//! closed, because a transaction may be open on it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::QUEUE_TIMEOUT;
use super::address::Address;
use super::fault::Fault;
use super::link::Link;
use crate::Error;

/// How many connections read at the same time.
const MAX_READERS: usize = 4;

/// How many more connections there are for urgent queries.
const MAX_URGENT_READERS: usize = 3;

/// How long a query is repeated on new connections while the database cannot be reached.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The limit of a query that was sent.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);

/// The pause before a query is repeated.
const PAUSE: Duration = Duration::from_millis(200);

/// The connections for queries.
pub(super) struct Pool {
    address: Address,
    driver: Handle,
    idle: Mutex<Vec<Link>>,
    /// One permit for each query that runs.
    permits: Arc<Semaphore>,
}

/// A connection that is in use.
pub(super) struct Reader<'a> {
    pool: &'a Pool,
    link: Link,
    _permit: OwnedSemaphorePermit,
}

/// The attempts of one query.
pub(super) struct Attempts {
    deadline: Instant,
}

impl Pool {
    /// Connections for queries in general.
    pub(super) fn new(address: Address, driver: Handle) -> Self {
        Self::of(MAX_READERS, address, driver)
    }

    /// Connections for the queries about other servers and for those of the owners of sessions. They must not wait for
    /// those of clients: a server that waits for seconds notices no dead one, and does not continue its sessions.
    pub(super) fn urgent(address: Address, driver: Handle) -> Self {
        Self::of(MAX_URGENT_READERS, address, driver)
    }

    fn of(readers: usize, address: Address, driver: Handle) -> Self {
        Self { address, driver, idle: Mutex::default(), permits: Arc::new(Semaphore::new(readers)) }
    }

    /// Closes the connections. Later queries fail with [`Error::Closed`].
    pub(super) fn close(&self) {
        self.permits.close();
        self.idle().clear();
    }

    async fn reader(&self) -> Result<Reader<'_>, Fault> {
        let permit = timeout(QUEUE_TIMEOUT, Arc::clone(&self.permits).acquire_owned())
            .await
            .map_err(|_| Error::Busy { path: self.address.label.as_str().into() })?
            .map_err(|_| Error::Closed)?;
        loop {
            let idle = self.idle().pop();
            let link = match idle {
                Some(link) if link.is_lost() => continue,
                Some(link) => link,
                None => {
                    let mut link = Link::open(&self.address, &self.driver, None).await?;
                    super::schema::check(&mut link, &self.address.label).await?;
                    link
                }
            };
            return Ok(Reader { pool: self, link, _permit: permit });
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Link>> {
        // A list of connections is consistent after any panic.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader<'_> {
    pub(super) fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Attempts {
    pub(super) fn new() -> Self {
        Self { deadline: Instant::now() + READ_TIMEOUT }
    }

    /// A connection, or the final error.
    pub(super) async fn reader<'a>(&self, pool: &'a Pool) -> Result<Reader<'a>, Error> {
        loop {
            match pool.reader().await {
                Err(fault) if fault.is_passing() && Instant::now() < self.deadline => {
                    tokio::time::sleep(PAUSE).await;
                }
                outcome => return outcome.map_err(|fault| fault.at(&pool.address.label)),
            }
        }
    }

    /// The final answer, or `None` if the query is repeated.
    pub(super) async fn finish<T>(
        &self,
        reader: Reader<'_>,
        outcome: Result<T, Fault>,
    ) -> Option<Result<T, Error>> {
        match outcome {
            Ok(answer) => {
                let Reader { pool, link, _permit } = reader;
                if !pool.permits.is_closed() {
                    pool.idle().push(link);
                }
                Some(Ok(answer))
            }
            Err(fault) if fault.is_passing() && Instant::now() < self.deadline => {
                // The reader is dropped, and its connection with it.
                drop(reader);
                tokio::time::sleep(PAUSE).await;
                None
            }
            Err(fault) => Some(Err(fault.at(&reader.pool.address.label))),
        }
    }
}

/// Limits the time of a query.
pub(super) async fn limited<T>(query: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    timeout(QUERY_TIMEOUT, query).await.unwrap_or(Err(Fault::Silent))
}

/// Runs queries on a connection and repeats them while the connection fails.
macro_rules! read {
    (on $pool:expr, $link:ident => $query:expr) => {
        Box::pin(async move {
            let attempts = $crate::postgres::pool::Attempts::new();
            loop {
                let mut reader = attempts.reader(&$pool).await?;
                let outcome = {
                    let $link = reader.link();
                    $crate::postgres::pool::limited($query).await
                };
                if let Some(answer) = attempts.finish(reader, outcome).await {
                    return answer;
                }
            }
        })
    };
    ($store:expr, $link:ident => $query:expr) => {
        $crate::postgres::pool::read!(on $store.0.pool, $link => $query)
    };
}
pub(super) use read;

/// Runs queries that see one state of the database.
macro_rules! snapshot {
    ($link:ident, $query:expr) => {
        async {
            $link.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
            let answer = $query?;
            $link.batch("COMMIT").await?;
            Ok::<_, $crate::postgres::fault::Fault>(answer)
        }
    };
}
pub(super) use snapshot;
