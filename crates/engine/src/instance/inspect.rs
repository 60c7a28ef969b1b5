//! Snapshots and models of a directory, for a user who looks for a fault.

use std::time::Duration;

use codewright_snapshot::TreeId;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{Error, Instance};

/// The deadline of one question about snapshots.
const SNAPSHOT_DEADLINE: Duration = Duration::from_secs(120);

impl Instance {
    /// Takes a snapshot of the directory and returns its id.
    pub async fn track_snapshot(&self) -> Result<String, Error> {
        self.current_tree().await.map(|tree| tree.to_string())
    }

    /// Returns the absolute paths of the files that differ from a snapshot.
    pub async fn files_since(&self, snapshot: &str) -> Result<Vec<String>, Error> {
        let from = parse(snapshot)?;
        let to = self.current_tree().await?;
        let changes = within(self.snapshots.diff(from, to)).await?;
        let root = self.snapshots.worktree();
        Ok(changes.iter().map(|change| root.join(&change.path).to_string_lossy().into_owned()).collect())
    }

    /// Returns the difference between a snapshot and the directory, as `git diff` prints it.
    pub async fn diff_since(&self, snapshot: &str) -> Result<String, Error> {
        let from = parse(snapshot)?;
        let to = self.current_tree().await?;
        within(self.snapshots.diff_text(from, to, &CancellationToken::new())).await
    }

    async fn current_tree(&self) -> Result<TreeId, Error> {
        if !self.keeps_files {
            return Err(Error::invalid("snapshots are disabled by `snapshot: false`"));
        }
        Ok(within(self.snapshots.track(&CancellationToken::new())).await?.tree)
    }

    /// Returns the places where providers and keys were searched for.
    #[must_use]
    pub fn searched_for_providers(&self) -> &[String] {
        self.models.searched()
    }

    /// Returns the ids and names of the connected providers, the default model, and each provider's model for small
    /// work.
    #[must_use]
    pub fn catalog_json(&self) -> Value {
        let connected = self.connections().into_iter().filter(|connection| connection.source.is_some());
        let connected: Vec<_> = connected.map(|connection| (connection.id, connection.name)).collect();
        let small: Map<_, _> = connected
            .iter()
            .filter_map(|(id, _)| Some((id.clone(), json!(self.models.small(id, "")?.id))))
            .collect();
        let default = self.models.default_model().ok();
        json!({
            "providers": connected.iter().map(|(id, name)| json!({"id": id, "name": name})).collect::<Vec<_>>(),
            "default": default.map(|(provider, model)| format!("{provider}/{model}")),
            "small": small,
        })
    }
}

fn parse(snapshot: &str) -> Result<TreeId, Error> {
    TreeId::parse(snapshot).ok_or_else(|| Error::invalid("the id of a snapshot has 40 hexadecimal digits"))
}

async fn within<T>(work: impl Future<Output = Result<T, codewright_snapshot::Error>>) -> Result<T, Error> {
    match tokio::time::timeout(SNAPSHOT_DEADLINE, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Error::machine(format!("snapshots did not respond within {SNAPSHOT_DEADLINE:?}"))),
    }
}
