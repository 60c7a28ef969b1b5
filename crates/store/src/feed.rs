//! The feed: sends stored events and signals to every reader, in order.
//!
//! Readers share one bounded ring. An item stays in it until every reader has read it, or until newer items need its
//! space, so a slow reader neither blocks the writer nor uses unbounded memory. A reader that has missed items reads the
//! missing events from the log, by position. It misses no events, but may miss signals.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_proto::{Envelope, Event, EventId, Fact, Notice, Signal, json_bytes};
use serde::{Serialize, Serializer};
use tokio::sync::Notify;

use crate::Error;
use crate::backend::Backend;

/// The maximum number of items in the ring.
const MAX_ITEMS: usize = 4096;

/// The maximum size of all items in the ring, as JSON.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// How many events a lagging reader reads from the log at a time.
const PAGE_EVENTS: usize = 128;

/// The memory of an item besides its text.
const ITEM_BYTES: usize = 256;

/// An item of the feed.
#[derive(Debug, Clone, PartialEq)]
pub enum Published {
    /// A stored event.
    Event(Arc<Envelope>),
    /// A signal, which is not stored.
    Signal {
        /// Its id.
        id: EventId,
        /// Its content.
        signal: Arc<Signal>,
        /// Whether another process published it.
        is_from_elsewhere: bool,
    },
}

impl Published {
    /// The notice that clients receive.
    #[must_use]
    pub fn notice(&self) -> Notice {
        match self {
            Self::Event(envelope) => {
                Notice { id: envelope.id.clone(), fact: Fact::Event(envelope.event.clone()) }
            }
            Self::Signal { id, signal, .. } => {
                Notice { id: id.clone(), fact: Fact::Signal(Signal::clone(signal)) }
            }
        }
    }

    /// The position in the log after which a reader resumes; `None` for a signal.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        match self {
            Self::Event(envelope) => Some(envelope.position),
            Self::Signal { .. } => None,
        }
    }
}

/// Serializes the notice without copying the value.
impl Serialize for Published {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Notice<'a, T> {
            id: &'a EventId,
            #[serde(flatten)]
            fact: &'a T,
        }
        match self {
            Self::Event(envelope) => {
                Notice::<Event> { id: &envelope.id, fact: &envelope.event }.serialize(serializer)
            }
            Self::Signal { id, signal, .. } => {
                Notice::<Signal> { id, fact: signal.as_ref() }.serialize(serializer)
            }
        }
    }
}

/// The sending side, shared by the store and its writer.
pub(crate) struct Feed {
    ring: Mutex<Ring>,
    changed: Notify,
    /// Notified when a reader subscribes, a session is leased, or the feed ends.
    needed: Condvar,
}

/// The items that some reader has not read yet. The item at the front has the number `first`.
struct Ring {
    slots: VecDeque<Slot>,
    first: u64,
    bytes: usize,
    readers: usize,
    /// The number of leases, which need updates from other processes too.
    holders: usize,
    last_position: u64,
    closed: bool,
}

struct Slot {
    item: Item,
    bytes: usize,
    unread: usize,
}

#[derive(Clone)]
enum Item {
    Published(Published),
    /// Other processes have stored events up to this position.
    Elsewhere(u64),
}

