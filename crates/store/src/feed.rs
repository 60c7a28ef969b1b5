//! The feed: what was stored and what was signalled, in order, to every reader.
//!
//! Readers share one bounded ring. It holds an item until every reader has taken
//! it, or until newer ones need its room: a slow reader never holds up a writer
//! and never grows the server. A reader that lost items reads the events among
//! them from the log, by position, so it misses no event; signals may be lost.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_proto::{Envelope, Event, EventId, Fact, Notice, Signal, json_bytes};
use serde::{Serialize, Serializer};
use tokio::sync::Notify;

use crate::Error;
use crate::backend::Backend;

/// How many items wait for the slowest reader.
const MAX_ITEMS: usize = 4096;

/// How large the items that wait for the slowest reader may be together, as JSON.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// How many events a lagging reader takes from the log at a time.
const PAGE_EVENTS: usize = 128;

/// What an item takes beside its text.
const ITEM_BYTES: usize = 256;

/// What a reader of the feed receives.
#[derive(Debug, Clone, PartialEq)]
pub enum Published {
    /// A stored event.
    Event(Arc<Envelope>),
    /// Something true only now.
    Signal {
        /// Its id.
        id: EventId,
        /// What it says.
        signal: Arc<Signal>,
    },
}

impl Published {
    /// What a client receives.
    #[must_use]
    pub fn notice(&self) -> Notice {
        match self {
            Self::Event(envelope) => {
                Notice { id: envelope.id.clone(), fact: Fact::Event(envelope.event.clone()) }
            }
            Self::Signal { id, signal } => {
                Notice { id: id.clone(), fact: Fact::Signal(Signal::clone(signal)) }
            }
        }
    }

    /// The place in the log that a reader resumes behind; none for a signal.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        match self {
            Self::Event(envelope) => Some(envelope.position),
            Self::Signal { .. } => None,
        }
    }
}

/// The JSON of the notice, written without copying the value first.
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
            Self::Signal { id, signal } => {
                Notice::<Signal> { id, fact: signal.as_ref() }.serialize(serializer)
            }
        }
    }
}

/// The sending side, shared by the store and its writer.
pub(crate) struct Feed {
    ring: Mutex<Ring>,
    changed: Notify,
    /// Somebody began to read or took a session, or the feed ended.
    needed: Condvar,
}

/// Items that some reader has not taken yet. The item at the front has the number `first`.
struct Ring {
    slots: VecDeque<Slot>,
    first: u64,
    bytes: usize,
    readers: usize,
    /// Those who hold a session, and hear of other processes without reading.
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

enum Taken {
    Item(Published),
    /// What comes next is in the log, up to this position.
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

    /// Takes up a log that ends at `position`.
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

    /// Learns how far the log goes, whoever has written it.
    pub(crate) fn reaches(&self, position: u64) {
        self.lock().skip_to(position);
        self.changed.notify_waiters();
    }

    /// Blocks until somebody reads or holds a session; false once the feed has ended.
    pub(crate) fn wait_until_needed(&self) -> bool {
        let ring = self.lock();
        let idle = |ring: &mut Ring| ring.readers + ring.holders == 0 && !ring.closed;
        !self.needed.wait_while(ring, idle).unwrap_or_else(PoisonError::into_inner).closed
    }

    /// Keeps the feed awake for somebody who holds a session.
    pub(crate) fn hold(self: &Arc<Self>) -> Holding {
        self.lock().holders += 1;
        self.needed.notify_all();
        Holding(Arc::clone(self))
    }

    /// Blocks for a while, or until the feed ends.
    pub(crate) fn wait_for_end(&self, pause: Duration) {
        let open = |ring: &mut Ring| !ring.closed;
        // Whichever it was is looked at next.
        drop(self.needed.wait_timeout_while(self.lock(), pause, open));
    }

