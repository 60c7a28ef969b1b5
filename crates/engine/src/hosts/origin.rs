//! The author of a command's connections, and the reasons why one of them is refused.

use std::sync::Arc;

use codewright_proto::{SessionId, ToolRef};
use codewright_workspace::RefusedHost;

use super::judge::PERMISSION;
use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::permission::rules::PermissionRules;

/// The author of a command's connections.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) inner: Arc<Inner>,
    pub(crate) instance: Arc<Instance>,
    pub(crate) session_id: SessionId,
    pub(crate) rules: PermissionRules,
    /// The call, if a model made one.
    pub(crate) tool: Option<ToolRef>,
    /// The command, for the user.
    pub(crate) command: String,
    pub(crate) user: User,
    /// The hosts that were granted with the command, as rules name them.
    pub(crate) granted: Vec<String>,
}

impl Origin {
    /// The author of a user's command outside of sessions. Only rules and approvals permit hosts.
    ///
    /// # Errors
    ///
    /// Fails if the default agent is missing.
    pub(crate) fn without_user(
        inner: &Arc<Inner>,
        instance: &Arc<Instance>,
        session_id: &SessionId,
        command: &str,
    ) -> Result<Self, Error> {
        let agent = instance.agent_name(None)?;
        Ok(Self {
            inner: Arc::clone(inner),
            instance: Arc::clone(instance),
            session_id: session_id.clone(),
            rules: PermissionRules::of_agent(instance.agent(&agent)?, &[]),
            tool: None,
            command: command.to_owned(),
            user: User::Absent,
            granted: Vec::new(),
        })
    }
}

/// Whether a user can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// The session has clients, which may reply.
    Present,
    /// There is no session.
    Absent,
}

/// The reason why a connection is not permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The address is not on the internet.
    Private,
    /// A server of this program, or the database of its sessions, listens at the port.
    OfProgram,
    /// A rule denies it.
    Denied,
    /// The user rejected it, perhaps with a message.
    Rejected(Option<String>),
    /// There is no user, or no reply came.
    Unanswered,
    /// Too many hosts were requested.
    TooMany,
    /// The decision failed.
    Failed(String),
}

impl Reason {
    /// The record of a refused connection.
    pub(super) fn of(self, host: &str) -> RefusedHost {
        let host = host.to_owned();
        let rule = Some(format!("`\"permission\": {{\"{PERMISSION}\": {{\"{host}\": \"allow\"}}}}`"));
        let (reason, rule) = match self {
            Self::OfProgram => {
                ("a server of this program listens there, and no command may use it".to_owned(), None)
            }
            Self::Private => (
                "it is this machine or in a private network, and only a rule of the user that names exactly this \
                 host and port allows that"
                    .to_owned(),
                rule,
            ),
            Self::Denied => ("a permission rule denies it".to_owned(), None),
            Self::Rejected(None) => ("the permission request was rejected".to_owned(), rule),
            Self::Rejected(Some(message)) => {
                (format!("the permission request was rejected with the feedback: {message}"), rule)
            }
            Self::Unanswered => ("no user replied to the permission request".to_owned(), rule),
            Self::TooMany => ("the command requested too many hosts".to_owned(), rule),
            Self::Failed(error) => (format!("the permission could not be decided: {error}"), None),
        };
        RefusedHost { host, reason, rule }
    }
}
