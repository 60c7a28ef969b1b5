//! The tokens of requests to MCP servers, renewed before they expire.
//!
//! Requests of this process and of other processes share one renewal. New tokens are stored before they are used, because
//! the server may accept the old refresh token only once. A renewal continues if its request is cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_llm::vault::Lock;
use codewright_mcp::auth::{Grant, RenewError, Web, is_secure, renew};
use codewright_proto::Clock;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;
use url::Url;

use super::vault::TokenFile;

/// The time that a renewal waits for another process: the time limit of a renewal with all its requests.
const LOCK_WAIT: Duration = Duration::from_secs(60);
/// The interval of checks whether the other process has finished.
const LOCK_CHECK: Duration = Duration::from_millis(20);

/// The tokens of all servers. Clones share everything.
#[derive(Clone)]
pub(crate) struct Tokens(Arc<Shared>);

struct Shared {
    file: TokenFile,
    web: Arc<dyn Web>,
    clock: Clock,
    /// One renewal for each server that is used.
    renewals: Mutex<HashMap<(String, String), Renewal>>,
    tasks: TaskTracker,
}

type Renewal = watch::Receiver<Option<Result<Token, String>>>;

/// The token of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Valid(String),
    Missing,
    /// The sign-in server no longer renews it, for this reason. The user must sign in again.
    Refused(String),
}

impl Tokens {
    pub(crate) fn new(file: TokenFile, web: Arc<dyn Web>, clock: Clock, tasks: TaskTracker) -> Self {
        Self(Arc::new(Shared { file, web, clock, renewals: Mutex::default(), tasks }))
    }

    pub(crate) fn file(&self) -> &TokenFile {
        &self.0.file
    }

    pub(crate) fn web(&self) -> Arc<dyn Web> {
        self.0.web.clone()
    }

    /// Returns a token for a server, which is not `rejected`. Renews it if necessary.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if it cannot be renewed now.
    pub(crate) async fn token(&self, name: &str, url: &Url, rejected: Option<&str>) -> Result<Token, String> {
        // A stored token of another program may belong to a server that is not reached safely.
        if !is_secure(url) {
            return Ok(Token::Missing);
        }
        let Some(grant) = self.0.file.read(name, url)? else { return Ok(Token::Missing) };
        if self.0.is_usable(&grant, rejected) {
            return Ok(Token::Valid(grant.access));
        }
        let mut renewal = self.renewal(name, url, rejected);
        let outcome = renewal.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        let Some(outcome) = outcome else {
            return Err("The renewal of the sign-in was interrupted.".to_owned());
        };
        // A token is used until it expires if it cannot be renewed now.
        match outcome {
            Err(_) if rejected.is_none() && !grant.has_expired(self.0.clock.now_ms()) => {
                Ok(Token::Valid(grant.access))
            }
            outcome => outcome,
        }
    }

    /// Returns the running renewal, or starts one.
    fn renewal(&self, name: &str, url: &Url, rejected: Option<&str>) -> Renewal {
        let key = (name.to_owned(), url.to_string());
        let mut renewals = self.0.renewals();
        if let Some(renewal) = renewals.get(&key) {
            return renewal.clone();
        }
        let (sender, renewal) = watch::channel(None);
        renewals.insert(key.clone(), renewal.clone());
        let (shared, url, rejected) = (self.0.clone(), url.clone(), rejected.map(str::to_owned));
        self.0.tasks.spawn(async move {
            let outcome = shared.renew(&key.0, &url, rejected.as_deref()).await;
            shared.renewals().remove(&key);
            // If nobody waits any more, the tokens are stored anyway.
            drop(sender.send(Some(outcome)));
        });
        renewal
    }
}

impl Shared {
    fn renewals(&self) -> MutexGuard<'_, HashMap<(String, String), Renewal>> {
        self.renewals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_usable(&self, grant: &Grant, rejected: Option<&str>) -> bool {
        match rejected {
            Some(rejected) => grant.access != rejected,
            None => !grant.is_due(self.clock.now_ms()),
        }
    }

    async fn renew(&self, name: &str, url: &Url, rejected: Option<&str>) -> Result<Token, String> {
        let _lock = self.lock(name).await?;
        // Another process may have renewed the tokens while this one waited.
        let Some(old) = self.file.read(name, url)? else { return Ok(Token::Missing) };
        if self.is_usable(&old, rejected) {
            return Ok(Token::Valid(old.access));
        }
        let renewed = renew(self.web.clone(), &old, self.clock.now_ms()).await;
        let (file, name, url) = (self.file.clone(), name.to_owned(), url.clone());
        match renewed {
            Ok(new) => {
                let access = new.access.clone();
                blocking(move || file.replace(&name, &url, &old, &new)).await?;
                Ok(Token::Valid(access))
            }
            Err(RenewError::Unavailable(failure)) => Err(failure.to_string()),
            Err(RenewError::Refused(failure)) => {
                blocking(move || {
                    let is_same = file.read(&name, &url)?.is_some_and(|stored| stored == old);
                    if is_same { file.remove(&name, &url).map(drop) } else { Ok(()) }
                })
                .await?;
                Ok(Token::Refused(failure.to_string()))
            }
        }
    }

    /// Waits until no other process renews these tokens.
    async fn lock(&self, name: &str) -> Result<Lock, String> {
        let until = Instant::now() + LOCK_WAIT;
        while Instant::now() < until {
            if let Some(lock) = self.file.try_lock(name)? {
                return Ok(lock);
            }
            sleep(LOCK_CHECK).await;
        }
        Err(format!("Another process has been renewing the sign-in for {} s.", LOCK_WAIT.as_secs()))
    }
}

/// Runs on a thread that may wait for other processes.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?
}

#[cfg(test)]
mod tests;
