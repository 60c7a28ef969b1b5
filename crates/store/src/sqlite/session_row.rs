//! Reads the rows of sessions: a column for each field, to filter and sort lists, and one with the whole JSON.

use std::sync::Arc;

use codewright_proto::{
    CacheUsage, ModelRef, ProjectId, Session, SessionId, SessionSummary, SessionTime, Share, TokenUsage,
};
use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter};
use serde::de::DeserializeOwned;

use super::json::data;
use super::query::{fetch, text};
use crate::error::Fault;
use crate::list::{USUAL_BYTES, object};
use crate::spare::Spare;
use crate::sql::to_column as number;
use crate::{Error, MAX_SESSIONS, SessionFilter};

const COLUMNS: &str = "id, project_id, workspace_id, parent_id, slug, directory, path, title, version, share_url, \
    summary_additions, summary_deletions, summary_files, summary_diffs, metadata, cost, tokens_input, \
    tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, tokens_total, revert, permission, \
    agent, model, access, time_created, time_updated, time_compacting, time_archived";

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
            value => object(&mut json, None, "", &data(value)?)
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
    if let Some(prefix) = filter.prefix() {
        // A directory itself is compared as if it ended with `/`. Patterns of LIKE would have special characters.
        require("instr(directory || '/', ?) = 1", Box::new(prefix));
    }
    if let Some(project) = &filter.project {
        require("project_id = ?", Box::new(project.to_string()));
    }
    if let Some(outside) = &filter.outside {
        require("project_id <> ?", Box::new(outside.to_string()));
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
    let access = row.parse(&id)?;
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
        access,
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
