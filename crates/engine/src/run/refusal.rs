//! Calls that the user refused.

use codewright_proto::{MessageWithParts, PartBody, ToolState};

/// What the model is told when a user refuses a call without a word. The turn ends with it.
pub(crate) const REJECTED: &str = "The user rejected permission to use this specific tool call.";
/// What a question ends with that the user would not answer. The turn ends with it.
const DISMISSED: &str = "The user dismissed this question";

/// Whether the user refused a call without a word, which ends the turn.
pub(crate) fn is_refused(state: &ToolState) -> bool {
    matches!(state, ToolState::Error { error, .. } if error == REJECTED || error == DISMISSED)
}

/// Whether the user refused a call of the last answer without a word.
pub(crate) fn was_refused(transcript: &[MessageWithParts]) -> bool {
    let parts = transcript.last().into_iter().flat_map(|last| &last.parts);
    parts.into_iter().any(|part| matches!(&part.body, PartBody::Tool(call) if is_refused(&call.state)))
}
