//! The import and export of sessions.
//!
//! A session is exported as `{info, messages}`, the format that OpenCode reads and writes. It is imported
//! from that format or from the database of an OpenCode installation. Importing the same session again
//! changes nothing. Messages that were added to the source are added here; messages that were added here
//! are never overwritten. Fields and parts that our types do not model are kept next to the session and
//! restored when it is exported.

use std::path::Path;

use codewright_proto::{Project, SessionId};

use crate::Error;
use crate::interface::Transfer;

mod document;
mod export;
mod installation;
mod item;
mod merge;
mod provenance;
mod sanitize;
mod share;

pub use document::{Imported, MAX_DOCUMENT_BYTES};
pub use export::{Export, Texts};
pub use installation::{Mode, Summary};
pub use merge::Outcome;

pub(crate) use provenance::forget;

impl Transfer<'_> {
    /// Returns the project of a directory without opening the directory.
    pub async fn project_of(self, directory: &Path) -> Result<Project, Error> {
        let directory = resolved(directory)?;
        self.0.project_of(&directory).await
    }

    /// Imports one exported session into the project of a directory, in one transaction.
    ///
    /// `name` names the document in errors.
    pub async fn import_session(self, directory: &Path, name: &str, text: String) -> Result<Imported, Error> {
        let directory = resolved(directory)?;
        document::import(self.0, &directory, name, text).await
    }

    /// Imports a published session from its URL, like [`Engine::import_session`].
    pub async fn import_share(self, directory: &Path, address: &str) -> Result<Imported, Error> {
        let config = self.0.instance(directory).await?.config_json();
        let text = share::fetch(self.0, config["enterprise"]["url"].as_str(), address).await?;
        self.import_session(directory, address, text).await
    }

    /// Imports the sessions of another installation's database, which is not changed.
    ///
    /// `progress` receives the number of processed sessions and the total.
    pub async fn import_installation(
        self,
        database: &Path,
        mode: Mode,
        progress: impl FnMut(usize, usize),
    ) -> Result<Summary, Error> {
        installation::import(self.0, database, mode, progress).await
    }

    /// Returns a session with its messages, one at a time.
    pub async fn export_session(self, id: &SessionId, texts: Texts) -> Result<Export, Error> {
        Export::open(std::sync::Arc::clone(self.0), id, texts).await
    }

    /// Sums up the usage of the sessions that changed since a time, in milliseconds since 1970, of one project or all.
    pub async fn statistics(
        self,
        since: u64,
        project: Option<String>,
    ) -> Result<codewright_store::inspect::Usage, Error> {
        Ok(self.0.store.statistics(since, project).await?)
    }

    /// Returns the path of the sessions' database, or an error if they are not in a file.
    pub fn database(self) -> Result<std::path::PathBuf, Error> {
        self.0.database.file()
    }
}

fn resolved(directory: &Path) -> Result<std::path::PathBuf, Error> {
    directory
        .canonicalize()
        .map_err(|error| Error::invalid(format!("cannot work in `{}`: {error}", directory.display())))
}
