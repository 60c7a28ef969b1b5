//! Short reads on the thread that asks.
//!
//! Most of what is read is in memory and found in less time than it takes to wake another thread and be woken by it. So a
//! read is begun where it was asked for; one that takes longer than [`BUDGET`], or that would have to wait, is given up and
//! made by a thread that may block. After a read that stood still, for a disk that is slow or asleep, none is begun so for
//! [`PAUSE`].

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::open::BUSY_TIMEOUT;
use crate::error::Fault;

/// How long a read may keep the thread that asks.
const BUDGET: Duration = Duration::from_millis(2);

/// How many steps of the database lie between two looks at the clock. A row is some ten steps, and what is made of it
/// may take far longer than they do.
const STEPS: i32 = 50;

/// A read that takes longer in spite of its budget has waited for the disk.
const SLOW: Duration = Duration::from_millis(10);

const PAUSE: Duration = Duration::from_secs(10);

/// Whether reads are begun where they are asked for.
#[derive(Default)]
pub(super) struct Quick(Mutex<Option<Instant>>);

impl Quick {
    /// The answer, if it came in time. The connection can be used as before afterwards.
    pub(super) fn read<T>(
        &self,
        connection: &mut Connection,
        run: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Option<Result<T, Fault>> {
        let begun = Instant::now();
        if self.until().is_some_and(|until| begun < until) {
            return None;
        }
        let answer = match bound(connection, begun) {
            Ok(()) => run(connection),
            Err(error) => Err(error.into()),
        };
        let freed = free(connection);
        if begun.elapsed() > SLOW {
            *self.until() = Some(Instant::now() + PAUSE);
        }
        match answer {
            Err(fault) if fault.is_busy() || is_interrupted(&fault) => None,
            answer => Some(freed.map_err(Fault::from).and(answer)),
        }
    }

    fn until(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        // A moment is whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bound(connection: &mut Connection, begun: Instant) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    connection.progress_handler(STEPS, Some(move || begun.elapsed() > BUDGET))
}

fn free(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.progress_handler(0, None::<fn() -> bool>)?;
    connection.busy_timeout(BUSY_TIMEOUT)
}

fn is_interrupted(fault: &Fault) -> bool {
    matches!(fault, Fault::Sql(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT max(i) FROM n";

    fn number(connection: &Connection, sql: &str) -> Result<i64, Fault> {
        Ok(connection.query_row(sql, [], |row| row.get(0))?)
    }

    #[test]
    fn a_short_read_is_made_at_once_and_a_long_one_is_given_up() {
        let mut connection = Connection::open_in_memory().expect("opens");
        let quick = Quick::default();
        let read =
            |connection: &mut Connection, sql| quick.read(connection, |connection| number(connection, sql));
        assert!(matches!(read(&mut connection, "SELECT 7"), Some(Ok(7))));
        let begun = Instant::now();
        assert!(read(&mut connection, LONG).is_none());
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        // Without a budget the same connection reads to the end.
        assert_eq!(number(&connection, LONG).expect("read"), 3_000_000);
        assert!(matches!(read(&mut connection, "SELECT no_such_column"), Some(Err(Fault::Sql(_)))));
    }

    #[test]
    fn large_rows_are_few_before_the_clock_is_looked_at() {
        let mut connection = Connection::open_in_memory().expect("opens");
        connection
            .execute_batch(
                "CREATE TABLE t (a, b, c); WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                 INSERT INTO t SELECT i, i, i FROM n",
            )
            .expect("filled");
        let mut rows = 0;
        let answer = Quick::default().read(&mut connection, |connection| {
            let mut statement = connection.prepare("SELECT a, b, c FROM t")?;
            let mut found = statement.query([])?;
            while found.next()?.is_some() {
                rows += 1;
                // What is made of a row takes its time, too.
                std::thread::sleep(BUDGET);
            }
            Ok(())
        });
        assert!(answer.is_none() && rows <= 20, "{rows} rows were read");
    }

    #[test]
    fn a_read_that_would_wait_is_given_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file.db");
        let writer = Connection::open(&path).expect("opens");
        writer.execute_batch("CREATE TABLE t (a); BEGIN EXCLUSIVE").expect("locked");
        let mut connection = Connection::open(&path).expect("opens");
        connection.busy_timeout(BUSY_TIMEOUT).expect("set");
        let begun = Instant::now();
        let answer =
            Quick::default().read(&mut connection, |connection| number(connection, "SELECT count(*) FROM t"));
        assert!(answer.is_none() && begun.elapsed() < BUSY_TIMEOUT / 2);
        writer.execute_batch("COMMIT").expect("unlocked");
        assert_eq!(number(&connection, "SELECT count(*) FROM t").expect("read"), 0);
    }

    #[test]
    fn after_a_read_that_stood_still_none_is_begun() {
        let mut connection = Connection::open_in_memory().expect("opens");
        let quick = Quick::default();
        let slow = quick.read(&mut connection, |_| {
            std::thread::sleep(SLOW * 2);
            Ok(())
        });
        assert!(matches!(slow, Some(Ok(()))), "what was read counts");
        assert!(quick.read(&mut connection, |_| Ok(())).is_none());
    }
}
