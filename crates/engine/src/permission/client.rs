//! Permission requests of clients for their own operations.
//!
//! The rules of the session decide, as for a tool call. If they require a reply, the request is published like every other request,
//! and the client reads the reply from the events.

use codewright_proto::{Action, Map, PermissionId, PermissionRequest, SessionId, ToolRef};
use codewright_tools::Ask;
use tokio::sync::oneshot;

use super::gate::Pending;
use super::session::session_rules;
use crate::Error;
use crate::interface::Permissions;

/// The number of waiting requests. Further ones are refused.
const MAX_WAITING: usize = 1000;

/// A permission request of a client.
#[derive(Debug, Clone)]
pub struct PermissionInput {
    /// An id chosen by the client.
    pub id: Option<PermissionId>,
    /// The permission key.
    pub permission: String,
    /// The targets of the operation. Without patterns any target is meant.
    pub patterns: Vec<String>,
    /// The patterns that a reply of `always` allows.
    pub always: Vec<String>,
    /// Details that other clients display.
    pub metadata: Map,
    /// The tool call that needs the permission.
    pub tool: Option<ToolRef>,
    /// The agent whose rules apply; by default the session's agent.
    pub agent: Option<String>,
}

impl Permissions<'_> {
    /// Decides about an operation of a client in a session. If a user has to decide, the request waits under the
    /// returned id.
    pub async fn request(
        self,
        id: &SessionId,
        wanted: PermissionInput,
    ) -> Result<(PermissionId, Action), Error> {
        let inner = self.0;
        let session = crate::session::in_use(inner, id).await?;
        let instance = inner.instance(std::path::Path::new(&session.directory)).await?;
        let own = wanted.id.unwrap_or_else(|| inner.ids.permission());
        // An unknown agent has no rules that could allow anything.
        if wanted.agent.as_deref().is_some_and(|name| instance.agent(name).is_err()) {
            return Ok((own, Action::Deny));
        }
        let agent = instance.agent_name(wanted.agent.as_deref().or(session.agent.as_deref()))?;
        let rules = session_rules(inner, &instance, &session, &agent).await?;
        let patterns = if wanted.patterns.is_empty() { vec!["*".to_owned()] } else { wanted.patterns };
        let ask = Ask::new(&wanted.permission, patterns.clone());
        let action = inner.gate.judge(&rules, &instance, &ask).await?;
        if action != Action::Ask {
            return Ok((own, action));
        }
        let request = PermissionRequest {
            id: own.clone(),
            session_id: id.clone(),
            permission: wanted.permission,
            patterns,
            metadata: wanted.metadata,
            always: wanted.always,
            tool: wanted.tool,
        };
        self.put(inner.gate.pending(ask, request, &rules, &instance)).await?;
        Ok((own, action))
    }

    /// Publishes a request once. It is stored when this function returns.
    async fn put(self, pending: Pending) -> Result<(), Error> {
        let request = &pending.request;
        // The second request with the same id finds the first.
        let _turn = self.0.gate.client_turn.lock().await;
        match self.0.gate.at(&request.id) {
            (Some(known), _) if known.session_id == request.session_id => return Ok(()),
            (Some(_), _) => return Err(id_in_use(&request.id)),
            (None, waiting) if waiting >= MAX_WAITING => {
                return Err(Error::too_many(format!("{MAX_WAITING} permission requests wait already")));
            }
            (None, _) => {}
        }
        let (tell, stored) = oneshot::channel();
        let (inner, id) = (self.0.clone(), request.id.clone());
        let asked = self.0.tasks.spawn(async move {
            let cancel = inner.cancel.child_token();
            let notify = || {
                // The receiver may be gone.
                let _ = tell.send(());
            };
            inner.gate.put(pending, &cancel, notify).await.map(drop)
        });
        if stored.await.is_ok() {
            return Ok(());
        }
        match asked.await {
            Ok(Err(Error::Store(codewright_store::Error::IdInUse { .. }))) => Err(id_in_use(&id)),
            Ok(ended) => ended,
            Err(_) => Err(Error::aborted("the permission request was given up")),
        }
    }
}

fn id_in_use(id: &PermissionId) -> Error {
    Error::invalid(format!("there has been another permission request `{id}`"))
}