    pub(crate) fn signal(&self, id: EventId, signal: Signal) {
        let bytes = signal_bytes(&signal);
        let item = || Item::Published(Published::Signal { id, signal: Arc::new(signal) });
        self.lock().push(item, bytes);
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
        // Nothing panics while the ring is changed, so a poisoned ring is whole.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// The log goes on to `position`; what is between came from elsewhere.
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

    fn take(&mut self, next: &mut u64) -> Taken {
        if *next < self.first {
            // The rest of the ring is given up too: its signals are older than
            // events that the log is about to tell.
            self.leave(self.first);
            *next = self.end();
            return Taken::Logged(self.last_position);
        }
        let Some(slot) = self.slots.get_mut((*next - self.first) as usize) else {
            return if self.closed { Taken::Closed } else { Taken::Nothing };
        };
        slot.unread -= 1;
        let item = slot.item.clone();
        *next += 1;
        self.trim();
        match item {
            Item::Published(item) => Taken::Item(item),
            Item::Elsewhere(until) => Taken::Logged(until),
        }
    }

    /// Counts one reader less for everything from `next` on.
    fn leave(&mut self, next: u64) {
        let skip = next.saturating_sub(self.first) as usize;
        for slot in self.slots.iter_mut().skip(skip) {
            slot.unread -= 1;
        }
        // The end must not move when items go: `next` of other readers counts from the start.
        self.trim();
    }

    fn trim(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.unread == 0) {
            self.pop();
        }
    }
}

/// How large a signal is: exactly, as what a client may put into one has no other bound than a request's.
fn signal_bytes(signal: &Signal) -> usize {
    // The frequent one is not written only to be measured.
    if let Signal::PartDelta { delta, .. } = signal { delta.len() } else { json_bytes(signal) }
}

/// Somebody holds a session for as long as this lives.
pub(crate) struct Holding(Arc<Feed>);

impl Drop for Holding {
    fn drop(&mut self) {
        self.0.lock().holders -= 1;
    }
}

/// One reader's place in the feed. Keeps the store open.
pub struct Subscription {
    feed: Arc<Feed>,
    log: Arc<dyn Backend>,
    /// The number of the next item in the ring.
    next: u64,
    /// The last event that was handed out, or that the reader began behind.
    position: u64,
    /// Events up to here come from the log.
    until: u64,
    page: VecDeque<Arc<Envelope>>,
}

impl Subscription {
    /// Begins behind everything that has been published.
    pub(crate) fn new(feed: Arc<Feed>, log: Arc<dyn Backend>) -> Self {
        let (next, position) = {
            let mut ring = feed.lock();
            ring.readers += 1;
            (ring.end(), ring.last_position)
        };
        feed.needed.notify_all();
        Self { feed, log, next, position, until: position, page: VecDeque::new() }
    }

    /// Begins behind an event that the reader has seen; what followed comes from the log first.
    pub(crate) fn after(feed: Arc<Feed>, log: Arc<dyn Backend>, position: u64) -> Self {
        let mut subscription = Self::new(feed, log);
        // A position that the log has not reached is one of another log; it is not waited for.
        subscription.position = position.min(subscription.position);
        subscription
    }

    /// The next item. May be dropped while it waits without losing anything.
    ///
    /// After [`Error::Closed`] nothing follows; after another error, which comes
    /// from reading the log, the call may be repeated.
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
            // Registered before the ring is looked at, so that no item slips between.
            changed.as_mut().enable();
            let taken = self.feed.lock().take(&mut self.next);
            match taken {
                Taken::Item(item) => match item.position() {
                    Some(position) if position <= self.position => {}
                    Some(position) => {
                        (self.position, self.until) = (position, position);
                        return Ok(item);
                    }
                    None => return Ok(item),
                },
                Taken::Logged(until) => self.until = self.until.max(until),
                Taken::Nothing => changed.await,
                Taken::Closed => return Err(Error::Closed),
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut ring = self.feed.lock();
        ring.readers -= 1;
        ring.leave(self.next);
    }
}
