//! Runs short reads on the caller's thread.
//!
//! Most data is in memory and read in less time than a switch to another thread takes. So a read starts on the caller's
//! thread. If it takes longer than [`BUDGET`], or would have to wait, it is cancelled and repeated on a blocking thread.
//! After a read that waited for a slow disk, reads do not start on the caller's thread for [`PAUSE`].

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::open::BUSY_TIMEOUT;
use crate::error::Fault;

/// The time limit of a read on the caller's thread.
const BUDGET: Duration = Duration::from_millis(2);

/// The number of database steps between two checks of the clock. A row needs about ten steps, and processing it may take
/// much longer.
const STEPS: i32 = 50;

/// A read that takes longer, in spite of its limit, has waited for the disk.
const SLOW: Duration = Duration::from_millis(10);

const PAUSE: Duration = Duration::from_secs(10);

/// The time until which reads do not start on the caller's thread.
#[derive(Default)]
pub(super) struct Quick(Mutex<Option<Instant>>);

impl Quick {
    /// The result, or `None` if the read took too long. The connection stays usable.
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
        // A time is consistent after any panic.
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
    fn a_short_read_finishes_and_a_long_one_is_cancelled() {
        let mut connection = Connection::open_in_memory().expect("opens");
        let quick = Quick::default();
        let read =
            |connection: &mut Connection, sql| quick.read(connection, |connection| number(connection, sql));
        assert!(matches!(read(&mut connection, "SELECT 7"), Some(Ok(7))));
        let begun = Instant::now();
        assert!(read(&mut connection, LONG).is_none());
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        // Without a limit the same connection reads to the end.
        assert_eq!(number(&connection, LONG).expect("read"), 3_000_000);
        assert!(matches!(read(&mut connection, "SELECT no_such_column"), Some(Err(Fault::Sql(_)))));
    }

    #[test]
    fn the_clock_is_checked_after_a_few_large_rows() {
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
                // Processing a row takes time too.
                std::thread::sleep(BUDGET);
            }
            Ok(())
        });
        assert!(answer.is_none() && rows <= 20, "{rows} rows were read");
    }

    #[test]
    fn a_read_that_would_wait_is_cancelled() {
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
    fn after_a_slow_read_no_read_starts() {
        let mut connection = Connection::open_in_memory().expect("opens");
        let quick = Quick::default();
        let slow = quick.read(&mut connection, |_| {
            std::thread::sleep(SLOW * 2);
            Ok(())
        });
        assert!(matches!(slow, Some(Ok(()))), "the result is used");
        assert!(quick.read(&mut connection, |_| Ok(())).is_none());
    }
}
