//! Events that go from one store to another, as they are logged.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A logged event as another store told it.
///
/// Events of one session are taken in their order and without gaps; see
/// [`Store::replay_foreign`](crate::Store::replay_foreign).
#[derive(Debug, Clone, Deserialize)]
pub struct Incoming {
    /// The event's id, which it keeps.
    pub id: String,
    /// The session.
    #[serde(rename = "aggregateID")]
    pub aggregate_id: String,
    /// Its place in the session's log.
    pub seq: u64,
    /// Its name and the version of its shape, such as `message.updated.1`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its properties.
    pub data: Box<RawValue>,
}

/// A logged event as another store is told.
#[derive(Debug, Clone, Serialize)]
pub struct Logged {
    /// The event's id.
    pub id: String,
    /// The session.
    pub aggregate_id: String,
    /// Its place in the session's log.
    pub seq: u64,
    /// Its name and the version of its shape.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its properties.
    pub data: Box<RawValue>,
}
