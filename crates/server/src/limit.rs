//! The limits on open connections, in total and per peer.
//!
//! Peers that have not signed in get few connections. A part of all connections is reserved for the
//! owner of the server, and a part for short requests, which long ones (streams, waiting prompts,
//! terminals) cannot occupy. When a limit is reached, the connection that has been idle for longest
//! is closed. If all are busy, the new connection is rejected.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;

use crate::peer::Identity;

/// The maximum number of connections of a server.
const MAX_CONNECTIONS: usize = 8192;
/// The minimum, even if the process may open few files.
const MIN_CONNECTIONS: usize = 64;
/// The divisor for the reserve of the owner and of short requests: an eighth of all connections.
const RESERVE: usize = 8;
/// The maximum number of connections of one peer that has not signed in.
const MAX_PER_STRANGER: usize = 32;
/// The maximum number of connections of all peers that have not signed in.
const MAX_ALL_STRANGERS: usize = 128;
/// The divisor for the share of a signed-in peer that is not the owner: a quarter of all connections.
const SHARE: usize = 4;

/// The connections of one server and their limits.
#[derive(Clone)]
pub(crate) struct Limiter(Arc<Shared>);

struct Shared {
    limits: Limits,
    slots: Mutex<HashMap<u64, Arc<State>>>,
    /// The number of long requests.
    long: AtomicUsize,
}

/// The maximum numbers of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    total: usize,
    /// Of all peers except the owner.
    others: usize,
    /// Of one peer that has signed in and is not the owner.
    per_guest: usize,
    per_stranger: usize,
    all_strangers: usize,
    /// Long requests of all peers.
    long: usize,
    /// Long requests of one peer that has signed in and is not the owner.
    long_per_guest: usize,
}

/// The slot of one connection. Dropping the last clone frees it.
#[derive(Clone)]
pub(crate) struct Slot(Arc<Entry>);

struct Entry {
    limiter: Limiter,
    number: u64,
    state: Arc<State>,
}

struct State {
    identity: Identity,
    signed_in: AtomicBool,
    /// The number of active requests: one, and terminals that were opened by one.
    busy: AtomicUsize,
    /// Whether one of them is long.
    is_long: AtomicBool,
    idle_since: Mutex<Instant>,
    /// Whether the connection has served a request.
    has_served: AtomicBool,
    evicted: CancellationToken,
}

/// An active request. Dropped when the response has been sent.
pub(crate) struct ActiveRequest(Slot);

/// The limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Limits {
    fn new(files: usize) -> Self {
        // Files, the database and commands need file descriptors as well.
        let total = (files / 2).clamp(MIN_CONNECTIONS, MAX_CONNECTIONS);
        let others = total - total / RESERVE;
        let per_guest = total / SHARE;
        Self {
            total,
            others,
            per_guest,
            per_stranger: MAX_PER_STRANGER.min(total / RESERVE),
            all_strangers: MAX_ALL_STRANGERS.min(total / SHARE),
            long: others,
            long_per_guest: per_guest - per_guest / RESERVE,
        }
    }
}

impl Limiter {
    /// Returns limits that fit the number of files that the process may open.
    pub(crate) fn new() -> Self {
        Self::with(Limits::new(open_files()))
    }

    fn with(limits: Limits) -> Self {
        Self(Arc::new(Shared { limits, slots: Mutex::default(), long: AtomicUsize::new(0) }))
    }

