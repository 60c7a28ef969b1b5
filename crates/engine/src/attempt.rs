//! Sign-ins that go on by themselves, for clients that look now and then how far they are.
//!
//! An attempt has a task, which waits for the user and stores what the sign-in gives. It is over after ten
//! minutes at the latest, and what became of it is told until then. A provider has one attempt at a time.

mod operations;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_proto::AttemptId;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// How long an attempt may take, and how long it is told what became of it.
const LIFE: Duration = Duration::from_secs(10 * 60);
/// Attempts that are known; the oldest is given up for another.
const MAX_ATTEMPTS: usize = 32;

/// How far an attempt is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It waits for the user.
    Pending,
    /// The credential is stored.
    Complete,
    /// The user or the server refused, and why.
    Failed(String),
    /// Time was up.
    Expired,
}

/// An attempt as clients see it.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Its name.
    pub id: AttemptId,
    /// What the user opens.
    pub url: String,
    /// What the user does there.
    pub instructions: String,
    /// Whether it ends by itself; otherwise the user brings a code back.
    pub is_automatic: bool,
    /// When it was begun and when its time is up, in milliseconds since 1970.
    pub created: u64,
    /// When its time is up, in milliseconds since 1970.
    pub expires: u64,
}

/// The attempts of a process, oldest first.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<Vec<Known>>);

struct Known {
    provider: String,
    attempt: Attempt,
    progress: watch::Receiver<Progress>,
    code: Option<oneshot::Sender<String>>,
    cancel: CancellationToken,
}

impl Attempts {
    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        // Every change of the list is one call, so a poisoned list is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up those that are to go; they have ended, and let go of their ports, when this returns.
    pub(crate) async fn give_up(&self, is_to_go: impl Fn(&str, &Attempt) -> bool) {
        let gone: Vec<Known> =
            self.lock().extract_if(.., |known| is_to_go(&known.provider, &known.attempt)).collect();
        for Known { cancel, mut progress, .. } in gone {
            cancel.cancel();
            // One whose task is gone already has nothing left to let go of.
            drop(progress.wait_for(|progress| *progress != Progress::Pending).await);
        }
    }
}
