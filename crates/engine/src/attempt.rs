//! Sign-in attempts that run in the background, for clients that poll their status.
//!
//! The task of an attempt waits for the user and stores the credential. An attempt ends after ten minutes at the
//! latest, and its result is kept until then. A provider has one attempt at a time.

mod operations;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_proto::AttemptId;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// The deadline of an attempt. Its result is kept until then.
const LIFE: Duration = Duration::from_secs(10 * 60);
/// The number of attempts that are kept. The oldest is cancelled for a new one.
const MAX_ATTEMPTS: usize = 32;

/// The status of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The attempt waits for the user.
    Pending,
    /// The credential is stored.
    Complete,
    /// The user or the server rejected it, with the reason.
    Failed(String),
    /// The deadline has passed.
    Expired,
}

/// An attempt in the form of the API.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The id of the attempt.
    pub id: AttemptId,
    /// The URL for the user.
    pub url: String,
    /// The instructions for the user.
    pub instructions: String,
    /// Whether it completes automatically; otherwise the user has to enter a code.
    pub is_automatic: bool,
    /// The start, in milliseconds since 1970.
    pub created: u64,
    /// The deadline, in milliseconds since 1970.
    pub expires: u64,
}

/// The attempts of a process, oldest first.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<Vec<Entry>>);

struct Entry {
    provider: String,
    attempt: Attempt,
    progress: watch::Receiver<Progress>,
    code: Option<oneshot::Sender<String>>,
    cancel: CancellationToken,
}

impl Attempts {
    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        // Each change of the list is one call, so a poisoned list is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels attempts. They have ended and released their ports when this function returns.
    pub(crate) async fn give_up(&self, is_to_go: impl Fn(&str, &Attempt) -> bool) {
        let gone: Vec<Entry> =
            self.lock().extract_if(.., |known| is_to_go(&known.provider, &known.attempt)).collect();
        for Entry { cancel, mut progress, .. } in gone {
            cancel.cancel();
            // The task has already ended and released its port.
            drop(progress.wait_for(|progress| *progress != Progress::Pending).await);
        }
    }
}