/// The next step of a reader.
enum Next {
    Item(Published),
    /// The next events are in the log, up to this position.
    Logged(u64),
    Nothing,
    Closed,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self {
            ring: Mutex::new(Ring {
                slots: VecDeque::new(),
                first: 0,
                bytes: 0,
                readers: 0,
                holders: 0,
                last_position: 0,
                closed: false,
            }),
            changed: Notify::new(),
            needed: Condvar::new(),
        }
    }

    /// Sets the last position of the opened log.
    pub(crate) fn begin_after(&self, position: u64) {
        self.lock().last_position = position;
    }

    pub(crate) fn publish(&self, envelopes: &[(Arc<Envelope>, usize)]) {
        let mut ring = self.lock();
        for (envelope, bytes) in envelopes {
            ring.skip_to(envelope.position - 1);
            ring.last_position = ring.last_position.max(envelope.position);
            ring.push(|| Item::Published(Published::Event(Arc::clone(envelope))), *bytes);
        }
        drop(ring);
        self.changed.notify_waiters();
    }

    /// Announces the last position of the log, including events of other processes.
    pub(crate) fn advance_to(&self, position: u64) {
        self.lock().skip_to(position);
        self.changed.notify_waiters();
    }

    /// Blocks until there is a reader or a lease. Returns false when the feed has ended.
    pub(crate) fn wait_until_needed(&self) -> bool {
        let ring = self.lock();
        let idle = |ring: &mut Ring| ring.readers + ring.holders == 0 && !ring.closed;
        !self.needed.wait_while(ring, idle).unwrap_or_else(PoisonError::into_inner).closed
    }

    /// Keeps the feed updated for a lease.
    pub(crate) fn hold(self: &Arc<Self>) -> KeepAwake {
        self.lock().holders += 1;
        self.needed.notify_all();
        KeepAwake(Arc::clone(self))
    }

    /// Blocks for `pause`, or until the feed ends.
    pub(crate) fn wait_for_end(&self, pause: Duration) {
        let open = |ring: &mut Ring| !ring.closed;
        // The caller checks which of the two it was.
        drop(self.needed.wait_timeout_while(self.lock(), pause, open));
    }

    pub(crate) fn signal(&self, id: EventId, signal: Signal) {
        let bytes = signal_bytes(&signal);
        let signal = Arc::new(signal);
        self.push(Published::Signal { id, signal, is_from_elsewhere: false }, bytes);
    }

    pub(crate) fn signal_from_elsewhere(&self, id: EventId, signal: Signal) {
        let bytes = signal_bytes(&signal);
        let signal = Arc::new(signal);
        self.push(Published::Signal { id, signal, is_from_elsewhere: true }, bytes);
    }

    fn push(&self, published: Published, bytes: usize) {
        self.lock().push(|| Item::Published(published), bytes);
        self.changed.notify_waiters();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.needed.notify_all();
        self.changed.notify_waiters();
    }

    pub(crate) fn last_position(&self) -> u64 {
        self.lock().last_position
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        // No change of the ring can panic, so a poisoned ring is consistent.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// Advances to `position`. The events in between are from other processes.
    fn skip_to(&mut self, position: u64) {
        if position > self.last_position {
            self.last_position = position;
            self.push(|| Item::Elsewhere(position), 0);
        }
    }

    fn push(&mut self, item: impl FnOnce() -> Item, bytes: usize) {
        if self.readers == 0 || self.closed {
            return;
        }
        let bytes = bytes + ITEM_BYTES;
        self.slots.push_back(Slot { item: item(), bytes, unread: self.readers });
        self.bytes += bytes;
        while self.slots.len() > MAX_ITEMS || (self.bytes > MAX_BYTES && self.slots.len() > 1) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some(slot) = self.slots.pop_front() {
            self.bytes -= slot.bytes;
            self.first += 1;
        }
    }

    fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    fn take(&mut self, next: &mut u64) -> Next {
        if *next < self.first {
            // The rest of the ring is skipped too, because its signals are older than the events that are
            // read from the log.
            self.release_from(self.first);
            *next = self.end();
            return Next::Logged(self.last_position);
        }
        let Some(slot) = self.slots.get_mut((*next - self.first) as usize) else {
            return if self.closed { Next::Closed } else { Next::Nothing };
        };
        slot.unread -= 1;
        let item = slot.item.clone();
        *next += 1;
        self.trim();
        match item {
            Item::Published(item) => Next::Item(item),
            Item::Elsewhere(until) => Next::Logged(until),
        }
    }

    /// Removes a reader from all items from `next` on.
    fn release_from(&mut self, next: u64) {
        let skip = next.saturating_sub(self.first) as usize;
        for slot in self.slots.iter_mut().skip(skip) {
            slot.unread -= 1;
        }
        // Only items at the front are removed, because `next` of other readers counts from the start.
        self.trim();
    }

    fn trim(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.unread == 0) {
            self.pop();
        }
    }
}

/// The exact size of a signal, because a client's signal is only bounded by the size of a request.
fn signal_bytes(signal: &Signal) -> usize {
    // The frequent signal is not serialized to measure it.
    if let Signal::PartDelta { delta, .. } = signal { delta.len() } else { json_bytes(signal) }
}

/// Closes the feed when the writer ends, even by a panic.
pub(crate) struct CloseFeed(pub(crate) Arc<Feed>);

impl Drop for CloseFeed {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Keeps the feed updated until it is dropped.
pub(crate) struct KeepAwake(Arc<Feed>);

impl Drop for KeepAwake {
    fn drop(&mut self) {
        self.0.lock().holders -= 1;
    }
}

/// A reader of the feed. Keeps the store open.
pub struct Subscription {
    feed: Arc<Feed>,
    log: Arc<dyn Backend>,
    /// The number of the next item in the ring.
    next: u64,
    /// The last event that was returned, or after which the reader started.
    position: u64,
    /// Events up to this position are read from the log.
    until: u64,
    page: VecDeque<Arc<Envelope>>,
}

impl Subscription {
    /// Starts after everything that was published.
    pub(crate) fn new(feed: Arc<Feed>, log: Arc<dyn Backend>) -> Self {
        let (next, position) = {
            let mut ring = feed.lock();
            ring.readers += 1;
            (ring.end(), ring.last_position)
        };
        feed.needed.notify_all();
        Self { feed, log, next, position, until: position, page: VecDeque::new() }
    }

    /// Starts after an event that the reader has seen. Later events are read from the log first.
    pub(crate) fn after(feed: Arc<Feed>, log: Arc<dyn Backend>, position: u64) -> Self {
        let mut subscription = Self::new(feed, log);
        // A position beyond the end belongs to another log and is not waited for.
        subscription.position = position.min(subscription.position);
        subscription
    }

    /// Returns the next item. Cancel-safe.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] is final. After other errors, which are from reading the log, the call can be repeated.
    pub async fn next(&mut self) -> Result<Published, Error> {
        loop {
            if let Some(envelope) = self.page.pop_front() {
                self.position = envelope.position;
                return Ok(Published::Event(envelope));
            }
            if self.position < self.until {
                let page = self.log.events_between(self.position, self.until, PAGE_EVENTS).await?;
                if page.is_empty() {
                    self.position = self.until;
                }
                self.page = page.into_iter().map(Arc::new).collect();
                continue;
            }
            let feed = Arc::clone(&self.feed);
            let changed = feed.changed.notified();
            tokio::pin!(changed);
            // Registered before the ring is checked, so that no item is missed.
            changed.as_mut().enable();
            let step = self.feed.lock().take(&mut self.next);
            match step {
                Next::Item(item) => match item.position() {
                    Some(position) if position <= self.position => {}
                    Some(position) => {
                        (self.position, self.until) = (position, position);
                        return Ok(item);
                    }
                    None => return Ok(item),
                },
                Next::Logged(until) => self.until = self.until.max(until),
                Next::Nothing => changed.await,
                Next::Closed => return Err(Error::Closed),
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut ring = self.feed.lock();
        ring.readers -= 1;
        ring.release_from(self.next);
    }
}
