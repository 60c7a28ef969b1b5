//! The answer to one request, as it comes in.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::failure;
use super::framing::Framing;
use crate::classify::{describe, is_html};
use crate::error::cut;
use crate::eventstream::{Broken, FRAME_LIMIT_BYTES};
use crate::protocol::{Decoder, cut_short, too_much};
use crate::sse::{EVENT_LIMIT_BYTES, TooLong};
use crate::{Error, Model, ModelEvent, Timeouts, ToolSpec};

/// Bytes an answer in one piece may have, and of a page that is no answer.
const WHOLE_LIMIT_BYTES: usize = 32 * 1024 * 1024;
const PAGE_LIMIT_BYTES: usize = 64 * 1024;
/// How long numbers are waited for once the model has stopped; some servers
/// never end their stream.
const TRAILER_WAIT: Duration = Duration::from_secs(5);
/// How long the end of a finished answer is waited for, so that its connection can be used again.
const END_WAIT: Duration = Duration::from_millis(50);

/// The answer to one request; dropping it ends the request.
#[derive(Debug)]
pub struct EventStream {
    response: Option<reqwest::Response>,
    form: Form,
    framing: Framing,
    decoder: Decoder,
    ready: VecDeque<ModelEvent>,
    /// Kept between reads only for its allocation.
    decoded: Vec<ModelEvent>,
    failed: Option<Error>,
    begun: Instant,
    heard: Instant,
    timeouts: Timeouts,
    provider: String,
    url: String,
}

/// What the body turns out to be; its first character tells, headers do not always.
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
            decoder: Decoder::new(model.protocol),
            ready: VecDeque::new(),
            decoded: Vec::new(),
            failed: None,
            begun,
            heard: Instant::now(),
            timeouts: model.timeouts,
            provider: model.provider_id.clone(),
            url,
        }
    }

    /// Calls of these tools may come printed as text.
    pub(super) fn offer(&mut self, tools: &[ToolSpec]) {
        self.decoder.offer(tools);
    }

    /// The next event, or `None` after the last one or an error.
    ///
    /// May be dropped and called again: no event is lost, and no deadline is put off.
    pub async fn next(&mut self) -> Option<Result<ModelEvent, Error>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(error) = self.failed.take() {
                self.response = None;
                return Some(Err(error.asked(&self.provider, &self.url)));
            }
            if self.decoder.is_done() {
                self.end().await;
            }
            self.response.as_ref()?;
            self.read().await;
        }
    }

    /// The next event if it has been read already; the rest of what one piece of the answer held.
    pub fn try_next(&mut self) -> Option<ModelEvent> {
        self.ready.pop_front()
    }

    /// Waits for one piece of the answer and decodes all of it.
    async fn read(&mut self) {
        let deadline = self.deadline();
        let Some(response) = &mut self.response else { return };
        let result = match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                self.heard = Instant::now();
                self.take(&bytes)
            }
            Ok(Ok(None)) => self.close(),
            Ok(Err(why)) => self.decoder.finish(&mut self.decoded).map_err(|_| failure::broken(&why)),
            Err(_) => self.decoder.finish(&mut self.decoded).map_err(|_| self.silence()),
        };
        self.ready.extend(self.decoded.drain(..));
        self.failed = result.err();
    }

    fn deadline(&self) -> Instant {
        let idle =
            if self.decoder.is_stopped() { self.timeouts.idle.min(TRAILER_WAIT) } else { self.timeouts.idle };
        let quiet = self.heard + idle;
        self.timeouts.total.map_or(quiet, |total| quiet.min(self.begun + total))
    }

    fn silence(&self) -> Error {
        match self.timeouts.total {
            Some(total) if self.begun + total <= Instant::now() => {
                Error::busy(format!("the answer was not complete after {} s", total.as_secs_f64()))
            }
            _ => {
                let seconds = self.timeouts.idle.as_secs_f64();
                Error::busy(format!("the server fell silent: nothing came for {seconds} s"))
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
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
            Form::Unknown | Form::Events => return self.take_events(bytes),
        };
        buffer.extend_from_slice(bytes);
        if buffer.len() > limit { self.close() } else { Ok(()) }
    }

    fn take_events(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (decoder, out) = (&mut self.decoder, &mut self.decoded);
        self.framing.feed(bytes, |data| decoder.push(data, out).map_err(Stopped::Decoded))?;
        Ok(())
    }

    /// Nothing more will come, or nothing more is wanted.
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
            Form::Page(page) => Err(no_answer(&String::from_utf8_lossy(&page))),
            Form::Unknown | Form::Events => {
                // The last event may lack its end; if it cannot be read, it was cut.
                let last = self.framing.finish(|data| decoder.push(data, out).map_err(Stopped::Decoded));
                match last {
                    Err(Stopped::Decoded(error @ (Error::Overflow { .. } | Error::Auth { .. }))) => {
                        Err(error)
                    }
                    Err(Stopped::Decoded(error @ Error::Busy { .. })) => Err(error),
                    Err(Stopped::Decoded(Error::Rejected { .. }) | Stopped::TooLong | Stopped::Broken(_))
                    | Ok(()) => decoder.finish(out),
                }
            }
        };
        self.response = None;
        result
    }

    /// Lets the connection end well after the last event.
    async fn end(&mut self) {
        if let Some(mut response) = self.response.take() {
            let deadline = Instant::now() + END_WAIT;
            while let Ok(Ok(Some(_))) = timeout_at(deadline, response.chunk()).await {}
        }
    }
}

/// Why the parser stopped.
pub(super) enum Stopped {
    TooLong,
    Broken(Broken),
    Decoded(Error),
}

impl From<TooLong> for Stopped {
    fn from(_: TooLong) -> Self {
        Self::TooLong
    }
}

impl From<Broken> for Stopped {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::TooLong => too_much(&format!("an event of more than {EVENT_LIMIT_BYTES} bytes")),
            Stopped::Broken(Broken::TooLong) => {
                too_much(&format!("a frame of more than {FRAME_LIMIT_BYTES} bytes"))
            }
            Stopped::Broken(Broken::Foreign) => Self::rejected(
                "the server answered with something that is no event stream of Amazon's; is the base URL right?",
            ),
            Stopped::Broken(Broken::Malformed | Broken::Checksum | Broken::Cut) => {
                Self::busy("the answer was damaged on the way")
            }
            Stopped::Decoded(error) => error,
        }
    }
}

fn no_answer(page: &str) -> Error {
    if is_html(page) {
        return Error::rejected(format!("{}; is the base URL right?", describe(200, page)));
    }
    Error::rejected(format!(
        "the server answered with something that is no event stream: {}",
        cut(page.trim(), 200)
    ))
}
