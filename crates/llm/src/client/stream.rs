//! The stream of events of one answer.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::framing::Framing;
use super::unique::UniqueCalls;
use crate::classify::{describe, is_html};
use crate::error::cut;
use crate::eventstream::{FRAME_LIMIT_BYTES, FrameError};
use crate::fit::Names;
use crate::protocol::Decoder;
use crate::protocol::limits::{cut_short, too_much};
use crate::sse::{EVENT_LIMIT_BYTES, TooLong};
use crate::transport::failure;
use crate::{Error, Model, ModelEvent, Timeouts, ToolSpec};

/// Limit of an answer that comes in one piece, and of an HTML page.
const WHOLE_LIMIT_BYTES: usize = 32 * 1024 * 1024;
const PAGE_LIMIT_BYTES: usize = 64 * 1024;
/// Time limit for the usage numbers after the model has stopped. Some servers never close their
/// stream.
const TRAILER_WAIT: Duration = Duration::from_secs(5);
/// Time limit for the server to close a finished answer, so that the connection can be reused.
const END_WAIT: Duration = Duration::from_millis(50);

/// The events of one answer. Dropping it cancels the request.
#[derive(Debug)]
pub struct EventStream {
    response: Option<reqwest::Response>,
    form: Form,
    framing: Framing,
    decoder: Decoder,
    /// The names that events get back.
    names: Option<Names>,
    calls: UniqueCalls,
    ready: VecDeque<ModelEvent>,
    /// Its contents are moved out after each read; only the allocation is kept.
    decoded: Vec<ModelEvent>,
    failed: Option<Error>,
    begun: Instant,
    last_read: Instant,
    timeouts: Timeouts,
    provider: String,
    url: String,
}

/// The form of a body, detected from its first character because headers are not reliable.
#[derive(Debug)]
enum Form {
    Unknown,
    Events,
    Whole(Vec<u8>),
    Page(Vec<u8>),
}

impl EventStream {
    pub(super) fn new(response: reqwest::Response, model: &Model, url: String, begun: Instant) -> Self {
        let framing = Framing::of(model.protocol);
        Self {
            response: Some(response),
            form: if framing.is_text() { Form::Unknown } else { Form::Events },
            framing,
            decoder: decoder(model),
            names: None,
            calls: UniqueCalls::default(),
            ready: VecDeque::new(),
            decoded: Vec::new(),
            failed: None,
            begun,
            last_read: Instant::now(),
            timeouts: model.timeouts,
            provider: model.provider_id.clone(),
            url,
        }
    }

    /// Sets the names that events get back.
    pub(super) fn set_names(&mut self, names: Names) {
        self.names = Some(names);
    }

    /// Sets the tools whose calls the model may print as text.
    pub(super) fn set_tools(&mut self, tools: &[ToolSpec]) {
        self.decoder.set_tools(tools);
    }

