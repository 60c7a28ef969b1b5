//! The PostgreSQL backend: one thread with a writing task and a task that follows the log, and a few reading connections.
//!
//! Any number of processes, on any number of machines, use one database. Its tables are those of the OpenCode format and
//! some of ours; see `migrations/postgres`. Statements that SQLite shares are in [`crate::sql`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use codewright_proto::{Clock, Envelope, Ids};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::feed::{CloseFeed, Feed};
use crate::node::Node;
use crate::spare::Spare;
use crate::{Condition, Error, Stamps};
use address::Address;
use fault::Fault;
use link::Link;
use pool::Pool;
use tail::{HEAD, Tail};
use writer::{Append, Command, Work, Writer};

mod address;
mod append;
mod backend;
mod fault;
mod job;
mod lease;
mod link;
mod messages;
mod pool;
mod query;
mod schema;
mod statistics;
mod tail;
mod tls;
mod writer;

/// The maximum size of the queued appends, as JSON.
const MAX_QUEUED_KIB: usize = 128 * 1024;

/// The maximum number of queued requests.
const MAX_QUEUED: usize = 1024;

/// How long a request waits in the queue. After that the limits of an attempt apply.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long closing waits for the queued requests.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);

/// The variable that switches the fences of leases off, for the test of a checker.
const UNFENCED: &str = "CODEWRIGHT_TEST_UNFENCED";

/// Where a store's database is.
///
/// Its `Debug` text has no values, because an address may have a password.
#[derive(Clone, Default)]
pub struct PostgresOptions {
    /// The address, `postgres://…`.
    pub url: String,
    /// The variables of the environment: those of libpq, and `USER`.
    pub variables: BTreeMap<String, String>,
    /// The home directory, for the password file and certificates.
    pub home: Option<PathBuf>,
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresOptions")
    }
}

/// An open database. Clones share it; the last one closes it.
#[derive(Clone)]
pub(crate) struct Postgres(Arc<Inner>);

struct Inner {
    label: String,
    commands: mpsc::Sender<Command>,
    /// One permit per KiB of queued appends.
    room: Arc<Semaphore>,
    pool: Pool,
    /// For the queries that must not wait for those of clients.
    urgent: Pool,
    spare: Arc<Spare>,
    node: Arc<Node>,
    feed: Arc<Feed>,
    ids: Ids,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Postgres {
    /// Connects to a database and creates or migrates its tables.
    pub(crate) async fn open(
        options: &PostgresOptions,
        stamps: Stamps,
        feed: Arc<Feed>,
    ) -> Result<Self, Error> {
        let address = Address::parse(&options.url, &options.variables, options.home.as_deref())
            .map_err(|reason| Error::Address { reason })?;
        let (commands, received) = mpsc::channel(MAX_QUEUED);
        let (opened, answer) = oneshot::channel();
        let label = address.label.clone();
        // Only programs of developers have the switch.
        let is_unfenced = cfg!(debug_assertions) && options.variables.contains_key(UNFENCED);
        let node = Arc::new(Node::in_database(is_unfenced));
        let ids = stamps.ids.clone();
        let (of_thread, of_feed, owner) = (address.clone(), Arc::clone(&feed), Arc::clone(&node));
        let run = move || {
            let _closing = CloseFeed(Arc::clone(&of_feed));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => {
                    let path = of_thread.label.into();
                    // The caller may have stopped waiting.
                    drop(opened.send(Err(Error::Failed { path, source: Arc::new(error) })));
                    return;
                }
            };
            runtime.block_on(async {
                match open(&of_thread, &stamps.clock).await {
                    Ok((link, last_position)) => {
                        of_feed.begin_after(last_position);
                        // If the caller has stopped waiting, the sender is dropped and the writer ends.
                        drop(opened.send(Ok(Handle::current())));
                        let (ending, end) = watch::channel(());
                        let (feed, node) = (Arc::clone(&of_feed), Arc::clone(&owner));
                        let clock = stamps.clock.clone();
                        let tail = Tail { address: of_thread.clone(), feed, node, clock, end };
                        let (address, link) = (of_thread, Some(link));
                        let writer = Writer { address, link, stamps, feed: of_feed, node: owner, received };
                        let write = async {
                            writer.run().await;
                            drop(ending);
                        };
                        tokio::join!(write, tail.run());
                    }
                    Err(fault) => drop(opened.send(Err(fault.at(&of_thread.label)))),
                }
            });
        };
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(run)
            .map_err(|error| Error::Failed { path: label.as_str().into(), source: Arc::new(error) })?;
        let driver = answer.await.map_err(|_| Error::Closed)??;
        let pool = Pool::new(address.clone(), driver.clone());
        let urgent = Pool::urgent(address, driver);
        let room = Arc::new(Semaphore::new(MAX_QUEUED_KIB));
        let thread = Mutex::new(Some(thread));
        let spare = Arc::default();
        Ok(Self(Arc::new(Inner { label, commands, room, pool, urgent, spare, node, feed, ids, thread })))
    }

    async fn write(
        &self,
        condition: Condition,
        work: Work,
        bytes: usize,
    ) -> Result<Vec<Arc<Envelope>>, Error> {
        let kib = bytes.div_ceil(1024) as u32; // At most `MAX_APPEND_BYTES`.
        let waiting = Arc::clone(&self.0.room).acquire_many_owned(kib);
        let room = timeout(QUEUE_TIMEOUT, waiting).await.map_err(|_| self.busy())?;
        let room = room.map_err(|_| Error::Closed)?;
        let (reply, answer) = oneshot::channel();
        self.send(Command::Append(Append { work, condition, bytes, reply, _room: room })).await?;
        answer.await.map_err(|_| Error::Closed)?
    }

    async fn send(&self, command: Command) -> Result<(), Error> {
        let permit = timeout(QUEUE_TIMEOUT, self.0.commands.reserve()).await.map_err(|_| self.busy())?;
        permit.map_err(|_| Error::Closed)?.send(command);
        Ok(())
    }

    fn busy(&self) -> Error {
        Error::Busy { path: self.0.label.as_str().into() }
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        // An option is consistent after any panic.
        self.0.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the first connection, and brings the tables up to date. Returns the position of the last event.
/// `clock` follows that of the database from now on.
async fn open(address: &Address, clock: &Clock) -> Result<(Link, u64), Fault> {
    let mut link = Link::open(address, &Handle::current(), None).await?;
    schema::migrate(&mut link, &address.label).await?;
    let row = link.row(HEAD, &[]).await?.ok_or(Fault::Unchanged)?;
    let position = row.get::<_, i64>(0).unsigned_abs();
    clock.follow(row.get::<_, i64>(1).unsigned_abs());
    Ok((link, position))
}
