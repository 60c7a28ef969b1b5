//! The stored lists of tools of sessions that use the search tool.
//!
//! A session that is resumed by another process sends the same list, whatever the servers offer by then, because providers
//! cache the beginning of a request. Each such session has one file next to the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use codewright_proto::{PromptModel, SessionId, UserMessage};

use super::economy::{self, Snapshot};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::session_file::SessionFile;

/// The folder of the files in the data directory.
const FOLDER: &str = "mcp";
/// The largest file. A longer list is kept in memory only.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// The largest number of models of a session whose lists are stored.
const MAX_MODELS: usize = 32;

/// The lists of a session by model.
type Stored = BTreeMap<String, Arc<Snapshot>>;

/// Reads the list of a session that this process has not decided about, before a request.
pub(crate) async fn restore(inner: &Inner, instance: &Instance, prompt: &UserMessage) {
    let (session, model) = (&prompt.session_id, &model_name(&prompt.model));
    if inner.mcp.find(&instance.directory).is_none() || inner.mcp.decisions.has(session, model) {
        return;
    }
    match read(inner, session).await {
        Ok(mut stored) => {
            if let Some(snapshot) = stored.remove(model) {
                inner.mcp.decisions.restore(session, model, snapshot);
            }
        }
        Err(why) => warn(instance, &why),
    }
}

/// Stores the list of a session if it is new, before a request contains it.
pub(crate) async fn keep(inner: &Inner, instance: &Instance, prompt: &UserMessage) {
    let (session, model) = (&prompt.session_id, &model_name(&prompt.model));
    let Some(snapshot) = inner.mcp.decisions.take_new(session, model) else { return };
    if let Err(why) = write(inner, session, model, snapshot).await {
        warn(instance, &why);
    }
}

fn model_name(model: &PromptModel) -> String {
    economy::model_name(&model.provider_id, &model.model_id)
}

/// Removes the lists of a deleted session.
pub(crate) async fn forget(inner: &Inner, session: &SessionId) {
    if let Ok(file) = file(inner, session) {
        file.remove().await;
    }
}

fn file(inner: &Inner, session: &SessionId) -> Result<SessionFile, String> {
    SessionFile::new(&inner.dirs.data, FOLDER, session)
}

async fn read(inner: &Inner, session: &SessionId) -> Result<Stored, String> {
    let Some(text) = file(inner, session)?.read(MAX_FILE_BYTES).await? else { return Ok(Stored::new()) };
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

async fn write(
    inner: &Inner,
    session: &SessionId,
    model: &str,
    snapshot: Arc<Snapshot>,
) -> Result<(), String> {
    // A damaged file is replaced.
    let mut stored = read(inner, session).await.unwrap_or_default();
    if stored.len() >= MAX_MODELS {
        stored.clear();
    }
    stored.insert(model.to_owned(), snapshot);
    let json = serde_json::to_vec(&stored).map_err(|error| error.to_string())?;
    if json.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it has more than {} MiB", MAX_FILE_BYTES / 1024 / 1024));
    }
    file(inner, session)?.write(&json).await
}

fn warn(instance: &Instance, why: &str) {
    instance.warn(&format!("the list of MCP tools may change when a session is resumed: {why}"));
}
