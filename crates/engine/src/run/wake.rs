//! Wakes the run of a session for an admitted prompt.

use std::sync::Arc;

use codewright_proto::SessionId;

use super::table::Turn;
use crate::inner::Inner;

/// Ensures that a run answers the prompt that was just admitted to a session.
pub(crate) fn wake(inner: &Arc<Inner>, id: &SessionId) -> Turn {
    let (turn, entry) = inner.runs.admit(id, &inner.cancel);
    if let Some(entry) = entry {
        (inner.start_run)(inner, entry);
    }
    turn
}
