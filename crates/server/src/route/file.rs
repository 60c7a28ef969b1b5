//! Files: listed, read and found. Only what lies in the directory or its worktree is shown.

use axum::Json;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use codewright_proto::{FileContent, FileKind, FileNode, TextMatch, VcsFile, VcsStatus};
use http::{HeaderValue, header};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Error;
use crate::extract::{Here, Params};
use crate::route::api::located;

/// How many names are found when the client does not say.
const DEFAULT_NAMES: usize = 10;
/// The same for the newer routes.
const DEFAULT_ENTRIES: usize = 50;
/// The most names that are found.
const MAX_NAMES: usize = 200;
/// How many lines are found.
const MAX_LINES: usize = 100;

#[derive(Deserialize)]
pub(super) struct At {
    path: String,
}

#[derive(Deserialize)]
pub(super) struct Pattern {
    pattern: String,
}

#[derive(Deserialize)]
pub(super) struct Wanted {
    query: String,
    dirs: Option<String>,
    #[serde(rename = "type")]
    kind: Option<FileKind>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
pub(super) struct Query {
    #[serde(rename = "query")]
    _query: String,
}

pub(super) async fn list(here: Here, Params(at): Params<At>) -> Result<Json<Vec<FileNode>>, Error> {
    Ok(Json(here.place.list_files(&at.path).await?))
}

pub(super) async fn content(here: Here, Params(at): Params<At>) -> Result<Json<FileContent>, Error> {
    Ok(Json(here.place.read_file(&at.path).await?))
}

/// The files that differ from the last commit, in an older shape.
pub(super) async fn status(here: Here) -> Result<Json<Vec<Value>>, Error> {
    let changed = here.place.vcs_status().await?;
    let told = |file: VcsFile| {
        let status = match file.status {
            VcsStatus::Added => "added",
            VcsStatus::Deleted => "deleted",
            VcsStatus::Modified => "modified",
        };
        json!({"path": file.file, "added": file.additions, "removed": file.deletions, "status": status})
    };
    Ok(Json(changed.into_iter().map(told).collect()))
}

pub(super) async fn find_text(
    here: Here,
    Params(wanted): Params<Pattern>,
) -> Result<Json<Vec<TextMatch>>, Error> {
    Ok(Json(here.place.find_text(&wanted.pattern, MAX_LINES).await?))
}

pub(super) async fn find_files(
    here: Here,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Vec<String>>, Error> {
    let only_files = wanted.dirs.as_deref() == Some("false");
    let kind = wanted.kind.or(only_files.then_some(FileKind::File));
    let limit = limited(wanted.limit, DEFAULT_NAMES)?;
    Ok(Json(here.place.find_files(&wanted.query, kind, limit).await?))
}

/// Symbols are found by language servers; without one there are none.
pub(super) async fn find_symbols(_here: Here, Params(_): Params<Query>) -> Json<[Value; 0]> {
    Json([])
}

fn limited(limit: Option<usize>, default: usize) -> Result<usize, Error> {
    match limit.unwrap_or(default) {
        limit @ 1..=MAX_NAMES => Ok(limit),
        other => Err(Error::query(format!(
            "Expected a number from 1 to {MAX_NAMES}, got {other}\n  at [\"limit\"]"
        ))),
    }
}

#[derive(Deserialize)]
pub(super) struct Listed {
    path: Option<String>,
}

pub(super) async fn api_list(here: Here, Params(at): Params<Listed>) -> Result<Json<Value>, Error> {
    let nodes = here.place.list_files(at.path.as_deref().unwrap_or_default()).await?;
    let entries = nodes.into_iter().map(|node| json!({"path": node.path, "type": node.kind}));
    Ok(located(&here, entries.collect()))
}

pub(super) async fn api_find(here: Here, Params(wanted): Params<Wanted>) -> Result<Json<Value>, Error> {
    let limit = limited(wanted.limit, DEFAULT_ENTRIES)?;
    let names = here.place.find_files(&wanted.query, wanted.kind, limit).await?;
    let entries = names.into_iter().map(|name| {
        let kind = if name.ends_with('/') { FileKind::Directory } else { FileKind::File };
        json!({"path": name, "type": kind})
    });
    Ok(located(&here, entries.collect()))
}

/// The bytes of a file, as they are.
pub(super) async fn api_read(here: Here, Path(path): Path<String>) -> Result<Response, Error> {
    let Some(bytes) = here.place.file_bytes(&path).await? else {
        return Err(Error::Missing { tag: "FileNotFoundError", key: "path", what: "File", id: path });
    };
    // Whatever the file holds, a browser must not take it for a page of this server.
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"))];
    Ok((kind, bytes).into_response())
}
