//! Whether the server can take work: whether its store can be reached and written.
//!
//! The answer is a write that changes nothing. It is made once for all callers that ask within a second, so that probes
//! cost a bounded amount however many there are.

use std::time::Duration;

use codewright_engine::Engine;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// The deadline of a check.
const CHECK_DEADLINE: Duration = Duration::from_secs(4);
/// How long a result counts.
const VALID_FOR: Duration = Duration::from_secs(1);

/// The result of the last check.
#[derive(Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Result<(), &'static str>)>>);

impl Readiness {
    /// Checks the store. The error is the reason why the server is not ready.
    pub(crate) async fn check(&self, engine: &Engine) -> Result<(), &'static str> {
        // One check at a time: those who wait for it use its result.
        let mut last = self.0.lock().await;
        if let Some((at, result)) = *last
            && at.elapsed() < VALID_FOR
        {
            return result;
        }
        let result = match timeout(CHECK_DEADLINE, engine.events().probe()).await {
            Ok(Ok(())) => Ok(()),
            // The error may name files and addresses, which are in the log of the engine.
            Ok(Err(_)) => Err("the store cannot be written"),
            Err(_) => Err("the store does not answer"),
        };
        *last = Some((Instant::now(), result));
        result
    }
}
