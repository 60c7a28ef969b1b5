//! The owners of sessions, stored in `event_sequence`.

use codewright_proto::SessionId;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::query::fetch;
use super::scope::Scope;
use crate::changes::unknown;
use crate::error::Fault;
use crate::lease::{Holder, LeaseResult};
use crate::node::{Node, pid_of};
use crate::sql::{self, to_column as number};
use crate::{Condition, Error};

/// A row of `event_sequence`: the last `seq` and the owner of a session.
pub(super) struct SequenceRow {
    pub(super) seq: u64,
    owner: Option<String>,
    fence: u64,
}

pub(super) fn sequence(connection: &Connection, session: &SessionId) -> Result<Option<SequenceRow>, Fault> {
    let found = connection
        .prepare_cached(sql::SEQUENCE)?
        .query_row([session.as_str()], |row| {
            let (seq, fence): (i64, i64) = (row.get(0)?, row.get(2)?);
            Ok(SequenceRow { seq: seq.unsigned_abs(), owner: row.get(1)?, fence: fence.unsigned_abs() })
        })
        .optional()?;
    Ok(found)
}

/// The last `seq` of a session; `None` if it never had an event.
pub(super) fn seq(connection: &Connection, session: &SessionId) -> Result<Option<u64>, Fault> {
    Ok(sequence(connection, session)?.map(|sequence| sequence.seq))
}

/// The living owner of a session, if there is one.
pub(super) fn holder(
    connection: &Connection,
    node: &Node,
    session: &SessionId,
) -> Result<Option<Holder>, Fault> {
    let Some(owner) = sequence(connection, session)?.and_then(|sequence| sequence.owner) else {
        return Ok(None);
    };
    living(node, session, owner)
}

/// The sessions that have a living owner.
pub(super) fn holders(connection: &Connection, node: &Node) -> Result<Vec<(SessionId, Holder)>, Fault> {
    let owned = fetch(connection, sql::OWNED, [], |row| {
        Ok((row.get::<_, String>("aggregate_id")?, row.get::<_, String>("owner_id")?))
    })?;
    let mut found = Vec::new();
    for (session, owner) in owned {
        // An invalid session id cannot have been leased.
        let Ok(session) = SessionId::parse(&session) else { continue };
        if let Some(holder) = living(node, &session, owner)? {
            found.push((session, holder));
        }
    }
    Ok(found)
}

fn living(node: &Node, session: &SessionId, owner: String) -> Result<Option<Holder>, Fault> {
    let is_ours = node.existing_name().as_ref() == Some(&owner);
    let alive = if is_ours { node.holds(session).is_some() } else { alive(node, &owner)? };
    Ok(alive.then(|| Holder { pid: pid_of(&owner).unwrap_or_else(std::process::id), is_ours }))
}

fn alive(node: &Node, owner: &str) -> Result<bool, Fault> {
    node.is_alive(owner).map_err(|error| node.unlockable(error).into())
}

/// Leases a session unless it has a living owner.
pub(super) fn take(
    connection: &mut Connection,
    node: &Node,
    session: &SessionId,
) -> Result<LeaseResult, Fault> {
    // The lock file must exist before a row names it.
    let name = node.name().map_err(|error| node.unlockable(error))?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let exists = transaction.prepare_cached(sql::SESSION_EXISTS)?.exists([session.as_str()])?;
    let Some(sequence) = sequence(&transaction, session)?.filter(|_| exists) else {
        return Err(unknown("session", session).into());
    };
    if let Some(owner) = sequence.owner
        && let Some(holder) = living(node, session, owner)?
    {
        return Ok(LeaseResult::Held(holder));
    }
    let fence = sequence.fence + 1;
    transaction.prepare_cached(sql::OWN)?.execute(params![name, number(fence), session.as_str()])?;
    // Before the row is visible, so that this process does not consider its owner dead.
    let stop = node.take(session, fence);
    if let Err(error) = transaction.commit() {
        node.forget(session, fence);
        return Err(error.into());
    }
    Ok(LeaseResult::Ours(fence, stop))
}

