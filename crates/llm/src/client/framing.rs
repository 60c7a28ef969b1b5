//! How the bytes of an answer are cut into events.

use crate::Protocol;
use crate::eventstream::{Broken, Frames};
use crate::sse::{Parser, TooLong};

/// The state of cutting between two reads.
#[derive(Debug)]
pub(super) enum Framing {
    /// Server-sent events.
    Sse(Parser),
    /// Amazon's binary frames.
    Frames(Frames),
}

impl Framing {
    /// How servers of `protocol` frame their events.
    pub(super) fn of(protocol: Protocol) -> Self {
        match protocol {
            Protocol::OpenAiChat
            | Protocol::OpenAiResponses
            | Protocol::Anthropic
            | Protocol::Gemini
            | Protocol::Cohere => Self::Sse(Parser::default()),
            Protocol::Bedrock => Self::Frames(Frames::default()),
        }
    }

    /// Whether an answer that is JSON or a page instead can be told by its first character.
    pub(super) fn is_text(&self) -> bool {
        match self {
            Self::Sse(_) => true,
            Self::Frames(_) => false,
        }
    }

    /// Hands every event that `bytes` completes to `on_event`.
    pub(super) fn feed<E: From<TooLong> + From<Broken>>(
        &mut self,
        bytes: &[u8],
        on_event: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Sse(parser) => parser.feed(bytes, on_event),
            Self::Frames(frames) => frames.feed(bytes, on_event),
        }
    }

    /// Hands over what is left when the connection has ended.
    pub(super) fn finish<E: From<TooLong> + From<Broken>>(
        &mut self,
        on_event: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Sse(parser) => parser.finish(on_event),
            Self::Frames(frames) => Ok(frames.finish()?),
        }
    }
}
