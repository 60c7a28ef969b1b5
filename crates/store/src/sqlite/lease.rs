//! Who owns a session, as its row in `event_sequence` says.

use codewright_proto::SessionId;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::watch;

use super::apply::{number, unknown};
use super::query::fetch;
use super::scope::Scope;
use crate::error::Fault;
use crate::lease::Holder;
use crate::node::{Node, pid_of};
use crate::{Condition, Error};

/// What came of asking for a session.
pub(crate) enum Taken {
    /// It is ours, under this fence, until another process wants it stopped.
    Ours(u64, watch::Receiver<bool>),
    /// A living owner has it.
    Held(Holder),
}

/// How far a session has come, and who has it.
pub(super) struct Standing {
    pub(super) seq: u64,
    owner: Option<String>,
    fence: u64,
}

pub(super) fn standing(connection: &Connection, session: &SessionId) -> Result<Option<Standing>, Fault> {
    let found = connection
        .prepare_cached("SELECT seq, owner_id, fence FROM event_sequence WHERE aggregate_id = ?1")?
        .query_row([session.as_str()], |row| {
            let (seq, fence): (i64, i64) = (row.get(0)?, row.get(2)?);
            Ok(Standing { seq: seq.unsigned_abs(), owner: row.get(1)?, fence: fence.unsigned_abs() })
        })
        .optional()?;
    Ok(found)
}

/// The last `seq` of a session that has ever had an event.
pub(super) fn seq(connection: &Connection, session: &SessionId) -> Result<Option<u64>, Fault> {
    Ok(standing(connection, session)?.map(|standing| standing.seq))
}

/// Who lives and has the session.
pub(super) fn holder(
    connection: &Connection,
    node: &Node,
    session: &SessionId,
) -> Result<Option<Holder>, Fault> {
    let Some(owner) = standing(connection, session)?.and_then(|standing| standing.owner) else {
        return Ok(None);
    };
    living(node, session, owner)
}

/// The sessions that somebody has, with who it is.
pub(super) fn holders(connection: &Connection, node: &Node) -> Result<Vec<(SessionId, Holder)>, Fault> {
    let sql = "SELECT aggregate_id, owner_id FROM event_sequence WHERE owner_id IS NOT NULL";
    let owned = fetch(connection, sql, [], |row| {
        Ok((row.get::<_, String>("aggregate_id")?, row.get::<_, String>("owner_id")?))
    })?;
    let mut found = Vec::new();
    for (session, owner) in owned {
        // A name that is no session's id cannot have been leased by us.
        let Ok(session) = SessionId::parse(&session) else { continue };
        if let Some(holder) = living(node, &session, owner)? {
            found.push((session, holder));
        }
    }
    Ok(found)
}

fn living(node: &Node, session: &SessionId, owner: String) -> Result<Option<Holder>, Fault> {
    let is_ours = node.known_name().as_ref() == Some(&owner);
    let alive = if is_ours { node.holds(session).is_some() } else { alive(node, &owner)? };
    Ok(alive.then(|| Holder { pid: pid_of(&owner).unwrap_or_else(std::process::id), is_ours }))
}

fn alive(node: &Node, owner: &str) -> Result<bool, Fault> {
    node.is_alive(owner).map_err(|error| node.unlockable(error).into())
}

/// Takes a session, unless a living owner has it.
pub(super) fn take(connection: &mut Connection, node: &Node, session: &SessionId) -> Result<Taken, Fault> {
    // Locked before any row names it.
    let name = node.name().map_err(|error| node.unlockable(error))?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let exists =
        transaction.prepare_cached("SELECT 1 FROM session WHERE id = ?1")?.exists([session.as_str()])?;
    let Some(standing) = standing(&transaction, session)?.filter(|_| exists) else {
        return Err(unknown("session", session).into());
    };
    if let Some(owner) = standing.owner
        && let Some(holder) = living(node, session, owner)?
    {
        return Ok(Taken::Held(holder));
    }
    let fence = standing.fence + 1;
    transaction
        .prepare_cached("UPDATE event_sequence SET owner_id = ?2, fence = ?3 WHERE aggregate_id = ?1")?
        .execute(params![session.as_str(), name, number(fence)])?;
    // Before the row can be seen, so that nobody here takes its owner for a dead one.
    let stop = node.take(session, fence);
    if let Err(error) = transaction.commit() {
        node.forget(session, fence);
        return Err(error.into());
    }
    Ok(Taken::Ours(fence, stop))
}

