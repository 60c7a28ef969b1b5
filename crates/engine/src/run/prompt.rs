//! Finds prompts in a transcript.

use codewright_proto::{Message, MessageWithParts, UserMessage};

/// Returns the last prompt of a transcript, with the message that contains its parts.
pub(crate) fn last_prompt(transcript: &[MessageWithParts]) -> Option<(&UserMessage, &MessageWithParts)> {
    transcript.iter().rev().find_map(|message| match &message.info {
        Message::User(prompt) => Some((prompt, message)),
        Message::Assistant(_) => None,
    })
}
