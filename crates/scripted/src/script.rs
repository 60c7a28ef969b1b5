//! What the model will answer: turns made of steps, written in Rust or read
//! from JSON.
//!
//! A script is immutable once a server plays it; which turn is next is the
//! server's business. Everything here is plain data, but for [`Respond`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::flood::Flood;
use crate::request::Request;

mod build;
mod json;

/// Characters a streamed chunk has unless the script says otherwise.
const DEFAULT_CHUNK_CHARS: usize = 12;

/// Everything a scripted model knows.
#[derive(Debug, Clone)]
pub struct Script {
    /// The text played for title requests, which use up no turn.
    pub title: String,
    /// Played for compaction requests; without it they use up a turn.
    pub summary: Option<Turn>,
    /// The turns of every conversation that no session claims, in order.
    pub turns: Vec<Turn>,
    /// Whether `turns` begins again when used up.
    pub repeat: bool,
    /// Scripts for conversations of their own, the first match wins.
    pub sessions: Vec<SessionScript>,
    /// Played when the turns are used up.
    pub default: Option<Turn>,
    /// The model ids `GET */models` lists.
    pub models: Vec<String>,
    /// Static answers to `GET /__mock/pages/<name>`, for tools that fetch.
    pub pages: BTreeMap<String, Reply>,
    /// How text is cut unless a step says otherwise.
    pub pace: Pace,
    /// What happens to requests a provider would refuse.
    pub checks: Checks,
    /// Whether a `[[scn:…]]` marker in the user's text picks the answer.
    pub scenarios: bool,
}

/// The turns of the conversations that contain a marker.
#[derive(Debug, Clone)]
pub struct SessionScript {
    /// Occurs in the text of one of the conversation's user messages.
    pub marker: String,
    /// What is answered, in order.
    pub turns: Vec<Turn>,
    /// Whether `turns` begins again when used up.
    pub repeat: bool,
}

/// What happens to a request that a provider would refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// It is answered with HTTP 400 and the problems, and uses up no turn.
    Enforce,
    /// The problems are recorded, the turn is played.
    Record,
    /// Nothing is checked.
    Off,
}

/// One answer of the model.
#[derive(Debug, Clone)]
pub enum Turn {
    /// A model's answer, streamed if the request asks for it.
    Steps(Steps),
    /// A plain HTTP answer: an error, a gateway's page.
    Http(Reply),
    /// The connection is closed without an answer.
    Empty,
    /// No answer comes, until the peer leaves.
    Silent,
    /// These bytes, head and all, then the connection is closed.
    Raw(Vec<u8>),
    /// The turn is computed from the request.
    Respond(Respond),
}

/// A model's answer, step by step.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    /// What is sent, in order.
    pub steps: Vec<Step>,
    /// The tokens this answer claims to have cost.
    pub usage: Usage,
    /// Why the model stopped; inferred from the steps when absent.
    pub finish: Option<Finish>,
    /// Extra response headers.
    pub headers: Vec<(String, String)>,
}

/// One piece of a model's answer.
#[derive(Debug, Clone)]
pub enum Step {
    /// Text for the user.
    Text {
        /// The whole text.
        text: String,
        /// How it is cut.
        pace: Pace,
    },
    /// The model's thinking.
    Reasoning {
        /// The whole thought.
        text: String,
        /// What vouches for it in protocols that sign; a fixed one when absent.
        signature: Option<String>,
        /// Its sealed form in protocols that seal; a fixed one when absent.
        encrypted: Option<String>,
        /// How it is cut.
        pace: Pace,
    },
    /// A call of a tool.
    Tool {
        /// What is called with what.
        call: Call,
        /// How the arguments are cut.
        pace: Pace,
    },
    /// The first of these calls whose tool the request offers, else the first.
    AnyTool {
        /// The choices, at least one.
        calls: Vec<Call>,
        /// How the arguments are cut.
        pace: Pace,
    },
    /// Much text at once, as fast as the socket takes it.
    Flood(Flood),
    /// A pause.
    Delay(Duration),
    /// An error inside the stream, which ends it.
    StreamError(StreamError),
    /// The connection breaks in the middle of an event.
    Disconnect,
    /// Nothing more comes, until the peer leaves.
    Hang,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool's name.
    pub name: String,
    /// What it is called with.
    pub args: Args,
    /// The call's id; a fixed one by turn and step when absent.
    pub id: Option<String>,
}

/// What a tool is called with.
#[derive(Debug, Clone)]
pub enum Args {
    /// A JSON value, sent as its text.
    Value(Value),
    /// The text itself, which need not be JSON.
    Raw(String),
    /// The input of a free-form tool; protocols without those send `{}`.
    Custom(String),
}

/// How a text is cut into chunks; absent means what the script says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// Characters a chunk; 0 sends the whole at once.
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

/// The tokens an answer claims to have cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Tokens read, the cached ones not among them.
    pub input: u64,
    /// Tokens written, the reasoning ones among them.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache.
    pub cache_write: u64,
    /// Tokens thought.
    pub reasoning: u64,
}

/// Why the model stopped; each protocol has its own word for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// It had nothing more to say.
    Stop,
    /// It ran out of tokens.
    Length,
    /// It waits for tool results.
    Tool,
    /// It was stopped.
    ContentFilter,
    /// A word sent as it is.
    Other(String),
}

/// A plain HTTP answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers; a `content-length` given here is sent even if it lies.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Content,
    /// A pause before the answer.
    pub delay: Duration,
}

/// The body of a plain answer.
#[derive(Debug, Clone)]
pub enum Content {
    /// The protocol's own error object with a fixed message.
    Standard,
    /// A JSON value.
    Json(Value),
    /// Text.
    Text(String),
}

type Answer = dyn Fn(&Request) -> Turn + Send + Sync;

/// A turn computed from the request it answers.
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
    /// Why the model stopped: as said, or as the steps imply.
    pub(crate) fn finished(&self) -> Finish {
        let calls = |step: &Step| matches!(step, Step::Tool { .. } | Step::AnyTool { .. });
        match &self.finish {
            Some(finish) => finish.clone(),
            None if self.steps.iter().any(calls) => Finish::Tool,
            None => Finish::Stop,
        }
    }
}

impl Args {
    /// The text sent for these arguments in a protocol of function calls.
    pub(crate) fn wire(&self) -> String {
        match self {
            Self::Value(value) => value.to_string(),
            Self::Raw(raw) => raw.clone(),
            Self::Custom(_) => "{}".to_owned(),
        }
    }
}

impl Pace {
    /// This pace, completed by the script's.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            chunk_size: self.chunk_size.or(other.chunk_size),
            chunk_delay: self.chunk_delay.or(other.chunk_delay),
        }
    }

    /// The chunks of a text; an empty text is one empty chunk.
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

    /// The turn for this request.
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
    fn a_text_is_cut_between_characters() {
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
