//! This server among others that share its store.

use std::path::Path;
use std::sync::Arc;

use codewright_proto::{EventId, SessionId, Signal};
use codewright_store::Ownership;

use super::Nodes;
use crate::Error;
use crate::nodes::settings::NodeSettings;
use crate::nodes::{Cluster, NodeView, takeover};

impl Nodes<'_> {
    /// Reports whether the store can have other servers: whether it is a database.
    #[must_use]
    pub fn are_possible(self) -> bool {
        self.0.database.is_shared()
    }

    /// Joins the other servers that use the database: announces this one, and takes over the sessions of dead ones.
    pub fn join(self, settings: NodeSettings) {
        self.0.nodes.join(settings);
        takeover::start(self.0);
    }

    /// Returns the settings, if this process has joined other servers.
    #[must_use]
    pub fn settings(self) -> Option<NodeSettings> {
        self.0.nodes.get().map(|cluster| cluster.settings.clone())
    }

    /// Returns the living servers; `None` if the database could not be read lately.
    #[must_use]
    pub fn view(self) -> Option<NodeView> {
        self.0.nodes.get()?.view()
    }

    /// Returns the server that a session belongs to.
    pub async fn ownership(self, id: &SessionId) -> Result<Ownership, Error> {
        Ok(self.0.store.ownership(id).await?)
    }

    /// Reports whether this server can work in a directory.
    pub async fn can_work(self, directory: &Path) -> bool {
        match self.0.nodes.get() {
            Some(cluster) => cluster.can_work(directory).await,
            None => true,
        }
    }

    /// Reports whether this server begins no more turns.
    #[must_use]
    pub fn is_draining(self) -> bool {
        self.0.nodes.get().is_some_and(Cluster::is_draining)
    }

    /// Reports whether a session runs in this process.
    #[must_use]
    pub fn is_running(self, id: &SessionId) -> bool {
        self.0.runs.is_running(id)
    }

    /// Begins no more turns, and hands the sessions over that do not end in time. Returns at once; `false` if this process
    /// has not joined other servers.
    #[must_use]
    pub fn drain(self) -> bool {
        let Some(cluster) = self.0.nodes.get() else { return false };
        if cluster.is_draining() {
            return true;
        }
        cluster.start_draining();
        let inner = Arc::clone(self.0);
        self.0.tasks.spawn(async move {
            if let Some(cluster) = inner.nodes.get() {
                takeover::drain(&inner, cluster).await;
            }
        });
        true
    }

    /// Stops all turns and leaves their sessions to the other servers.
    pub async fn hand_over(self) {
        if let Some(cluster) = self.0.nodes.get() {
            takeover::hand_over(self.0, cluster).await;
        }
    }

    /// Publishes a signal of another server.
    pub fn publish(self, id: EventId, signal: Signal) {
        self.0.store.signal_from_elsewhere(id, signal);
    }
}
