//! The wire formats, one file each.
//!
//! A protocol consists of pure functions: they read a body ([`View`]), check it ([`Problems`]), and
//! write answers ([`Wire`]) and errors.

use serde_json::Value;

use crate::flood::Flood;
use crate::http::Headers;
use crate::request::View;
use crate::script::{Finish, StreamError, Usage};

mod anthropic;
mod bedrock;
mod chat;
mod cohere;
mod gemini;
mod picture;
mod problems;
mod responses;
mod rules;

pub use bedrock::bedrock_frame;
pub(crate) use problems::Problems;

/// The Unix time in all answers. It is fixed so that recordings are equal.
const CREATED: u64 = 1_700_000_000;

/// A wire format of a model provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// OpenAI Chat Completions, `POST */chat/completions`.
    Chat,
    /// Anthropic Messages, `POST */messages`.
    Anthropic,
    /// Gemini, `POST */models/…:streamGenerateContent`.
    Gemini,
    /// OpenAI Responses, `POST */responses`.
    Responses,
    /// Bedrock ConverseStream, `POST */model/…/converse-stream`.
    Bedrock,
    /// Cohere Chat, `POST */chat`.
    Cohere,
    /// Anthropic Messages on Vertex AI, `POST */publishers/anthropic/models/…:streamRawPredict`.
    Vertex,
}

impl Protocol {
    /// Returns the protocol of a path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with("/chat") {
            Some(Self::Cohere)
        } else if bedrock::requested_model(path).is_some() {
            Some(Self::Bedrock)
        } else if anthropic::vertex_model(path).is_some() {
            Some(Self::Vertex)
        } else if gemini::requested_model(path).is_some() {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    /// Returns the requested model, and whether the answer must be streamed.
    pub(crate) fn requested_model(self, path: &str, body: &Value) -> (String, bool) {
        match self {
            Self::Chat | Self::Anthropic | Self::Responses | Self::Cohere => (
                body["model"].as_str().unwrap_or_default().to_owned(),
                body["stream"].as_bool().unwrap_or_default(),
            ),
            Self::Bedrock => bedrock::requested_model(path).unwrap_or_default(),
            Self::Vertex => {
                let (model, stream) = anthropic::vertex_model(path).unwrap_or_default();
                // The path serves both forms, so the body decides.
                (model.to_owned(), stream && body["stream"].as_bool().unwrap_or_default())
            }
            Self::Gemini => {
                let (model, stream) = gemini::requested_model(path).unwrap_or_default();
                (model.to_owned(), stream)
            }
        }
    }

    /// Reads a body.
    pub(crate) fn view(self, body: &Value) -> View {
        match self {
            Self::Chat => chat::view(body),
            Self::Anthropic | Self::Vertex => anthropic::view(body),
            Self::Bedrock => bedrock::view(body),
            Self::Cohere => cohere::view(body),
            Self::Gemini => gemini::view(body),
            Self::Responses => responses::view(body),
        }
    }

    /// Returns the reasons why a provider would reject a request.
    pub(crate) fn check(self, headers: &Headers, body: &Value) -> Vec<String> {
        let mut problems = Problems::default();
        match self {
            Self::Chat => chat::check(body, &mut problems),
            Self::Anthropic => anthropic::check(headers, body, &mut problems),
            Self::Vertex => anthropic::check_vertex(headers, body, &mut problems),
            Self::Bedrock => bedrock::check(headers, body, &mut problems),
            Self::Cohere => cohere::check(body, &mut problems),
            Self::Gemini => gemini::check(body, &mut problems),
            Self::Responses => responses::check(body, &mut problems),
        }
        problems.into_list()
    }

    /// Returns the reasons why a provider would reject a body that is sent with the right headers.
    #[must_use]
    pub fn problems(self, body: &Value) -> Vec<String> {
        let headers =
            Headers::from_iter([("anthropic-version", "2023-06-01"), ("authorization", "Bearer key")]);
        self.check(&headers, body)
    }

    /// Returns a writer for one answer.
    pub(crate) fn wire(self, label: &str, model: &str, usage: Usage) -> Box<dyn Wire> {
        match self {
            Self::Chat => Box::new(chat::Chat::new(label, model, usage)),
            Self::Anthropic | Self::Vertex => Box::new(anthropic::Anthropic::new(label, model, usage)),
            Self::Bedrock => Box::new(bedrock::Bedrock::new(usage)),
            Self::Cohere => Box::new(cohere::Cohere::new(label, usage)),
            Self::Gemini => Box::new(gemini::Gemini::new(label, model, usage)),
            Self::Responses => Box::new(responses::Responses::new(label, model, usage)),
        }
    }

    /// Converts a neutral call id to this protocol's style.
    pub(crate) fn call_id(self, id: &str) -> String {
        match self {
            Self::Chat | Self::Gemini | Self::Responses | Self::Cohere => id.to_owned(),
            Self::Anthropic | Self::Vertex => id.replacen("call_", "toolu_", 1),
            Self::Bedrock => id.replacen("call_", "tooluse_", 1),
        }
    }

    /// Returns whether free-form calls exist. Other protocols send a normal call without arguments.
    pub(crate) fn has_custom_calls(self) -> bool {
        match self {
            Self::Responses => true,
            Self::Chat | Self::Anthropic | Self::Gemini | Self::Bedrock | Self::Cohere | Self::Vertex => {
                false
            }
        }
    }

    /// Returns the content type of streamed answers.
    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            Self::Bedrock => bedrock::STREAM_TYPE,
            Self::Chat | Self::Anthropic | Self::Gemini | Self::Responses | Self::Cohere | Self::Vertex => {
                "text/event-stream; charset=utf-8"
            }
        }
    }

    /// Returns the headers of an error, for protocols whose headers describe it.
    pub(crate) fn error_headers(self, kind: &str) -> Vec<(String, String)> {
        match self {
            Self::Bedrock => bedrock::error_headers(kind),
            Self::Chat | Self::Anthropic | Self::Gemini | Self::Responses | Self::Cohere | Self::Vertex => {
                Vec::new()
            }
        }
    }

    /// Returns an error in this protocol's format.
    pub(crate) fn error_body(self, kind: &str, message: &str) -> Value {
        match self {
            Self::Chat => chat::error_body(kind, message),
            Self::Anthropic | Self::Vertex => anthropic::error_body(kind, message),
            Self::Bedrock => bedrock::error_body(kind, message),
            Self::Cohere => cohere::error_body(kind, message),
            Self::Gemini => gemini::error_body(kind, message),
            Self::Responses => responses::error_body(kind, message),
        }
    }
}

