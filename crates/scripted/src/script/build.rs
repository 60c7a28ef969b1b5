//! Scripts written in Rust: every piece starts small and is added to.

use std::time::Duration;

use serde_json::Value;

use super::{
    Args, Call, Checks, Content, Finish, Pace, Reply, Respond, Script, SessionScript, Step, Steps,
    StreamError, Turn, Usage,
};
use crate::flood::Flood;
use crate::request::Request;

impl Script {
    /// A script without turns, which answers everything with its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the text played for title requests.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets what compaction requests are answered with.
    #[must_use]
    pub fn summary(mut self, turn: impl Into<Turn>) -> Self {
        self.summary = Some(turn.into());
        self
    }

    /// Adds a turn.
    #[must_use]
    pub fn turn(mut self, turn: impl Into<Turn>) -> Self {
        self.turns.push(turn.into());
        self
    }

    /// Adds a turn of one text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.turn(Turn::text(text))
    }

    /// Adds a turn of one tool call.
    #[must_use]
    pub fn tool(self, name: impl Into<String>, args: impl Into<Args>) -> Self {
        self.turn(Turn::steps().tool(name, args))
    }

    /// Adds a script for the conversations that contain `marker`.
    #[must_use]
    pub fn session<T: Into<Turn>>(
        mut self,
        marker: impl Into<String>,
        turns: impl IntoIterator<Item = T>,
    ) -> Self {
        let turns = turns.into_iter().map(Into::into).collect();
        self.sessions.push(SessionScript { marker: marker.into(), turns, repeat: false });
        self
    }

    /// Sets what is played when the turns are used up.
    #[must_use]
    pub fn default_turn(mut self, turn: impl Into<Turn>) -> Self {
        self.default = Some(turn.into());
        self
    }

    /// Lets the turns begin again when used up.
    #[must_use]
    pub fn repeat(mut self) -> Self {
        self.repeat = true;
        self
    }

    /// Sets the model ids that are listed.
    #[must_use]
    pub fn models<M: Into<String>>(mut self, models: impl IntoIterator<Item = M>) -> Self {
        self.models = models.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a static page, served at `/__mock/pages/<name>`.
    #[must_use]
    pub fn page(mut self, name: impl Into<String>, reply: Reply) -> Self {
        self.pages.insert(name.into(), reply);
        self
    }

    /// Sets the characters a chunk has; 0 sends each text at once.
    #[must_use]
    pub fn chunk_size(mut self, chars: usize) -> Self {
        self.pace.chunk_size = Some(chars);
        self
    }

    /// Sets the pause after each chunk.
    #[must_use]
    pub fn chunk_delay_ms(mut self, milliseconds: u64) -> Self {
        self.pace.chunk_delay = Some(Duration::from_millis(milliseconds));
        self
    }

    /// Sets what happens to requests a provider would refuse.
    #[must_use]
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Lets the newest marker in the user's text pick the answer instead of the turn:
    /// `[[scn:hi]]`, `[[scn:stream:BYTES:DELTAS]]` or `[[scn:paced:COUNT:PER_SECOND]]`.
    #[must_use]
    pub fn scenarios(mut self) -> Self {
        self.scenarios = true;
        self
    }
}

impl Turn {
    /// An answer to be filled with steps.
    pub fn steps() -> Steps {
        Steps::default()
    }

    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Steps {
        Steps::default().text(text)
    }

    /// An answer of several tool calls at once.
    pub fn tools<N: Into<String>, A: Into<Args>>(calls: impl IntoIterator<Item = (N, A)>) -> Steps {
        calls.into_iter().fold(Steps::default(), |steps, (name, args)| steps.tool(name, args))
    }

    /// An HTTP error with the protocol's own error object.
    pub fn http_error(status: u16) -> Reply {
        Reply::new(status, Content::Standard)
    }

    /// A page, as a proxy between client and provider would send.
    pub fn html(status: u16, page: impl Into<String>) -> Reply {
        Reply::new(status, Content::Text(page.into())).header("content-type", "text/html; charset=utf-8")
    }

    /// These bytes, head and all, then the connection is closed.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Raw(bytes.into())
    }

    /// A turn computed from the request it answers.
    pub fn respond<T: Into<Self>>(answer: impl Fn(&Request) -> T + Send + Sync + 'static) -> Self {
        Self::Respond(Respond::new(move |request| answer(request).into()))
    }
}

