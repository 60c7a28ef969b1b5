//! Follows the other servers, and continues the sessions of those that have ended or died.
//!
//! This server leases sessions without a living owner, several in one transaction. Then it ends their open messages and
//! calls by the rules for crashes, and continues their turns. After the database could not be reached, and after a pause of this process, nothing is taken for
//! a while, because the others had no chance to send a heartbeat either.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codewright_store::{Claim, Lease, MAX_OPEN_DIRECTORIES, Member, Orphan};
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::Cluster;
use crate::Error;
use crate::error::describe;
use crate::inner::Inner;
use crate::journal::Level;
use crate::run::next::{Next, WhenRefused, next};
use crate::run::recover::{self, Aftermath};
use crate::run::stop::ABORT_WAIT;
use crate::run::wake::wake;

/// The time between two looks at the database.
const PASS: Duration = Duration::from_millis(250);
/// The deadline of a look.
const PASS_TIMEOUT: Duration = Duration::from_secs(2);
/// The gap between two looks after which the others may have been out of reach too.
const GAP: Duration = Duration::from_millis(2500);
/// The time after such a gap during which this server takes over no session. Other servers send a heartbeat in this time.
const HOLD: Duration = Duration::from_secs(3);
/// The maximum number of sessions that are taken over in one look.
const MAX_TAKEN: usize = 64;
/// The maximum number of sessions in one lease transaction. It is small, so that the other servers get a share.
const LEASED_AT_ONCE: usize = 16;
/// The maximum number of sessions that are continued at the same time.
const LANES: usize = 8;
/// How often a draining server checks whether its sessions have ended.
const DRAIN_POLL: Duration = Duration::from_millis(100);
/// The deadline for giving the sessions up, for example if the database cannot be reached.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Starts following the other servers, until the engine ends.
pub(crate) fn start(inner: &Arc<Inner>) {
    let work = follow(Arc::clone(inner));
    let cancel = inner.cancel.clone();
    inner.tasks.spawn(async move {
        // Nothing is returned.
        let _: Option<()> = cancel.run_until_cancelled(work).await;
    });
}

async fn follow(inner: Arc<Inner>) {
    let Some(cluster) = inner.nodes.get() else { return };
    let mut last = Instant::now();
    let mut hold_until = last;
    let mut taking: Option<JoinHandle<()>> = None;
    loop {
        announce(&inner, cluster).await;
        let seen = timeout(PASS_TIMEOUT, inner.store.members()).await;
        if last.elapsed() > GAP || !matches!(seen, Ok(Ok(_))) {
            hold_until = Instant::now() + HOLD;
        }
        last = Instant::now();
        if let Ok(Ok(members)) = seen {
            cluster.set_view(members);
            let is_free = taking.as_ref().is_none_or(JoinHandle::is_finished);
            if is_free && Instant::now() >= hold_until && !cluster.is_draining() {
                // Many sessions take longer than a gap. Without looks in the meantime, the rest of them would be held.
                let (inner, cancel) = (Arc::clone(&inner), inner.cancel.clone());
                taking = Some(inner.tasks.clone().spawn(async move {
                    // Nothing is returned.
                    let _: Option<()> = cancel.run_until_cancelled(take_over(&inner)).await;
                }));
            }
        }
        sleep(PASS).await;
    }
}

/// Tells the other servers how busy this one is.
async fn announce(inner: &Inner, cluster: &Cluster) {
    let settings = &cluster.settings;
    let text = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
    let open = inner.instances.directories().await;
    inner.store.announce(Member {
        id: String::new(),
        name: settings.name.clone(),
        address: settings.address.clone(),
        roots: settings.roots.iter().map(text).collect(),
        open: open.into_iter().take(MAX_OPEN_DIRECTORIES).collect(),
        running: inner.runs.count() as u64,
        limit: settings.sessions as u64,
        is_draining: cluster.is_draining(),
    });
}

/// Continues sessions whose servers have ended or died.
async fn take_over(inner: &Arc<Inner>) {
    let Some(cluster) = inner.nodes.get() else { return };
    let Ok(Ok(mut orphans)) = timeout(PASS_TIMEOUT, inner.store.orphans(MAX_TAKEN)).await else { return };
    if orphans.is_empty() {
        return;
    }
    // Each server begins with others, so that they share the work.
    let own = cluster.settings.name.as_bytes();
    orphans.sort_by_key(|orphan| {
        let bytes = orphan.session.as_str().bytes().chain(own.iter().copied());
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    });
    // All sessions are leased before the first one is continued, because requests need the owner of their session.
    let mut taken = Vec::new();
    for orphans in orphans.chunks(LEASED_AT_ONCE) {
        match lease(inner, cluster, orphans, taken.len()).await {
            Ok(leases) => taken.extend(leases),
            Err(error) => {
                let message = format!("leasing the sessions of another server failed: {}", describe(&error));
                inner.journal.note(Level::Warn, "nodes", &message, None).await;
                break;
            }
        }
    }
    let all = stream::iter(taken).map(|(is_child, lease)| async move {
        let session = lease.session().clone();
        if let Err(error) = go_on(inner, cluster, is_child, lease).await {
            let message = format!("taking over session {session} failed: {}", describe(&error));
            inner.journal.note(Level::Warn, "nodes", &message, None).await;
        }
    });
    all.buffer_unordered(LANES).collect::<()>().await;
}

