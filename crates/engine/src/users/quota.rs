//! The checks of quotas: when a prompt is admitted, and before each request to a model.

use codewright_proto::{Session, SessionId};
use codewright_store::{Account, day_of};
use tokio::sync::MutexGuard;

use crate::Error;
use crate::inner::Inner;

/// The time after which a request that was refused for running sessions can be repeated.
const RETRY_AFTER_SECONDS: u64 = 10;
/// The seconds of a day.
const DAY_SECONDS: u64 = 86_400;

/// Checks the quotas of a session that is about to work. While the result is held, no other session of this process
/// starts to work for a limited account.
pub(crate) async fn admit<'a>(
    inner: &'a Inner,
    session: &Session,
) -> Result<Option<MutexGuard<'a, ()>>, Error> {
    check_spent(inner, session).await?;
    let limits: Vec<_> = accounts(session)
        .into_iter()
        .filter_map(|account| Some((inner.quotas.quotas.get()?.of(&account).sessions?, account)))
        .collect();
    // A prompt for a session that works already, or for a subagent, starts none.
    if limits.is_empty() || session.parent_id.is_some() || inner.runs.is_running(&session.id) {
        return Ok(None);
    }
    let starting = inner.quotas.starting.lock().await;
    for (limit, account) in limits {
        if running(inner, &account, &session.id, limit).await? >= limit {
            return Err(Error::Quota {
                message: format!("{} has {limit} running sessions, which is the limit", named(&account)),
                retry_after_seconds: RETRY_AFTER_SECONDS,
            });
        }
    }
    Ok(Some(starting))
}

/// Whether the server has quotas.
pub(crate) fn is_limited(inner: &Inner) -> bool {
    inner.quotas.quotas.get().is_some()
}

/// Checks what the accounts of a session have spent today.
pub(crate) async fn check_spent(inner: &Inner, session: &Session) -> Result<(), Error> {
    let Some(quotas) = inner.quotas.quotas.get() else { return Ok(()) };
    let now_ms = inner.clock.now_ms();
    for account in accounts(session) {
        let quota = quotas.of(&account);
        if quota.tokens.is_none() && quota.cost.is_none() {
            continue;
        }
        let used = inner.store.usage(account.clone(), day_of(now_ms)).await?;
        if let Some(limit) = quota.reached(used) {
            return Err(Error::Quota {
                message: format!("{} has used its quota of {limit}", named(&account)),
                retry_after_seconds: DAY_SECONDS - now_ms / 1000 % DAY_SECONDS,
            });
        }
    }
    Ok(())
}

/// The accounts that a session counts for.
fn accounts(session: &Session) -> Vec<Account> {
    let Some(access) = &session.access else { return Vec::new() };
    let team = access.team.clone().map(Account::Team);
    std::iter::once(Account::User(access.owner.clone())).chain(team).collect()
}

fn named(account: &Account) -> String {
    match account {
        Account::User(name) => format!("the user `{name}`"),
        Account::Team(name) => format!("the team `{name}`"),
    }
}

/// Counts the sessions of an account that work, in any process, without one. Stops at a limit.
async fn running(inner: &Inner, account: &Account, without: &SessionId, limit: u64) -> Result<u64, Error> {
    let mut found = inner.store.running(account.clone()).await?;
    found.retain(|id| id != without);
    // A run of this process may not have its lease yet.
    for (id, _) in inner.runs.statuses() {
        if found.len() as u64 >= limit {
            break;
        }
        if id == *without || found.contains(&id) {
            continue;
        }
        let session = inner.store.session(&id).await?;
        let counts = |session: &Session| session.parent_id.is_none() && accounts(session).contains(account);
        if session.as_ref().is_some_and(counts) {
            found.push(id);
        }
    }
    Ok(found.len() as u64)
}
