//! How many connections a server holds, and whose they are.
//!
//! Connections are counted for each peer. Peers that have not signed in get few, other peers get no
//! more than leaves a reserve for the server's owner, and requests that last (streams, waiting
//! prompts, terminals) leave a reserve for those that do not. When there is no room, the connection
//! that has been idle for longest is closed; if all are busy, the new one is refused.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;

use crate::peer::Identity;

/// The most connections of a server.
const MAX_CONNECTIONS: usize = 2048;
/// The least, however few files the process may open.
const MIN_CONNECTIONS: usize = 64;
/// The part of all connections that is kept for the owner and for requests that do not last: an eighth.
const RESERVE: usize = 8;
/// Connections of one peer that has not signed in.
const MAX_OF_STRANGER: usize = 32;
/// Connections of all peers that have not signed in.
const MAX_OF_STRANGERS: usize = 128;
/// The part of all connections that one other peer may have when it has signed in: a quarter.
const SHARE: usize = 4;

/// The connections of one server.
#[derive(Clone)]
pub(crate) struct Room(Arc<Shared>);

struct Shared {
    limits: Limits,
    seats: Mutex<HashMap<u64, Arc<State>>>,
    /// Requests that last.
    long: AtomicUsize,
}

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    total: usize,
    /// Of all but the owner.
    others: usize,
    /// Of one other peer that has signed in.
    of_guest: usize,
    of_stranger: usize,
    of_strangers: usize,
    /// Requests that last, of all.
    long: usize,
    /// Requests that last, of one other peer.
    long_of_guest: usize,
}

/// One connection's place among the others; its last clone frees it.
#[derive(Clone)]
pub(crate) struct Seat(Arc<Held>);

struct Held {
    room: Room,
    number: u64,
    state: Arc<State>,
}

struct State {
    identity: Identity,
    signed_in: AtomicBool,
    /// Requests at work: one, and terminals that began as one.
    busy: AtomicUsize,
    /// Whether one of them lasts.
    is_long: AtomicBool,
    idle_since: Mutex<Instant>,
    /// Whether there was a request before.
    has_served: AtomicBool,
    evicted: CancellationToken,
}

/// A request at work; dropped when its answer has been sent.
pub(crate) struct Busy(Seat);

/// There is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Limits {
    fn new(files: usize) -> Self {
        // Files, the database and commands need descriptors as well.
        let total = (files / 2).clamp(MIN_CONNECTIONS, MAX_CONNECTIONS);
        let others = total - total / RESERVE;
        let of_guest = total / SHARE;
        Self {
            total,
            others,
            of_guest,
            of_stranger: MAX_OF_STRANGER.min(total / RESERVE),
            of_strangers: MAX_OF_STRANGERS.min(total / SHARE),
            long: others,
            long_of_guest: of_guest - of_guest / RESERVE,
        }
    }
}

impl Room {
    /// Room for as many connections as the process may open files for.
    pub(crate) fn new() -> Self {
        Self::with(Limits::new(open_files()))
    }

    fn with(limits: Limits) -> Self {
        Self(Arc::new(Shared { limits, seats: Mutex::default(), long: AtomicUsize::new(0) }))
    }

