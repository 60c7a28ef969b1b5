//! Sessions as rows: one column a field, so that lists can be filtered and sorted.

use codewright_proto::{
    CacheUsage, ModelRef, ProjectId, Session, SessionId, SessionSummary, SessionTime, Share, TokenUsage,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, ToSql, named_params, params_from_iter};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::apply::{number, project_exists, unknown};
use super::query::{fetch, unsigned};
use crate::error::Fault;
use crate::{Error, MAX_SESSIONS, SessionFilter};

const COLUMNS: &str = "id, project_id, workspace_id, parent_id, slug, directory, path, title, version, share_url, \
    summary_additions, summary_deletions, summary_files, summary_diffs, metadata, cost, tokens_input, \
    tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, tokens_total, revert, permission, \
    agent, model, time_created, time_updated, time_compacting, time_archived";

const UPSERT: &str = "INSERT INTO session (
    id, project_id, workspace_id, parent_id, slug, directory, path, title, version, share_url,
    summary_additions, summary_deletions, summary_files, summary_diffs, metadata, cost, tokens_input,
    tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, tokens_total, revert, permission,
    agent, model, time_created, time_updated, time_compacting, time_archived
) VALUES (
    :id, :project_id, :workspace_id, :parent_id, :slug, :directory, :path, :title, :version, :share_url,
    :summary_additions, :summary_deletions, :summary_files, :summary_diffs, :metadata, :cost, :tokens_input,
    :tokens_output, :tokens_reasoning, :tokens_cache_read, :tokens_cache_write, :tokens_total, :revert, :permission,
    :agent, :model, :time_created, :time_updated, :time_compacting, :time_archived
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
    time_compacting = excluded.time_compacting, time_archived = excluded.time_archived";

/// Writes a session's row; its project has to be known.
pub(super) fn upsert(connection: &Connection, info: &Session) -> Result<(), Fault> {
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

/// The sessions that a filter lets through, most recently updated first.
pub(super) fn sessions(connection: &Connection, filter: &SessionFilter) -> Result<Vec<Session>, Fault> {
    let mut conditions = vec!["true"];
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    if filter.roots {
        conditions.push("parent_id IS NULL");
    }
    let mut demand = |condition, value: Box<dyn ToSql>| {
        conditions.push(condition);
        values.push(value);
    };
    if let Some(directory) = &filter.directory {
        demand("directory = ?", Box::new(directory.clone()));
    }
    if let Some(project) = &filter.project {
        demand("project_id = ?", Box::new(project.to_string()));
    }
    if let Some(parent) = &filter.parent {
        demand("parent_id = ?", Box::new(parent.to_string()));
    }
    if let Some(search) = &filter.search {
        // Unlike a LIKE pattern, this has no special characters and no length limit.
        demand("instr(lower(title), lower(?)) > 0", Box::new(search.clone()));
    }
    if let Some(start) = filter.start {
        demand("time_updated >= ?", Box::new(number(start)));
    }
    let limit = filter.limit.unwrap_or(MAX_SESSIONS).min(MAX_SESSIONS);
    values.push(Box::new(number(limit as u64)));
    let condition = conditions.join(" AND ");
    let sql =
        format!("SELECT {COLUMNS} FROM session WHERE {condition} ORDER BY time_updated DESC, id LIMIT ?");
    fetch(connection, &sql, params_from_iter(values), read)
}

fn read(row: &Row<'_>) -> Result<Session, Fault> {
    let id: String = row.get("id")?;
    let unreadable = |error| Error::unreadable(format!("session `{id}`"), error);
    let parent: Option<String> = row.get("parent_id")?;
    let parent = parent.map(|parent| SessionId::parse(&parent)).transpose();
    let parsed = SessionId::parse(&id);
    let optional = |column: &str| -> rusqlite::Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(i64::unsigned_abs))
    };
    let summary = match optional("summary_additions")? {
        Some(additions) => Some(SessionSummary {
            additions,
            deletions: unsigned(row, "summary_deletions")?,
            files: unsigned(row, "summary_files")?,
            diffs: parse(row, "summary_diffs").map_err(|fault| fault.or(unreadable))?,
        }),
        None => None,
    };
    let model: Option<ModelRef> = parse(row, "model").map_err(|fault| fault.or(unreadable))?;
    Ok(Session {
        id: parsed.map_err(|error| Error::unreadable("session", error))?,
        slug: row.get("slug")?,
        project_id: ProjectId(row.get::<_, String>("project_id")?.into()),
        workspace_id: row.get("workspace_id")?,
        directory: row.get("directory")?,
        path: row.get("path")?,
        parent_id: parent.map_err(|error| Error::unreadable(format!("session `{id}`"), error))?,
        summary,
        cost: row.get("cost")?,
        tokens: TokenUsage {
            total: optional("tokens_total")?,
            input: unsigned(row, "tokens_input")?,
            output: unsigned(row, "tokens_output")?,
            reasoning: unsigned(row, "tokens_reasoning")?,
            cache: CacheUsage {
                read: unsigned(row, "tokens_cache_read")?,
                write: unsigned(row, "tokens_cache_write")?,
            },
        },
        share: row.get::<_, Option<String>>("share_url")?.map(|url| Share { url }),
        title: row.get("title")?,
        agent: row.get("agent")?,
        model,
        version: row.get("version")?,
        metadata: parse(row, "metadata").map_err(|fault| fault.or(unreadable))?,
        permission: parse(row, "permission").map_err(|fault| fault.or(unreadable))?,
        revert: parse(row, "revert").map_err(|fault| fault.or(unreadable))?,
        time: SessionTime {
            created: unsigned(row, "time_created")?,
            updated: unsigned(row, "time_updated")?,
            compacting: optional("time_compacting")?,
            archived: optional("time_archived")?,
        },
    })
}

/// Why a JSON column could not be read.
enum Column {
    Sql(rusqlite::Error),
    Json(serde_json::Error),
}

impl Column {
    fn or(self, unreadable: impl FnOnce(serde_json::Error) -> Error) -> Fault {
        match self {
            Self::Sql(error) => error.into(),
            Self::Json(error) => unreadable(error).into(),
        }
    }
}

fn parse<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<Option<T>, Column> {
    match row.get_ref(column).map_err(Column::Sql)? {
        ValueRef::Null => Ok(None),
        value => {
            let text = value.as_str().map_err(|error| Column::Sql(error.into()))?;
            serde_json::from_str(text).map(Some).map_err(Column::Json)
        }
    }
}
