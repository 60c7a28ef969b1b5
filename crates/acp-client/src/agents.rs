//! The agents of one directory: one process for each, started when it is first needed.
//!
//! A process that ends is started again with the next prompt. A prompt is never repeated, because it may have had an
//! effect. An agent that ends soon after each start is started again only after a growing delay.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agent::Agent;
use crate::error::Error;
use crate::host::{Host, Spec};

/// The number of agents that run in a directory. The least recently used one ends for another.
const MAX_AGENTS: usize = 16;
/// The wait before the first restart. Each further one waits four times as long.
const FIRST_RESTART: Duration = Duration::from_secs(1);
/// The longest wait before a restart.
const MAX_RESTART: Duration = Duration::from_secs(64);
/// The life of a process after which earlier restarts do not count.
const STABLE: Duration = Duration::from_secs(60);
/// The time in which all agents end.
const CLOSE_DEADLINE: Duration = Duration::from_secs(6);

/// The agents of a directory. Clones share everything.
#[derive(Clone)]
pub struct Agents(Arc<Shared>);

struct Shared {
    host: Arc<dyn Host>,
    entries: Mutex<Vec<Arc<Entry>>>,
    tasks: TaskTracker,
    /// Cancelled when all agents end.
    cancel: CancellationToken,
}

struct Entry {
    spec: Spec,
    used: Mutex<Instant>,
    /// Locked while the agent starts, so that it starts once.
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<(Arc<Agent>, Instant)>,
    /// The number of starts in a row that did not last.
    failures: u32,
    /// When the last failure was noticed.
    failed: Option<Instant>,
}

impl Agents {
    /// No agent is started.
    #[must_use]
    pub fn new(host: Arc<dyn Host>) -> Self {
        let (entries, tasks, cancel) = (Mutex::default(), TaskTracker::new(), CancellationToken::new());
        Self(Arc::new(Shared { host, entries, tasks, cancel }))
    }

    /// Returns a running agent, which is started if necessary.
    ///
    /// # Errors
    ///
    /// Fails if the agent cannot start.
    pub async fn connect(&self, spec: &Spec) -> Result<Arc<Agent>, Error> {
        let entry = self.entry(spec).await;
        let mut state = entry.state.lock().await;
        if let Some((agent, _)) = state.running.as_ref().filter(|(agent, _)| !agent.is_closed()) {
            return Ok(agent.clone());
        }
        if let Some((agent, started)) = state.running.take() {
            agent.end().await;
            state.failures = if started.elapsed() < STABLE { state.failures + 1 } else { 0 };
            state.failed = Some(Instant::now());
        }
        let until = state.failed.map(|failed| failed + delay(state.failures));
        if let Some(wait) = until.map(|until| until.saturating_duration_since(Instant::now()))
            && !wait.is_zero()
        {
            self.0.host.log(&spec.name, &format!("it starts again in {} ms", wait.as_millis()));
            sleep(wait).await;
        }
        if self.0.cancel.is_cancelled() {
            return Err(Error::Failed(format!(
                "the agent `{}` cannot start: the directory is closed",
                spec.name
            )));
        }
        match Agent::start(spec, &self.0.host, &self.0.tasks).await {
            Ok(agent) => {
                state.running = Some((agent.clone(), Instant::now()));
                Ok(agent)
            }
            Err(error) => {
                state.failures += 1;
                state.failed = Some(Instant::now());
                Err(error)
            }
        }
    }

    /// Ends all agents.
    pub async fn close(&self) {
        self.0.cancel.cancel();
        let entries = std::mem::take(&mut *self.entries());
        let ending = entries.iter().map(|entry| entry.end());
        drop(timeout(CLOSE_DEADLINE, futures_util::future::join_all(ending)).await);
        self.0.tasks.close();
        drop(timeout(CLOSE_DEADLINE, self.0.tasks.wait()).await);
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entry of an agent. An agent whose configuration changed ends.
    async fn entry(&self, spec: &Spec) -> Arc<Entry> {
        let (entry, removed) = {
            let mut entries = self.entries();
            if let Some(entry) = entries.iter().find(|entry| entry.spec == *spec) {
                *entry.used() = Instant::now();
                return entry.clone();
            }
            let is_old = |entry: &Arc<Entry>| {
                entry.spec.name == spec.name && entry.spec.is_read_only == spec.is_read_only
            };
            let mut old = entries.iter().position(is_old);
            if old.is_none() && entries.len() >= MAX_AGENTS {
                old = entries.iter().enumerate().min_by_key(|(_, entry)| *entry.used()).map(|(at, _)| at);
            }
            let removed = old.map(|at| entries.remove(at));
            let used = Mutex::new(Instant::now());
            let entry = Arc::new(Entry { spec: spec.clone(), used, state: tokio::sync::Mutex::default() });
            entries.push(entry.clone());
            (entry, removed)
        };
        if let Some(removed) = removed {
            self.0.tasks.spawn(async move { removed.end().await });
        }
        entry
    }
}

impl Entry {
    fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn end(&self) {
        let running = self.state.lock().await.running.take();
        if let Some((agent, _)) = running {
            agent.end().await;
        }
    }
}

/// The wait before a start after some failures in a row.
fn delay(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        failures => (FIRST_RESTART * 4_u32.pow((failures - 1).min(8))).min(MAX_RESTART),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_wait_longer_each_time() {
        let seconds: Vec<_> = (0..7).map(|failures| delay(failures).as_secs()).collect();
        assert_eq!(seconds, [0, 1, 4, 16, 64, 64, 64]);
    }
}
