//! The writes of the PostgreSQL backend.

use std::sync::Arc;

use codewright_proto::{Envelope, Event, Part, Project, SessionId};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::writer::{Claims, Command, Done, Job, Work};
use super::{CLOSE_TIMEOUT, Postgres};
use crate::backend::{Backend, MAX_APPEND_BYTES, MAX_APPEND_EVENTS, MAX_LEASES, limit};
use crate::lease::{LeaseResult, StopSignal};
use crate::queries::Answer;
use crate::record::Record;
use crate::{
    Audited, Claim, Condition, Error, Incoming, Lease, MAX_OPEN_DIRECTORIES, Member, Salvage, SavedPermission,
};

impl Backend for Postgres {
    fn append(&self, condition: Condition, events: Vec<Event>) -> Answer<'_, Vec<Arc<Envelope>>> {
        Box::pin(async move {
            if events.is_empty() {
                return Ok(Vec::new());
            }
            limit("events", events.len(), MAX_APPEND_EVENTS)?;
            let mut bytes = 0;
            let mut records = Vec::with_capacity(events.len());
            for event in events {
                let record = Arc::new(Record::new(&event)?);
                bytes += record.len_bytes();
                limit("bytes", bytes, MAX_APPEND_BYTES)?;
                records.push((self.0.ids.event(), event, record));
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
            let claims = self.request_leases(vec![session.clone()]).await?;
            claims.into_iter().next().ok_or(Error::Closed)?.1
        })
    }

    fn lease_all(&self, sessions: Vec<SessionId>) -> Answer<'_, Vec<(SessionId, Claim)>> {
        Box::pin(async move {
            let claims = self.request_leases(sessions).await?.into_iter();
            Ok(claims.filter_map(|(session, claim)| Some((session, claim.ok()?))).collect())
        })
    }

    fn release<'a>(&'a self, session: &'a SessionId, fence: u64, seen: u64) -> Answer<'a, bool> {
        self.flag(Job::Release { session: session.clone(), fence, seen })
    }

    fn ask_to_stop<'a>(&'a self, session: &'a SessionId) -> Answer<'a, bool> {
        self.flag(Job::AskToStop(session.clone()))
    }

    fn announce(&self, mut member: Member) {
        member.id = self.0.node.existing_name().unwrap_or_default();
        member.open.truncate(MAX_OPEN_DIRECTORIES);
        self.0.node.announce(member);
    }

    fn seal(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.0.node.seal();
            // The writes that were checked before have ended when the writer comes to this job.
            self.nothing(Job::ReleaseAll(Vec::new())).await
        })
    }

    fn leave(&self) -> Answer<'_, ()> {
        self.nothing(Job::Leave)
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
        self.nothing(Job::SaveProject(Box::new(project)))
    }

    fn save_permissions(&self, saved: Vec<SavedPermission>) -> Answer<'_, ()> {
        self.nothing(Job::SavePermissions(saved))
    }

    fn remove_permission<'a>(&'a self, id: &'a str) -> Answer<'a, bool> {
        self.flag(Job::RemovePermission(id.to_owned()))
    }

    fn replay(&self) -> Answer<'_, u64> {
        Box::pin(async move {
            match self.job(Job::Replay).await? {
                Done::Count(count) => Ok(count),
                Done::Leases(_) | Done::Flag(_) | Done::Nothing => Err(Error::Closed),
            }
        })
    }

    fn audit(&self, entry: Audited) -> Answer<'_, ()> {
        self.nothing(Job::Audit(Box::new(entry)))
    }

    fn probe(&self) -> Answer<'_, ()> {
        self.nothing(Job::Probe)
    }

    /// Finishes the queued requests and ends the thread.
    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.send(Command::Close(reply)).await?;
            timeout(CLOSE_TIMEOUT, answer).await.map_err(|_| self.busy())?.map_err(|_| Error::Closed)?;
            self.0.pool.close();
            self.0.urgent.close();
            self.0.node.end();
            // This does not block: the answer above is the last thing the writer does.
            match self.thread().take().map(std::thread::JoinHandle::join) {
                Some(Err(_)) => Err(Error::Closed),
                Some(Ok(())) | None => Ok(()),
            }
        })
    }

    fn abandon(&self, session: &SessionId, fence: u64) {
        self.0.node.abandon(session, fence);
        // If the queue is full, the writer releases it later; if the writer has ended, so has the ownership.
        drop(self.0.commands.try_send(Command::ReleaseAbandoned));
    }

    /// The log is followed from the start.
    fn watch(&self) {}

    fn salvage(&self) -> Option<&Salvage> {
        None
    }
}

impl Postgres {
    async fn request_leases(&self, sessions: Vec<SessionId>) -> Result<Claims, Error> {
        if let (true, Some(first)) = (self.0.node.is_sealed(), sessions.first()) {
            return Err(Error::Fenced { id: first.to_string() });
        }
        limit("sessions", sessions.len(), MAX_LEASES)?;
        let (reply, answer) = oneshot::channel();
        self.send(Command::Lease { sessions, store: self.clone(), reply }).await?;
        answer.await.map_err(|_| Error::Closed)?
    }

    pub(super) fn claim(&self, session: SessionId, result: LeaseResult) -> Claim {
        match result {
            LeaseResult::Ours(fence, stop) => {
                let (holding, stop) = (self.0.feed.hold(), StopSignal::new(stop));
                Claim::Held(Lease::new(Arc::new(self.clone()), session, fence, stop, holding))
            }
            LeaseResult::Held(holder) => Claim::HeldBy(holder),
        }
    }

    async fn job(&self, job: Job) -> Result<Done, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Job(job, reply)).await?;
        answer.await.map_err(|_| Error::Closed)?
    }

    fn flag(&self, job: Job) -> Answer<'_, bool> {
        Box::pin(async move { Ok(matches!(self.job(job).await?, Done::Flag(true))) })
    }

    fn nothing(&self, job: Job) -> Answer<'_, ()> {
        Box::pin(async move { self.job(job).await.map(drop) })
    }
}
