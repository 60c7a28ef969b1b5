//! Logged events that are exchanged between stores.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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
