//! The saved approvals that a user gave with "always".
//!
//! They are not a projection of the log: they are written, listed and removed directly, and each read sees the writes of
//! other processes.

use codewright_proto::ProjectId;
use rusqlite::{Connection, TransactionBehavior, params};

use super::query::{fetch, unsigned};
use crate::error::Fault;
use crate::permission::{Approvals, MAX_APPROVALS, MAX_LISTED, SavedPermission};
use crate::sql::{self, to_column as number};

/// Saves approvals that are not saved yet, and removes the oldest ones above the limit of a directory.
pub(super) fn save(connection: &mut Connection, saved: &[SavedPermission]) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for one in saved {
        let same = params![one.project_id.as_str(), one.directory, one.action, one.resource, one.rules];
        let is_saved = transaction.prepare_cached(sql::APPROVAL_EXISTS)?.exists(same)?;
        if is_saved {
            continue;
        }
        transaction.execute(
            sql::INSERT_APPROVAL,
            params![
                one.id.as_str(),
                one.project_id.as_str(),
                one.action,
                one.resource,
                number(one.created_ms),
                number(one.created_ms)
            ],
        )?;
        transaction.execute(sql::INSERT_SCOPE, params![one.id.as_str(), one.directory, one.rules])?;
        transaction.execute(
            sql::TRIM_APPROVALS,
            params![one.project_id.as_str(), one.directory, number(MAX_APPROVALS)],
        )?;
    }
    transaction.commit()?;
    Ok(())
}

/// The approvals that match a filter, oldest first.
pub(super) fn list(connection: &Connection, filter: &Approvals) -> Result<Vec<SavedPermission>, Fault> {
    let (project, directory) = (filter.project.as_ref().map(ProjectId::as_str), filter.directory.as_deref());
    fetch(connection, sql::APPROVALS, params![project, directory, number(MAX_LISTED)], |row| {
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
    Ok(connection.execute(sql::DELETE_APPROVAL, [id])? > 0)
}
