//! Builder methods for scripts in Rust.

use std::time::Duration;

use serde_json::Value;

use super::{
    Args, Call, Checks, Content, Finish, Pace, Reply, Respond, Script, SessionScript, Step, Steps,
    StreamError, Turn, Usage,
};
use crate::flood::Flood;
use crate::request::Request;

impl Script {
    /// Creates a script without turns, which answers everything with its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the answer to title requests.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets the answer to summary requests.
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

    /// Adds a turn with one text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.turn(Turn::text(text))
    }

    /// Adds a turn with one tool call.
    #[must_use]
    pub fn tool(self, name: impl Into<String>, args: impl Into<Args>) -> Self {
        self.turn(Turn::steps().tool(name, args))
    }

    /// Adds a script for conversations that contain `marker`.
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

    /// Sets the answer after the last turn.
    #[must_use]
    pub fn default_turn(mut self, turn: impl Into<Turn>) -> Self {
        self.default = Some(turn.into());
        self
    }

    /// Makes the turns start again at the end.
    #[must_use]
    pub fn repeat(mut self) -> Self {
        self.repeat = true;
        self
    }

    /// Sets the listed model ids.
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

    /// Sets the characters per chunk; 0 sends each text as a whole.
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

    /// Sets how requests are handled that a provider would reject.
    #[must_use]
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Lets the last marker in the user's text select the answer instead of the turn: `[[scn:hi]]`,
    /// `[[scn:stream:BYTES:DELTAS]]` or `[[scn:paced:COUNT:PER_SECOND]]`.
    #[must_use]
    pub fn scenarios(mut self) -> Self {
        self.scenarios = true;
        self
    }
}

impl Turn {
    /// Creates an answer without steps.
    pub fn steps() -> Steps {
        Steps::default()
    }

    /// Creates an answer with one text.
    pub fn text(text: impl Into<String>) -> Steps {
        Steps::default().text(text)
    }

    /// Creates an answer with several tool calls.
    pub fn tools<N: Into<String>, A: Into<Args>>(calls: impl IntoIterator<Item = (N, A)>) -> Steps {
        calls.into_iter().fold(Steps::default(), |steps, (name, args)| steps.tool(name, args))
    }

    /// Creates an HTTP error with the protocol's error object.
    pub fn http_error(status: u16) -> Reply {
        Reply::new(status, Content::Standard)
    }

    /// Creates an HTML page, like the answer of a proxy.
    pub fn html(status: u16, page: impl Into<String>) -> Reply {
        Reply::new(status, Content::Text(page.into())).header("content-type", "text/html; charset=utf-8")
    }

    /// Creates a turn that sends these bytes, including the head, and closes the connection.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Raw(bytes.into())
    }

    /// Creates a turn that is computed from the request.
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

    /// Adds reasoning.
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

    /// Adds `bytes` of text in `deltas` pieces, sent as fast as possible.
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

    /// Closes the connection in the middle of an event.
    #[must_use]
    pub fn disconnect(self) -> Self {
        self.step(Step::Disconnect)
    }

    /// Sends nothing more until the client disconnects.
    #[must_use]
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// Sets the characters per chunk of the last step.
    #[must_use]
    pub fn chunk_size(mut self, chars: usize) -> Self {
        if let Some(pace) = self.last_pace() {
            pace.chunk_size = Some(chars);
        }
        self
    }

    /// Sets the pause after each chunk of the last step.
    #[must_use]
    pub fn chunk_delay_ms(mut self, milliseconds: u64) -> Self {
        if let Some(pace) = self.last_pace() {
            pace.chunk_delay = Some(Duration::from_millis(milliseconds));
        }
        self
    }

    /// Sets the id of the last step, a tool call.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        if let Some(Step::Tool { call, .. }) = self.steps.last_mut() {
            call.id = Some(id.into());
        }
        self
    }

    /// Sets the signature of the last step, a reasoning step.
    #[must_use]
    pub fn signature(mut self, value: impl Into<String>) -> Self {
        if let Some(Step::Reasoning { signature, .. }) = self.steps.last_mut() {
            *signature = Some(value.into());
        }
        self
    }

    /// Sets the encrypted form of the last step, a reasoning step.
    #[must_use]
    pub fn encrypted(mut self, value: impl Into<String>) -> Self {
        if let Some(Step::Reasoning { encrypted, .. }) = self.steps.last_mut() {
            *encrypted = Some(value.into());
        }
        self
    }

    /// Sets the tokens that the answer reports.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the reason to stop.
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
    /// Creates an answer without headers.
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
