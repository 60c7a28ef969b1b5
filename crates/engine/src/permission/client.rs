//! Leave that a client asks for, for something that it does itself.
//!
//! The rules of the session decide as they do about a call; where they ask, the question is put to whoever
//! answers questions, and the client hears of the answer as everybody does.

use codewright_proto::{Action, Map, PermissionId, PermissionRequest, SessionId, ToolRef};
use tokio::sync::oneshot;

use super::gate::Pending;
use super::session::session_rules;
use crate::Error;
use crate::interface::Permissions;

/// Questions that wait at once; a client's own beyond is refused.
const MAX_WAITING: usize = 1000;

/// What a client wants leave for.
#[derive(Debug, Clone)]
pub struct PermissionInput {
    /// An id made by the client.
    pub id: Option<PermissionId>,
    /// The permission key.
    pub permission: String,
    /// What it touches; nothing stands for anything.
    pub patterns: Vec<String>,
    /// The patterns that an answer of `always` allows.
    pub always: Vec<String>,
    /// What other clients show.
    pub metadata: Map,
    /// The call it is for.
    pub tool: Option<ToolRef>,
    /// Whose rules hold; else those of the session's agent.
    pub agent: Option<String>,
}

impl Permissions<'_> {
    /// Decides about something that a client would do in a session; where a user has to decide, the
    /// question waits from now on under the id that is given back.
    pub async fn request(
        self,
        id: &SessionId,
        wanted: PermissionInput,
    ) -> Result<(PermissionId, Action), Error> {
        let inner = self.0;
        let session = crate::session::in_use(inner, id).await?;
        let instance = inner.instance(std::path::Path::new(&session.directory)).await?;
        let own = wanted.id.unwrap_or_else(|| inner.ids.permission());
        // An agent that is not there has no rules that would allow anything.
        if wanted.agent.as_deref().is_some_and(|name| instance.agent(name).is_err()) {
            return Ok((own, Action::Deny));
        }
        let agent = instance.agent_name(wanted.agent.as_deref().or(session.agent.as_deref()))?;
        let rules = session_rules(inner, &instance, &session, &agent).await?;
        let patterns = if wanted.patterns.is_empty() { vec!["*".to_owned()] } else { wanted.patterns };
        let action = inner.gate.judge((&rules, &instance), &wanted.permission, &patterns).await?;
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
        self.put(inner.gate.pending(request, &rules, &instance)).await?;
        Ok((own, action))
    }

    /// Puts a question, once; it is stored when this returns.
    async fn put(self, pending: Pending) -> Result<(), Error> {
        let request = &pending.request;
        // Of two with one id the second finds the first.
        let _turn = self.0.sessions.lock().await;
        match self.0.gate.at(&request.id) {
            (Some(known), _) if known.session_id == request.session_id => return Ok(()),
            (Some(_), _) => return Err(taken(&request.id)),
            (None, waiting) if waiting >= MAX_WAITING => {
                return Err(Error::too_many(format!("{MAX_WAITING} permission requests wait already")));
            }
            (None, _) => {}
        }
        let (tell, stored) = oneshot::channel();
        let (inner, id) = (self.0.clone(), request.id.clone());
        let asked = self.0.tasks.spawn(async move {
            let cancel = inner.cancel.child_token();
            let told = || {
                // Whoever asked may be gone.
                let _ = tell.send(());
            };
            inner.gate.put(pending, &cancel, told).await.map(drop)
        });
        if stored.await.is_ok() {
            return Ok(());
        }
        match asked.await {
            Ok(Err(Error::Store(codewright_store::Error::Taken { .. }))) => Err(taken(&id)),
            Ok(ended) => ended,
            Err(_) => Err(Error::aborted("the permission request was given up")),
        }
    }
}

fn taken(id: &PermissionId) -> Error {
    Error::invalid(format!("there has been another permission request `{id}`"))
}
