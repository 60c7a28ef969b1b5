//! Scripts: the model's answers as turns made of steps, created in Rust or parsed from JSON.
//!
//! A script does not change while a server plays it; the server keeps the position. Everything here
//! is plain data, except [`Respond`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::flood::Flood;
use crate::request::Request;

mod build;
mod json;

/// The default number of characters in a streamed chunk.
const DEFAULT_CHUNK_CHARS: usize = 12;

/// The answers of a scripted model.
#[derive(Debug, Clone)]
pub struct Script {
    /// The answer to title requests, which use no turn.
    pub title: String,
    /// The answer to summary requests. Without it, they use a turn.
    pub summary: Option<Turn>,
    /// The turns of all conversations that have no session script, in order.
    pub turns: Vec<Turn>,
    /// Whether `turns` starts again at the end.
    pub repeat: bool,
    /// Scripts of separate conversations. The first match is used.
    pub sessions: Vec<SessionScript>,
    /// The answer after the last turn.
    pub default: Option<Turn>,
    /// The model ids that `GET */models` lists.
    pub models: Vec<String>,
    /// Static answers of `GET /__mock/pages/<name>`, for tools that download pages.
    pub pages: BTreeMap<String, Reply>,
    /// The pace of steps without their own.
    pub pace: Pace,
    /// How requests are handled that a provider would reject.
    pub checks: Checks,
    /// Whether a `[[scn:…]]` marker in the user's text selects the answer.
    pub scenarios: bool,
}

/// The turns of the conversations that contain a marker.
#[derive(Debug, Clone)]
pub struct SessionScript {
    /// A text in one of the conversation's user messages.
    pub marker: String,
    /// The answers in order.
    pub turns: Vec<Turn>,
    /// Whether `turns` starts again at the end.
    pub repeat: bool,
}

/// How a request is handled that a provider would reject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// It is answered with HTTP 400 and the problems, and uses no turn.
    Enforce,
    /// The problems are recorded, and the turn is played.
    Record,
    /// Requests are not checked.
    Off,
}

/// An answer of the model.
#[derive(Debug, Clone)]
pub enum Turn {
    /// A model's answer, streamed if requested.
    Steps(Steps),
    /// A plain HTTP answer, such as an error or a gateway's page.
    Http(Reply),
    /// The connection is closed without an answer.
    Empty,
    /// No answer is sent until the client disconnects.
    Silent,
    /// These bytes are sent, including the head. Then the connection is closed.
    Raw(Vec<u8>),
    /// The turn is computed from the request.
    Respond(Respond),
}

/// A model's answer, step by step.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The tokens that the answer reports.
    pub usage: Usage,
    /// The reason to stop; inferred from the steps if `None`.
    pub finish: Option<Finish>,
    /// Extra response headers.
    pub headers: Vec<(String, String)>,
}

/// A part of a model's answer.
#[derive(Debug, Clone)]
pub enum Step {
    /// Text for the user.
    Text {
        /// The whole text.
        text: String,
        /// The pace of the chunks.
        pace: Pace,
    },
    /// The model's reasoning.
    Reasoning {
        /// The whole text.
        text: String,
        /// The signature in protocols that have one; a fixed one if `None`.
        signature: Option<String>,
        /// The encrypted form in protocols that have one; a fixed one if `None`.
        encrypted: Option<String>,
        /// The pace of the chunks.
        pace: Pace,
    },
    /// A tool call.
    Tool {
        /// The call.
        call: Call,
        /// The pace of the arguments' chunks.
        pace: Pace,
    },
    /// The first of these calls whose tool the request offers, otherwise the first one.
    AnyTool {
        /// The choices, at least one.
        calls: Vec<Call>,
        /// The pace of the arguments' chunks.
        pace: Pace,
    },
    /// Long text, sent as fast as possible.
    Flood(Flood),
    /// A pause.
    Delay(Duration),
    /// An error inside the stream, which ends it.
    StreamError(StreamError),
    /// The connection is closed in the middle of an event.
    Disconnect,
    /// Nothing more is sent until the client disconnects.
    Hang,
}

/// A tool call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub args: Args,
    /// The call's id; derived from turn and step if `None`.
    pub id: Option<String>,
}

/// The arguments of a call.
#[derive(Debug, Clone)]
pub enum Args {
    /// A JSON value, sent as its text.
    Value(Value),
    /// Raw text, which may be invalid JSON.
    Raw(String),
    /// The input of a free-form tool. Protocols without such tools send `{}`.
    Custom(String),
}

/// How a text is split into chunks. `None` means the script's setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// Characters per chunk; 0 sends the text as a whole.
    pub chunk_size: Option<usize>,
    /// The pause after each chunk.
    pub chunk_delay: Option<Duration>,
}

