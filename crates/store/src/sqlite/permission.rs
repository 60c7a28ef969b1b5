//! The saved approvals that a user gave with "always".
//!
//! They are not a projection of the log: they are written, listed and removed directly, and each read sees the writes of
//! other processes.

use codewright_proto::ProjectId;
use rusqlite::{Connection, TransactionBehavior, params};

use super::apply::number;
use super::query::{fetch, unsigned};
use crate::error::Fault;
use crate::permission::{Approvals, MAX_APPROVALS, MAX_LISTED, SavedPermission};

/// Saves approvals that are not saved yet, and removes the oldest ones above the limit of a directory.
pub(super) fn save(connection: &mut Connection, saved: &[SavedPermission]) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for one in saved {
        let is_saved: bool = transaction.query_row(
            "SELECT EXISTS (SELECT 1 FROM permission JOIN permission_scope USING (id)
             WHERE project_id = ?1 AND directory = ?2 AND action = ?3 AND resource = ?4 AND rules = ?5)",
            params![one.project_id.as_str(), one.directory, one.action, one.resource, one.rules],
            |row| row.get(0),
        )?;
        if is_saved {
            continue;
        }
        transaction.execute(
            "INSERT INTO permission (id, project_id, action, resource, time_created, time_updated)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
            params![
                one.id.as_str(),
                one.project_id.as_str(),
                one.action,
                one.resource,
                number(one.created_ms)
            ],
        )?;
        transaction.execute(
            "INSERT INTO permission_scope (id, directory, rules) VALUES (?1, ?2, ?3)",
            params![one.id.as_str(), one.directory, one.rules],
        )?;
        transaction.execute(
            "DELETE FROM permission WHERE id IN (
                 SELECT id FROM permission JOIN permission_scope USING (id)
                 WHERE project_id = ?1 AND directory = ?2
                 ORDER BY time_created DESC, id DESC LIMIT -1 OFFSET ?3)",
            params![one.project_id.as_str(), one.directory, number(MAX_APPROVALS)],
        )?;
    }
    transaction.commit()?;
    Ok(())
}

/// The approvals that match a filter, oldest first.
pub(super) fn list(connection: &Connection, filter: &Approvals) -> Result<Vec<SavedPermission>, Fault> {
    let sql = "SELECT permission.id, project_id, action, resource, time_created,
            coalesce(directory, '') AS directory, coalesce(rules, '') AS rules
        FROM permission LEFT JOIN permission_scope USING (id)
        WHERE (?1 IS NULL OR project_id = ?1) AND (?2 IS NULL OR directory = ?2)
        ORDER BY time_created, permission.id LIMIT ?3";
    let (project, directory) = (filter.project.as_ref().map(ProjectId::as_str), filter.directory.as_deref());
    fetch(connection, sql, params![project, directory, number(MAX_LISTED)], |row| {
        Ok(SavedPermission {
            id: row.get("id")?,
            project_id: ProjectId(row.get::<_, String>("project_id")?.into()),
            directory: row.get("directory")?,
            action: row.get("action")?,
            resource: row.get("resource")?,
            rules: row.get("rules")?,
            created_ms: unsigned(row, "time_created")?,
        })
    })
}

/// Removes an approval. Returns whether it existed.
pub(super) fn remove(connection: &Connection, id: &str) -> Result<bool, Fault> {
    Ok(connection.execute("DELETE FROM permission WHERE id = ?1", [id])? > 0)
}
