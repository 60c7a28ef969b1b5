//! Finds the permission rules of a session.

use std::path::Path;

use codewright_config::{AgentSpec, Dirs, RuleLimits};
use codewright_permission::Permission;
use codewright_proto::{Principal, Rule, Session};

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
    let own = own(inner, instance, session, agent)?;
    if let Some(above) = inner.subagents.above(&session.id) {
        return Ok(own.under(&above));
    }
    let mut above = Vec::new();
    let mut next = session.parent_id.clone();
    while let Some(id) = next.take().filter(|_| above.len() < MAX_ABOVE) {
        let Some(parent) = inner.store.session(&id).await? else { break };
        let instance = inner.instance(Path::new(&parent.directory)).await?;
        // A missing agent is replaced by the default agent.
        let named = parent.agent.as_deref().filter(|name| instance.agent(name).is_ok());
        let agent = instance.agent_name(named)?;
        above.push(self::own(inner, &instance, &parent, &agent)?);
        next = parent.parent_id;
    }
    Ok(own.under(&above))
}

/// The rules of the agent, followed by those of the session.
fn own(inner: &Inner, instance: &Instance, session: &Session, agent: &str) -> Result<PermissionRules, Error> {
    let agent = instance.agent(agent)?;
    // These rules come from the configuration.
    let below = session.parent_id.iter().flat_map(|_| instance.settled.rules_below());
    let below = below.map(|rule| Rule { by: Some(Principal::Owner), ..rule });
    let more: Vec<Rule> = session.permission.iter().flatten().cloned().chain(below).collect();
    let Some(access) = &session.access else {
        return Ok(PermissionRules::of_agent(agent, &more));
    };
    Ok(PermissionRules::of_session(&of_user(agent, &inner.dirs, &access.owner), &more, Some(access)))
}

/// Replaces the directories of all users in the built-in rules by those of one user.
fn of_user(agent: &AgentSpec, dirs: &Dirs, user: &str) -> AgentSpec {
    let pattern = |directory: &Path| directory.join("*").display().to_string();
    let shared = [dirs.tool_output(), dirs.plans(), dirs.tmp.clone()]
        .map(|directory| (pattern(&directory), pattern(&Dirs::of_user(directory, user))));
    let own = |rules: &[Rule]| {
        let rules = rules.iter().map(|rule| {
            let is_outside = Permission::ExternalDirectory == *rule.permission;
            let own = shared.iter().find(|(of_all, _)| is_outside && rule.pattern == *of_all);
            let pattern = own.map_or_else(|| rule.pattern.clone(), |(_, own)| own.clone());
            Rule { pattern, ..rule.clone() }
        });
        rules.collect::<Vec<_>>()
    };
    let limits = agent.limits.as_ref().map(|limits| RuleLimits { user: own(&limits.user), ..limits.clone() });
    AgentSpec { permission: own(&agent.permission), limits, ..agent.clone() }
}
