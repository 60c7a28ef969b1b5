//! The stored sessions of other agents, so that they continue after a restart of this program.
//!
//! A session that an agent answered has one file next to the store. It contains no text of the conversation.

use std::collections::BTreeMap;

use codewright_acp_client::{Earlier, Memory, Session, Spec};
use codewright_proto::SessionId;
use serde::{Deserialize, Serialize};

use crate::inner::Inner;
use crate::session_file::SessionFile;

/// The folder of the files in the data directory.
const FOLDER: &str = "acp";
/// The largest file.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// The number of agents of a session whose sessions are stored.
const MAX_AGENTS: usize = 16;

/// The sessions by agent.
type Stored = BTreeMap<String, Kept>;

/// A session of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Kept {
    /// The program and its arguments. Another program under the same name does not get the id.
    command: Vec<String>,
    id: String,
    message: Option<String>,
    cost: f64,
}

/// Returns the session that an earlier process of an agent had.
pub(crate) async fn earlier(inner: &Inner, session: &SessionId, spec: &Spec) -> Option<Earlier> {
    // A file that cannot be read means that the agent begins again.
    let kept = read(inner, session).await.ok()?.remove(&spec.name)?;
    let memory = Memory { message: kept.message, cost: kept.cost };
    (kept.command == command(spec)).then_some(Earlier { id: kept.id, memory })
}

/// Stores the session of an agent.
///
/// # Errors
///
/// Fails with a sentence.
pub(crate) async fn keep(
    inner: &Inner,
    session: &SessionId,
    spec: &Spec,
    of_agent: &Session,
) -> Result<(), String> {
    // A damaged file is replaced.
    let mut stored = read(inner, session).await.unwrap_or_default();
    if stored.len() >= MAX_AGENTS {
        stored.clear();
    }
    let Memory { message, cost } = of_agent.memory();
    let kept = Kept { command: command(spec), id: of_agent.id().to_owned(), message, cost };
    stored.insert(spec.name.clone(), kept);
    let json = serde_json::to_vec(&stored).map_err(|error| error.to_string())?;
    if json.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it has more than {} KiB", MAX_FILE_BYTES / 1024));
    }
    file(inner, session)?.write(&json).await
}

/// Removes the file of a deleted session.
pub(crate) async fn forget(inner: &Inner, session: &SessionId) {
    if let Ok(file) = file(inner, session) {
        file.remove().await;
    }
}

fn command(spec: &Spec) -> Vec<String> {
    std::iter::once(&spec.program).chain(&spec.args).cloned().collect()
}

fn file(inner: &Inner, session: &SessionId) -> Result<SessionFile, String> {
    SessionFile::new(&inner.dirs.data, FOLDER, session)
}

async fn read(inner: &Inner, session: &SessionId) -> Result<Stored, String> {
    let Some(text) = file(inner, session)?.read(MAX_FILE_BYTES).await? else { return Ok(Stored::new()) };
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}
