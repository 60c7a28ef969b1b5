//! The wire protocols, one module each, and the functions that select one by the model.

pub(crate) mod anthropic;
pub(crate) mod bedrock;
pub(crate) mod cohere;
pub(crate) mod gemini;
pub(crate) mod limits;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;
#[cfg(test)]
mod prefix;
#[cfg(test)]
mod recorded;
mod repeat;
pub(crate) mod rules;
mod usage;

use serde_json::Value;

use crate::classify::Answer;
use crate::fit::{self, Fitted};
use crate::{Auth, Error, Model, ModelEvent, Protocol, Request, ToolSpec, quirk};

/// Returns the path under the base URL, with a query if the protocol has one.
///
/// Some protocols put the model into the path.
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

/// Returns how the protocol's own servers authenticate requests.
pub(crate) fn auth(protocol: Protocol) -> Auth {
    match protocol {
        Protocol::OpenAiChat | Protocol::OpenAiResponses | Protocol::Bedrock | Protocol::Cohere => {
            Auth::Bearer
        }
        Protocol::Anthropic => Auth::Header("x-api-key"),
        Protocol::Gemini => Auth::Header("x-goog-api-key"),
    }
}

/// Returns a request that obeys the rules of the provider.
pub(crate) fn fitted(request: &Request, model: &Model) -> Fitted {
    let rules = match model.protocol {
        Protocol::OpenAiChat => openai_chat::rules::of(model),
        Protocol::OpenAiResponses => openai_responses::rules::of(model),
        Protocol::Anthropic => anthropic::rules::of(model),
        Protocol::Bedrock => bedrock::rules::of(model),
        Protocol::Cohere => cohere::rules::RULES,
        Protocol::Gemini => gemini::rules::RULES,
    };
    fit::fit(&quirk::request(&model.quirks, request), model, &rules)
}

/// Returns the body of a request. It obeys the rules of the provider.
pub(crate) fn lower(request: &Request, model: &Model) -> Value {
    lower_fitted(&fitted(request, model).request, model)
}

/// Returns the body of a request that obeys the rules.
pub(crate) fn lower_fitted(request: &Request, model: &Model) -> Value {
    match model.protocol {
        Protocol::OpenAiChat => openai_chat::request::lower(request, model),
        Protocol::OpenAiResponses => openai_responses::request::lower(request, model),
        Protocol::Anthropic => anthropic::request::lower(request, model),
        Protocol::Bedrock => bedrock::request::lower(request, model),
        Protocol::Cohere => cohere::request::lower(request, model),
        Protocol::Gemini => gemini::request::lower(request, model),
    }
}

/// Returns the headers that the protocol needs.
pub(crate) fn headers(request: &Request, model: &Model) -> Vec<(&'static str, String)> {
    match model.protocol {
        Protocol::OpenAiChat | Protocol::Gemini | Protocol::Bedrock | Protocol::Cohere => Vec::new(),
        Protocol::OpenAiResponses => openai_responses::request::headers(request, model),
        Protocol::Anthropic => anthropic::request::headers(request, model),
    }
}

/// Returns the error for an answer with an error status.
pub(crate) fn classify(protocol: Protocol, answer: &Answer) -> Error {
    match protocol {
        // Both have the same format.
        Protocol::OpenAiChat | Protocol::OpenAiResponses => openai_chat::error::classify(answer),
        Protocol::Anthropic => anthropic::error::classify(answer),
        Protocol::Bedrock => bedrock::error::classify(answer),
        Protocol::Cohere => cohere::error::classify(answer),
        Protocol::Gemini => gemini::error::classify(answer),
    }
}

/// Decodes an answer of any protocol.
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

    /// Sets the tools whose calls the model may print as text. Only chat servers need them.
    pub(crate) fn set_tools(&mut self, tools: &[ToolSpec]) {
        if let Self::OpenAiChat(stream) = self {
            stream.set_tools(tools);
        }
    }

    /// Expects thoughts of which only the closing tag is written. Only chat servers pass them on.
    pub(crate) fn expect_thoughts(&mut self) {
        if let Self::OpenAiChat(stream) = self {
            stream.expect_thoughts();
        }
    }

    /// Decodes the data of one event of the stream.
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

    /// Decodes an answer that came in one piece, from a server that does not stream.
    pub(crate) fn push_whole(&mut self, body: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        match self {
            Self::OpenAiChat(stream) => stream.push_whole(body, out),
            Self::OpenAiResponses(stream) => stream.push_whole(body, out),
            Self::Anthropic(stream) => stream.push_whole(body, out),
            // Frames are binary, so text is never detected as a whole answer.
            Self::Bedrock(stream) => stream.push(body, out),
            Self::Cohere(stream) => stream.push_whole(body, out),
            Self::Gemini(stream) => stream.push_whole(body, out),
        }
    }

    /// Completes the answer after the connection has ended. Fails if it is incomplete.
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

    /// Returns whether the model has stopped, so that only usage numbers may follow.
    pub(crate) fn is_stopped(&self) -> bool {
        match self {
            Self::OpenAiChat(stream) => stream.is_stopped(),
            Self::OpenAiResponses(stream) => stream.is_stopped(),
            Self::Anthropic(stream) => stream.is_stopped(),
            Self::Bedrock(stream) => stream.is_stopped(),
            // The usage comes with the reason to stop.
            Self::Cohere(stream) => stream.is_done(),
            Self::Gemini(stream) => stream.is_stopped(),
        }
    }

    /// Returns whether `Finish` was emitted. Later events are ignored.
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
