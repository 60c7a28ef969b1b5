//! Finds the permission rules of a session.

use codewright_proto::{Rule, Session};

use super::rules::PermissionRules;
use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;

/// The number of callers whose rules are looked up.
const MAX_ABOVE: usize = 64;

/// Returns the permission rules of a session that runs with this agent.
///
/// A subagent whose call is waiting has the rules of that call. Otherwise the parent sessions are looked up, each with
/// its current agent.
pub(crate) async fn session_rules(
    inner: &Inner,
    instance: &Instance,
    session: &Session,
    agent: &str,
) -> Result<PermissionRules, Error> {
    let own = own(instance, session, agent)?;
    if let Some(above) = inner.subagents.above(&session.id) {
        return Ok(own.under(&above));
    }
    let mut above = Vec::new();
    let mut next = session.parent_id.clone();
    while let Some(id) = next.take().filter(|_| above.len() < MAX_ABOVE) {
        let Some(parent) = inner.store.session(&id).await? else { break };
        let instance = inner.instance(std::path::Path::new(&parent.directory)).await?;
        // A missing agent is replaced by the default agent.
        let named = parent.agent.as_deref().filter(|name| instance.agent(name).is_ok());
        let agent = instance.agent_name(named)?;
        above.push(self::own(&instance, &parent, &agent)?);
        next = parent.parent_id;
    }
    Ok(own.under(&above))
}

/// The rules of the agent, followed by those of the session.
fn own(instance: &Instance, session: &Session, agent: &str) -> Result<PermissionRules, Error> {
    let mut more: Vec<Rule> = session.permission.iter().flatten().cloned().collect();
    if session.parent_id.is_some() {
        more.extend(instance.settled.rules_below());
    }
    Ok(PermissionRules::of_agent(instance.agent(agent)?, &more))
}
