//! Permission requests that wait, and approvals that are saved.

use codewright_proto::{PermissionAnswer, PermissionId, PermissionRequest, ProjectId};
use codewright_store::SavedPermission;

use super::Permissions;
use crate::Error;

impl Permissions<'_> {
    /// The permission requests that wait for a user.
    pub async fn pending(self) -> Result<Vec<PermissionRequest>, Error> {
        self.0.gate.listed().await
    }

    /// Answers a permission request.
    pub async fn answer(self, id: &PermissionId, answer: PermissionAnswer) -> Result<(), Error> {
        self.0.gate.answer(id, answer).await
    }

    /// The approvals that users gave with "always", oldest first: those of a project, or all.
    pub async fn saved(self, project: Option<ProjectId>) -> Result<Vec<SavedPermission>, Error> {
        self.0.gate.saved(project).await
    }

    /// Revokes a saved approval, for every process that works on the store; returns whether there was one.
    pub async fn revoke(self, id: &str) -> Result<bool, Error> {
        self.0.gate.revoke(id).await
    }
}