    /// Returns a slot for a new connection; closes an idle connection if necessary.
    pub(crate) fn admit(&self, identity: Identity, number: u64) -> Result<Slot, Full> {
        let limits = self.0.limits;
        let mut slots = self.lock();
        if identity != Identity::Owner {
            let of_peer = |slot: &State| slot.is_stranger() && slot.identity == identity;
            ensure_below(&mut slots, limits.per_stranger, of_peer, of_peer)?;
            ensure_below(&mut slots, limits.all_strangers, State::is_stranger, State::is_stranger)?;
            let is_other = |slot: &State| slot.identity != Identity::Owner;
            ensure_below(&mut slots, limits.others, is_other, State::is_stranger)?;
            ensure_below(&mut slots, limits.total, |_| true, State::is_stranger)?;
        } else if ensure_below(&mut slots, limits.total, |_| true, |slot| slot.identity != Identity::Owner)
            .is_err()
        {
            ensure_below(&mut slots, limits.total, |_| true, |_| true)?;
        }
        let state = Arc::new(State::new(identity));
        slots.insert(number, Arc::clone(&state));
        drop(slots);
        Ok(Slot(Arc::new(Entry { limiter: self.clone(), number, state })))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<State>>> {
        // Each change of the map is a single call, so a poisoned map is still consistent.
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ensures that fewer than `limit` of the `counted` connections are open, by closing the `spare` one that has been idle
/// for longest.
fn ensure_below(
    slots: &mut HashMap<u64, Arc<State>>,
    limit: usize,
    counted: impl Fn(&State) -> bool,
    spare: impl Fn(&State) -> bool,
) -> Result<(), Full> {
    if slots.len() < limit || slots.values().filter(|slot| counted(slot)).count() < limit {
        return Ok(());
    }
    let idle = slots.iter().filter(|(_, slot)| counted(slot) && spare(slot) && slot.is_idle());
    // A connection that has not served a request yet may be about to send one, so it is closed last.
    let oldest = idle.min_by_key(|(_, slot)| (!slot.has_served.load(Ordering::Relaxed), slot.idle_since()));
    let number = *oldest.ok_or(Full)?.0;
    if let Some(slot) = slots.remove(&number) {
        slot.evicted.cancel();
    }
    Ok(())
}

impl State {
    fn new(identity: Identity) -> Self {
        Self {
            identity,
            signed_in: AtomicBool::new(false),
            busy: AtomicUsize::new(0),
            is_long: AtomicBool::new(false),
            idle_since: Mutex::new(Instant::now()),
            has_served: AtomicBool::new(false),
            evicted: CancellationToken::new(),
        }
    }

    fn is_stranger(&self) -> bool {
        self.identity != Identity::Owner && !self.signed_in.load(Ordering::Relaxed)
    }

    fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Acquire) == 0
    }

    fn idle_since(&self) -> Instant {
        *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Returns the token that is cancelled when the idle connection must close.
    pub(crate) fn evicted(&self) -> &CancellationToken {
        &self.0.state.evicted
    }

    /// Returns whether no request is active.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.state.is_idle()
    }

    /// Marks a request as active until the value is dropped.
    pub(crate) fn begin(&self) -> ActiveRequest {
        self.0.state.busy.fetch_add(1, Ordering::AcqRel);
        self.0.state.has_served.store(true, Ordering::Relaxed);
        ActiveRequest(self.clone())
    }

    /// Marks the peer as signed in, if its limit allows one more connection.
    pub(crate) fn sign_in(&self) -> Result<(), Full> {
        let Entry { limiter, state, .. } = &*self.0;
        if state.identity == Identity::Owner || state.signed_in.load(Ordering::Relaxed) {
            return Ok(());
        }
        let slots = limiter.lock();
        let of_peer = slots.values().filter(|slot| slot.identity == state.identity && !slot.is_stranger());
        if of_peer.count() >= limiter.0.limits.per_guest {
            return Err(Full);
        }
        state.signed_in.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Marks the active request as long, if the limits allow one more.
    pub(crate) fn last_long(&self) -> Result<(), Full> {
        let Entry { limiter, state, .. } = &*self.0;
        if state.is_long.load(Ordering::Relaxed) {
            return Ok(());
        }
        if state.identity != Identity::Owner {
            let slots = limiter.lock();
            let of_peer = slots
                .values()
                .filter(|slot| slot.identity == state.identity && slot.is_long.load(Ordering::Relaxed));
            if of_peer.count() >= limiter.0.limits.long_per_guest {
                return Err(Full);
            }
        }
        let next = |long: usize| (long < limiter.0.limits.long).then_some(long + 1);
        limiter.0.long.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).map_err(|_| Full)?;
        if state.is_long.swap(true, Ordering::AcqRel) {
            limiter.0.long.fetch_sub(1, Ordering::AcqRel);
        }
        Ok(())
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        codewright_memory::work_ended();
        let Entry { limiter, state, .. } = &*self.0.0;
        if state.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            *state.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            if state.is_long.swap(false, Ordering::AcqRel) {
                limiter.0.long.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.limiter.lock().remove(&self.number);
    }
}

/// Returns the number of files that the process may open.
fn open_files() -> usize {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX))
}

