//! Requests for summaries: messages that the loop answers with a summary.

use codewright_proto::{CreatedTime, MessageId, PartBody, PromptModel, SessionId, UserMessage};

use crate::Error;
use crate::inner::Inner;
use crate::run::message;

/// The reason for a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A client requested it, and the turn ends after it.
    Requested,
    /// A client requested it, and the turn continues after it.
    RequestedDuringTurn,
    /// The context is full.
    Full,
    /// The provider rejected the request as too long.
    Refused,
}

/// Requests a summary for an agent with a model. Returns the message of the request.
pub(crate) async fn request_summary(
    inner: &Inner,
    id: &SessionId,
    agent: &str,
    model: &PromptModel,
    cause: Cause,
) -> Result<MessageId, Error> {
    let model = PromptModel { variant: None, ..model.clone() };
    let message = user_message(inner, id, agent, model);
    let message_id = message.id.clone();
    let (auto, overflow) = match cause {
        Cause::Requested => (false, None),
        Cause::RequestedDuringTurn => (true, None),
        Cause::Full => (true, Some(false)),
        Cause::Refused => (true, Some(true)),
    };
    let body = PartBody::Compaction { auto, overflow, tail_start_id: None };
    inner.store.append(message::prompted(inner, message, [(None, body)])).await?;
    Ok(message_id)
}

/// Returns an empty prompt for an agent with a model.
pub(super) fn user_message(inner: &Inner, id: &SessionId, agent: &str, model: PromptModel) -> UserMessage {
    UserMessage {
        id: inner.ids.message(),
        session_id: id.clone(),
        time: CreatedTime { created: inner.clock.now_ms() },
        format: None,
        summary: None,
        agent: agent.to_owned(),
        model,
        system: None,
        tools: None,
    }
}