/// Leases the sessions that this server can continue. `taken` sessions are leased already, and their runs have not begun.
///
/// Returns the leases. The flag is `true` if the session belongs to a subagent.
async fn lease(
    inner: &Inner,
    cluster: &Cluster,
    orphans: &[Orphan],
    taken: usize,
) -> Result<Vec<(bool, Lease)>, Error> {
    let mut room = room(inner, cluster).saturating_sub(taken);
    let mut wanted = Vec::new();
    for orphan in orphans {
        // A run that waits for the session takes it over itself.
        if room > 0
            && !inner.runs.is_running(&orphan.session)
            && cluster.can_work(Path::new(&orphan.directory)).await
        {
            wanted.push(orphan.session.clone());
            room -= 1;
        }
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let claims = inner.store.lease_all(wanted).await?;
    let held = claims.into_iter().filter_map(|(session, claim)| {
        let Claim::Held(lease) = claim else { return None };
        Some((orphans.iter().find(|orphan| orphan.session == session)?.is_child, lease))
    });
    Ok(held.collect())
}

/// Continues the turn of a session that was leased.
async fn go_on(inner: &Arc<Inner>, cluster: &Cluster, is_child: bool, mut lease: Lease) -> Result<(), Error> {
    // A subagent is continued by its caller, which gets the id of the session.
    let aftermath = if is_child { Aftermath::Ends } else { Aftermath::GoesOn };
    let (at, is_done) = match recover::end_all(inner, &lease, aftermath).await {
        Ok(Some((at, transcript))) => {
            let next = next(&transcript, WhenRefused::Ends);
            (at, is_child || matches!(next, Next::Idle | Next::NoPrompt))
        }
        // Something was open, so the turn of a session that no subagent works in goes on.
        Ok(None) => (u64::MAX, is_child),
        // The run tries again and reports the error.
        Err(_) => (0, false),
    };
    if is_done && lease.release(at).await? {
        return Ok(());
    }
    let message = format!("session {} was taken over from another server", lease.session());
    inner.journal.note(Level::Info, "nodes", &message, None).await;
    let session = lease.session().clone();
    cluster.keep_ready(&session, lease);
    drop(wake(inner, &session));
    Ok(())
}

/// Returns how many more sessions this server may take over. A full server leaves them to servers that are not full.
fn room(inner: &Inner, cluster: &Cluster) -> usize {
    let (running, limit) = (inner.runs.count(), cluster.settings.sessions);
    if running < limit {
        return limit - running;
    }
    let is_free = |member: &Member| !member.is_draining && member.running < member.limit;
    let is_other_free = cluster.view().is_some_and(|view| view.members.all.iter().any(is_free));
    if is_other_free { 0 } else { (limit + cluster.settings.waiting).saturating_sub(running) }
}

/// Begins no more runs, waits until the running ones have ended or the deadline has passed, and hands the rest over.
pub(crate) async fn drain(inner: &Arc<Inner>, cluster: &Cluster) {
    cluster.start_draining();
    announce(inner, cluster).await;
    let deadline = Instant::now() + cluster.settings.drain;
    while inner.runs.count() > 0 && Instant::now() < deadline && !inner.cancel.is_cancelled() {
        sleep(DRAIN_POLL).await;
    }
    hand_over(inner, cluster).await;
}

/// Stops all runs and leaves their sessions to the other servers.
///
/// The runs lose their right to write before they are stopped, so that nothing looks like an abort by the user. The
/// sessions become free after their commands have ended.
pub(crate) async fn hand_over(inner: &Inner, cluster: &Cluster) {
    cluster.start_draining();
    // Without the database nothing can be written anyway, and the heartbeat ends.
    drop(timeout(HAND_OVER_TIMEOUT, inner.store.seal()).await);
    let turns = inner.runs.cancel_all();
    let ended = async {
        for turn in turns {
            turn.ended().await;
        }
    };
    // A command that cannot be ended must not keep the sessions.
    let _ = timeout(ABORT_WAIT, ended).await;
    drop(timeout(HAND_OVER_TIMEOUT, inner.store.leave()).await);
}
