//! Logged events that are exchanged between stores.

use codewright_proto::{Event, EventId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Error;

/// An event from another store.
///
/// The events of a session must be in order and without gaps; see
/// [`Store::replay_foreign`](crate::Store::replay_foreign).
#[derive(Debug, Clone, Deserialize)]
pub struct Incoming {
    /// The event's id, which is kept.
    pub id: String,
    /// The session.
    #[serde(rename = "aggregateID")]
    pub aggregate_id: String,
    /// Its position in the session's log.
    pub seq: u64,
    /// Its name and schema version, such as `message.updated.1`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its properties.
    pub data: Box<RawValue>,
    /// When it was stored, in milliseconds since 1970; `None` for now. Only a copy of a whole store keeps it.
    #[serde(skip)]
    pub(crate) time: Option<u64>,
}

/// An event for another store.
#[derive(Debug, Clone, Serialize)]
pub struct Logged {
    /// The event's id.
    pub id: String,
    /// The session.
    pub aggregate_id: String,
    /// Its position in the session's log.
    pub seq: u64,
    /// Its name and schema version.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its properties.
    pub data: Box<RawValue>,
}

impl Incoming {
    /// The event's id, if the event belongs to the session and follows the one before it in the list.
    pub(crate) fn checked(&self, event: &Event, before: Option<(&str, u64)>) -> Result<EventId, Error> {
        let session = event.session_id();
        let invalid = |reason: String| Error::Invalid { event: event.name(), reason };
        if session.as_str() != self.aggregate_id {
            return Err(invalid(format!("it belongs to `{session}`, not to `{}`", self.aggregate_id)));
        }
        let id = EventId::parse(&self.id).map_err(|error| invalid(error.to_string()))?;
        // The order is checked for known events too.
        match before {
            Some((of, seq)) if of == self.aggregate_id && self.seq != seq + 1 => Err(self.gap(seq + 1)),
            _ => Ok(id),
        }
    }

    /// The error if another `seq` is expected.
    pub(crate) fn gap(&self, expected: u64) -> Error {
        Error::Gap { id: self.aggregate_id.clone(), expected, found: self.seq }
    }
}
