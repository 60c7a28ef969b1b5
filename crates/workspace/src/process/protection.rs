//! Keeps protected names free of entries while a long-lived program runs.
//!
//! The names are checked when the system reports that one may have appeared, so that a program at rest causes no work.
//! Where the system cannot report that, they are checked regularly.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codewright_sandbox::Guard;
use tokio::time::sleep;

use super::names::Names;
use super::{Confined, GUARD_EVERY, lost};
use crate::Error;

/// The interval between two checks if the system does not report changes.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The largest number of entries that are renamed before the program must be ended.
const MAX_RENAMED: usize = 1000;

/// The protected names of a program.
#[derive(Debug)]
pub(super) struct Protection {
    guard: Arc<Mutex<Guard>>,
    /// `None` if only regular checks find everything.
    names: Option<Arc<Names>>,
}

impl Protection {
    /// Reads the present state, which the program can only change afterwards. Blocks.
    pub(super) fn new(confined: &Confined) -> Result<Self, Error> {
        let guard = confined.guard()?;
        let names = guard.places().map(|places| Arc::new(Names::new(places, &confined.sandbox.write)));
        Ok(Self { guard: Arc::new(Mutex::new(guard)), names })
    }

    /// Renames what appears, until a name can no longer be protected. `report` gets each renamed entry as a sentence.
    /// The program must then be ended.
    pub(super) async fn keep(&self, report: &(dyn Fn(&str) + Send + Sync)) -> Error {
        loop {
            // The names are watched first, so that the check finds what the watches cannot report.
            let is_reported = match self.watch().await {
                Ok(is_reported) => is_reported,
                Err(error) => return error,
            };
            if let Err(error) = self.check(Guard::check, report).await {
                return error;
            }
            sleep(GUARD_EVERY).await;
            match &self.names {
                Some(names) if is_reported => names.changed().await,
                Some(_) | None => sleep(LOOK_EVERY - GUARD_EVERY).await,
            }
        }
    }

    /// Does the last check, after the end of the program.
    ///
    /// # Errors
    ///
    /// Fails if a name is not free.
    pub(super) async fn finish(&self, report: &(dyn Fn(&str) + Send + Sync)) -> Result<(), Error> {
        self.check(Guard::check_last, report).await
    }

    /// Watches the names. Returns whether the system reports all changes.
    async fn watch(&self) -> Result<bool, Error> {
        let Some(names) = self.names.clone() else { return Ok(false) };
        blocking(move || names.watch()).await
    }

    /// Checks the names.
    async fn check(
        &self,
        how: fn(&mut Guard) -> Result<(), codewright_sandbox::Error>,
        report: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<(), Error> {
        let guard = self.guard.clone();
        let checking = blocking(move || {
            let mut guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
            let before = guard.renamed().len();
            let checked = how(&mut guard);
            (checked, guard.renamed()[before..].to_vec(), guard.renamed().len())
        });
        let (checked, renamed, count) = checking.await?;
        for renamed in renamed {
            let (from, to) = (renamed.from.display(), renamed.to.display());
            report(&format!("it created the protected `{from}`, which was renamed to `{to}`"));
        }
        checked?;
        if count > MAX_RENAMED {
            return Err(lost(format!("the program created more than {MAX_RENAMED} protected files")));
        }
        Ok(())
    }
}

/// Runs on a thread that may wait for the disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| lost(error.to_string()))
}
