//! Enforces the rule of a route before its handler runs.

use axum::extract::{Path, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{RequestExt as _, extract::RawPathParams};
use codewright_engine::{self as engine, Resource};
use codewright_proto::{PermissionId, QuestionId, SessionId};

use super::rules::{Need, Rule};
use super::{Level, Role, Viewer, Who, record};
use crate::Error;
use crate::nodes::Passed;
use crate::state::App;

/// Rejects a request that the rule of its route does not allow, and writes an allowed change to the audit log.
pub(crate) async fn check(
    State((app, rule)): State<(App, Rule)>,
    mut request: Request,
    next: Next,
) -> Response {
    let who = match Who::of(request.extensions(), &app) {
        Ok(who) => who,
        Err(error) => return error.into_response(),
    };
    let ids = match Ids::of(&mut request).await {
        Ok(ids) => ids,
        Err(error) => return error.into_response(),
    };
    let mut viewer = Viewer::new(who.clone());
    if let Err(error) = allow(&app, &mut viewer, rule.need, &ids).await {
        return error.into_response();
    }
    let response = next.run(request).await;
    // The server that has done it has recorded it.
    let is_recorded = response.extensions().get::<Passed>().is_some();
    if let Some(action) = rule.audit
        && !is_recorded
        && !matches!(who, Who::Local)
    {
        let status = response.status().as_u16().to_string();
        record(&app, &who, [action, ids.target(), &status]).await;
    }
    response
}

/// The ids in a path, as they were sent.
struct Ids {
    session: Option<String>,
    /// Of a permission request or a question.
    request: Option<String>,
    other: Option<String>,
}

impl Ids {
    async fn of(request: &mut Request) -> Result<Self, Error> {
        let mut ids = Self { session: None, request: None, other: None };
        let Ok(params) = request.extract_parts::<RawPathParams>().await else {
            // The same rejection as that of a handler, for a path that is not UTF-8.
            let rejection = request.extract_parts::<Path<String>>().await.err();
            let message = rejection.map(|rejection| rejection.body_text()).unwrap_or_default();
            return Err(Error::Invalid { message, kind: "Params" });
        };
        for (name, value) in &params {
            let slot = match name {
                "sessionID" => &mut ids.session,
                "requestID" | "permissionID" => &mut ids.request,
                _ => &mut ids.other,
            };
            slot.get_or_insert_with(|| value.to_owned());
        }
        Ok(ids)
    }

    fn target(&self) -> &str {
        self.request.as_deref().or(self.session.as_deref()).or(self.other.as_deref()).unwrap_or_default()
    }
}

async fn allow(app: &App, viewer: &mut Viewer, need: Need, ids: &Ids) -> Result<(), Error> {
    let role = match viewer.who() {
        Who::Local => return Ok(()),
        Who::Ticket if need == Need::Terminal => return Ok(()),
        Who::Ticket => return Err(Error::Unauthorized),
        Who::User(caller) => caller.role,
    };
    if role == Role::Admin {
        return Ok(());
    }
    match need {
        Need::Anyone | Need::Filtered => Ok(()),
        Need::Member if role >= Role::Member => Ok(()),
        Need::Member => Err(Error::Forbidden { why: "this needs the role `member`" }),
        Need::Admin | Need::Terminal => Err(Error::Forbidden { why: "this needs the role `admin`" }),
        Need::Read => on_session(app, viewer, ids.session.as_deref(), Level::Read).await,
        Need::Write => on_session(app, viewer, ids.session.as_deref(), Level::Full).await,
        Need::Permission => {
            if let Some(session) = &ids.session {
                on_session(app, viewer, Some(session), Level::Full).await?;
            }
            on_permission(app, viewer, ids.request.as_deref().unwrap_or_default()).await
        }
        Need::Question => {
            if let Some(session) = &ids.session {
                on_session(app, viewer, Some(session), Level::Full).await?;
            }
            on_question(app, viewer, ids.request.as_deref().unwrap_or_default()).await
        }
    }
}

/// Fails if the user may not use a session. One that the user may not see does not exist for the user.
pub(crate) async fn on_session(
    app: &App,
    viewer: &mut Viewer,
    id: Option<&str>,
    wanted: Level,
) -> Result<(), Error> {
    let id = SessionId::parse(id.unwrap_or_default())?;
    match viewer.level(&app.engine, &id).await {
        Some(level) if level >= wanted => Ok(()),
        Some(_) => Err(Error::Forbidden { why: "this session is shared read-only" }),
        None => Err(engine::Error::NotFound { resource: Resource::Session, id: id.to_string() }.into()),
    }
}

/// Fails if the user may not answer a permission request. Unknown ids are left to the handler.
pub(crate) async fn on_permission(app: &App, viewer: &mut Viewer, id: &str) -> Result<(), Error> {
    let Ok(id) = PermissionId::parse(id) else { return Ok(()) };
    let pending = app.engine.permissions().pending().await?;
    let Some(request) = pending.into_iter().find(|request| request.id == id) else { return Ok(()) };
    match viewer.level(&app.engine, &request.session_id).await {
        Some(Level::Full) => Ok(()),
        Some(Level::Read) => Err(Error::Forbidden { why: "this session is shared read-only" }),
        None => Err(engine::Error::NotFound { resource: Resource::Permission, id: id.to_string() }.into()),
    }
}

/// Fails if the user may not answer a question. Unknown ids are left to the handler.
pub(crate) async fn on_question(app: &App, viewer: &mut Viewer, id: &str) -> Result<(), Error> {
    let Ok(id) = QuestionId::parse(id) else { return Ok(()) };
    let mut pending = app.engine.questions().pending().into_iter();
    let Some(request) = pending.find(|request| request.id == id) else { return Ok(()) };
    match viewer.level(&app.engine, &request.session_id).await {
        Some(Level::Full) => Ok(()),
        Some(Level::Read) => Err(Error::Forbidden { why: "this session is shared read-only" }),
        None => Err(engine::Error::NotFound { resource: Resource::Question, id: id.to_string() }.into()),
    }
}
