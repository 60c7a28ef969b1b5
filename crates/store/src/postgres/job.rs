//! The writes besides appends.

use super::fault::Fault;
use super::link::Link;
use super::query::events;
use super::writer::{Done, Job};
use super::{append, lease};
use crate::SavedPermission;
use crate::changes::{self, Step};
use crate::node::Node;
use crate::permission::MAX_APPROVALS;
use crate::record::Record;
use crate::sql::{self, Value};

/// How many events a replay reads at a time. The size of a page is limited too.
const REPLAY_PAGE: usize = 256;

/// Writes the head of the log without changing it.
const REWRITE_HEAD: &str = "UPDATE store_head SET position = position";

/// Runs a job in a transaction that has the head's lock.
pub(super) async fn run(link: &mut Link, node: &Node, job: &Job) -> Result<Done, Fault> {
    // These are frequent, so they are sent as a whole.
    match job {
        Job::Lease(sessions) => return Ok(Done::Leases(lease::take(link, node, sessions).await?)),
        Job::Release { session, fence, seen } => {
            return Ok(Done::Flag(lease::release(link, node, session, *fence, *seen).await?));
        }
        Job::ReleaseAll(leases) => {
            lease::release_all(link, leases).await?;
            return Ok(Done::Nothing);
        }
        _ => {}
    }
    append::begin(link).await?;
    let done = change(link, node, job).await?;
    link.batch("COMMIT").await?;
    Ok(done)
}

/// Runs a job in a transaction that has begun.
async fn change(link: &mut Link, node: &Node, job: &Job) -> Result<Done, Fault> {
    Ok(match job {
        Job::Lease(_) | Job::Release { .. } | Job::ReleaseAll(_) => return Err(Fault::Unchanged),
        Job::AskToStop(session) => Done::Flag(lease::ask_to_stop(link, node, session).await?),
        Job::SaveProject(project) => {
            let values = changes::project_values(project)?;
            link.change(sql::PUT_PROJECT, &values).await?;
            Done::Nothing
        }
        Job::SavePermissions(saved) => {
            for one in saved {
                save_permission(link, one).await?;
            }
            Done::Nothing
        }
        Job::RemovePermission(id) => {
            Done::Flag(link.change(sql::DELETE_APPROVAL, &[Value::text(id)]).await? > 0)
        }
        Job::Audit(entry) => {
            link.change(sql::INSERT_AUDIT, &entry.values()).await?;
            link.change(sql::TRIM_AUDIT, &entry.trim_values()).await?;
            Done::Nothing
        }
        Job::Probe => {
            link.run(REWRITE_HEAD, &[]).await?;
            Done::Nothing
        }
        Job::Replay => Done::Count(replay(link).await?),
        Job::Leave => {
            lease::leave(link, node).await?;
            Done::Nothing
        }
    })
}

/// Saves an approval that is not saved yet, and removes the oldest ones above the limit of a directory.
async fn save_permission(link: &mut Link, one: &SavedPermission) -> Result<(), Fault> {
    let [project, directory] = [one.project_id.as_str(), &one.directory].map(Value::text);
    let [action, resource, rules] = [&one.action, &one.resource, &one.rules].map(|text| Value::text(text));
    let same = [&project, &directory, &action, &resource, &rules].map(Clone::clone);
    if link.change(sql::APPROVAL_EXISTS, &same).await? > 0 {
        return Ok(());
    }
    let (id, created) = (Value::text(&one.id), Value::number(one.created_ms));
    let row = [id.clone(), project.clone(), action, resource, created.clone(), created];
    link.change(sql::INSERT_APPROVAL, &row).await?;
    link.change(sql::INSERT_SCOPE, &[id, directory.clone(), rules]).await?;
    link.change(sql::TRIM_APPROVALS, &[project, directory, Value::number(MAX_APPROVALS)]).await?;
    Ok(())
}

/// Rebuilds all rows from the log. Returns the number of events.
async fn replay(link: &mut Link) -> Result<u64, Fault> {
    link.batch("SET LOCAL statement_timeout = '3600s'").await?;
    // Messages, parts and requests are deleted with their sessions.
    link.run(sql::DELETE_SESSIONS, &[]).await?;
    let (mut position, mut count) = (0, 0);
    loop {
        let page = events(link, position, i64::MAX as u64, REPLAY_PAGE).await?;
        let Some(last) = page.last() else { return Ok(count) };
        position = last.position;
        for envelope in &page {
            let record = Record::new(&envelope.event)?;
            for step in changes::project(&envelope.event, envelope.seq, envelope.time, &record)? {
                // Every step has succeeded before, so what it requires exists.
                if let Step::Run { sql, values, .. } = step {
                    link.change(sql, &values).await?;
                }
            }
            count += 1;
        }
    }
}
