//! Calls that the user rejected.

use codewright_proto::{MessageWithParts, PartBody, ToolState};

/// The result of a call that the user rejected without a message. It ends the turn.
pub(crate) const REJECTED: &str = "The user rejected permission to use this specific tool call.";
/// The result of a question that the user rejected. It ends the turn.
const DISMISSED: &str = "The user dismissed this question";

/// Reports whether the user rejected a call without a message, which ends the turn.
pub(crate) fn is_refused(state: &ToolState) -> bool {
    matches!(state, ToolState::Error { error, .. } if error == REJECTED || error == DISMISSED)
}

/// Reports whether the user rejected a call of the last answer without a message.
pub(crate) fn was_refused(transcript: &[MessageWithParts]) -> bool {
    let parts = transcript.last().into_iter().flat_map(|last| &last.parts);
    parts.into_iter().any(|part| matches!(&part.body, PartBody::Tool(call) if is_refused(&call.state)))
}
