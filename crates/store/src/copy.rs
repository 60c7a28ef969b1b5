//! Copies a store into another one, whatever their backends are.
//!
//! The log is copied event by event with its ids, positions in sessions and times, and the rows follow from it. A copy that
//! was interrupted is continued: the part of the log that the target has is compared instead of copied. At the end every
//! row of both stores is compared.

use std::collections::BTreeSet;
use std::sync::Arc;

use codewright_proto::{Envelope, SessionId};
use serde_json::value::RawValue;

use crate::record::Record;
use crate::users::MAX_AUDIT_PAGE;
use crate::{Approvals, Audited, Error, Incoming, Store};

/// How many events are read at a time. The size of a page is limited too.
const PAGE_EVENTS: usize = 1000;

/// The result of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// The events of the log.
    pub events: u64,
    /// The events that the target had from an interrupted copy.
    pub found: u64,
    /// The sessions whose rows were compared.
    pub sessions: u64,
    /// The messages whose rows were compared.
    pub messages: u64,
    /// The entries of the audit log.
    pub audited: u64,
}

/// Copies everything in a store.
///
/// # Errors
///
/// Fails if a process runs a session in one of the stores, if the target has other events or entries of the audit log than the
/// source, and if a row differs at the end.
pub async fn copy(from: &Store, to: &Store) -> Result<Copied, Error> {
    for (store, name) in [(from, "source"), (to, "target")] {
        if let Some((session, holder)) = store.holders().await?.into_iter().next() {
            let reason = format!("process {} runs the session `{session}` of the {name}", holder.pid);
            return Err(Error::Refused { reason: format!("{reason}: end it and copy again") });
        }
    }
    for project in from.projects().await? {
        to.save_project(project).await?;
    }
    let mut copied = Copied::default();
    let mut sessions = BTreeSet::new();
    let (mut read, mut compared) = (0, 0);
    loop {
        let page = from.events(read, PAGE_EVENTS).await?;
        let Some(last) = page.last() else { break };
        read = last.position;
        sessions.extend(page.iter().map(|envelope| envelope.event.session_id().clone()));
        copied.events += page.len() as u64;
        let mut known = to.events(compared, page.len()).await?;
        // A page of the target may be shorter, because pages have a limit of bytes.
        while known.len() < page.len() {
            let after = known.last().map_or(compared, |last| last.position);
            let more = to.events(after, page.len() - known.len()).await?;
            if more.is_empty() {
                break;
            }
            known.extend(more);
        }
        check_same(&page, &known)?;
        compared = known.last().map_or(compared, |last| last.position);
        copied.found += known.len() as u64;
        let new = page[known.len()..].iter().map(incoming).collect::<Result<Vec<_>, _>>()?;
        let stored: Vec<Arc<Envelope>> =
            if new.is_empty() { Vec::new() } else { to.replay_foreign(new).await? };
        compared = stored.last().map_or(compared, |last| last.position);
    }
    if !to.events(compared, 1).await?.is_empty() {
        return Err(differs("the target has events that the source does not have"));
    }
    to.save_permissions(from.saved_permissions(Approvals::default()).await?).await?;
    copied.audited = copy_audit(from, to).await?;
    for session in &sessions {
        for (part, _) in from.drafts(session).await? {
            to.draft(part).await?;
        }
    }
    verify(from, to, &sessions, &mut copied).await?;
    Ok(copied)
}

/// Copies the audit log, which is not a part of the events. Entries that the target has are compared. Returns the number of
/// entries.
async fn copy_audit(from: &Store, to: &Store) -> Result<u64, Error> {
    let (source, target) = (audit_log(from).await?, audit_log(to).await?);
    if !source.starts_with(&target) {
        return Err(differs("the target has other entries in its audit log"));
    }
    for entry in &source[target.len()..] {
        to.audit(entry.clone()).await?;
    }
    if audit_log(to).await? != source {
        let reason = "the copy of the audit log differs from the original".to_owned();
        return Err(Error::Refused { reason });
    }
    Ok(source.len() as u64)
}

/// The audit log, oldest entries first. The target numbers its entries anew, so the numbers are left out.
async fn audit_log(store: &Store) -> Result<Vec<Audited>, Error> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let page = store.audited(before, MAX_AUDIT_PAGE).await?;
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        all.extend(page);
    }
    all.reverse();
    all.iter_mut().for_each(|entry| entry.id = 0);
    Ok(all)
}

/// An event with everything that the log has of it.
fn incoming(envelope: &Envelope) -> Result<Incoming, Error> {
    let event = &envelope.event;
    let json = String::from_utf8_lossy(Record::new(event)?.properties()).into_owned();
    Ok(Incoming {
        id: envelope.id.to_string(),
        aggregate_id: event.session_id().to_string(),
        seq: envelope.seq,
        kind: format!("{}.{}", event.name(), event.version()),
        data: RawValue::from_string(json).map_err(|error| Error::unreadable("event", error))?,
        time: Some(envelope.time),
    })
}

/// Fails if the target's events are not the first ones of the page.
fn check_same(page: &[Envelope], known: &[Envelope]) -> Result<(), Error> {
    for (source, target) in page.iter().zip(known) {
        let is_same = source.id == target.id
            && source.seq == target.seq
            && source.time == target.time
            && source.event == target.event;
        if !is_same {
            return Err(differs(&format!(
                "the target has event `{}` where the source has `{}`",
                target.id, source.id
            )));
        }
    }
    Ok(())
}

fn differs(reason: &str) -> Error {
    Error::Refused {
        reason: format!("{reason}: copy into an empty store, or continue the copy of the same store"),
    }
}

/// Compares the rows of both stores.
async fn verify(
    from: &Store,
    to: &Store,
    sessions: &BTreeSet<SessionId>,
    copied: &mut Copied,
) -> Result<(), Error> {
    let wrong =
        |what: String| Error::Refused { reason: format!("the copy of {what} differs from the original") };
    for id in sessions {
        if from.session_at(id).await? != to.session_at(id).await? {
            return Err(wrong(format!("the session `{id}`")));
        }
        let (source, target) = (from.transcript_at(id).await?, to.transcript_at(id).await?);
        if source != target {
            return Err(wrong(format!("the messages of the session `{id}`")));
        }
        if from.todos(id).await? != to.todos(id).await? {
            return Err(wrong(format!("the to-do list of the session `{id}`")));
        }
        copied.sessions += 1;
        copied.messages += source.1.len() as u64;
    }
    if from.projects().await? != to.projects().await? {
        return Err(wrong("the projects".to_owned()));
    }
    if from.pending_permissions().await? != to.pending_permissions().await? {
        return Err(wrong("the open permission requests".to_owned()));
    }
    if from.saved_permissions(Approvals::default()).await?
        != to.saved_permissions(Approvals::default()).await?
    {
        return Err(wrong("the saved permissions".to_owned()));
    }
    Ok(())
}