impl Steps {
    /// Adds any step.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.step(Step::Text { text: text.into(), pace: Pace::default() })
    }

    /// Adds a thought.
    #[must_use]
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        self.step(Step::Reasoning {
            text: text.into(),
            signature: None,
            encrypted: None,
            pace: Pace::default(),
        })
    }

    /// Adds a tool call.
    #[must_use]
    pub fn tool(self, name: impl Into<String>, args: impl Into<Args>) -> Self {
        self.step(Step::Tool {
            call: Call { name: name.into(), args: args.into(), id: None },
            pace: Pace::default(),
        })
    }

    /// Adds `bytes` of text in `deltas` pieces, sent as fast as the socket takes them.
    #[must_use]
    pub fn flood(self, bytes: usize, deltas: usize) -> Self {
        self.step(Step::Flood(Flood { bytes, deltas }))
    }

    /// Adds a pause.
    #[must_use]
    pub fn delay(self, pause: Duration) -> Self {
        self.step(Step::Delay(pause))
    }

    /// Adds an error inside the stream, which ends it.
    #[must_use]
    pub fn stream_error(self, kind: impl Into<String>, message: impl Into<String>) -> Self {
        self.step(Step::StreamError(StreamError {
            kind: Some(kind.into()),
            code: None,
            message: message.into(),
        }))
    }

    /// Breaks the connection in the middle of an event.
    #[must_use]
    pub fn disconnect(self) -> Self {
        self.step(Step::Disconnect)
    }

    /// Sends nothing more until the peer leaves.
    #[must_use]
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// Cuts what the last step sends into chunks of so many characters.
    #[must_use]
    pub fn chunk_size(mut self, chars: usize) -> Self {
        if let Some(pace) = self.last_pace() {
            pace.chunk_size = Some(chars);
        }
        self
    }

    /// Pauses after each chunk of the last step.
    #[must_use]
    pub fn chunk_delay_ms(mut self, milliseconds: u64) -> Self {
        if let Some(pace) = self.last_pace() {
            pace.chunk_delay = Some(Duration::from_millis(milliseconds));
        }
        self
    }

    /// Gives the last step, a tool call, an id of its own.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        if let Some(Step::Tool { call, .. }) = self.steps.last_mut() {
            call.id = Some(id.into());
        }
        self
    }

    /// Gives the last step, a thought, a signature of its own.
    #[must_use]
    pub fn signature(mut self, value: impl Into<String>) -> Self {
        if let Some(Step::Reasoning { signature, .. }) = self.steps.last_mut() {
            *signature = Some(value.into());
        }
        self
    }

    /// Gives the last step, a thought, a sealed form of its own.
    #[must_use]
    pub fn encrypted(mut self, value: impl Into<String>) -> Self {
        if let Some(Step::Reasoning { encrypted, .. }) = self.steps.last_mut() {
            *encrypted = Some(value.into());
        }
        self
    }

    /// Sets the tokens this answer claims to have cost.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets why the model stopped.
    #[must_use]
    pub fn finish(mut self, finish: Finish) -> Self {
        self.finish = Some(finish);
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn last_pace(&mut self) -> Option<&mut Pace> {
        match self.steps.last_mut()? {
            Step::Text { pace, .. }
            | Step::Reasoning { pace, .. }
            | Step::Tool { pace, .. }
            | Step::AnyTool { pace, .. } => Some(pace),
            Step::Flood(_) | Step::Delay(_) | Step::StreamError(_) | Step::Disconnect | Step::Hang => None,
        }
    }
}

impl Reply {
    /// An answer without headers of its own.
    pub fn new(status: u16, body: Content) -> Self {
        Self { status, headers: Vec::new(), body, delay: Duration::ZERO }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body: text from a string, JSON from a value.
    #[must_use]
    pub fn body(mut self, body: impl Into<Content>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a pause before the answer.
    #[must_use]
    pub fn delay(mut self, pause: Duration) -> Self {
        self.delay = pause;
        self
    }
}

impl From<Steps> for Turn {
    fn from(steps: Steps) -> Self {
        Self::Steps(steps)
    }
}

impl From<Reply> for Turn {
    fn from(reply: Reply) -> Self {
        Self::Http(reply)
    }
}

impl From<Value> for Args {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl From<&str> for Args {
    fn from(raw: &str) -> Self {
        Self::Raw(raw.to_owned())
    }
}

impl From<String> for Args {
    fn from(raw: String) -> Self {
        Self::Raw(raw)
    }
}

impl From<Value> for Content {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
