//! What git says of a directory.

use axum::Json;
use axum::response::{IntoResponse, Response};
use codewright_engine::Against;
use codewright_proto::{VcsFile, VcsReply};
use http::{HeaderValue, header};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Error;
use crate::extract::{Here, Params, Payload};

#[derive(Deserialize)]
pub(super) struct Difference {
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

pub(super) async fn read(here: Here) -> Json<VcsReply> {
    Json(here.place.vcs().await)
}

pub(super) async fn status(here: Here) -> Result<Json<Vec<VcsFile>>, Error> {
    Ok(Json(here.place.vcs_status().await?))
}

pub(super) async fn diff(
    here: Here,
    Params(wanted): Params<Difference>,
) -> Result<Json<Vec<VcsFile>>, Error> {
    let against = match wanted.mode {
        Mode::Git => Against::Commit,
        Mode::Branch => Against::Branch,
    };
    Ok(Json(here.place.vcs_diff(against, wanted.context).await?))
}

pub(super) async fn raw(here: Here) -> Result<Response, Error> {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("text/x-diff; charset=utf-8"))];
    Ok((kind, here.place.vcs_raw().await?).into_response())
}

pub(super) async fn apply(here: Here, Payload(wanted): Payload<Apply>) -> Result<Json<Value>, Error> {
    if here.place.vcs_apply(&wanted.patch).await? {
        return Ok(Json(json!({"applied": true})));
    }
    Err(Error::Refused {
        name: "VcsApplyError",
        message: "Patch can't be applied".to_owned(),
        reason: Some("not-clean"),
    })
}
