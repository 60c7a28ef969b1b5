//! Splits the bytes of an answer into events.

use crate::Protocol;
use crate::eventstream::{FrameError, Frames};
use crate::sse::{Parser, TooLong};

/// A parser, with its state between two reads.
#[derive(Debug)]
pub(super) enum Framing {
    /// Server-sent events.
    Sse(Parser),
    /// Amazon's binary frames.
    Frames(Frames),
}

impl Framing {
    /// Returns the parser for servers of `protocol`.
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

    /// Returns whether the first character shows that an answer is JSON or a page instead of
    /// events.
    pub(super) fn is_text(&self) -> bool {
        match self {
            Self::Sse(_) => true,
            Self::Frames(_) => false,
        }
    }

    /// Passes each event that `bytes` completes to `on_event`.
    pub(super) fn feed<E: From<TooLong> + From<FrameError>>(
        &mut self,
        bytes: &[u8],
        on_event: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Sse(parser) => parser.feed(bytes, on_event),
            Self::Frames(frames) => frames.feed(bytes, on_event),
        }
    }

    /// Passes the last event to `on_event` after the connection has ended.
    pub(super) fn finish<E: From<TooLong> + From<FrameError>>(
        &mut self,
        on_event: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Sse(parser) => parser.finish(on_event),
            Self::Frames(frames) => Ok(frames.finish()?),
        }
    }
}
