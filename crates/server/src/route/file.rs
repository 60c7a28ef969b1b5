//! Listing, reading and searching files. Only files inside the directory or its worktree are accessible.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use codewright_proto::{FileContent, FileKind, FileNode, TextMatch, VcsFile, VcsStatus};
use http::{HeaderValue, header};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Error;
use crate::auth::{Who, kept};
use crate::extract::{Location, Params};
use crate::route::api::with_location;
use crate::state::App;

/// The default maximum of found file names.
const DEFAULT_NAMES: usize = 10;
/// The default maximum of found files in the v2 API.
const DEFAULT_ENTRIES: usize = 50;
/// The maximum number of found file names.
const MAX_NAMES: usize = 200;
/// The maximum number of found lines.
const MAX_LINES: usize = 100;

#[derive(Deserialize)]
pub(super) struct PathQuery {
    path: String,
}

#[derive(Deserialize)]
pub(super) struct PatternQuery {
    pattern: String,
}

#[derive(Deserialize)]
pub(super) struct FindQuery {
    query: String,
    dirs: Option<String>,
    #[serde(rename = "type")]
    kind: Option<FileKind>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
pub(super) struct SymbolQuery {
    query: String,
}

pub(super) async fn list(
    location: Location,
    Params(query): Params<PathQuery>,
) -> Result<Json<Vec<FileNode>>, Error> {
    Ok(Json(location.instance.list_files(&query.path).await?))
}

pub(super) async fn content(
    State(app): State<App>,
    who: Who,
    location: Location,
    Params(query): Params<PathQuery>,
) -> Result<Json<FileContent>, Error> {
    let kept = kept(&app, &who, &location.instance)?;
    Ok(Json(location.instance.read_file(&query.path, &kept).await?))
}

/// Lists the files that differ from the last commit, in the schema of the v1 API.
pub(super) async fn status(location: Location) -> Result<Json<Vec<Value>>, Error> {
    let changed = location.instance.vcs_status().await?;
    let convert = |file: VcsFile| {
        let status = match file.status {
            VcsStatus::Added => "added",
            VcsStatus::Deleted => "deleted",
            VcsStatus::Modified => "modified",
        };
        json!({"path": file.file, "added": file.additions, "removed": file.deletions, "status": status})
    };
    Ok(Json(changed.into_iter().map(convert).collect()))
}

pub(super) async fn find_text(
    State(app): State<App>,
    who: Who,
    location: Location,
    Params(query): Params<PatternQuery>,
) -> Result<Json<Vec<TextMatch>>, Error> {
    let kept = kept(&app, &who, &location.instance)?;
    Ok(Json(location.instance.find_text(&query.pattern, Vec::new(), MAX_LINES, &kept).await?))
}

pub(super) async fn find_files(
    location: Location,
    Params(query): Params<FindQuery>,
) -> Result<Json<Vec<String>>, Error> {
    let only_files = query.dirs.as_deref() == Some("false");
    let kind = query.kind.or(only_files.then_some(FileKind::File));
    let limit = check_limit(query.limit, DEFAULT_NAMES)?;
    Ok(Json(location.instance.find_files(&query.query, kind, limit).await?))
}

/// Finds symbols. Always empty, because there are no language servers.
pub(super) async fn find_symbols(
    State(app): State<App>,
    location: Location,
    Params(asked): Params<SymbolQuery>,
) -> Json<Vec<Value>> {
    Json(app.engine.lsp().symbols(&location.instance, &asked.query).await)
}

fn check_limit(limit: Option<usize>, default: usize) -> Result<usize, Error> {
    match limit.unwrap_or(default) {
        limit @ 1..=MAX_NAMES => Ok(limit),
        other => Err(Error::query(format!(
            "Expected a number from 1 to {MAX_NAMES}, got {other}\n  at [\"limit\"]"
        ))),
    }
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    path: Option<String>,
}

pub(super) async fn api_list(
    location: Location,
    Params(query): Params<ListQuery>,
) -> Result<Json<Value>, Error> {
    let nodes = location.instance.list_files(query.path.as_deref().unwrap_or_default()).await?;
    let entries = nodes.into_iter().map(|node| json!({"path": node.path, "type": node.kind}));
    Ok(with_location(&location, entries.collect()))
}

pub(super) async fn api_find(
    location: Location,
    Params(query): Params<FindQuery>,
) -> Result<Json<Value>, Error> {
    let limit = check_limit(query.limit, DEFAULT_ENTRIES)?;
    let names = location.instance.find_files(&query.query, query.kind, limit).await?;
    let entries = names.into_iter().map(|name| {
        let kind = if name.ends_with('/') { FileKind::Directory } else { FileKind::File };
        json!({"path": name, "type": kind})
    });
    Ok(with_location(&location, entries.collect()))
}

/// Returns the raw bytes of a file.
pub(super) async fn api_read(
    State(app): State<App>,
    who: Who,
    location: Location,
    Path(path): Path<String>,
) -> Result<Response, Error> {
    let kept = kept(&app, &who, &location.instance)?;
    let Some(bytes) = location.instance.file_bytes(&path, &kept).await? else {
        return Err(Error::Missing { tag: "FileNotFoundError", key: "path", what: "File", id: path });
    };
    // A browser must never render the file as a page of this server.
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"))];
    Ok((kind, bytes).into_response())
}
