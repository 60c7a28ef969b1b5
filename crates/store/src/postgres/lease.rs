//! The owners of sessions, stored in `event_sequence`, and the processes, stored in `store_node`.
//!
//! A process is alive until the time in its row, by the database's clock. Its heartbeat renews this time. After a pause, or
//! after the database could not be reached, another process may own its sessions: the fence of their rows is greater, and
//! appends with the old fence fail.

use std::collections::HashMap;

use codewright_proto::SessionId;
use tokio_postgres::Row;

use super::append::LOCK_HEAD;
use super::fault::Fault;
use super::link::Link;
use crate::changes::unknown;
use crate::lease::{Holder, LeaseResult};
use crate::node::{Node, pid_of};
use crate::sql::{self, to_column};
use crate::{Error, MAX_MEMBERS, Member, Members, Orphan, Ownership};

/// The interval of the heartbeat of a process that owns sessions.
pub(super) const HEARTBEAT: std::time::Duration = std::time::Duration::from_secs(1);

/// The seconds without a heartbeat after which a process counts as dead.
const ALIVE_SECONDS: f64 = 3.5;

/// The seconds after which the row of a dead process is removed.
const SWEPT_SECONDS: f64 = 3600.0;

const RENEW: &str = "INSERT INTO store_node (id, alive_until, member)
    VALUES ($1, clock_timestamp() + make_interval(secs => $2), $3)
    ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until, member = excluded.member";
/// The row of a dead server is kept while it owns sessions, because the row shows that others may take them over.
const SWEEP: &str = "DELETE FROM store_node WHERE alive_until < clock_timestamp() - make_interval(secs => $1) AND NOT EXISTS \
     (SELECT 1 FROM event_sequence WHERE owner_id = store_node.id AND store_node.member IS NOT NULL)";
const LEAVE: &str = "UPDATE store_node SET alive_until = clock_timestamp() WHERE id = $1";
/// Makes this process the owner of the sessions in `$5` that have no living owner, and renews its heartbeat. `$6` are the
/// sessions that this process already leases.
const TAKE: &str = "WITH beat AS (
        INSERT INTO store_node (id, alive_until, member) VALUES ($1, clock_timestamp() + make_interval(secs => $2), $3)
        ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until, member = excluded.member)
    UPDATE event_sequence SET owner_id = $1, fence = fence + 1, node = coalesce($4, node)
    WHERE aggregate_id = ANY($5) AND EXISTS (SELECT 1 FROM session WHERE id = aggregate_id)
        AND CASE WHEN owner_id IS NULL THEN true WHEN owner_id = $1 THEN aggregate_id <> ALL($6)
            ELSE NOT EXISTS (SELECT 1 FROM store_node WHERE id = owner_id AND alive_until > clock_timestamp()) END
    RETURNING aggregate_id, fence";
/// The owners of sessions, without those of deleted ones.
const OWNERS: &str =
    "SELECT aggregate_id, owner_id FROM event_sequence JOIN session ON session.id = aggregate_id
    WHERE aggregate_id = ANY($1)";
const RELEASE: &str =
    "UPDATE event_sequence SET owner_id = NULL WHERE aggregate_id = $1 AND fence = $2 AND seq <= $3";
const MEMBERS: &str =
    "SELECT id, member, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM store_node
    WHERE member IS NOT NULL AND alive_until > clock_timestamp() ORDER BY id LIMIT $1";
const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const OWNERSHIP: &str = "SELECT (SELECT store_node.id FROM store_node WHERE store_node.id = owner_id
    AND alive_until > clock_timestamp()), node FROM event_sequence WHERE aggregate_id = $1";
const ORPHANS: &str = "SELECT session.id, session.directory, session.parent_id IS NOT NULL
    FROM event_sequence JOIN store_node ON store_node.id = owner_id JOIN session ON session.id = aggregate_id
    WHERE owner_id IS NOT NULL AND member IS NOT NULL
    AND (alive_until <= clock_timestamp() OR owner_id = $2) AND NOT (owner_id = $2 AND aggregate_id = ANY($3))
    LIMIT $1";
