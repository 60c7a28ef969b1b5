//! A cache of the sessions that a transaction writes to.
//!
//! No other process writes during a transaction, so each session's counter is read once and written once, for any number
//! of events.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use codewright_proto::SessionId;
use rusqlite::{Connection, params};

use super::draft;
use super::lease::{self, SequenceRow};
use crate::error::Fault;
use crate::sql::to_column as number;

/// A part of a transaction that is committed or rolled back as a whole.
pub(super) struct Scope<'a> {
    pub(super) connection: &'a Connection,
    sessions: HashMap<SessionId, Counter>,
    /// Whether any part has a draft; `None` until it is first needed.
    pub(super) has_drafts: Option<bool>,
}

/// A session's counter.
struct Counter {
    sequence: Option<SequenceRow>,
    is_written: bool,
}

impl<'a> Scope<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self { connection, sessions: HashMap::new(), has_drafts: None }
    }

    /// The counter and the owner of a session; `None` before its first event.
    pub(super) fn sequence(&mut self, session: &SessionId) -> Result<Option<&SequenceRow>, Fault> {
        Ok(self.counter(session)?.sequence.as_ref())
    }

    /// The `seq` of a session's next event.
    pub(super) fn next_seq(&mut self, session: &SessionId) -> Result<u64, Fault> {
        let connection = self.connection;
        let counter = self.counter(session)?;
        if let Some(sequence) = &mut counter.sequence {
            sequence.seq += 1;
            counter.is_written = false;
            return Ok(sequence.seq);
        }
        // The row must exist before the events that refer to it.
        connection
            .prepare_cached("INSERT INTO event_sequence (aggregate_id, seq) VALUES (?1, 0)")?
            .execute([session.as_str()])?;
        counter.sequence = Some(SequenceRow::first());
        Ok(0)
    }

    /// Whether any part has a draft.
    pub(super) fn has_drafts(&mut self) -> Result<bool, Fault> {
        match self.has_drafts {
            Some(has_drafts) => Ok(has_drafts),
            None => Ok(*self.has_drafts.insert(draft::any(self.connection)?)),
        }
    }

    /// Writes the counters. Must be called before the commit.
    pub(super) fn finish(self) -> Result<(), Fault> {
        let sql = "UPDATE event_sequence SET seq = ?2 WHERE aggregate_id = ?1";
        for (session, counter) in &self.sessions {
            if let Counter { sequence: Some(sequence), is_written: false } = counter {
                let written = params![session.as_str(), number(sequence.seq)];
                self.connection.prepare_cached(sql)?.execute(written)?;
            }
        }
        Ok(())
    }

    fn counter(&mut self, session: &SessionId) -> Result<&mut Counter, Fault> {
        match self.sessions.entry(session.clone()) {
            Entry::Occupied(found) => Ok(found.into_mut()),
            Entry::Vacant(entry) => {
                let sequence = lease::sequence(self.connection, session)?;
                Ok(entry.insert(Counter { sequence, is_written: true }))
            }
        }
    }
}
