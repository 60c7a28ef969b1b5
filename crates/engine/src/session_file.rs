//! A file that belongs to a session, next to the store. It contains what no screen shows, so it is not an event.

use std::io;
use std::path::{Path, PathBuf};

use codewright_proto::SessionId;
use tokio::io::AsyncWriteExt as _;

/// A file of a session, which may not exist.
pub(crate) struct SessionFile(PathBuf);

impl SessionFile {
    /// The file of a session in a folder of the data directory.
    ///
    /// # Errors
    ///
    /// Fails if the id cannot be a file name. An id from imported JSON has not been checked before.
    pub(crate) fn new(data: &Path, folder: &str, id: &SessionId) -> Result<Self, String> {
        let id = SessionId::parse(id.as_str()).map_err(|error| error.to_string())?;
        Ok(Self(data.join(folder).join(format!("{id}.json"))))
    }

    /// Reads the file. `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if it has more than `limit` bytes or cannot be read.
    pub(crate) async fn read(&self, limit: u64) -> Result<Option<Vec<u8>>, String> {
        let failed = |reason: String| format!("cannot read `{}`: {reason}", self.0.display());
        match tokio::fs::metadata(&self.0).await {
            Ok(file) if file.len() <= limit => {}
            Ok(file) => {
                return Err(failed(format!("it has {} bytes, the limit is {limit}", file.len())));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        }
        tokio::fs::read(&self.0).await.map(Some).map_err(|error| failed(error.to_string()))
    }

    /// Replaces the file completely or not at all. It is readable by the user only.
    ///
    /// # Errors
    ///
    /// Fails with a sentence.
    pub(crate) async fn write(&self, bytes: &[u8]) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot write `{}`: {error}", self.0.display());
        codewright_workspace::make_private_directory(&self.0.with_file_name("")).map_err(failed)?;
        let unnamed = self.0.with_extension(format!("new-{}", std::process::id()));
        let write = async {
            let mut options = tokio::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            options.mode(0o600);
            let mut file = options.open(&unnamed).await?;
            file.write_all(bytes).await?;
            file.flush().await?;
            drop(file);
            tokio::fs::rename(&unnamed, &self.0).await
        };
        write.await.map_err(failed)
    }

    /// Removes the file.
    pub(crate) async fn remove(&self) {
        // Most sessions have no such file, and the file of a deleted session is never read.
        drop(tokio::fs::remove_file(&self.0).await);
    }
}
