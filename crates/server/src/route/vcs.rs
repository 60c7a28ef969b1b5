//! The git state of a directory.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use codewright_engine::Against;
use codewright_proto::{VcsFile, VcsReply};
use http::{HeaderValue, header};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Error;
use crate::auth::{Who, kept};
use crate::extract::{Location, Params, Payload};
use crate::state::App;

#[derive(Deserialize)]
pub(super) struct DiffQuery {
    mode: Mode,
    context: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Git,
    Branch,
}

#[derive(Deserialize)]
pub(super) struct Apply {
    patch: String,
}

pub(super) async fn read(location: Location) -> Json<VcsReply> {
    Json(location.instance.vcs().await)
}

pub(super) async fn status(location: Location) -> Result<Json<Vec<VcsFile>>, Error> {
    Ok(Json(location.instance.vcs_status().await?))
}

pub(super) async fn diff(
    State(app): State<App>,
    who: Who,
    location: Location,
    Params(query): Params<DiffQuery>,
) -> Result<Json<Vec<VcsFile>>, Error> {
    let against = match query.mode {
        Mode::Git => Against::Commit,
        Mode::Branch => Against::Branch,
    };
    let kept = kept(&app, &who, &location.instance)?;
    let mut files = location.instance.vcs_diff(against, query.context).await?;
    files.retain(|file| !kept.has(&location.instance.in_worktree(&file.file)));
    Ok(Json(files))
}

pub(super) async fn raw(State(app): State<App>, who: Who, location: Location) -> Result<Response, Error> {
    if who.limited().is_some() {
        let kept = kept(&app, &who, &location.instance)?;
        let changed = location.instance.vcs_status().await?;
        if changed.iter().any(|file| kept.has(&location.instance.in_worktree(&file.file))) {
            return Err(Error::Forbidden { why: "files have changed that users may not read" });
        }
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("text/x-diff; charset=utf-8"))];
    Ok((kind, location.instance.vcs_raw().await?).into_response())
}

pub(super) async fn apply(
    State(app): State<App>,
    who: Who,
    location: Location,
    Payload(body): Payload<Apply>,
) -> Result<Json<Value>, Error> {
    if who.limited().is_some()
        && let Some(why) = app.engine.permissions().why_no_patch(&location.instance, &body.patch).await?
    {
        return Err(Error::Forbidden { why });
    }
    if location.instance.vcs_apply(&body.patch).await? {
        return Ok(Json(json!({"applied": true})));
    }
    Err(Error::Refused {
        name: "VcsApplyError",
        message: "Patch can't be applied".to_owned(),
        reason: Some("not-clean"),
    })
}