    /// A place for a new connection, if need be that of an idle one.
    pub(crate) fn admit(&self, identity: Identity, number: u64) -> Result<Seat, Full> {
        let limits = self.0.limits;
        let mut seats = self.lock();
        if identity != Identity::Owner {
            let of_peer = |seat: &State| seat.is_stranger() && seat.identity == identity;
            make_room(&mut seats, limits.of_stranger, of_peer, of_peer)?;
            make_room(&mut seats, limits.of_strangers, State::is_stranger, State::is_stranger)?;
            let is_other = |seat: &State| seat.identity != Identity::Owner;
            make_room(&mut seats, limits.others, is_other, State::is_stranger)?;
            make_room(&mut seats, limits.total, |_| true, State::is_stranger)?;
        } else if make_room(&mut seats, limits.total, |_| true, |seat| seat.identity != Identity::Owner)
            .is_err()
        {
            make_room(&mut seats, limits.total, |_| true, |_| true)?;
        }
        let state = Arc::new(State::new(identity));
        seats.insert(number, Arc::clone(&state));
        drop(seats);
        Ok(Seat(Arc::new(Held { room: self.clone(), number, state })))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<State>>> {
        // Every change of the map is one call, so a poisoned map is whole.
        self.0.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room below a limit on the counted seats, by closing the one of the `spare` that is idle for longest.
fn make_room(
    seats: &mut HashMap<u64, Arc<State>>,
    limit: usize,
    counted: impl Fn(&State) -> bool,
    spare: impl Fn(&State) -> bool,
) -> Result<(), Full> {
    if seats.len() < limit || seats.values().filter(|seat| counted(seat)).count() < limit {
        return Ok(());
    }
    let idle = seats.iter().filter(|(_, seat)| counted(seat) && spare(seat) && seat.is_idle());
    // Those that were kept alive after an answer go before those that may be about to ask.
    let oldest = idle.min_by_key(|(_, seat)| (!seat.has_served.load(Ordering::Relaxed), seat.idle_since()));
    let number = *oldest.ok_or(Full)?.0;
    if let Some(seat) = seats.remove(&number) {
        seat.evicted.cancel();
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

impl Seat {
    /// Cancelled when the connection has to make room while it is idle.
    pub(crate) fn evicted(&self) -> &CancellationToken {
        &self.0.state.evicted
    }

    /// Whether no request is at work.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.state.is_idle()
    }

    /// Marks a request as being at work until the value is dropped.
    pub(crate) fn begin(&self) -> Busy {
        self.0.state.busy.fetch_add(1, Ordering::AcqRel);
        self.0.state.has_served.store(true, Ordering::Relaxed);
        Busy(self.clone())
    }

    /// Notes that the peer has given the password.
    pub(crate) fn sign_in(&self) -> Result<(), Full> {
        let Held { room, state, .. } = &*self.0;
        if state.identity == Identity::Owner || state.signed_in.load(Ordering::Relaxed) {
            return Ok(());
        }
        let seats = room.lock();
        let of_peer = seats.values().filter(|seat| seat.identity == state.identity && !seat.is_stranger());
        if of_peer.count() >= room.0.limits.of_guest {
            return Err(Full);
        }
        state.signed_in.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Notes that the request at work lasts, if there may be one more of these.
    pub(crate) fn last_long(&self) -> Result<(), Full> {
        let Held { room, state, .. } = &*self.0;
        if state.is_long.load(Ordering::Relaxed) {
            return Ok(());
        }
        if state.identity != Identity::Owner {
            let seats = room.lock();
            let of_peer = seats
                .values()
                .filter(|seat| seat.identity == state.identity && seat.is_long.load(Ordering::Relaxed));
            if of_peer.count() >= room.0.limits.long_of_guest {
                return Err(Full);
            }
        }
        let next = |long: usize| (long < room.0.limits.long).then_some(long + 1);
        room.0.long.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).map_err(|_| Full)?;
        if state.is_long.swap(true, Ordering::AcqRel) {
            room.0.long.fetch_sub(1, Ordering::AcqRel);
        }
        Ok(())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Held { room, state, .. } = &*self.0.0;
        if state.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            *state.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            if state.is_long.swap(false, Ordering::AcqRel) {
                room.0.long.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.lock().remove(&self.number);
    }
}

/// How many files the process may open.
fn open_files() -> usize {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX))
}

/// Lets the process open as many files as its connections need, if the system permits that.
pub fn raise_file_limit() {
    const WANTED: u64 = 2 * MAX_CONNECTIONS as u64;
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < WANTED.min(hard)
    {
        // A server works with fewer connections, too.
        setrlimit(Resource::RLIMIT_NOFILE, WANTED.min(hard), hard).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: Identity = Identity::User(7);

    struct Hall {
        room: Room,
        next: u64,
    }

    impl Hall {
        fn new(files: usize) -> Self {
            Self { room: Room::with(Limits::new(files)), next: 0 }
        }

        fn admit(&mut self, identity: Identity) -> Result<Seat, Full> {
            self.next += 1;
            self.room.admit(identity, self.next)
        }

        fn count(&self) -> usize {
            self.room.lock().len()
        }
    }

    #[test]
    fn limits_leave_a_reserve_however_few_files_there_are() {
        for files in [0, 64, 256, 1024, 20_000, usize::MAX] {
            let limits = Limits::new(files);
            assert!(limits.of_strangers < limits.others && limits.others < limits.total, "{limits:?}");
            assert!(limits.long < limits.total && limits.long_of_guest < limits.of_guest, "{limits:?}");
            assert!(limits.of_stranger > 0 && limits.of_stranger <= limits.of_strangers, "{limits:?}");
        }
        assert_eq!(Limits::new(usize::MAX).total, MAX_CONNECTIONS);
    }

    #[test]
    fn the_oldest_idle_connection_makes_room() {
        let mut hall = Hall::new(128);
        let seats: Vec<_> = (0..64).map(|_| hall.admit(Identity::Owner).unwrap()).collect();
        let at_work: Vec<_> = seats[1..].iter().map(Seat::begin).collect();
        let new = hall.admit(Identity::Owner).unwrap();
        assert!(seats[0].evicted().is_cancelled() && !seats[1].evicted().is_cancelled());
        let busy = new.begin();
        assert_eq!(hall.admit(Identity::Owner).err(), Some(Full), "all are at work");
        drop((at_work, busy));
        let _newest = hall.admit(Identity::Owner).unwrap();
        assert_eq!(hall.count(), 64);
        drop((seats, new));
        assert_eq!(hall.count(), 1);
    }

    #[test]
    fn strangers_compete_with_each_other_only() {
        let mut hall = Hall::new(20_000);
        let owner = hall.admit(Identity::Owner).unwrap();
        let mut busy = Vec::new();
        for _ in 0..MAX_OF_STRANGER {
            let seat = hall.admit(GUEST).unwrap();
            busy.push((seat.begin(), seat));
        }
        assert_eq!(hall.admit(GUEST).err(), Some(Full));
        let other = hall.admit(Identity::User(8)).unwrap();
        assert!(!owner.evicted().is_cancelled() && !other.evicted().is_cancelled());
        busy[3].1.sign_in().unwrap();
        assert!(hall.admit(GUEST).is_ok(), "who has signed in counts no more");
    }

    #[test]
    fn the_owner_finds_room_whatever_others_do() {
        let mut hall = Hall::new(0);
        let mut kept = Vec::new();
        for user in 1..1000 {
            for _ in 0..40 {
                if let Ok(seat) = hall.admit(Identity::User(user)) {
                    // Even if all of them know the password.
                    if seat.sign_in().is_ok() {
                        kept.push((seat.begin(), seat));
                    }
                }
            }
        }
        let limits = hall.room.0.limits;
        assert!(hall.count() <= limits.others, "{}", hall.count());
        let own: Vec<_> = (0..limits.total - limits.others).map(|_| hall.admit(Identity::Owner)).collect();
        assert!(own.iter().all(Result::is_ok));
    }

    #[test]
    fn requests_that_last_leave_room_for_others() {
        let mut hall = Hall::new(0);
        let limits = hall.room.0.limits;
        let mut streams = Vec::new();
        while streams.len() < limits.long {
            let seat = hall.admit(Identity::Owner).unwrap();
            let busy = seat.begin();
            seat.last_long().unwrap();
            seat.last_long().unwrap();
            streams.push((busy, seat));
        }
        let seat = hall.admit(Identity::Owner).unwrap();
        let busy = seat.begin();
        assert_eq!(seat.last_long(), Err(Full));
        streams.pop();
        assert_eq!(seat.last_long(), Ok(()));
        drop(busy);
        assert_eq!(hall.room.0.long.load(Ordering::Relaxed), limits.long - 1);
    }

    #[test]
    fn one_guest_cannot_have_all_streams() {
        let mut hall = Hall::new(20_000);
        let mut streams = Vec::new();
        let refused = loop {
            let seat = hall.admit(GUEST).unwrap();
            if seat.sign_in().is_err() {
                break "signed in";
            }
            let busy = seat.begin();
            if seat.last_long().is_err() {
                break "long";
            }
            streams.push((busy, seat));
        };
        let limits = hall.room.0.limits;
        assert_eq!((refused, streams.len()), ("long", limits.long_of_guest));
    }
}
