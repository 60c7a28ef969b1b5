//! Waiting permission requests and saved approvals.

use codewright_proto::{PermissionAnswer, PermissionId, PermissionRequest, Principal, ProjectId, Replier};
use codewright_store::SavedPermission;

use super::Permissions;
use crate::Error;

impl Permissions<'_> {
    /// Returns the permission requests that wait for a user.
    pub async fn pending(self) -> Result<Vec<PermissionRequest>, Error> {
        self.0.gate.listed().await
    }

    /// Replies to a permission request as the owner of the machine.
    pub async fn answer(self, id: &PermissionId, answer: PermissionAnswer) -> Result<(), Error> {
        self.answer_as(Replier::new(Principal::Owner), id, answer).await
    }

    /// Replies to a permission request. The table of principals decides who may grant what.
    ///
    /// # Errors
    ///
    /// Fails if the request does not wait, and if the principal may not grant it.
    pub async fn answer_as(
        self,
        by: Replier,
        id: &PermissionId,
        answer: PermissionAnswer,
    ) -> Result<(), Error> {
        self.0.gate.answer(by, id, answer).await
    }

    /// Returns the approvals that users saved with "always", oldest first, for one project or all.
    pub async fn saved(self, project: Option<ProjectId>) -> Result<Vec<SavedPermission>, Error> {
        self.0.gate.saved(project).await
    }

    /// Revokes a saved approval for every process that uses the store. Returns whether it existed.
    pub async fn revoke(self, id: &str) -> Result<bool, Error> {
        self.0.gate.revoke(id).await
    }
}
