//! What bodies and streams mean: one folder a wire protocol, and the choice between them.

pub(crate) mod anthropic;
pub(crate) mod bedrock;
pub(crate) mod cohere;
pub(crate) mod gemini;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;
#[cfg(test)]
mod prefix;
#[cfg(test)]
mod recorded;
mod repeat;
mod usage;

use std::hash::{BuildHasher, RandomState};

use serde_json::Value;

use crate::classify::Answer;
use crate::{Auth, Error, Model, ModelEvent, Protocol, Request, ToolSpec};

/// Bytes the arguments of one call may have, and calls one answer may make.
/// Beyond them the server is broken, and memory would be what gives way.
pub(crate) const ARGUMENTS_LIMIT_BYTES: usize = 16 * 1024 * 1024;
pub(crate) const CALLS_LIMIT: usize = 1024;

/// An empty answer is refused by some servers, and a call must have one.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// The path below the base URL, with a query if the protocol has one.
///
/// It may depend on both arguments: some protocols put the model there.
pub(crate) fn path(_request: &Request, model: &Model) -> String {
    match model.protocol {
        Protocol::OpenAiChat => openai_chat::PATH.to_owned(),
        Protocol::OpenAiResponses => openai_responses::PATH.to_owned(),
        Protocol::Anthropic => anthropic::path(model),
        Protocol::Bedrock => bedrock::path(model),
        Protocol::Cohere => cohere::PATH.to_owned(),
        Protocol::Gemini => gemini::path(model),
    }
}

/// Where the protocol's own servers look for a key.
pub(crate) fn auth(protocol: Protocol) -> Auth {
    match protocol {
        Protocol::OpenAiChat | Protocol::OpenAiResponses | Protocol::Bedrock | Protocol::Cohere => {
            Auth::Bearer
        }
        Protocol::Anthropic => Auth::Header("x-api-key"),
        Protocol::Gemini => Auth::Header("x-goog-api-key"),
    }
}

/// The body of a request.
pub(crate) fn lower(request: &Request, model: &Model) -> Value {
    match model.protocol {
        Protocol::OpenAiChat => openai_chat::request::lower(request, model),
        Protocol::OpenAiResponses => openai_responses::request::lower(request, model),
        Protocol::Anthropic => anthropic::request::lower(request, model),
        Protocol::Bedrock => bedrock::request::lower(request, model),
        Protocol::Cohere => cohere::request::lower(request, model),
        Protocol::Gemini => gemini::request::lower(request, model),
    }
}

/// The headers the protocol itself asks for.
pub(crate) fn headers(request: &Request, model: &Model) -> Vec<(&'static str, String)> {
    match model.protocol {
        Protocol::OpenAiChat | Protocol::Gemini | Protocol::Bedrock | Protocol::Cohere => Vec::new(),
        Protocol::OpenAiResponses => openai_responses::request::headers(request, model),
        Protocol::Anthropic => anthropic::request::headers(request, model),
    }
}

/// What to do about an answer with an error status.
pub(crate) fn classify(protocol: Protocol, answer: &Answer) -> Error {
    match protocol {
        // Both say it alike.
        Protocol::OpenAiChat | Protocol::OpenAiResponses => openai_chat::error::classify(answer),
        Protocol::Anthropic => anthropic::error::classify(answer),
        Protocol::Bedrock => bedrock::error::classify(answer),
        Protocol::Cohere => cohere::error::classify(answer),
        Protocol::Gemini => gemini::error::classify(answer),
    }
}

/// Reads an answer of any protocol.
#[derive(Debug)]
pub(crate) enum Decoder {
    OpenAiChat(openai_chat::stream::Stream),
    OpenAiResponses(openai_responses::stream::Stream),
    Anthropic(anthropic::stream::Stream),
    Bedrock(bedrock::stream::Stream),
    Cohere(cohere::stream::Stream),
    Gemini(gemini::stream::Stream),
}

