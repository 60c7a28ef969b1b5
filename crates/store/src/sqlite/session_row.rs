//! The rows of sessions: a column for each field, to filter and sort lists, and one with the whole JSON.

use std::sync::Arc;

use codewright_proto::{
    CacheUsage, ModelRef, ProjectId, Session, SessionId, SessionSummary, SessionTime, Share, TokenUsage,
};
use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, Row, ToSql, named_params, params_from_iter};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::apply::{Json, number, project_exists, unknown};
use super::json::{Data, USUAL_BYTES, object};
use super::query::{fetch, text};
use crate::error::Fault;
use crate::record::Record;
use crate::spare::Spare;
use crate::{Error, MAX_SESSIONS, SessionFilter};

const COLUMNS: &str = "id, project_id, workspace_id, parent_id, slug, directory, path, title, version, share_url, \
    summary_additions, summary_deletions, summary_files, summary_diffs, metadata, cost, tokens_input, \
    tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, tokens_total, revert, permission, \
    agent, model, time_created, time_updated, time_compacting, time_archived";

const UPSERT: &str = "INSERT INTO session (
    id, project_id, workspace_id, parent_id, slug, directory, path, title, version, share_url,
    summary_additions, summary_deletions, summary_files, summary_diffs, metadata, cost, tokens_input,
    tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, tokens_total, revert, permission,
    agent, model, time_created, time_updated, time_compacting, time_archived, data
) VALUES (
    :id, :project_id, :workspace_id, :parent_id, :slug, :directory, :path, :title, :version, :share_url,
    :summary_additions, :summary_deletions, :summary_files, :summary_diffs, :metadata, :cost, :tokens_input,
    :tokens_output, :tokens_reasoning, :tokens_cache_read, :tokens_cache_write, :tokens_total, :revert, :permission,
    :agent, :model, :time_created, :time_updated, :time_compacting, :time_archived, :data
) ON CONFLICT (id) DO UPDATE SET
    project_id = excluded.project_id, workspace_id = excluded.workspace_id, parent_id = excluded.parent_id, slug = excluded.slug,
    directory = excluded.directory, path = excluded.path, title = excluded.title,
    version = excluded.version, share_url = excluded.share_url,
    summary_additions = excluded.summary_additions, summary_deletions = excluded.summary_deletions,
    summary_files = excluded.summary_files, summary_diffs = excluded.summary_diffs,
    metadata = excluded.metadata, cost = excluded.cost, tokens_input = excluded.tokens_input,
    tokens_output = excluded.tokens_output, tokens_reasoning = excluded.tokens_reasoning,
    tokens_cache_read = excluded.tokens_cache_read, tokens_cache_write = excluded.tokens_cache_write,
    tokens_total = excluded.tokens_total, revert = excluded.revert, permission = excluded.permission, agent = excluded.agent,
    model = excluded.model, time_created = excluded.time_created, time_updated = excluded.time_updated,
    time_compacting = excluded.time_compacting, time_archived = excluded.time_archived,
    data = excluded.data";