/// The block that deltas belong to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Block<'a> {
    /// Text for the user.
    Text,
    /// The model's reasoning, its signature and its encrypted form.
    Reasoning { signature: &'a str, encrypted: &'a str },
    /// A tool call. A custom call has text as its input.
    Tool { id: &'a str, name: &'a str, is_custom: bool },
}

/// A finished block, for answers that are not streamed.
#[derive(Debug)]
pub(crate) enum Part {
    /// Text for the user.
    Text(String),
    /// The model's reasoning.
    Reasoning { text: String, signature: String, encrypted: String },
    /// A tool call, with arguments in the streamed form.
    Tool { id: String, name: String, args: String, is_custom: bool },
}

/// Writes an answer. Streamed events are appended to the buffer as a whole.
pub(crate) trait Wire: Send {
    /// Writes the events that open the answer.
    fn begin(&mut self, out: &mut Vec<u8>);
    /// Writes the events that open a block.
    fn open(&mut self, out: &mut Vec<u8>, block: Block<'_>);
    /// Writes a piece of the open block.
    fn delta(&mut self, out: &mut Vec<u8>, block: Block<'_>, piece: &str);
    /// Called after a flood was sent, possibly from the cache.
    fn after_flood(&mut self, _: Flood) {}
    /// Writes the events that close the block.
    fn close(&mut self, out: &mut Vec<u8>, block: Block<'_>);
    /// Writes an error inside the stream.
    fn error(&mut self, out: &mut Vec<u8>, error: &StreamError);
    /// Writes the events that close the answer.
    fn end(&mut self, out: &mut Vec<u8>, finish: &Finish);
    /// Returns the answer in one piece.
    fn whole(&self, parts: &[Part], finish: &Finish) -> Value;
}

/// Appends a value as JSON.
fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("a string or JSON value always serializes into memory");
}

/// Returns whether providers would accept a tool's name.
fn is_tool_name(name: &str, limit_bytes: usize) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= limit_bytes && name.bytes().all(is_allowed)
}
