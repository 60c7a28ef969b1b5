//! Aborts the runs of a session and its subagents.

use std::time::Duration;

use codewright_proto::SessionId;

use crate::Error;
use crate::inner::Inner;

/// The longest wait of a caller for an aborted turn to end.
pub(crate) const ABORT_WAIT: Duration = Duration::from_secs(10);

/// Aborts the work in a session in every process. Returns whether there was any.
///
/// Subagents of the session are aborted first. A subagent never aborts its caller.
pub(crate) async fn stop(inner: &Inner, id: &SessionId) -> Result<bool, Error> {
    for child in inner.subagents.silence(id) {
        Box::pin(stop(inner, &child)).await?;
    }
    let turn = inner.runs.cancel(id);
    let is_held_elsewhere = inner.store.ask_to_stop(id).await;
    let was_running = turn.is_some();
    // A turn that cannot end must not keep the caller waiting.
    if let Some(turn) = turn {
        let _ = tokio::time::timeout(ABORT_WAIT, turn.ended()).await;
    }
    let is_held_elsewhere = is_held_elsewhere?;
    if is_held_elsewhere {
        let free = tokio::time::timeout(ABORT_WAIT, inner.store.wait_until_free(id)).await;
        free.unwrap_or(Ok(()))?;
    }
    Ok(is_held_elsewhere || was_running)
}

/// Cancels the background subagents of a session without waiting for their end.
pub(crate) fn cancel_subagents(inner: &Inner, id: &SessionId) {
    for child in inner.subagents.silence(id) {
        cancel_subagents(inner, &child);
        // It ends by itself.
        drop(inner.runs.cancel(&child));
    }
}
