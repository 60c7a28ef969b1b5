//! The users of the server: who one is, sharing sessions, usage and the audit log.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use codewright_engine::{Account, Audited};
use codewright_proto::{Session, SessionId, ShareMode};
use http::request::Parts;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Error;
use crate::auth::{Caller, Role, Who, check_name};
use crate::extract::{One, Params, Payload, count};
use crate::state::App;

/// The maximum number of teams that a session is shared with.
const MAX_SHARES: usize = 32;
/// The default number of audit entries.
const DEFAULT_ENTRIES: usize = 100;

/// The user who sends a request. A server without users has no such route.
pub(super) struct Signed(Caller);

impl FromRequestParts<App> for Signed {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let who = Who::of(&parts.extensions, app)?;
        let missing =
            || Error::NoRoute { method: parts.method.to_string(), path: parts.uri.path().to_owned() };
        who.caller().cloned().map(Self).ok_or_else(missing)
    }
}

/// Returns the user who sends the request.
pub(super) async fn me(Signed(caller): Signed) -> Json<Value> {
    Json(json!({"name": &*caller.name, "role": caller.role.name(), "teams": &*caller.teams}))
}

/// Returns what the user and the user's teams have used today, and their quotas.
pub(super) async fn usage(State(app): State<App>, Signed(caller): Signed) -> Result<Json<Value>, Error> {
    let own = of_account(&app, Account::User(caller.name.to_string())).await?;
    let mut teams = BTreeMap::new();
    for team in caller.teams.iter() {
        teams.insert(team.clone(), of_account(&app, Account::Team(team.clone())).await?);
    }
    Ok(Json(json!({"user": own, "teams": teams})))
}

async fn of_account(app: &App, account: Account) -> Result<Value, Error> {
    let users = app.engine.users();
    let quota = users.quotas().unwrap_or_default().of(&account);
    let used = users.usage(account.clone()).await?;
    let running = users.running(account).await?;
    Ok(json!({
        "used": {"tokens": used.tokens, "cost": used.cost, "sessions": running},
        "quota": {"tokens": quota.tokens, "cost": quota.cost, "sessions": quota.sessions},
    }))
}

/// The teams that a session is shared with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sharing {
    shared: BTreeMap<String, ShareMode>,
}

/// Replaces the teams that a session is shared with. Only its owner and administrators may do that.
pub(super) async fn share(
    State(app): State<App>,
    Signed(caller): Signed,
    One(id): One<SessionId>,
    Payload(Sharing { shared }): Payload<Sharing>,
) -> Result<Json<Session>, Error> {
    if shared.len() > MAX_SHARES {
        return Err(Error::payload(format!("a session is shared with at most {MAX_SHARES} teams")));
    }
    shared.keys().try_for_each(|team| check_name(team)).map_err(Error::payload)?;
    let session = app.engine.sessions().get(&id).await?;
    if session.parent_id.is_some() {
        return Err(Error::payload("a subagent's session is shared with the session that it belongs to"));
    }
    let is_own = session.access.is_some_and(|access| access.owner == *caller.name);
    if !is_own && caller.role != Role::Admin {
        return Err(Error::Forbidden { why: "only the owner of a session shares it" });
    }
    let engine = app.engine.clone();
    let changed = async move { engine.users().share(&id, &caller.name, shared).await };
    app.finish(changed).await.map(Json)
}

#[derive(Deserialize)]
pub(super) struct AuditQuery {
    #[serde(default, deserialize_with = "count")]
    before: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    limit: Option<u64>,
}

/// Returns the newest entries of the audit log, newest first.
pub(super) async fn audit(
    State(app): State<App>,
    Params(query): Params<AuditQuery>,
) -> Result<Json<Vec<Value>>, Error> {
    let limit = query.limit.map_or(DEFAULT_ENTRIES, |limit| limit as usize);
    let entries = app.engine.users().audited(query.before, limit).await?;
    let convert = |entry: Audited| {
        let Audited { id, time, account, action, target, detail, request, .. } = entry;
        json!({
            "id": id, "time": time, "user": account, "action": action, "target": target, "detail": detail,
            "request": request,
        })
    };
    Ok(Json(entries.into_iter().map(convert).collect()))
}