/// Writes a session's row. Its project must exist.
pub(super) fn upsert(connection: &Connection, info: &Session, record: &Record) -> Result<(), Fault> {
    if !project_exists(connection, info.project_id.as_str())? {
        return Err(unknown("project", &info.project_id).into());
    }
    let summary = info.summary.as_ref();
    let tokens = &info.tokens;
    connection.prepare_cached(UPSERT)?.execute(named_params! {
        ":id": info.id.as_str(),
        ":project_id": info.project_id.as_str(),
        ":workspace_id": info.workspace_id,
        ":parent_id": info.parent_id.as_ref().map(SessionId::as_str),
        ":slug": info.slug,
        ":directory": info.directory,
        ":path": info.path,
        ":title": info.title,
        ":version": info.version,
        ":share_url": info.share.as_ref().map(|share| &share.url),
        ":summary_additions": summary.map(|summary| number(summary.additions)),
        ":summary_deletions": summary.map(|summary| number(summary.deletions)),
        ":summary_files": summary.map(|summary| number(summary.files)),
        ":summary_diffs": json(summary.and_then(|summary| summary.diffs.as_ref()))?,
        ":metadata": json(info.metadata.as_ref())?,
        ":cost": info.cost,
        ":tokens_input": number(tokens.input),
        ":tokens_output": number(tokens.output),
        ":tokens_reasoning": number(tokens.reasoning),
        ":tokens_cache_read": number(tokens.cache.read),
        ":tokens_cache_write": number(tokens.cache.write),
        ":tokens_total": tokens.total.map(number),
        ":revert": json(info.revert.as_ref())?,
        ":permission": json(info.permission.as_ref())?,
        ":agent": info.agent,
        ":model": json(info.model.as_ref())?,
        ":time_created": number(info.time.created),
        ":time_updated": number(info.time.updated),
        ":time_compacting": info.time.compacting.map(number),
        ":time_archived": info.time.archived.map(number),
        ":data": Json(&record.row()),
    })?;
    Ok(())
}

fn json<T: Serialize>(value: Option<&T>) -> Result<Option<String>, Fault> {
    let written = value.map(serde_json::to_string).transpose();
    Ok(written.map_err(|error| Error::unreadable("session", error))?)
}

/// One session.
pub(super) fn session(connection: &Connection, id: &SessionId) -> Result<Option<Session>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE id = ?1");
    Ok(fetch(connection, &sql, [id.as_str()], read)?.pop())
}

/// The sessions that match a filter, most recently updated first.
pub(super) fn sessions(connection: &Connection, filter: &SessionFilter) -> Result<Vec<Session>, Fault> {
    let (condition, values) = condition(filter);
    let sql = format!("SELECT {COLUMNS} FROM session WHERE {condition}");
    fetch(connection, &sql, params_from_iter(values), read)
}

/// [`sessions`] as the JSON that clients receive.
pub(super) fn sessions_json(
    connection: &Connection,
    spare: &Arc<Spare>,
    filter: &SessionFilter,
) -> Result<crate::Json, Fault> {
    let (condition, values) = condition(filter);
    let mut statement =
        connection.prepare_cached(&format!("SELECT id, data FROM session WHERE {condition}"))?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut json = spare.take(USUAL_BYTES);
    json.push(b'[');
    while let Some(row) = rows.next()? {
        let id = text(row, 0)?;
        if json.len() > 1 {
            json.push(b',');
        }
        match row.get_ref(1)? {
            ValueRef::Null => {
                let id = SessionId::parse(id).map_err(|error| Error::unreadable("session", error))?;
                serde_json::to_writer(&mut json, &session(connection, &id)?)
                    .map_err(|error| Error::unreadable(format!("session `{id}`"), error))?;
            }
            data => object(&mut json, None, "", &Data::of(data)?)
                .map_err(|error| Error::unreadable(format!("session `{id}`"), error))?,
        }
    }
    json.push(b']');
    Ok(crate::Json::new(json, spare))
}

/// The SQL condition of a filter, with order and limit.
fn condition(filter: &SessionFilter) -> (String, Vec<Box<dyn ToSql>>) {
    let mut conditions = vec!["true"];
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    if filter.roots {
        conditions.push("parent_id IS NULL");
    }
    if filter.unarchived {
        conditions.push("time_archived IS NULL");
    }
    let mut require = |condition, value: Box<dyn ToSql>| {
        conditions.push(condition);
        values.push(value);
    };
    if let Some(directory) = &filter.directory {
        require("directory = ?", Box::new(directory.clone()));
    }
    if let Some(project) = &filter.project {
        require("project_id = ?", Box::new(project.to_string()));
    }
    if let Some(parent) = &filter.parent {
        require("parent_id = ?", Box::new(parent.to_string()));
    }
    if let Some(search) = &filter.search {
        // Unlike a LIKE pattern, this has no special characters and no length limit.
        require("instr(lower(title), lower(?)) > 0", Box::new(search.clone()));
    }
    if let Some(start) = filter.start {
        require("time_updated >= ?", Box::new(number(start)));
    }
    if let Some(before) = filter.before {
        require("time_updated < ?", Box::new(number(before)));
    }
    let limit = filter.limit.unwrap_or(MAX_SESSIONS).min(MAX_SESSIONS);
    values.push(Box::new(number(limit as u64)));
    (format!("{} ORDER BY time_updated DESC, id LIMIT ?", conditions.join(" AND ")), values)
}

