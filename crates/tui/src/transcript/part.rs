//! The parts of messages. A text is kept in one place, cut into blocks.

use std::sync::Arc;

use codewright_proto::{MessageId, Part, PartBody, PartId, Span, ToolPart};

use crate::blocks::Blocks;

/// A text that can grow, cut into blocks.
#[derive(Debug, Default)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) blocks: Blocks,
}

/// The body of a part, as it is displayed.
#[derive(Debug)]
pub(crate) enum Body {
    Text {
        text: Text,
        /// Whether the text was added by the program, or is not sent to the model.
        is_hidden: bool,
        is_complete: bool,
    },
    Reasoning {
        text: Text,
        time: Span,
    },
    Tool(ToolPart),
    /// A body without a text that grows.
    Other(PartBody),
}

/// A part of a message.
#[derive(Debug)]
pub(crate) struct PartEntry {
    pub(crate) id: PartId,
    pub(super) message_id: MessageId,
    pub(crate) body: Body,
    /// Increases with each change.
    pub(super) version: u64,
}

impl PartEntry {
    pub(super) fn new(part: Part, version: u64) -> Self {
        Self::with_blocks(part, version, Text::default())
    }

    /// Creates an entry. A text that starts with the old text keeps its blocks.
    fn with_blocks(part: Part, version: u64, old: Text) -> Self {
        let cut = |new: Arc<str>| {
            let blocks = if new.starts_with(&old.text) { old.blocks } else { Blocks::default() };
            let mut text = Text { text: new.to_string(), blocks };
            text.blocks.extend(&text.text);
            text
        };
        let body = match part.body {
            PartBody::Text(body) => Body::Text {
                is_hidden: body.synthetic.unwrap_or(false) || body.ignored.unwrap_or(false),
                is_complete: body.time.is_some_and(|time| time.end.is_some()),
                text: cut(body.text),
            },
            PartBody::Reasoning { text, time, .. } => Body::Reasoning { text: cut(text), time },
            PartBody::Tool(tool) => Body::Tool(tool),
            other => Body::Other(other),
        };
        Self { id: part.id, message_id: part.message_id, body, version }
    }

    /// Appends to the text of the part. Parts without a text do not change.
    pub(super) fn append(&mut self, delta: &str, version: u64) {
        if let Body::Text { text, .. } | Body::Reasoning { text, .. } = &mut self.body {
            text.text.push_str(delta);
            text.blocks.extend(&text.text);
            self.version = version;
        }
    }

    /// Replaces the part. A text that only grew keeps its blocks.
    pub(super) fn update(&mut self, part: Part, version: u64) {
        let old = match &mut self.body {
            Body::Text { text, .. } | Body::Reasoning { text, .. } => std::mem::take(text),
            Body::Tool(_) | Body::Other(_) => Text::default(),
        };
        *self = Self::with_blocks(part, version, old);
    }

    /// Returns the text of the part, if it has one.
    pub(crate) fn text(&self) -> Option<&Text> {
        match &self.body {
            Body::Text { text, .. } | Body::Reasoning { text, .. } => Some(text),
            Body::Tool(_) | Body::Other(_) => None,
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}
