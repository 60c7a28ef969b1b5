//! The body of a prompt as clients send it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{MessageId, OutputFormat, PartInput, Principal, PromptInput, PromptModel};

/// The body of a prompt. Older clients send the parts under the key `content`.
#[derive(Debug, Deserialize)]
pub struct PromptBody {
    #[serde(rename = "messageID")]
    message_id: Option<MessageId>,
    model: Option<PromptModel>,
    chosen: Option<bool>,
    agent: Option<String>,
    #[serde(rename = "noReply")]
    no_reply: Option<bool>,
    tools: Option<BTreeMap<String, bool>>,
    format: Option<OutputFormat>,
    system: Option<String>,
    variant: Option<String>,
    parts: Option<Vec<PartInput>>,
    content: Option<Content>,
}

/// The content of a prompt in the format of older clients.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<PartInput>),
}

impl PromptBody {
    /// Returns the prompt; `None` if it has no parts. `parts` has precedence over `content`.
    #[must_use]
    pub fn input(self) -> Option<PromptInput> {
        let parts = match (self.parts, self.content) {
            (Some(parts), _) | (None, Some(Content::Parts(parts))) => parts,
            (None, Some(Content::Text(text))) => vec![PartInput::text(text)],
            (None, None) => return None,
        };
        Some(PromptInput {
            message_id: self.message_id,
            model: self.model,
            chosen: self.chosen,
            agent: self.agent,
            no_reply: self.no_reply,
            tools: self.tools,
            format: self.format,
            system: self.system,
            variant: self.variant,
            parts,
            by: Principal::default(),
        })
    }
}