    /// Returns the next event, or `None` after the last event or an error.
    ///
    /// The future may be dropped: no event is lost, and no deadline is extended.
    pub async fn next(&mut self) -> Option<Result<ModelEvent, Error>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(error) = self.failed.take() {
                self.response = None;
                return Some(Err(error.with_origin(&self.provider, &self.url)));
            }
            if self.decoder.is_done() {
                self.end().await;
            }
            self.response.as_ref()?;
            self.read().await;
        }
    }

    /// Returns the next event if it is already decoded. Does not wait.
    pub fn try_next(&mut self) -> Option<ModelEvent> {
        self.ready.pop_front()
    }

    /// Waits for one piece of the answer and decodes it.
    async fn read(&mut self) {
        let deadline = self.deadline();
        let Some(response) = &mut self.response else { return };
        let result = match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                self.last_read = Instant::now();
                self.push_bytes(&bytes)
            }
            Ok(Ok(None)) => self.close(),
            Ok(Err(why)) => self.decoder.finish(&mut self.decoded).map_err(|_| failure::broken(&why)),
            Err(_) => self.decoder.finish(&mut self.decoded).map_err(|_| self.timeout_error()),
        };
        let (names, calls) = (&self.names, &mut self.calls);
        let restored = |event| {
            let event = calls.rename(event);
            match names {
                Some(names) => names.restore(event),
                None => event,
            }
        };
        self.ready.extend(self.decoded.drain(..).map(restored));
        self.failed = result.err();
    }

    fn deadline(&self) -> Instant {
        let idle =
            if self.decoder.is_stopped() { self.timeouts.idle.min(TRAILER_WAIT) } else { self.timeouts.idle };
        let quiet = self.last_read + idle;
        self.timeouts.total.map_or(quiet, |total| quiet.min(self.begun + total))
    }

    fn timeout_error(&self) -> Error {
        match self.timeouts.total {
            Some(total) if self.begun + total <= Instant::now() => {
                Error::busy(format!("the answer was not complete after {} s", total.as_secs_f64()))
            }
            _ => {
                let seconds = self.timeouts.idle.as_secs_f64();
                Error::busy(format!("the server sent nothing for {seconds} s"))
            }
        }
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if matches!(self.form, Form::Unknown) {
            let first =
                bytes.trim_ascii_start().strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes.trim_ascii_start());
            self.form = match first.first() {
                None => Form::Unknown,
                Some(b'{' | b'[') => Form::Whole(Vec::new()),
                Some(b'<') => Form::Page(Vec::new()),
                Some(_) => Form::Events,
            };
        }
        let (buffer, limit) = match &mut self.form {
            Form::Whole(buffer) => (buffer, WHOLE_LIMIT_BYTES),
            Form::Page(buffer) => (buffer, PAGE_LIMIT_BYTES),
            Form::Unknown | Form::Events => return self.push_events(bytes),
        };
        buffer.extend_from_slice(bytes);
        if buffer.len() > limit { self.close() } else { Ok(()) }
    }

    fn push_events(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (decoder, out) = (&mut self.decoder, &mut self.decoded);
        self.framing.feed(bytes, |data| decoder.push(data, out).map_err(DecodeError::Protocol))?;
        Ok(())
    }

    /// Decodes the remaining bytes and closes the connection.
    fn close(&mut self) -> Result<(), Error> {
        let (decoder, out) = (&mut self.decoder, &mut self.decoded);
        let result = match std::mem::replace(&mut self.form, Form::Events) {
            Form::Whole(body) if body.len() > WHOLE_LIMIT_BYTES => {
                Err(too_much(&format!("more than {WHOLE_LIMIT_BYTES} bytes in one piece")))
            }
            Form::Whole(body) => match String::from_utf8_lossy(&body) {
                body if serde_json::from_str::<serde::de::IgnoredAny>(&body)
                    .is_err_and(|why| why.is_eof()) =>
                {
                    Err(cut_short())
                }
                body => decoder.push_whole(&body, out),
            },
            Form::Page(page) => Err(not_a_stream(&String::from_utf8_lossy(&page))),
            Form::Unknown | Form::Events => {
                // The last event may lack its blank line. If it cannot be decoded, it was cut off.
                let last = self.framing.finish(|data| decoder.push(data, out).map_err(DecodeError::Protocol));
                match last {
                    Err(DecodeError::Protocol(error @ (Error::Overflow { .. } | Error::Auth { .. }))) => {
                        Err(error)
                    }
                    Err(DecodeError::Protocol(error @ Error::Busy { .. })) => Err(error),
                    Err(
                        DecodeError::Protocol(Error::Rejected { .. })
                        | DecodeError::TooLong
                        | DecodeError::Frame(_),
                    )
                    | Ok(()) => decoder.finish(out),
                }
            }
        };
        self.response = None;
        result
    }

    /// Waits briefly for the server to close the answer, so that the connection can be reused.
    async fn end(&mut self) {
        if let Some(mut response) = self.response.take() {
            let deadline = Instant::now() + END_WAIT;
            while let Ok(Ok(Some(_))) = timeout_at(deadline, response.chunk()).await {}
        }
    }
}

fn decoder(model: &Model) -> Decoder {
    let mut decoder = Decoder::new(model.protocol);
    if model.capabilities.reasoning {
        decoder.expect_thoughts();
    }
    decoder
}

/// The error of a parser or a decoder.
pub(super) enum DecodeError {
    TooLong,
    Frame(FrameError),
    Protocol(Error),
}

impl From<TooLong> for DecodeError {
    fn from(_: TooLong) -> Self {
        Self::TooLong
    }
}

impl From<FrameError> for DecodeError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::TooLong => too_much(&format!("an event of more than {EVENT_LIMIT_BYTES} bytes")),
            DecodeError::Frame(FrameError::TooLong) => {
                too_much(&format!("a frame of more than {FRAME_LIMIT_BYTES} bytes"))
            }
            DecodeError::Frame(FrameError::Foreign) => {
                Self::rejected("the answer is not an Amazon event stream; is the base URL right?")
            }
            DecodeError::Frame(FrameError::Malformed | FrameError::Checksum | FrameError::Cut) => {
                Self::busy("the answer was damaged in transit")
            }
            DecodeError::Protocol(error) => error,
        }
    }
}

fn not_a_stream(page: &str) -> Error {
    if is_html(page) {
        return Error::rejected(format!("{}; is the base URL right?", describe(200, page)));
    }
    Error::rejected(format!("the answer is not an event stream: {}", cut(page.trim(), 200)))
}