/// Asks the living owner in another process to stop what it does in a session; whether there is one.
///
/// What is written names the owner's fence, so it never stops a later one.
pub(super) fn ask_to_stop(
    connection: &mut Connection,
    node: &Node,
    session: &SessionId,
) -> Result<bool, Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if holder(&transaction, node, session)?.is_none_or(|holder| holder.is_ours) {
        return Ok(false);
    }
    transaction
        .prepare_cached("UPDATE event_sequence SET stopped = fence WHERE aggregate_id = ?1")?
        .execute([session.as_str()])?;
    transaction.commit()?;
    Ok(true)
}

/// Tells those of this process who were asked to stop.
pub(super) fn tell_stopped(connection: &Connection, node: &Node) -> Result<(), Fault> {
    let Some(name) = node.known_name().filter(|_| node.holds_any()) else { return Ok(()) };
    let sql = "SELECT aggregate_id, fence FROM event_sequence WHERE owner_id = ?1 AND stopped = fence";
    let stopped = fetch(connection, sql, [name], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
    })?;
    for (session, fence) in stopped {
        // A name that is no session's id cannot have been leased by us.
        let Ok(session) = SessionId::parse(&session) else { continue };
        node.stop(&session, fence);
    }
    Ok(())
}

/// Lets a session go if nothing was stored of it behind `seen`; whether it is ours no longer.
pub(super) fn release(
    connection: &mut Connection,
    node: &Node,
    session: &SessionId,
    fence: u64,
    seen: u64,
) -> Result<bool, Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let standing = standing(&transaction, session)?;
    let ours = standing.filter(|standing| standing.is_of(node, fence));
    if let Some(standing) = ours {
        if standing.seq > seen {
            return Ok(false);
        }
        let_go(&transaction, session, fence)?;
        transaction.commit()?;
    }
    node.forget(session, fence);
    Ok(true)
}

/// Lets go what was dropped without a word.
pub(super) fn release_abandoned(
    connection: &mut Connection,
    abandoned: &[(SessionId, u64)],
) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (session, fence) in abandoned {
        let_go(&transaction, session, *fence)?;
    }
    transaction.commit()?;
    Ok(())
}

/// The fence has one owner only, so it says enough.
fn let_go(connection: &Connection, session: &SessionId, fence: u64) -> Result<(), Fault> {
    connection
        .prepare_cached("UPDATE event_sequence SET owner_id = NULL WHERE aggregate_id = ?1 AND fence = ?2")?
        .execute(params![session.as_str(), number(fence)])?;
    Ok(())
}

impl Standing {
    /// A session that begins: nobody has it.
    pub(super) fn first() -> Self {
        Self { seq: 0, owner: None, fence: 0 }
    }

    fn is_of(&self, node: &Node, fence: u64) -> bool {
        self.fence == fence && self.owner.is_some() && self.owner == node.known_name()
    }
}

/// Refuses what is asked under a condition that does not hold (any more).
pub(super) fn demand(scope: &mut Scope<'_>, node: &Node, condition: &Condition) -> Result<(), Fault> {
    match condition {
        Condition::Always => Ok(()),
        Condition::Untouched { session, seq } => {
            let last = scope.standing(session)?.map(|standing| standing.seq);
            if last == Some(*seq) { Ok(()) } else { Err(Error::Moved { id: session.to_string() }.into()) }
        }
        Condition::RowUntouched { session, seq } => {
            let changed = scope
                .connection
                .prepare_cached(
                    "SELECT 1 FROM event WHERE aggregate_id = ?1 AND seq > ?2 AND type GLOB 'session.*'",
                )?
                .exists(params![session.as_str(), number(*seq)])?;
            if changed { Err(Error::Moved { id: session.to_string() }.into()) } else { Ok(()) }
        }
        Condition::Leased { session, fence } => {
            let standing = scope.standing(session)?;
            if standing.is_some_and(|standing| standing.is_of(node, *fence)) {
                Ok(())
            } else {
                Err(Error::Fenced { id: session.to_string() }.into())
            }
        }
    }
}
