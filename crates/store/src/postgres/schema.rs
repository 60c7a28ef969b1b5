//! Creates and migrates the tables of a store.
//!
//! Any number of processes can open a new database at the same time. One creates the tables and the others wait for an
//! advisory lock.

use std::path::PathBuf;

use super::fault::Fault;
use super::link::Link;
use crate::Error;

/// The schema, one file per version. Released files are never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_init.sql"),
    include_str!("../../migrations/postgres/0002_nodes.sql"),
    include_str!("../../migrations/postgres/0003_users.sql"),
];

/// The number of the lock that migrations hold: "codewrit" in ASCII.
const LOCK: i64 = 0x636f_6465_7772_6974;

/// How long a process waits for another one that migrates.
const MIGRATION_TIMEOUT: &str = "120s";

/// Brings the tables to the version of this program, and checks that they can be used.
pub(super) async fn migrate(link: &mut Link, label: &str) -> Result<(), Fault> {
    if found(link, label).await? == MIGRATIONS.len() {
        return Ok(());
    }
    link.batch(&format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '{MIGRATION_TIMEOUT}'; \
         SET LOCAL statement_timeout = '{MIGRATION_TIMEOUT}'; SELECT pg_advisory_xact_lock({LOCK})"
    ))
    .await?;
    // Another process may have migrated while this one waited for the lock.
    let version = found(link, label).await?;
    for migration in &MIGRATIONS[version..] {
        link.batch(migration).await?;
    }
    if version < MIGRATIONS.len() {
        link.batch(&format!(
            "CREATE TABLE IF NOT EXISTS store_schema (is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only), version bigint NOT NULL); \
             INSERT INTO store_schema (version) VALUES ({0}) ON CONFLICT (is_only) DO UPDATE SET version = {0}",
            MIGRATIONS.len()
        ))
        .await?;
    }
    link.batch("COMMIT").await
}

/// Fails if another version of the program has changed the tables since they were opened.
pub(super) async fn check(link: &mut Link, label: &str) -> Result<(), Fault> {
    let version = found(link, label).await?;
    if version == MIGRATIONS.len() {
        return Ok(());
    }
    Err(Error::Foreign { path: label.into() }.into())
}

/// The version of the tables: 0 for a database without them, otherwise a known version.
async fn found(link: &mut Link, label: &str) -> Result<usize, Fault> {
    // The catalog is read as a table, because a name that was looked up before is remembered as missing.
    let sql = "SELECT coalesce(bool_or(relname = 'store_schema'), false),
            coalesce(bool_or(relname IN ('session', 'event')), false), current_setting('server_encoding')
        FROM pg_class WHERE relkind IN ('r', 'p', 'v') AND pg_table_is_visible(oid)
        AND relname IN ('store_schema', 'session', 'event')";
    let row = link.row(sql, &[]).await?.ok_or(Fault::Unchanged)?;
    let (has_version, has_others, encoding): (bool, bool, String) = (row.get(0), row.get(1), row.get(2));
    if encoding != "UTF8" {
        return Err(Error::Encoding { store: label.to_owned(), encoding }.into());
    }
    if !has_version {
        let foreign = || Error::Foreign { path: PathBuf::from(label) };
        return if has_others { Err(foreign().into()) } else { Ok(0) };
    }
    let row = link.row("SELECT version FROM store_schema", &[]).await?.ok_or(Fault::Unchanged)?;
    let (found, known): (i64, i64) = (row.get(0), MIGRATIONS.len() as i64);
    if found > known {
        return Err(Error::Newer { path: PathBuf::from(label), found, known }.into());
    }
    match usize::try_from(found) {
        Ok(version) if version > 0 => Ok(version),
        _ => Err(Error::Foreign { path: PathBuf::from(label) }.into()),
    }
}