/// An error inside the stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamError {
    /// The error's type, such as `overloaded_error`.
    pub kind: Option<String>,
    /// The error's code, in protocols that have one.
    pub code: Option<Value>,
    /// The error's text.
    pub message: String,
}

/// The tokens that an answer reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Input tokens without cached ones.
    pub input: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache.
    pub cache_write: u64,
    /// Reasoning tokens.
    pub reasoning: u64,
}

/// The reason to stop. Each protocol has its own word for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The answer is finished.
    Stop,
    /// The token limit was reached.
    Length,
    /// The model waits for tool results.
    Tool,
    /// A filter stopped the answer.
    ContentFilter,
    /// A custom word.
    Other(String),
}

/// A plain HTTP answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers. A `content-length` is sent even if it is wrong.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Content,
    /// A pause before the answer.
    pub delay: Duration,
}

/// The body of a plain answer.
#[derive(Debug, Clone)]
pub enum Content {
    /// The protocol's error object with a fixed message.
    Standard,
    /// A JSON value.
    Json(Value),
    /// Text.
    Text(String),
}

type Answer = dyn Fn(&Request) -> Turn + Send + Sync;

/// A function that computes a turn from the request.
#[derive(Clone)]
pub struct Respond(Arc<Answer>);

impl Default for Script {
    fn default() -> Self {
        Self {
            title: "Mock title".to_owned(),
            summary: None,
            turns: Vec::new(),
            repeat: false,
            sessions: Vec::new(),
            default: None,
            models: vec!["mock".to_owned()],
            pages: BTreeMap::new(),
            pace: Pace { chunk_size: Some(DEFAULT_CHUNK_CHARS), chunk_delay: None },
            checks: Checks::Enforce,
            scenarios: false,
        }
    }
}

impl Steps {
    /// Returns the reason to stop: the scripted one, or the one that the steps imply.
    pub(crate) fn stop_reason(&self) -> Finish {
        let calls = |step: &Step| matches!(step, Step::Tool { .. } | Step::AnyTool { .. });
        match &self.finish {
            Some(finish) => finish.clone(),
            None if self.steps.iter().any(calls) => Finish::Tool,
            None => Finish::Stop,
        }
    }
}

impl Args {
    /// Returns the text of these arguments in protocols with function calls.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Value(value) => value.to_string(),
            Self::Raw(raw) => raw.clone(),
            Self::Custom(_) => "{}".to_owned(),
        }
    }
}

impl Pace {
    /// Returns this pace, completed by another one.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            chunk_size: self.chunk_size.or(other.chunk_size),
            chunk_delay: self.chunk_delay.or(other.chunk_delay),
        }
    }

    /// Splits a text into chunks. An empty text is one empty chunk.
    pub(crate) fn pieces(self, text: &str) -> Vec<&str> {
        let size = self.chunk_size.unwrap_or(DEFAULT_CHUNK_CHARS);
        if size == 0 || text.is_empty() {
            return vec![text];
        }
        let starts = text.char_indices().map(|(at, _)| at).step_by(size);
        let ends = starts.clone().skip(1).chain([text.len()]);
        starts.zip(ends).map(|(start, end)| &text[start..end]).collect()
    }
}

impl Respond {
    fn new(answer: impl Fn(&Request) -> Turn + Send + Sync + 'static) -> Self {
        Self(Arc::new(answer))
    }

    /// Returns the turn for a request.
    pub(crate) fn answer(&self, request: &Request) -> Turn {
        (self.0)(request)
    }
}

impl fmt::Debug for Respond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Respond(..)")
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, output: 20, cache_read: 0, cache_write: 0, reasoning: 0 }
    }
}

impl From<&str> for Finish {
    fn from(word: &str) -> Self {
        match word {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "tool" => Self::Tool,
            "content_filter" => Self::ContentFilter,
            other => Self::Other(other.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, chars: usize, expected: &[&str]) {
        let pace = Pace { chunk_size: Some(chars), chunk_delay: None };
        assert_eq!(pace.pieces(text), expected);
    }

    #[test]
    fn a_text_is_split_between_characters() {
        check("héllo wörld", 4, &["héll", "o wö", "rld"]);
        check("abcd", 2, &["ab", "cd"]);
        check("abc", 5, &["abc"]);
        check("日本語", 1, &["日", "本", "語"]);
    }

    #[test]
    fn a_chunk_size_of_zero_sends_the_whole() {
        check("a long text", 0, &["a long text"]);
    }

    #[test]
    fn an_empty_text_is_one_empty_chunk() {
        check("", 3, &[""]);
    }
}