/// Raises the limit on open files to the number that all connections need, as far as the system permits.
pub fn raise_file_limit() {
    const NEEDED: u64 = 2 * MAX_CONNECTIONS as u64;
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < NEEDED.min(hard)
    {
        // The server also works with fewer connections.
        setrlimit(Resource::RLIMIT_NOFILE, NEEDED.min(hard), hard).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: Identity = Identity::User(7);

    struct Server {
        limiter: Limiter,
        next: u64,
    }

    impl Server {
        fn new(files: usize) -> Self {
            Self { limiter: Limiter::with(Limits::new(files)), next: 0 }
        }

        fn admit(&mut self, identity: Identity) -> Result<Slot, Full> {
            self.next += 1;
            self.limiter.admit(identity, self.next)
        }

        fn count(&self) -> usize {
            self.limiter.lock().len()
        }
    }

    #[test]
    fn limits_keep_a_reserve_even_with_few_files() {
        for files in [0, 64, 256, 1024, 20_000, usize::MAX] {
            let limits = Limits::new(files);
            assert!(limits.all_strangers < limits.others && limits.others < limits.total, "{limits:?}");
            assert!(limits.long < limits.total && limits.long_per_guest < limits.per_guest, "{limits:?}");
            assert!(limits.per_stranger > 0 && limits.per_stranger <= limits.all_strangers, "{limits:?}");
        }
        assert_eq!(Limits::new(usize::MAX).total, MAX_CONNECTIONS);
    }

    #[test]
    fn the_longest_idle_connection_is_closed_first() {
        let mut server = Server::new(128);
        let slots: Vec<_> = (0..64).map(|_| server.admit(Identity::Owner).unwrap()).collect();
        let active: Vec<_> = slots[1..].iter().map(Slot::begin).collect();
        let new = server.admit(Identity::Owner).unwrap();
        assert!(slots[0].evicted().is_cancelled() && !slots[1].evicted().is_cancelled());
        let busy = new.begin();
        assert_eq!(server.admit(Identity::Owner).err(), Some(Full), "all are busy");
        drop((active, busy));
        let _newest = server.admit(Identity::Owner).unwrap();
        assert_eq!(server.count(), 64);
        drop((slots, new));
        assert_eq!(server.count(), 1);
    }

    #[test]
    fn peers_that_have_not_signed_in_only_evict_each_other() {
        let mut server = Server::new(20_000);
        let owner = server.admit(Identity::Owner).unwrap();
        let mut busy = Vec::new();
        for _ in 0..MAX_PER_STRANGER {
            let slot = server.admit(GUEST).unwrap();
            busy.push((slot.begin(), slot));
        }
        assert_eq!(server.admit(GUEST).err(), Some(Full));
        let other = server.admit(Identity::User(8)).unwrap();
        assert!(!owner.evicted().is_cancelled() && !other.evicted().is_cancelled());
        busy[3].1.sign_in().unwrap();
        assert!(server.admit(GUEST).is_ok(), "a signed-in peer does not count");
    }

    #[test]
    fn other_peers_cannot_use_the_connections_of_the_owner() {
        let mut server = Server::new(0);
        let mut kept = Vec::new();
        for user in 1..1000 {
            for _ in 0..40 {
                if let Ok(slot) = server.admit(Identity::User(user)) {
                    // Even if all of them know the password.
                    if slot.sign_in().is_ok() {
                        kept.push((slot.begin(), slot));
                    }
                }
            }
        }
        let limits = server.limiter.0.limits;
        assert!(server.count() <= limits.others, "{}", server.count());
        let own: Vec<_> = (0..limits.total - limits.others).map(|_| server.admit(Identity::Owner)).collect();
        assert!(own.iter().all(Result::is_ok));
    }

    #[test]
    fn long_requests_leave_connections_for_short_ones() {
        let mut server = Server::new(0);
        let limits = server.limiter.0.limits;
        let mut streams = Vec::new();
        while streams.len() < limits.long {
            let slot = server.admit(Identity::Owner).unwrap();
            let busy = slot.begin();
            slot.last_long().unwrap();
            slot.last_long().unwrap();
            streams.push((busy, slot));
        }
        let slot = server.admit(Identity::Owner).unwrap();
        let busy = slot.begin();
        assert_eq!(slot.last_long(), Err(Full));
        streams.pop();
        assert_eq!(slot.last_long(), Ok(()));
        drop(busy);
        assert_eq!(server.limiter.0.long.load(Ordering::Relaxed), limits.long - 1);
    }

    #[test]
    fn one_signed_in_peer_cannot_open_all_streams() {
        let mut server = Server::new(20_000);
        let mut streams = Vec::new();
        let limit = loop {
            let slot = server.admit(GUEST).unwrap();
            if slot.sign_in().is_err() {
                break "signed in";
            }
            let busy = slot.begin();
            if slot.last_long().is_err() {
                break "long";
            }
            streams.push((busy, slot));
        };
        let limits = server.limiter.0.limits;
        assert_eq!((limit, streams.len()), ("long", limits.long_per_guest));
    }
}
