//! Reporting the state of a session to clients.

use codewright_proto::{SessionId, SessionStatus, Signal};

use crate::inner::Inner;

/// Signals that a session is idle.
///
/// Clients receive this twice after a failed or aborted answer: once before the last events of the turn. The
/// authoritative state is [`Runs::is_running`](super::table::Runs::is_running).
pub(crate) fn signal_idle(inner: &Inner, id: &SessionId) {
    inner.store.signal(Signal::SessionStatus { session_id: id.clone(), status: SessionStatus::Idle });
    inner.store.signal(Signal::SessionIdle { session_id: id.clone() });
}

/// Sets the status of a running session and signals it.
pub(crate) fn set_status(inner: &Inner, id: &SessionId, status: SessionStatus) {
    inner.runs.set_status(id, &status);
    inner.store.signal(Signal::SessionStatus { session_id: id.clone(), status });
}
