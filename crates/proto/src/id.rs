//! Ids: a prefix, twelve hexadecimal digits of time and fourteen random characters.
//!
//! The digits are the low 48 bits of `milliseconds * 4096 + counter`, so the ids of one
//! process sort in the order of their creation. Session ids hold the bitwise complement of
//! those bits and therefore sort newest first. Ids from clients are stored unchanged; only
//! their prefix, length and characters are checked.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Clock;

/// The maximum length of an id from outside, in bytes.
const MAX_ID_BYTES: usize = 128;

/// An id has the wrong prefix, is too long or contains invalid characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{id}` is not a valid id: it must start with `{prefix}_` and hold letters, digits, `_` or `-`")]
pub struct ParseIdError {
    /// The invalid id, truncated.
    pub id: String,
    /// The required prefix.
    pub prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text before the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// Checks an id from outside.
            ///
            /// # Errors
            ///
            /// Fails if the prefix, the length or a character is invalid.
            pub fn parse(id: &str) -> Result<Self, ParseIdError> {
                check(id, $prefix)?;
                Ok(Self(id.into()))
            }

            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// A session; sorts newest first.
    SessionId = "ses";
    /// A message; sorts oldest first.
    MessageId = "msg";
    /// A part of a message; sorts oldest first.
    PartId = "prt";
    /// An event or signal.
    EventId = "evt";
    /// A permission request.
    PermissionId = "per";
    /// A question for the user.
    QuestionId = "que";
    /// A file with the complete output of a tool.
    ToolOutputId = "tool";
    /// A terminal.
    PtyId = "pty";
    /// A pending sign-in.
    AttemptId = "con";
}

/// A project: the hash of a repository's first commit, or `global`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ProjectId(pub Arc<str>);

impl ProjectId {
    /// Returns the project of all directories outside of repositories.
    #[must_use]
    pub fn global() -> Self {
        Self("global".into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check(id: &str, prefix: &'static str) -> Result<(), ParseIdError> {
    let bad = || ParseIdError { id: id.chars().take(40).collect(), prefix };
    let rest = id.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')).ok_or_else(bad)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if rest.is_empty() || id.len() > MAX_ID_BYTES || !rest.chars().all(plain) {
        return Err(bad());
    }
    Ok(())
}

/// A generator of ids. A process has one; its clones share the counter.
#[derive(Clone)]
pub struct Ids(Arc<Mutex<Generator>>);

struct Generator {
    clock: Clock,
    last_ms: u64,
    counter: u64,
    random: u64,
}

impl Ids {
    /// Returns a generator with a random seed.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        // `RandomState` is seeded by the operating system; ids need to be unique, not secret.
        let seed = RandomState::new().hash_one(clock.now_ms());
        Self::seeded(clock, seed)
    }

    /// Returns a generator that creates the same ids in every run, for tests.
    #[must_use]
    pub fn seeded(clock: Clock, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Generator { clock, last_ms: 0, counter: 0, random: seed })))
    }

    /// Returns a new session id, smaller than all earlier ones.
    #[must_use]
    pub fn session(&self) -> SessionId {
        SessionId(self.make(SessionId::PREFIX, true))
    }

    /// Returns a new message id, greater than all earlier ones.
    #[must_use]
    pub fn message(&self) -> MessageId {
        MessageId(self.make(MessageId::PREFIX, false))
    }

    /// Returns a new part id, greater than all earlier ones.
    #[must_use]
    pub fn part(&self) -> PartId {
        PartId(self.make(PartId::PREFIX, false))
    }

    /// Returns a new event id, greater than all earlier ones.
    #[must_use]
    pub fn event(&self) -> EventId {
        EventId(self.make(EventId::PREFIX, false))
    }

    /// Returns a new id of a permission request.
    #[must_use]
    pub fn permission(&self) -> PermissionId {
        PermissionId(self.make(PermissionId::PREFIX, false))
    }

    /// Returns a new id of a question.
    #[must_use]
    pub fn question(&self) -> QuestionId {
        QuestionId(self.make(QuestionId::PREFIX, false))
    }

    /// Returns a new name for a file with the complete output of a tool.
    #[must_use]
    pub fn tool_output(&self) -> ToolOutputId {
        ToolOutputId(self.make(ToolOutputId::PREFIX, false))
    }

    /// Returns a new terminal id.
    #[must_use]
    pub fn pty(&self) -> PtyId {
        PtyId(self.make(PtyId::PREFIX, false))
    }

    /// Returns a new id of a sign-in.
    #[must_use]
    pub fn attempt(&self) -> AttemptId {
        AttemptId(self.make(AttemptId::PREFIX, false))
    }

    /// Returns a random number, for choices such as the words of a slug.
    #[must_use]
    pub fn random(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).random()
    }

    fn make(&self, prefix: &str, descending: bool) -> Arc<str> {
        // A poisoned generator is still valid: a panic cannot leave a field half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).generate(prefix, descending).into()
    }
}

impl Generator {
    fn generate(&mut self, prefix: &str, descending: bool) -> String {
        const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        // Ids must not sort before older ones if the clock is set back.
        let now = self.clock.now_ms().max(self.last_ms);
        self.counter = if now == self.last_ms { self.counter + 1 } else { 1 };
        self.last_ms = now;
        let stamp = now.wrapping_mul(4096).wrapping_add(self.counter);
        let stamp = if descending { !stamp } else { stamp } & 0xffff_ffff_ffff;
        let mut id = format!("{prefix}_{stamp:012x}");
        for _ in 0..14 {
            id.push(char::from(BASE62[(self.random() % 62) as usize]));
        }
        id
    }

    /// SplitMix64: short, well mixed, and one word of state.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ids")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_sort_oldest_first_and_sessions_newest_first_even_if_the_clock_stands_still() {
        let ids = Ids::seeded(Clock::stepping(1_795_293_409_117, 0), 1);
        let messages: Vec<_> = (0..50).map(|_| ids.message()).collect();
        let sessions: Vec<_> = (0..50).map(|_| ids.session()).collect();
        assert!(messages.is_sorted());
        assert!(sessions.iter().rev().is_sorted());
    }

    #[test]
    fn an_id_has_the_shape_that_clients_expect() {
        // The recorded session `ses_e002c70ae…` was made at 1795293417297 ms.
        let ids = Ids::seeded(Clock::stepping(1_795_293_417_297, 0), 7);
        let id = ids.session();
        assert!(id.as_str().starts_with("ses_e002c70ae"), "{id}");
        assert_eq!(id.as_str().len(), "ses_".len() + 12 + 14);
        assert_eq!(SessionId::parse(id.as_str()), Ok(id));
    }

    #[test]
    fn invalid_ids_are_rejected() {
        for id in ["", "ses", "ses_", "msg_1", "ses_../x", "ses_a b", "ses_\u{e4}"] {
            assert!(SessionId::parse(id).is_err(), "{id}");
        }
        assert!(SessionId::parse(&format!("ses_{}", "a".repeat(200))).is_err());
    }
}
