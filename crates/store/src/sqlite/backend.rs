//! The writes of the SQLite backend.

use std::sync::Arc;

use codewright_proto::{Envelope, Event, Part, Project, SessionId};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::writer::{Command, Work};
use super::{CLOSE_TIMEOUT, Sqlite, apply, lease, open, permission, users};
use crate::backend::{Backend, MAX_APPEND_BYTES, MAX_APPEND_EVENTS, limit};
use crate::lease::{LeaseResult, StopSignal};
use crate::queries::{Answer, Queries as _};
use crate::record::Record;
use crate::{Audited, Claim, Condition, Error, Incoming, Lease, Salvage, SavedPermission};

impl Backend for Sqlite {
    fn append(&self, condition: Condition, events: Vec<Event>) -> Answer<'_, Vec<Arc<Envelope>>> {
        Box::pin(async move {
            if events.is_empty() {
                return Ok(Vec::new());
            }
            limit("events", events.len(), MAX_APPEND_EVENTS)?;
            let mut bytes = 0;
            let mut records = Vec::with_capacity(events.len());
            for event in events {
                let record = Record::new(&event)?;
                bytes += record.len_bytes();
                limit("bytes", bytes, MAX_APPEND_BYTES)?;
                records.push((event, record));
            }
            self.write(condition, Work::Events(records), bytes).await
        })
    }

    fn draft(&self, condition: Condition, part: Part) -> Answer<'_, ()> {
        Box::pin(async move {
            // The same bytes that an event would write to the part's row.
            let session_id = part.session_id.clone();
            let event = Event::PartUpdated { session_id, part, time: 0 };
            let record = Record::new(&event)?;
            let bytes = record.len_bytes();
            limit("bytes", bytes, MAX_APPEND_BYTES)?;
            let Event::PartUpdated { part, .. } = event else { return Ok(()) };
            self.write(condition, Work::Draft(Box::new((part, record))), bytes).await?;
            Ok(())
        })
    }

    fn lease<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Claim> {
        Box::pin(async move {
            let (node, of, log) = (Arc::clone(&self.0.node), session.clone(), self.clone());
            // The lease is made on the writer's thread, so a caller that stops waiting drops it there.
            let claim = self
                .on_writer(move |connection| {
                    Ok(match lease::take(connection, &node, &of)? {
                        LeaseResult::Ours(fence, stop) => {
                            let holding = log.0.feed.hold();
                            let stop = StopSignal::new(stop);
                            Claim::Held(Lease::new(Arc::new(log), of, fence, stop, holding))
                        }
                        LeaseResult::Held(holder) => Claim::HeldBy(holder),
                    })
                })
                .await?;
            if matches!(claim, Claim::Held(_)) {
                self.watch();
            }
            Ok(claim)
        })
    }

    fn lease_all(&self, sessions: Vec<SessionId>) -> Answer<'_, Vec<(SessionId, Claim)>> {
        Box::pin(async move {
            let mut claims = Vec::with_capacity(sessions.len());
            for session in sessions {
                match self.lease(&session).await {
                    Ok(claim) => claims.push((session, claim)),
                    Err(Error::Unknown { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(claims)
        })
    }

    fn release<'a>(&'a self, session: &'a SessionId, fence: u64, seen: u64) -> Answer<'a, bool> {
        let (node, session) = (Arc::clone(&self.0.node), session.clone());
        Box::pin(self.on_writer(move |connection| lease::release(connection, &node, &session, fence, seen)))
    }

    fn ask_to_stop<'a>(&'a self, session: &'a SessionId) -> Answer<'a, bool> {
        Box::pin(async move {
            // Checked first, so that nothing is written if there is no other owner.
            if self.holder(session).await?.is_none_or(|holder| holder.is_ours) {
                return Ok(false);
            }
            let (node, session) = (Arc::clone(&self.0.node), session.clone());
            self.on_writer(move |connection| lease::ask_to_stop(connection, &node, &session)).await
        })
    }

    fn replay_foreign(&self, events: Vec<Incoming>) -> Answer<'_, Vec<Arc<Envelope>>> {
        Box::pin(async move {
            limit("events", events.len(), MAX_APPEND_EVENTS)?;
            let bytes = events.iter().map(|event| event.data.get().len()).sum();
            limit("bytes", bytes, MAX_APPEND_BYTES)?;
            self.write(Condition::Always, Work::Incoming(events), bytes).await
        })
    }

    fn save_project(&self, project: Project) -> Answer<'_, ()> {
        Box::pin(self.on_writer(move |connection| apply::project(connection, &project)))
    }

    fn save_permissions(&self, saved: Vec<SavedPermission>) -> Answer<'_, ()> {
        Box::pin(self.on_writer(move |connection| permission::save(connection, &saved)))
    }

    fn remove_permission<'a>(&'a self, id: &'a str) -> Answer<'a, bool> {
        let id = id.to_owned();
        Box::pin(self.on_writer(move |connection| permission::remove(connection, &id)))
    }

    fn replay(&self) -> Answer<'_, u64> {
        Box::pin(self.on_writer(apply::replay))
    }

    fn audit(&self, entry: Audited) -> Answer<'_, ()> {
        Box::pin(self.on_writer(move |connection| users::audit(connection, &entry)))
    }

    fn probe(&self) -> Answer<'_, ()> {
        Box::pin(self.on_writer(open::rewrite_version))
    }

    /// Finishes the queued requests, moves everything into the one file and ends the threads.
    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            if let Some(readers) = &self.0.readers {
                readers.close();
            }
            let (reply, answer) = oneshot::channel();
            self.send(Command::Close(reply)).await?;
            timeout(CLOSE_TIMEOUT, answer).await.map_err(|_| self.busy())?.map_err(|_| Error::Closed)??;
            self.0.node.end();
            self.0.wake_tail();
            let threads = std::mem::take(&mut *self.threads());
            for thread in threads {
                // This does not block: the answer above is the last thing the writer does, and the tail ends
                // with the feed.
                thread.join().map_err(|_| Error::Closed)?;
            }
            Ok(())
        })
    }

    fn abandon(&self, session: &SessionId, fence: u64) {
        self.0.node.abandon(session, fence);
        // If the queue is full, the writer releases it later; if the writer has ended, so has the ownership.
        drop(self.0.commands.try_send(Command::ReleaseAbandoned));
    }

    fn watch(&self) {
        let Some(tail) = &self.0.tail else { return };
        // The thread tries again if the file cannot be read now.
        drop(tail.look());
        if let Some(thread) = tail.start() {
            self.threads().push(thread);
        }
    }

    fn salvage(&self) -> Option<&Salvage> {
        self.0.salvage.as_ref()
    }
}
