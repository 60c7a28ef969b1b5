//! The files of an editor: its open documents, whose text may not be saved.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agent_client_protocol::Client as Editor;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{ReadTextFileRequest, WriteTextFileRequest};
use codewright_proto::SessionId;
use tokio::time::timeout;

/// The time in which an editor must return a text.
const READ_DEADLINE: Duration = Duration::from_secs(5);
/// The time in which an editor must write a file.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);
/// The number of missed deadlines in a row after which the editor is not asked any more.
const MAX_LATE: u32 = 3;

/// Uses the files that editors offer for their sessions.
pub trait Documents: Send + Sync {
    /// A session was opened by an editor that offers its files.
    fn opened(&self, session: &SessionId, files: EditorFiles);
    /// The editor has closed the session, or is gone.
    fn closed(&self, session: &SessionId);
}

/// Reads and writes the files of a session through its editor.
#[derive(Debug, Clone)]
pub struct EditorFiles {
    connection: ConnectionTo<Editor>,
    session: SessionId,
    writes: bool,
    late: Arc<AtomicU32>,
}

impl EditorFiles {
    /// The files of an editor that reads them, and perhaps writes them.
    pub(crate) fn reading(connection: ConnectionTo<Editor>, session: SessionId) -> Self {
        Self { connection, session, writes: false, late: Arc::default() }
    }

    /// The same for an editor that also writes.
    pub(crate) fn writing(self) -> Self {
        Self { writes: true, ..self }
    }

    /// Returns the text of a file as the editor shows it. `None` if the editor does not return it.
    pub async fn read(&self, path: &Path) -> Option<String> {
        let request = ReadTextFileRequest::new(self.session.as_str().to_owned(), path);
        let answer = self.connection.send_request(request).block_task();
        Some(self.in_time(READ_DEADLINE, answer).await?.content)
    }

    /// Replaces the text of a file. Returns whether the editor reports success.
    pub async fn write(&self, path: &Path, text: &str) -> bool {
        if !self.writes {
            return false;
        }
        let request = WriteTextFileRequest::new(self.session.as_str().to_owned(), path, text);
        let answer = self.connection.send_request(request).block_task();
        self.in_time(WRITE_DEADLINE, answer).await.is_some()
    }

    async fn in_time<T>(
        &self,
        deadline: Duration,
        answer: impl Future<Output = Result<T, agent_client_protocol::Error>>,
    ) -> Option<T> {
        if self.late.load(Ordering::Relaxed) >= MAX_LATE {
            return None;
        }
        match timeout(deadline, answer).await {
            Ok(answer) => {
                self.late.store(0, Ordering::Relaxed);
                answer.ok()
            }
            Err(_) => {
                self.late.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}
