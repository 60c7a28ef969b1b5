//! Ids: a prefix, twelve hexadecimal digits of time, fourteen random characters.
//!
//! The digits are the low 48 bits of `milliseconds * 4096 + counter`, so ids made
//! by one process sort in the order they were made. Session ids hold the bitwise
//! complement of those bits and therefore sort newest first. Ids sent by clients
//! are kept as they are; only their prefix is checked.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Clock;

/// The longest id accepted from outside, in bytes.
const MAX_ID_BYTES: usize = 128;

/// An id that does not start as its kind must, or holds characters no id has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{id}` is not a valid id: it must start with `{prefix}_` and hold letters, digits, `_` or `-`")]
pub struct ParseIdError {
    /// What was given, shortened.
    pub id: String,
    /// What it has to begin with.
    pub prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The prefix before the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// Checks an id that came from outside.
            pub fn parse(id: &str) -> Result<Self, ParseIdError> {
                check(id, $prefix)?;
                Ok(Self(id.into()))
            }

            /// The id as text.
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
    /// Questions put to a user.
    QuestionId = "que";
    /// The file that holds a tool's whole output.
    ToolOutputId = "tool";
    /// A terminal.
    PtyId = "pty";
    /// A sign-in that was begun.
    AttemptId = "con";
}

/// A project: the hash of a repository's first commit, or `global`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ProjectId(pub Arc<str>);

impl ProjectId {
    /// The project of directories that belong to no repository.
    #[must_use]
    pub fn global() -> Self {
        Self("global".into())
    }

    /// The id as text.
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

/// Makes ids. One per process; clones share the counter.
#[derive(Clone)]
pub struct Ids(Arc<Mutex<Maker>>);

struct Maker {
    clock: Clock,
    last_ms: u64,
    counter: u64,
    random: u64,
}

impl Ids {
    /// Ids that nobody else makes.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        // `RandomState` is seeded by the operating system; ids need to be unique, not secret.
        let seed = RandomState::new().hash_one(clock.now_ms());
        Self::seeded(clock, seed)
    }

    /// Ids that are the same in every run, for tests.
    #[must_use]
    pub fn seeded(clock: Clock, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Maker { clock, last_ms: 0, counter: 0, random: seed })))
    }

    /// A new session id, smaller than all before it.
    #[must_use]
    pub fn session(&self) -> SessionId {
        SessionId(self.make(SessionId::PREFIX, true))
    }

    /// A new message id, greater than all before it.
    #[must_use]
    pub fn message(&self) -> MessageId {
        MessageId(self.make(MessageId::PREFIX, false))
    }

    /// A new part id, greater than all before it.
    #[must_use]
    pub fn part(&self) -> PartId {
        PartId(self.make(PartId::PREFIX, false))
    }

    /// A new event id, greater than all before it.
    #[must_use]
    pub fn event(&self) -> EventId {
        EventId(self.make(EventId::PREFIX, false))
    }

    /// A new permission request id.
    #[must_use]
    pub fn permission(&self) -> PermissionId {
        PermissionId(self.make(PermissionId::PREFIX, false))
    }

    /// A new id for questions put to a user.
    #[must_use]
    pub fn question(&self) -> QuestionId {
        QuestionId(self.make(QuestionId::PREFIX, false))
    }

    /// A new name for a file with a tool's whole output.
    #[must_use]
    pub fn tool_output(&self) -> ToolOutputId {
        ToolOutputId(self.make(ToolOutputId::PREFIX, false))
    }

    /// A new terminal id.
    #[must_use]
    pub fn pty(&self) -> PtyId {
        PtyId(self.make(PtyId::PREFIX, false))
    }

    /// A new id of a sign-in.
    #[must_use]
    pub fn attempt(&self) -> AttemptId {
        AttemptId(self.make(AttemptId::PREFIX, false))
    }

    /// A number to pick among alternatives with, such as the words of a slug.
    #[must_use]
    pub fn random(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).random()
    }

    fn make(&self, prefix: &str, descending: bool) -> Arc<str> {
        // A poisoned maker is still a valid maker: every field is written whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).make(prefix, descending).into()
    }
}

impl Maker {
    fn make(&mut self, prefix: &str, descending: bool) -> String {
        const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        // A clock set back must not make ids that sort before older ones.
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
    fn messages_sort_upwards_and_sessions_downwards_even_when_the_clock_stands() {
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
    fn hostile_ids_are_refused() {
        for id in ["", "ses", "ses_", "msg_1", "ses_../x", "ses_a b", "ses_\u{e4}"] {
            assert!(SessionId::parse(id).is_err(), "{id}");
        }
        assert!(SessionId::parse(&format!("ses_{}", "a".repeat(200))).is_err());
    }
}
