//! The limit on wrong passwords.
//!
//! A peer may send a number of different wrong passwords per minute. After that, its passwords are refused unread until the
//! minute is over. A client that repeats one wrong password is not limited, because it guesses nothing. Browsers that are
//! signed in continue to work.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::peer::Identity;

/// The number of different wrong passwords of a peer in a window.
const MAX_GUESSES: usize = 10;
/// The length of a window.
const WINDOW: Duration = Duration::from_secs(60);
/// The maximum number of peers whose guesses are counted. The window that began first is forgotten first.
const MAX_PEERS: usize = 1024;

/// The wrong passwords of each peer.
#[derive(Default)]
pub(crate) struct Attempts {
    peers: Mutex<HashMap<Identity, Window>>,
    hasher: RandomState,
}

struct Window {
    since: Instant,
    /// The hashes of different wrong credentials.
    guesses: Vec<u64>,
}

impl Attempts {
    /// Returns how long a peer must wait before it may send credentials again, if it must.
    pub(crate) fn wait(&self, peer: Identity) -> Option<Duration> {
        self.wait_at(peer, Instant::now())
    }

    fn wait_at(&self, peer: Identity, now: Instant) -> Option<Duration> {
        let peers = self.lock();
        let window = peers.get(&peer).filter(|window| window.guesses.len() >= MAX_GUESSES)?;
        WINDOW.checked_sub(now.duration_since(window.since)).filter(|left| !left.is_zero())
    }

    /// Counts wrong credentials of a peer.
    pub(crate) fn count(&self, peer: Identity, credentials: &[u8]) {
        self.count_at(peer, credentials, Instant::now());
    }

    fn count_at(&self, peer: Identity, credentials: &[u8], now: Instant) {
        let guess = self.hasher.hash_one(credentials);
        let mut peers = self.lock();
        peers.retain(|_, window| now.duration_since(window.since) < WINDOW);
        if peers.len() >= MAX_PEERS
            && !peers.contains_key(&peer)
            && let Some(oldest) = peers.iter().min_by_key(|(_, window)| window.since).map(|(peer, _)| *peer)
        {
            peers.remove(&oldest);
        }
        let window = peers.entry(peer).or_insert_with(|| Window { since: now, guesses: Vec::new() });
        if window.guesses.len() < MAX_GUESSES && !window.guesses.contains(&guess) {
            window.guesses.push(guess);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Identity, Window>> {
        // A poisoned map is still consistent: at worst one guess was not counted.
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn remote(last: u32) -> Identity {
        Identity::Remote(IpAddr::V4(Ipv4Addr::from(last)))
    }

    #[test]
    fn different_wrong_passwords_are_limited_per_peer_and_minute() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for guess in 0..MAX_GUESSES {
            assert_eq!(attempts.wait_at(remote(1), now), None, "{guess}");
            attempts.count_at(remote(1), guess.to_string().as_bytes(), now);
        }
        assert_eq!(attempts.wait_at(remote(1), now), Some(WINDOW));
        assert_eq!(attempts.wait_at(remote(2), now), None, "other peers are not affected");
        assert_eq!(attempts.wait_at(Identity::Owner, now), None);
        assert_eq!(attempts.wait_at(remote(1), now + WINDOW), None);
        attempts.count_at(remote(1), b"next", now + WINDOW);
        assert_eq!(attempts.wait_at(remote(1), now + WINDOW), None, "a new window begins");
    }

    #[test]
    fn a_client_that_repeats_one_wrong_password_is_not_limited() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for _ in 0..1_000 {
            attempts.count_at(Identity::Owner, b"old password", now);
        }
        assert_eq!(attempts.wait_at(Identity::Owner, now), None);
    }

    #[test]
    fn the_number_of_peers_is_bounded() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for peer in 0..2 * MAX_PEERS as u32 {
            attempts.count_at(remote(peer), b"guess", now);
        }
        assert_eq!(attempts.lock().len(), MAX_PEERS);
    }
}