const DISOWN_ALL: &str = "UPDATE event_sequence SET owner_id = NULL
    FROM unnest($1::text[], $2::bigint[]) AS held (id, fence)
    WHERE aggregate_id = held.id AND event_sequence.fence = held.fence";
const REMOVE_NODE: &str = "DELETE FROM store_node WHERE id = $1";
const IS_ALIVE: &str = "SELECT 1 FROM store_node WHERE id = $1 AND alive_until > clock_timestamp()";
const ALIVE: &str = "SELECT id FROM store_node WHERE alive_until > clock_timestamp()";

/// A row of `event_sequence`: the last `seq` and the owner of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Sequence {
    pub(super) seq: u64,
    pub(super) owner: Option<String>,
    pub(super) fence: u64,
}

impl Sequence {
    /// Reads three columns from the first one on.
    pub(super) fn read(row: &Row, first: usize) -> Self {
        Self {
            seq: row.get::<_, i64>(first).unsigned_abs(),
            owner: row.get(first + 1),
            fence: row.get::<_, i64>(first + 2).unsigned_abs(),
        }
    }

    pub(super) fn is_of(&self, node: &Node, fence: u64) -> bool {
        if node.is_unfenced {
            return true;
        }
        if node.is_sealed() {
            return false;
        }
        self.fence == fence && self.owner.is_some() && self.owner == node.existing_name()
    }
}

async fn sequence(link: &mut Link, session: &SessionId) -> Result<Option<Sequence>, Fault> {
    let row = link.row(sql::SEQUENCE, &[&session.as_str()]).await?;
    Ok(row.map(|row| Sequence::read(&row, 0)))
}

/// The last `seq` of a session; `None` if it never had an event.
pub(super) async fn seq(link: &mut Link, session: &SessionId) -> Result<Option<u64>, Fault> {
    Ok(sequence(link, session).await?.map(|sequence| sequence.seq))
}

/// The living owner of a session, if there is one.
pub(super) async fn holder(
    link: &mut Link,
    node: &Node,
    session: &SessionId,
) -> Result<Option<Holder>, Fault> {
    match sequence(link, session).await?.and_then(|sequence| sequence.owner) {
        Some(owner) => living(link, node, session, &owner).await,
        None => Ok(None),
    }
}

/// The sessions that have a living owner.
pub(super) async fn holders(link: &mut Link, node: &Node) -> Result<Vec<(SessionId, Holder)>, Fault> {
    let alive: std::collections::HashSet<String> =
        link.rows(ALIVE, &[]).await?.into_iter().map(|row| row.get(0)).collect();
    let mut found = Vec::new();
    for row in link.rows(sql::OWNED, &[]).await? {
        let (session, owner): (&str, String) = (row.get(0), row.get(1));
        // An invalid session id cannot have been leased.
        let Ok(session) = SessionId::parse(session) else { continue };
        let is_ours = is_ours(node, &owner);
        if if is_ours { node.holds(&session).is_some() } else { alive.contains(&owner) } {
            found.push((session, as_holder(&owner, is_ours)));
        }
    }
    Ok(found)
}

async fn living(
    link: &mut Link,
    node: &Node,
    session: &SessionId,
    owner: &str,
) -> Result<Option<Holder>, Fault> {
    let is_ours = is_ours(node, owner);
    let alive =
        if is_ours { node.holds(session).is_some() } else { link.row(IS_ALIVE, &[&owner]).await?.is_some() };
    Ok(alive.then(|| as_holder(owner, is_ours)))
}

fn is_ours(node: &Node, owner: &str) -> bool {
    node.existing_name().as_deref() == Some(owner)
}

