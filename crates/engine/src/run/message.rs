//! New messages and the events that store them.

use codewright_proto::{
    AssistantMessage, AssistantTime, Event, Message, MessagePath, Part, PartBody, PartId, PromptModel,
    TokenUsage, UserMessage,
};

use crate::inner::Inner;

/// Returns the empty answer of an agent to a prompt.
pub(crate) fn answer(
    inner: &Inner,
    path: MessagePath,
    prompt: &UserMessage,
    agent: &str,
    model: &PromptModel,
) -> AssistantMessage {
    AssistantMessage {
        id: inner.ids.message(),
        session_id: prompt.session_id.clone(),
        time: AssistantTime { created: inner.clock.now_ms(), completed: None },
        error: None,
        parent_id: prompt.id.clone(),
        model_id: model.model_id.clone(),
        provider_id: model.provider_id.clone(),
        mode: agent.to_owned(),
        agent: agent.to_owned(),
        path,
        summary: None,
        cost: 0.0,
        tokens: TokenUsage::default(),
        structured: None,
        variant: model.variant.clone(),
        finish: None,
    }
}

/// Returns the events that store a prompt with its parts. Parts without an id get one.
pub(crate) fn prompted(
    inner: &Inner,
    prompt: UserMessage,
    parts: impl IntoIterator<Item = (Option<PartId>, PartBody)>,
) -> Vec<Event> {
    let (session_id, message_id) = (prompt.session_id.clone(), prompt.id.clone());
    let time = prompt.time.created;
    let mut events =
        vec![Event::MessageUpdated { session_id: session_id.clone(), info: Message::User(prompt) }];
    events.extend(parts.into_iter().map(|(id, body)| {
        let id = id.unwrap_or_else(|| inner.ids.part());
        let part = Part { id, session_id: session_id.clone(), message_id: message_id.clone(), body };
        Event::PartUpdated { session_id: session_id.clone(), part, time }
    }));
    events
}