impl Decoder {
    pub(crate) fn new(protocol: Protocol) -> Self {
        match protocol {
            Protocol::OpenAiChat => Self::OpenAiChat(openai_chat::stream::Stream::default()),
            Protocol::OpenAiResponses => Self::OpenAiResponses(openai_responses::stream::Stream::default()),
            Protocol::Anthropic => Self::Anthropic(anthropic::stream::Stream::default()),
            Protocol::Bedrock => Self::Bedrock(bedrock::stream::Stream::default()),
            Protocol::Cohere => Self::Cohere(cohere::stream::Stream::default()),
            Protocol::Gemini => Self::Gemini(gemini::stream::Stream::default()),
        }
    }

    /// Calls of these tools may come printed as text; of no matter where servers read them themselves.
    pub(crate) fn set_tools(&mut self, tools: &[ToolSpec]) {
        if let Self::OpenAiChat(stream) = self {
            stream.set_tools(tools);
        }
    }

    /// Reads the data of one event of the stream.
    pub(crate) fn push(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        match self {
            Self::OpenAiChat(stream) => stream.push(data, out),
            Self::OpenAiResponses(stream) => stream.push(data, out),
            Self::Anthropic(stream) => stream.push(data, out),
            Self::Bedrock(stream) => stream.push(data, out),
            Self::Cohere(stream) => stream.push(data, out),
            Self::Gemini(stream) => stream.push(data, out),
        }
    }

    /// Reads an answer that came in one piece, from a server that does not stream.
    pub(crate) fn push_whole(&mut self, body: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        match self {
            Self::OpenAiChat(stream) => stream.push_whole(body, out),
            Self::OpenAiResponses(stream) => stream.push_whole(body, out),
            Self::Anthropic(stream) => stream.push_whole(body, out),
            // Frames are no text, so nothing else is ever taken for an answer.
            Self::Bedrock(stream) => stream.push(body, out),
            Self::Cohere(stream) => stream.push_whole(body, out),
            Self::Gemini(stream) => stream.push_whole(body, out),
        }
    }

    /// The connection has ended; says whether the answer had.
    pub(crate) fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        match self {
            Self::OpenAiChat(stream) => stream.finish(out),
            Self::OpenAiResponses(stream) => stream.finish(out),
            Self::Anthropic(stream) => stream.finish(out),
            Self::Bedrock(stream) => stream.finish(out),
            Self::Cohere(stream) => stream.finish(out),
            Self::Gemini(stream) => stream.finish(out),
        }
    }

    /// The model has given its reason to stop; only trailing numbers are awaited.
    pub(crate) fn is_stopped(&self) -> bool {
        match self {
            Self::OpenAiChat(stream) => stream.is_stopped(),
            Self::OpenAiResponses(stream) => stream.is_stopped(),
            Self::Anthropic(stream) => stream.is_stopped(),
            Self::Bedrock(stream) => stream.is_stopped(),
            // The numbers come with the reason.
            Self::Cohere(stream) => stream.is_done(),
            Self::Gemini(stream) => stream.is_stopped(),
        }
    }

    /// `Finish` has been given out; nothing that follows matters.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::OpenAiChat(stream) => stream.is_done(),
            Self::OpenAiResponses(stream) => stream.is_done(),
            Self::Anthropic(stream) => stream.is_done(),
            Self::Bedrock(stream) => stream.is_done(),
            Self::Cohere(stream) => stream.is_done(),
            Self::Gemini(stream) => stream.is_done(),
        }
    }
}

/// An id for a call whose server gives none. It must differ from all others
/// of the conversation, which no decoder knows, so it is drawn at random.
pub(crate) fn made_up_id(number: usize) -> String {
    format!("call_{:016x}", RandomState::new().hash_one(number))
}

/// The error for a connection that ended before the answer did.
pub(crate) fn cut_short() -> Error {
    Error::busy("connection closed before the answer was complete")
}

/// The error for an event that is not what the protocol allows.
pub(crate) fn malformed(data: &str, why: &serde_json::Error) -> Error {
    Error::rejected(format!(
        "the answer holds an event that cannot be read ({why}): {}",
        crate::error::cut(data, 300)
    ))
}

/// The error for an answer that outgrew a bound.
pub(crate) fn too_much(what: &str) -> Error {
    Error::rejected(format!("the answer holds {what}"))
}