fn as_holder(owner: &str, is_ours: bool) -> Holder {
    Holder { pid: pid_of(owner).unwrap_or_else(std::process::id), is_ours }
}

/// Renews the time until which this process is alive.
pub(super) async fn send_heartbeat(link: &mut Link, node: &Node) -> Result<(), Fault> {
    let Some(name) = node.existing_name() else { return Ok(()) };
    let member = node.announced_json();
    link.run(RENEW, &[&name, &ALIVE_SECONDS, &member]).await?;
    Ok(())
}

/// Declares this process dead. Its sessions can be taken over at once.
pub(super) async fn leave(link: &mut Link, node: &Node) -> Result<(), Fault> {
    let Some(name) = node.existing_name() else { return Ok(()) };
    link.run(LEAVE, &[&name]).await?;
    Ok(())
}

/// The living servers.
pub(super) async fn members(link: &mut Link, node: &Node) -> Result<Members, Fault> {
    let now = link.row(NOW, &[]).await?.map_or(0, |row| row.get::<_, i64>(0));
    let rows = link.rows(MEMBERS, &[&(MAX_MEMBERS as i64)]).await?;
    let member = |row: &Row| -> Option<Member> {
        // Another version of the program may say something else about itself.
        let member: Member = serde_json::from_str(row.get(1)).ok()?;
        Some(Member { id: row.get(0), ..member })
    };
    Ok(Members {
        all: rows.iter().filter_map(member).collect(),
        own: node.existing_name().unwrap_or_default(),
        now_ms: now.unsigned_abs(),
    })
}

/// The server that a session belongs to.
pub(super) async fn ownership(link: &mut Link, session: &SessionId) -> Result<Ownership, Fault> {
    let row = link.row(OWNERSHIP, &[&session.as_str()]).await?;
    Ok(row.map_or_else(Ownership::default, |row| Ownership { owner: row.get(0), last: row.get(1) }))
}

/// Sessions that ended or dead servers owned, and those that this process owns without knowing it: the answer to a
/// request for their lease was lost.
pub(super) async fn orphans(link: &mut Link, node: &Node, limit: usize) -> Result<Vec<Orphan>, Fault> {
    let (own, known) = (node.existing_name().unwrap_or_default(), node.known());
    let known: Vec<&str> = known.iter().map(SessionId::as_str).collect();
    let rows = link.rows(ORPHANS, &[&(limit as i64), &own, &known]).await?;
    let orphan = |row: &Row| -> Option<Orphan> {
        let session = SessionId::parse(row.get(0)).ok()?;
        Some(Orphan { session, directory: row.get(1), is_child: row.get(2) })
    };
    // A lease of this process may have become known meanwhile.
    let is_free = |orphan: &Orphan| node.holds(&orphan.session).is_none();
    Ok(rows.iter().filter_map(orphan).filter(is_free).collect())
}

/// Removes the row of this process. Its sessions are free.
pub(super) async fn remove_node(link: &mut Link, node: &Node) -> Result<(), Fault> {
    let Some(name) = node.existing_name() else { return Ok(()) };
    link.run(REMOVE_NODE, &[&name]).await?;
    Ok(())
}