/// Sends a stop request to the living owner in another process. Returns whether there is one.
///
/// The request contains the owner's fence, so it never stops a later owner.
pub(super) fn ask_to_stop(
    connection: &mut Connection,
    node: &Node,
    session: &SessionId,
) -> Result<bool, Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if holder(&transaction, node, session)?.is_none_or(|holder| holder.is_ours) {
        return Ok(false);
    }
    transaction.prepare_cached(sql::ASK_TO_STOP)?.execute([session.as_str()])?;
    transaction.commit()?;
    Ok(true)
}

/// Delivers stop requests to the leases of this process.
pub(super) fn deliver_stop_requests(connection: &Connection, node: &Node) -> Result<(), Fault> {
    let Some(name) = node.existing_name().filter(|_| node.holds_any()) else { return Ok(()) };
    let stopped = fetch(connection, sql::STOPPED_SQLITE, [name], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
    })?;
    for (session, fence) in stopped {
        // An invalid session id cannot have been leased.
        let Ok(session) = SessionId::parse(&session) else { continue };
        node.stop(&session, fence);
    }
    Ok(())
}

/// Releases a session if no event of it was stored after `seen`. Returns whether the lease is over.
pub(super) fn release(
    connection: &mut Connection,
    node: &Node,
    session: &SessionId,
    fence: u64,
    seen: u64,
) -> Result<bool, Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sequence = sequence(&transaction, session)?;
    let ours = sequence.filter(|sequence| sequence.is_of(node, fence));
    if let Some(sequence) = ours {
        if sequence.seq > seen {
            return Ok(false);
        }
        clear_owner(&transaction, session, fence)?;
        transaction.commit()?;
    }
    node.forget(session, fence);
    Ok(true)
}

/// Releases the sessions of dropped leases.
pub(super) fn release_abandoned(
    connection: &mut Connection,
    abandoned: &[(SessionId, u64)],
) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (session, fence) in abandoned {
        clear_owner(&transaction, session, *fence)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Clears the owner of a session. A fence has only one owner, so it identifies the row.
fn clear_owner(connection: &Connection, session: &SessionId, fence: u64) -> Result<(), Fault> {
    connection.prepare_cached(sql::DISOWN)?.execute(params![session.as_str(), number(fence)])?;
    Ok(())
}

impl SequenceRow {
    /// The row of a new session, without an owner.
    pub(super) fn first() -> Self {
        Self { seq: 0, owner: None, fence: 0 }
    }

    fn is_of(&self, node: &Node, fence: u64) -> bool {
        self.fence == fence && self.owner.is_some() && self.owner == node.existing_name()
    }
}

/// Fails if a condition does not hold.
pub(super) fn check_condition(
    scope: &mut Scope<'_>,
    node: &Node,
    condition: &Condition,
) -> Result<(), Fault> {
    match condition {
        Condition::Always => Ok(()),
        Condition::Untouched { session, seq } => {
            let last = scope.sequence(session)?.map(|sequence| sequence.seq);
            if last == Some(*seq) { Ok(()) } else { Err(Error::Conflict { id: session.to_string() }.into()) }
        }
        Condition::RowUntouched { session, seq } => {
            let changed = scope
                .connection
                .prepare_cached(sql::ROW_CHANGED)?
                .exists(params![session.as_str(), number(*seq)])?;
            if changed { Err(Error::Conflict { id: session.to_string() }.into()) } else { Ok(()) }
        }
        Condition::Leased { session, fence } => {
            let sequence = scope.sequence(session)?;
            if sequence.is_some_and(|sequence| sequence.is_of(node, *fence)) {
                Ok(())
            } else {
                Err(Error::Fenced { id: session.to_string() }.into())
            }
        }
    }
}
