//! The sign-ins to MCP servers that wait for the user.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_llm::oauth::{RedirectResult, parse_pasted};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::Error;

/// The time in which an abandoned sign-in frees its port.
const CANCEL_WAIT: Duration = Duration::from_secs(1);

/// The running sign-ins, by directory and server.
#[derive(Default)]
pub(crate) struct McpSignIns(Mutex<HashMap<(PathBuf, String), Arc<SignIn>>>);

/// A running sign-in.
pub(crate) struct SignIn {
    /// The page for the user.
    pub(crate) url: String,
    pub(crate) state: String,
    /// Whether a browser on this machine can complete it.
    pub(crate) listens: bool,
    pub(crate) pasted: mpsc::Sender<RedirectResult>,
    pub(crate) outcome: watch::Receiver<Option<Result<(), String>>>,
    pub(crate) cancel: CancellationToken,
}

impl McpSignIns {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<(PathBuf, String), Arc<SignIn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last sign-in of a server, which may have ended.
    pub(crate) fn find(&self, directory: &Path, name: &str) -> Option<Arc<SignIn>> {
        self.lock().get(&(directory.to_owned(), name.to_owned())).cloned()
    }

    /// Ends the sign-in of a server and waits until its port is free.
    pub(crate) async fn cancel(&self, directory: &Path, name: &str) {
        let found = self.lock().remove(&(directory.to_owned(), name.to_owned()));
        if let Some(sign_in) = found {
            sign_in.cancel.cancel();
            let mut outcome = sign_in.outcome.clone();
            drop(timeout(CANCEL_WAIT, outcome.wait_for(Option::is_some)).await);
        }
    }
}

impl SignIn {
    /// Continues with a text that the user pasted.
    pub(crate) async fn paste(&self, text: &str) -> Result<(), Error> {
        let result = parse_pasted(text, &self.state).map_err(|error| Error::invalid(error.to_string()))?;
        // If the task has ended, its outcome is known.
        drop(self.pasted.send(result).await);
        Ok(())
    }

    /// Reports whether it waits for the user.
    pub(crate) fn is_running(&self) -> bool {
        self.outcome.borrow().is_none()
    }

    /// Waits for the end.
    pub(crate) async fn outcome(&self) -> Result<(), String> {
        let mut outcome = self.outcome.clone();
        let outcome = outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err("The sign-in was cancelled.".to_owned()))
    }
}