/// Leases the given sessions that have no living owner. Runs in a separate transaction.
///
/// All writers wait for the lock on the head of the log. It is held only while the database runs the statements, however
/// long this process takes to read the responses.
pub(super) async fn take(
    link: &mut Link,
    node: &Node,
    sessions: &[SessionId],
) -> Result<Vec<Result<LeaseResult, Error>>, Fault> {
    let Some(name) = node.existing_name() else { return Err(Error::Closed.into()) };
    let ids: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
    let is_held = |session: &&SessionId| node.holds(session).is_some();
    let held: Vec<&str> = sessions.iter().filter(is_held).map(SessionId::as_str).collect();
    let (member, server) = (node.announced_json(), node.server());
    let rows = link
        .transaction(&[
            (LOCK_HEAD, vec![]),
            (TAKE, vec![&name, &ALIVE_SECONDS, &member, &server, &ids, &held]),
            (SWEEP, vec![&SWEPT_SECONDS]),
            (OWNERS, vec![&ids]),
        ])
        .await?;
    let [_, taken, _, owners] = rows.as_slice() else { return Err(Fault::Unchanged) };
    let taken: HashMap<&str, i64> = taken.iter().map(|row| (row.get(0), row.get(1))).collect();
    let owners: HashMap<&str, Option<&str>> = owners.iter().map(|row| (row.get(0), row.get(1))).collect();
    let result = |session: &SessionId| {
        if let Some(fence) = taken.get(session.as_str()) {
            let fence = fence.unsigned_abs();
            return Ok(LeaseResult::Ours(fence, node.take(session, fence)));
        }
        match owners.get(session.as_str()) {
            Some(Some(owner)) => Ok(LeaseResult::Held(as_holder(owner, *owner == name))),
            Some(None) | None => Err(unknown("session", session)),
        }
    };
    Ok(sessions.iter().map(result).collect())
}

/// Sends a stop request to the living owner in another process. Returns whether there is one.
pub(super) async fn ask_to_stop(link: &mut Link, node: &Node, session: &SessionId) -> Result<bool, Fault> {
    if holder(link, node, session).await?.is_none_or(|holder| holder.is_ours) {
        return Ok(false);
    }
    link.run(sql::ASK_TO_STOP, &[&session.as_str()]).await?;
    Ok(true)
}

/// Delivers stop requests to the leases of this process, and stops those that another process has taken over.
pub(super) async fn deliver_stop_requests(link: &mut Link, node: &Node) -> Result<(), Fault> {
    let held = node.held();
    if held.is_empty() || node.is_unfenced {
        return Ok(());
    }
    let name = node.existing_name().unwrap_or_default();
    let (ids, fences): (Vec<&str>, Vec<i64>) =
        held.iter().map(|(session, fence)| (session.as_str(), to_column(*fence))).unzip();
    for row in link.rows(sql::STOPPED_POSTGRES, &[&name, &ids, &fences]).await? {
        if let Ok(session) = SessionId::parse(row.get(0)) {
            node.stop(&session, row.get::<_, i64>(1).unsigned_abs());
        }
    }
    Ok(())
}

/// Releases a session unless an event was stored after `seen`. Returns `true` if the lease is over.
///
/// Runs in a separate transaction.
pub(super) async fn release(
    link: &mut Link,
    node: &Node,
    session: &SessionId,
    fence: u64,
    seen: u64,
) -> Result<bool, Fault> {
    // Sessions that are handed over keep their owner, which shows others that they have work.
    if node.is_sealed() && !node.is_unfenced {
        return Ok(true);
    }
    let (id, column, last) = (session.as_str(), to_column(fence), to_column(seen));
    // A fence has only one owner, so it identifies the row.
    let rows = link
        .transaction(&[(LOCK_HEAD, vec![]), (RELEASE, vec![&id, &column, &last]), (sql::SEQUENCE, vec![&id])])
        .await?;
    let sequence = rows.last().and_then(|rows| rows.first()).map(|row| Sequence::read(row, 0));
    let is_kept = |sequence: Sequence| sequence.seq > seen && sequence.is_of(node, fence);
    Ok(!sequence.is_some_and(is_kept))
}

/// Clears the owners of sessions. Runs in a separate transaction.
pub(super) async fn release_all(link: &mut Link, leases: &[(SessionId, u64)]) -> Result<(), Fault> {
    let (ids, fences): (Vec<&str>, Vec<i64>) =
        leases.iter().map(|(session, fence)| (session.as_str(), to_column(*fence))).unzip();
    link.transaction(&[(LOCK_HEAD, vec![]), (DISOWN_ALL, vec![&ids, &fences])]).await?;
    Ok(())
}
