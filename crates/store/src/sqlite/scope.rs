//! What a transaction knows of the sessions that it writes to.
//!
//! Nobody else writes while it lasts, so what it has read once holds until its end: each
//! session's counter is read once and written once, however many events it gets.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use codewright_proto::SessionId;
use rusqlite::{Connection, params};

use super::apply::number;
use super::draft;
use super::lease::{self, Standing};
use crate::error::Fault;

/// A part of one transaction that is kept or undone as a whole.
pub(super) struct Scope<'a> {
    pub(super) connection: &'a Connection,
    sessions: HashMap<SessionId, Counted>,
    /// Whether any part has a draft; absent until somebody asks.
    pub(super) has_drafts: Option<bool>,
}

/// A session's counter; absent before its first event.
struct Counted {
    standing: Option<Standing>,
    is_written: bool,
}

impl<'a> Scope<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self { connection, sessions: HashMap::new(), has_drafts: None }
    }

    /// How far a session has come, and who has it.
    pub(super) fn standing(&mut self, session: &SessionId) -> Result<Option<&Standing>, Fault> {
        Ok(self.counted(session)?.standing.as_ref())
    }

    /// The place of a session's next event.
    pub(super) fn next_seq(&mut self, session: &SessionId) -> Result<u64, Fault> {
        let connection = self.connection;
        let counted = self.counted(session)?;
        if let Some(standing) = &mut counted.standing {
            standing.seq += 1;
            counted.is_written = false;
            return Ok(standing.seq);
        }
        // Its events refer to it, so the row comes before them.
        connection
            .prepare_cached("INSERT INTO event_sequence (aggregate_id, seq) VALUES (?1, 0)")?
            .execute([session.as_str()])?;
        counted.standing = Some(Standing::first());
        Ok(0)
    }

    /// Whether any part has a draft.
    pub(super) fn has_drafts(&mut self) -> Result<bool, Fault> {
        match self.has_drafts {
            Some(known) => Ok(known),
            None => Ok(*self.has_drafts.insert(draft::any(self.connection)?)),
        }
    }

    /// Writes the counters down. Comes before the end of what is kept.
    pub(super) fn finish(self) -> Result<(), Fault> {
        let sql = "UPDATE event_sequence SET seq = ?2 WHERE aggregate_id = ?1";
        for (session, counted) in &self.sessions {
            if let Counted { standing: Some(standing), is_written: false } = counted {
                let written = params![session.as_str(), number(standing.seq)];
                self.connection.prepare_cached(sql)?.execute(written)?;
            }
        }
        Ok(())
    }

    fn counted(&mut self, session: &SessionId) -> Result<&mut Counted, Fault> {
        match self.sessions.entry(session.clone()) {
            Entry::Occupied(found) => Ok(found.into_mut()),
            Entry::Vacant(place) => {
                let standing = lease::standing(self.connection, session)?;
                Ok(place.insert(Counted { standing, is_written: true }))
            }
        }
    }
}