/// Reads a row of [`COLUMNS`] by index, because looking up each column by name would dominate the time of long lists.
fn read(row: &Row<'_>) -> Result<Session, Fault> {
    let mut row = Fields { row, next: 0 };
    let id: String = row.get()?;
    let project_id: String = row.get()?;
    let workspace_id = row.get()?;
    let parent_id: Option<String> = row.get()?;
    let unreadable = |error| Error::unreadable(format!("session `{id}`"), error);
    let [slug, directory] = [row.get()?, row.get()?];
    let path = row.get()?;
    let [title, version] = [row.get()?, row.get()?];
    let share = row.get::<Option<String>>()?.map(|url| Share { url });
    let [additions, deletions, files] = [row.number()?, row.number()?, row.number()?];
    let diffs = row.parse(&id)?;
    let metadata = row.parse(&id)?;
    let cost = row.get()?;
    let [input, output, reasoning] = [row.unsigned()?, row.unsigned()?, row.unsigned()?];
    let cache = CacheUsage { read: row.unsigned()?, write: row.unsigned()? };
    let tokens = TokenUsage { total: row.number()?, input, output, reasoning, cache };
    let revert = row.parse(&id)?;
    let permission = row.parse(&id)?;
    let agent = row.get()?;
    let model: Option<ModelRef> = row.parse(&id)?;
    let time = SessionTime {
        created: row.unsigned()?,
        updated: row.unsigned()?,
        compacting: row.number()?,
        archived: row.number()?,
    };
    let summary = additions.map(|additions| SessionSummary {
        additions,
        deletions: deletions.unwrap_or(0),
        files: files.unwrap_or(0),
        diffs,
    });
    Ok(Session {
        id: SessionId::parse(&id).map_err(|error| Error::unreadable("session", error))?,
        slug,
        project_id: ProjectId(project_id.into()),
        workspace_id,
        directory,
        path,
        parent_id: parent_id.map(|parent| SessionId::parse(&parent)).transpose().map_err(unreadable)?,
        summary,
        cost,
        tokens,
        share,
        title,
        agent,
        model,
        version,
        metadata,
        permission,
        revert,
        time,
    })
}

/// Reads the fields of a row from left to right.
struct Fields<'a> {
    row: &'a Row<'a>,
    next: usize,
}

impl Fields<'_> {
    fn get<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        self.next += 1;
        self.row.get(self.next - 1)
    }

    fn unsigned(&mut self) -> rusqlite::Result<u64> {
        Ok(self.get::<i64>()?.unsigned_abs())
    }

    fn number(&mut self) -> rusqlite::Result<Option<u64>> {
        Ok(self.get::<Option<i64>>()?.map(i64::unsigned_abs))
    }

    /// A value that is stored as JSON, of the session with an id.
    fn parse<T: DeserializeOwned>(&mut self, id: &str) -> Result<Option<T>, Fault> {
        self.next += 1;
        let text = self.row.get_ref(self.next - 1)?.as_str_or_null().map_err(rusqlite::Error::from)?;
        let unreadable = |error| Error::unreadable(format!("session `{id}`"), error);
        Ok(text.map(serde_json::from_str).transpose().map_err(unreadable)?)
    }
}
