//! Events on their way into the log, in as few appends as may be.
//!
//! Each append is whole or not at all; what a process that dies leaves is a number of whole appends.

use codewright_proto::{Event, json_bytes};

use crate::Error;
use crate::inner::Inner;

/// How many events one append has.
const MAX_EVENTS: usize = 8_000;
/// How large the events of one append are, as JSON; one event alone may be larger.
const MAX_BYTES: usize = 32 * 1024 * 1024;

pub(crate) struct Batch<'a> {
    inner: &'a Inner,
    events: Vec<Event>,
    bytes: usize,
    seq: Option<u64>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(inner: &'a Inner) -> Self {
        Self { inner, events: Vec::new(), bytes: 0, seq: None }
    }

    /// Adds an event; stores those before it if they are enough.
    pub(crate) async fn push(&mut self, event: Event) -> Result<(), Error> {
        let bytes = json_bytes(&event);
        let is_full = self.events.len() >= MAX_EVENTS || self.bytes + bytes > MAX_BYTES;
        if is_full && !self.events.is_empty() {
            self.flush().await?;
        }
        self.bytes += bytes;
        self.events.push(event);
        Ok(())
    }

    /// Stores what is left.
    pub(crate) async fn flush(&mut self) -> Result<(), Error> {
        self.bytes = 0;
        let events = std::mem::take(&mut self.events);
        if !events.is_empty() {
            let stored = self.inner.store.append(events).await?;
            self.seq = stored.last().map(|envelope| envelope.seq);
        }
        Ok(())
    }

    /// The `seq` of the last event that was stored.
    pub(crate) fn seq(&self) -> Option<u64> {
        self.seq
    }
}
